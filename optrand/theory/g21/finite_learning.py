"""Learning from noisy labels where everything is finite, so that every sample can be enumerated."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from optrand.theory.g21.complexity import Bound, Function, deviation, rademacher, samples
from optrand.theory.g21.debiased_losses import TopK
from optrand.theory.instances import listed

__all__ = ["Learning"]


@dataclass(frozen=True)
class Learning:
    """A finite class, a distribution of features and labels, and a loss; noisy labels are drawn from it.

    Parameters
    ----------
    functions : tuple of Function
        Predictions, a row a function, at each feature.
    centres : tuple of tuple of Fraction
        For each feature and label the prediction without loss; elsewhere the loss is ``L`` times the distance from it,
        and at most 1.
    steepness : Fraction
        ``L``.
    joint : tuple of tuple of Fraction
        Chances of features and labels.
    responses : tuple of TopK
        For each feature the labels that can be released, equally many of them and under the same budget.
    size : int
        How many examples are drawn, ``n``.
    beta : Fraction
        The probability of failure that is allowed.
    """

    functions: tuple[Function, ...]
    centres: tuple[tuple[Fraction, ...], ...]
    steepness: Fraction
    joint: tuple[tuple[Fraction, ...], ...]
    responses: tuple[TopK, ...]
    size: int
    beta: Fraction

    def losses(self, function: Function, feature: int) -> Function:
        """Of a function's prediction at a feature, under every label."""
        prediction = function[feature]
        return tuple(min(self.steepness * abs(prediction - centre), Fraction(1)) for centre in self.centres[feature])

    @property
    def features(self) -> tuple[Fraction, ...]:
        """Chances of the features."""
        return tuple(sum(chances, Fraction(0)) for chances in self.joint)

    @cached_property
    def risks(self) -> tuple[Fraction, ...]:
        """Of each function: its mean loss on true labels."""
        return tuple(
            sum(
                (
                    chance * loss
                    for x, chances in enumerate(self.joint)
                    for chance, loss in zip(chances, self.losses(function, x), strict=True)
                ),
                Fraction(0),
            )
            for function in self.functions
        )

    @cached_property
    def released(self) -> tuple[Fraction, ...]:
        """Chances of features and released labels, feature by feature."""
        return tuple(
            sum((chance * response.rows[y][v] for y, chance in enumerate(chances)), Fraction(0))
            for chances, response in zip(self.joint, self.responses, strict=True)
            for v in response.kept
        )

    @cached_property
    def debiased(self) -> tuple[Function, ...]:
        """Debiased losses on these, a row a function."""
        return tuple(
            tuple(
                response.debiased(self.losses(function, x), v)
                for x, response in enumerate(self.responses)
                for v in response.kept
            )
            for function in self.functions
        )

    @cached_property
    def deviations(self) -> list[tuple[Fraction, Fraction]]:
        """How far noisy empirical risks are from the risks, of the worst function, with probabilities."""
        drawn = samples(self.released, self.size)
        return [(deviation(self.debiased, self.risks, counts), chance) for counts, chance in drawn]

    @cached_property
    def complexity(self) -> Fraction:
        """Of the functions, ``R``."""
        return rademacher(self.functions, self.features, self.size)

    @cached_property
    def debiased_complexity(self) -> Fraction:
        """Of their debiased losses on released labels."""
        return rademacher(self.debiased, self.released, self.size)

    @property
    def slope(self) -> Fraction:
        """``L (1 + k p) / (1 - k p)``."""
        share = self.responses[0].k * self.responses[0].other
        return self.steepness * (1 + share) / (1 - share)

    @cached_property
    def outside(self) -> Fraction:
        """How likely a label is to be none of those that can be released."""
        kept = (response.kept for response in self.responses)
        inside = sum(
            (chances[y] for chances, labels in zip(self.joint, kept, strict=True) for y in labels), Fraction(0)
        )
        return 1 - inside

    def bound(self, *, spread: Fraction, outside: Fraction) -> Bound:
        """The sum of ``2 slope R``, what is given for labels outside, and ``spread sqrt(log(2 / beta) / (2 n))``."""
        offset = 2 * self.slope * self.complexity + outside
        return Bound.failing(self.beta, offset=offset, size=self.size / spread**2)

    def __str__(self) -> str:
        """Only what is needed to rebuild it."""
        parts = (
            f"functions {_rows(self.functions)}",
            f"centres {_rows(self.centres)}",
            f"L = {self.steepness}",
            f"chances {_rows(self.joint)}",
            f"kept labels {'; '.join(', '.join(map(str, response.kept)) for response in self.responses)}",
            f"E = {self.responses[0].ratio}, n = {self.size}, beta {self.beta}",
        )
        return " | ".join(parts)


def _rows(table: tuple[tuple[Fraction, ...], ...]) -> str:
    return "; ".join(map(listed, table))
