"""What noisy labels do to the best predictor ([B23], equations 1 and 2, Theorem 5), in exact rationals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from optrand.theory.b23.columns import dot, half_square, response_ends
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import RATIOS, Setting, label_set, listed, prior

__all__ = ["CLAIMS", "Noise"]

Shares = Sequence[Fraction]
Slope = Callable[[Fraction, Fraction], Fraction]
"""The derivative of a loss by the output, times something positive, at an output and a label."""


def _slope_of_squares(output: Fraction, label: Fraction) -> Fraction:
    """Of ``(v - y)**2 / 2``."""
    return output - label


def _slope_of_poisson(output: Fraction, label: Fraction) -> Fraction:
    """Of ``v - y log v``, times ``v``, where ``v > 0``."""
    return output * (1 - label / output)


@dataclass(frozen=True)
class Noise:
    """Positive labels, a randomizer of them, and examples with distributions of labels.

    Attributes
    ----------
    setting : Setting
        The prior is that of all examples together.
    outputs : tuple of Fraction
    rows : tuple of tuples of Fraction
        The probabilities of the outputs, a row a label.
    examples : tuple of tuples of Fraction
        The distribution of the labels at each example; among them are those that are sure of one label.
    """

    setting: Setting
    outputs: tuple[Fraction, ...]
    rows: tuple[tuple[Fraction, ...], ...]
    examples: tuple[tuple[Fraction, ...], ...]

    def __str__(self) -> str:
        rows = "; ".join(listed(row) for row in self.rows)
        examples = "; ".join(listed(row) for row in self.examples)
        return f"{self.setting}, outputs {listed(self.outputs)}, rows {rows}, examples {examples}"

    @property
    def biases(self) -> list[Fraction]:
        """``E[M(y)] - y``."""
        return [dot(row, self.outputs) - y for row, y in zip(self.rows, self.setting.labels, strict=True)]

    @property
    def largest_bias(self) -> Fraction:
        """Over the labels; 0 of an unbiased randomizer."""
        return max(map(abs, self.biases))

    def moved(self, slope: Slope, *, times: int = 1) -> Fraction:
        """The most that the best predictor moves at an example, or at one that is sure of its label.

        Parameters
        ----------
        slope : callable
            Of the loss.
        times : int
            How much the loss counts on noisy labels above all labels.
        """
        weights = [times if output > self.setting.labels[-1] else 1 for output in self.outputs]
        moves = []
        for example in self.examples:
            seen = [dot(example, column) for column in zip(*self.rows, strict=True)]
            noisy = _least([share * weight for share, weight in zip(seen, weights, strict=True)], self.outputs, slope)
            moves.append(abs(noisy - _least(example, self.setting.labels, slope)))
        return max(moves)

    def expected(self, loss: Callable[[Fraction, Fraction, Fraction], Fraction], prediction: Fraction) -> Fraction:
        """The mean of a function of prediction, noisy label and label under the prior."""
        means = (
            dot(row, [loss(prediction, output, y) for output in self.outputs])
            for row, y in zip(self.rows, self.setting.labels, strict=True)
        )
        return dot(self.setting.prior, list(means))


def _least(shares: Shares, values: Shares, slope: Slope) -> Fraction:
    """Where a loss is least whose slope is a straight line: one secant step from 1 and 2 is exact."""
    one, two = (dot(shares, [slope(Fraction(at), value) for value in values]) for at in (1, 2))
    return 1 - one / (two - one)


def _noises(budget: Budget) -> Iterator[Noise]:
    """Unbiased and biased ones by turns."""
    half = Fraction(1, 2)
    for ratio in (Fraction(2), min(RATIOS), max(RATIOS)):
        two = Setting((Fraction(1), Fraction(2)), (half, half), ratio)
        for outputs in (response_ends(two.labels, ratio), two.labels):
            yield Noise(two, outputs, _response(two), _examples(Random(0), two))  # noqa: S311
    random = Random(21)  # noqa: S311
    for number in range(budget.pick(quick=200, full=5_000)):
        k = random.randint(2, 6)
        labels = label_set(random, k)
        start = Fraction(random.randint(1, 9), 3)
        above = tuple(y - labels[0] + start for y in labels)
        setting = Setting(above, prior(random, k), 1 + Fraction(random.randint(1, 99), random.choice((1, 10))))
        ends = response_ends(above, setting.ratio)
        examples = _examples(random, setting)
        yield (
            Noise(setting, ends, _two_ends(setting), examples)
            if number % 2
            else Noise(setting, above, _response(setting), examples)
        )


def _response(setting: Setting) -> tuple[tuple[Fraction, ...], ...]:
    """Randomized response."""
    k, ratio = setting.k, setting.ratio
    return tuple(tuple((ratio if i == j else Fraction(1)) / (ratio + k - 1) for j in range(k)) for i in range(k))


def _two_ends(setting: Setting) -> tuple[tuple[Fraction, ...], ...]:
    """The unbiased randomizer with two outputs."""
    low, high = response_ends(setting.labels, setting.ratio)
    return tuple(((high - y) / (high - low), (y - low) / (high - low)) for y in setting.labels)


def _examples(random: Random, setting: Setting) -> tuple[tuple[Fraction, ...], ...]:
    k = setting.k
    sure = [tuple(Fraction(int(i == j)) for j in range(k)) for i in range(k)]
    return (*sure, *(prior(random, k) for _ in range(4)))


def the_bias_moves_the_predictor(noise: Noise) -> Comparison:
    """The most that noise moves the best predictor is the largest bias, for squared as for Poisson loss.

    So the best predictor stays where it is, for every distribution of examples and labels, if and only if the noise is
    unbiased.
    """
    return worst(*(equal(noise.moved(slope), noise.largest_bias) for slope in (_slope_of_squares, _slope_of_poisson)))


def the_loss_of_labels_decides(noise: Noise) -> Comparison:
    """It is enough that the mean is the best prediction for all distributions of labels, whatever that of outputs.

    Tried with a squared loss that counts twice on noisy labels above all labels: of labels nothing changes.
    """
    return equal(noise.moved(_slope_of_squares, times=2), noise.largest_bias)


def _pull(noise: Noise, label: int) -> Fraction:
    """How much the expected slope of the halved squared loss, at the prediction 0, is more than that for the label.

    By differences of losses: of a parabola the central difference is the slope.
    """
    row, y = noise.rows[label], noise.setting.labels[label]
    above, below = (
        dot(row, [half_square(at, output) for output in noise.outputs]) - half_square(at, y)
        for at in (Fraction(1), Fraction(-1))
    )
    return (above - below) / 2


def gradients_are_off_by_the_bias(noise: Noise) -> Comparison:
    """Noise on a label adds `y - E[M(y)]`, times the gradient of the prediction, to the expected gradient.

    The other term of the decomposition is zero in expectation.
    """
    return worst(*(equal(_pull(noise, place), -bias) for place, bias in enumerate(noise.biases)))


def gradients_are_off_by_minus_the_bias(noise: Noise) -> Comparison:
    """Noise on a label adds `E[M(y)] - y`, times the gradient of the prediction, to the expected gradient."""
    return worst(*(equal(_pull(noise, place), bias) for place, bias in enumerate(noise.biases)))


def _sides(noise: Noise) -> tuple[Fraction, Fraction]:
    """Of equation 1 for halved squared loss, where all examples are predicted to have the first label."""
    first = noise.setting.labels[0]
    left = noise.expected(lambda f, _, y: half_square(f, y), first)
    return left, noise.expected(lambda f, v, y: half_square(v, y) + half_square(f, v), first)


def squares_obey_the_triangle(noise: Noise) -> Comparison:
    """A predictor's squared loss on the labels is at most the noisy label loss plus its loss on the noisy labels."""
    left, right = _sides(noise)
    return at_most(left, right)


def squares_obey_it_twice(noise: Noise) -> Comparison:
    """A predictor's squared loss on the labels is at most twice the sum of those two losses.

    Without the factor it holds for distances, such as absolute loss, and for squared loss if the noise is unbiased.
    """
    left, right = _sides(noise)
    return at_most(left, 2 * right)


def squares_obey_it_almost(noise: Noise) -> Comparison:
    """A predictor's squared loss on the labels is at most 3/2 of the sum of those two losses."""
    left, right = _sides(noise)
    return at_most(left, Fraction(3, 2) * right)


def _midway(budget: Budget) -> Iterator[Noise]:
    """Labels 1 and 3 that are both released as 2, then all others."""
    setting = Setting((Fraction(1), Fraction(3)), (Fraction(0), Fraction(1)), Fraction(2))
    yield Noise(setting, (Fraction(2),), ((Fraction(1),),) * 2, (setting.prior,))
    yield from _noises(budget)


CLAIMS = (
    Claim(
        paper="B23",
        number="Equation 1",
        hypothesis="halved squared loss, any randomizer, a predictor that says the lowest label",
        instances=_midway,
        printed=squares_obey_the_triangle,
        corrected=squares_obey_it_twice,
        false=squares_obey_it_almost,
    ),
    Claim(
        paper="B23",
        number="Equation 2",
        hypothesis="halved squared loss; the terms that come from noise, in expectation, label by label",
        instances=_noises,
        printed=gradients_are_off_by_the_bias,
        false=gradients_are_off_by_minus_the_bias,
    ),
    Claim(
        paper="B23",
        number="Theorem 5",
        hypothesis="finitely many positive labels, noisy labels of positive mean; squared or Poisson loss, of which "
        "the mean is the best prediction for all distributions of labels and of noisy labels",
        instances=_noises,
        printed=the_bias_moves_the_predictor,
        false=the_loss_of_labels_decides,
    ),
)
