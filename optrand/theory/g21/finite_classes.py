"""Whether a small noisy empirical risk means a small risk: Theorem 17 of [G21], on finite classes, exactly.

The theorem takes Lemma 21 for functions into [0, 1], but debiased losses leave that interval: those of released labels
are up to ``(1 + (k - 2) p) / (1 - k p) = (E + 2 k - 3) / (E - 1)`` apart. The deviation term lacks that factor, and
without it the theorem is false: one function, two labels, one example. (It also takes a root that is smaller by
``sqrt(2)`` than the one of Lemma 21; that lemma holds with the smaller root too.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.g21.complexity import Function, exceeded
from optrand.theory.g21.debiased_losses import TopK
from optrand.theory.g21.finite_learning import Learning
from optrand.theory.instances import RATIOS, prior

__all__ = ["CLAIMS"]


def _one_function(response: TopK, label: int, *, size: int, beta: Fraction) -> Learning:
    """The function 0 on one feature, which always has the same label; that label alone is lost, by 1."""
    labels = range(len(response.prior))
    return Learning(
        functions=((Fraction(0),),),
        centres=(tuple(Fraction(y == label) for y in labels),),
        steepness=Fraction(1),
        joint=(tuple(Fraction(y == label) for y in labels),),
        responses=(response,),
        size=size,
        beta=beta,
    )


def _settings(budget: Budget) -> Iterator[Learning]:
    half, tenth = Fraction(1, 2), Fraction(1, 10)
    for labels, k in ((2, 2), (2, 1), (3, 3), (3, 2), (1, 1)):
        for ratio in RATIOS[:-1]:
            response = TopK((Fraction(1, labels),) * labels, k, ratio)
            for size, beta in ((1, half), (2, Fraction(9, 10)), (1, tenth), (4, tenth)):
                yield from (_one_function(response, y, size=size, beta=beta) for y in range(labels))
    for size in budget.pick(quick=(100,), full=(100, 400)):
        both = TopK((half, half), 2, Fraction(272, 100))
        yield _one_function(both, 1, size=size, beta=tenth)
    random = Random(18)  # noqa: S311
    for _ in range(budget.pick(quick=60, full=1_500)):
        yield _random(random)


def _random(random: Random) -> Learning:
    features, labels = random.randint(1, 2), random.randint(2, 3)
    joint = prior(random, features * labels)
    k, ratio = random.randint(1, labels), 1 + Fraction(random.randint(1, 300), 10 ** random.randint(0, 2))

    def predictions(count: int) -> Function:
        return tuple(Fraction(random.randint(0, 4), 4) for _ in range(count))

    return Learning(
        functions=tuple(predictions(features) for _ in range(random.randint(1, 4))),
        centres=tuple(predictions(labels) for _ in range(features)),
        steepness=Fraction(random.randint(1, 6), 4),
        joint=tuple(joint[x * labels : (x + 1) * labels] for x in range(features)),
        responses=tuple(TopK(prior(random, labels), k, ratio) for _ in range(features)),
        size=random.randint(1, 4),
        beta=random.choice((Fraction(1, 2), Fraction(9, 10), Fraction(1, 10))),
    )


def noisy_risks_are_near_risks(learning: Learning) -> Comparison:
    """All noisy empirical risks are near the risks: within ``2 slope R + sqrt(log(2 / beta) / (2 n)) + outside``.

    But for probability beta; ``slope = L (1 + k p) / (1 - k p)``, and ``outside`` is the probability of a label that is
    not kept. Compared are the probability that some risk is further off, and beta.
    """
    bound = learning.bound(spread=Fraction(1), outside=learning.outside)
    return at_most(exceeded(learning.deviations, bound), learning.beta)


def noisy_risks_are_within_their_spread(learning: Learning) -> Comparison:
    """The same with ``(1 + (k - 2) p) / (1 - k p)`` times the root: that is how far apart debiased losses can be.

    Then one example moves an average of them by no more than that over `n`, which is what the proof of Lemma 21 needs.
    """
    bound = learning.bound(spread=learning.responses[0].spread, outside=learning.outside)
    return at_most(exceeded(learning.deviations, bound), learning.beta)


def labels_outside_cost_nothing(learning: Learning) -> Comparison:
    """The same with that factor, and without the probability of a label that is not kept."""
    bound = learning.bound(spread=learning.responses[0].spread, outside=Fraction(0))
    return at_most(exceeded(learning.deviations, bound), learning.beta)


def debiased_losses_stay_in_the_interval(response: TopK) -> Comparison:
    """Debiased losses of released labels are at most 1 apart, as those of a function into [0, 1] are."""
    return at_most(_apart(response), 1)


def debiased_losses_are_spread(response: TopK) -> Comparison:
    """Debiased losses of released labels are at most ``(1 + (k - 2) p) / (1 - k p)`` apart."""
    return at_most(_apart(response), response.spread)


def debiased_losses_are_scaled(response: TopK) -> Comparison:
    """Debiased losses of released labels are at most ``1 / (1 - k p)`` apart."""
    return at_most(_apart(response), 1 / (1 - response.k * response.other))


def _apart(response: TopK) -> Fraction:
    """The largest distance, over all losses in [0, 1]; they are linear in these, so 0 and 1 are enough."""
    ends = product((Fraction(0), Fraction(1)), repeat=len(response.prior))
    found = [response.debiased(losses, v) for losses in ends for v in response.kept]
    return max(found) - min(found)


def _responses(budget: Budget) -> Iterator[TopK]:
    for labels in range(1, budget.pick(quick=6, full=9)):
        for k in range(1, labels + 1):
            yield from (TopK((Fraction(1, labels),) * labels, k, ratio) for ratio in RATIOS)


def debiased_losses_are_hardly_more_complex(learning: Learning) -> Comparison:
    """Debiased losses on released labels are at most ``L (1 + k p) / (1 - k p)`` times as complex as the functions."""
    return at_most(learning.debiased_complexity, learning.slope * learning.complexity)


def debiased_losses_are_no_more_complex(learning: Learning) -> Comparison:
    """Debiased losses on released labels are at most ``L`` times as complex as the functions."""
    return at_most(learning.debiased_complexity, learning.steepness * learning.complexity)


def _small(budget: Budget) -> Iterator[Learning]:
    zero, one = Fraction(0), Fraction(1)
    both = TopK((Fraction(1, 2),) * 2, 2, Fraction(3))
    plain = replace(_one_function(both, 1, size=1, beta=Fraction(1, 2)), functions=((zero,), (one,)))
    yield from (plain, replace(plain, size=3), replace(plain, steepness=Fraction(2)))
    random = Random(26)  # noqa: S311
    for _ in range(budget.pick(quick=60, full=1_500)):
        yield _random(random)


CLAIMS = (
    Claim(
        paper="G21",
        number="Theorem 17",
        hypothesis="losses in [0, 1], L-Lipschitz in the prediction; finite classes and finitely many features",
        instances=_settings,
        printed=noisy_risks_are_near_risks,
        corrected=noisy_risks_are_within_their_spread,
        false=labels_outside_cost_nothing,
    ),
    Claim(
        paper="G21",
        number="Theorem 17",
        part="range of the debiased loss",
        hypothesis="losses in [0, 1]",
        instances=_responses,
        printed=debiased_losses_stay_in_the_interval,
        corrected=debiased_losses_are_spread,
        false=debiased_losses_are_scaled,
    ),
    Claim(
        paper="G21",
        number="Theorem 17",
        part="equation 25",
        hypothesis="losses in [0, 1], L-Lipschitz in the prediction; finite classes and finitely many features",
        instances=_small,
        printed=debiased_losses_are_hardly_more_complex,
        false=debiased_losses_are_no_more_complex,
    ),
)
