"""What an attempt to break the certificate and the release has found, so that it stays found."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from optrand import losses
from optrand.base.arithmetic import float_above
from optrand.certificates.certificate import lower_bound
from optrand.cli import WRONG_INPUT, app
from optrand.model.losses import Loss
from optrand.model.outputs import Grid, Interval, OutputSet
from optrand.model.problem import Problem, regression
from optrand.model.solution import Dual
from optrand.release.job import LabelJob


@dataclass(frozen=True)
class Crafted:
    """A problem and multipliers for which the bound in floats once lay above the bound in exact arithmetic."""

    labels: list[float]
    prior: list[float]
    epsilon: float
    alpha: list[float]
    beta: list[float] = field(default_factory=list)
    bias_penalty: float = 0.0
    outputs: OutputSet | None = None
    loss: Loss = losses.squared

    @property
    def problem(self) -> Problem:
        """The question."""
        return regression(
            self.labels,
            self.prior,
            self.epsilon,
            loss=self.loss,
            bias_penalty=self.bias_penalty,
            outputs=self.outputs,
        )

    @property
    def dual(self) -> Dual:
        """The multipliers."""
        return Dual(np.array(self.alpha), np.array(self.beta or [0.0] * len(self.alpha)))


CRAFTED = {
    # The best output lies between two floats, which are 1/8 apart here: f is higher at both of them.
    "far off, unpenalised": Crafted([1e15, 1e15 + 1], [0.18, 0.82], 5.0, [0.0, 0.0]),
    "far off, close together": Crafted(
        [1000000000000.0056, 1000000000000.0076], [0.25, 0.75], 1.0, [0.0, 9.273456456735435e-07]
    ),
    "far off, unbiased": Crafted(
        [1e15, 1e15 + 1.4, 1e15 + 4, 1e15 + 6.5],
        [1e-10, 0.5, 0.0, 0.4999999999],
        1.0,
        [2.7e-11, 0.02, 0.0, 0.056],
        bias_penalty=math.inf,
    ),
    "far off, in an interval": Crafted(
        [1000000000000.002, 1000000000000.005],
        [0.02, 0.98],
        0.1,
        [0.0, 0.0],
        bias_penalty=1.0,
        outputs=Interval(1000000000000.001, 1000000000000.006),
    ),
    # A term of 1e-299 decides, and rounding hides it.
    "a prior of 1e-299 at the largest budget": Crafted(
        [3.3644788071697374, 8.484559710297564],
        [1.0, 2.9118836514199627e-299],
        700.0,
        [0.0, 1.3240726199929315e-298],
        outputs=Interval(3.3644788071697374, 8.984559710297564),
    ),
    # The product of penalty and prior keeps one bit; half of it was charged for the bias.
    "a charge that underflows": Crafted(
        [0.0, 1.0], [0.5, 0.5], 1.0, [0.0, 0.0], [4e-163, 0.0], bias_penalty=2.0**-1074 * 3, outputs=Interval(-1, 2)
    ),
}


@pytest.mark.parametrize("case", CRAFTED.values(), ids=CRAFTED.keys())
def test_bound_in_floats_is_never_above_the_exact_one(case: Crafted) -> None:
    assert lower_bound(case.problem, case.dual) <= lower_bound(case.problem, case.dual, exact=True)


def random_case(generator: np.random.Generator) -> Crafted:
    """Labels of any offset and spread, multipliers of the size of the losses."""
    k = int(generator.integers(1, 6))
    spread = float(generator.choice([1e-2, 1.0, 1e6]))
    offset = float(generator.choice([0.0, 1e3, 1e9, -1e9, 1e12, 1e14]))
    labels = np.unique(offset + spread * generator.integers(0, 10, k) + generator.integers(0, 2) * spread / 8)
    k = labels.size
    prior = generator.choice([0.0, 1.0, 1e-12, 1e-300], k) * generator.random(k) + np.eye(k)[0]
    prior /= prior.sum()
    penalty = float(generator.choice([0.0, 1.0, math.inf]))
    weights = np.maximum(prior, 1e-307) * generator.choice([0.0, 1.0], k)
    beta = weights * spread * generator.normal(size=k) * (penalty > 0) * ((prior > 0) | (penalty == math.inf))
    alpha = weights * spread**2 * generator.random(k) - beta * labels
    low, high = float(labels[0]) - 40 * spread, float(labels[-1]) + 40 * spread
    kind = generator.integers(0, 3)
    outputs = None if kind == 0 else Interval(low, high) if kind == 1 else Grid(np.unique(np.linspace(low, high, 5)))
    epsilon = float(generator.choice([1.0, 5.0, 40.0, 700.0] if kind else [1e-6, 1e-3, 1.0, 5.0, 40.0, 700.0]))
    return Crafted(
        labels.tolist(), prior.tolist(), epsilon, alpha.tolist(), beta.tolist(), bias_penalty=penalty, outputs=outputs
    )


def test_no_multipliers_of_a_random_search_lift_the_float_bound_above_the_exact_one() -> None:
    generator = np.random.default_rng(20)
    above = []
    for _ in range(400):
        case = random_case(generator)
        if lower_bound(case.problem, case.dual) > lower_bound(case.problem, case.dual, exact=True):
            above.append(case)
    assert above == []


def test_rounding_up_zero_gives_a_zero_without_a_sign() -> None:
    # A single label used to be released with "realised epsilon -0.0".
    assert math.copysign(1.0, float_above(Fraction(0))) == 1.0
    summary = LabelJob(labels=np.array([2.0]), epsilon=1.0).run([2.0, 2.0]).summary
    assert math.copysign(1.0, summary.realised_epsilon) == math.copysign(1.0, summary.noisy_label_loss) == 1.0


RELEASE = ["--label", "y", "--labels", "0:3", "--epsilon", "1", "--force", "--no-ledger"]


def test_an_input_that_is_not_there_is_wrong_input_whatever_the_target(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("kept")
    result = CliRunner().invoke(app, ["randomize", str(tmp_path / "none.csv"), str(target), *RELEASE])
    assert result.exit_code == WRONG_INPUT
    assert target.read_text() == "kept"


def test_a_column_may_be_named_in_another_encoding(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_bytes(b"a,\xff\n1,2\n2,3\n")
    arguments = ["randomize", str(source), str(tmp_path / "out.csv"), *RELEASE]
    arguments[arguments.index("y")] = "\udcff"
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "out.csv").read_bytes().startswith(b"a,\xff\n1,")
