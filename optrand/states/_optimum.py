r"""Best randomizer of states: most expected utility under an epsilon, and perhaps under a channel capacity.

The capacity of a channel is the least, over distributions `w` of the outputs, of the largest divergence of a row from
`w`. So a table keeps within `c` bits if and only if some `w` has :math:`\sum_i M[y, i] \log_2 (M[y, i] / w_i) \leq c`
for every row: convex in table and `w` together.

For any inputs `r` and numbers with :math:`\sum_y r_y 2^{b_{y i}} \leq 1` at each output,

.. math:: c \geq I(r; M) \geq \sum_{y i} r_y M[y, i] \, b_{y i}

holds of every table within the capacity. With a multiplier this constraint turns the utility into another one, whose
certified optimum over private randomizers bounds the optimum under both (``docs/mathematics.md``, Channels of limited
capacity). Its best `r`, multiplier and `b` are read off the solution of the program. The bound holds for any others.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import float_above
from optrand.base._numerals import format_above, format_below
from optrand.base._validation import (
    Floats,
    check_classes,
    check_epsilon,
    check_integer,
    check_prior,
    check_real,
    rectangular,
)
from optrand.certificates._certificate import Certificate
from optrand.errors import InvalidInput, NotCertified, SolverFailed
from optrand.losses import Tabulated
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import Solution, tabulate
from optrand.model._problem import Problem, classification, regression
from optrand.model._randomizer import Randomizer
from optrand.sampling._entropy import EntropySource
from optrand.solvers import solve
from optrand.states._trigger import TriggerStates

GAP = 1e-9
"""Accuracy of a capacity, in bits."""

LARGEST = 1600
"""Largest size of a utility, with equal states and outputs merged, for which a cone program meets the capacity."""

NOISE = 2.0**-48
"""Share by which sums of products are raised, so that their rounding loosens the bound and never breaks it."""


def noise_rate(states: int | TriggerStates, epsilon: float) -> float:
    """Compute the chance that randomized response picks a state at random, the true one included.

    It is ``q / (q - 1 + exp(epsilon))``.

    Parameters
    ----------
    states : int or TriggerStates
    epsilon : float
        In nats, infinite for no noise.

    Notes
    -----
    The published "pick rate" [ARA26]_.

    Examples
    --------
    >>> f"{noise_rate(2925, 14.0):.6f}", f"{noise_rate(3, 14.0):.9f}"
    ('0.002426', '0.000002495')
    """
    count = _count_states(states)
    if epsilon != math.inf and check_real(epsilon, "epsilon") < 0:
        raise InvalidInput(f"epsilon is {epsilon}, expected at least 0 (nats)")
    # Divided by exp(epsilon), so that nothing overflows.
    return count * math.exp(-epsilon) / (1 + (count - 1) * math.exp(-epsilon))


def capacity(states: int | TriggerStates, epsilon: float) -> float:
    r"""Compute the channel capacity of randomized response over `q` states, in bits.

    .. math:: \log_2 q - h(p) - p \log_2 (q - 1), \qquad p = \frac{q - 1}{q} \cdot \frac{q}{q - 1 + e^\epsilon},

    with the binary entropy :math:`h`: the state is another one with probability :math:`p`, all of them alike.

    Parameters
    ----------
    states : int or TriggerStates
    epsilon : float
        In nats, infinite for no noise.

    Notes
    -----
    As published [ARA26]_. The capacity of any randomizer is :func:`channel_capacity`.

    Examples
    --------
    >>> round(capacity(2925, 14.0), 12), round(capacity(3, 14.0), 12)
    (11.461727965385, 1.584926511508)
    """
    count, rate = _count_states(states), noise_rate(states, epsilon)
    if count == 1:
        return 0.0
    flipped = rate * (count - 1) / count
    entropy = sum(-x * math.log2(x) for x in (flipped, 1 - flipped) if x > 0)
    return math.log2(count) - entropy - flipped * math.log2(count - 1)


def channel_capacity(matrix: ArrayLike, *, gap: float = GAP) -> float:
    """Bound the capacity of a table of probabilities in bits from above, for any distribution of its inputs.

    Parameters
    ----------
    matrix : (k, m) array
        Probabilities, one row per input.
    gap : float
        Largest excess of the bound over the capacity in bits, if 5,000 steps suffice.

    Notes
    -----
    For any distribution `w` of the outputs the largest ``sum_i M[y, i] log2(M[y, i] / w[i])`` over inputs is a bound.
    The algorithm of Blahut and Arimoto improves it.

    Examples
    --------
    >>> coin = [[0.75, 0.25], [0.25, 0.75]]
    >>> 0 <= channel_capacity(coin) - capacity(2, np.log(3.0)) < 1e-9
    True
    """
    table = rectangular(matrix, "the channel", np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all() or (table < 0).any():
        raise InvalidInput("a channel is a table of probabilities, one row per input")
    if (np.abs(table.sum(axis=1) - 1) > 1e-9).any():
        raise InvalidInput("rows of a channel sum to 1: divide them by their sums")
    if check_real(gap, "gap") < 0:
        raise InvalidInput(f"gap is {gap:g}, expected a number of bits of at least 0")
    return bound_capacity(table, gap)


def bound_capacity(table: Floats, gap: float = 0.0, *, limit: float = math.nan, inputs: Floats | None = None) -> float:
    """Run the algorithm of Blahut and Arimoto until its bounds are within a gap or on one side of a limit.

    Steps are longer by the reciprocal of the largest total variation of two rows: the factor by which the channel
    contracts the distance of two distributions. Return the upper bound, rounded up. `inputs` is the
    distribution to begin with, by default uniform.
    """
    k, m = table.shape
    found = np.full(k, 1 / k) if inputs is None else inputs
    largest = float(np.abs(np.log2(table[table > 0])).max(initial=1.0)) + math.log2(k + 1)
    # A sum has as many terms as there are outputs, each the product of a logarithm, rounded by 2**-50 at most.
    rounding = 2.0**-50 * (m + 8) * largest
    variation = min(1.0, float((table.max(axis=0) - table.min(axis=0)).sum()))
    lower, upper = 0.0, math.inf
    for _ in range(5_000):
        # Divergence of each row from the distribution of the outputs.
        ratios = np.divide(table, found @ table, out=np.ones_like(table), where=table > 0)
        bits: Floats = np.einsum("ki,ki->k", table, np.log2(ratios))
        top = float(bits.max())
        lower, upper = max(lower, float(found @ bits)), min(upper, max(0.0, top) + rounding)
        if upper - lower <= gap + 2 * rounding or upper <= limit or lower > limit:
            break
        # No input falls below 1e-30, so that inputs that were dropped may come back.
        found = np.maximum(found * np.exp2((bits - top) / max(variation, 1e-9)), 1e-30)
        found /= found.sum()
    return upper


def _count_states(states: int | TriggerStates) -> int:
    return states.size if isinstance(states, TriggerStates) else check_integer(states, "states", 1)


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
        return (
            f"expected utility at least {format_below(self.lower, 8)} (of any at most {format_above(self.upper, 8)}), "
            f"epsilon {format_above(self.epsilon, 6)}, capacity {format_above(self.capacity, 6)} bits"
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
        Largest allowed channel capacity in bits, above 0, infinite for no limit.

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
    States with equal utilities are merged, and so are outputs: averaging over them keeps privacy and utility, and does
    not raise the capacity. If outputs are states, and only the true one has a utility, equal for all states, the
    optimum is RRWithPrior. Without a capacity, or if the optimum keeps within it, it is certified like any other.
    Otherwise a cone program finds it, up to :data:`LARGEST` entries. For larger tables epsilon is lowered
    until the capacity is met, as in the published algorithm, and :attr:`BestRandomizer.upper` bounds the loss.

    Examples
    --------
    Only the first of three states is rare. The utility counts correct reports.

    >>> found = best(np.eye(3), [0.2, 0.4, 0.4], 2.0)
    >>> f"{found.lower:.6f}", found.gap < 1e-9, f"{found.capacity:.4f}"
    ('0.786986', True, '0.6247')
    >>> less = best(np.eye(3), [0.2, 0.4, 0.4], 2.0, capacity=0.3)
    >>> less.capacity <= 0.3, 0.6 < less.lower < 0.7, less.gap < 1e-6
    (True, True, True)
    """
    worth = rectangular(utility, "utility").astype(np.float64) + 0.0
    if worth.ndim != 2 or not worth.size or not np.isfinite(worth).all():
        raise InvalidInput(f"utility has shape {worth.shape}, expected finite numbers: one row per state")
    shares, budget = check_prior(prior), check_epsilon(epsilon)
    if shares.size != worth.shape[0]:
        raise InvalidInput(f"utility has {worth.shape[0]} rows and prior {shares.size} entries, expected one each")
    limit = math.inf if capacity == math.inf else check_real(capacity, "capacity")
    if limit <= 0:
        raise InvalidInput(f"capacity is {limit}, expected a number of bits above 0: at 0 every output is a constant")
    rows, kinds = _find_kinds(worth)
    columns = _find_kinds(worth[rows].T)[0]
    weights = np.array([math.fsum(shares[kinds == kind]) for kind in range(rows.size)])
    worth = worth[np.ix_(rows, columns)]
    problem = _state_problem(worth, weights, budget)
    mechanism = solve(problem)
    upper = _read_utilities(mechanism.certificate)[1]
    inputs = None
    bits = _bound_bits(mechanism, limit)
    if bits > limit:
        if rows.size * columns.size <= LARGEST:
            table, inputs, bound = solve_within_limits(weights[:, np.newaxis] * worth, budget, limit)
            found = Randomizer(problem.labels, np.arange(float(columns.size)), table, budget).without_unused_outputs()
            mechanism, upper = tabulate(Solution(problem, found)), min(upper, bound)
        else:
            mechanism = _lower_epsilon(problem, limit)
        bits = _bound_bits(mechanism, limit, inputs)
    if bits > limit:
        raise NotCertified(f"the capacity is {format_above(bits, 8)} bits, above the {limit!r} that are allowed")
    lower = _read_utilities(Mechanism(problem, mechanism.table).certificate)[0]
    return BestRandomizer(mechanism, kinds, columns, lower, upper, bits)


def _find_kinds(table: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first row of each kind in order of appearance, and the kind of each row."""
    first, kind = np.unique(table, axis=0, return_index=True, return_inverse=True)[1:]
    order = np.argsort(first)
    return first[order], np.argsort(order)[kind.ravel()]


def _state_problem(worth: Floats, prior: Floats, epsilon: float) -> Problem:
    k, m = worth.shape
    if k == m and np.array_equal(worth, np.eye(k)):
        return classification(prior, epsilon)
    return regression(range(k), prior, epsilon, loss=Tabulated(-worth), outputs=range(m))


def _read_utilities(proof: Certificate) -> tuple[float, float]:
    """Return the utility of a randomizer and the bound of all, from a certificate of the loss or of hits."""
    return (proof.lower, proof.upper) if proof.maximised else (0.0 - proof.upper, 0.0 - proof.lower)


def _bound_bits(mechanism: Mechanism, limit: float, inputs: Floats | None = None) -> float:
    """Bound the capacity of a mechanism from above: to a billionth of a bit, or until it is on one side of a limit."""
    table = (mechanism.weights / mechanism.total).astype(np.float64)
    return bound_capacity(table, GAP * min(1.0, limit), limit=limit if limit < math.inf else math.nan, inputs=inputs)


def _lower_epsilon(problem: Problem, limit: float) -> Mechanism:
    """Find the optimum of the largest epsilon, to a millionth, whose channel keeps within the capacity."""
    low, high = 0.0, problem.epsilon
    found: Mechanism | None = None
    while high - low > problem.epsilon * 1e-6:
        # Should the capacity not grow with epsilon, the answer is still within the limit.
        middle = (low + high) / 2
        tried = solve(replace(problem, epsilon=middle))
        if _bound_bits(tried, limit) <= limit:
            found, low = tried, middle
        else:
            high = middle
    if found is None:
        raise NotCertified(f"no epsilon keeps within {limit!r} bits: allow more")
    return found


def solve_within_limits(worth: Floats, epsilon: float, capacity: float) -> tuple[Floats, Floats, float]:
    """Find a table of nearly maximal utility within both limits, inputs that attain its capacity, and a bound.

    The bound is certified and holds for the utility of all tables within both limits. `worth` is the utility of each
    entry of a table, weighted by the prior, and the capacity is in bits, above 0.
    """
    raw, inputs, multiplier = _solve_cones(worth, math.exp(epsilon), capacity)
    # The engine's table keeps privacy and capacity to its tolerance. Make it private, then mix it with a constant
    # channel until it is within the capacity.
    private = _make_private(raw, math.exp(epsilon))
    constant = np.zeros_like(private)
    constant[:, int(np.argmax(worth.sum(axis=0)))] = 1.0
    # The information of a mixture with a constant channel is at most its share of the table.
    bits = bound_capacity(private, GAP * min(1.0, capacity), inputs=inputs)
    # A share of 1e-7 is left unused, as a margin for rounding to an exact mechanism.
    inside = constant + min(1.0, capacity * (1 - 1e-7) / bits) * (private - constant)
    # The constraint that touches the information at the raw table. For unused outputs, the ratios of the small entries
    # left by the interior point are as good as any. Lowered by 1e-12 bits, it holds in spite of rounding.
    cut = inputs[:, np.newaxis] * (np.log2(raw / (inputs @ raw)) - 1e-12)
    return inside, inputs, bound_utility(worth, epsilon, capacity, cut, multiplier)


def bound_utility(worth: Floats, epsilon: float, capacity: float, cut: Floats, multiplier: float) -> float:
    r"""Bound the utility of every private randomizer within the capacity from above, by any multiplier of at least 0.

    The cut has numbers :math:`r_y b_{y i}` with :math:`\sum_y r_y 2^{b_{y i}} \leq 1` at each output.
    """
    k, m = worth.shape
    noise = NOISE * (np.abs(worth) + multiplier * np.abs(cut))
    loss = Tabulated(-k * (worth - multiplier * cut + noise))
    proof = solve(regression(range(k), np.full(k, 1 / k), epsilon, loss=loss, outputs=range(m))).certificate
    # Inputs sum to 1 up to rounding.
    allowed = Fraction(capacity) * (1 + Fraction(NOISE))
    return float_above(Fraction(multiplier) * allowed - Fraction(proof.lower))


def _solve_cones(worth: Floats, ratio: float, capacity: float) -> tuple[Floats, Floats, float]:
    """Solve the cone program. Return a table with entries above 0, inputs, and the multiplier of the capacity."""
    import cvxpy

    # Utilities in units of the largest one, so that the engine's tolerances are relative.
    scale = float(np.abs(worth).max()) or 1.0
    table = cvxpy.Variable(worth.shape)
    floor, share = cvxpy.Variable((1, worth.shape[1])), cvxpy.Variable((1, worth.shape[1]))
    each = np.ones((worth.shape[0], 1))
    limit = cvxpy.sum(cvxpy.rel_entr(table, each @ share), axis=1) <= capacity * math.log(2)
    private = [table >= each @ floor, table <= ratio * each @ floor, cvxpy.sum(table, axis=1) == 1]
    utility = cvxpy.Maximize(cvxpy.sum(cvxpy.multiply(worth / scale, table)))
    program = cvxpy.Problem(utility, [limit, *private, cvxpy.sum(share) == 1])
    # If Clarabel cannot reach these, it returns its last point, which the certificate judges.
    options = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program.solve(solver="CLARABEL", max_iter=300, **options)
        except cvxpy.error.SolverError as error:
            raise SolverFailed("Clarabel has no answer: numbers left the range or the precision of floats") from error
    if table.value is None or limit.dual_value is None:
        raise SolverFailed(f"Clarabel ended with the status {program.status} and no answer to read")
    prices = np.maximum(limit.dual_value, 0.0)
    inputs = prices / prices.sum() if prices.sum() > 0 else np.full(prices.size, 1 / prices.size)
    return np.maximum(table.value, 1e-30), inputs, float(prices.sum()) * scale * math.log(2)


def _make_private(table: Floats, ratio: float) -> Floats:
    """Lift entries to the largest of their column over the ratio, and normalise rows."""
    used = np.where(table.max(axis=0) > 1e-9, table, 0.0)
    lifted = np.maximum(used, used.max(axis=0) / ratio)
    private: Floats = lifted / lifted.sum(axis=1, keepdims=True)
    return private
