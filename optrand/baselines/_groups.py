"""Public groups of rows, the clusters that a mechanism may know."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._validation import Record, check_classes, freeze, rectangular
from optrand.errors import InvalidInput, MissingExtra

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Groups(Record):
    """A partition of the rows of a table into groups that are public.

    Attributes
    ----------
    index : (n,) array of int
        The group of each row, from 0 to ``count - 1``.
    names : (count,) array
        Names of the groups.

    Raises
    ------
    InvalidInput
        An index outside the names, or a name without rows.

    Notes
    -----
    *The groups are taken as public.* They may depend on features, which label privacy does not protect, but not on a
    label, neither directly nor through a model that was trained on the labels without privacy.

    Examples
    --------
    >>> groups = Groups.of_ids(["north", "south", "north"])
    >>> groups.index.tolist(), groups.names.tolist(), groups.sizes.tolist()
    ([0, 1, 0], ['north', 'south'], [2, 1])
    """

    index: Indices
    names: NDArray[Any]

    def __post_init__(self) -> None:
        index, names = np.array(self.index), np.array(self.names)
        if index.ndim != 1 or names.ndim != 1:
            raise InvalidInput(
                f"index has shape {index.shape} and names {names.shape}, expected a group for each row, and a name for "
                "each group"
            )
        if index.dtype.kind not in "iu" or ((index < 0) | (index >= names.size)).any():
            raise InvalidInput(
                f"index has type {index.dtype}, expected integers from 0 to {names.size - 1}: use Groups.of_ids"
            )
        object.__setattr__(self, "index", index.astype(np.intp))
        freeze(self, "index", "names")
        empty = np.flatnonzero(self.sizes == 0)
        if empty.size:
            raise InvalidInput(
                f"{empty.size} of {names.size} groups are empty, the first is {names[empty[0]].item()!r}: a group "
                "without rows has no distribution of labels, leave it out of names"
            )

    @cached_property
    def sizes(self) -> Indices:
        """Number of rows of each group, all above 0, shape ``(count,)``."""
        sizes = np.bincount(self.index, minlength=self.names.size)
        sizes.flags.writeable = False
        return sizes

    def __len__(self) -> int:
        return int(self.names.size)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.index.size)

    @classmethod
    def of_ids(cls, ids: ArrayLike) -> Groups:
        """Group rows by a public integer or string for each, shape (n,). Names of groups are the ids, sorted."""
        array = rectangular(ids, "group ids")
        if array.ndim != 1 or array.size == 0:
            raise InvalidInput(f"group ids have shape {array.shape}, expected one id for every row")
        if array.dtype == object and all(type(one) is str for one in array.tolist()):
            array = array.astype(np.str_)
        if array.dtype.kind not in "iuU":
            raise InvalidInput(
                f"group ids are of type {array.dtype}, expected integers or strings, none of them missing: leave rows "
                "without an id out of the table"
            )
        names, index = np.unique(array, return_inverse=True)
        return cls(index, names)

    @classmethod
    def by_k_means(cls, features: ArrayLike, count: int, *, seed: int) -> Groups:
        """Group rows of similar features, by the k-means of scikit-learn with its default parameters.

        [E22] uses 100 groups for sets of 50,000 to 60,000 images. [G21], Algorithm 4, uses 50 to 100, from the
        features of a network that was trained without labels.

        Parameters
        ----------
        features : (n, d) array of finite numbers
            Public features of the rows, without labels.
        count : int
            Number of groups. If fewer rows are distinct, fewer groups are made, with a warning.
        seed : int
            Seed of k-means, for reproducible groups. It does not affect privacy.
        """
        table = rectangular(features, "features")
        try:
            from sklearn.cluster import KMeans
        except ImportError as error:
            raise MissingExtra(
                "k-means needs scikit-learn, which is not installed: pip install 'optrand[learning]', or pass ids of "
                "your own groups to Groups.of_ids"
            ) from error
        try:
            return cls.of_ids(KMeans(n_clusters=count, random_state=seed).fit_predict(table))
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"k-means cannot make {count} group(s) of these features: {error}") from error

    def check_labels(self, labels: ArrayLike, k: int) -> Indices:
        """Check that there is a label ``0 ... k-1`` for every row. No message repeats or counts any."""
        array = rectangular(labels, "labels")
        if array.shape != (self.n,):
            raise InvalidInput(
                f"labels have shape {array.shape} and {self.n} row(s) have a group: expected one label and one group "
                "id for every row"
            )
        return check_classes(array, k)

    def histograms(self, labels: NDArray[np.intp], k: int) -> NDArray[np.int64]:
        """Count each of `k` labels in each group, shape ``(count, k)``. Private."""
        return np.bincount(self.index * k + labels, minlength=len(self) * k).reshape(len(self), k).astype(np.int64)
