"""The only object that holds private labels, with an exact account of the charges of each row."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Literal, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.accounting._spent import Odometer, Spent
from optrand.base._suggestions import suggest_attributes
from optrand.base._validation import check_epsilon, rectangular, suggest_parameters
from optrand.baselines._cluster import ClusterPriorRR, ClusterRR
from optrand.baselines._groups import Groups
from optrand.baselines._peer_to_peer import PeerToPeer
from optrand.errors import DrawFailed, InvalidInput, OptrandError, OverBudget
from optrand.learning._domain import Codes, Domain
from optrand.learning._likelihoods import LabelRelease, PriorRelease, Rows, label_inputs
from optrand.sampling._entropy import EntropySource, SystemEntropy
from optrand.sampling._priors import private_histogram

Drawn = TypeVar("Drawn")


def _refuse(done: str) -> Any:
    """Return a method that refuses an operation after which labels would have a second account."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise InvalidInput(
            f"private labels cannot be {done}: their account would not follow. Pass them whole to fit, slice them, and "
            "validate on releases of held-out rows. Splitters must not look at labels (KFold, not StratifiedKFold), "
            "and n_jobs must be 1"
        )

    return refuse


@suggest_attributes(
    {
        "budget": "epsilon total",
        "spent": "remaining",
        "release(rows, randomizer)": "randomize sample to_numpy values y",
        "domain": "classes labels",
    }
)
class PrivateLabels:
    """True labels with a budget for each row. Only noisy labels and histograms leave the object.

    Parameters
    ----------
    y : (n,) array
        The labels: numbers, texts or other values, all declared. Private.
    epsilon : float or Fraction
        Budget of each row in nats, an exact number.
    labels : sequence
        All labels that can occur, at least two. Public: declared, never found in the private labels.
    delta : float or Fraction, optional
        Budget of delta. By default none, and randomizers with a delta are refused.
    source : EntropySource, optional
        By default the operating system's, the only choice for a release: with a seeded one :attr:`private` is False.
    allow_inexact : bool, optional
        Whether noise in floats is allowed, whose privacy holds for real numbers only.

    Raises
    ------
    InvalidInput
        Labels are missing or not declared. The message states neither which nor how many.

    Notes
    -----
    *Account.* Two tables are neighbours if they differ in one label. A release charges every row whose label it reads,
    exactly, before anything is drawn, and nothing is refunded. Charges on one row add up (basic composition), and the
    table has spent the maximum over rows. This holds if rows and randomizers of a release are chosen from public data
    and earlier releases.

    *Slices* ``labels[places]`` are views on one account, as scikit-learn makes them. Arrays, copies and pickles are
    refused, as they would have another account. This is a guard against mistakes, not against code that reads
    private attributes.

    Examples
    --------
    >>> from optrand.baselines import UniformRR
    >>> labels = PrivateLabels(["yes", "no", "yes"], 1.0, ["no", "yes"])
    >>> labels
    <PrivateLabels: 3 rows, 2 labels, budget epsilon 1, spent epsilon 0>
    >>> release = labels[[0, 2]].release([0, 1], UniformRR(2, 1.0))
    >>> labels.spent.epsilon, labels.of_rows([1])[0].epsilon
    (Fraction(1, 1), Fraction(0, 1))
    >>> labels.release([1, 2], UniformRR(2, 1.0))
    Traceback (most recent call last):
        ...
    optrand.errors.OverBudget: the charge of epsilon 1 would take at least one row to epsilon 2, over the budget of
    epsilon 1: nothing was charged, and nothing must be drawn
    """

    ndim: ClassVar[Literal[1]] = 1

    __slots__ = ("_budget", "_codes", "_domain", "_lock", "_odometer", "_process", "_rows", "_source")

    @suggest_parameters
    def __init__(
        self,
        y: ArrayLike,
        epsilon: float | Fraction,
        labels: ArrayLike | Domain,
        *,
        delta: float | Fraction = 0,
        source: EntropySource | None = None,
        allow_inexact: bool = False,
    ) -> None:
        self._domain = Domain.of(labels)
        self._budget = Spent(epsilon, delta, exact=not allow_inexact)
        if self._budget.epsilon <= 0:
            raise InvalidInput("epsilon is 0, expected a budget above 0 (nats)")
        if self._budget.delta >= 1:
            raise InvalidInput("delta is 1 or more, which guarantees nothing: expected a number below 1")
        self._source = SystemEntropy() if source is None else source
        self._codes = self._domain.codes(y)
        self._rows: Rows = np.arange(self._codes.size)
        self._odometer = Odometer(self._codes.size, budget=self._budget)
        self._process = os.getpid()
        self._lock = threading.Lock()

    @property
    def domain(self) -> Domain:
        """The declared labels."""
        return self._domain

    @property
    def budget(self) -> Spent:
        """Budget of each row."""
        return self._budget

    @property
    def private(self) -> bool:
        """Whether nobody can repeat the noise. False with a seeded source, which protects nobody."""
        return self._source.private

    @property
    def spent(self) -> Spent:
        """Largest payment of a row of this view, exactly."""
        return Spent.most(set(self._odometer.of_rows(self._rows)))

    def of_rows(self, rows: ArrayLike) -> tuple[Spent, ...]:
        """Return the exact payment of each of these rows."""
        return self._odometer.of_rows(self._rows[self._places(rows)])

    @property
    def shape(self) -> tuple[int]:
        """Number of rows, as a tuple."""
        return (self._rows.size,)

    def __len__(self) -> int:
        return int(self._rows.size)

    def __getitem__(self, rows: Any) -> PrivateLabels:
        """Return a view of rows by index, slice or mask, which charges the same account."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            # As scikit-learn indexes the first axis of an array.
            rows = rows[0]
        view = object.__new__(PrivateLabels)
        for name in self.__slots__:
            setattr(view, name, getattr(self, name))
        view._rows = self._rows[self._places(rows)]
        return view

    def release(self, rows: ArrayLike | slice, randomizer: Any, *, groups: Groups | None = None) -> LabelRelease:
        """Release noisy labels of some rows, drawn once.

        Parameters
        ----------
        rows : (m,) array of int, mask or slice
            Distinct rows of this view, chosen without looking at labels.
        randomizer : object
            With `epsilon`, `exact`, `delta` if it has one, and ``sample(values, source=)``, made for this domain or the
            classes ``0 ... K-1``. Or a cluster randomizer.
        groups : Groups, optional
            Public clusters of the `m` rows, for a cluster randomizer.

        Raises
        ------
        OverBudget
            A row would exceed its budget. Nothing was charged or drawn.
        DrawFailed
            The randomizer failed on its labels. The rows have paid.
        InvalidInput
            A row outside the labels or named twice, a randomizer for other labels, or inexact noise without permission.
        """
        places = self._places(rows)
        spent = _cost(randomizer)
        given = label_inputs(randomizer, self.domain)
        if isinstance(randomizer, (ClusterRR, ClusterPriorRR, PeerToPeer)):
            return self._release_clusters(places, randomizer, groups, spent)
        size = len(randomizer) if hasattr(type(randomizer), "__len__") else places.size
        if size != places.size:
            raise InvalidInput(f"the batch has {size} priors for {places.size} rows, expected one per row")
        values = self.draw(places, spent, lambda codes, source: randomizer.sample(given[codes], source=source))
        return LabelRelease(places, np.asarray(values), randomizer, self.domain, spent)

    def _release_clusters(self, places: Rows, randomizer: Any, groups: Groups | None, spent: Spent) -> LabelRelease:
        if groups is None or groups.n != places.size:
            raise InvalidInput(
                f"{type(randomizer).__name__} learns from clusters: pass groups= with a group for each of the "
                f"{places.size} rows"
            )
        found: Any = self.draw(places, spent, lambda codes, source: randomizer.release(codes, groups, source=source))
        if isinstance(randomizer, PeerToPeer):
            return LabelRelease(places[found.rows], found.labels, randomizer, self.domain, spent, groups)
        return LabelRelease(places, found.labels, found, self.domain, spent, groups)

    def prior(
        self, rows: ArrayLike | slice, labels: ArrayLike | Domain, epsilon: float, *, bins: ArrayLike | None = None
    ) -> PriorRelease:
        """Release a private histogram of the labels of some rows, on the same account.

        Parameters
        ----------
        rows : (m,) array of int, mask or slice
            As in :meth:`release`, at least one.
        labels : sequence
            The declared labels, in the order of the counts.
        epsilon : float
            Charge of each of the rows, in nats.
        bins : (K,) array of int, optional
            A coarser histogram: the bin, from 0, of each of `labels`.

        Raises
        ------
        OverBudget, InvalidInput
            As from :meth:`release`.

        Examples
        --------
        >>> from optrand.sampling import SeededEntropy
        >>> labels = PrivateLabels([2] * 60 + [0] * 40, 1.0, [0, 1, 2], source=SeededEntropy(1))
        >>> labels.prior(slice(None), [0, 1, 2], 0.5).counts
        (43, 1, 70)
        >>> labels.prior([0, 1, 2], [2, 1, 0], 0.5, bins=[0, 1, 1]).counts
        (0, -5)
        """
        places = self._places(rows)
        if places.size == 0:
            raise InvalidInput("a histogram of no rows is empty: expected at least one row")
        wanted = Domain.of(labels)
        if set(wanted.labels) != set(self.domain.labels):
            raise InvalidInput(
                f"the histogram has {len(wanted)} labels, expected the {len(self.domain)} that were "
                "declared, in any order"
            )
        of_label = _bins(bins, len(wanted))[wanted.codes(self.domain.array)]
        size = int(of_label.max()) + 1
        budget = check_epsilon(epsilon)

        def count(codes: Codes, source: EntropySource) -> tuple[int, ...]:
            return private_histogram(np.bincount(of_label[codes], minlength=size), budget, source=source)

        return PriorRelease(places, self.draw(places, Spent(budget), count), budget)

    def draw(self, rows: Rows, spent: Spent, draw: Callable[[Codes, EntropySource], Drawn]) -> Drawn:
        """Charge rows of this view, then call `draw` with the indices of their classes and the source of randomness.

        For learners that must see labels, such as noisy gradients: `draw` must be private at the charged cost. If it
        fails, nothing is refunded, and the message holds no label.
        """
        if os.getpid() != self._process:
            raise OverBudget(
                "the private labels were copied into another process, whose account would not be theirs: release in "
                "the process that made them (n_jobs=1, or threads)"
            )
        if not spent.exact and self._budget.exact:
            raise InvalidInput(
                "the noise is drawn in floats, whose privacy holds for real numbers only: use an exact randomizer, "
                "or make the labels with allow_inexact=True for an experiment"
            )
        own = self._rows[rows]
        # Charge first: a draw that fails may have disclosed something about the labels.
        self._odometer.charge(own, spent)
        try:
            with self._lock:
                return draw(self._codes[own], self._source)
        except OptrandError as error:
            # The new error repeats no label. The frames of the old one hold some.
            failure: OptrandError = error.with_traceback(None)
        except Exception as error:
            failure = DrawFailed(
                f"the draw ended in {type(error).__name__}, whose message is withheld, as it may repeat labels. The "
                "rows have paid. Try the randomizer on labels that are not private"
            )
        raise failure

    def require(self, spent: Spent) -> None:
        """Refuse unless every row of this view can still pay an amount.

        Raises
        ------
        OverBudget
            Some row cannot. Nothing was charged.
        """
        after = self.spent + spent
        if not after.within(self.budget):
            raise OverBudget(
                f"{spent} more would take at least one row to {after}, over the budget of {self.budget}: nothing was "
                "charged or drawn. Disjoint rows, or labels with a larger budget, can pay"
            )

    def _places(self, rows: Any) -> Rows:
        if isinstance(rows, slice):
            return np.arange(len(self))[rows]
        array = rectangular(rows, "rows")
        if array.ndim == 1 and array.dtype.kind == "b" and array.size == len(self):
            return np.flatnonzero(array)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InvalidInput("rows must be a slice, a mask of all rows, or a one-dimensional array of their numbers")
        if array.size and not (array.min() >= 0 and array.max() < len(self)):
            raise InvalidInput(f"a row lies outside the labels, expected numbers from 0 to {len(self) - 1}")
        if np.unique(array).size < array.size:
            raise InvalidInput("a row is named twice: a label is released once in each request")
        return array.astype(np.intp)

    __array__ = _refuse("turned into an array")
    __iter__ = _refuse("looked at one by one")
    __copy__ = _refuse("copied")
    __deepcopy__ = _refuse("copied")
    __reduce_ex__ = _refuse("pickled, or sent to another process")
    __getstate__ = _refuse("taken apart")

    def __repr__(self) -> str:
        seeded = "" if self.private else ", seeded: nobody is protected"
        of = f"{len(self)} rows, {len(self.domain)} labels, budget {self.budget}, spent {self.spent}"
        return f"<PrivateLabels: {of}{seeded}>"


def _cost(randomizer: Any) -> Spent:
    try:
        epsilon = getattr(randomizer, "exact_epsilon", randomizer.epsilon)
        # The deltas of an exchange with peers hold towards a learner who does not see it.
        delta = 0 if isinstance(randomizer, PeerToPeer) else getattr(randomizer, "delta", 0)
        return Spent(epsilon, delta, exact=bool(getattr(randomizer, "exact", False)))
    except AttributeError:
        raise InvalidInput(
            f"the randomizer is of type {type(randomizer).__name__}, expected one with a budget epsilon and sample"
        ) from None


def _bins(given: ArrayLike | None, k: int) -> NDArray[np.intp]:
    if given is None:
        return np.arange(k)
    array = rectangular(given, "bins")
    if array.shape != (k,) or array.dtype.kind not in "iu" or (np.unique(array) != np.arange(len(set(array)))).any():
        raise InvalidInput(f"bins must be {k} integers, the bin of each label: 0, 1, ... without a gap")
    return array.astype(np.intp)
