"""What becomes of ALIBI's soft labels with more and more classes ([Z25]_, Appendix B.2).

In the paper's example all labels are the same. How well the truth is then told from the other classes is a matter of
the mean of soft labels *and* of their noise.

References
----------
.. [Z25] Zhao et al., *Enhancing Learning with Label Local Differential Privacy by Vector Approximation*, 2025.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations, product

import numpy as np

from optrand.baselines import Alibi
from optrand.entropy import SeededEntropy
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.z25.soft_moments import SoftMoments

__all__ = ["CLAIMS"]

ROUNDING = 1e-12
"""What floats are forgiven."""

INTEGRAL = 1e-8
"""What integrals are forgiven: their error grows with the number of classes, and is below this at 100,000."""

STANDARD_ERRORS = 5


@dataclass(frozen=True)
class Crowd:
    """A number of classes and a budget."""

    k: int
    epsilon: float

    @cached_property
    def moments(self) -> SoftMoments:
        """Of the soft labels."""
        return SoftMoments(self.k, self.epsilon)

    @cached_property
    def twice(self) -> SoftMoments:
        """The same with twice as many classes."""
        return SoftMoments(2 * self.k, self.epsilon)

    @property
    def posterior(self) -> float:
        """The largest posterior probability of a class that any epsilon-DP randomizer admits, under a uniform prior."""
        return 1 / (1 + (self.k - 1) * math.exp(-self.epsilon))

    def __str__(self) -> str:
        return f"K = {self.k}, epsilon = {self.epsilon}"


def _crowds(budget: Budget) -> Iterator[Crowd]:
    sizes = budget.pick(
        quick=(2, 3, 10, 100, 500, 1_000, 100_000), full=(2, 3, 4, 5, 7, 10, 30, 100, 300, 500, 10**3, 10**5)
    )
    for k in sizes:
        for epsilon in budget.pick(
            quick=(1.0, 0.1, 4.0, 10.0), full=(1.0, 0.01, 0.1, 0.5, 2.0, 4.0, 6.0, 9.0, 10.0, 12.0, 16.0)
        ):
            yield Crowd(k, epsilon)


def _small_crowds(budget: Budget) -> Iterator[Crowd]:
    for k in (2, 3, 4):
        for epsilon in budget.pick(quick=(1.0, 0.1, 4.0, 20.0), full=(1.0, 0.01, 0.1, 0.5, 2.0, 4.0, 9.0, 20.0, 100.0)):
            yield Crowd(k, epsilon)


def noise_of_two_over_epsilon_is_private(crowd: Crowd) -> Comparison:
    """The one-hot vector with Laplace noise of scale ``2 / epsilon`` on each coordinate is epsilon-DP.

    The paper leaves the scale open. The logarithm of the ratio of two densities is piecewise linear in every coordinate
    and constant outside of 0 and 1, so that it is largest at such points.
    """
    return at_most(_spent(crowd, Fraction(Alibi(crowd.k, crowd.epsilon).scale)), crowd.epsilon, tolerance=ROUNDING)


def noise_of_one_over_epsilon_is_private(crowd: Crowd) -> Comparison:
    """The same with noise of scale ``1 / epsilon``."""
    return at_most(_spent(crowd, 1 / Fraction(crowd.epsilon)), crowd.epsilon, tolerance=ROUNDING)


def _spent(crowd: Crowd, scale: Fraction) -> Fraction:
    def distance(point: tuple[int, ...], y: int) -> int:
        return sum(abs(o - (j == y)) for j, o in enumerate(point))

    points = product((-1, 0, 1, 2), repeat=crowd.k)
    return max(distance(o, z) - distance(o, y) for o in points for y, z in permutations(range(crowd.k), 2)) / scale


def the_crowd_is_counted(crowd: Crowd) -> Comparison:
    """The expected number of other classes as high as the truth is ``(K - 1) (1 + epsilon / 4) exp(-epsilon / 2) / 2``.

    So it grows linearly with ``K``, as the paper says. Compared with draws.
    """
    return _as_counted(crowd, crowd.moments.as_high)


def only_others_are_noisy(crowd: Crowd) -> Comparison:
    """The same as if the truth's own coordinate had no noise: ``(K - 1) exp(-epsilon / 2) / 2``."""
    return _as_counted(crowd, crowd.moments.as_high / (1 + crowd.epsilon / 4))


def _as_counted(crowd: Crowd, expected: float) -> Comparison:
    draws = 20_000
    noisy = Alibi(crowd.k, crowd.epsilon).sample(np.zeros(draws, dtype=np.intp), source=SeededEntropy(crowd.k))
    counts = (noisy[:, 1:] >= noisy[:, :1]).sum(axis=1)
    error = STANDARD_ERRORS * math.sqrt(max(float(counts.var()), expected) / draws)
    return equal(float(counts.mean()), expected, tolerance=error / max(float(counts.mean()), expected))


def the_truth_is_one_over_the_crowd(crowd: Crowd) -> Comparison:
    """The mean soft label of the truth is at most one over the expected number of other classes as high.

    That is how the paper goes from eq. 30 to its decay; but the mean of one over a number is not one over its mean.
    """
    return at_most(crowd.moments.truth, 1 / crowd.moments.as_high, tolerance=INTEGRAL)


def the_truth_decays_as_all_posteriors_do(crowd: Crowd) -> Comparison:
    """The mean soft label of the truth is between ``1 / K`` and ``exp(epsilon) / (exp(epsilon) + K - 1)``.

    No epsilon-DP randomizer admits a larger posterior probability, the paper's own included.
    """
    return worst(
        at_most(crowd.moments.truth, crowd.posterior, tolerance=INTEGRAL),
        at_most(1 / crowd.k, crowd.moments.truth, tolerance=INTEGRAL),
    )


def the_truth_is_a_guess(crowd: Crowd) -> Comparison:
    """The mean soft label of the truth is at most ``1 / K``."""
    return at_most(crowd.moments.truth, 1 / crowd.k, tolerance=INTEGRAL)


def the_truth_is_harder_to_tell(crowd: Crowd) -> Comparison:
    """With twice the classes, what tells the truth from another class shrinks as much as its soft label.

    The paper's example, where all labels are the same: from the decay of the soft label it concludes that of the
    performance. What tells is the distance of the mean soft labels of the truth and of another class, in standard
    deviations of their difference.
    """
    return at_most(
        crowd.twice.separation / crowd.moments.separation, crowd.twice.truth / crowd.moments.truth, tolerance=INTEGRAL
    )


def the_truth_can_still_be_told(crowd: Crowd) -> Comparison:
    """What tells the truth from another class tends to a limit above 0, from which it is a share ``2 r / K`` at most.

    With ``r = exp(epsilon / 2)``: the noise of soft labels shrinks as their means do.
    """
    return _near_the_limit(crowd, 2 * math.exp(crowd.epsilon / 2) / crowd.k)


def the_truth_can_be_told_as_well(crowd: Crowd) -> Comparison:
    """The same with a share ``2 / K**2``."""
    return _near_the_limit(crowd, 2 / crowd.k**2)


def _near_the_limit(crowd: Crowd, share: float) -> Comparison:
    return at_most(abs(crowd.moments.separation / crowd.moments.limit - 1), share + INTEGRAL)


CLAIMS = (
    Claim(
        paper="Z25",
        number="Appendix B.2",
        part="privacy",
        hypothesis="noise in real numbers, of scale 2 / epsilon: the paper leaves it open",
        instances=_small_crowds,
        printed=noise_of_two_over_epsilon_is_private,
        false=noise_of_one_over_epsilon_is_private,
    ),
    Claim(
        paper="Z25",
        number="Appendix B.2",
        part="rivals",
        hypothesis="all labels are the same; 20,000 seeded draws, five standard errors",
        instances=_small_crowds,
        printed=the_crowd_is_counted,
        false=only_others_are_noisy,
    ),
    Claim(
        paper="Z25",
        number="Appendix B.2",
        part="decay",
        hypothesis="all labels are the same, a uniform prior",
        instances=_crowds,
        printed=the_truth_is_one_over_the_crowd,
        corrected=the_truth_decays_as_all_posteriors_do,
        false=the_truth_is_a_guess,
    ),
    Claim(
        paper="Z25",
        number="Appendix B.2",
        part="performance",
        hypothesis="all labels are the same, a uniform prior",
        instances=_crowds,
        printed=the_truth_is_harder_to_tell,
        corrected=the_truth_can_still_be_told,
        false=the_truth_can_be_told_as_well,
    ),
)
