"""Priors that are learned in stages or from groups, and tempered ([G21], Observation 4, Algorithm 4, Appendix E).

A data set small enough for all its label vectors, and all that training can release, to be written down: the noisy
labels and the models of every stage. Training itself is anything at all; here a model is the prior that it predicts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction as F
from functools import cache, lru_cache
from itertools import accumulate, chain, combinations, product
from operator import ne
from random import Random
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from optrand.base._arithmetic import exp_bracket
from optrand.base._validation import Floats
from optrand.baselines._groups import Groups
from optrand.closed_forms import rr_with_prior, rr_with_prior_batch
from optrand.sampling._priors import EstimatedPrior
from optrand.theory._engine import TOLERANCE, Comparison, at_most, claim, corrected, false, grid
from optrand.theory._shared import Row, prior, ratio_of_neighbours, shares, times
from optrand.theory.g21.response import Rows, table

Integers = NDArray[np.int64]
Stages = tuple[tuple[int, ...], ...]

Released = tuple[tuple[int, int], ...]
"""Rows of the data set and their noisy labels, in order."""

Model = Callable[[Released, int, int], Row]
"""Function of all that was released, a row and the number of labels that returns a prior for this row."""


def counting(released: Released, row: int, k: int) -> Row:
    """Return the shares of the noisy labels of even or of odd rows, like this one, starting from one of each."""
    counts = [1] * k
    for at, label in released:
        counts[label] += at % 2 == row % 2
    return tuple(F(count, sum(counts)) for count in counts)


def arbitrary(released: Released, row: int, k: int) -> Row:
    """Return a prior that is any function of what was released."""
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
    grid(k=[2], stages=SPLITS, epsilon=EPSILONS, model=(counting, arbitrary)),
    grid(k=[3], stages=[SPLITS[1]], epsilon=EPSILONS[:2], model=[arbitrary]),
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
    given="public groups, at least two labels; noise is exp(epsilon / 2), the root, times less likely with each step",
)
@corrected("The same with a draw for each count; a label that is replaced changes two counts.", own=1)
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
    "The same, and the uniform prior where no count is above 0: the prior of the package.",
    shares=lambda counts: EstimatedPrior(tuple(np.maximum(counts, 0).tolist()), 1.0).probabilities,
)
@false(
    "The same of counts that are not cut off, and the uniform prior where their sum is not above 0.",
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

    Top classes, which share the rest alike, are those of the largest logit; the next one is `g` below it.
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


@claim("G21 Appendix E: labels kept", COOLED, given=f"{ANY_LOGITS}; the ratio exp(epsilon) is 7/3 to 3001")
@false("A higher temperature keeps one label more.", more=1)
def heating_keeps_more(logits: tuple[int, ...], cold: F, heat: F, more: int = 0) -> Comparison:
    """A higher temperature keeps more labels, or as many, of RRWithPrior."""
    priors = np.array([soften(logits, at) for at in (cold, heat)], dtype=float)
    kept = [rr_with_prior_batch(priors, math.log(ratio)).k_star for ratio in (7 / 3, 23 / 2, 3001)]
    return at_most([few + more for few, _ in kept], [many for _, many in kept])
