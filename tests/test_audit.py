"""Audits of other people's randomizers: the exact epsilon from both sides, and the published mistakes."""

import json
import math
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from asserting import assert_error, by_case
from commands import invoke

import optrand
from optrand import audit
from optrand.audits._reading import read_sheet
from optrand.base._arithmetic import exp_bracket, float_above, log_above
from optrand.cli import UNVERIFIED, WRONG_INPUT
from optrand.closed_forms._regression import design_debiased_rr

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
    table = design_debiased_rr(range(5), 1.0).randomizer.matrix
    found = audit(table, 1.0)
    assert (found.private, found.private_up_to_rounding, found.findings) == (False, True, ())
    assert str(audit([["0.3", "0.7"]] * 2, 1.0)) == "private: the output does not depend on the label"
    exact = audit([[Fraction(p) for p in row] for row in table.tolist()], 1.0)
    assert not exact.private_up_to_rounding
    assert exact.findings[0].startswith("not 1-DP: epsilon is 1.000000001, as output 0")
    assert audit([[repr(p) for p in row] for row in table.tolist()], 1.0).private_up_to_rounding
    assert not audit([[f"{p:.4f}" for p in row] for row in table.tolist()], 1.0).private_up_to_rounding
    assert not audit(table, 1.0 - 1e-6).private_up_to_rounding


def test_mechanisms_of_ours_pass_and_are_optimal() -> None:
    labels, prior = [0.0, 1.0, 2.5, 7.0, 9.0], np.array(PRIOR)
    mechanism = optrand.solve(optrand.unbiased_regression(labels, prior, 1.0))
    shares = [[Fraction(w, mechanism.total) for w in row] for row in mechanism.weights.tolist()]
    found = audit(shares, 1.0, labels=labels, outputs=mechanism.outputs, prior=prior)
    assert found.private
    assert (found.epsilon, found.biases) == (mechanism.realised_epsilon, mechanism.exact_biases)
    assert found.comparison.kind == "unbiased"
    assert found.comparison.value == sum(map(np.multiply, map(Fraction, PRIOR), mechanism.table.losses()))
    assert found.gap < 1e-9


def test_the_gap_is_that_of_the_certificate() -> None:
    labels, prior = [0, 1, 2, 3, 4], np.array(PRIOR)
    response_table = optrand.debiased_rr(labels, 1.0)
    problem = optrand.unbiased_regression(labels, prior, 1.0)
    proof = optrand.Mechanism(problem, response_table.table, optrand.solve(problem).dual).certificate
    found = audit(response_table.matrix, 1.0, labels=labels, outputs=response_table.outputs, prior=prior)
    assert found.gap == pytest.approx(proof.gap, rel=1e-9)
    biased = audit(response(5, Fraction(2)), 1.0, labels=labels, outputs=labels, prior=prior)
    assert biased.comparison.kind == "biased"
    assert biased.comparison.optimum.lower == pytest.approx(optrand.rr_on_bins(labels, prior, 1.0).certificate.lower)


def test_floats_of_more_digits_are_not_rounded() -> None:
    """A difference of 2**-63 vanishes in Python's floats. An entry that is 0 in only one row decides."""
    table = np.array([[1, 0], [1, 0]], dtype=np.longdouble)
    table[0] += np.array([-1, 1]) * np.longdouble(2) ** -63
    if table[0, 0] == 1:
        pytest.skip("long doubles are doubles here")
    assert (audit(table, 1.0).table.weights[0, 0], audit(table, 1.0).epsilon) == (2**63 - 1, math.inf)


def test_rows_that_do_not_sum_to_one_are_said_and_normalised() -> None:
    found = audit([["0.5", "0.4"], ["0.1", "0.9"]], math.log(5), labels=[0, 1], outputs=[0, 1])
    assert found.row_errors == (Fraction(-1, 10), 0)
    assert found.epsilon <= math.log(5) + 1e-15 < found.normalised_epsilon
    assert found.biases == (Fraction(4, 9), Fraction(-1, 10))
    assert not found.private
    assert "1 row(s) do not sum to 1, that of label 0 misses it by 0.1" in str(found)
    for row in (["0.2", "0.2"], ["0.9", "0.9"], [0.2, 0.2], [0.5, 0.5 - 1e-8]):
        found = audit([["0.5", "0.5"], row], 2.0)
        assert (found.private, found.private_up_to_rounding) == (False, False)
        assert found.findings[0].startswith("1 row(s) do not sum to 1, that of label 1")
        assert str(found).startswith("NOT private as stated")


def test_audits_and_certificates_have_no_truth_value() -> None:
    for one in (audit([["0.5", "0.5"]], 1.0), optrand.rr_with_prior(PRIOR, 1.0).certificate):
        assert_error("neither true nor false", bool, one, error=TypeError)


def test_negative_probabilities_are_no_privacy_and_have_no_leakage() -> None:
    found = audit([["1.5", "-0.5"], ["1.5", "-0.5"]], 1.0, prior=[0.5, 0.5])
    assert (found.epsilon, found.private, found.comparison) == (math.inf, False, None)
    assert "2 probabilities are negative" in found.findings
    assert (found.pair_epsilons, found.delta(1.0), found.maximal_leakage, found.guess) == (None,) * 4
    assert "1 probability is negative" in audit([["1.5", "-0.5"], ["0.5", "0.5"]], 1.0).findings


def test_classes_by_name_are_compared_by_their_hits() -> None:
    mechanism = optrand.rr_with_prior(PRIOR, 1.0)
    names = list("abcde")
    kept = [names[int(v)] for v in mechanism.outputs]
    found = audit(mechanism.matrix, 1.0, labels=names, outputs=kept, prior=PRIOR)
    assert found.comparison.kind == "classes"
    assert found.gap < 1e-12
    assert found.bias is None


@by_case(
    "matrix, options, words",
    (optrand.rr_with_prior(PRIOR, 1.0), {}, r"of type Mechanism, which optrand\.certify proves: pass a table"),
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
    # A set has no order, and the keys of a dict or the numbers of bytes are names by mistake.
    ([[0.5], [0.5]], {"labels": {0, 1}}, "labels are of type set"),
    ([[0.5], [0.5]], {"labels": {"a": 1, "b": 2}}, "labels are of type dict"),
    ([[0.5], [0.5]], {"labels": b"ab"}, "labels are of type bytes"),
    ([[0.5], [0.5]], {"labels": np.ma.array(["a", "b"], mask=[0, 1])}, "labels has masked cells"),
    ([[Decimal("sNaN"), 0.5]], {}, "is sNaN"),
    ([[0.5], [0.5]], {"labels": [[0], [1]]}, "labels hold lists or other things that cannot be names"),
    ([[0.5, 0.5]], {"outputs": [{}, {}]}, "outputs hold lists or other things that cannot be names"),
)
def test_what_is_no_table_is_refused(matrix, options: dict, words: str) -> None:
    assert_error(words, audit, matrix, 1.0, **options)


# ------------------------------------------------------------------------------------------- published mistakes
def test_a_sampler_with_a_prior_under_the_exponent() -> None:
    """Weights ``prior(v) exp(-epsilon |v - y| / 2)``, normalised row by row, spend more than epsilon.

    Two labels at distance 4 change a weight by up to exp(2 epsilon) and the sum of a row as well. Divided by 4, the
    range of the distance, both change by at most exp(epsilon / 2): the exponential mechanism.
    """
    labels, epsilon = np.arange(5), 1.0
    distances = np.abs(labels - labels[:, np.newaxis])
    weights, safe = (np.array(PRIOR) * np.exp(-epsilon * d / 2) for d in (distances, distances / 4))
    found = audit(weights / weights.sum(axis=1, keepdims=True), epsilon, labels=labels, outputs=labels)
    # The worst ratio, by hand: output 4 of labels 4 and 0.
    sums = weights.sum(axis=1)
    assert found.epsilon == pytest.approx(2 * epsilon + math.log(sums[0] / sums[4]), rel=1e-12)
    assert found.epsilon > 2 * epsilon
    assert not found.private_up_to_rounding
    assert found.findings[0].startswith("not 1-DP")
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
    assert (found.epsilon, found.worst.smallest) == (math.inf, 0)
    public = np.zeros((3, 3))
    for y in labels:
        for step, p in zip(range(-2, 3), noise, strict=True):
            public[y, min(max(y + step, 0), 2)] += p
    assert audit(public, math.log(7) + 1e-9).private


# ---------------------------------------------------------------------------------- pairs, delta, leakage, guesses
def test_each_pair_has_its_epsilon_delta_leakage_and_guess_by_hand() -> None:
    """Rows (1/2, 1/2, 0), (1/4, 1/4, 1/2), (1/8, 3/8, 1/2).

    Ratios of rows 0 and 1: 2, and infinite the other way. Of rows 1 and 2: 2 and 3/2. Largest entries of the columns
    sum to 1/2 + 1/2 + 1/2. Under (1/2, 1/4, 1/4) the best guesses keep 1/4 + 1/4 + 1/8.
    """
    half, quarter, eighth = Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)
    table = [[half, half, 0], [quarter, quarter, half], [eighth, 3 * eighth, half]]
    found = audit(table, 1.0, prior=[0.5, 0.25, 0.25])
    expected = [[1, 2, 4], [math.inf, 1, 2], [math.inf, 1.5, 1]]
    assert found.pair_epsilons == pytest.approx(np.log(expected), rel=1e-15)
    for ratio, epsilon in zip(np.ravel(expected), np.ravel(found.pair_epsilons), strict=True):
        # Rounded up.
        assert ratio == epsilon == math.inf or exp_bracket(epsilon)[1] >= Fraction(ratio)
    # Label 1 has output 2 with probability 1/2, label 0 never: delta is 1/2 at least, at any epsilon.
    assert found.delta(5.0) == 0.5
    # At epsilon 0 the total variation: rows 0 and 2 differ by 3/8 + 1/8.
    assert found.delta(0.0) == 0.5
    assert found.maximal_leakage == pytest.approx(math.log(1.5), rel=1e-15)
    assert found.guess == 0.625
    assert audit(table, 1.0).guess == 0.5


def test_delta_is_that_of_the_definition_for_every_set_of_outputs() -> None:
    """The largest of ``P(S) - exp(epsilon) Q(S)`` over all sets of outputs, by trying them."""
    weights = np.random.default_rng(3).integers(0, 20, (4, 5))
    weights[:, 4] = 80 - weights[:, :4].sum(axis=1)
    table = [[Fraction(int(w), 80) for w in row] for row in weights]
    found = audit(table, 1.0)
    for epsilon in (0.0, 0.1, 1.0, 3.0):
        e = Fraction(math.exp(epsilon))
        sets = [[o for o in range(5) if code >> o & 1] for code in range(32)]
        best = max(
            sum(first[o] for o in chosen) - e * sum(second[o] for o in chosen)
            for first in table
            for second in table
            for chosen in sets
        )
        assert best * (1 - Fraction(1, 2**40)) <= Fraction(found.delta(epsilon)) <= best + Fraction(1, 2**40)
    for epsilon in (-1.0, math.nan, 1e4):
        assert_error(None, found.delta, epsilon)


def test_what_is_reported_of_pairs_is_that_of_the_whole() -> None:
    """For the mechanisms of programs, whose tables compute all three in their own way. Rows are normalised."""
    mechanism = optrand.solve(optrand.programs.lp1([0.5, 0.3, 0.2], 1.0))
    weights, total = mechanism.table.weights, mechanism.table.total
    found = audit([[Fraction(w, total) for w in row] for row in weights.tolist()], 1.0)
    assert found.pair_epsilons.max() == found.epsilon == found.normalised_epsilon
    assert found.delta(0.5) == float_above(mechanism.table.excess(exp_bracket(0.5)[0]))
    assert (found.delta(1.0), found.maximal_leakage) == (0.0, log_above(mechanism.table.leakage))
    scaled = audit([[int(w) * (y + 1) for w in row] for y, row in enumerate(weights.tolist())], 1.0)
    assert scaled.pair_epsilons.tolist() == found.pair_epsilons.tolist()
    assert (scaled.delta(0.5), scaled.guess) == (found.delta(0.5), found.guess)


# ------------------------------------------------------------------------------------------------- command line
run = partial(invoke, "audit")


def test_a_file_is_audited(tmp_path) -> None:
    table, prior = tmp_path / "table.csv", tmp_path / "prior.csv"
    table.write_text("label,0,1\n0,0.75,0.25\n1,1/4,3/4\n")
    prior.write_text("0,3\n1,1\n")
    done = run(table, "--epsilon", "1.1", "--prior", prior, "--json", code=0)
    answer = json.loads(done.stdout)
    assert answer["private"] is True
    assert (answer["epsilon"], answer["largest_bias"]) == (math.log(3), 0.25)
    assert (answer["worst"]["probabilities"], answer["optimum"]["kind"]) == ([0.75, 0.25], "biased")
    assert answer["pair_epsilons"] == [[0.0, math.log(3)], [math.log(3), 0.0]]
    assert answer["delta_at_stated_epsilon"] == 0.0
    assert answer["maximal_leakage"] == pytest.approx(math.log(1.5), rel=1e-15)
    # Output 0 is guessed as label 0: 3/4 of 3/4. So is output 1: 3/4 of 1/4 is no less than 1/4 of 3/4.
    assert answer["guess"] == 0.75
    told = run(table, "--epsilon", "1.1").stdout
    assert told.startswith("private as stated: epsilon is 1.098612289")
    assert "guessed with a chance of at most 0.75 if all labels are as likely" in told


def test_a_file_that_is_not_private_ends_with_3(tmp_path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("0.5,0.5,0\n0.25,0.5,0.25\n")
    done = run(table, "--epsilon", "1", "--labels", "5,2", "--outputs", "0:2", code=UNVERIFIED)
    assert "output 2.0 has probability 0.25 if the label is 2.0, and 0 if it is 5.0" in done.stdout
    assert done.stderr.startswith("error: ")
    done = run(table, "--epsilon", "1", "--labels", "no,yes", "--outputs", "a,b,c", code=UNVERIFIED)
    assert "output c has probability 0.25 if the label is yes, and 0 if it is no" in done.stdout


ROWS = [[0.0, 0.5, 0.5], [0.6, 0.2, 0.2]]
NAMES = ["low", "mid", "high"]


def _frame(**options: object) -> str:
    return pd.DataFrame(ROWS, columns=NAMES, index=options.pop("labels", None)).to_csv(**options)


@by_case(
    "text, labels, outputs",
    ("0.0,0.5,0.5\n0.6,0.2,0.2\n", None, None),
    (_frame(index=False), None, NAMES),
    (_frame(), (0.0, 1.0), NAMES),
    (_frame(labels=["no", "yes"]), ("no", "yes"), NAMES),
    (_frame(labels=[10, 20], index_label="age"), (10.0, 20.0), NAMES),
    (_frame(index_label="label"), (0.0, 1.0), NAMES),
    (_frame(header=False, index=False), None, None),
    (pl.DataFrame(dict(zip(NAMES, zip(*ROWS, strict=True), strict=True))).write_csv(), None, NAMES),
    (pl.DataFrame({"age": ["a", "b"], "x": [0.5, 0.1], "z": [0.5, 0.9]}).write_csv(), ("a", "b"), ["x", "z"]),
    # R: write.csv, without row names, and write.table with sep = ",".
    ('"","low","mid","high"\n"1",0,0.5,0.5\n"2",0.6,0.2,0.2\n', (1.0, 2.0), NAMES),
    ('"low","mid","high"\n0,0.5,0.5\n0.6,0.2,0.2\n', None, NAMES),
    ('"low","mid","high"\n"1",0,0.5,0.5\n"2",0.6,0.2,0.2\n', (1.0, 2.0), NAMES),
    # NumPy: savetxt with a header.
    ("# low,mid,high\n0.0,0.5,0.5\n0.6,0.2,0.2\n", None, NAMES),
    (",0,1\n0,0.75,0.25\n1,0.25,0.75\n", (0.0, 1.0), [0.0, 1.0]),
    ("y,0,1\n0,0.75,0.25\n1,0.25,0.75\n", (0.0, 1.0), [0.0, 1.0]),
    (",0,1\nno,0.75,0.25\nyes,0.25,0.75\n", ("no", "yes"), [0.0, 1.0]),
    ("label,0,1\nno,0.75,0.25\nyes,0.25,0.75\n", ("no", "yes"), [0.0, 1.0]),
    ("age,<18,18+\n<18,0.75,0.25\n18+,0.25,0.75\n", ("<18", "18+"), ["<18", "18+"]),
    # One of the two readings is exact, and the other is not.
    ("low,mid,high\n0.0,0.5,0.5\n0.04,0.48,0.48\n", None, NAMES),
    (",mid,high\n0.01,0.5,0.5\n0.02,0.25,0.75\n", (0.01, 0.02), NAMES[1:]),
)
def test_names_are_read_as_writers_of_tables_write_them(tmp_path, text: str, labels: tuple, outputs: list) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    sheet = read_sheet(path)
    assert (sheet.labels, sheet.outputs) == (labels, None if outputs is None else tuple(outputs))
    width = 3 if outputs is None else len(outputs)
    assert [len(row) for row in sheet.entries] == [width, width]


@by_case(
    "text, words",
    (None, "not there"),
    ("", "is empty"),
    ("0.5;0.5\n0.5;0.5\n", "semicolons"),
    ("0.5,0.5\n1\n", "line 2 of"),
    ("label,a,b\n", "names and no probabilities"),
    ("0.5,x\n0.5,0.5\n", "the first line of"),
    ("a,0.75,0.25\nb,0.25,0.75\n", "the first line of"),
    ("a,0.75,x\nb,0.25,0.75\n", "the first line of"),
    ("0,1,2\n0.5,0.25,0.25\n0.2,0.4,0.4\n", "may begin with names"),
    ("0,1\n1,0\n", "may begin with names"),
    ("0,0.75,0.25\n1,0.25,0.75\n", "may begin with names"),
    ("low,mid,high\n0,0.5,0.5\n0,0.2,0.8\n", "the first column of"),
    ("low,mid,high\n0.5,0.5,0.5\n0.6,0.5,0.5\n", "the first column of"),
    ("low,mid,high\n0,0.5,0.5\nn/a,0.2,0.2\n", "the first column of"),
    ("label,mid,high\n0,0.5,0.5\n0.6,0.2,0.2\n", "the first column of"),
    # No names above: the first label is "y", or missing, and its row is not to be lost.
    ("y,0.9,0.1\nn,0.1,0.9\n", "the first line of"),
    (",0.9,0.1\nn,0.1,0.9\n", "the first line of"),
    ("class,2/7,5/7\n0,0,1\n", "the first line of"),
    ("y,0.9,0.2\nn,0.5,0.5\n", "the first line of"),
    ("no,10%,90%\nyes,0.5,0.5\n", "the first line of"),
    ("no,nan,nan\nyes,0.5,0.5\n", "the first line of"),
    # Probabilities that cannot be read are no names of labels, nor are those next to nothing.
    ("low,mid,high\n1e-401,0.5,0.5\n1e-402,0.5,0.5\n", "the first column of"),
    ("low,mid,high\n1/1e401,0.5,0.5\n2/1e401,0.5,0.5\n", "the first column of"),
    ("low,mid,high\n1%,0.5,0.5\n2%,0.5,0.5\n", "the first column of"),
    ('low,mid,high\n"0,1",0.5,0.5\n"0,2",0.5,0.5\n', "the first column of"),
    ("low,mid,high\n0x1p-3,0.5,0.5\n0x1p-4,0.5,0.5\n", "the first column of"),
    *((f"{cell},{cell}\n0.3,0.7\n0.7,0.3\n", "the first line of") for cell in ("½", "500‰", "≤0.5", "50 %", "0x1p-1")),
    ("y,n\n0.0,1.00000000000000\n0.000000000000001,0.999999999999999\n", "the first column of"),
    ("low,mid,high\n1e-15,0.499999999999999,0.5\nn/a,0.5,0.5\n", "the first column of"),
    # A quote that is left open swallows lines.
    ('a,b\n0.5,0.5\n0.5,"0.5\n0.0,1.0\n', "line 4 of"),
    ('label,a,b\nx,0.5,0.5\n"y,0,1\nz",0.5,0.5\n', "of several lines"),
    ("a,b\n" + "0" * 140_000 + ",1\n", "line 2 of"),
)
def test_files_that_are_no_tables_are_refused(tmp_path, text: str | None, words: str) -> None:
    table = tmp_path / "table.csv"
    if text is not None:
        table.write_text(text)
    done = run(table, "--epsilon", "1", code=WRONG_INPUT)
    assert words in done.stderr


@by_case("text, options", (",a,b\nno,3/4,1/4\nyes,1/2,1/2\n", ()), ("3/4,1/4\n1/2,1/2\n", ("--labels", "no,yes")))
def test_the_prior_of_named_rows_has_their_names(tmp_path, text: str, options: tuple[str, ...]) -> None:
    table, prior = tmp_path / "table.csv", tmp_path / "prior.csv"
    table.write_text(text)
    prior.write_text("label,count\nyes,2\nno,3\n")
    done = run(table, "--epsilon", "1.1", "--prior", prior, "--json", *options, code=0)
    # From output a no, with 3/5 of 3/4. From output b yes, with 2/5 of 1/2.
    assert json.loads(done.stdout)["guess"] == pytest.approx(0.65, rel=1e-15)


def test_a_frame_names_its_rows_and_columns():
    """An output is right if it has the name of the label, wherever its column stands."""
    frame = pd.DataFrame([[0.1, 0.9], [0.8, 0.2]], index=["a", "b"], columns=["b", "a"])
    found = audit(frame, 3.0, prior=[0.5, 0.5])
    assert (found.labels, found.outputs) == (("a", "b"), ("b", "a"))
    assert found.comparison.value == pytest.approx(0.85)
    for arguments in (
        {"labels": ["b", "a"], "outputs": ["b", "a"]},
        {"labels": ["a", "b"], "outputs": ["a", "b"]},
        {"prior": pd.Series([0.5, 0.5], index=["b", "a"])},
    ):
        assert_error("order", audit, frame, 3.0, **arguments)
    assert audit(pd.DataFrame([[0.5, 0.5], [0.5, 0.5]]), 1.0).labels == (0, 1)
