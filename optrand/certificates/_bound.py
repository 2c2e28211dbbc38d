r"""Lower bound of Theorem 3 in ball arithmetic, for every loss and set of outputs.

The bound, :math:`h_y` and :math:`f` are those of :mod:`optrand.certificates._certificate`, with outputs measured from
the origin of the multipliers.

Every number is a ball of :class:`flint.arb`, which contains the true one: floats are exact, and operations enlarge the
radius by their rounding. Each :math:`h_y` is convex, so it is negative on one range of outputs. The ends of that range
are computed approximately and then *fixed*. For any fixed ranges, and the labels :math:`S(v)` whose range contains
:math:`v`,

.. math:: f(v) \geq \sum_y h_y(v) + (E - 1) \sum_{y \in S(v)} h_y(v) - (E - 1) \sum_y t_y,

where :math:`t_y` bounds how far :math:`h_y` is above zero inside of its range and below zero outside. Both follow from
values and slopes at the ends of the range, by convexity. So a range that is wrong makes the bound weak, never false
(``docs/mathematics.md``, section 3).

Without the last sum the right side is at least :math:`f`, for :math:`f` takes the cheapest column. This closes the
enclosure from above: the precision is doubled until both ends are the same float, or neighbours.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cmp_to_key
from itertools import accumulate, groupby
from operator import itemgetter
from threading import RLock
from typing import NamedTuple

import numpy as np
from flint import arb, ctx, fmpq

from optrand import losses
from optrand.base._validation import Floats, expect
from optrand.errors import InvalidInput
from optrand.losses import Loss, Tabulated
from optrand.model._problem import Dual, Grid, Problem

Curve = tuple[arb, arb, arb]  # coefficients of a convex function of an output, as a Form reads them
Place = tuple[arb, arb]  # value of a curve at a place, and a number with the sign of its slope there
Enclosure = tuple[arb, arb]  # a lower and an upper bound
Event = tuple[float, arb, Curve, bool]  # a place as a float and exactly, and the curve that begins or ends there

ZERO = arb(0)
INFINITY = arb("inf")


class Form(NamedTuple):
    """Operations on convex curves of one kind.

    `at` returns the value and slope at a place, whose logarithm may be given, `bottom` the place of the minimum and a
    lower bound of it, and `roots` about the range on which the curve is negative, None if it is empty or tiny.
    """

    at: Callable[[Curve, arb, arb | None], Place]
    bottom: Callable[[Curve], tuple[arb, arb]]
    roots: Callable[[Curve], Enclosure | None]

    def least(self, curve: Curve, left: arb, right: arb) -> arb:
        """Return a lower bound of the curve between two places, which is attained or nearly so."""
        place, value = self.bottom(curve)
        if place <= left:
            return self.at(curve, left, None)[0]
        return self.at(curve, right, None)[0] if place >= right else value


def _parabola_at(curve: Curve, x: arb, _log: arb | None) -> Place:
    """Return ``a x^2 - 2 b x + c``."""
    a, b, c = curve
    slope = a * x - b
    return (slope - b) * x + c, slope


def _parabola_bottom(curve: Curve) -> tuple[arb, arb]:
    a, b, c = curve
    if a > 0:
        place = b / a
        return place, c - b * place
    # A line falls without limit unless it is level.
    return (ZERO, c) if b == 0 else (ZERO / ZERO, -INFINITY)


def _parabola_roots(curve: Curve) -> Enclosure | None:
    a, b, c = curve
    if a == 0:
        return _line_roots(-b - b, c)
    square = b * b - a * c
    if not square > ZERO:
        return None
    root = square.sqrt()
    return (b - root) / a, (b + root) / a


def _line_roots(slope: arb, c: arb) -> Enclosure | None:
    if slope == 0:
        return (-INFINITY, INFINITY) if c < 0 else None
    return (-INFINITY, -c / slope) if slope > 0 else (-c / slope, INFINITY)


def _poisson_at(curve: Curve, x: arb, log: arb | None) -> Place:
    """Return ``b x - d log x + c``."""
    d, b, c = curve
    t = b * x
    return t + c if d == 0 else t + c - d * (x.log() if log is None else log), t - d


def _poisson_bottom(curve: Curve) -> tuple[arb, arb]:
    d, b, c = curve
    if d > 0 and b > 0:
        place = d / b
        return place, d + c - d * place.log()
    if d == 0 and b >= 0:
        return ZERO, c
    # It falls everywhere. A slope of unknown sign gives no number.
    return INFINITY if b <= 0 else ZERO / ZERO, -INFINITY


def _poisson_roots(curve: Curve) -> Enclosure | None:
    """Return roots by both branches of Lambert's W, for ``b >= 0``, as it is off a grid."""
    d, b, c = curve
    if d == 0:
        return _line_roots(b, c)
    if not _poisson_bottom(curve)[1] < 0:
        return None
    # With w = -b x / d the equation is w exp(w) = -b / d exp(c / d). The principal branch is the smaller root.
    argument, unit = -b / d * (c / d).exp(), -d / b
    return unit * argument.lambertw(), unit * argument.lambertw(-1)


PARABOLA = Form(_parabola_at, _parabola_bottom, _parabola_roots)
POISSON = Form(_poisson_at, _poisson_bottom, _poisson_roots)
FORMS: dict[Loss | Tabulated, Form] = dict.fromkeys((losses.squared, losses.absolute), PARABOLA)
FORMS[losses.poisson_log] = POISSON

MOST_BITS = 4096
"""Largest number of binary digits with which the bound is computed, if its ends are apart until then."""

FLINT = RLock()
"""Lock held while the precision is set, which all threads share. A change elsewhere can only make balls wider."""


def lower_bound(problem: Problem, dual: Dual) -> float:
    """Compute a lower bound of the loss of every epsilon-DP randomizer of a problem from any multipliers, rounded down.

    It is that of the minimisation (for classification minus the probability of a correct output), and at most one float
    below the bound of Theorem 3. If that needs more than :data:`MOST_BITS` binary digits (it is zero, and a sum of
    irrational numbers), the best bound so far is returned. Multipliers that prove nothing, such as a `beta` other
    than zero for a label whose bias is free, have the bound ``-inf``.

    Cost ``O(k log k)`` for ``k`` labels off a grid, ``O(k log n + n)`` on one of ``n`` values, ``O(k + n)`` for
    classification, and ``O(k n)`` for a loss other than squared, absolute and Poisson log.

    Examples
    --------
    With ``alpha = beta = 0`` the bound is half the variance of the prior, over ``E``:

    >>> import optrand
    >>> problem = optrand.regression([0, 1], [0.5, 0.5], 1.0)
    >>> bound = lower_bound(problem, Dual([0.0, 0.0], [0.0, 0.0]))
    >>> 0 <= 0.125 / math.e - bound <= math.ulp(bound)
    True
    """
    expect(problem, Problem, "problem", "one of optrand.regression, unbiased_regression or classification")
    expect(dual, Dual, "dual", "a Dual, such as that of a mechanism")
    if dual.alpha.size != problem.k:
        raise InvalidInput(f"the dual has {dual.alpha.size} entries for {problem.k} labels")
    if (dual.beta[problem.bias_weights == 0] != 0).any():
        return -math.inf
    return _round_down(problem, lambda: _enclose_bound(problem, dual))


def lowest_price(problem: Problem, dual: Dual) -> float:
    """Compute the least price :math:`f(v)` over all allowed outputs, rounded down as in :func:`lower_bound`.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.regression([0, 1], [0.5, 0.5], 1.0)
    >>> lowest_price(problem, Dual([0.0, 0.0], [0.0, 0.0]))
    0.125
    """
    return _round_down(problem, lambda: _enclose_lowest(problem, dual, arb(problem.epsilon).expm1()))


def _round_down(problem: Problem, enclose: Callable[[], Enclosure]) -> float:
    """Return the lower end of an enclosure, computed with more and more digits until the upper end is the same."""
    # ``exp(epsilon)`` has 1.44 epsilon binary digits before its point: the first precision grows with them.
    best, bits = -math.inf, 128 + 64 * int(1.5 * problem.epsilon / 64)
    with FLINT:
        while True:
            with ctx.workprec(bits):
                low, high = enclose()
                ends = _float_below(low.lower()), _float_below(high.upper())
            best, bits = max(best, ends[0]), 2 * bits
            if ends[1] <= math.nextafter(best, math.inf) or bits > MOST_BITS:
                return best


def _float_below(number: arb) -> float:
    """Return the largest float that is at most an exact number, ``-inf`` for one that is not finite."""
    if not number.is_finite():
        return -math.inf
    found = float(number)
    while not arb(found) <= number:
        found = math.nextafter(found, -math.inf)
    return found


def _enclose_bound(problem: Problem, dual: Dual) -> Enclosure:
    """Return both ends of the bound."""
    more, origin, penalty = arb(problem.epsilon).expm1(), arb(dual.origin), arb(problem.bias_penalty)
    betas = list(map(arb, dual.beta.tolist()))
    base = sum(map(arb, dual.alpha.tolist()), ZERO)
    base += sum(beta * (y - origin) for y, beta in zip(map(arb, problem.labels.tolist()), betas, strict=True))
    # A bias b of a label costs lambda p b**2 / 2 and gains beta b: at best -beta**2 / (2 lambda p).
    if 0.0 < problem.bias_penalty < math.inf:
        charged = zip(betas, problem.prior.tolist(), strict=True)
        base -= sum((beta * beta / (2 * penalty * arb(p)) for beta, p in charged if beta != 0), ZERO)
    low, high = _enclose_lowest(problem, dual, more)
    # The least price counts the total mass of columns, which is at most k / (E + k - 1) and at least 1 / E.
    # The ends are exact, so that their signs are known.
    ends = (low.lower(), high.upper())
    low, high = (base + (m * problem.k / (more + problem.k) if m < 0 else m / (more + 1)) for m in ends)
    return low.lower(), high.upper()


def _enclose_least(numbers: Iterable[arb]) -> Enclosure:
    """Enclose the least of some numbers, from below by ``-inf`` if one of them is not finite."""
    low, high = INFINITY, INFINITY
    for number in numbers:
        # False for balls that may be smaller, and for those that are not finite.
        if not number >= low:
            low, high = number.lower(), number.upper()
            if not number.is_finite():
                return -INFINITY, high
    return low, high


def _enclose_lowest(problem: Problem, dual: Dual, more: arb) -> Enclosure:
    """Enclose the least price of a column."""
    loss, outputs, form = problem.loss, problem.outputs, FORMS.get(problem.loss)
    if isinstance(outputs, Grid):
        enclose = _enclose_for_classes if loss == losses.zero_one else _enclose_in_table
        return (_enclose_at_points if form else enclose)(problem, dual, more, outputs.values)
    if loss == losses.absolute:
        # The price is concave between labels and ends of the outputs.
        ends = [x for x in (outputs.low, outputs.high) if math.isfinite(x)]
        points = np.union1d(np.clip(problem.labels, outputs.low, outputs.high), ends)
        return _enclose_at_points(problem, dual, more, points)
    # The ends must be numbers: rounded outward, they admit more outputs.
    origin = arb(dual.origin)
    limits = (arb(outputs.low) - origin).lower(), (arb(outputs.high) - origin).upper()
    if loss == losses.poisson_log:
        limits = _find_poisson_limits(problem, more)
    return _enclose_between(FORMS[loss], _generate_curves(problem, dual), more, limits)


def _generate_curves(problem: Problem, dual: Dual) -> Iterator[list[Curve]]:
    """Generate the reduced cost of each label: one curve, or one to the left of the label and one from it on.

    Outputs are measured from the origin of the dual, except for Poisson log loss.
    """
    origin, half = arb(dual.origin), arb(0.5)
    columns = (problem.labels, problem.prior, dual.alpha, dual.beta)
    is_poisson, is_absolute = (problem.loss == loss for loss in (losses.poisson_log, losses.absolute))
    for y, p, alpha, beta in zip(*(map(arb, column.tolist()) for column in columns), strict=True):
        if is_poisson:
            yield [(p * y, p - beta, beta * origin - alpha)]
            continue
        place = y - origin
        if is_absolute:
            pull = p * place
            yield [(ZERO, half * (p + beta), pull - alpha), (ZERO, half * (beta - p), -pull - alpha)]
        else:
            weight = half * p
            pull = weight * place
            yield [(weight, pull + half * beta, pull * place - alpha)]


def _find_poisson_limits(problem: Problem, more: arb) -> Enclosure:
    """Return outputs between which the price of Poisson log loss is least.

    Beyond the largest label of positive prior no reduced cost falls. Before the least one none rises, and neither does
    the sum of some of them, each counted between once and E times, before the mean of the labels over E.
    """
    charged = problem.labels[problem.prior > 0]
    mass, pull = ZERO, ZERO
    for y, p in zip(map(arb, problem.labels.tolist()), map(arb, problem.prior.tolist()), strict=True):
        mass += p
        pull += p * y
    low, high = arb(max(problem.outputs.low, 0.0)), arb(problem.outputs.high)
    first, last = arb(float(charged[0])), arb(float(charged[-1]))
    start = first.max((pull / (mass * (more + 1))).lower()).max(low).min(high)
    return start, last.max(start).min(high)


def _enclose_between(form: Form, curves: Iterable[list[Curve]], more: arb, limits: Enclosure) -> Enclosure:
    """Enclose the minimum of :math:`f` between two places: between the ends of all ranges it is one curve."""
    (low, high), at = limits, form.at
    is_low_finite, is_high_finite = low.is_finite(), high.is_finite()
    a = b = c = slack = ZERO
    events = list[Event]()
    for (curve,) in curves:
        a, b, c = a + curve[0], b + curve[1], c + curve[2]
        roots = form.roots(curve)
        if roots is None:
            slack += ZERO.max(-form.bottom(curve)[1])
            continue
        left, right = roots[0].mid(), roots[1].mid()
        # An end that is not a number becomes that of the outputs.
        begins, ends = low < left, right < high
        left = low if not begins else high if left > high else left
        right = high if not ends else left if right < left else right
        first = at(curve, left, None) if begins or is_low_finite else _evaluate_far(curve, left)
        last = at(curve, right, None) if ends or is_high_finite else _evaluate_far(curve, right)
        is_counted = left < right or not (begins or ends)
        if begins and ends and first[1] <= ZERO <= last[1]:
            # The same as below in fewer operations: nearly all ranges end between the limits.
            slack += abs(first[0]) + abs(last[0])
        else:
            outside = first if begins else None, last if ends else None
            slack += _bound_overstatement((first, last) if is_counted else (), outside, form, curve)
        if is_counted:
            # Every curve counts once everywhere, and E - 1 times more within its range.
            steps = more * curve[0], more * curve[1], more * curve[2]
            if begins:
                events.append((float(left), left, steps, True))
            else:
                a, b, c = a + steps[0], b + steps[1], c + steps[2]
            if ends:
                events.append((float(right), right, steps, False))
    lower, upper = _enclose_least(_minimise_pieces(form, (a, b, c), _sort(events), limits))
    return lower - more * slack, upper


def _minimise_pieces(form: Form, curve: Curve, events: list[Event], limits: Enclosure) -> Iterator[arb]:
    """Generate the minimum of each piece between two places, given the curve of the first piece."""
    (a, b, c), (left, high), least = curve, limits, form.least
    for _, right, (d, e, f), begins in events:
        if left < right:
            yield least((a, b, c), left, right)
            left = right
        a, b, c = (a + d, b + e, c + f) if begins else (a - d, b - e, c - f)
    yield least((a, b, c), left, high)


def _bound_overstatement(
    inside: Iterable[Place], outside: tuple[Place | None, Place | None], form: Form, curve: Curve
) -> arb:
    """Bound how far a convex curve is above zero on a range of places, and below zero to the left and right of it.

    `inside` are the ends of the range, if it is not empty, and `outside` the nearest places on both sides, if there are
    any. The curve, or the first of two, is evaluated if a slope does not show whether it falls.
    """
    worst = ZERO
    for value, _ in inside:
        if not value <= worst:
            worst = worst.max(value)
    for side, end in enumerate(outside):
        if end is not None:
            value, slope = end
            # A convex curve that rises away from the range is nowhere lower.
            below = -value if (slope >= ZERO if side else slope <= ZERO) else -form.bottom(curve)[1]
            if not below <= worst:
                worst = worst.max(below)
    return worst


def _evaluate_far(curve: Curve, end: arb) -> Place:
    """Return the value and slope of a parabola at an infinite place."""
    a, b, c = curve
    if a == 0 and b == 0:
        return c, ZERO
    return -INFINITY if a == 0 and b * end > 0 else INFINITY, ZERO


def _sort(events: list[Event]) -> list[Event]:
    """Sort by place: by the float, which rounding keeps in order, and exactly if floats are the same."""
    events.sort(key=itemgetter(0))
    if len({event[0] for event in events}) == len(events):
        return events

    def compare(one: Event, other: Event) -> int:
        return -1 if one[1] < other[1] else int(one[1] > other[1])

    ties = (tied for _, tied in groupby(events, itemgetter(0)))
    return [event for tied in ties for event in sorted(tied, key=cmp_to_key(compare))]


def _enclose_at_points(problem: Problem, dual: Dual, more: arb, points: Floats) -> Enclosure:
    """Enclose the minimum of :math:`f` over points: at each it is a running sum of the curves that count there."""
    form, n, slack, origin = FORMS[problem.loss], points.size, ZERO, arb(dual.origin)
    places = [(v, v.log()) if form is POISSON else (v - origin, None) for v in map(arb, points.tolist())]
    steps = [[ZERO] * (n + 1) for _ in range(3)]

    middles = np.searchsorted(points, problem.labels).tolist()
    guesses = _guess_ranges(problem, dual, points)
    for curves, middle, guess in zip(_generate_curves(problem, dual), middles, guesses, strict=True):
        # The last curve counts from the middle on.
        middle *= len(curves) - 1

        known = dict[int, Place]()

        def at(i: int, curves: list[Curve] = curves, middle: int = middle, known: dict[int, Place] = known) -> Place:
            if i not in known:
                known[i] = form.at(curves[-1 if i >= middle else 0], *places[i])
            return known[i]

        first, last = _find_negative_range(at, n, guess)
        inside = (at(first), at(last - 1)) if first < last else ()
        outside = at(first - 1) if first > 0 else None, at(last) if last < n else None
        slack += _bound_overstatement(inside, outside, form, curves[0])
        # The first curve counts before the middle, the last from there on, and within the range `more` times again.
        inner = min(max(middle, first), last)
        for step, before, after in zip(steps, curves[0], curves[-1], strict=True):
            if before is ZERO and after is ZERO:
                continue
            step[0] += before
            if after is not before:
                step[middle] += after - before
            if first < last:
                early = more * before
                late = early if after is before else more * after
                step[first] += early if first < inner else late
                if first < inner < last:
                    step[inner] += late - early
                step[last] -= late if inner < last else early
    sums = zip(*(accumulate(step[:-1]) for step in steps), strict=True)
    low, high = _enclose_least(form.at(curve, *place)[0] for curve, place in zip(sums, places, strict=True))
    return low - more * slack, high


def _guess_ranges(problem: Problem, dual: Dual, points: Floats) -> Iterator[tuple[int, int, int]]:
    """Generate guesses for each curve: the points before its negative range, before its minimum, and before its end.

    They are computed in floats, and only save steps. For Poisson log loss only the second is.
    """
    place, p, alpha, beta = problem.labels - dual.origin, problem.prior, dual.alpha, dual.beta
    with np.errstate(all="ignore"):
        if problem.loss == losses.squared:
            middle = place + beta / p
            half = np.sqrt(beta * (2 * p * place + beta) + 2 * p * alpha) / p
            ends = middle - half, middle, middle + half
        elif problem.loss == losses.absolute:
            middle = np.where(np.abs(beta) > p, np.copysign(math.inf, beta), place)
            ends = (p * place - alpha) / (p + beta), middle, (p * place + alpha) / (p - beta)
        else:
            middle = np.where(beta < p, p * problem.labels / (p - beta), math.inf) - dual.origin
            ends = middle, middle, middle
    first, turn, last = (np.searchsorted(points, end + dual.origin) for end in ends)
    return zip(np.minimum(first, turn).tolist(), turn.tolist(), np.maximum(last, turn).tolist(), strict=True)


def _find_negative_range(at: Callable[[int], Place], n: int, guess: tuple[int, int, int]) -> tuple[int, int]:
    """Return the range of points, around its minimum, at which a convex curve is not surely positive."""
    first, turn, last = guess
    for _ in range(2):
        first = _find_first(lambda i: not at(i)[0] >= ZERO, 0, turn, min(first, turn))
        last = _find_first(lambda i: at(i)[0] >= ZERO, turn, n, max(last, turn))
        if first < last and not (at(first)[0] > ZERO or at(last - 1)[0] > ZERO):
            break
        # The curve may be negative elsewhere if the guess of its minimum is wrong.
        turn = _find_first(lambda i: at(i)[1] >= ZERO, 0, n, turn)
    return first, last


def _find_first(holds: Callable[[int], bool], low: int, high: int, guess: int) -> int:
    """Return the first index in a range at which something holds, or `high`, from a guess, or else by bisection."""
    for probe in (guess, guess - 1, guess + 1, guess - 2):
        if low <= probe < high:
            low, high = (low, probe) if holds(probe) else (probe + 1, high)
    return bisect_left(range(high), True, low, key=holds)


def _enclose_for_classes(problem: Problem, dual: Dual, more: arb, grid: Floats) -> Enclosure:
    """Enclose the least price of ``zero_one``, where an output gains at one label at most, and `dual` has no beta."""

    def weigh(cost: arb) -> arb:
        return cost + more * cost.min(ZERO)

    alphas = [arb(alpha) for alpha in dual.alpha.tolist()]
    elsewhere = [weigh(-alpha) for alpha in alphas]
    total = sum(elsewhere, ZERO)
    own = np.flatnonzero(np.isin(problem.labels, grid)).tolist()
    prices = [total + weigh(-alphas[y] - float(problem.prior[y])) - elsewhere[y] for y in own]
    return _enclose_least(prices if len(own) == grid.size else [*prices, total])


def _enclose_in_table(problem: Problem, dual: Dual, more: arb, grid: Floats) -> Enclosure:
    """Enclose the least price for a loss of which only values, or lower bounds of them, are known."""
    places, loss = [arb(v) - arb(dual.origin) for v in grid.tolist()], problem.loss
    labels, outputs = ([Fraction(x) for x in numbers.tolist()] for numbers in (problem.labels, grid))
    sums, gains = [ZERO] * grid.size, [ZERO] * grid.size
    columns = problem.prior, dual.alpha, dual.beta
    for y, (p, alpha, beta) in enumerate(zip(*(map(arb, column.tolist()) for column in columns), strict=True)):
        if isinstance(loss, Tabulated):
            row = list(map(arb, loss.entries[y].tolist()))
        else:
            row = [arb(fmpq(*loss.bracket(v, labels[y])[0].as_integer_ratio())) for v in outputs]
        for i, entry in enumerate(row):
            cost = p * entry - alpha
            if beta != 0:
                cost -= beta * places[i]
            # A negative cost counts E times: once in the sum, and E - 1 times in the gain.
            sums[i] += cost
            if not cost >= 0:
                gains[i] += cost.min(ZERO)
    return _enclose_least(total + more * gain for total, gain in zip(sums, gains, strict=True))
