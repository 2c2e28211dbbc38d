"""The deliverable: what its constructor proves, what its file keeps, and what `load` refuses."""

import copy
import itertools
import json
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import circulant, debiased, layered_arcs, resealed, response

from optrand import losses
from optrand.base.arithmetic import exp_bracket, privacy_ratio
from optrand.errors import InvalidFile, InvalidInput
from optrand.mechanism.mechanism import DENSE, Mechanism, load
from optrand.mechanism.privacy import verified_ratio, verified_total
from optrand.model.arcs import IntegerArcs
from optrand.model.outputs import Interval
from optrand.model.problem import regression, unbiased_regression
from optrand.model.solution import Dual
from optrand.sampling import ArcSampler, Sampler
from optrand.sampling.entropy import SeededEntropy

HALF = [0.5, 0.5]
COIN = unbiased_regression([0, 1], HALF, 0.7)
COIN_TABLE = [[2, 1], [1, 2]]
COIN_ARCS = IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 1])


def coin(**changes):
    parts = {"problem": COIN, "dual": None, "outputs": [-1.0, 2.0], "weights": COIN_TABLE, "ratio": Fraction(2)}
    return Mechanism(**{**parts, **changes})


def document(mechanism, tmp_path):
    mechanism.save(tmp_path / "original.json", overwrite=True)
    return json.loads((tmp_path / "original.json").read_bytes())


def load_text(text, tmp_path):
    (tmp_path / "edited.json").write_text(text)
    return load(tmp_path / "edited.json")


# --------------------------------------------------------------------------------------------------------- round trips


@st.composite
def mechanisms(draw):
    rng = random.Random(draw(st.integers(0, 2**32)))
    k, blocks = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    epsilon = draw(st.sampled_from([1e-6, 0.01, 0.7, 1.0, 8.0, 40.0, 700.0]))
    scale = 10 ** draw(st.sampled_from([0, 3, 300]))
    ratio = privacy_ratio(epsilon)
    weights = circulant(rng, k, blocks, ratio, scale)
    outputs = sorted(rng.sample(range(-1000, 1000), k * blocks))
    labels = np.arange(k) * rng.choice([1.0, 0.1, -1e-3])
    problem = regression(labels, np.full(k, 1 / k), epsilon, bias_penalty=draw(st.sampled_from([0.0, 0.1, math.inf])))
    dual = Dual(*np.random.default_rng(rng.getrandbits(32)).normal(size=(2, k))) if draw(st.booleans()) else None
    return Mechanism(problem, dual, np.array(outputs) / 7, weights, ratio)


@settings(max_examples=60, deadline=None)
@given(mechanisms())
def test_a_saved_mechanism_comes_back_whole(tmp_path_factory, mechanism):
    path = tmp_path_factory.mktemp("round") / "m.json"
    mechanism.save(path)
    again = load(path)
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert again.problem == mechanism.problem
    assert again.weights.tolist() == mechanism.weights.tolist()
    assert again.outputs.tolist() == mechanism.outputs.tolist()
    assert again.ratio == mechanism.ratio
    assert (again.dual is None) == (mechanism.dual is None)
    if mechanism.dual is not None:
        assert again.dual.alpha.tolist() == mechanism.dual.alpha.tolist()
        assert again.dual.beta.tolist() == mechanism.dual.beta.tolist()
    again.save(path, overwrite=True)
    text = path.read_text()
    assert text.endswith("\n")
    assert json.loads(resealed(json.loads(text))) == json.loads(text), "the digest is sha256 of the canonical content"


@settings(max_examples=60, deadline=None)
@given(mechanisms())
def test_derived_quantities_are_those_of_the_table(mechanism):
    rows = mechanism.weights.tolist()
    assert {sum(row) for row in rows} == {mechanism.total}
    ratios = [Fraction(a, b) for column in zip(*rows, strict=True) for a in column for b in column]
    assert mechanism.realised_ratio == max(ratios) <= mechanism.ratio
    assert mechanism.realised_epsilon <= mechanism.epsilon
    biases = tuple(
        sum(Fraction(w, mechanism.total) * Fraction(v) for w, v in zip(row, mechanism.outputs, strict=True))
        - Fraction(y)
        for row, y in zip(rows, mechanism.labels, strict=True)
    )
    assert mechanism.exact_biases == biases
    largest = max(map(abs, biases))
    assert Fraction(math.nextafter(mechanism.bias, -1)) < largest <= Fraction(mechanism.bias)
    matrix = mechanism.randomizer.matrix
    assert matrix.tolist() == [[w / mechanism.total for w in row] for row in rows]


def test_a_mechanism_differs_from_one_with_another_weight_dual_or_question():
    same = coin()
    assert same == coin()
    assert same != coin(weights=[[4, 2], [2, 4]]), "a table in other units is another file"
    assert same != coin(dual=Dual([0.0, 0.0], [0.0, 0.0]))
    assert same != coin(problem=unbiased_regression([0, 1], HALF, 0.8))
    assert same != "coin"
    assert repr(same) == "<Mechanism: 2 labels, 2 outputs, epsilon 0.7>"


def test_unbiased_by_hand():
    """At ratio 2, debiased randomized response answers 0, 1, 2 with -3, 1, 5: all integers, so no bias at all."""
    problem = unbiased_regression([0, 1, 2], [0.2, 0.3, 0.5], 0.7)
    mechanism = response(problem, debiased([0, 1, 2], Fraction(2)), ratio=Fraction(2))
    assert mechanism.outputs.tolist() == [-3, 1, 5]
    assert mechanism.exact_biases == (0, 0, 0)
    assert mechanism.bias == 0
    assert mechanism.total == 4


def test_one_label_only():
    problem = unbiased_regression([3], [1], 1.0)
    mechanism = Mechanism(problem, None, [3.0], [[1]], privacy_ratio(1.0))
    assert mechanism.realised_ratio == 1
    assert mechanism.realised_epsilon == 0
    assert mechanism.exact_biases == (0,)
    assert mechanism.sample([3.0, 3.0]).tolist() == [3.0, 3.0]


def test_samples_follow_the_table():
    """10,000 draws from each row: within five standard deviations of 1/3 and 2/3 (fails once in two million runs)."""
    values = np.repeat([[0.0], [1.0]], 10_000, axis=1)
    noisy = coin().sample(values, source=SeededEntropy(7))
    assert noisy.shape == (2, 10_000)
    assert set(noisy.ravel().tolist()) == {-1.0, 2.0}
    ones = (noisy == 2.0).mean(axis=1)
    assert np.abs(ones - [1 / 3, 2 / 3]).max() < 5 * math.sqrt(2 / 9 / 10_000)
    with pytest.raises(InvalidInput):
        coin().sample([0.5])


# ------------------------------------------------------------------------------------------------------------- of arcs


def arc_mechanisms(count):
    """Mechanisms of arcs with the same given as tables: nested arcs, shared outputs, masses of any size."""
    for seed in range(count):
        rng = random.Random(seed)
        k, epsilon = rng.randint(1, 8), rng.choice([1e-6, 0.7, 1.0, 40.0, 700.0])
        arcs = layered_arcs(rng, k, rng.randint(1, 4), rng.choice([1, 3, 40]), rng.choice([1, 9, 10**30]))
        labels, outputs = np.arange(k) * 0.3 - 1, np.sort(np.array(rng.sample(range(-99, 99), arcs.n))) / 7
        problem = regression(labels, np.full(k, 1 / k), epsilon, bias_penalty=rng.choice([0.0, 0.1]))
        dual = Dual(*np.random.default_rng(seed).normal(size=(2, k))) if seed % 2 else None
        ratio = privacy_ratio(epsilon)
        yield tuple(Mechanism(problem, dual, outputs, weights, ratio) for weights in (arcs, arcs.table(ratio)))


def test_arcs_and_their_table_are_one_mechanism():
    for arcs, table in arc_mechanisms(60):
        assert arcs.arcs is not None
        assert table.arcs is None
        assert arcs.total == table.total
        assert arcs.realised_ratio == table.realised_ratio
        assert arcs.exact_biases == table.exact_biases
        assert repr(arcs) == repr(table)
        assert arcs != table, "another file"
        assert "weights" not in vars(arcs), "nothing so far needed the table"
        assert arcs.weights.tolist() == table.weights.tolist()
        with pytest.raises(ValueError, match="read-only"):
            arcs.weights[0, 0] = 1


def test_the_randomizer_of_arcs_has_arcs_with_rounded_masses():
    for arcs, table in arc_mechanisms(30):
        randomizer = arcs.randomizer
        low = arcs.ratio.denominator
        assert randomizer.arcs.masses.tolist() == [low * mass / arcs.total for mass in arcs.arcs.masses.tolist()]
        assert randomizer.outputs.tolist() == arcs.outputs.tolist()
        # The float table takes exp(epsilon) for the ratio, which is 2**-50 of exp(epsilon) - 1 above it at most.
        assert randomizer.epsilon == arcs.epsilon
        assert randomizer.matrix == pytest.approx(table.randomizer.matrix, rel=1e-13, abs=1e-300)


def test_the_randomizer_of_arcs_claims_no_ratio_that_is_not_there():
    """At epsilon 0.7 a ratio of 3/2, which is exp(0.405): the float table has the weights of the mechanism."""
    mechanism = coin(weights=COIN_ARCS, ratio=Fraction(3, 2))
    assert mechanism.randomizer.matrix == pytest.approx(np.array([[0.6, 0.4], [0.4, 0.6]]), rel=1e-15)
    assert mechanism.randomizer.epsilon == mechanism.realised_epsilon == pytest.approx(math.log(1.5), rel=1e-15)


def test_mechanisms_of_arcs_come_back_whole(tmp_path):
    for mechanism, _ in arc_mechanisms(40):
        mechanism.save(tmp_path / "m.json", overwrite=True)
        again = load(tmp_path / "m.json")
        assert again == mechanism
        assert hash(again) == hash(mechanism)
        for name in ("first", "last", "at", "masses"):
            assert getattr(again.arcs, name).tolist() == getattr(mechanism.arcs, name).tolist()
        content = json.loads((tmp_path / "m.json").read_bytes())
        assert "weights" not in content
        assert json.loads(resealed(content)) == content


def test_ten_thousand_labels_need_no_table(tmp_path):
    """Debiased response on 10,001 labels, a table of 10**8 integers: built, examined, saved, read and drawn from."""
    k = 10_001
    places = np.arange(k)
    arcs = IntegerArcs(k, places, places, places, np.full(k, 2**40, dtype=object))
    ratio = privacy_ratio(12.0)
    problem = unbiased_regression(places, np.full(k, 1 / k), 12.0)
    mechanism = Mechanism(problem, None, debiased(places.tolist(), ratio), arcs, ratio)
    assert mechanism.realised_ratio == ratio
    assert mechanism.bias < 1e-12 * k
    mechanism.save(tmp_path / "m.json")
    again = load(tmp_path / "m.json")
    assert again == mechanism
    assert isinstance(again.sampler, ArcSampler)
    drawn = again.sample(np.full(1000, 17), source=SeededEntropy(2))
    # The probability is e^12 / (e^12 + 10,000), about 0.942: within five standard deviations of 7.4.
    assert abs((drawn == again.outputs[17]).sum() - 942) < 37
    for each in (mechanism, again):
        assert "weights" not in vars(each)


def test_small_tables_are_drawn_from_as_tables():
    assert isinstance(coin(weights=COIN_ARCS).sampler, Sampler)
    k = math.isqrt(DENSE)
    for size, expected in ((k, Sampler), (k + 1, ArcSampler)):
        places = np.arange(size)
        arcs = IntegerArcs(size, places, places, places, [1] * size)
        problem = regression(places, np.full(size, 1 / size), 0.7)
        assert type(Mechanism(problem, None, places, arcs, Fraction(2)).sampler) is expected


# ------------------------------------------------------------------------------------------------- what is not private


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": [[2, 1], [1, 3]]}, "row 1 of weights has another total"),
        ({"weights": [[3, 1], [1, 3]]}, r"2 column\(s\) of weights break the ratio 2, .* would not be private"),
        ({"weights": [[1, 0], [0, 1]]}, r"weights\[0, 1\] is 0 .* would not be private"),
        ({"weights": [[2, -1], [-1, 2]]}, r"weights\[0, 1\] is negative"),
        ({"weights": [[0, 0], [0, 0]]}, r"2 column\(s\) of weights are all zero"),
        ({"weights": [[2, 1, 0], [1, 2, 0]], "outputs": [-1, 2, 3]}, "the first at output 2: leave out outputs"),
        ({"weights": [[2, 1]]}, r"weights has shape \(1, 2\), expected \(2, 2\)"),
        ({"weights": [[2, 1], [1]]}, r"weights has shape \(2,\)"),
        ({"weights": [[2.0, 1.0], [1.0, 2.0]]}, "floats and booleans are not exact"),
        ({"weights": [[True, 1], [1, 1]]}, "floats and booleans are not exact"),
        ({"weights": np.array(COIN_TABLE) / 3}, "floats and booleans are not exact"),
        ({"weights": [[2 * 10**4000, 10**4000], [10**4000, 2 * 10**4000]]}, "divide the weights"),
        ({"weights": IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 2])}, "row 1 is not covered as row 0 is"),
        ({"weights": IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 1]), "outputs": [0]}, "2 outputs, expected 2 and 1"),
        ({"weights": IntegerArcs(3, [0, 2], [1, 2], [0, 1], [1, 1])}, "3 labels and 2 outputs, expected 2 and 2"),
        ({"weights": IntegerArcs(2, [0, 1], [0, 1], [0, 1], [10**4000] * 2)}, "divide the weights"),
        ({"weights": COIN_ARCS, "ratio": Fraction(21, 10)}, r"expected at most exp\(epsilon\)"),
        ({"weights": COIN_ARCS, "ratio": Fraction(1)}, "expected more than 1"),
        ({"outputs": [2.0, -1.0]}, "must strictly increase"),
        ({"outputs": [1.0, 1.0]}, "must strictly increase"),
        ({"outputs": [-1.0, math.nan]}, "NaN or infinite"),
        ({"ratio": 2}, "expected a fractions.Fraction"),
        ({"ratio": Fraction(1)}, "ratio is 1, expected more than 1"),
        ({"ratio": Fraction(21, 10)}, r"ratio is 21/10, expected at most exp\(epsilon\)"),
        ({"ratio": 1 + Fraction(1, 10**4000)}, "more than 4000 digits"),
        ({"ratio": Fraction(10**400)}, "beyond 1e308"),
        ({"problem": "coin"}, "expected a Problem"),
        ({"dual": [[0.0], [0.0]]}, "expected a Dual or None"),
        ({"dual": Dual([0.0], [0.0])}, "dual has 1 entries for 2 labels"),
        ({"problem": regression([0, 1], HALF, 0.7, outputs=[0, 1])}, r"2 output\(s\) lie outside .* first is -1"),
        ({"problem": regression([0, 1], HALF, 0.7, outputs=Interval(-1, 1))}, r"1 output\(s\) lie outside"),
        ({"problem": regression([0, 1], HALF, 0.7, loss=losses.poisson_log)}, "poisson_log needs outputs above 0"),
    ],
)
def test_the_constructor_refuses(changes, message):
    with pytest.raises(InvalidInput, match=message):
        coin(**changes)


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
    mechanism = coin(problem=regression([0, 1], HALF, epsilon), ratio=ratio, **tight)
    assert mechanism.realised_ratio == ratio
    below = epsilon * (1 - 1e-10)
    with pytest.raises(InvalidInput, match="expected at most exp"):
        coin(problem=regression([0, 1], HALF, below), ratio=ratio, **tight)
    with pytest.raises(InvalidInput, match="break the ratio"):
        coin(problem=regression([0, 1], HALF, below), ratio=privacy_ratio(below), **tight)


@pytest.mark.parametrize("digits", [61, 300, 3000])
def test_a_ratio_is_decided_however_close_it_is_to_the_exponential(digits):
    low, high = exp_bracket(1.0, digits)
    assert verified_ratio(low, 1.0) == low
    with pytest.raises(InvalidInput, match="expected at most exp"):
        verified_ratio(high, 1.0)


def oracle(rows, ratio):
    """Epsilon-DP by its definition, every pair of labels and every output, and rows that are distributions."""
    if len({sum(row) for row in rows}) != 1 or min(map(min, rows)) < 0:
        return False
    columns = list(zip(*rows, strict=True))
    return all(any(column) for column in columns) and all(
        a * ratio.denominator <= ratio.numerator * b for column in columns for a, b in itertools.permutations(column, 2)
    )


def accepted(weights, ratio):
    try:
        verified_total(weights, ratio)
    except InvalidInput:
        return False
    return True


def test_a_hundred_thousand_one_unit_changes_against_the_definition():
    """Single weights moved by one, and units moved within a row so that only the ratios can decide."""
    rng = random.Random(2024)
    ratios = [Fraction(3, 2), Fraction(2), Fraction(8, 5), privacy_ratio(0.7), privacy_ratio(3.0)]
    verdicts = {(kind, verdict): 0 for kind in ("single", "moved") for verdict in (False, True)}
    for trial in range(1000):
        k, ratio = 1 + trial % 8, ratios[trial % len(ratios)]
        weights = circulant(rng, k, 1 + trial % 2, ratio, 3)
        n = weights.shape[1]
        assert oracle(weights.tolist(), ratio)
        assert accepted(weights, ratio)
        for _ in range(100):
            y, i, j, unit = rng.randrange(k), rng.randrange(n), rng.randrange(n), rng.choice([-1, 1])
            kind = "moved" if i != j and rng.random() < 0.7 else "single"
            changed = weights.copy()
            changed[y, i] += unit
            if kind == "moved":
                changed[y, j] -= unit
            truth = oracle(changed.tolist(), ratio)
            assert accepted(changed, ratio) == truth, (kind, ratio, weights.tolist(), changed.tolist())
            verdicts[kind, truth] += 1
    assert sum(verdicts.values()) == 100_000
    assert min(verdicts.values()) > 5_000, f"the test must see both verdicts of both kinds often: {verdicts}"


# --------------------------------------------------------------------------------------------------- what load refuses


def test_load_accepts_white_space(tmp_path):
    text = json.dumps(document(coin(), tmp_path), indent=2)
    assert load_text(text, tmp_path) == coin()


def set_at(*path, to):
    def edit(content):
        *parents, last = path
        for name in parents:
            content = content[name]
        content[last] = to

    return edit


EDITS = [
    (set_at("weights", 0, 0, to=2), "bare integer, expected an integer as a string"),
    (set_at("weights", 0, 0, to="+2"), r"weights\[0\]\[0\] is not a plain integer"),
    (set_at("weights", 0, 0, to="02"), "not a plain integer"),
    (set_at("weights", 0, 0, to=" 2"), "not a plain integer"),
    (set_at("weights", 0, 0, to="9" * 4001), "has 4001 digits"),
    (set_at("weights", 1, to=["3"]), r"weights\[1\] has 1 entries, expected 2"),
    (set_at("weights", to=[["2", "1"]]), r"shape \(1, 2\)"),
    (set_at("weights", to=[]), r"shape \(0,\)"),
    (set_at("weights", to={}), "weights is an object, expected a list"),
    (set_at("weights", 0, 0, to="3"), "row 1 of weights has another total"),
    (set_at("weights", to=[["3", "0"], ["0", "3"]]), "would not be private"),
    (set_at("weights", to=[["1", "2"], ["2", "2"]]), "another total"),
    (set_at("total", to="4"), "total is not that of its weights"),
    (set_at("total", to=3.0), "total is a number, expected an integer as a string"),
    (set_at("outputs", 0, to=True), r"outputs\[0\] is true or false"),
    (set_at("outputs", 0, to=-1), r"outputs\[0\] is a bare integer"),
    (set_at("outputs", to=[2.0, -1.0]), "must strictly increase"),
    (set_at("ratio", "denominator", to="0"), "not a fraction in lowest terms"),
    (set_at("ratio", to={"numerator": "4", "denominator": "2"}), "not a fraction in lowest terms"),
    (set_at("ratio", to={"numerator": "3", "denominator": "1"}), r"expected at most exp\(epsilon\)"),
    (set_at("ratio", to={"numerator": "3", "denominator": "2"}), "break the ratio 3/2"),
    (set_at("ratio", to="2"), "ratio is a string, expected an object"),
    (set_at("problem", "epsilon", to=0.69), r"expected at most exp\(epsilon\)"),
    (set_at("problem", "prior", to=[0.5, 0.6]), "prior sums to 1.1"),
    (set_at("problem", "remark", to="x"), "problem has the unknown field"),
    (set_at("dual", to={"alpha": [0.0], "beta": [0.0]}), "dual has 1 entries for 2 labels"),
    (set_at("dual", to=[]), "dual is a list, expected an object"),
    (set_at("remark", to="x"), "the file has the unknown field"),
    (set_at("schema", to=2), "written by a newer optrand"),
]


@pytest.mark.parametrize(("edit", "message"), EDITS)
def test_load_refuses_even_when_the_digest_is_right(edit, message, tmp_path):
    content = copy.deepcopy(document(coin(), tmp_path))
    edit(content)
    with pytest.raises(InvalidFile, match=message):
        load_text(resealed(content), tmp_path)


ARC_EDITS = [
    (set_at("arcs", "first", 0, to=1), "interval of the labels 0"),
    (set_at("arcs", "first", 0, to=-1), r"arcs.first\[0\] is negative, expected a bare integer of at least 0"),
    (set_at("arcs", "first", 0, to="0"), r"arcs.first\[0\] is a string, expected a bare integer"),
    (set_at("arcs", "last", 1, to=1.0), r"arcs.last\[1\] is a number, expected a bare integer"),
    (set_at("arcs", "last", 1, to=True), r"arcs.last\[1\] is true or false"),
    (set_at("arcs", "last", 1, to=2), "interval of the labels 0"),
    (set_at("arcs", "last", 1, to=10**19), "no vector of integers|interval of the labels"),
    (set_at("arcs", "last", 0, to=1), "row 1 is not covered as row 0 is"),
    (set_at("arcs", "last", to=[0]), "last is no vector of integers, one for each of the 2 masses"),
    (set_at("arcs", "last", to={}), "arcs.last is an object, expected a list"),
    (set_at("arcs", "at", to=[0, 0]), "2 labels and 1 outputs, expected 2 and 2"),
    (set_at("arcs", "at", to=[1, 0]), "leave no output out"),
    (set_at("arcs", "masses", 0, to="2"), "row 1 is not covered as row 0 is"),
    (set_at("arcs", "masses", 0, to="0"), "leave out arcs without mass"),
    (set_at("arcs", "masses", 0, to="01"), r"arcs.masses\[0\] is not a plain integer"),
    (set_at("arcs", "masses", 0, to=1), "expected an integer as a string"),
    (set_at("arcs", "masses", to=["2", "2"]), "total is not that of its weights"),
    (set_at("arcs", "masses", to=[]), "at least one"),
    (set_at("arcs", to=[]), "arcs is a list, expected an object"),
    (set_at("arcs", "remark", to=[]), "arcs has the unknown field"),
    (set_at("weights", to=[["2", "1"], ["1", "2"]]), "has 2 of the fields 'weights', 'arcs', expected one"),
    (set_at("ratio", "numerator", to="3"), r"expected at most exp\(epsilon\)"),
    (set_at("total", to="4"), "total is not that of its weights"),
]


@pytest.mark.parametrize(("edit", "message"), ARC_EDITS)
def test_load_refuses_what_is_no_arcs(edit, message, tmp_path):
    content = document(coin(weights=COIN_ARCS), tmp_path)
    edit(content)
    with pytest.raises(InvalidFile, match=message):
        load_text(resealed(content), tmp_path)


def test_load_refuses_a_file_without_a_table(tmp_path):
    content = document(coin(weights=COIN_ARCS), tmp_path)
    del content["arcs"]
    with pytest.raises(InvalidFile, match="has 0 of the fields"):
        load_text(resealed(content), tmp_path)


def test_load_refuses_a_wrong_digest(tmp_path):
    content = document(coin(), tmp_path)
    content["weights"] = [["1", "2"], ["2", "1"]]
    with pytest.raises(InvalidFile, match="digest is not that of the content"):
        load_text(json.dumps(content), tmp_path)
    assert load_text(resealed(content), tmp_path).weights.tolist() == [[1, 2], [2, 1]], "private, with another meaning"


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 8.0, 40.0, 700.0])
def test_one_moved_unit_is_refused_by_the_privacy_check_alone(epsilon, tmp_path):
    """Digest right, totals right, all weights positive: one unit too many where the ratio is R already."""
    problem = regression([0, 1, 2], [0.5, 0.25, 0.25], epsilon)
    content = document(response(problem, [0.0, 1.0, 2.0], ratio=privacy_ratio(epsilon)), tmp_path)
    (most, least, other), *rest = [[int(weight) * 1000 for weight in row] for row in content["weights"]]
    content["total"] = str(most + least + other)
    for unit in (-1, 0, 1):
        rows = [[most + unit, least - unit, other], *rest]
        content["weights"] = [[str(weight) for weight in row] for row in rows]
        if unit == 1:
            with pytest.raises(InvalidFile, match=r"of weights break the ratio \(about"):
                load_text(resealed(content), tmp_path)
        else:
            assert load_text(resealed(content), tmp_path).weights.tolist() == rows


def test_files_of_many_weights_and_of_huge_ones(tmp_path):
    """At epsilon 700 an integer has some 320 digits; saving and loading must not meet Python's limit of 4,300."""
    ratio = privacy_ratio(700.0)
    problem = regression(np.arange(8), np.full(8, 1 / 8), 700.0)
    mechanism = response(problem, np.arange(8), ratio=ratio)
    assert len(str(mechanism.total)) > 300
    mechanism.save(tmp_path / "m.json")
    assert load(tmp_path / "m.json") == mechanism
    big = Mechanism(problem, None, np.arange(8), mechanism.weights * 10**3600, ratio)
    big.save(tmp_path / "big.json")
    assert load(tmp_path / "big.json") == big


def test_saving_never_overwrites_unasked(tmp_path):
    coin().save(tmp_path / "m.json")
    with pytest.raises(InvalidInput, match="exists"):
        coin().save(tmp_path / "m.json")
    (tmp_path / "link.json").symlink_to(tmp_path / "m.json")
    with pytest.raises(InvalidInput, match="symbolic link"):
        coin().save(tmp_path / "link.json", overwrite=True)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.json")
