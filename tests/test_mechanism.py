"""The deliverable: the proof in its constructor, its file, and the refusals of `load`."""

import json
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import given
from hypothesis import strategies as st
from tables import circulant, debiased, layered_arcs, mechanism_of, resealed, response, rows_of

from optrand import certify, checker, losses
from optrand.base._arithmetic import check_ratio, exp_bracket, privacy_ratio
from optrand.errors import InvalidFile, InvalidInput
from optrand.mechanism import Mechanism
from optrand.model._problem import Dual, Interval, Line, Problem, regression, unbiased_regression
from optrand.model._table import IntegerArcs, Table
from optrand.programs._mechanism import load
from optrand.sampling._entropy import SeededEntropy

HALF = [0.5, 0.5]
COIN = unbiased_regression([0, 1], HALF, 0.7)
COIN_TABLE = [[2, 1], [1, 2]]
COIN_ARCS = IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 1])


def coin(problem=COIN, *, dual=None, outputs=(-1.0, 2.0), weights=COIN_TABLE, ratio=Fraction(2)):
    if isinstance(weights, IntegerArcs):
        return Mechanism(problem, Table.of_arcs([0, 1], outputs, weights, ratio), dual)
    return Mechanism(problem, Table.of_rows([0, 1], outputs, weights), dual)


def document(mechanism, tmp_path):
    mechanism.save(tmp_path / "original.json", overwrite=True)
    return json.loads((tmp_path / "original.json").read_bytes())


def load_text(text, tmp_path):
    (tmp_path / "edited.json").write_text(text)
    return load(tmp_path / "edited.json")


# --------------------------------------------------------------------------------------------------------- round trips
@st.composite
def mechanisms(draw):
    """Tables and arcs, nested and on shared outputs, with weights of any size."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    k, blocks = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    epsilon = draw(st.sampled_from([1e-6, 0.01, 0.7, 1.0, 8.0, 40.0, 700.0]))
    scale = 10 ** draw(st.sampled_from([0, 3, 300]))
    ratio = privacy_ratio(epsilon)
    if draw(st.booleans()):
        weights = layered_arcs(rng, k, blocks, rng.choice([1, 3, 40]), scale)
        n = weights.n
    else:
        weights = circulant(rng, k, blocks, ratio, scale)
        n = weights.shape[1]
    labels = np.arange(k) * rng.choice([1.0, 0.1, -1e-3])
    problem = regression(labels, np.full(k, 1 / k), epsilon, bias_penalty=draw(st.sampled_from([0.0, 0.1, math.inf])))
    dual = Dual(*np.random.default_rng(rng.getrandbits(32)).normal(size=(2, k))) if draw(st.booleans()) else None
    return mechanism_of(problem, dual, np.array(sorted(rng.sample(range(-1000, 1000), n))) / 7, weights, ratio)


@given(mechanisms())
def test_a_saved_mechanism_comes_back_whole(tmp_path_factory, mechanism):
    path = tmp_path_factory.mktemp("round") / "m.json"
    mechanism.save(path)
    again = load(path)
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert (again.problem, again.table) == (mechanism.problem, mechanism.table)
    assert again.weights.tolist() == mechanism.weights.tolist()
    assert again.outputs.tolist() == mechanism.outputs.tolist()
    assert (again.dual is None) == (mechanism.dual is None)
    if mechanism.dual is not None:
        assert again.dual.alpha.tolist() == mechanism.dual.alpha.tolist()
        assert again.dual.beta.tolist() == mechanism.dual.beta.tolist()
    text = path.read_text()
    assert text.endswith("\n")
    content = json.loads(text)
    assert json.loads(resealed(content)) == content, "the digest is sha256 of the canonical content"


@given(mechanisms(), st.fractions(1, 5))
def test_figures_of_a_table_are_their_definitions(mechanism, ratio):
    table, total, realised = mechanism.table, mechanism.total, mechanism.realised_ratio
    found = table.biases, table.squared_errors
    assert "weights" not in vars(table), "nothing so far needed the rows"
    labels, outputs = (list(map(Fraction, numbers.tolist())) for numbers in (table.labels, table.outputs))
    rows = table.weights.tolist()
    shares = [[Fraction(w, total) for w in row] for row in rows]
    assert {sum(row) for row in rows} == {total}
    assert table.matrix.tolist() == [[w / total for w in row] for row in rows]
    columns = list(zip(*rows, strict=True))
    assert table.extremes == (list(map(min, columns)), list(map(max, columns)))
    assert realised == max(Fraction(max(column), min(column)) for column in columns) <= mechanism.ratio
    assert mechanism.realised_epsilon <= mechanism.epsilon

    def moment(y, row, power):
        return sum(p * (v - y) ** power for p, v in zip(row, outputs, strict=True))

    moments = [[moment(y, row, power) for y, row in zip(labels, shares, strict=True)] for power in (1, 2)]
    assert found == tuple(map(tuple, moments))
    largest = max(map(abs, table.biases))
    assert Fraction(math.nextafter(mechanism.bias, -1)) < largest <= Fraction(mechanism.bias)
    charges = [(error + 3 * bias**2) / 2 for bias, error in zip(*moments, strict=True)]
    assert (table.losses(3.0), table.losses(math.inf)) == (charges, [error / 2 for error in moments[1]])
    if 0 < mechanism.problem.bias_penalty < math.inf:
        worst, upper = max(table.losses(mechanism.problem.bias_penalty)), certify(mechanism, worst_case=True).upper
        assert math.nextafter(upper, 0) < worst <= upper

    pairs = [(y, z) for y in range(table.k) for z in range(table.k)]
    for y, z in pairs:
        assert table.pair_ratio(y, z) == max(a / b for a, b in zip(shares[y], shares[z], strict=True))
    assert table.excess(ratio) == max(
        sum(max(a - ratio * b, 0) for a, b in zip(shares[y], shares[z], strict=True)) for y, z in pairs
    )
    tops = [max(column) for column in zip(*shares, strict=True)]
    averages = [sum(column) / table.k for column in zip(*shares, strict=True)]
    assert table.leakage == sum(tops)
    assert table.pointwise_leakage([Fraction(1, table.k)] * table.k) == max(map(Fraction.__truediv__, tops, averages))
    assert mechanism_of(mechanism.problem, mechanism.dual, mechanism.outputs, mechanism.weights) == mechanism


@given(st.randoms(use_true_random=False), st.sampled_from([Fraction(5, 3), privacy_ratio(0.7), privacy_ratio(40.0)]))
def test_interval_columns_are_found_in_their_table(rng, ratio):
    """Arcs of any nesting, with any shared outputs: intervals of the ratio are found again if there are any."""
    given_arcs = layered_arcs(
        rng, rng.randint(1, 8), rng.randint(1, 4), rng.choice([1, 3, 40]), rng.choice([1, 10**30])
    )
    table = Table.of_arcs(range(given_arcs.k), range(given_arcs.n), given_arcs, ratio)
    assert table.weights.tolist() == rows_of(given_arcs, ratio)
    found = table.arcs(ratio)
    total = found.total(ratio)
    assert [[w * table.total for w in row] for row in rows_of(found, ratio)] == (table.weights * total).tolist()
    half = 1 + (ratio - 1) / 2
    smaller = table.arcs(half)
    assert smaller is None or Table.of_arcs(table.labels, table.outputs, smaller, half).largest_ratio == (
        table.largest_ratio
    )


def test_a_table_of_other_columns_has_no_intervals():
    """Two disjoint intervals of ratio R add up to heights ``R + 1`` and 2: for a ratio of 3, R must be 5."""
    table = Table.of_rows([0, 1, 2], [0, 1], [[3, 3], [1, 5], [3, 3]])
    assert table.arcs(Fraction(3)) is None
    assert table.arcs(Fraction(5)).masses.tolist() == [1, 1, 1, 1]
    problem = regression([0, 1, 2], [0.5, 0.25, 0.25], 1.1)
    assert Mechanism(problem, table).arcs is None
    assert Mechanism(problem, table).ratio == 3


def test_a_mechanism_differs_from_one_with_another_weight_dual_or_question():
    same = coin()
    assert same == coin()
    assert same != coin(weights=[[4, 2], [2, 4]]), "a table in other units is another file"
    assert same != coin(dual=Dual([0.0, 0.0], [0.0, 0.0]))
    assert same == coin(weights=COIN_ARCS), "the same table, whatever it was made of"
    assert same == coin(weights=[[2, 0, 1], [1, 0, 2]], outputs=[-1, 1, 2]), "outputs that never occur are left out"
    assert same != coin(problem=unbiased_regression([0, 1], HALF, 0.8))
    assert same != "coin"
    assert repr(same) == "<Mechanism: 2 labels, 2 outputs, epsilon 0.7>"


def test_unbiased_by_hand():
    """At ratio 2, debiased randomized response answers 0, 1, 2 with -3, 1, 5: all integers, so no bias at all."""
    problem = unbiased_regression([0, 1, 2], [0.2, 0.3, 0.5], 0.7)
    mechanism = response(problem, debiased([0, 1, 2], Fraction(2)), ratio=Fraction(2))
    assert mechanism.outputs.tolist() == [-3, 1, 5]
    assert mechanism.exact_biases == (0, 0, 0)
    assert (mechanism.bias, mechanism.total) == (0, 4)


# ------------------------------------------------------------------------------------------------------------- of arcs
def test_ten_thousand_labels_need_no_table(tmp_path):
    """Debiased response on 10,001 labels, a table of 10**8 integers: built, examined, saved, read and drawn from."""
    k = 10_001
    places = np.arange(k)
    arcs = IntegerArcs(k, places, places, places, np.full(k, 2**40, dtype=object))
    ratio = privacy_ratio(12.0)
    problem = unbiased_regression(places, np.full(k, 1 / k), 12.0)
    mechanism = mechanism_of(problem, None, debiased(places.tolist(), ratio), arcs, ratio)
    assert mechanism.realised_ratio == ratio
    assert mechanism.bias < 1e-12 * k
    mechanism.save(tmp_path / "m.json")
    again = load(tmp_path / "m.json")
    assert again == mechanism
    report = checker.check((tmp_path / "m.json").read_text())
    assert (report.ratio, report.bias) == (ratio, max(map(abs, mechanism.exact_biases)))
    assert float(report.value) == pytest.approx(mechanism.value, rel=1e-15)
    drawn = again.sample(np.full(1000, 17), source=SeededEntropy(2))
    # The probability is e^12 / (e^12 + 10,000), about 0.942: within five standard deviations of 7.4.
    assert abs((drawn == again.outputs[17]).sum() - 942) < 37
    for each in (mechanism, again):
        assert "weights" not in vars(each.table)


# ---------------------------------------------------------------------------------------------- tables without privacy
class Lying(np.ndarray):
    """An array that passes for any other: all of its figures are 1."""

    def min(self, *_, **__):
        return np.ones(2, dtype=object)

    def max(self, *_, **__):
        return np.ones(2, dtype=object)

    def astype(self, *_, **__):
        return self


class LyingFraction(Fraction):
    """A ratio that is below everything."""

    def __le__(self, _: object) -> bool:
        return True


class LyingArcs(IntegerArcs):
    """Arcs 50 times as likely for one label, of rows with two totals, that pass the checks of a constructor."""

    def total(self, _: Fraction) -> int:
        return 100


class LyingTable(Table):
    """A table that claims to have no ratio."""

    @property
    def largest_ratio(self) -> Fraction:
        return Fraction(1)


class LyingInteger(int):
    """A step that is above nothing and below nothing."""

    def __lt__(self, _: object) -> bool:
        return False


class LyingProblem(Problem):
    """A problem whose fields may be anything by the time that they are read again."""

    def __getattribute__(self, name: str) -> object:
        return 5.0 if name == "epsilon" else object.__getattribute__(self, name)


class MaskedLater:
    """An object that becomes an array with a mask, which numpy drops."""

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        return np.ma.array([[2, 1], [1, 2]], mask=[[0, 1], [0, 0]])


@by_case(
    "changes, message",
    ({"weights": [[2, 1], [1, 3]]}, "row 1 of weights has another total"),
    ({"weights": [[3, 1], [1, 3]]}, r"is 3, expected at most exp\(epsilon\) at epsilon = 0.7: .* not be private"),
    ({"weights": [[1, 0], [0, 1]]}, r"a weight is 0 where another .* would not be private"),
    ({"weights": [[2, -1], [-1, 2]]}, "output 0 has a negative weight"),
    ({"weights": [[0, 0], [0, 0]]}, "at least one"),
    ({"weights": [[2, 1]]}, r"weights has shape \(1, 2\), expected \(2, 2\)"),
    ({"weights": np.ma.array([[2, 1], [1, 2]], mask=[[0, 1], [0, 0]], fill_value=1)}, "weights is a masked array"),
    ({"weights": [np.ma.array([2, 1], mask=[0, 1]), [1, 2]]}, "weights is a masked array"),
    ({"weights": np.array([[99, 1], [1, 99]]).view(Lying)}, "would not be private"),
    ({"weights": np.array([[99, 1], [1, 99]], dtype=object).view(Lying)}, "would not be private"),
    ({"weights": MaskedLater()}, "weights is a masked array"),
    ({"weights": [[np.ma.array(2, mask=True), 1], [1, 2]]}, "weights is a masked array"),
    ({"weights": LyingArcs(2, [0, 0], [0, 0], [0, 1], [50, 1])}, "row 1 of weights has another total"),
    ({"problem": LyingProblem([0, 1], HALF, 0.7, losses.squared, 0.0, Line())}, "of type LyingProblem, expected"),
    ({"weights": COIN_ARCS, "ratio": LyingFraction(50)}, "would not be private"),
    ({"weights": [[2, 1], [1]]}, r"weights has shape \(2,\)"),
    ({"weights": [[2.0, 1.0], [1.0, 2.0]]}, "floats and booleans are not exact"),
    ({"weights": [[True, 1], [1, 1]]}, "floats and booleans are not exact"),
    ({"weights": np.array(COIN_TABLE) / 3}, "floats and booleans are not exact"),
    ({"weights": [[2 * 10**4000, 10**4000], [10**4000, 2 * 10**4000]]}, "divide the weights"),
    ({"weights": IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 2])}, "row 1 of weights has another total"),
    ({"weights": COIN_ARCS, "outputs": [0]}, "2 columns for 1 outputs"),
    ({"weights": IntegerArcs(3, [0, 2], [1, 2], [0, 1], [1, 1])}, "at increasing labels from 0 to 1|another total"),
    ({"weights": IntegerArcs(2, [0, 1], [0, 1], [0, 1], [10**4000] * 2)}, "divide the weights"),
    ({"weights": COIN_ARCS, "ratio": Fraction(21, 10)}, r"is 21/10, expected at most exp\(epsilon\)"),
    ({"weights": COIN_ARCS, "ratio": Fraction(10**400)}, "beyond 1e308"),
    ({"outputs": [2.0, -1.0]}, "must strictly increase"),
    ({"outputs": [1.0, 1.0]}, "must strictly increase"),
    ({"outputs": [-1.0, math.nan]}, "NaN or infinite"),
    ({"problem": "coin"}, "expected a Problem"),
    ({"problem": unbiased_regression([0, 2], HALF, 0.7)}, "labels of the table are not those of the problem"),
    ({"dual": [[0.0], [0.0]]}, "expected a Dual or None"),
    ({"dual": Dual([0.0], [0.0])}, "dual has 1 entries for 2 labels"),
    ({"problem": regression([0, 1], HALF, 0.7, outputs=[0, 1])}, r"2 output\(s\) lie outside .* first is -1"),
    ({"problem": regression([0, 1], HALF, 0.7, outputs=Interval(-1, 1))}, r"1 output\(s\) lie outside"),
    ({"problem": regression([0, 1], HALF, 0.7, loss=losses.poisson_log)}, "poisson_log needs outputs above 0"),
)
def test_the_constructor_refuses(changes, message):
    assert_error(message, coin, **changes)


COIN_COLUMNS = (((0, 2), (1, -1)), ((0, 1), (1, 1)))


@by_case(
    "changes, message",
    ({"labels": [1, 0]}, "labels of a table must strictly increase"),
    ({"labels": [0]}, "at increasing labels from 0 to 0"),
    ({"columns": COIN_COLUMNS[:1]}, "1 columns for 2 outputs"),
    ({"columns": (((0, 2), (0, -1)), COIN_COLUMNS[1])}, "steps of output 0"),
    ({"columns": (((1, 2), (0, -1)), COIN_COLUMNS[1])}, "steps of output 0"),
    ({"columns": (COIN_COLUMNS[0], ((0, 1), (2, 1)))}, "steps of output 1"),
    ({"columns": (COIN_COLUMNS[0], ((-1, 1), (1, 1)))}, "steps of output 1"),
    ({"columns": (COIN_COLUMNS[0], ((0, 3), (1, 0)))}, "other than 0"),
    ({"columns": (COIN_COLUMNS[0], ((0, 1.0), (1, 1)))}, "must be integers"),
    ({"columns": (COIN_COLUMNS[0], ((False, 1), (1, 1)))}, "must be integers"),
    ({"columns": (COIN_COLUMNS[0], ((0, np.int64(1)), (1, 1)))}, "must be integers"),
    ({"columns": (((0, 99), (1, LyingInteger(-98))), ((0, 1), (1, LyingInteger(98))))}, "must be integers"),
    ({"columns": (((0, 2), (1, -3)), ((0, 1), (1, 3)))}, "output 0 has a negative weight"),
    ({"columns": (COIN_COLUMNS[0], ())}, "output 1 never occurs"),
    ({"columns": (COIN_COLUMNS[0], ((0, 1), (1, -1)))}, "row 1 of weights has another total"),
)
def test_a_table_is_checked(changes, message):
    parts = {"labels": [0, 1], "outputs": [-1.0, 2.0], "columns": COIN_COLUMNS}
    assert Table.of_columns(**parts) == coin().table
    assert_error(message, Table.of_columns, **{**parts, **changes})


@by_case(
    "changes, message",
    ({"heights": [2, -1, 1, 1]}, "must be integers"),
    ({"heights": np.array([2, -1, 1, 1.0], dtype=object)}, "must be integers"),
    ({"heights": np.array([2, -1, 1, LyingInteger(1)], dtype=object)}, "must be integers"),
    ({"places": np.array([0, 1, 0, 1.0])}, "must be integers"),
    ({"places": np.array([0, 1, 0, 2])}, "steps of output 1 must be integers other than 0 at increasing labels"),
    ({"places": np.array([1, 0, 0, 1])}, "steps of output 0"),
    ({"places": np.array([0, 1, 0])}, "of one length"),
    ({"outputs": np.array([0, 1, 0, 1])}, "in order"),
    ({"outputs": np.array([-1, -1, 1, 1])}, "in order"),
    ({"outputs": np.array([1, 1, 2, 2])}, "3 columns for 2 outputs"),
    ({"outputs": np.array([0, 0, 1, 2**60])}, f"{2**60 + 1} columns for 2 outputs"),
    ({"places": np.array([[0, 1], [0, 1]])}, "arrays of one length"),
    (dict.fromkeys(("places", "outputs"), np.array(0)) | {"heights": np.array(1, dtype=object)}, "of one length"),
    ({"outputs": np.array([1, 1, 1, 1])}, "output 0 never occurs"),
    ({"outputs": np.array([0, 0, 0, 0])}, "output 1 never occurs"),
)
def test_steps_of_a_table_are_checked(changes, message):
    steps = Table.of_columns([0, 1], [-1.0, 2.0], COIN_COLUMNS).steps
    assert_error(message, Table, [0, 1], [-1.0, 2.0], steps._replace(**changes))
    assert_error("steps is of type tuple, expected Steps", Table, [0, 1], [-1.0, 2.0], COIN_COLUMNS)


def test_tables_for_other_labels_are_not_combined():
    """Their steps beyond the last label of the first table would be lost."""
    coin, wider = Table.of_rows([0, 1], [0, 1], [[3, 1], [1, 3]]), Table.of_rows([0, 1, 2], [0], [[1], [1], [1]])
    for first, second in ((coin, wider), (wider, coin), (coin, Table.of_rows([0, 3], [0], [[1], [1]]))):
        assert_error("different labels", first.combine, second, Fraction(1))
    for amounts in ([1], [1, 2, 3]):
        assert_error("reshape", coin.row_sums, amounts, error=ValueError)


def test_a_table_that_judges_itself_is_refused():
    with pytest.raises(InvalidInput, match="of type LyingTable, expected"):
        Mechanism(COIN, LyingTable.of_columns([0, 1], [-1, 2], (((0, 99), (1, -98)), ((0, 1), (1, 98)))))
    assert_error(r"expected a Table: Table.of_rows\(labels, outputs, weights\)", Mechanism, COIN, COIN_TABLE)


def test_integer_arrays_are_welcome_and_copied():
    weights = np.array(COIN_TABLE)
    mechanism = coin(weights=weights)
    weights[0, 0] = 100
    assert mechanism == coin()
    assert all(type(w) is int for w in mechanism.weights.flat)
    with pytest.raises(ValueError, match="read-only"):
        mechanism.weights[0, 0] = 3


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 1e-6, 0.01, 1.0, 8.0, 40.0, 700.0])
def test_privacy_from_both_sides(epsilon):
    """The table made for epsilon is private at epsilon, and at no budget that is smaller by a ten-billionth."""
    ratio = privacy_ratio(epsilon)
    top, bottom = ratio.numerator, ratio.denominator
    tight = {"outputs": [0.0, 1.0], "weights": [[top, bottom], [bottom, top]]}
    assert coin(problem=regression([0, 1], HALF, epsilon), **tight).realised_ratio == ratio
    assert_error("expected at most exp", coin, problem=regression([0, 1], HALF, epsilon * (1 - 1e-10)), **tight)


@pytest.mark.parametrize("digits", [61, 300, 3000])
def test_a_ratio_is_decided_however_close_it_is_to_the_exponential(digits):
    low, high = exp_bracket(1.0, digits)
    check_ratio(low, 1.0)
    assert_error("expected at most exp", check_ratio, high, 1.0)


# ---------------------------------------------------------------------------------------------------- refusals of load
def set_at(*path, to):
    def edit(content):
        *parents, last = path
        for name in parents:
            content = content[name]
        content[last] = to

    return edit


EDITS = [
    (set_at("columns", 0, 0, 1, to="-9" + "9" * 4000), "negative weight"),
    (set_at("columns", 0, 1, 1, to="0"), "integers other than 0"),
    (set_at("columns", 0, 1, 1, to="-0"), "integers other than 0"),
    (set_at("columns", 0, 1, 0, to=2), "at increasing labels from 0 to 1"),
    (set_at("columns", 0, 1, 0, to=10**19), "at increasing labels from 0 to 1"),
    (set_at("columns", 0, 1, 0, to=0), "at increasing labels from 0 to 1"),
    (set_at("columns", 0, 1, to=[1]), "another form"),
    (set_at("columns", 0, to=[]), "output 0 never occurs"),
    (set_at("columns", to=[[[0, "2"], [1, "-1"]]]), "1 columns for 2 outputs"),
    (set_at("columns", to={}), "0 columns for 2 outputs"),
    (set_at("columns", 0, 1, 1, to="-2"), "row 1 of weights has another total"),
    (set_at("columns", to=[[[0, "3"], [1, "-2"]], [[0, "1"], [1, "2"]]]), "would not be private"),
    (lambda content: content.pop("columns"), "the file lacks field"),
    (set_at("weights", to=[["2", "1"], ["1", "2"]]), "the file has the unknown field"),
    (set_at("outputs", 0, to=True), "outputs holds values of type float64, expected numbers"),
    (set_at("outputs", 0, to=-1), "not written as save"),
    (set_at("problem", "epsilon", to=0.69), r"expected at most exp\(epsilon\)"),
    (set_at("problem", "remark", to="x"), "a field too many"),
    (set_at("problem", "labels", to=[0.0, 1.0, 2.0]), "2 entries for 3 labels"),
    (set_at("dual", to={"alpha": [0.0], "beta": [0.0]}), "dual has 1 entries for 2 labels"),
    (set_at("dual", to=[]), "another form"),
    (set_at("remark", to="x"), "the file has the unknown field"),
]


@pytest.mark.parametrize(("edit", "message"), EDITS)
def test_what_is_no_mechanism_is_refused_even_when_the_digest_is_right(edit, message, tmp_path):
    content = document(coin(), tmp_path)
    edit(content)
    assert_error(message, load_text, resealed(content), tmp_path, error=InvalidFile)
    assert_error(None, checker.check, resealed(content), error=checker.Refused)


def test_files_of_many_weights_and_of_huge_ones(tmp_path):
    """At epsilon 700 an integer has some 320 digits. Saving and loading must not meet Python's limit of 4,300."""
    ratio = privacy_ratio(700.0)
    problem = regression(np.arange(8), np.full(8, 1 / 8), 700.0)
    mechanism = response(problem, np.arange(8), ratio=ratio)
    assert len(str(mechanism.total)) > 300
    mechanism.save(tmp_path / "m.json")
    assert load(tmp_path / "m.json") == mechanism
    big = mechanism_of(problem, None, np.arange(8), mechanism.weights * 10**3600, ratio)
    big.save(tmp_path / "big.json")
    assert load(tmp_path / "big.json") == big
