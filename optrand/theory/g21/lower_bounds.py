"""Least excess risk of private algorithms ([G21], Propositions 12 and 13, Fact 14, Lemmas 15 and 16).

Example `i` of `n` is the direction ``e_i`` with a label that is a fair coin, 1 or 2, read as a sign. The loss is ``L``
times the inner product with the parameter, under that sign. Parameters are a ball of diameter ``D``. Excess risk is
``D L / (2 sqrt(n)) (1 - correlation)`` with the correlation of the parameter and the signs, which is at most the root
mean square of the knowledge that an algorithm has of each sign. This covers all algorithms, sharper than the paper.

For bounds that grow as epsilon falls, directions are repeated: `j` occurrences of one reveal as much of its sign as a
budget of ``j epsilon`` allows. Losses are then in units of ``D L``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction as F
from functools import cache
from itertools import product
from operator import mul
from typing import Any, TypeVar

import numpy as np

from optrand.base._arithmetic import exp_bracket, privacy_ratio
from optrand.programs import Approximate, Program
from optrand.theory._engine import TOLERANCE, Comparison, at_most, claim, corrected, draws, equal, false, grid
from optrand.theory._shared import RATIOS, binomial, dot

Real = TypeVar("Real", F, float)


def known_of_a_sign(ratio: Real, delta: Real) -> Real:
    r"""Return the largest mean square of the knowledge that an (epsilon, delta)-DP algorithm has of a fair sign.

    It is ``delta + (1 - delta) t^2`` with ``t = (E - 1) / (E + 1)``. From a delta of 1 on the sign is known.

    An output of probabilities `p` and `q` under the two signs adds ``f(p, q) = (p - q)^2 / (2 (p + q))``, which is
    convex and homogeneous, so at most the sum over any two parts of the pair. Where ``p > E q`` the parts ``(p - E q,
    0)`` and ``(E q, q)`` have ``(p - E q) / 2`` and ``t^2 (E q + q) / 2``, and likewise where ``q > E p``. Elsewhere
    `f` is at most ``t^2 (p + q) / 2``. All ``p - E q`` above 0 sum to at most delta, and so do all ``q - E p``. It is
    attained if the sign is shown with probability delta, and kept with odds `E` otherwise.
    """
    if delta >= 1:
        return type(delta)(1)
    return delta + (1 - delta) * ((ratio - 1) / (ratio + 1)) ** 2


@claim(
    "G21 Proposition 13: construction",
    *(grid(labels=[*product((1, 2), repeat=n)], diameter=(1, F(3, 2)), L=(1, F(1, 7))) for n in range(1, 7)),
    given="any labels, any D and L, where label 1 counts the inner product, label 2 its negative",
)
@false("The same with ``-D L / (2 n)``.", power=2)
def least_risk_is_at_the_sum_of_signs(labels: tuple[int, ...], diameter: F, L: F, power: int = 1) -> Comparison:
    """The least empirical risk in the ball is ``-D L / (2 sqrt(n))``, where the signed directions add up.

    Compared in squares: of the length of the gradient, and of the risk at that sum.
    """
    n, radius = len(labels), F(diameter) ** 2 / 4
    slopes = [L * F(3 - 2 * y, n) for y in labels]
    there = dot(slopes, [2 * y - 3 for y in labels])
    squares = [radius * dot(slopes, slopes), radius * there * abs(there) / n]
    return equal(squares, [radius * L**2 / n**power, -radius * L**2 / n**power])


@cache
def _guess(ratio: F, delta: F) -> float:
    """Return the largest probability that a parameter, which may be on neither side, is on that of a fair sign."""
    if delta == 1:
        return 1.0
    privacy, gain = Approximate(math.log(ratio), float(delta)), [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    return Program([-1, 1], [0.5, 0.5], [-1, 0, 1], loss=gain, privacy=privacy, maximize=True).solve().value


@claim(
    "G21 Proposition 13: equation 13",
    grid(ratio=RATIOS[:-1], delta=(F(0), F(1, 100), F(1, 2), F(1))),
    draws(30, ratio=[F(n, 100) for n in range(101, 1100)], delta=[F(n, 100) for n in range(101)]),
    given="any channel of a fair label",
)
@false("The same with ``E / (E + 1)``.", helps=0)
def a_sign_is_hard_to_guess(ratio: F, delta: F, helps: int = 1) -> Comparison:
    """A private parameter is on the right side of a direction with probability at most ``(E + delta) / (E + 1)``."""
    return at_most(_guess(ratio, delta), float((ratio + helps * delta) / (ratio + 1)), tolerance=TOLERANCE.program)


@claim(
    "G21 Proposition 13: equation 15",
    *(grid(parameter=[*product((0, 1, -1), repeat=n)], signs=[*product((1, -1), repeat=n)]) for n in (1, 2, 3)),
    draws(
        100,
        signs=[*product((1, -1), repeat=2), *product((1, -1), repeat=9)],
        parameter=lambda draw, signs: tuple(draw.randint(-9, 9) for _ in signs),
    ),
    given="any labels, any parameter but 0, as multiples of an orthogonal direction each",
    where=lambda parameter: any(parameter),
)
@false("Risk is at least ``-(L / n) (D / 2)`` times their number over ``sqrt(n)``.", shared=True)
def right_signs_bound_gains(parameter: tuple[int, ...], signs: tuple[int, ...], *, shared: bool = False) -> Comparison:
    """Risk is at least ``-(L / n) (D / 2)`` times the root of the number of directions on the parameter's side."""
    products = list(map(mul, signs, parameter))
    right = sum(each > 0 for each in products)
    gained = F(max(sum(products), 0) ** 2, sum(each**2 for each in products))
    return at_most(gained, F(right**2, len(products)) if shared else right)


def _attain(n: int, ratio: F, delta: F) -> float:
    """Return the correlation where each label is shown with probability delta, else answered by randomized response."""
    of_others, shows = known_of_a_sign(float(ratio), 0.0), float(delta)
    chances = (math.comb(n, shown) * shows**shown * (1 - shows) ** (n - shown) for shown in range(n + 1))
    return math.fsum(p * math.sqrt((shown + (n - shown) * of_others) / n) for shown, p in enumerate(chances))


@claim(
    "G21 Proposition 13: least excess risk",
    n=(1, 2, 3, 10, 100),
    ratio=RATIOS,
    delta=(F(0), F(1, 10**6), F(1, 10), F(1, 2), F(99, 100)),
    given="all algorithms, constructed data sets, compared as squares of correlations: of an algorithm, of the largest "
    "one, and of the bound",
)
@false(
    "No algorithm beats flipping each label with odds ``E + delta`` to ``1 - delta``.",
    lambda n, ratio, delta: at_most(
        _attain(n, ratio, delta) ** 2, float((2 * (ratio + delta) / (ratio + 1) - 1) ** 2), tolerance=TOLERANCE.floats
    ),
)
def private_risk_exceeds_the_least(n: int, ratio: F, delta: F) -> Comparison:
    """The excess risk is on average at least ``(1 - sqrt((E + delta) / (E + 1))) D L / (2 sqrt(n))``.

    Bound for any algorithm, over fair labels. It is the last line of the proof.
    """
    most = float(known_of_a_sign(ratio, delta))
    return at_most(
        [_attain(n, ratio, delta) ** 2, most], [most, float((ratio + delta) / (ratio + 1))], tolerance=TOLERANCE.floats
    )


def likeliest(event: Real, ratio: Real, *, delta: Real) -> Real:
    """Return the largest probability of an event on a neighbouring data set, if it is `event` on this one.

    By the promise for the event, and that for its complement. An algorithm of two outputs attains it.
    """
    return min(ratio * event + delta, 1 - (1 - event - delta) / ratio, type(event)(1))


def group_delta(ratio: Real, delta: Real, *, labels: int) -> Real:
    """Return the delta that Fact 14 adds for `labels` changed labels: ``delta (E^k - 1) / (E - 1)``."""
    return delta * (ratio**labels - 1) / (ratio - 1)


@claim(
    "G21 Fact 14",
    grid(
        labels=(1, 2, 3, 20),
        ratio=RATIOS,
        delta=(F(0), F(1, 10**5), F(1, 10)),
        event=(F(0), F(1), F(1, 2), F(1, 100), F(1, 10**6)),
    ),
    given="epsilon above 0, data sets that differ in k labels, an event that is this likely on one of them",
)
@false("The same with ``k delta`` for the summand.", summed=True)
def groups_are_protected(event: F, ratio: F, delta: F, labels: int, *, summed: bool = False) -> Comparison:
    """Where `k` labels differ, an event is at most ``E^k`` times as likely, plus ``delta (E^k - 1) / (E - 1)``."""
    reached = event
    for _ in range(labels):
        reached = likeliest(reached, ratio, delta=delta)
    added = labels * delta if summed else group_delta(ratio, delta, labels=labels)
    return at_most(reached, ratio**labels * event + added)


def resampled_delta(n: int, step: float, delta: float, copies: float) -> float:
    """Return the delta at ``copies * step`` of a ``(step, delta)``-DP algorithm on `n` draws of `n` examples.

    Deltas are averaged over how often the changed example is drawn. Up to `copies` times the largest is that of an
    event which is impossible before the changes: no probability grows by a larger factor than ``exp(copies * step)``.
    More often than that counts in full.
    """
    chances, found, reached = binomial(n, 1 / n), 0.0, 0.0
    for often in range(min(n, math.floor(copies)) + 1):
        found += float(chances[often]) * reached
        reached = likeliest(reached, math.exp(step), delta=delta)
    return found + float(chances[math.floor(copies) + 1 :].sum())


@claim(
    "G21 Lemma 16",
    n=(1, 2, 3, 10, 300),
    delta=(0.49, 0.1, 1e-3, 1e-6),
    epsilon=(1.0, 1e-6, 0.3, 10.0, 50.0),
    given="delta below 1/2, all algorithms for populations",
)
@false("An (epsilon / (4 l), delta)-LabelDP algorithm, run on draws, is (epsilon, delta)-LabelDP.", full=True)
def resampling_is_private(n: int, delta: float, epsilon: float, *, full: bool = False) -> Comparison:
    """An (epsilon / (4 l), exp(-epsilon) delta / (8 l))-LabelDP algorithm, run on draws, is (epsilon, delta)-LabelDP.

    Here ``l = log(2 / delta)``. An algorithm for populations is run on `n` draws with replacement from `n` examples.
    """
    copies = 4 * math.log(2 / delta)
    inner = delta * (1.0 if full else math.exp(-epsilon) / (2 * copies))
    return at_most(resampled_delta(n, epsilon / copies, inner, copies), delta, tolerance=TOLERANCE.proven)


CONSTANT = F(1, 10)
"""Constant of Lemma 15 and Proposition 12."""

E1 = exp_bracket(1.0)[0] - 1
"""``e - 1``, rounded down."""


def _rate(epsilon: F, n: int, constant: F = CONSTANT, power: int = 1) -> float:
    return float(constant) / math.sqrt(epsilon**power * n)


def lose_copies(epsilon: F, n: int, delta: F | None = None) -> float:
    """Bound the mean loss of every algorithm over `n` examples, ``floor(1 / epsilon)`` copies of each direction.

    Without a delta, the loss of the parameter 0: ``(m copies / n) / (2 sqrt(m))`` for `m` directions.
    """
    copies = math.floor(1 / epsilon)
    ignorant = copies * math.sqrt(n // copies) / (2 * n)
    if delta is None:
        return ignorant
    ratio = privacy_ratio(float(epsilon))
    return ignorant * (1 - math.sqrt(known_of_a_sign(ratio**copies, group_delta(ratio, delta, labels=copies))))


EPSILONS = [
    *map(F, ("1", "1/2", "1/3", "3/4", "501/1000", "499/1000")),
    *map(F, ("1/10", "1/11", "2/21", "1/100", "2/201", "1/1000")),
    *(F(i, 40) for i in range(1, 40)),
]


def _list_copies() -> Iterator[dict[str, Any]]:
    for epsilon in EPSILONS:
        least = math.ceil(1 / epsilon)
        for n in sorted({least, least + 1, 2 * least - 1, 10 * least, 1_000 * least + 7}):
            yield from ({"epsilon": epsilon, "n": n, "delta": share * epsilon} for share in (F(0), CONSTANT))


@claim(
    "G21 Lemma 15: with constants",
    _list_copies,
    given="epsilon at most 1, n at least 1 / epsilon, delta at most epsilon / 10, all LabelDP algorithms, even 0",
)
@false(
    "On these data sets any algorithm loses at least ``D L / (2 sqrt(epsilon n))``.",
    lambda epsilon, n: at_most(_rate(epsilon, n, F(1, 2)), lose_copies(epsilon, n), tolerance=TOLERANCE.proven),
)
def copies_are_hard(epsilon: F, n: int, delta: F) -> Comparison:
    """Any algorithm loses at least ``D L / (10 sqrt(epsilon n))`` on some data set of `n` examples."""
    least = lose_copies(epsilon, n, delta)
    return at_most([_rate(epsilon, n), least], [least, lose_copies(epsilon, n)], tolerance=TOLERANCE.proven)


@claim("G21 Lemma 15: last line", epsilon=EPSILONS, given="epsilon at most 1, C = 1/10")
@corrected("With ``delta = C epsilon`` the copies have a delta of at most ``(e - 1) C``.", power=1)
@false("With ``delta = C epsilon`` the copies have a delta of at most `C`.", power=1, growth=F(1))
def delta_of_the_last_line(epsilon: F, power: int = -1, growth: F = E1) -> Comparison:
    """With ``delta = C / epsilon`` the copies have a delta of at most ``(e - 1) C``: small, if `C` is.

    There are ``floor(1 / epsilon)`` copies.
    """
    grown = group_delta(privacy_ratio(float(epsilon)), F(1), labels=math.floor(1 / epsilon))
    return at_most(grown * CONSTANT * epsilon**power, growth * CONSTANT)


def _lose(directions: int, known: float) -> float:
    """Return the loss over a uniform population of signed directions if the correlation with a sign is `known`."""
    return 0.5 * (1 - known) / math.sqrt(directions)


def lose_population(n: int, epsilon: F, delta: F, directions: int) -> float:
    """Return a lower bound of every algorithm's loss, from the knowledge of a sign in the mean over its occurrences."""
    ratio = math.exp(epsilon)
    # Beyond this number of labels the ratio is no float, and the sign is known in floats.
    labels = (min(j, math.floor(600 / epsilon)) for j in range(n + 1))
    known = [known_of_a_sign(ratio**j, group_delta(ratio, float(delta), labels=j)) for j in labels]
    mean = float(binomial(n, 1 / directions) @ known)
    return _lose(directions, math.sqrt(min(mean, 1.0)))


def lose_by_majority(n: int, epsilon: F, directions: int) -> float:
    """Return the loss of randomized response on every label and the majority of them in every direction."""
    chances, known = binomial(n, 1 / directions), np.zeros(n + 1)
    for j in np.flatnonzero(chances > 1e-12).tolist():
        known[j] = np.sign(2 * np.arange(j + 1) - j) @ binomial(j, 1 / (1 + math.exp(-epsilon)))
    return _lose(directions, float(chances @ known))


def _populations() -> Iterator[dict[str, Any]]:
    for epsilon in map(F, ("1", "1/2", "2/3", "1/5", "3/40", "1/20", "1/40", "1/100")):
        least = math.ceil(1 / epsilon)
        for n, share in product(sorted({least, least + 1, 2 * least + 1, 500}), (F(0), CONSTANT / 2)):
            yield {"n": n, "epsilon": epsilon, "directions": math.ceil(epsilon * n), "delta": share * epsilon}


@claim(
    "G21 Proposition 12: with constants",
    _populations,
    given="epsilon at most 1, n at least 1 / epsilon, delta at most epsilon / 20, all LabelDP algorithms, sharper than "
    "the paper, a statement of ours",
)
@false(
    "Any algorithm loses at least ``D L / (10 epsilon sqrt(n))`` on some population.",
    lambda n, epsilon, directions: at_most(_rate(epsilon, n, power=2), lose_by_majority(n, epsilon, directions)),
)
def a_constant_is_enough(n: int, epsilon: F, delta: F, directions: int) -> Comparison:
    """Any algorithm loses at least ``D L / (10 sqrt(epsilon n))`` on some population."""
    least = lose_population(n, epsilon, delta, directions)
    attained = lose_by_majority(n, epsilon, directions)
    return at_most([_rate(epsilon, n), least], [least, attained], tolerance=TOLERANCE.proven)
