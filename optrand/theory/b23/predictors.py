"""Noisy labels and the best predictor ([B23], Section 3: equations 1 and 2, Table 1, Theorem 5, Figure 2).

Rows of probabilities are those of tables that the package releases, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction as F
from functools import cache, cached_property
from operator import sub
from random import Random
from typing import Any

import numpy as np

import optrand
from optrand.solvers import design
from optrand.theory._engine import TOLERANCE, Comparison, Draws, at_most, claim, corrected, draws, equal, false, grid
from optrand.theory._shared import Row, Setting, Table, prior, shares
from optrand.theory.b23.optima import absolute, half_square, pose, prove

Cost = Callable[[Any, Any], Any]


def _release(mechanism: optrand.Mechanism) -> tuple[Table, Table]:
    outputs = [F(output) for output in mechanism.outputs.tolist()]
    return np.array(outputs), mechanism.weights.astype(object) * F(1, mechanism.total)


def debiased(noise: Noise) -> tuple[Table, Table]:
    return _release(optrand.debiased_rr(noise.labels, noise.epsilon))


def response(noise: Noise) -> tuple[Table, Table]:
    return _release(optrand.rr(noise.labels, noise.epsilon))


def bins(noise: Noise) -> tuple[Table, Table]:
    return _release(optrand.rr_on_bins(noise.labels, np.array(noise.prior, float), noise.epsilon))


def halfway(noise: Noise) -> tuple[Table, Table]:
    """Return the number between the two ends, whatever the label."""
    middle = F(noise.labels[0] + noise.labels[-1], 2)
    return np.array([middle]), np.array([[F(1)]] * len(noise.labels))


@dataclass(frozen=True)
class Noise:
    """Positive labels, the prior of all examples together, and the release: outputs, and rows of probabilities."""

    labels: tuple[int, ...]
    prior: Row
    epsilon: float
    release: Callable[[Noise], tuple[Table, Table]]

    @cached_property
    def law(self) -> tuple[Table, Table]:
        return self.release(self)

    @cached_property
    def means(self) -> Table:
        """The expected noisy label of each label."""
        outputs, rows = self.law
        return rows @ outputs

    @property
    def biases(self) -> Table:
        return self.means - np.array(self.labels)

    def moves(self, slope: Cost, times: int = 1) -> list[F]:
        """Return how far the best prediction moves, if the loss counts `times` on outputs above all labels.

        First for examples that are sure of one label, then for a few other distributions of labels.
        """
        k, (outputs, rows) = len(self.labels), self.law
        weighted = rows * [times if output > self.labels[-1] else 1 for output in outputs]
        sure, others = np.eye(k, dtype=int), (self.prior, self.prior[::-1], shares([1] * k), shares(range(1, k + 1)))
        labels = np.array(self.labels)
        examples = map(np.array, (*sure, *others))
        return [abs(_least(each @ weighted, outputs, slope) - _least(each, labels, slope)) for each in examples]


def _least(chances: Table, values: Table, slope: Cost) -> Any:
    """Return the minimizer of a loss whose slope is a straight line: one secant step from 1 and 2 is exact."""
    one, two = (chances @ slope(F(at), values) for at in (1, 2))
    return 1 - one / (two - one)


def _draw_noise(draw: Random) -> Noise:
    labels = tuple(sorted(draw.sample(range(1, 40), draw.randint(2, 5))))
    return Noise(labels, prior(draw, len(labels)), draw.randint(1, 60) / 10, draw.choice((debiased, response, bins)))


TWO = [
    Noise((1, 2), (F(1, 2),) * 2, epsilon, release)
    for epsilon in (math.log(2), 0.01, 10.0)
    for release in (debiased, response, bins)
]
NOISES = TWO, Draws(25, _draw_noise)


@claim(
    "B23 Equation 1",
    [Noise((1, 3), (F(0), F(1)), 1.0, halfway)],
    *NOISES,
    given="halved squared loss, any randomizer, a predictor whose answer is the lowest label",
)
@corrected(
    "Its squared loss is at most twice the sum of those two losses. For distances (absolute loss) once is enough.",
    factor=(2, 1),
    costs=(half_square, absolute),
)
@false("A predictor's squared loss is at most 3/2 of the sum of those two losses.", factor=(F(3, 2),))
def squares_obey_the_triangle(
    noise: Noise, factor: Sequence[F | int] = (1,), costs: Sequence[Cost] = (half_square,)
) -> Comparison:
    """A predictor's squared loss on the labels is at most the noisy label loss plus its loss on the noisy labels."""
    (outputs, rows), labels, first = noise.law, np.array([*map(F, noise.labels)]), F(noise.labels[0])
    sums = [cost(outputs, labels[:, np.newaxis]) + cost(first, outputs) for cost in costs]
    bounds = [times * (noise.prior @ (rows * both)).sum() for times, both in zip(factor, sums, strict=True)]
    return at_most([noise.prior @ cost(first, labels) for cost in costs], bounds)


def _poisson(prediction: Any, label: Any) -> Any:
    return prediction * (1 - label / prediction)


@claim("B23 Theorem 5", *NOISES, given="squared, Poisson, and a squared loss that counts twice above all labels")
@corrected("The same if the mean is best for all laws of noisy labels, too.", losses=((sub, 1), (_poisson, 1)))
@false("It moves by the mean bias.", lambda noise: at_most(max(noise.moves(sub)), abs(noise.prior @ noise.biases)))
def predictor_moves(noise: Noise, losses: Sequence[tuple[Cost, int]] = ((sub, 2),)) -> Comparison:
    """If the mean is the best prediction for all laws of labels, noise moves that by the largest bias at most."""
    return at_most([noise.moves(*each) for each in losses], max(abs(noise.biases)))


@claim("B23 Theorem 5: sure examples", *NOISES, given="squared and Poisson loss, as in the proof")
@false("It moves by half of the bias.", share=F(1, 2))
def sure_predictions_move_by_the_bias(noise: Noise, share: F = F(1)) -> Comparison:
    """At an example that is sure of its label the best prediction moves by just the bias."""
    return equal([noise.moves(slope)[: len(noise.labels)] for slope in (sub, _poisson)], share * abs(noise.biases))


def _differentiate(a: F, b: F, x: int, label: Any) -> Table:
    """Return the gradient in `a` and `b` of the halved squared loss of the prediction ``a b x + a``.

    Central differences are exact because the loss is a parabola in each parameter.
    """
    sides = [[half_square((a + s) * b * x + a + s, label), half_square(a * (b + s) * x + a, label)] for s in (1, -1)]
    return (np.array(sides[0]) - np.array(sides[1])) / 2


@claim(
    "B23 Equation 2",
    grid(noise=TWO, y=[1], x=[1], a=[F(1, 2)], b=[F(-1)]),
    draws(40, noise=_draw_noise, y=(0, 1), x=(1, 2), a=[F(n, 2) for n in (1, 3, 5)], b=[F(n, 3) for n in range(-3, 4)]),
    given="halved squared loss, the predictor a b x + a, an example of a batch, all its noisy labels",
)
@false("The same with the second term `E[M(y)] - y` times the gradients of the predictions.", sign=-1)
def noise_decomposes(noise: Noise, y: int, x: int, a: F, b: F, sign: int = 1) -> Comparison:
    """Noise adds two terms to a gradient: `y - E[M(y)]` and `E[M(y)] - M(y)`, times the gradients of the predictions.

    The latter is zero in expectation.
    """
    outputs, rows = noise.law
    slope = np.array([[b * x + 1], [a * x]])
    clean = _differentiate(a, b, x, np.array([F(noise.labels[y])])) - sign * noise.biases[y] * slope
    rest = (noise.means[y] - outputs) * slope
    noisy = _differentiate(a, b, x, outputs)
    return equal(np.column_stack([noisy, rest @ rows[y]]), np.column_stack([clean + rest, [0, 0]]))


KINDS = {"a": (0.35, 0.1, 0.05), "b": (0.25, 0.15, 0.1)}
"""Table 1: two kinds of examples and three labels, whose shares all sum to 1."""


@cache
def table_1(form: str) -> tuple[list[float], list[list[float]]]:
    """Return outputs and rows of the best bins of Table 1, ``"as designed"`` in floats or ``"as released"``."""
    mechanism = optrand.rr_on_bins([0, 1, 2], np.sum(list(KINDS.values()), axis=0), 0.5)
    optrand.certify(mechanism).require(TOLERANCE.proven)
    made = design(mechanism.problem).randomizer if form == "as designed" else mechanism
    return made.outputs.tolist(), made.matrix.tolist()


def predict(form: str, *, noisy: bool) -> dict[str, float]:
    """Return the mean of the labels, or of the noisy labels, of each kind of example."""
    outputs, rows = table_1(form)
    seen = [float(np.dot(row, outputs)) for row in rows] if noisy else [0.0, 1.0, 2.0]
    return {kind: float(np.dot(row, seen)) / math.fsum(row) for kind, row in KINDS.items()}


def predictor_loss(form: str, *, noisy: bool) -> float:
    """Return the halved squared loss of that predictor on the labels themselves."""
    said = predict(form, noisy=noisy)
    return math.fsum(p * (said[kind] - y) ** 2 / 2 for kind, row in KINDS.items() for y, p in enumerate(row))


def _match(values: Sequence[float], printed: str) -> Comparison:
    figures = printed.split()
    digits = [len(figure.partition(".")[2]) for figure in figures]
    return equal([round(value, n) for value, n in zip(values, digits, strict=True)], [float(f) for f in figures])


FORMS = ("as designed", "as released")


@claim("B23 Table 1: bins", form=FORMS, given="the distribution of Table 1, halved squared loss, epsilon 1/2")
@false("The same with 0 and 1 in one bin, and 2 in another.", alone=2)
def zero_is_alone(form: str, alone: int = 0) -> Comparison:
    """The best randomized response on bins, of all bins, has 0 alone in a bin, and 1 and 2 in another."""
    _, rows = table_1(form)
    others = [row for y, row in enumerate(rows) if y != alone]
    return equal([others[0] == others[1], others[0] == rows[alone]], [True, False])


@claim("B23 Table 1: predictors", form=FORMS, given="the distribution of Table 1, epsilon 1/2, best bins of all")
@false("The same with 0.558 for a and 0.542 for b.", printed="0.396 0.720 0.4 0.7 0.558 0.542")
def means_of_labels_and_of_noisy_labels(form: str, printed: str = "0.396 0.720 0.4 0.7 0.542 0.558") -> Comparison:
    """The best bins release 0 as 0.396, and 1 and 2 as 0.720.

    The best predictor of the labels is 0.4 for a and 0.7 for b, that of the noisy labels 0.542 and 0.558.
    """
    predicted = (*predict(form, noisy=False).values(), *predict(form, noisy=True).values())
    return _match([*table_1(form)[0], *predicted], printed)


@claim("B23 Table 1: losses", form=FORMS, given="the distribution of Table 1, halved squared loss")
@corrected("They are 0.2625 and 0.2726, a tenth of the print.", printed="0.2625 0.2726")
@false("They are 0.525 and 0.5452, not halved.", printed="0.525 0.5452")
def losses_as_printed(form: str, printed: str = "2.625 2.726") -> Comparison:
    """The squared losses of the two predictors on the labels are 2.625 and 2.726."""
    return _match([predictor_loss(form, noisy=noisy) for noisy in (False, True)], printed)


@claim(
    "B23 Figure 2",
    ratio=map(F, ("1.6487212707", "1.5", "1.8")),
    given="the prior of Table 1, epsilon near 1/2, outputs anywhere on the line",
)
@false("No output lies within three of the labels.", reach=3)
def outputs_lie_outside(ratio: F, reach: int = 0) -> Comparison:
    """No output of the optimal unbiased randomizer lies in the range of the labels, from 0 to 2."""
    setting = Setting(tuple(map(F, range(3))), shares((60, 25, 15)), ratio)
    outputs = prove(pose(setting))[0].outputs.tolist()
    return equal(sum(-reach < v < 2 + reach for v in outputs), 0)
