"""Noisy labels and the best predictor ([B23], Section 3: equations 1 and 2, Table 1, Theorem 5, Figure 2).

Rows of probabilities are those of tables that the package releases, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

import optrand
from optrand.theory.b23.optima import Cost, Row, absolute, dot, exact_law, half_square, posed, proven
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.instances import Instance, Setting, prior, seeded, shares
from optrand.theory.sums import total

__all__ = ["Example", "Law", "Noise", "bins", "debiased", "halfway", "response"]

Law = tuple[Row, tuple[Row, ...]]
"""Outputs, and a row of probabilities a label."""


class Noise(Instance):
    """Positive labels, the prior of all examples together, and how labels are released."""

    labels: tuple[int, ...]
    prior: Row
    epsilon: float
    release: Callable[[Noise], Law]

    @cached_property
    def law(self) -> Law:
        """Outputs and rows."""
        return self.release(self)

    @property
    def means(self) -> list[Fraction]:
        """The expected noisy label of each label."""
        return [dot(row, self.law[0]) for row in self.law[1]]

    @property
    def biases(self) -> list[Fraction]:
        """``E[M(y)] - y``."""
        return [mean - y for mean, y in zip(self.means, self.labels, strict=True)]

    @property
    def examples(self) -> list[Row]:
        """Distributions of labels at examples: those that are sure of one label, and a few others."""
        k = len(self.labels)
        sure = [shares([int(i == j) for j in range(k)]) for i in range(k)]
        return [*sure, self.prior, self.prior[::-1], shares([1] * k), shares(range(1, k + 1))]

    def moves(self, slope: Callable[[Fraction, Fraction], Fraction], times: int = 1) -> list[Fraction]:
        """How far the best prediction moves at each example; the loss counts `times` on outputs above all labels."""
        outputs, rows = self.law
        weights = [times if output > self.labels[-1] else 1 for output in outputs]
        moves = []
        for example in self.examples:
            seen = [dot(example, column) * w for column, w in zip(zip(*rows, strict=True), weights, strict=True)]
            moves.append(abs(_least(seen, outputs, slope) - _least(example, list(map(Fraction, self.labels)), slope)))
        return moves


def debiased(noise: Noise) -> Law:
    """Debiased randomized response."""
    return exact_law(optrand.tabulate(optrand.debiased_rr(noise.labels, noise.epsilon)))


def response(noise: Noise) -> Law:
    """Randomized response."""
    return exact_law(optrand.tabulate(optrand.rr(noise.labels, noise.epsilon)))


def bins(noise: Noise) -> Law:
    """The best randomized response on bins."""
    weights = [float(p) for p in noise.prior]
    return exact_law(optrand.tabulate(optrand.rr_on_bins(noise.labels, weights, noise.epsilon)))


def halfway(noise: Noise) -> Law:
    """The number between the two ends, whatever the label."""
    return (Fraction(noise.labels[0] + noise.labels[-1], 2),), ((Fraction(1),),) * len(noise.labels)


def _noises(budget: Budget) -> Iterator[Noise]:
    half = (Fraction(1, 2),) * 2
    for epsilon in (math.log(2), 0.01, 10.0):
        yield from (Noise((1, 2), half, epsilon, release) for release in (debiased, response, bins))
    random = seeded(21)
    for number in range(budget.pick(quick=40, full=1_000)):
        labels = tuple(sorted(random.sample(range(1, 40), random.randint(2, 5))))
        epsilon = random.randint(1, 60) / 10
        yield Noise(labels, prior(random, len(labels)), epsilon, (debiased, response, bins)[number % 3])


def _with_halfway(budget: Budget) -> Iterator[Noise]:
    yield Noise((1, 3), (Fraction(0), Fraction(1)), 1.0, halfway)
    yield from _noises(budget)


@claim(
    "B23",
    "Equation 1",
    on=_with_halfway,
    given="halved squared loss, any randomizer, a predictor that says the lowest label",
    false=Variant("A predictor's squared loss is at most 3/2 of the sum of those two losses.", factor=Fraction(3, 2)),
)
def squares_obey_the_triangle(noise: Noise, factor: Fraction = Fraction(1)) -> Comparison:
    """A predictor's squared loss on the labels is at most the noisy label loss plus its loss on the noisy labels."""
    return _triangle(noise, half_square, factor)


@squares_obey_the_triangle.corrected
def _(noise: Noise) -> Comparison:
    """Its squared loss is at most twice the sum of those two losses; of distances, as absolute loss, once is enough."""
    return worst(_triangle(noise, half_square, Fraction(2)), _triangle(noise, absolute, Fraction(1)))


def _triangle(noise: Noise, loss: Cost, factor: Fraction) -> Comparison:
    outputs, rows = noise.law
    labels = list(map(Fraction, noise.labels))
    sums = ([loss(v, y) + loss(labels[0], v) for v in outputs] for y in labels)
    right = dot(noise.prior, [dot(*pair) for pair in zip(rows, sums, strict=True)])
    return at_most(dot(noise.prior, [loss(labels[0], y) for y in labels]), factor * right)


def _squares(output: Fraction, label: Fraction) -> Fraction:
    """Slope of ``(v - y)**2 / 2``."""
    return output - label


def _poisson(output: Fraction, label: Fraction) -> Fraction:
    """Slope of ``v - y log v``, times ``v``, where ``v > 0``."""
    return output * (1 - label / output)


def _least(chances: Sequence[Fraction], values: Sequence[Fraction], slope: Callable[..., Fraction]) -> Fraction:
    """Where a loss is least whose slope is a straight line: one secant step from 1 and 2 is exact."""
    one, two = (dot(chances, [slope(Fraction(at), value) for value in values]) for at in (1, 2))
    return 1 - one / (two - one)


@claim(
    "B23",
    "Theorem 5",
    on=_noises,
    given="positive labels, randomizers that the package releases; squared and Poisson loss, and a squared loss that "
    "counts twice on noisy labels above all labels",
)
def predictor_moves(noise: Noise) -> Comparison:
    """If the mean is the best prediction for all distributions of labels, noise moves that by the largest bias at most.

    At an example that is sure of its label it moves by just the bias: the best predictor stays if and only if the noise
    is unbiased.
    """
    return _moves_by_bias(noise.moves(_squares, times=2), noise)


@predictor_moves.corrected
def _(noise: Noise) -> Comparison:
    """The same if the mean is the best prediction for all distributions of labels and of noisy labels."""
    return worst(*(_moves_by_bias(noise.moves(slope), noise) for slope in (_squares, _poisson)))


def _moves_by_bias(moves: list[Fraction], noise: Noise) -> Comparison:
    biases = [abs(bias) for bias in noise.biases]
    sure = (equal(*pair) for pair in zip(moves[: len(biases)], biases, strict=True))
    return worst(*sure, at_most(max(moves), max(biases)))


@predictor_moves.false
def _(noise: Noise) -> Comparison:
    """It stays if the noise is unbiased on average over the prior: it moves by the mean bias at most."""
    return at_most(max(noise.moves(_squares)), abs(dot(noise.prior, noise.biases)))


class Batch(Instance, noise="", a="parameters"):
    """Two examples of features 1 and 2, and parameters ``(a, b)`` of the predictor ``a b x + a``."""

    noise: Noise
    labels: tuple[int, int]
    a: tuple[Fraction, Fraction]

    def gradient(self, labels: Sequence[Fraction]) -> list[Fraction]:
        """Of the mean halved squared loss: central differences, exact because it is a parabola in each parameter."""

        def loss(a: Fraction, b: Fraction) -> Fraction:
            return total(half_square(a * b * x + a, y) for x, y in zip((1, 2), labels, strict=True)) / 2

        a, b = self.a
        return [(loss(a + 1, b) - loss(a - 1, b)) / 2, (loss(a, b + 1) - loss(a, b - 1)) / 2]

    def pull(self, errors: Sequence[Fraction]) -> list[Fraction]:
        """The mean of errors of labels times the gradients of predictions."""
        a, b = self.a
        rows = [(b * x + 1, a * x) for x in (1, 2)]
        return [dot(errors, column) / 2 for column in zip(*rows, strict=True)]


def _batches(budget: Budget) -> Iterator[Batch]:
    for number, noise in enumerate(_noises(budget)):
        yield Batch(noise, (0, number % len(noise.labels)), (Fraction(number % 5 + 1, 2), Fraction(number % 7 - 3, 3)))


@claim(
    "B23",
    "Equation 2",
    on=_batches,
    given="halved squared loss, a predictor not linear in its parameters; all noisy versions of a batch",
    false=Variant("The same with the second term `E[M(y)] - y` times the gradients of the predictions.", sign=-1),
)
def noise_decomposes(batch: Batch, sign: int = 1) -> Comparison:
    """Noise adds two terms to a gradient: `y - E[M(y)]` and `E[M(y)] - M(y)`, times the gradients of the predictions.

    The latter is zero in expectation.
    """
    outputs, rows = batch.noise.law
    places = batch.labels
    labels, means = [Fraction(batch.noise.labels[y]) for y in places], [batch.noise.means[y] for y in places]
    clean = batch.gradient(labels)
    bias = batch.pull([sign * (y - mean) for y, mean in zip(labels, means, strict=True)])
    expected, said = [Fraction(0)] * 2, []
    for drawn in product(range(len(outputs)), repeat=2):
        noisy = [outputs[i] for i in drawn]
        chance = math.prod((rows[y][i] for y, i in zip(places, drawn, strict=True)), start=Fraction(1))
        rest = batch.pull([mean - v for mean, v in zip(means, noisy, strict=True)])
        expected = [e + chance * r for e, r in zip(expected, rest, strict=True)]
        parts = zip(batch.gradient(noisy), clean, bias, rest, strict=True)
        said += [equal(left, a + b + c) for left, a, b, c in parts]
    return worst(*said, *(equal(mean, 0) for mean in expected))


KINDS = {"a": (0.35, 0.1, 0.05), "b": (0.25, 0.15, 0.1)}
"""Table 1: two kinds of examples and three labels; all shares sum to 1."""


class Example(Instance, form="Table 1, epsilon 1/2, bins"):
    """The distribution of Table 1, and the best randomized response on bins of the package."""

    form: str

    @property
    def prior(self) -> list[float]:
        """Of the labels."""
        return [math.fsum(row[y] for row in KINDS.values()) for y in range(3)]

    @cached_property
    def solution(self) -> optrand.Solution:
        """The best bins."""
        return optrand.rr_on_bins([0, 1, 2], self.prior, 0.5)

    @cached_property
    def law(self) -> tuple[list[float], list[list[float]]]:
        """Outputs and rows, of the design in floats or of the released table."""
        made = self.solution if self.form == "as designed" else optrand.tabulate(self.solution)
        return made.randomizer.outputs.tolist(), made.randomizer.matrix.tolist()

    def predictor(self, noisy: bool) -> dict[str, float]:
        """The mean of the labels, or of the noisy labels, of each kind of example."""
        outputs, rows = self.law
        seen = [float(np.dot(row, outputs)) for row in rows] if noisy else [0.0, 1.0, 2.0]
        return {kind: float(np.dot(row, seen)) / math.fsum(row) for kind, row in KINDS.items()}

    def loss_of_predictor(self, noisy: bool) -> float:
        """Its halved squared loss on the labels themselves."""
        said = self.predictor(noisy)
        return math.fsum(p * (said[kind] - y) ** 2 / 2 for kind, row in KINDS.items() for y, p in enumerate(row))


def _examples(_: Budget) -> Iterator[Example]:
    yield from (Example("as designed"), Example("as released"))


def _rounded(truth: float, printed: str) -> Comparison:
    """That a number rounds to its printed form; if not, it is shown as it is."""
    places, figure = len(printed.partition(".")[2]), float(printed)
    return equal(figure if abs(truth - figure) * 10**places <= 0.5 + 1e-9 else truth, figure)


@claim(
    "B23",
    "Table 1: bins",
    on=_examples,
    given="the distribution of Table 1, halved squared loss, epsilon 1/2",
    false=Variant("The same with 0 and 1 in one bin, and 2 in another.", alone=2),
)
def zero_is_alone(example: Example, alone: int = 0) -> Comparison:
    """The best randomized response on bins, of all bins, releases 0 as 0.396, and 1 and 2 as 0.720."""
    outputs, rows = example.law
    others = [row for y, row in enumerate(rows) if y != alone]
    figures = (_rounded(*pair) for pair in zip(outputs, ("0.396", "0.720"), strict=True))
    gap = optrand.certify(example.solution).gap
    return worst(none(int(others[0] != others[1] or rows[alone] == others[0])), at_most(gap, 1e-9), *figures)


@claim(
    "B23",
    "Table 1: predictors",
    on=_examples,
    given="the distribution of Table 1; labels as they are, and through the best randomized response on bins",
    false=Variant("The same with 0.558 for a and 0.542 for b.", noisy=("0.558", "0.542")),
)
def means_of_labels_and_of_noisy_labels(example: Example, noisy: tuple[str, str] = ("0.542", "0.558")) -> Comparison:
    """The best predictor of the labels is 0.4 for a and 0.7 for b, that of the noisy labels 0.542 and 0.558."""
    figures = zip((False, False, True, True), "abab", ("0.4", "0.7", *noisy), strict=True)
    return worst(*(_rounded(example.predictor(seen)[kind], figure) for seen, kind, figure in figures))


@claim(
    "B23",
    "Table 1: losses",
    on=_examples,
    given="the distribution of Table 1, the loss that the paper calls squared, which has the factor 1/2",
    corrected=Variant("They are 0.2625 and 0.2726, a tenth of the print.", clean="0.2625", noisy="0.2726"),
    false=Variant("They are 0.525 and 0.5452, not halved.", clean="0.525", noisy="0.5452"),
)
def losses_as_printed(example: Example, clean: str = "2.625", noisy: str = "2.726") -> Comparison:
    """The squared losses of the two predictors on the labels are 2.625 and 2.726."""
    return worst(_rounded(example.loss_of_predictor(False), clean), _rounded(example.loss_of_predictor(True), noisy))


def _around(budget: Budget) -> Iterator[Setting]:
    """The prior of Table 1 at the ratio of epsilon 1/2, then at others."""
    for ratio in ("1.6487212707", *budget.pick(quick=("1.5", "1.8"), full=("1.2", "1.5", "1.8", "2"))):
        yield Setting(tuple(map(Fraction, range(3))), shares((60, 25, 15)), Fraction(ratio))


@claim(
    "B23",
    "Figure 2",
    on=_around,
    given="the prior of Table 1, epsilon near 1/2, outputs anywhere on the line",
    false=Variant("No output lies within three of the labels.", reach=3),
)
def outputs_lie_outside(setting: Setting, reach: int = 0) -> Comparison:
    """No output of the optimal unbiased randomizer lies in the range of the labels, from 0 to 2."""
    mechanism, proof = proven(posed(setting))
    inside = sum(-reach < v < 2 + reach for v in mechanism.outputs.tolist())
    return worst(none(inside), at_most(proof.gap, 1e-9))
