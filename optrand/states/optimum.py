"""Best randomizer of states: most expected utility under an epsilon, and perhaps under a channel capacity."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.arithmetic import float_above
from optrand.base.numerals import shown_above, shown_below
from optrand.base.validation import Floats, check_classes, check_epsilon, check_prior, check_real, rectangular
from optrand.certificates.certificate import Certificate
from optrand.errors import InvalidInput, NotCertified
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.tabulation import tabulate
from optrand.model.losses import Tabulated
from optrand.model.problem import Problem, classification, regression
from optrand.model.randomizer import Randomizer
from optrand.sampling.entropy import EntropySource
from optrand.solvers import solve
from optrand.states.channel import GAP, balance
from optrand.states.limited import solve_limited

__all__ = ["BestRandomizer", "best"]

LARGEST = 1600
"""Entries of the utility, states and outputs of one kind merged, up to which a capacity is met at the optimum."""


@dataclass(frozen=True, eq=False)
class BestRandomizer:
    """Randomizer of states with a proof of how good it is.

    Attributes
    ----------
    mechanism : Mechanism
        Exact table over kinds of states and kinds of outputs, numbered from 0.
    kinds : (q,) array of int
        Kind of each state: those of one kind have the same utilities.
    columns : (m,) array of int
        First output of each kind.
    lower, upper : float
        Expected utility of the mechanism, rounded down, and a bound of that of every randomizer that is allowed.
    capacity : float
        Channel capacity of the mechanism in bits, rounded up.
    """

    mechanism: Mechanism
    kinds: NDArray[np.intp]
    columns: NDArray[np.intp]
    lower: float
    upper: float
    capacity: float

    @property
    def epsilon(self) -> float:
        """Realised privacy loss in nats, rounded up."""
        return self.mechanism.realised_epsilon

    @property
    def gap(self) -> float:
        """Upper bound on the additional utility of any other randomizer."""
        return float_above(max(Fraction(0), Fraction(self.upper) - Fraction(self.lower)))

    def sample(self, states: ArrayLike, *, source: EntropySource | None = None) -> NDArray[np.intp]:
        """Draw an output for each state, both by number, from the exact table.

        Parameters
        ----------
        states : array of int, any shape
        source : EntropySource, optional
            By default the operating system.
        """
        places = check_classes(states, self.kinds.size)
        drawn: Floats = self.mechanism.sample(self.kinds[places].astype(np.float64), source=source)
        return self.columns[drawn.astype(np.intp)]

    def __str__(self) -> str:
        """Return a summary in one line."""
        return (
            f"expected utility at least {shown_below(self.lower, 8)}, of any at most {shown_above(self.upper, 8)}; "
            f"epsilon {shown_above(self.epsilon, 6)}, capacity {shown_above(self.capacity, 6)} bits"
        )


def best(utility: ArrayLike, prior: ArrayLike, epsilon: float, capacity: float = math.inf) -> BestRandomizer:
    r"""Find the randomizer of most expected utility under a budget and a capacity.

    .. math:: \max_M \; \sum_y p_y \sum_i M[y, i] u_{y i}

    Parameters
    ----------
    utility : (q, m) array
        Worth of each output for each state.
    prior : (q,) array
        Probabilities of the states.
    epsilon : float
        Privacy budget in nats.
    capacity : float
        Largest allowed channel capacity in bits, above 0; infinite for no limit.

    Returns
    -------
    BestRandomizer

    Raises
    ------
    InvalidInput
        Shapes that do not fit, or a capacity that is not above 0.
    NotCertified
        No randomizer was found that is proven within the capacity.

    Notes
    -----
    States with the same utilities are one, and so are outputs: averaging over them keeps privacy and utility, and does
    not raise the capacity. If outputs are states, and only the true one has a utility, equal for all states, the
    optimum is RRWithPrior. Without a capacity, or if the optimum keeps within it, it is certified like any other.
    Otherwise a cone program finds it (:mod:`optrand.states.limited`), up to :data:`LARGEST` entries. For larger tables
    epsilon is lowered until the capacity is met, as in the published algorithm; :attr:`BestRandomizer.upper` bounds the
    utility that this loses.

    Examples
    --------
    Only the first of three states is rare; how many bits are its report worth?

    >>> found = best(np.eye(3), [0.2, 0.4, 0.4], 2.0)
    >>> f"{found.lower:.6f}", found.gap < 1e-9, f"{found.capacity:.4f}"
    ('0.786986', True, '0.6247')
    >>> less = best(np.eye(3), [0.2, 0.4, 0.4], 2.0, capacity=0.3)
    >>> less.capacity <= 0.3, 0.6 < less.lower < 0.7, less.gap < 1e-6
    (True, True, True)
    """
    worth, shares, budget = _table(utility), check_prior(prior), check_epsilon(epsilon)
    if shares.size != worth.shape[0]:
        raise InvalidInput(f"utility has {worth.shape[0]} rows and prior {shares.size} entries, expected one each")
    limit = math.inf if capacity == math.inf else check_real(capacity, "capacity")
    if limit <= 0:
        raise InvalidInput(f"capacity is {limit}, expected bits above 0: no bits are any constant output")
    rows, kinds = _kinds(worth)
    columns = _kinds(worth[rows].T)[0]
    weights = np.array([math.fsum(shares[kinds == kind]) for kind in range(rows.size)])
    problem = _problem(worth[np.ix_(rows, columns)], weights, budget)
    mechanism = solve(problem)
    upper = _utilities(mechanism.certificate)[1]
    bits = _bits(mechanism, limit)
    if bits > limit:
        if rows.size * columns.size <= LARGEST:
            table, inputs, bound = solve_limited(problem, limit)
            mechanism, upper = tabulate(problem, _drop_unused(problem, table)), min(upper, bound)
            bits = _bits(mechanism, limit, inputs)
        else:
            mechanism = _weaker(problem, limit)
            bits = _bits(mechanism, limit)
    if bits > limit:
        raise NotCertified(f"the capacity is {shown_above(bits, 8)} bits, above the {limit!r} that are allowed")
    lower = _utilities(Mechanism(problem, mechanism.table).certificate)[0]
    return BestRandomizer(mechanism, kinds, columns, lower, upper, bits)


def _table(given: ArrayLike) -> Floats:
    table = rectangular(given, "utility").astype(np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise InvalidInput(f"utility has shape {table.shape}, expected finite numbers: one row a state")
    return table + 0.0


def _kinds(table: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first row of each kind in order of appearance, and the kind of each row."""
    _, first, kind = np.unique(table, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return first[order], rank[kind.ravel()]


def _problem(worth: Floats, prior: Floats, epsilon: float) -> Problem:
    k, m = worth.shape
    if k == m and np.array_equal(worth, np.eye(k)):
        return classification(prior, epsilon)
    return regression(range(k), prior, epsilon, loss=Tabulated(-worth), outputs=range(m))


def _utilities(proof: Certificate) -> tuple[float, float]:
    """Return the utility of a randomizer and the bound of all, from a certificate of the loss or of hits."""
    return (proof.lower, proof.upper) if proof.maximised else (0.0 - proof.upper, 0.0 - proof.lower)


def _bits(mechanism: Mechanism, limit: float, inputs: Floats | None = None) -> float:
    """Bound the capacity of a mechanism from above: to a billionth of a bit, or until it is on one side of a limit."""
    table = (mechanism.weights / mechanism.total).astype(np.float64)
    return balance(table, GAP * min(1.0, limit), limit=limit if limit < math.inf else math.nan, inputs=inputs).upper


def _drop_unused(problem: Problem, table: Floats) -> Randomizer:
    """Return the randomizer of a table without outputs that never occur."""
    outputs = np.arange(table.shape[1])
    return Randomizer(problem.labels, outputs, table, problem.epsilon).without_unused_outputs()


def _weaker(problem: Problem, limit: float) -> Mechanism:
    """Find the optimum of the largest epsilon, to a millionth, whose channel keeps within the capacity."""
    low, high = 0.0, problem.epsilon
    found: Mechanism | None = None
    while high - low > problem.epsilon * 1e-6:
        middle = (low + high) / 2
        tried = solve(replace(problem, epsilon=middle))
        if _bits(tried, limit) <= limit:
            found, low = tried, middle
        else:
            high = middle
    if found is None:
        raise NotCertified(f"no epsilon keeps within {limit!r} bits: allow more")
    return found
