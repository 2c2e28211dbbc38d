"""Audits of other people's randomizers: the exact epsilon from both sides, and the published mistakes."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import optrand
from optrand import audit
from optrand.cli import UNVERIFIED, WRONG_INPUT, app
from optrand.errors import InvalidInput

PRIOR = [0.5, 0.2, 0.15, 0.1, 0.05]


def response(k: int, ratio: Fraction) -> list[list[Fraction]]:
    """Randomized response, whose only ratio is `ratio`."""
    other = 1 / (ratio + k - 1)
    return [[ratio * other if y == i else other for i in range(k)] for y in range(k)]


# ------------------------------------------------------------------------------------------------ exactness


@pytest.mark.parametrize("ratio", [Fraction(3), Fraction(10**30, 7), 1 + Fraction(1, 10**40)])
def test_epsilon_is_the_logarithm_of_the_ratio_and_decided_without_rounding(ratio: Fraction) -> None:
    found = audit(response(4, ratio), 700.0)
    least = math.log1p(float(ratio - 1)) if ratio < 2 else math.log(ratio.numerator) - math.log(ratio.denominator)
    assert found.epsilon == pytest.approx(least, rel=1e-14)
    assert audit(response(4, ratio), found.epsilon).private
    assert not audit(response(4, ratio), math.nextafter(found.epsilon, 0) * (1 - 1e-15)).private


def test_a_ratio_beyond_floats_is_no_infinity() -> None:
    found = audit([["1e-320", 1 - Fraction(1, 10**320)], ["1e-5", "0.99999"]], 800 - 100.0)
    assert not found.private
    assert found.epsilon == pytest.approx(315 * math.log(10))


def test_rounding_is_forgiven_of_floats_and_of_nothing_else() -> None:
    table = optrand.debiased_rr(range(5), 1.0).randomizer.matrix
    found = audit(table, 1.0)
    assert (found.private, found.private_but_for_rounding, found.findings) == (False, True, ())
    exact = audit([[Fraction(p) for p in row] for row in table.tolist()], 1.0)
    assert not exact.private_but_for_rounding
    assert exact.findings[0].startswith("not 1-DP: epsilon is 1.000000001; output 0")
    assert audit([[repr(p) for p in row] for row in table.tolist()], 1.0).private_but_for_rounding
    assert not audit([[f"{p:.4f}" for p in row] for row in table.tolist()], 1.0).private_but_for_rounding
    assert not audit(table, 1.0 - 1e-6).private_but_for_rounding


def test_mechanisms_of_ours_pass_and_are_optimal() -> None:
    labels, prior = [0.0, 1.0, 2.5, 7.0, 9.0], np.array(PRIOR)
    solution = optrand.solve(optrand.unbiased_regression(labels, prior, 1.0))
    mechanism = optrand.tabulate(solution)
    shares = [[Fraction(w, mechanism.total) for w in row] for row in mechanism.weights.tolist()]
    found = audit(shares, 1.0, labels=labels, outputs=mechanism.outputs, prior=prior)
    assert found.private
    assert found.epsilon == mechanism.realised_epsilon
    assert found.biases == mechanism.exact_biases
    assert found.comparison is not None
    assert found.comparison.kind == "unbiased"
    assert found.comparison.value == sum(map(np.multiply, map(Fraction, PRIOR), mechanism.exact_losses()))
    assert found.gap is not None
    assert found.gap < 1e-9


def test_the_gap_is_that_of_the_certificate() -> None:
    labels, prior = [0, 1, 2, 3, 4], np.array(PRIOR)
    randomizer = optrand.debiased_rr(labels, 1.0).randomizer
    problem = optrand.unbiased_regression(labels, prior, 1.0)
    proof = optrand.certify(problem, randomizer, optrand.solve(problem).dual)
    found = audit(randomizer.matrix, 1.0, labels=labels, outputs=randomizer.outputs, prior=prior)
    assert found.gap == pytest.approx(proof.gap, rel=1e-9)
    biased = audit(response(5, Fraction(2)), 1.0, labels=labels, outputs=labels, prior=prior)
    assert biased.comparison is not None
    assert biased.comparison.kind == "biased"
    assert biased.comparison.optimum.lower == pytest.approx(
        optrand.certify(optrand.rr_on_bins(labels, prior, 1.0)).lower
    )


def test_rows_that_do_not_sum_to_one_are_said_and_normalised() -> None:
    found = audit([["0.5", "0.4"], ["0.1", "0.9"]], math.log(5), labels=[0, 1], outputs=[0, 1])
    assert found.row_errors == (Fraction(-1, 10), 0)
    assert found.epsilon <= math.log(5) + 1e-15 < found.normalised_epsilon
    assert found.biases == (Fraction(4, 9), Fraction(-1, 10))
    assert not found.private
    assert "1 row(s) do not sum to 1, that of label 0 misses it by 0.1" in str(found)


def test_negative_probabilities_are_no_privacy() -> None:
    found = audit([["1.5", "-0.5"], ["1.5", "-0.5"]], 1.0)
    assert found.epsilon == math.inf
    assert not found.private
    assert found.comparison is None
    assert "2 probabilities are negative" in found.findings


def test_outputs_that_do_not_depend_on_the_label_are_called_so() -> None:
    found = audit([["0.3", "0.7"], ["0.3", "0.7"]], 1.0)
    assert found.epsilon == 0
    assert str(found) == "private: the output does not depend on the label"


def test_columns_that_nobody_uses_give_nothing_away() -> None:
    assert audit([["0.6", 0, "0.4"], ["0.4", 0, "0.6"]], 0.5).epsilon == pytest.approx(math.log(1.5))


def test_classes_by_name_are_compared_by_their_hits() -> None:
    solution = optrand.rr_with_prior(PRIOR, 1.0)
    names = list("abcde")
    kept = [names[int(v)] for v in solution.randomizer.outputs]
    found = audit(solution.randomizer.matrix, 1.0, labels=names, outputs=kept, prior=PRIOR)
    assert found.comparison is not None
    assert found.comparison.kind == "classes"
    assert found.gap is not None
    assert found.gap < 1e-12
    assert found.bias is None


@pytest.mark.parametrize(
    ("matrix", "options", "words"),
    [
        ([0.5, 0.5], {}, "shape"),
        ([[0.5], [0.2, 0.3]], {}, "rows of one length"),
        ([[0.5, "x"]], {}, "row 0, column 1 of the matrix is not a number"),
        ([[0.5, True]], {}, "of type bool"),
        ([[0.5, math.nan]], {}, "is nan"),
        ([["1/0", 1]], {}, "divided by 0"),
        ([[0, 0], [1, 0]], {}, "row 0 of the matrix sums to 0"),
        ([[1, 0]], {"labels": [0, 1]}, "2 labels for a matrix with 1"),
        ([[0.5, 0.5]], {"outputs": [1, 1]}, "outputs are not distinct"),
        ([[0.5, 0.5]], {"prior": [0.5, 0.5]}, "prior has 2 entries"),
        ([[0.5, 0.5]], {"labels": 3}, "labels are of type int"),
        ([[0.5, 0.5]], {"outputs": "ab"}, "outputs are of type str"),
    ],
)
def test_what_is_no_table_is_refused(matrix: list, options: dict, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        audit(matrix, 1.0, **options)


# ------------------------------------------------------------------------------------------- published mistakes


def test_top_k_over_all_labels_where_a_label_is_excluded() -> None:
    """[G21] Algorithm 1 draws from the top k for every other label; to draw from all is an event of the others only."""
    keep, other = Fraction(3, 4), Fraction(1, 4)
    table = [[keep, other, 0, 0, 0], [other, keep, 0, 0, 0]] + [[Fraction(1, 5)] * 5] * 3
    found = audit(table, math.log(3), prior=PRIOR)
    assert found.epsilon == math.inf
    assert (found.worst.output, found.worst.largest, found.worst.smallest) == (2, Fraction(1, 5), 0)
    assert found.worst.unlikely in (0, 1)
    assert found.comparison is None
    assert "infinite" in str(found)


def test_a_threshold_that_is_off_by_one() -> None:
    """RRWithPrior that divides by ``1 + (k - 2) exp(-epsilon)``: private with the wrong k, and not optimal."""
    epsilon = 1.0
    sums = np.cumsum(PRIOR)
    wrong = int(np.argmax(sums / (1 + (np.arange(5) - 1) * math.exp(-epsilon)))) + 1
    chosen, right = optrand.rr_top_k(PRIOR, wrong, epsilon), optrand.rr_with_prior(PRIOR, epsilon)
    assert wrong != right.randomizer.n
    names = list(range(5))
    found = audit(
        chosen.randomizer.matrix, epsilon, labels=map(str, names), outputs=map(str, range(wrong)), prior=PRIOR
    )
    assert found.private_but_for_rounding
    assert found.gap is not None
    assert found.gap > 0.001


def test_a_sampler_with_a_prior_under_the_exponent() -> None:
    """Weights ``prior(v) exp(-epsilon |v - y| / 2)`` need a factor: distances reach 4, and sums depend on the label."""
    labels, epsilon = np.arange(5), 1.0
    weights = np.exp(-epsilon * np.abs(labels - labels[:, np.newaxis]) / 2 + np.log(PRIOR))
    table = weights / weights.sum(axis=1, keepdims=True)
    found = audit(table, epsilon, labels=labels, outputs=labels, prior=PRIOR)
    assert found.epsilon > 2.0
    assert not found.private_but_for_rounding
    # The exponential mechanism has to divide by the range of the distance, and by 2 for the sums.
    safe = np.exp(-epsilon * np.abs(labels - labels[:, np.newaxis]) / 4 / 2 + np.log(PRIOR))
    assert audit(safe / safe.sum(axis=1, keepdims=True), epsilon).private


def test_clipping_at_private_extremes() -> None:
    """Noise is cut off at the label's own distance from the middle: outputs beyond it name the labels beyond it."""
    noise = np.array([1, 2, 4, 2, 1]) / 10
    labels, outputs = [0, 1, 2], [-2, -1, 0, 1, 2, 3, 4]
    private = np.zeros((3, 7))
    for y in labels:
        for step, p in zip(range(-2, 3), noise, strict=True):
            private[y, min(max(y + step, -y), 2 + y) + 2] += p
    found = audit(private, 5.0, labels=labels, outputs=outputs)
    assert found.epsilon == math.inf
    assert found.worst.smallest == 0
    public = np.zeros((3, 3))
    for y in labels:
        for step, p in zip(range(-2, 3), noise, strict=True):
            public[y, min(max(y + step, 0), 2)] += p
    assert audit(public, math.log(7) + 1e-9).private


# ------------------------------------------------------------------------------------------------- command line


def run(*arguments: object):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_a_file_is_audited(tmp_path) -> None:
    table, prior = tmp_path / "table.csv", tmp_path / "prior.csv"
    table.write_text("label,0,1\n0,0.75,0.25\n1,1/4,3/4\n")
    prior.write_text("0,3\n1,1\n")
    done = run(table, "--epsilon", "1.1", "--prior", prior, "--json")
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["private"] is True
    assert answer["epsilon"] == math.log(3)
    assert answer["largest_bias"] == 0.25
    assert answer["worst"]["probabilities"] == [0.75, 0.25]
    assert answer["optimum"]["kind"] == "biased"
    assert run(table, "--epsilon", "1.1").stdout.startswith("private as stated: epsilon is 1.098612289")


def test_a_file_that_is_not_private_ends_with_3(tmp_path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("0.5,0.5,0\n0.25,0.5,0.25\n")
    done = run(table, "--epsilon", "1", "--labels", "5,2", "--outputs", "0:2")
    assert done.exit_code == UNVERIFIED
    assert "output 2.0 has probability 0.25 where the label is 2.0, and 0 where it is 5.0" in done.stdout
    assert done.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "not there"),
        ("", "is empty"),
        ("0.5;0.5\n0.5;0.5\n", "semicolons"),
        ("0.5,0.5\n1\n", "line 2 of"),
        ("label,a,b\n", "names and no probabilities"),
        ("0.5,x\n0.5,0.5\n", "row 0, column 1"),
    ],
)
def test_files_that_are_no_tables_are_refused(tmp_path, text: str | None, words: str) -> None:
    table = tmp_path / "table.csv"
    if text is not None:
        table.write_text(text)
    done = run(table, "--epsilon", "1")
    assert done.exit_code == WRONG_INPUT
    assert words in done.stderr
