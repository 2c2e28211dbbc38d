"""What noisy labels do to the best predictor ([B23]_, equation 1 and Theorem 5), in exact rationals.

References
----------
.. [B23] Badanidiyuru et al., *Optimal Unbiased Randomizers for Regression with Label Differential Privacy*, 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from optrand.theory.b23.columns import dot, half_square, response_ends
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, none
from optrand.theory.instances import Setting, label_set, listed, prior

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
    two = Setting((Fraction(1), Fraction(2)), (half, half), Fraction(2))
    yield Noise(two, response_ends(two.labels, two.ratio), _response(two), _examples(Random(0), two))  # noqa: S311
    yield Noise(two, two.labels, _response(two), _examples(Random(0), two))  # noqa: S311
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


def squares_move_by_the_bias(noise: Noise) -> Comparison:
    """The most that noise moves the best predictor for squared loss is the largest bias: 0 if and only if unbiased."""
    return equal(noise.moved(_slope_of_squares), noise.largest_bias)


def poisson_moves_by_the_bias(noise: Noise) -> Comparison:
    """The most that noise moves the best predictor for Poisson loss is the largest bias: 0 if and only if unbiased."""
    return equal(noise.moved(_slope_of_poisson), noise.largest_bias)


def the_average_bias_is_enough(noise: Noise) -> Comparison:
    """The most that the best predictor for squared loss moves is the bias on average over the prior."""
    return equal(noise.moved(_slope_of_squares), abs(dot(noise.setting.prior, noise.biases)))


def the_average_bias_is_enough_for_poisson(noise: Noise) -> Comparison:
    """The most that the best predictor for Poisson loss moves is the bias on average over the prior."""
    return equal(noise.moved(_slope_of_poisson), abs(dot(noise.setting.prior, noise.biases)))


def the_loss_of_labels_decides(noise: Noise) -> Comparison:
    """If the mean is the best prediction for any distribution of labels, unbiased noise leaves the best predictor.

    Tried with a squared loss that counts twice on noisy labels above all labels: of labels nothing changes.
    """
    return none(0) if noise.largest_bias else equal(noise.moved(_slope_of_squares, times=2), 0)


def the_loss_of_outputs_decides(noise: Noise) -> Comparison:
    """If the mean is best for any distribution of labels and of outputs, unbiased noise leaves the best predictor."""
    return none(0) if noise.largest_bias else equal(noise.moved(_slope_of_squares), 0)


def any_randomizer_leaves_the_predictor(noise: Noise) -> Comparison:
    """If the mean is best for any distribution of labels and of outputs, any noise leaves the best predictor."""
    return equal(noise.moved(_slope_of_squares), 0)


@dataclass(frozen=True)
class _Counts:
    """A distribution of labels of at least 0."""

    labels: tuple[Fraction, ...]
    shares: tuple[Fraction, ...]

    def __str__(self) -> str:
        return f"labels {listed(self.labels)} with shares {listed(self.shares)}"

    @property
    def mean(self) -> Fraction:
        """Of the labels."""
        return dot(self.shares, self.labels)

    def slope(self, output: Fraction) -> Fraction:
        """Of the Poisson loss at an output above 0."""
        return dot(self.shares, [_slope_of_poisson(output, label) for label in self.labels])


def _counts(budget: Budget) -> Iterator[_Counts]:
    one, none_ = Fraction(1), Fraction(0)
    yield _Counts((none_, one), (none_, one))
    yield _Counts((none_, one), (one, none_))
    random = Random(22)  # noqa: S311
    for _ in range(budget.pick(quick=100, full=3_000)):
        k = random.randint(2, 6)
        labels = label_set(random, k)
        yield _Counts(tuple(y - labels[0] for y in labels), prior(random, k))


def poisson_is_least_at_the_mean(counts: _Counts) -> Comparison:
    """For any distribution of labels of at least 0 the Poisson loss is least at one output above 0, the mean."""
    return equal(counts.slope(counts.mean), 0) if counts.mean else none(1)


def poisson_is_least_at_a_positive_mean(counts: _Counts) -> Comparison:
    """For any distribution of labels of at least 0 and of positive mean the Poisson loss is least at the mean.

    Where all labels are 0 it falls all the way to 0, which is no output.
    """
    return equal(counts.slope(counts.mean), 0) if counts.mean else at_most(0, counts.slope(Fraction(1, 10**9)))


def poisson_is_least_at_the_last_label(counts: _Counts) -> Comparison:
    """The Poisson loss is least at the largest label."""
    return equal(counts.slope(counts.labels[-1]), 0)


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
        hypothesis="halved squared loss, any randomizer, any predictor",
        instances=_midway,
        printed=squares_obey_the_triangle,
        corrected=squares_obey_it_twice,
        false=squares_obey_it_almost,
    ),
    Claim(
        paper="B23",
        number="Theorem 5",
        part="squared loss",
        hypothesis="any finite labels and outputs, any distribution of examples and labels",
        instances=_noises,
        printed=squares_move_by_the_bias,
        false=the_average_bias_is_enough,
    ),
    Claim(
        paper="B23",
        number="Theorem 5",
        part="Poisson loss",
        hypothesis="finitely many positive labels, any outputs of positive mean for each label",
        instances=_noises,
        printed=poisson_moves_by_the_bias,
        false=the_average_bias_is_enough_for_poisson,
    ),
    Claim(
        paper="B23",
        number="Theorem 5",
        part="hypothesis",
        hypothesis="a loss of which nothing is known on outputs that are no labels",
        instances=_noises,
        printed=the_loss_of_labels_decides,
        corrected=the_loss_of_outputs_decides,
        false=any_randomizer_leaves_the_predictor,
    ),
    Claim(
        paper="B23",
        number="Theorem 5",
        part="Poisson loss at 0",
        hypothesis="finitely many labels of at least 0, outputs above 0",
        instances=_counts,
        printed=poisson_is_least_at_the_mean,
        corrected=poisson_is_least_at_a_positive_mean,
        false=poisson_is_least_at_the_last_label,
    ),
)
