r"""Public groups of rows, each with a prior and a randomizer of its own, all for one epsilon.

A row belongs to one group, so the histograms of all groups cost as much as one of the whole table (parallel
composition). [B23], section 6, leaves this open. A table without groups has one group.

Small groups are pooled, by their public sizes. The noise that is left is met by shrinking each noisy histogram towards
the mixture of all ([JS61]): with :math:`h_g` of :math:`n_g` rows, noise of variance :math:`v`, and the mixture
:math:`q`,

.. math:: p_g \propto n_g q + \Bigl(1 - \frac{(k - 2) v}{\lVert h_g - n_g q \rVert^2}\Bigr)_{\!+} (h_g - n_g q) .

So groups that do not differ, or that differ by less than the noise, share the mixture.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.errors import InputChanged, InvalidInput
from optrand.release.cells import plain
from optrand.release.frames import arrow_column, as_table, is_frame
from optrand.sampling.priors import EstimatedPrior, smoothed_prior

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Groups:
    """Partition of a table by public columns. Without columns there is one group.

    Parameters
    ----------
    columns : tuple of str
    names : tuple of str
        Each group's values as text, a JSON list. A missing value, null, is one of its own.

    Examples
    --------
    >>> batch = pa.record_batch({"state": ["CA", "NY", "CA"], "y": [1, 2, 3]})
    >>> groups = Groups.among(("state",), [batch])
    >>> groups.names, groups.codes(batch).tolist()
    (('["CA"]', '["NY"]'), [0, 1, 0])
    """

    columns: tuple[str, ...] = ()
    names: tuple[str, ...] = ("[]",)

    @classmethod
    def among(cls, columns: tuple[str, ...], batches: Iterable[Any]) -> Groups:
        """Find the groups of some batches, in an order that does not depend on that of rows."""
        found: set[str] = set()
        for batch in batches:
            found.update(_distinct_names(columns, batch)[0])
        order = sorted(found, key=lambda name: [(value is not None, value or "") for value in json.loads(name)])
        return cls(columns, tuple(order))

    def __len__(self) -> int:
        return len(self.names)

    def codes(self, batch: Any) -> Indices:
        """Return the index of the group of each row."""
        if not self.columns:
            return np.zeros(batch.num_rows, dtype=np.intp)
        names, codes = _distinct_names(self.columns, batch)
        places = {name: place for place, name in enumerate(self.names)}
        if any(name not in places for name in names):
            raise InputChanged("the table holds another group of rows than when it was first read: start again")
        return np.array([places[name] for name in names], dtype=np.intp)[codes]

    def codes_of(self, given: Any, rows: int) -> Indices:
        """Return the index of the group of each of some released rows.

        Their columns are given as a frame, as a mapping by name, or as the one column itself.
        """
        columns = _columns_of(given, self.columns)
        missing = [name for name in self.columns if name not in columns]
        if missing:
            raise InvalidInput(f"groups are missing for {', '.join(missing)}: pass a column for each")
        arrays = [plain(columns[name]) for name in self.columns]
        if any(len(array) != rows for array in arrays):
            raise InvalidInput(f"groups are of another number of rows than the {rows} released values")
        try:
            return self.codes(pa.RecordBatch.from_arrays(arrays, names=list(self.columns)))
        except InputChanged:
            raise InvalidInput(
                "at least one row is of a group that the release does not know: pass the columns as they were released"
            ) from None


def _columns_of(given: Any, columns: tuple[str, ...]) -> Mapping[str, Any]:
    if given is None:
        raise InvalidInput(f"the release is by groups of {', '.join(columns)}: pass their columns, groups=...")
    if isinstance(given, Mapping):
        return {name: arrow_column(column) for name, column in given.items()}
    if is_frame(given):
        table = as_table(given)
        return {name: table.column(name) for name in columns if name in table.schema.names}
    if len(columns) > 1:
        raise InvalidInput(f"groups are made by {len(columns)} columns: pass a frame, or a mapping of their names")
    return {columns[0]: arrow_column(given)}


def _distinct_names(columns: tuple[str, ...], batch: Any) -> tuple[list[str], Indices]:
    """Return the names of the groups of a batch, and which of them each row belongs to."""
    values = [_as_json(batch.column(name), name) for name in columns]
    encoded = pc.binary_join_element_wise(*values, ", ").dictionary_encode()
    names = [f"[{name}]" for name in encoded.dictionary.to_pylist()]
    return names, encoded.indices.to_numpy(zero_copy_only=False).astype(np.intp)


def _as_json(cells: Any, name: str) -> Any:
    """Return cells as texts of JSON, ``null`` for a missing one."""
    column = plain(cells)
    kind = column.type
    if pa.types.is_nested(kind):
        raise InvalidInput(f"column {name!r} is of type {kind}, which has no values to group by")
    encoded = column.dictionary_encode(null_encoding="encode")
    try:
        values = encoded.dictionary.cast(pa.string()).to_pylist()
    except pa.ArrowException:
        raise InvalidInput(f"at least one cell of column {name!r} is no text or number to group by") from None
    if pa.types.is_floating(kind):
        # As integers are written, which gaps turn into floats.
        values = [value.removesuffix(".0") if value is not None else None for value in values]
    return pa.array([json.dumps(value, ensure_ascii=False) for value in values], pa.string()).take(encoded.indices)


def pool_groups(sizes: NDArray[Any], *, k: int, prior_epsilon: float) -> Indices:
    """Return the pool of each group, from 0 on: its own if its rows outnumber the noise on its counts, else the last.

    The noise adds up to about ``2 k / prior_epsilon``.

    Examples
    --------
    >>> pool_groups(np.array([9_000, 40, 7_000, 300]), k=53, prior_epsilon=0.05).tolist()
    [0, 2, 1, 2]
    """
    alone = sizes > (2 * k / prior_epsilon if prior_epsilon else math.inf)
    pools: Indices = np.where(alone, np.cumsum(alone) - 1, alone.sum())
    return pools


def noise_variance(epsilon: float) -> float:
    r"""Return the variance of the noise on a count of :func:`~optrand.sampling.priors.private_histogram`.

    .. math:: \frac{2 r}{(1 - r)^2}, \qquad r = e^{-\varepsilon / 2}

    Examples
    --------
    >>> round(noise_variance(0.05))
    3200
    """
    return 1 / (2 * math.sinh(epsilon / 4) ** 2)


def shrink_histograms(counts: NDArray[np.int64], rows: NDArray[Any], epsilon: float) -> Floats:
    """Return a prior for each noisy histogram, above 0 everywhere, shape ``(pools, k)``.

    Parameters
    ----------
    counts : (pools, k) array of int
        Noisy, as they were drawn: some may be negative.
    rows : (pools,) array of int
        Sizes of the pools, public.
    epsilon : float
        Budget that the histograms spent.

    Examples
    --------
    >>> shrink_histograms(
    ...     np.array([[600, 300, 100], [100, 300, 600]]), np.array([1000, 1000]), 0.2
    ... ).round(2).tolist()
    [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    """
    if len(counts) == 1:
        clipped = tuple(max(count, 0) for count in counts[0].tolist())
        return smoothed_prior(EstimatedPrior(clipped, epsilon), int(rows[0]))[np.newaxis]
    total = np.maximum(counts.sum(axis=0), 1)
    mixture = total / total.sum()
    mean = rows[:, np.newaxis] * mixture
    apart = counts - mean
    noise = (counts.shape[1] - 2) * noise_variance(epsilon)
    squares = (apart**2).sum(axis=1, keepdims=True)
    kept = np.maximum(0.0, 1 - noise / np.maximum(squares, max(noise, 1e-300)))
    shrunk = np.maximum(mean + kept * apart, mixture)
    # The mixture itself, bit for bit, if nothing is kept: then pools share a randomizer.
    priors: Floats = np.where(kept > 0, shrunk / shrunk.sum(axis=1, keepdims=True), mixture)
    return priors
