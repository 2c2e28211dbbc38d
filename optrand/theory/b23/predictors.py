"""Noisy labels and the best predictor ([B23], Section 3: equations 1 and 2, Table 1, Theorem 5, Figure 2).

Rows of probabilities are those of tables that the package releases, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from operator import sub

import numpy as np

import optrand
from optrand.solvers import design
from optrand.theory.b23.optima import Cost, Row, absolute, dot, exact_law, half_square, posed, proven
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.instances import Instance, Setting, prior, seeded, shares
from optrand.theory.sums import total

__all__ = ["Example", "Law", "Noise", "bins", "debiased", "halfway", "response"]

Law = tuple[Row, tuple[Row, ...]]
"""Outputs, and a row of probabilities a label."""

Slope = Callable[[Fraction, Fraction], Fraction]


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

    def moves(self, slope: Slope, times: int = 1) -> list[Fraction]:
        """How far the best prediction moves; the loss counts `times` on outputs above all labels.

        At examples that are sure of one label, and at a few other distributions of labels.
        """
        k, (outputs, rows) = len(self.labels), self.law
        sure = [shares([int(i == j) for j in range(k)]) for i in range(k)]
        weights, moves = [times if output > self.labels[-1] else 1 for output in outputs], []
        for example in (*sure, self.prior, self.prior[::-1], shares([1] * k), shares(range(1, k + 1))):
            seen = [dot(example, column) * w for column, w in zip(zip(*rows, strict=True), weights, strict=True)]
            moves.append(abs(_least(seen, outputs, slope) - _least(example, list(map(Fraction, self.labels)), slope)))
        return moves


def debiased(noise: Noise) -> Law:
    """Debiased randomized response."""
    return exact_law(optrand.debiased_rr(noise.labels, noise.epsilon))


def response(noise: Noise) -> Law:
    """Randomized response."""
    return exact_law(optrand.rr(noise.labels, noise.epsilon))


def bins(noise: Noise) -> Law:
    """The best randomized response on bins."""
    return exact_law(optrand.rr_on_bins(noise.labels, np.array(noise.prior, float), noise.epsilon))


def halfway(noise: Noise) -> Law:
    """The number between the two ends, whatever the label."""
    return (Fraction(noise.labels[0] + noise.labels[-1], 2),), ((Fraction(1),),) * len(noise.labels)


def _noises(budget: Budget, *first: Noise) -> Iterator[Noise]:
    yield from first
    releases = (debiased, response, bins)
    for epsilon, release in product((math.log(2), 0.01, 10.0), releases):
        yield Noise((1, 2), (Fraction(1, 2),) * 2, epsilon, release)
    random = seeded(21)
    for number in range(budget.pick(quick=40, full=1_000)):
        labels = tuple(sorted(random.sample(range(1, 40), random.randint(2, 5))))
        epsilon = random.randint(1, 60) / 10
        yield Noise(labels, prior(random, len(labels)), epsilon, releases[number % 3])


@claim(
    "B23 Equation 1",
    on=lambda budget: _noises(budget, Noise((1, 3), (Fraction(0), Fraction(1)), 1.0, halfway)),
    given="halved squared loss, any randomizer, a predictor that says the lowest label",
    sides=("loss of a predictor on the labels", "noisy label loss and its loss on noisy labels"),
    false=Variant("A predictor's squared loss is at most 3/2 of the sum of those two losses.", factor=Fraction(3, 2)),
)
def squares_obey_the_triangle(noise: Noise, factor: Fraction | int = 1, loss: Cost = half_square) -> Comparison:
    """A predictor's squared loss on the labels is at most the noisy label loss plus its loss on the noisy labels."""
    (outputs, rows), labels = noise.law, list(map(Fraction, noise.labels))
    sums = ([loss(v, y) + loss(labels[0], v) for v in outputs] for y in labels)
    right = dot(noise.prior, [dot(*pair) for pair in zip(rows, sums, strict=True)])
    return at_most(dot(noise.prior, [loss(labels[0], y) for y in labels]), factor * right)


@squares_obey_the_triangle.corrected
def _(noise: Noise) -> Comparison:
    """Its squared loss is at most twice the sum of those two losses; of distances, as absolute loss, once is enough."""
    return worst(squares_obey_the_triangle(noise, factor=2), squares_obey_the_triangle(noise, loss=absolute))


def _least(chances: Sequence[Fraction], values: Sequence[Fraction], slope: Slope) -> Fraction:
    """Where a loss is least whose slope is a straight line: one secant step from 1 and 2 is exact."""
    one, two = (dot(chances, [slope(Fraction(at), value) for value in values]) for at in (1, 2))
    return 1 - one / (two - one)


@claim(
    "B23 Theorem 5",
    on=_noises,
    given="squared, Poisson, and a squared loss that counts twice above all labels",
    sides=("largest move of the prediction, or a sure one", "largest bias, or the bias there"),
)
def predictor_moves(noise: Noise, slope: Slope = sub, times: int = 2) -> Comparison:
    """If the mean is the best prediction for all distributions of labels, noise moves that by the largest bias at most.

    At an example that is sure of its label it moves by just the bias.
    """
    moves, biases = noise.moves(slope, times), [abs(bias) for bias in noise.biases]
    sure = (equal(*pair) for pair in zip(moves[: len(biases)], biases, strict=True))
    return worst(*sure, at_most(max(moves), max(biases)))


@predictor_moves.corrected
def _(noise: Noise) -> Comparison:
    """The same if the mean is the best prediction for all distributions of labels and of noisy labels."""
    # Slopes of (v - y)**2 / 2, and of v - y log v, times v.
    slopes = (sub, lambda v, y: v * (1 - y / v))
    return worst(*(predictor_moves(noise, slope=slope, times=1) for slope in slopes))


@predictor_moves.false
def _(noise: Noise) -> Comparison:
    """It stays if the noise is unbiased on average over the prior: it moves by the mean bias at most."""
    return at_most(max(noise.moves(sub)), abs(dot(noise.prior, noise.biases)))


class Batch(Instance, noise="", a="parameters"):
    """Two examples of features 1 and 2, and parameters ``(a, b)`` of the predictor ``a b x + a``."""

    noise: Noise
    labels: tuple[int, int]
    a: tuple[Fraction, Fraction]

    def gradient(self, labels: Sequence[Fraction]) -> list[Fraction]:
        """Of the mean halved squared loss: central differences, exact because it is a parabola in each parameter."""
        rows = [(x, y, *self.a) for x, y in zip((1, 2), labels, strict=True)]
        return [
            total(half_square((a + s) * b * x + a + s, y) * s for x, y, a, b in rows for s in (1, -1)) / 4,
            total(half_square(a * (b + s) * x + a, y) * s for x, y, a, b in rows for s in (1, -1)) / 4,
        ]

    def pull(self, errors: Sequence[Fraction]) -> list[Fraction]:
        """The mean of errors of labels times the gradients of predictions."""
        a, b = self.a
        return [(errors[0] * (b + 1) + errors[1] * (2 * b + 1)) / 2, a * (errors[0] + 2 * errors[1]) / 2]


def _batches(budget: Budget) -> Iterator[Batch]:
    for number, noise in enumerate(_noises(budget)):
        yield Batch(noise, (0, number % len(noise.labels)), (Fraction(number % 5 + 1, 2), Fraction(number % 7 - 3, 3)))


@claim(
    "B23 Equation 2",
    on=_batches,
    given="halved squared loss, a predictor not linear in its parameters; all noisy versions of a batch",
    sides=("gradient of noisy labels, by coordinate", "clean gradient and the two terms"),
    false=Variant("The same with the second term `E[M(y)] - y` times the gradients of the predictions.", sign=-1),
)
def noise_decomposes(batch: Batch, sign: int = 1) -> Comparison:
    """Noise adds two terms to a gradient: `y - E[M(y)]` and `E[M(y)] - M(y)`, times the gradients of the predictions.

    The latter is zero in expectation.
    """
    outputs, rows = batch.noise.law
    labels, means = zip(*((Fraction(batch.noise.labels[y]), batch.noise.means[y]) for y in batch.labels), strict=True)
    clean = batch.gradient(labels)
    bias = batch.pull([sign * (y - mean) for y, mean in zip(labels, means, strict=True)])
    expected, said = [Fraction(0)] * 2, []
    for one, two in product(range(len(outputs)), repeat=2):
        noisy, chance = (outputs[one], outputs[two]), rows[batch.labels[0]][one] * rows[batch.labels[1]][two]
        rest = batch.pull([mean - v for mean, v in zip(means, noisy, strict=True)])
        expected = [e + chance * r for e, r in zip(expected, rest, strict=True)]
        said += [equal(g, a + b + c) for g, a, b, c in zip(batch.gradient(noisy), clean, bias, rest, strict=True)]
    return worst(*said, *(equal(mean, 0) for mean in expected))


KINDS = {"a": (0.35, 0.1, 0.05), "b": (0.25, 0.15, 0.1)}
"""Table 1: two kinds of examples and three labels; all shares sum to 1."""


class Example(Instance, form="Table 1, epsilon 1/2, bins"):
    """The distribution of Table 1, and the best randomized response on bins of the package."""

    form: str

    @cached_property
    def mechanism(self) -> optrand.Mechanism:
        """The best bins."""
        return optrand.rr_on_bins([0, 1, 2], np.sum(list(KINDS.values()), axis=0), 0.5)

    @cached_property
    def law(self) -> tuple[list[float], list[list[float]]]:
        """Outputs and rows, of the design in floats or of the released table."""
        made = design(self.mechanism.problem).randomizer if self.form == "as designed" else self.mechanism
        return made.outputs.tolist(), made.matrix.tolist()

    def predictor(self, noisy: bool) -> dict[str, float]:
        """The mean of the labels, or of the noisy labels, of each kind of example."""
        outputs, rows = self.law
        seen = [float(np.dot(row, outputs)) for row in rows] if noisy else [0.0, 1.0, 2.0]
        return {kind: float(np.dot(row, seen)) / math.fsum(row) for kind, row in KINDS.items()}

    def loss_of_predictor(self, noisy: bool) -> float:
        """Its halved squared loss on the labels themselves."""
        said = self.predictor(noisy)
        return math.fsum(p * (said[kind] - y) ** 2 / 2 for kind, row in KINDS.items() for y, p in enumerate(row))


def _rounded(truth: float, printed: str) -> Comparison:
    """That a number rounds to its printed form; if not, it is shown as it is."""
    places, figure = len(printed.partition(".")[2]), float(printed)
    return equal(figure if abs(truth - figure) * 10**places <= 0.5 + 1e-9 else truth, figure)


def _examples(_: Budget) -> tuple[Example, ...]:
    return Example("as designed"), Example("as released")


@claim(
    "B23 Table 1: bins",
    on=_examples,
    given="the distribution of Table 1, halved squared loss, epsilon 1/2",
    sides=("output as computed, or labels in a wrong bin (count)", "output as printed, or zero"),
    false=Variant("The same with 0 and 1 in one bin, and 2 in another.", alone=2),
)
def zero_is_alone(example: Example, alone: int = 0) -> Comparison:
    """The best randomized response on bins, of all bins, releases 0 as 0.396, and 1 and 2 as 0.720."""
    outputs, rows = example.law
    others = [row for y, row in enumerate(rows) if y != alone]
    figures = (_rounded(*pair) for pair in zip(outputs, ("0.396", "0.720"), strict=True))
    gap = example.mechanism.certificate.gap
    return worst(none(int(others[0] != others[1] or rows[alone] == others[0])), at_most(gap, 1e-9), *figures)


@claim(
    "B23 Table 1: predictors",
    on=_examples,
    given="the distribution of Table 1; labels as they are, and through the best randomized response on bins",
    sides=("prediction as computed", "prediction as printed"),
    false=Variant("The same with 0.558 for a and 0.542 for b.", noisy=("0.558", "0.542")),
)
def means_of_labels_and_of_noisy_labels(example: Example, noisy: tuple[str, str] = ("0.542", "0.558")) -> Comparison:
    """The best predictor of the labels is 0.4 for a and 0.7 for b, that of the noisy labels 0.542 and 0.558."""
    figures = zip((False, False, True, True), "abab", ("0.4", "0.7", *noisy), strict=True)
    return worst(*(_rounded(example.predictor(seen)[kind], figure) for seen, kind, figure in figures))


@claim(
    "B23 Table 1: losses",
    on=_examples,
    given="the distribution of Table 1, the loss that the paper calls squared, which has the factor 1/2",
    sides=("squared loss as computed", "squared loss as printed"),
    corrected=Variant("They are 0.2625 and 0.2726, a tenth of the print.", clean="0.2625", noisy="0.2726"),
    false=Variant("They are 0.525 and 0.5452, not halved.", clean="0.525", noisy="0.5452"),
)
def losses_as_printed(example: Example, clean: str = "2.625", noisy: str = "2.726") -> Comparison:
    """The squared losses of the two predictors on the labels are 2.625 and 2.726."""
    return worst(_rounded(example.loss_of_predictor(False), clean), _rounded(example.loss_of_predictor(True), noisy))


def _around(budget: Budget) -> Iterator[Setting]:
    for ratio in ("1.6487212707", *budget.pick(quick=("1.5", "1.8"), full=("1.2", "1.5", "1.8", "2"))):
        yield Setting(tuple(map(Fraction, range(3))), shares((60, 25, 15)), Fraction(ratio))


@claim(
    "B23 Figure 2",
    on=_around,
    given="the prior of Table 1, epsilon near 1/2, outputs anywhere on the line",
    sides=("outputs in the range of the labels (count)", "zero"),
    false=Variant("No output lies within three of the labels.", reach=3),
)
def outputs_lie_outside(setting: Setting, reach: int = 0) -> Comparison:
    """No output of the optimal unbiased randomizer lies in the range of the labels, from 0 to 2."""
    mechanism, proof = proven(posed(setting))
    inside = sum(-reach < v < 2 + reach for v in mechanism.outputs.tolist())
    return worst(none(inside), at_most(proof.gap, 1e-9))
