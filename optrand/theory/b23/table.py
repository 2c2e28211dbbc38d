"""The example of [B23], Table 1, worked through: every figure that is printed with it, recomputed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import optrand
from optrand.base.arithmetic import exp_bracket
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst

__all__ = ["CLAIMS", "Example"]

EPSILON = 0.5
LABELS = (0, 1, 2)
SHARES = {
    "a": (Fraction("0.35"), Fraction("0.1"), Fraction("0.05")),
    "b": (Fraction("0.25"), Fraction("0.15"), Fraction("0.1")),
}
"""Table 1: two kinds of examples, `a` and `b`, and three labels; all shares sum to 1."""

Bins = tuple[int, ...]
"""The bin of each label."""


@dataclass(frozen=True)
class Example:
    """The distribution of Table 1 at epsilon 1/2, and exp(1/2) rounded up or down after 60 digits."""

    upper: bool = False

    def __str__(self) -> str:
        return f"Table 1 at epsilon 1/2, exp(1/2) rounded {'up' if self.upper else 'down'} after 60 digits"

    @property
    def ratio(self) -> Fraction:
        """Close to ``exp(1/2)``."""
        return exp_bracket(EPSILON)[int(self.upper)]

    @property
    def prior(self) -> list[Fraction]:
        """Of the labels."""
        return [sum((row[y] for row in SHARES.values()), Fraction(0)) for y in LABELS]

    def outputs(self, bins: Bins, prior: Sequence[Fraction]) -> list[Fraction]:
        """The output of each bin: the mean label of those who get it, which squared loss likes best."""
        made = []
        for own in sorted(set(bins)):
            weights = [p * (self.ratio if place == own else 1) for p, place in zip(prior, bins, strict=True)]
            made.append(sum((w * y for w, y in zip(weights, LABELS, strict=True)), Fraction(0)) / sum(weights))
        return made

    def row(self, own: int, count: int) -> list[Fraction]:
        """The probabilities of the outputs for labels of one bin."""
        return [(self.ratio if place == own else Fraction(1)) / (self.ratio + count - 1) for place in range(count)]

    def loss(self, bins: Bins) -> Fraction:
        """The halved squared noisy label loss of randomized response on bins."""
        outputs = self.outputs(bins, self.prior)
        losses = (
            p * sum((m * (v - y) ** 2 for m, v in zip(self.row(own, len(outputs)), outputs, strict=True)), Fraction(0))
            for p, y, own in zip(self.prior, LABELS, bins, strict=True)
        )
        return sum(losses, Fraction(0)) / 2

    @cached_property
    def bins(self) -> Bins:
        """The best assignment of labels to bins, of all five."""
        partitions = {tuple(sorted(set(bins)).index(place) for place in bins) for bins in product(LABELS, repeat=3)}
        return min(
            (bins for bins in sorted(partitions) if list(dict.fromkeys(bins)) == sorted(set(bins))), key=self.loss
        )

    def predictor(self, noisy: bool) -> dict[str, Fraction]:
        """The mean of the labels, or of the noisy labels, of each kind of example."""
        outputs = self.outputs(self.bins, self.prior)
        seen = [Fraction(y) for y in LABELS]
        if noisy:
            rows = [self.row(own, len(outputs)) for own in self.bins]
            seen = [sum((m * v for m, v in zip(row, outputs, strict=True)), Fraction(0)) for row in rows]
        return {
            kind: sum((share * mean for share, mean in zip(row, seen, strict=True)), Fraction(0)) / sum(row)
            for kind, row in SHARES.items()
        }

    def loss_of_predictor(self, noisy: bool) -> Fraction:
        """Its halved squared loss on the labels themselves."""
        predictor = self.predictor(noisy)
        losses = (
            share * (predictor[kind] - y) ** 2
            for kind, row in SHARES.items()
            for share, y in zip(row, LABELS, strict=True)
        )
        return sum(losses, Fraction(0)) / 2

    @cached_property
    def unbiased(self) -> tuple[float, float, float]:
        """The largest output below 0 and the smallest above 2 of the optimal unbiased randomizer, and its gap."""
        problem = optrand.unbiased_regression(LABELS, [float(p) for p in self.prior], EPSILON)
        mechanism = optrand.tabulate(optrand.solve(problem))
        inside = [v for v in mechanism.outputs.tolist() if v > -1]
        below = [v for v in mechanism.outputs.tolist() if v < 1]
        return max(below), min(v for v in inside if v > 1), optrand.certify(mechanism).gap


def _examples(_: Budget) -> Iterator[Example]:
    yield Example()
    yield Example(upper=True)


def _rounded(truth: Fraction, printed: str) -> Comparison:
    """That a number rounds to its printed form; if not, it is shown as it is."""
    places, figure = len(printed.partition(".")[2]), Fraction(printed)
    return equal(figure if abs(truth - figure) * 10**places <= Fraction(1, 2) else truth, figure)


def _bins(example: Example, bins: Bins, *outputs: str) -> Comparison:
    """That these are the best bins and those their outputs."""
    made = example.outputs(bins, example.prior)
    best = equal(example.loss(bins), example.loss(example.bins))
    return worst(best, *(_rounded(*pair) for pair in zip(made, outputs, strict=True)))


def zero_is_alone(example: Example) -> Comparison:
    """The best randomized response on bins releases 0 as 0.396, and 1 and 2 as 0.720."""
    return _bins(example, (0, 1, 1), "0.396", "0.720")


def two_is_alone(example: Example) -> Comparison:
    """The best randomized response on bins puts 0 and 1 in one bin and 2 in another."""
    return equal(example.loss((0, 0, 1)), example.loss(example.bins))


def _predictor(example: Example, a: str, b: str, *, noisy: bool) -> Comparison:
    found = example.predictor(noisy)
    return worst(_rounded(found["a"], a), _rounded(found["b"], b))


def means_of_labels_and_of_noisy_labels(example: Example) -> Comparison:
    """The best predictor of the labels is 0.4 for a and 0.7 for b, that of the noisy labels 0.542 and 0.558."""
    return worst(
        _predictor(example, "0.4", "0.7", noisy=False),
        _predictor(example, "0.542", "0.558", noisy=True),
    )


def noise_reverses_the_order(example: Example) -> Comparison:
    """The best predictor of the labels is 0.4 for a and 0.7 for b, that of the noisy labels 0.558 and 0.542."""
    return worst(
        _predictor(example, "0.4", "0.7", noisy=False),
        _predictor(example, "0.558", "0.542", noisy=True),
    )


def _losses(example: Example, clean: str, noisy: str) -> Comparison:
    return worst(_rounded(example.loss_of_predictor(False), clean), _rounded(example.loss_of_predictor(True), noisy))


def losses_as_printed(example: Example) -> Comparison:
    """The squared losses of the two predictors on the labels are 2.625 and 2.726."""
    return _losses(example, "2.625", "2.726")


def losses_a_tenth(example: Example) -> Comparison:
    """The halved squared losses of the two predictors on the labels are 0.2625 and 0.2726, a tenth of the print."""
    return _losses(example, "0.2625", "0.2726")


def losses_not_halved(example: Example) -> Comparison:
    """The halved squared losses of the two predictors on the labels are 0.525 and 0.5452."""
    return _losses(example, "0.525", "0.5452")


def outputs_lie_outside(example: Example) -> Comparison:
    """No output of the optimal unbiased randomizer lies in the range of the labels, from 0 to 2."""
    below, above, gap = example.unbiased
    return worst(at_most(below, 0.0), at_most(2.0, above), at_most(gap, 1e-9))


def outputs_lie_far_outside(example: Example) -> Comparison:
    """No output of the optimal unbiased randomizer lies within three of the labels."""
    below, above, _ = example.unbiased
    return worst(at_most(below, -3.0), at_most(5.0, above))


CLAIMS = (
    Claim(
        paper="B23",
        number="Table 1",
        part="bins",
        hypothesis="the distribution of Table 1, halved squared loss, epsilon 1/2",
        instances=_examples,
        printed=zero_is_alone,
        false=two_is_alone,
    ),
    Claim(
        paper="B23",
        number="Table 1",
        part="predictors",
        hypothesis="the distribution of Table 1; labels as they are, and through the best randomized response on bins "
        "at epsilon 1/2",
        instances=_examples,
        printed=means_of_labels_and_of_noisy_labels,
        false=noise_reverses_the_order,
    ),
    Claim(
        paper="B23",
        number="Table 1",
        part="losses",
        hypothesis="the distribution of Table 1, the loss that the paper calls squared, which has the factor 1/2",
        instances=_examples,
        printed=losses_as_printed,
        corrected=losses_a_tenth,
        false=losses_not_halved,
    ),
    Claim(
        paper="B23",
        number="Figure 2",
        hypothesis="the prior of Table 1, epsilon 1/2, outputs anywhere on the line",
        instances=_examples,
        printed=outputs_lie_outside,
        false=outputs_lie_far_outside,
    ),
)
