"""Losses that are right on average although labels are noisy ([G21], Theorem 17, Lemmas 18 to 22).

Slopes of debiased losses, and deviations of averages over a class of functions and of noisy empirical risks. Finite
classes and distributions: samples, up to their order, and random signs are enumerated, in fractions. Theorem 17 takes
Lemma 21 for functions into [0, 1]. Debiased losses leave this interval, so its deviation term is too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction as F
from functools import cached_property
from itertools import combinations_with_replacement, product
from random import Random
from typing import Any

import numpy as np

from optrand.base._arithmetic import log_bracket
from optrand.theory._engine import Comparison, Draws, at_most, cases, claim, corrected, draws, equal, false, grid
from optrand.theory._shared import RATIOS, Row, Table, draw_ratio, prior, shares, times, total
from optrand.theory.g21.response import Rows, kept_labels, top_k_rows


@dataclass(frozen=True)
class Debiased:
    """Randomized response on the `k` likeliest labels of a prior, and the loss that [G21] makes for it."""

    prior: Row
    ratio: F
    k: int

    @property
    def size(self) -> int:
        return len(self.prior)

    @cached_property
    def kept(self) -> tuple[int, ...]:
        return kept_labels(self.prior, self.k)

    @cached_property
    def rows(self) -> Rows:
        return top_k_rows(self.prior, self.k, self.ratio)

    @cached_property
    def other(self) -> F:
        """The probability that a kept label becomes any one other: ``p = 1 / (E + k - 1)``."""
        return 1 / (self.ratio + self.k - 1)

    @cached_property
    def left(self) -> F:
        """``1 - k p``."""
        return 1 - self.k * self.other

    @property
    def spread(self) -> F:
        """The range of debiased losses in [0, 1], and the sum of the weights: ``(1 + (k - 2) p) / (1 - k p)``."""
        return (1 + (self.k - 2) * self.other) / self.left

    def slope(self, others: int = 1) -> F:
        """Return ``(1 + k p) / (1 - k p)``, or without ``k p`` in the numerator."""
        return (1 + others * self.k * self.other) / self.left

    @cached_property
    def weights(self) -> Table:
        """Weights of the losses under every label, the debiased loss of each released one: equation 17."""
        kept: Table = np.isin(range(self.size), self.kept)
        return (np.eye(self.size, dtype=int) - self.other * kept) / self.left

    @cached_property
    def means(self) -> Table:
        """The same for the mean debiased loss over the outputs of Algorithm 1, for each label."""
        return np.array(self.rows) @ self.weights


Deviations = Iterable[tuple[F, F]]
"""Pairs of a deviation and its probability."""


def samples(chances: Sequence[F], size: int) -> Iterator[tuple[tuple[int, ...], F]]:
    """Yield every independent sample up to its order, as counts of the points, and its probability."""
    for points in combinations_with_replacement(range(len(chances)), size):
        counts = tuple(map(points.count, range(len(chances))))
        orders = math.factorial(size) // math.prod(map(math.factorial, counts))
        if chance := orders * times(map(pow, chances, counts)):
            yield counts, chance


def rademacher(functions: Rows | Table, chances: Sequence[F], size: int) -> F:
    """Return the Rademacher complexity of a class, equations 20 and 21, for samples of a size, one row per function."""
    return total(chance * correlation(functions, counts) for counts, chance in samples(chances, size))


def correlation(functions: Sequence[Sequence[Any]] | Table, counts: Sequence[int]) -> F:
    """Return equation 20. Points that occur more than once share their sum of signs, whose weights are binomial."""
    scale = math.lcm(*(value.denominator for row in functions for value in row))
    # In whole numbers, and signs of points that do not occur left out.
    table = np.array([[int(scale * value) for value in row] for row in functions], dtype=object)
    seen, found = [at for at, count in enumerate(counts) if count], 0
    times = [counts[at] for at in seen]
    for ups in product(*(range(count + 1) for count in times)):
        found += math.prod(map(math.comb, times, ups)) * max(table[:, seen] @ (2 * np.array(ups) - times))
    return F(found, scale * sum(counts) << sum(counts))


def sum_tail(deviations: Deviations, offset: F, squared: F) -> F:
    """Sum the probabilities of deviations above ``offset + sqrt(squared)``."""
    return total(chance for off, chance in deviations if off > offset and (off - offset) ** 2 > squared)


def log_term(beta: F, size: F | int) -> F:
    """Return ``log(2 / beta) / (2 size)``, rounded down."""
    return log_bracket(2 / beta)[0] / (2 * size)


HALF, TENTH = F(1, 2), F(1, 10)
BETAS = (HALF, F(9, 10), TENTH, F(1, 1000))


@dataclass(frozen=True)
class Learning:
    """Functions, losses ``L abs(f(x) - c)`` up to 1, chances of features and labels, and the release of labels."""

    functions: Rows
    centres: Rows
    steepness: F
    joint: Rows
    responses: tuple[Debiased, ...]
    size: int
    beta: F

    @cached_property
    def losses(self) -> Table:
        """Losses of functions, at features, under labels."""
        losses = self.steepness * abs(np.array(self.functions)[:, :, np.newaxis] - np.array(self.centres))
        return np.minimum(losses, 1)

    @cached_property
    def risks(self) -> Table:
        return (self.losses * np.array(self.joint)).sum(axis=(1, 2))

    @cached_property
    def released(self) -> Table:
        """Chances of features and released labels, feature by feature."""
        pairs = zip(self.joint, self.responses, strict=True)
        return np.concatenate([(np.array(chances) @ np.array(each.rows))[[*each.kept]] for chances, each in pairs])

    @cached_property
    def debiased(self) -> Table:
        """Debiased losses on these, one row per function."""
        features = enumerate(self.responses)
        return np.hstack([self.losses[:, x] @ each.weights[[*each.kept]].T for x, each in features])

    @cached_property
    def noisy(self) -> list[tuple[Table, F]]:
        return [(self.debiased @ counts / self.size, p) for counts, p in samples(self.released, self.size)]

    @cached_property
    def complexity(self) -> F:
        """Rademacher complexity ``R`` of the functions."""
        return rademacher(self.functions, list(map(total, self.joint)), self.size)

    @cached_property
    def outside(self) -> F:
        return 1 - total(p[y] for p, each in zip(self.joint, self.responses, strict=True) for y in each.kept)

    def near(self, off: Deviations, *, spread: bool, outside: int = 1, times: int = 1) -> Comparison:
        """Compare the probability that deviations exceed `times` the bound of Theorem 17 with beta."""
        response = self.responses[0]
        offset = 2 * self.steepness * response.slope() * self.complexity + outside * self.outside
        squared = (times * (response.spread if spread else 1)) ** 2 * log_term(self.beta, self.size)
        return at_most(sum_tail(off, times * offset, squared), self.beta)


def _one_feature(response: Debiased, label: int, size: int, beta: F) -> Learning:
    """Return the constant 0 on one feature, which always has the same label: it loses 1 there."""
    only = tuple(F(y == label) for y in range(response.size))
    return Learning(((F(0),),), (only,), F(1), (only,), (response,), size, beta)


def _one_label() -> Iterator[Learning]:
    sizes = (1, HALF), (2, F(9, 10)), (4, TENTH)
    for (labels, k), ratio, size in product(((2, 2), (2, 1), (3, 3), (3, 2), (1, 1)), RATIOS[::2], sizes):
        yield from (_one_feature(Debiased(shares([1] * labels), ratio, k), y, *size) for y in range(labels))
    yield _one_feature(Debiased((HALF, HALF), F(272, 100), 2), 1, 100, TENTH)


def _draw_values(draw: Random, count: int, most: int = 4) -> Row:
    return tuple(F(draw.randint(0, most), most) for _ in range(count))


def _draw_learning(draw: Random) -> Learning:
    features, labels = draw.randint(1, 2), draw.randint(2, 3)
    joint = prior(draw, features * labels)
    k, ratio = draw.randint(1, labels), 1 + F(draw.randint(1, 300), 10 ** draw.randint(0, 2))
    return Learning(
        functions=tuple(_draw_values(draw, features) for _ in range(draw.randint(1, 4))),
        centres=tuple(_draw_values(draw, labels) for _ in range(features)),
        steepness=F(draw.randint(1, 6), 4),
        joint=tuple(joint[x * labels : (x + 1) * labels] for x in range(features)),
        responses=tuple(Debiased(prior(draw, labels), ratio, k) for _ in range(features)),
        size=draw.randint(1, 4),
        beta=draw.choice((HALF, F(9, 10), TENTH)),
    )


LEARNINGS = Draws(40, _draw_learning)
FINITE = "losses in [0, 1], L-Lipschitz in the prediction, finite classes and finitely many features"


@claim("G21 Theorem 17", _one_label, LEARNINGS, given=FINITE)
@corrected("The same with ``(1 + (k - 2) p) / (1 - k p)`` times the root: the range of the losses.", spread=True)
@false("The same with that factor, without the probability of other labels.", spread=True, outside=0)
def noisy_risks_are_near_risks(learning: Learning, *, spread: bool = False, outside: int = 1) -> Comparison:
    """With probability 1 - beta noisy risks are within ``2 slope R + sqrt(log(2 / beta) / (2 n)) + outside`` of risks.

    These are empirical risks, of all functions at once. ``slope = L (1 + k p) / (1 - k p)``, and ``outside`` is the
    probability of a label that is not kept.
    """
    off = ((max(abs(noisy - learning.risks)), p) for noisy, p in learning.noisy)
    return learning.near(off, spread=spread, outside=outside)


def _list_misled() -> Iterator[Learning]:
    """Yield two functions of which noise, or labels that are not kept, make the worse one look better."""
    zero, one = F(0), F(1)
    ends = ((zero,), (one,))
    both = Debiased((HALF, HALF), F(2), 2)
    yield Learning(ends, ((zero, one),), one, ((HALF, HALF),), (both,), 2, HALF)
    rare = F(1, 100)
    yield Learning(ends, ((zero, one),), one, ((1 - rare, rare),), (both,), 200, F(1, 10**7))
    first = Debiased((F(2, 3), F(1, 3)), F(3000), 1)
    joint = ((zero, F(3, 5)), (F(2, 5), zero))
    yield Learning(((zero, one), (one, zero)), ((zero, one),) * 2, one, joint, (first, first), 24, HALF)


@claim("G21 Theorem 17: empirical risk minimizer", _list_misled, LEARNINGS, given=FINITE)
@corrected("The same with the factor of Theorem 17 as corrected.", spread=True)
@false("They lose at most that bound itself, as corrected.", spread=True, times=1)
def minimizers_lose_twice_the_bound(learning: Learning, *, spread: bool = False, times: int = 2) -> Comparison:
    """With probability 1 - beta minimizers of the noisy empirical risk lose at most twice the bound of Theorem 17."""
    lost = learning.risks - min(learning.risks)
    chosen = ((max(lost[noisy == min(noisy)]), p) for noisy, p in learning.noisy)
    return learning.near(chosen, spread=spread, times=times)


@claim("G21 Theorem 17: equation 25", LEARNINGS, given=FINITE)
@false("The same with ``L / (1 - k p)``.", others=0)
def debiased_losses_are_hardly_more_complex(learning: Learning, others: int = 1) -> Comparison:
    """Debiased losses on released labels are at most ``L (1 + k p) / (1 - k p)`` times as complex as the functions."""
    found = rademacher(learning.debiased, learning.released, learning.size)
    return at_most(found, learning.steepness * learning.responses[0].slope(others) * learning.complexity)


@claim("G21 Lemma 20", _one_label, LEARNINGS, given="losses in [0, 1], any function, any distribution")
@false("The same with ``1 - p`` times that chance.", lost=1)
def only_other_labels_cost(learning: Learning, lost: int = 0) -> Comparison:
    """The risk of the debiased loss on released labels is off by at most the chance of a label that is not kept."""
    errors = abs(learning.risks - learning.debiased @ learning.released)
    return at_most(errors, (1 - lost * learning.responses[0].other) * learning.outside)


def _all_subsets() -> Iterator[dict[str, Any]]:
    zero, one = F(0), F(1)
    for points in (1, 2, 3):
        single: Row = (one,) + (zero,) * (points - 1)
        space = {"functions": [(single,), tuple(product((zero, one), repeat=points))]}
        yield from grid(**space, chances=[shares([1] * points)], size=(1, 2, 5), beta=BETAS)
    pairs = combinations_with_replacement(range(6), 2)
    unseen = tuple(tuple(F(point not in seen) for point in range(6)) for seen in pairs)
    yield from cases("functions chances size beta", (unseen, shares([1] * 6), 2, F(95, 100)))


CLASSES = (
    _all_subsets,
    draws(
        40,
        chances=lambda draw: prior(draw, draw.randint(1, 4)),
        functions=lambda draw, chances: [_draw_values(draw, len(chances), 6) for _ in range(draw.randint(1, 4))],
        size=(1, 2, 3, 4),
        beta=BETAS,
    ),
)
SAMPLES = "functions into [0, 1], independent samples, R the Rademacher complexity"


@claim("G21 Lemma 21: as Theorem 17 uses it", *CLASSES, given=f"{SAMPLES}, sharper than as printed, with n for 2 n")
@false("The same without ``2 R``.", complexities=0)
def averages_are_nearer_means(functions: Rows, chances: Row, size: int, beta: F, complexities: int = 2) -> Comparison:
    """With probability 1 - beta all averages are within ``2 R + sqrt(log(2 / beta) / (2 n))`` of their means."""
    rows, law = np.array(functions), samples(chances, size)
    off = ((max(abs(rows @ (np.array(counts) * F(1, size) - np.array(chances)))), p) for counts, p in law)
    return at_most(sum_tail(off, complexities * rademacher(functions, chances, size), log_term(beta, size)), beta)


CURVES: dict[str, Callable[[F], F]] = {
    "constant 1": lambda _: F(1),
    "falling line": lambda slope: -slope,
    "distance": abs,
    "hinge": lambda slope: max(slope, F(0)),
    "clipped line": lambda slope: min(max(slope, F(-1)), F(1)),
    "hat": lambda slope: max(1 - abs(slope), F(0)),
}


@claim(
    "G21 Lemma 22",
    draws(
        100,
        curves=lambda draw: [draw.choice(tuple(CURVES)) for _ in range(draw.randint(1, 5))],
        centres=lambda draw, curves: _draw_values(draw, len(curves)),
        functions=lambda draw, curves: [_draw_values(draw, len(curves)) for _ in range(draw.randint(1, 5))],
        L=[F(n, 4) for n in range(1, 40)],
    ),
    given="finite classes, values of functions at the points of a sample, one curve for each point",
)
@false("The same with the largest absolute correlation on both sides.", absolute=True)
def curves_contract(
    functions: Sequence[Row], curves: Sequence[str], centres: Row, L: F, *, absolute: bool = False
) -> Comparison:
    """Curves no steeper than L, one for each point, make a class at most L times as complex."""
    points = list(zip(curves, centres, strict=True))
    curved = [[CURVES[f](L * (x - at)) for x, (f, at) in zip(row, points, strict=True)] for row in functions]
    classes = np.array(functions), np.array(curved)
    signed = ([*rows, *-rows] if absolute else rows for rows in classes)
    plain, bent = (correlation(rows, (1,) * len(curves)) for rows in signed)
    return at_most(bent, L * plain)


def _even_priors() -> Iterator[Debiased]:
    for labels in (1, 2, 3, 4):
        yield from (Debiased(shares([1] * labels), ratio, k) for k in range(1, labels + 1) for ratio in RATIOS)


def _draw_response(draw: Random) -> Debiased:
    chances = prior(draw, draw.randint(2, 6))
    return Debiased(chances, draw_ratio(draw), draw.randint(1, len(chances)))


RESPONSES = _even_priors, Draws(60, _draw_response)
LOSSES = (
    [{"response": r, "losses": (*(F(0),) * (r.size - 1), F(1))} for r in _even_priors()],
    draws(60, response=_draw_response, losses=lambda draw, response: _draw_values(draw, response.size, 12)),
)


@claim("G21 Lemma 18", *LOSSES, given="a label among the likeliest k of its prior")
@false("The same of any label.", any_label=True)
def kept_labels_are_debiased(response: Debiased, losses: Row, *, any_label: bool = False) -> Comparison:
    """The debiased loss of the label that is released for a kept one is on average the loss of the kept one."""
    found = [*range(response.size)] if any_label else [*response.kept]
    return equal((response.means @ losses)[found], np.array(losses)[found])


@claim("G21 Lemma 19", *RESPONSES, given="a loss that is 1-Lipschitz in the prediction under every label")
@false("The same with ``L / (1 - k p)``.", others=0)
def debiased_losses_are_no_steeper(response: Debiased, others: int = 1) -> Comparison:
    """The debiased loss is Lipschitz in the prediction, with ``L (1 + k p) / (1 - k p)``."""
    return at_most(abs(response.weights).sum(axis=1), response.slope(others))


@claim("G21 Theorem 17: range of the debiased loss", *RESPONSES, given="losses in [0, 1]")
@corrected("They are at most ``(1 + (k - 2) p) / (1 - k p)`` apart.", most=lambda response: response.spread)
@false("They are at most ``1 / (1 - k p)`` apart.", most=lambda response: 1 / response.left)
def debiased_losses_stay_in_the_interval(response: Debiased, most: Any = lambda _: 1) -> Comparison:
    """Debiased losses of released labels are at most 1 apart, as those of a function into [0, 1] are."""
    return at_most(abs(response.weights[[*response.kept]]).sum(axis=1), most(response))


@claim("G21 Lemma 20: inner term", *LOSSES, given="losses in [0, 1]")
@corrected("The same of the mean debiased loss.", debiased=True)
@false("As corrected, within ``1 - 1 / k`` for others.", debiased=True, drawn=1)
def the_inner_term(response: Debiased, losses: Row, *, debiased: bool = False, drawn: int = 0) -> Comparison:
    """A loss and the mean loss of the released label are equal for kept labels, within 1 for others."""
    means = (response.means if debiased else np.array(response.rows)) @ losses
    limits = [0 if y in response.kept else 1 - F(drawn, response.k) for y in range(response.size)]
    return at_most(abs(means - losses), limits)
