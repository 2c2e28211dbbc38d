r"""Randomized response on the likeliest labels is private and optimal, and learned priors keep it so ([G21]).

Lemma 1, Corollary 2 and Theorem 3: Algorithms 1 and 2 as printed, in fractions. The other modules use both.
LP1 is over the ``K x K`` table of an epsilon-DP randomizer, LP2 for its diagonal only. Both optima are :math:`S =
\max_{\emptyset \neq Y} E / (E + |Y| - 1) \sum_{y \in Y} p_y`, here the largest over all subsets.

Observation 4, Algorithm 4 and Appendix E: a data set small enough for all its label vectors, and all that training can
release, to be written down. Training itself is arbitrary. A model here is the prior that it predicts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction as F
from functools import cache, lru_cache, partial
from itertools import accumulate, chain, combinations, product
from operator import mul, ne
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray

from optrand.base._arithmetic import exp_bracket
from optrand.base._validation import Floats
from optrand.baselines._groups import Groups
from optrand.closed_forms import rr_with_prior, rr_with_prior_batch
from optrand.mechanism._mechanism import Mechanism
from optrand.programs import lp1, lp2
from optrand.sampling._priors import EstimatedPrior
from optrand.theory._engine import TOLERANCE, Comparison, at_most, cases, claim, corrected, draws, equal, false, grid
from optrand.theory._shared import (
    RATIOS,
    Row,
    draw_ratio,
    largest_ratio,
    prior,
    ratio_of_neighbours,
    settings,
    shares,
    times,
    total,
)

Rows = tuple[Row, ...]
"""Probabilities of the outputs ``0 ... K-1``, a row for each label."""


ANY_PRIOR = "any prior, zeros and ties among them, epsilon above 0"


def kept_labels(prior: Row, k: int) -> tuple[int, ...]:
    """Return the `k` labels of the largest prior, of equally likely ones the smaller."""
    return tuple(sorted(sorted(range(len(prior)), key=lambda y: -prior[y])[:k]))


def top_k_rows(prior: Row, k: int, ratio: F, others: Row | None = None) -> Rows:
    """Return [G21], Algorithm 1, as a table. Other labels become kept ones alike, or by the law `others`."""
    kept, labels, chance = kept_labels(prior, k), range(len(prior)), 1 / (ratio + k - 1)
    own = dict.fromkeys(product(kept, repeat=2), chance) | {(y, y): ratio * chance for y in kept}
    drawn = others or tuple(F(v in kept, k) for v in labels)
    return tuple(tuple(own.get((y, v), F(0)) for v in labels) if y in kept else drawn for y in labels)


def best_k(prior: Row, ratio: F, *, others: int = -1) -> int:
    """Return the number of labels that [G21], Algorithm 2, keeps, the smallest of the best."""
    falling = sorted(prior, reverse=True)
    return max(range(1, len(prior) + 1), key=lambda k: ratio * sum(falling[:k]) / (ratio + k + others))


def with_prior_rows(prior: Row, ratio: F) -> Rows:
    """Return [G21], Algorithm 2, as a table."""
    return top_k_rows(prior, best_k(prior, ratio), ratio)


def objective(prior: Row, rows: Rows) -> F:
    return total(share * rows[y][y] for y, share in enumerate(prior))


def table(mechanism: Mechanism) -> Rows:
    """Return the exact laws of a mechanism's outputs, by its integer table, zeros for labels that never occur."""
    outputs, rows = mechanism.outputs.astype(int).tolist(), mechanism.weights.tolist()
    found = (dict(zip(outputs, row, strict=True)) for row in rows)
    return tuple(tuple(F(law.get(v, 0), mechanism.total) for v in range(len(rows))) for law in found)


def tasks(count: int, *, most: int) -> tuple[Any, ...]:
    """Return priors and ratios: edge cases, and random ones.

    First are priors for which keeping one label more is exactly as good: ``E p_(k+1)`` is the objective.
    """
    ties = [(shares([*[F(1)] * (k - 1), F(k - 1) / (ratio + k - 2)]), ratio) for k, ratio in product((2, 3, 4), RATIOS)]
    edges = [(each.prior, each.ratio) for each in settings(0, most=most)[0]]
    listed = cases("prior ratio", ((F(1),), F(2)), *ties, *edges)
    return listed, draws(count, prior=partial(_draw_prior, most=most), ratio=draw_ratio)


def _draw_prior(draw: Random, most: int) -> Row:
    return prior(draw, draw.randint(2, most))


def top_ks(count: int, *, most: int) -> tuple[Any, ...]:
    """Return such priors and ratios with each number of labels kept, and random ones with some number."""
    listed = tasks(0, most=4)[0]
    every = [each | {"k": k} for each in listed for k in range(1, len(each["prior"]) + 1)]
    draw_prior = partial(_draw_prior, most=most)
    return every, draws(count, prior=draw_prior, ratio=draw_ratio, k=lambda draw, prior: draw.randint(1, len(prior)))


KEPT = top_ks(50, most=9)
ANY_NUMBER = "any prior, any number of labels kept, epsilon above 0"


def _draw_others_by_prior(prior: Row, ratio: F, k: int) -> Comparison:
    drawn = shares([share * (v in kept_labels(prior, k)) for v, share in enumerate(prior)])
    return at_most(largest_ratio(top_k_rows(prior, k, ratio, drawn)), ratio)


@claim("G21 Lemma 1", *KEPT, given=ANY_NUMBER)
@false("The same if any other label gives one of the `k` by its prior, not all alike.", _draw_others_by_prior)
def top_k_is_private(prior: Row, ratio: F, k: int) -> Comparison:
    """RRTop-k, in which a label that is not among the `k` likeliest gives one of these at random, is epsilon-DP."""
    return at_most(largest_ratio(top_k_rows(prior, k, ratio)), ratio)


@claim("G21 Appendix A.1", *KEPT, given=ANY_NUMBER)
@corrected("The same if `k` is at least 2. If it is 1, the output is certain for all labels.", alike=1)
@false("The output is least likely for a label that is not kept: with probability ``1 / k``.", alike=99)
def another_kept_label_is_least_likely(prior: Row, ratio: F, k: int, *, alike: int = 0) -> Comparison:
    """RRTop-k gives an output least likely for another label that is kept: with probability ``1 / (E + k - 1)``."""
    least = [min(column) for column in zip(*top_k_rows(prior, k, ratio), strict=True)]
    return equal([least[v] for v in kept_labels(prior, k)], F(1, k) if k <= alike else 1 / (ratio + k - 1))


@claim("G21 Section 3.1: objective of RRTop-k", *KEPT, given=ANY_NUMBER)
@false("The same with ``E / (E + K - 1)``, of randomized response on all labels.", all_labels=True)
def top_k_keeps_the_label(prior: Row, ratio: F, k: int, *, all_labels: bool = False) -> Comparison:
    """RRTop-k keeps a label that follows the prior with ``E / (E + k - 1)`` times the prior of the `k` likeliest."""
    share = ratio / (ratio + (len(prior) if all_labels else k) - 1)
    return equal(objective(prior, top_k_rows(prior, k, ratio)), share * total(prior[y] for y in kept_labels(prior, k)))


def _raise_k_until_kept(prior: Row, ratio: F) -> Comparison:
    ranks = sorted(range(len(prior)), key=lambda y: -prior[y])
    counts = [max(best_k(prior, ratio), ranks.index(y) + 1) for y in range(len(prior))]
    return at_most(largest_ratio([top_k_rows(prior, k, ratio)[y] for y, k in enumerate(counts)]), ratio)


@claim("G21 Corollary 2", *tasks(60, most=9), given=ANY_PRIOR)
@false("The same if a label that is not kept has the number of labels raised until it is.", _raise_k_until_kept)
def with_prior_is_private(prior: Row, ratio: F) -> Comparison:
    """RRWithPrior, which keeps as many labels as is best for the prior, whatever the label is, is epsilon-DP."""
    return at_most(largest_ratio(with_prior_rows(prior, ratio)), ratio)


@claim("G21 Section 4: one stage", k=(1, 2, 3, 7, 10, 25), ratio=RATIOS, given="a flat first prior")
@false("The same if the model finds the first label half as likely as each other one.", first=1)
def one_stage_is_randomized_response(k: int, ratio: F, first: int = 2) -> Comparison:
    """One stage of training, whose model gives all labels equal probabilities, uses randomized response on all."""
    everything = (np.ones((k, k), dtype=int) + np.eye(k, dtype=int) * (ratio - 1)) / (ratio + k - 1)
    return equal(np.array(with_prior_rows(shares([first] + [2] * (k - 1)), ratio)), everything)


@cache
def best_subset(prior: Row, ratio: F, *, others: int = -1) -> F:
    """Compute `S` over all subsets of labels."""
    subsets = chain(*(combinations(prior, k) for k in range(1, len(prior) + 1)))
    return max(ratio * total(kept) / (ratio + len(kept) + others) for kept in subsets)


def bounds(prior: Row, ratio: F, multipliers: Row = ()) -> tuple[F, F]:
    """Return upper bounds of all epsilon-DP randomizers, and of all feasible points of LP2, from any multipliers.

    Without multipliers, from those that sum to `S`. A column of a table is `c s` with `s` in ``[1, E]^K`` and masses
    `c` that sum to at most 1, and no entry of LP2 is above 1.
    """
    if not multipliers:
        best = best_subset(prior, ratio)
        multipliers = tuple(max(F(0), (ratio * p - best) / (ratio - 1)) for p in prior)
    mass, least = total(multipliers), F(0)
    for v, p in enumerate(prior):
        costs = [mu - p * (y == v) for y, mu in enumerate(multipliers)]
        least = min(least, total(costs) + (ratio - 1) * total(min(cost, F(0)) for cost in costs))
    slack = (p - mu - (mass - mu) / ratio for p, mu in zip(prior, multipliers, strict=True))
    return mass - least, mass + total(max(F(0), each) for each in slack)


def _keep_by_another_rule(prior: Row, ratio: F) -> Comparison:
    rows = top_k_rows(prior, best_k(prior, ratio, others=0), ratio)
    return at_most(bounds(prior, ratio)[0], objective(prior, rows))


@claim("G21 Theorem 3", *tasks(30, most=7), given=ANY_PRIOR)
@false("The same with the number of labels of the largest ``E / (E + k)`` times their prior.", _keep_by_another_rule)
def nothing_is_better(prior: Row, ratio: F) -> Comparison:
    """No epsilon-DP randomizer keeps the label more often than RRWithPrior."""
    return at_most(bounds(prior, ratio)[0], objective(prior, with_prior_rows(prior, ratio)))


SMALL = f"{ANY_PRIOR} and at most log(3000)"
"""Beyond this ratio the coefficients of LP1 as printed span more than a solver in floats can distinguish."""


def _is_small(ratio: F) -> bool:
    return ratio <= 3000


@claim("G21 Theorem 3: LP1", *tasks(8, most=3), given=SMALL, where=_is_small)
@false("The same with ``E / (E + |Y|)`` for ``E / (E + |Y| - 1)``.", others=0)
def lp1_is_best_subset(prior: Row, ratio: F, *, others: int = -1) -> Comparison:
    """The optimum of LP1, with a row for each output and each pair of labels, is that of RRWithPrior."""
    optimum = lp1([*map(float, prior)], math.log1p(ratio - 1)).solve().value
    return equal(optimum, best_subset(prior, ratio, others=others), tolerance=TOLERANCE.program)


@claim("G21 Theorem 3: LP2", *tasks(8, most=3), given=SMALL, where=_is_small)
@false("The same with ``E / (E + |Y|)`` for ``E / (E + |Y| - 1)``.", others=0)
def lp2_is_best_subset(prior: Row, ratio: F, *, others: int = -1) -> Comparison:
    """The optimum of LP2, whose variables are the diagonal only, is that of RRWithPrior."""
    optimum = lp2([*map(float, prior)], math.log1p(ratio - 1)).solve().value
    return equal(optimum, best_subset(prior, ratio, others=others), tolerance=TOLERANCE.program)


def _draw_rows(draw: Random) -> Rows:
    k = draw.randint(2, 8)
    return tuple(shares([draw.randint(1, 9) + (v == y) * draw.randint(0, 60) for v in range(k)]) for y in range(k))


CHANNELS = (
    cases(
        "rows ratio",
        *(
            (top_k_rows(shares([1] * k), n, ratio), ratio)
            for k, ratio in product((2, 3, 10), RATIOS)
            for n in sorted({1, 2, k})
        ),
    ),
    draws(100, rows=_draw_rows, ratio=lambda _, rows: largest_ratio(rows)),
)
"""Randomizers from classes to the same classes, with their largest ratios."""


@claim("G21 Theorem 3: LP1 implies LP2", *CHANNELS, given="any epsilon-DP table")
@false("The same with weights that are closer to 1, ``2 / (1 + exp(epsilon))``.", closer=True)
def lp1_implies_lp2(ratio: F, rows: Rows, *, closer: bool = False) -> Comparison:
    """The diagonal `q` of an epsilon-DP table has ``q_y + exp(-epsilon) * (sum of the other q) <= 1`` for every `y`."""
    diagonal, weight = [row[y] for y, row in enumerate(rows)], 2 / (1 + ratio) if closer else 1 / ratio
    return at_most([own + weight * (sum(diagonal) - own) for own in diagonal], 1)


@lru_cache(maxsize=256)
def vertices_of_lp2(size: int, ratio: F) -> frozenset[Row]:
    """Return the vertices of LP2: common points of `size` independent constraints that meet the others too."""
    rows = [[F(1) if z == y else 1 / ratio for z in range(size)] for y in range(size)]
    signs = [[F(z == y) for z in range(size + 1)] for y in range(size)]
    found = (_common_point(tight) for tight in combinations([*([*row, F(1)] for row in rows), *signs], size))
    inside = (point for point in found if point and min(point) >= 0)
    return frozenset(point for point in inside if all(total(map(mul, row, point)) <= 1 for row in rows))


def _common_point(equations: Sequence[Sequence[F]]) -> Row:
    """Return the one solution of as many equations as unknowns, nothing if they are not independent."""
    rows = [[fmpq(x.numerator, x.denominator) for x in row] for row in equations]
    try:
        point = fmpq_mat([row[:-1] for row in rows]).solve(fmpq_mat([row[-1:] for row in rows]))
    except ZeroDivisionError:
        return ()
    return tuple(F(int(x.p), int(x.q)) for x in point.entries())


@claim("G21 Theorem 3: vertices of LP2", size=range(1, 5), ratio=(F(1), *RATIOS), given="epsilon at least 0")
@false("The same with ``E / (E + K - 1)``, of randomized response on all `K` labels.", of_all=True)
def vertices_are_responses(size: int, ratio: F, *, of_all: bool = False) -> Comparison:
    """A vertex of LP2 is zero, or ``E / (E + |Y| - 1)`` on a non-empty set `Y` of labels and 0 elsewhere."""
    responses = set()
    for inside in product((0, 1), repeat=size):
        chance = ratio / (ratio + ((size if of_all else sum(inside)) or 1) - 1)
        responses.add(tuple(kept * chance for kept in inside))
    return equal(len(vertices_of_lp2(size, ratio) - responses), 0)


def _compare_vertices(prior: Row, ratio: F, sizes: Iterable[int]) -> Comparison:
    ends = [point for point in vertices_of_lp2(len(prior), ratio) if sum(map(bool, point)) in sizes]
    return at_most(bounds(prior, ratio)[1], max(total(map(mul, prior, point)) for point in ends))


@claim("G21 Theorem 3: optima at vertices", *tasks(10, most=4), given=f"{ANY_PRIOR}, middles of two best vertices")
@corrected(
    "Some optimal solution of LP2 is a vertex: the best vertex attains a dual bound of all solutions.",
    lambda prior, ratio: _compare_vertices(prior, ratio, range(len(prior) + 1)),
)
@false("Some is a vertex of one label or all.", lambda prior, ratio: _compare_vertices(prior, ratio, (1, len(prior))))
def all_optima_are_vertices(prior: Row, ratio: F) -> Comparison:
    """Every optimal solution of LP2 is a vertex."""
    vertices, optimum = vertices_of_lp2(len(prior), ratio), bounds(prior, ratio)[1]
    best = [point for point in vertices if total(map(mul, prior, point)) == optimum]
    halfway = {tuple((x + y) / 2 for x, y in zip(*pair, strict=True)) for pair in combinations(best, 2)}
    return equal(len(halfway - vertices), 0)


Integers = NDArray[np.int64]
Stages = tuple[tuple[int, ...], ...]

Released = tuple[tuple[int, int], ...]
"""Rows of the data set and their noisy labels, in order."""

Model = Callable[[Released, int, int], Row]
"""Function of all that was released, a row and the number of labels that returns a prior for this row."""


def predict_by_counts(released: Released, row: int, k: int) -> Row:
    """Return the shares of noisy labels in rows of this row's parity, counting each label once more."""
    counts = [1] * k
    for at, label in released:
        counts[label] += at % 2 == row % 2
    return tuple(F(count, sum(counts)) for count in counts)


def predict_arbitrarily(released: Released, row: int, k: int) -> Row:
    """Return a prior that is any function of the released labels."""
    return prior(Random(crc32(repr((released, row)).encode())), k)  # noqa: S311


@lru_cache(maxsize=4096)
def _respond(predicted: Row, epsilon: float) -> Rows:
    return table(rr_with_prior([float(share) for share in predicted], epsilon))


def law_of_training(labels: tuple[int, ...], k: int, epsilon: float, stages: Stages, model: Model) -> dict[Released, F]:
    """Return the probability of all that can be released of rows with these labels, by the package's tables."""
    chances: dict[Released, F] = {(): F(1)}
    for number, stage in enumerate(stages):
        after: dict[Released, F] = {}
        for seen, chance in chances.items():
            priors = [model(seen, row, k) if number else (F(1, k),) * k for row in stage]
            rows = [_respond(each, epsilon)[labels[row]] for each, row in zip(priors, stage, strict=True)]
            for noisy in product(range(k), repeat=len(stage)):
                if here := chance * times(row[label] for row, label in zip(rows, noisy, strict=True)):
                    after[(*seen, *zip(stage, noisy, strict=True))] = here
        chances = after
    return chances


EPSILONS = (math.log(2), 0.1, 1.0, 1e-6, 40.0)
SPLITS = (((0,),), ((0,), (1,)), ((0, 1),), ((), (0, 1)), ((1,), (0, 2)), ((0,), (1,), (2,)))


@claim(
    "G21 Observation 4",
    grid(k=[2], stages=SPLITS, epsilon=EPSILONS, model=(predict_by_counts, predict_arbitrarily)),
    grid(k=[3], stages=[SPLITS[1]], epsilon=EPSILONS[:2], model=[predict_arbitrarily]),
    given="stages chosen without a look at labels, any training algorithm",
)
@false("The same if the last stage releases the label of row 0 again.", again=(0,))
def stages_cost_epsilon_once(
    k: int, epsilon: float, stages: Stages, model: Model, again: tuple[int, ...] = ()
) -> Comparison:
    """Training in stages of disjoint rows, with priors that the stage before predicts, is epsilon-LabelDP."""
    stages = (*stages[:-1], tuple(dict.fromkeys((*stages[-1], *again))))
    data_sets = product(range(k), repeat=1 + max(chain(*stages)))
    laws = {labels: law_of_training(labels, k, epsilon, stages, model) for labels in data_sets}
    return at_most(ratio_of_neighbours(laws), exp_bracket(epsilon)[0])


@claim(
    "G21 Algorithm 4",
    k=(2, 3),
    root=map(F, ("2", "11/10", "1001/1000")),
    ids=((0,), (0, 0), (0, 1), (0, 1, 0)),
    given="public groups, at least two labels, noise exp(epsilon / 2) (the root) times less likely with each step",
)
@corrected("The same with a draw for each count, since a label that is replaced changes two counts.", own=1)
@false("The same with a draw for each count, of all of epsilon, as if one count changed.", own=2)
def noise_hides_groups(k: int, root: F, ids: tuple[int, ...], *, own: int = 0) -> Comparison:
    """Histograms of the labels of disjoint groups, with ``dlaplace.rvs(epsilon / 2, K)`` added, are epsilon-LabelDP.

    That is one draw for all counts of a group, as SciPy reads the line: differences of counts stay as they are.
    """
    groups, several = Groups.of_ids(ids), product(range(k), repeat=len(ids))
    pairs = (map(np.array, pair) for pair in product(several, repeat=2) if sum(map(ne, *pair)) == 1)
    differences = np.array([groups.histograms(a, k) - groups.histograms(b, k) for a, b in pairs])
    changed = int(np.abs(differences).sum(axis=(1, 2)).max())
    seen = math.inf if np.ptp(differences, axis=2).any() else root
    return at_most(root ** (own * changed) if own else seen, root**2)


@claim(
    "G21 Algorithm 4: line 4(c)",
    *(grid(counts=[*product((2, 1, 0, -1, -7), repeat=k)]) for k in (1, 2, 3)),
    given="any noisy counts, 0 / 0 taken as 0",
)
@corrected(
    "The same, and the uniform prior if no count is above 0: the prior of the package.",
    shares=lambda counts: EstimatedPrior(tuple(np.maximum(counts, 0).tolist()), 1.0).probabilities,
)
@false(
    "The same of counts that are not cut off, and the uniform prior if their sum is not above 0.",
    shares=lambda counts: counts / counts.sum() if counts.sum() > 0 else np.full(counts.size, 1 / counts.size),
)
def clipped_counts_are_a_prior(
    counts: tuple[int, ...],
    shares: Callable[[Integers], Floats] = lambda counts: np.maximum(counts, 0) / max(1, np.maximum(counts, 0).sum()),
) -> Comparison:
    """Counts that are cut off at 0, over their sum, are a prior."""
    found = shares(np.array(counts)).tolist()
    return at_most([math.fsum(found), 1, -min(found)], [1, math.fsum(found), 0], tolerance=TOLERANCE.floats)


HEATS = tuple(map(F, ("1000", "30", "27/10", "3/2", "101/100", "1000001/1000000")))
"""Values of ``exp(1 / t)`` for temperatures `t`, from cold to hot."""

LOGITS = [(1, 0), (0, 0), (1, 1, 0), (2, 1, 0), (5, 0, 0, 0), (-3, 3, 3, 0, -1), (2, 2, 2), tuple(range(9)), (1,) * 8]
"""Whole logits, so that priors are exact in fractions."""

ANY_LOGITS = "any logits, any temperatures above 0"


@cache
def soften(logits: tuple[int, ...], heat: F) -> Row:
    """Return the softmax of the logits over the temperature."""
    return shares([heat ** (logit - max(logits)) for logit in logits])


@claim("G21 Appendix E: cold priors", logits=LOGITS, heat=HEATS, given=ANY_LOGITS)
@false("The same with ``1 / m exp(-g / t)``, as if there were one class below.", others=1)
def cold_priors_are_on_the_top(logits: tuple[int, ...], heat: F, *, others: int | None = None) -> Comparison:
    """As t tends to 0, classes below the `m` top ones lose the prior: they have at most ``(K - m) / m exp(-g / t)``.

    Top classes, which share the rest alike, are those of the largest logit. The next one is `g` below it.
    """
    found, top = soften(logits, heat), max(logits)
    tops, shared = logits.count(top), found.count(max(found))
    below = [each for each in logits if each < top]
    bound = F(others or len(below), tops) / heat ** (top - max(below)) if below else 0
    return at_most([1 - tops * max(found), shared, tops], [bound, tops, shared])


@claim("G21 Appendix E: hot priors", logits=LOGITS, heat=HEATS, given=ANY_LOGITS)
@false("The same with ``d / 2``.", halves=1)
def hot_priors_are_uniform(logits: tuple[int, ...], heat: F, *, halves: int = 2) -> Comparison:
    """As t grows the prior becomes uniform: ``K p`` is within a factor ``exp(d / t)`` of 1, `d` the logits' range."""
    squares = [(len(logits) * share) ** 2 for share in soften(logits, heat)]
    return at_most([max(squares), 1 / min(squares)], heat ** (halves * (max(logits) - min(logits))))


COOLED = [{"logits": logits, "cold": cold, "heat": heat} for logits in LOGITS for cold, heat in combinations(HEATS, 2)]


@claim("G21 Appendix E: confidence", COOLED, given=ANY_LOGITS)
@false("At a lower temperature each of the likelier half of the classes is likelier.", each=True)
def cooling_is_more_confident(logits: tuple[int, ...], cold: F, heat: F, *, each: bool = False) -> Comparison:
    """At a lower temperature the `k` likeliest classes together are likelier, for every `k`."""
    less, more = (sorted(soften(logits, at), reverse=True) for at in (heat, cold))
    half = len(less) // 2
    return at_most(less[:half], more[:half]) if each else at_most([*accumulate(less)], [*accumulate(more)])


@claim("G21 Appendix E: labels kept", COOLED, given=f"{ANY_LOGITS}, the ratio exp(epsilon) 7/3 to 3001")
@false("A higher temperature keeps one label more.", more=1)
def heating_keeps_more(logits: tuple[int, ...], cold: F, heat: F, more: int = 0) -> Comparison:
    """At a higher temperature RRWithPrior keeps at least as many labels."""
    priors = np.array([soften(logits, at) for at in (cold, heat)], dtype=float)
    kept = [rr_with_prior_batch(priors, math.log(ratio)).k_star for ratio in (7 / 3, 23 / 2, 3001)]
    return at_most([few + more for few, _ in kept], [many for _, many in kept])
