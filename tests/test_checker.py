"""The independent checker: it stands alone, agrees with `load`, and its bound is below every mechanism's loss."""

import ast
import copy
import decimal
import itertools
import json
import math
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog
from tables import circulant, debiased, layered_arcs, resealed, response

from optrand import checker, losses
from optrand.base.arithmetic import exp_bracket, float_below, log_bracket, privacy_ratio
from optrand.certificates.certificate import lower_bound
from optrand.errors import InvalidFile
from optrand.mechanism.mechanism import Mechanism, load
from optrand.model.arcs import IntegerArcs
from optrand.model.losses import Tabulated
from optrand.model.outputs import Grid, Interval, Line
from optrand.model.problem import classification, regression, unbiased_regression
from optrand.model.solution import Dual

SOURCE = Path(checker.__file__)


def text_of(mechanism, tmp_path):
    mechanism.save(tmp_path / "checked.json", overwrite=True)
    return (tmp_path / "checked.json").read_text()


# ------------------------------------------------------------------------------------------------------ it stands alone


def test_it_is_short_and_needs_the_standard_library_only():
    source = SOURCE.read_text()
    assert source.count("\n") < 300
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module.split(".")[0])
    assert imported <= set(sys.stdlib_module_names)
    assert "decimal" not in imported, "optrand's own brackets come from decimal: a second witness must not"


def biases_of(text):
    case = checker._read(checker._parse(text))
    return tuple(Fraction(bias, case.total * case.unit) for bias in case.biases)


def run(*arguments, cwd):
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def coin():
    """Labels -1, 1 at E = 3 but for rounding: the optimum of `by_hand` below, with outputs -2, 2 and no bias at all."""
    epsilon = math.log(3)
    best = by_hand(math.inf, epsilon)
    return response(best.problem, [-2.0, 2.0], ratio=Fraction(3), dual=best.dual)


@pytest.mark.parametrize("start", [["-I", "-S", str(SOURCE)], ["-m", "optrand.checker"]])
def test_it_runs_alone_and_says_what_holds(coin, tmp_path, start):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path = tmp_path / "coin.json"
    coin.save(path)
    ended = run(*start, str(path), cwd=elsewhere)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = dict(line.split(maxsplit=1) for line in ended.stdout.replace("largest ", "").splitlines())
    assert lines["private"] == f"proven, with epsilon {math.log(3)!r}"
    assert lines["bias"] == "0.0"
    assert float(lines["value"]) == pytest.approx(coin.problem.value(coin.randomizer), rel=1e-14)
    assert abs(float(lines["gap"].split(",")[0])) < 1e-14

    content = json.loads(path.read_bytes())
    content["total"] = "40"
    content["weights"] = [["31", "9"], ["10", "30"]]
    path.write_text(resealed(content))
    ended = run(*start, str(path), cwd=elsewhere)
    assert ended.returncode == 3
    assert "REFUSED" in ended.stdout
    assert "not private" in ended.stdout
    assert run(*start, "none.json", cwd=elsewhere).returncode == 2
    (elsewhere / "binary").write_bytes(b"\xff\xfe\x00")
    assert run(*start, "binary", cwd=elsewhere).returncode == 2
    assert run(*start, cwd=elsewhere).returncode == 2


# ------------------------------------------------------------------------------------------------- agreement with load


def families():
    """One valid mechanism for every kind of problem that a file can hold."""
    ratio, epsilon = Fraction(2), 0.7
    prior, labels = [0.5, 0.25, 0.25], [0.0, 1.0, 2.0]
    dual = Dual([0.1, -0.2, 0.3], [0.5, 0.0, -0.25])
    table = Tabulated([[0.0, 1.0, 4.0, 9.0], [1.0, 0.0, 1.0, 4.0], [4.0, 1.0, 0.0, 1.0]])
    problems = {
        "unbiased": unbiased_regression(labels, prior, epsilon),
        "unbiased interval": unbiased_regression(labels, prior, epsilon, outputs=Interval(-3, 6)),
        "unbiased grid": unbiased_regression(labels, prior, epsilon, outputs=np.arange(-3, 6)),
        "penalised": regression(labels, [0.5, 0.0, 0.5], epsilon, bias_penalty=0.5),
        "free": regression(labels, prior, epsilon),
        "absolute": regression(labels, prior, epsilon, loss=losses.absolute),
        "absolute interval": regression(labels, prior, epsilon, loss=losses.absolute, outputs=Interval(-3, 6)),
        "absolute grid": regression(
            labels, prior, epsilon, loss=losses.absolute, bias_penalty=1.0, outputs=np.arange(-3, 6)
        ),
        "poisson": regression(labels, prior, epsilon, loss=losses.poisson_log),
        "poisson grid": regression(labels, prior, epsilon, loss=losses.poisson_log, outputs=[0.25, 1.0, 1.5, 3.0]),
        "table": regression(labels, prior, epsilon, loss=table, outputs=[0.0, 1.0, 1.5, 2.0]),
        "classes": classification(prior, epsilon),
    }
    for name, problem in problems.items():
        if name.startswith(("unbiased", "penalised", "free", "absolute")):
            outputs = debiased(labels, ratio)
        elif isinstance(problem.outputs, Grid):
            outputs = problem.outputs.values[-3:]
        else:
            outputs = [0.5, 1.0, 4.0]
        yield name, response(problem, outputs, ratio=ratio, dual=dual)
        places = np.arange(3)
        arcs = IntegerArcs(3, places, places, places, [1, 1, 1])
        yield f"{name} of arcs", Mechanism(problem, dual, outputs, arcs, ratio)


FAMILIES = dict(families())
WITHOUT_A_BOUND = {"poisson", "poisson of arcs"}


@pytest.mark.parametrize("name", FAMILIES)
def test_it_agrees_with_the_package_on_every_figure(name, tmp_path):
    mechanism = FAMILIES[name]
    text = text_of(mechanism, tmp_path)
    report, problem = checker.check(text), mechanism.problem
    assert report.ratio == mechanism.realised_ratio == 2
    assert report.epsilon == mechanism.realised_epsilon
    assert biases_of(text) == mechanism.exact_biases
    assert report.bias == max(map(abs, mechanism.exact_biases))
    assert float(report.value) == pytest.approx(problem.value(mechanism.randomizer), rel=1e-14)
    assert report.maximised == name.startswith("classes")
    if name in WITHOUT_A_BOUND:
        assert report.bound is None
        assert "no bound for poisson_log" in report.note
        return
    beta = np.where(problem.prior * min(problem.bias_penalty, 1.0) > 0, mechanism.dual.beta, 0.0)
    cleaned = mechanism.dual if problem.unbiased else Dual(mechanism.dual.alpha, beta)
    assert problem.sign * float(report.bound) == pytest.approx(lower_bound(problem, cleaned, exact=True), rel=1e-14)


def test_without_multipliers_or_with_forbidden_bias_there_is_no_bound(tmp_path, coin):
    without = Mechanism(coin.problem, None, coin.outputs, coin.weights, coin.ratio)
    report = checker.check(text_of(without, tmp_path))
    assert (report.bound, report.gap) == (None, None)
    assert "no multipliers" in report.note
    assert checker.check(text_of(coin, tmp_path)).bound is not None
    shifted = Mechanism(coin.problem, coin.dual, [-2.0, math.nextafter(2.0, 3)], coin.weights, coin.ratio)
    report = checker.check(text_of(shifted, tmp_path))
    assert report.bound is None
    assert report.bias == Fraction(3, 4) / 2**51
    assert report.note == f"bias is forbidden, and the largest is {float(report.bias)!r}"


ODD = [
    True,
    False,
    None,
    0,
    1,
    -1,
    2,
    1.5,
    -1.0,
    0.0,
    -0.0,
    1e308,
    5e-324,
    0.7,
    "x",
    "",
    "inf",
    "01",
    "-1",
    "+2",
    "1e3",
]
ODD += ["2", "3", "9" * 4001, [], {}, [1.0], [[]], ["1"], {"kind": "line"}, {"name": "squared"}, "squared", "absolute"]


@pytest.mark.parametrize("name", ["unbiased interval", "free", "absolute", "absolute grid", "poisson grid", "table"])
def test_an_origin_is_a_change_of_the_constants(name, tmp_path):
    """Multipliers of eighths and an origin of quarters: floats hold ``alpha - beta * origin`` exactly."""
    mechanism = FAMILIES[name]
    content = json.loads(text_of(mechanism, tmp_path))
    used = mechanism.problem.bias_penalty > 0
    alpha, beta, origin = [0.125, -0.5, 0.25], [0.5 * used, 0.0, -0.25 * used], -6.75
    moved = [a - b * origin for a, b in zip(alpha, beta, strict=True)]
    plain = checker.check(resealed({**content, "dual": {"alpha": moved, "beta": beta}}))
    dual = {"alpha": alpha, "beta": beta, "origin": origin}
    assert verdicts(resealed({**content, "dual": dual}), tmp_path / "moved.json") == (True, True)
    assert abs(checker.check(resealed({**content, "dual": dual})).bound - plain.bound) < Fraction(1, 10**25)
    for zero in (0.0, -0.0):
        text = resealed({**content, "dual": {"alpha": moved, "beta": beta, "origin": zero}})
        assert verdicts(text, tmp_path / "moved.json") == (False, False)
        with pytest.raises(checker.Refused, match="malformed or unknown: 'dual'"):
            checker.check(text)


def branches(content, path=()):
    """Every place of a document."""
    yield path
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for name, value in items:
        yield from branches(value, (*path, name))


def mutate(content, rng):
    """The document with one thing changed somewhere, digest aside."""
    content = copy.deepcopy(content)
    *parents, last = rng.choice([path for path in branches(content) if path and path[0] != "digest"])
    target = content
    for name in parents:
        target = target[name]
    change = rng.randrange(6)
    if change == 0:
        del target[last]
    elif change == 1 and isinstance(target, list):
        target.insert(last, copy.deepcopy(target[last]))
    elif change == 1:
        target["remark"] = rng.choice(ODD)
    elif change == 2 and isinstance(target[last], str) and target[last].isdigit():
        target[last] = str(int(target[last]) + rng.choice([-1, 1]))
    elif change == 2 and type(target[last]) is int:
        target[last] += rng.choice([-1, 1])
    elif change == 2 and isinstance(target[last], float):
        target[last] *= rng.choice([1 - 2**-53, 1 + 2**-52, -1.0, 2.0, 0.5, 1 + 1e-9])
    elif change == 3 and isinstance(target, list):
        other = rng.randrange(len(target))
        target[last], target[other] = target[other], target[last]
    else:
        target[last] = copy.deepcopy(rng.choice(ODD))
    return content


def verdicts(text, path):
    path.write_text(text)
    try:
        load(path)
        loaded = True
    except InvalidFile:
        loaded = False
    try:
        checker.check(text)
        checked = True
    except checker.Refused:
        checked = False
    return loaded, checked


def test_it_agrees_with_load_on_thousands_of_edited_files(tmp_path):
    """One edit each, digest recomputed: both accept or both refuse."""
    rng = random.Random(5)
    originals = [json.loads(text_of(mechanism, tmp_path)) for mechanism in FAMILIES.values()]
    counts = {True: 0, False: 0}
    for _ in range(4000):
        text = resealed(mutate(rng.choice(originals), rng))
        loaded, checked = verdicts(text, tmp_path / "edited.json")
        assert loaded == checked, text
        counts[loaded] += 1
    assert min(counts.values()) > 200, f"both verdicts must occur: {counts}"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text[:-5], "not JSON"),
        (lambda text: text.replace('"schema":1', '"schema":1,"schema":1'), "given twice"),
        (lambda text: text.replace('"schema":1', '"schema":2'), "newer optrand"),
        (lambda text: text.replace("0.7", "NaN"), "not JSON of finite numbers"),
        (lambda text: text.replace("0.7", "1e999"), "not JSON of finite numbers"),
        (lambda text: text.replace('"sha256:', '"sha256:0'), "digest is not that"),
        (lambda text: text.replace("0.25", "0.2500001"), "digest is not that"),
        (lambda text: text.replace('"total"', '"sum"'), "missing, malformed or unknown: 'sum', 'total'"),
        (lambda _: "[" * 100_000, "not JSON"),
        (lambda _: "[]", "not an optrand mechanism"),
        (lambda _: '{"schema": true}', "not an optrand mechanism"),
    ],
)
def test_both_refuse_spoilt_text(spoil, message, tmp_path):
    text = spoil(text_of(FAMILIES["unbiased"], tmp_path))
    assert verdicts(text, tmp_path / "spoilt.json") == (False, False)
    with pytest.raises(checker.Refused, match=message):
        checker.check(text)


def test_white_space_is_free(tmp_path):
    text = text_of(FAMILIES["unbiased"], tmp_path)
    for spread in ({"indent": 3}, {"separators": (" ,\n", "\t:\r\n")}):
        assert checker.check(json.dumps(json.loads(text), **spread)) == checker.check(text)


@pytest.mark.parametrize("name", ["labels", "name", "alpha", "numerator", "first", "masses", "digest", "d\\u0069gest"])
def test_no_field_may_be_given_twice_at_any_depth(name, tmp_path):
    text = json.dumps(json.loads(text_of(FAMILIES["unbiased of arcs"], tmp_path)))
    place = text.index(f'"{name.encode().decode("unicode_escape")}": ')
    for first in ("0", '"1"', '{"a": [{}]}', f'"{name}"'):
        twice = f'{text[:place]}"{name}" :{first}, {text[place:]}'
        assert json.loads(twice) == json.loads(text)
        assert verdicts(twice, tmp_path / "twice.json") == (False, False)
        with pytest.raises(checker.Refused, match="given twice"):
            checker.check(twice)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("total", "0"),
        ("total", "007"),
        ("total", "7\n"),
        ("total", 7),
        ("weights", [["0", "1", "1"]] * 3),
        ("weights", []),
        ("weights", [[]]),
        ("outputs", [-1, 1.0, 3.0]),
        ("outputs", [-1.0, 1.0, True]),
        ("outputs", ["-1.0", 1.0, 3.0]),
        ("outputs", [[-1.0, 1.0, 3.0]]),
        ("format", "optrand.mechanism.mechanism\n"),
        ("format", "optrandXmechanism"),
        ("dual", {"alpha": [0.5] * 3, "beta": [0.5] * 3, "origin": 1.0, "more": 1.0}),
        ("dual", {"alpha": [], "beta": []}),
        ("ratio", {"numerator": "2", "denominator": "1", "note": ""}),
        ("schema", 0),
        ("schema", -1),
    ],
)
def test_a_malformed_field_is_named(field, value, tmp_path):
    text = resealed({**json.loads(text_of(FAMILIES["unbiased"], tmp_path)), field: value})
    assert verdicts(text, tmp_path / "malformed.json") == (False, False)
    with pytest.raises(checker.Refused, match=f"missing, malformed or unknown: '{field}'"):
        checker.check(text)


def test_one_unit_changes_against_the_definition(tmp_path):
    """As in the test of the constructor, on whole files with fresh digests and totals; every verdict is compared."""
    rng = random.Random(11)
    seen = {True: 0, False: 0}
    for trial in range(600):
        k, ratio = 1 + trial % 8, [Fraction(3, 2), Fraction(2), privacy_ratio(0.7)][trial % 3]
        weights = circulant(rng, k, 1 + trial % 2, ratio, 3)
        problem = regression(np.arange(k), np.full(k, 1 / k), 0.7)
        content = json.loads(text_of(Mechanism(problem, None, np.arange(weights.shape[1]), weights, ratio), tmp_path))
        for _ in range(3):
            y, (i, j) = rng.randrange(k), [rng.randrange(weights.shape[1]) for _ in range(2)]
            rows = weights.tolist()
            rows[y][i] += 1
            rows[y][j] -= 1
            truth = len({sum(row) for row in rows}) == 1 and all(
                0 < a * ratio.denominator <= ratio.numerator * b
                for column in zip(*rows, strict=True)
                for a, b in itertools.product(column, repeat=2)
            )
            content["weights"] = [[str(weight) for weight in row] for row in rows]
            assert verdicts(resealed(content), tmp_path / "edited.json") == (truth, truth)
            seen[truth] += 1
    assert min(seen.values()) > 100


def test_arcs_and_their_table_have_one_report(tmp_path):
    """Nested arcs and shared outputs, for every loss: a file of arcs says what the file of its rows says."""
    rng = random.Random(17)
    for trial in range(120):
        k, n, epsilon = rng.randint(1, 6), rng.choice([1, 2, 5]), rng.choice([0.1, 0.7, 4.0])
        arcs, ratio = layered_arcs(rng, k, rng.randint(1, 4), n, rng.choice([1, 7, 2**100])), privacy_ratio(epsilon)
        loss = [losses.squared, losses.squared, losses.absolute, losses.poisson_log][trial % 4]
        labels, grid = np.sort(rng.sample(range(20), k)), np.arange(1, 21) / 3
        outputs = np.sort(rng.sample(grid.tolist(), arcs.n))
        kind = {"loss": loss, "bias_penalty": rng.choice([0.0, 2.0]), "outputs": grid}
        if loss == losses.squared and rng.random() < 0.7:
            kind |= {"bias_penalty": rng.choice([0.0, 0.5, math.inf]), "outputs": None}
        problem = regression(labels, np.full(k, 1 / k), epsilon, **kind)
        normal = np.random.default_rng(trial).normal
        dual = Dual(normal(size=k), normal(size=k) * (problem.bias_penalty > 0))
        reports = []
        for weights in (arcs, arcs.table(ratio)):
            mechanism = Mechanism(problem, dual, outputs, weights, ratio)
            text = text_of(mechanism, tmp_path)
            reports.append(checker.check(text))
            assert biases_of(text) == mechanism.exact_biases
            assert reports[-1].ratio == mechanism.realised_ratio
        assert reports[0] == reports[1]
        assert float(reports[0].value) == pytest.approx(problem.value(mechanism.randomizer), rel=1e-12)


def test_one_unit_changes_of_arcs_against_the_definition(tmp_path):
    """An end moved by one label or a mass by one unit, fresh totals: private if and only if all rows have one total."""
    rng = random.Random(23)
    seen = {True: 0, False: 0}
    for _ in range(150):
        k, ratio = rng.randint(2, 6), rng.choice([Fraction(3, 2), Fraction(2)])
        arcs = layered_arcs(rng, k, rng.randint(1, 3), 30, 3)
        problem = regression(np.arange(k), np.full(k, 1 / k), 0.7)
        mechanism = Mechanism(problem, None, np.arange(arcs.n), arcs, ratio)
        content = json.loads(text_of(mechanism, tmp_path))
        for _ in range(4):
            changed = copy.deepcopy(content)
            part, j, unit = (
                rng.choice(["first", "last", "masses"]),
                rng.randrange(arcs.masses.size),
                rng.choice([-1, 1]),
            )
            if part == "masses":
                changed["arcs"][part][j] = str(max(0, int(changed["arcs"][part][j]) + unit))
            else:
                changed["arcs"][part][j] += unit
            columns = (changed["arcs"][name] for name in ("first", "last", "masses"))
            parts = [(a, b, int(mass)) for a, b, mass in zip(*columns, strict=True)]
            fit = all(0 <= a <= b < k and mass for a, b, mass in parts)
            totals = [
                sum(mass * (ratio.numerator if a <= y <= b else ratio.denominator) for a, b, mass in parts)
                for y in range(k)
            ]
            changed["total"] = str(totals[0])
            truth = fit and len(set(totals)) == 1
            assert verdicts(resealed(changed), tmp_path / "edited.json") == (truth, truth)
            seen[truth] += 1
    assert min(seen.values()) > 15


def test_a_file_needs_one_table(tmp_path):
    content = json.loads(text_of(FAMILIES["unbiased of arcs"], tmp_path))
    rows = json.loads(text_of(FAMILIES["unbiased"], tmp_path))["weights"]
    for edited in ({**content, "weights": rows}, {name: content[name] for name in content if name != "arcs"}):
        assert verdicts(resealed(edited), tmp_path / "edited.json") == (False, False)
        with pytest.raises(checker.Refused, match="weights"):
            checker.check(resealed(edited))


def test_ten_thousand_labels_are_checked_without_a_table(tmp_path):
    """Debiased response of 10,001 labels under a uniform prior, whose value is known.

    With E = R the outputs are v_y = y + (k y - s)/(E - 1), s the sum of the labels, the chance of one's own label is
    E/(E + k - 1) and that of any other 1/(E + k - 1). So the value is the mean over labels of half of
    (sum over all i of (v_i - y)^2 + (E - 1) (v_y - y)^2) / (E + k - 1), here by sums of powers, in fractions.
    """
    k = 10_001
    places, ratio = np.arange(k), privacy_ratio(12.0)
    problem = unbiased_regression(places, np.full(k, 1 / k), 12.0)
    arcs = IntegerArcs(k, places, places, places, [1] * k)
    mechanism = Mechanism(problem, Dual(np.full(k, 1e-5), np.zeros(k)), debiased(places.tolist(), ratio), arcs, ratio)
    text = text_of(mechanism, tmp_path)
    report = checker.check(text)
    assert report.ratio == ratio
    assert biases_of(text) == mechanism.exact_biases
    values = [y + Fraction(k * y - k * (k - 1) // 2) / (ratio - 1) for y in range(k)]
    first, second = sum(values), sum(v * v for v in values)
    excess = [(ratio - 1) * (v - y) ** 2 for y, v in enumerate(values)]
    squares = sum(second - 2 * y * first + k * y * y + more for y, more in enumerate(excess))
    value = Fraction(1 / k) * squares / (2 * (ratio + k - 1))
    assert float(report.value) == pytest.approx(float(value), rel=1e-12)
    assert report.bound is None
    assert "bias is forbidden" in report.note


# ------------------------------------------------------------------------------------------- exp and log, by themselves


@pytest.mark.parametrize("x", [5e-324, 1e-300, 1e-9, 0.5, 1.0, math.pi, 20.0, 700.0])
def test_exp_bounds_hold_the_exponential_tightly(x):
    low, high = checker._exp_bounds(Fraction(x))
    below, above = exp_bracket(x, 1500)
    assert low < below < above < high
    assert (high - low) * 2**110 < below - 1


@pytest.mark.parametrize(
    "x", [Fraction(5e-324), Fraction(1, 3), 1 - Fraction(1, 2**60), Fraction(1), Fraction(7, 5), 10**320]
)
def test_log_bounds_hold_the_logarithm_tightly(x):
    low, high = checker._log_bounds(Fraction(x))
    below, above = log_bracket(Fraction(x), 100)
    assert low <= below <= above <= high
    assert high - low < Fraction(1, 10**24)


def test_rounding_up_ends_at_the_range_of_floats():
    assert checker._up(Fraction(1, 3)) == math.nextafter(1 / 3, 1) > Fraction(1, 3)
    assert checker._up(Fraction(-1, 3)) == -1 / 3 > Fraction(-1, 3)
    assert checker._up(Fraction(10**400)) == math.inf
    assert checker._up(-Fraction(10**400)) == -sys.float_info.max


# ------------------------------------------------------------------------------------------------------------ the bound


def by_hand(penalty, epsilon):
    """The best mechanism for labels -1 and 1 with equal prior, and its dual, worked out with pencil and paper.

    Randomized response with outputs -v, v has means -vt, vt where t = (E - 1)/(E + 1), and loss
    (v^2 - 2vt + 1)/2 + lam (vt - 1)^2 / 2, least at v = t (1 + lam)/(1 + lam t^2); at lam = inf, v = 1/t. With
    beta_1 = lam p (1 - vt) = -beta_{-1} (at lam = inf its limit (1/t^2 - 1)/2, from f'(v) = 0) and alpha from f(v) = 0
    where S = {1}, that is (E + 1) alpha = E (v - 1)^2/4 + (v + 1)^2/4 - (E - 1) beta v, the bound is that same loss.
    """
    with decimal.localcontext(prec=50):
        ratio = decimal.Decimal(epsilon).exp()
        t = (ratio - 1) / (ratio + 1)
        if penalty == math.inf:
            v, beta = 1 / t, (1 / t**2 - 1) / 2
        else:
            lam = decimal.Decimal(penalty)
            v = t * (1 + lam) / (1 + lam * t**2)
            beta = lam * (1 - v * t) / 2
        alpha = (ratio * (v - 1) ** 2 / 4 + (v + 1) ** 2 / 4 - (ratio - 1) * beta * v) / (ratio + 1)
    dual = Dual([float(alpha)] * 2, [-float(beta), float(beta)])
    problem = regression([-1, 1], [0.5, 0.5], epsilon, bias_penalty=penalty)
    return response(problem, [-float(v), float(v)], ratio=privacy_ratio(epsilon), dual=dual)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("penalty", [0.0, 0.1, 1.0, 50.0, math.inf])
def test_the_pencil_and_paper_optimum_is_certified(penalty, epsilon, tmp_path):
    mechanism = by_hand(penalty, epsilon)
    report = checker.check(text_of(mechanism, tmp_path))
    if report.bias and penalty == math.inf:  # a float misses the optimum's output: one bound, and nothing to compare
        assert (report.bound, report.gap) == (None, None)
        bound = bound_of(mechanism.problem, mechanism.dual, tmp_path)
        assert float(bound) == pytest.approx(float(report.value), rel=1e-12)
    else:
        assert report.bound <= report.value
        assert 0 <= report.gap < 1e-12


def test_the_bound_without_its_third_term_is_refuted(tmp_path):
    """Labels -1 and 1, E = 3, lam = 1: a "bound" of 0.78 where a mechanism with a loss of 0.6 is there to see.

    By the formulas above t = 1/2, v = (1/2)(2)/(1 + 1/4) = 0.8, loss (0.64 - 0.8 + 1)/2 + (0.4 - 1)^2/2 = 0.42 + 0.18 =
    0.6, beta = (1 - 0.4)/2 = 0.3, and the third term is 2 * 0.3^2 / (2 * 1 * 0.5) = 0.18.
    """
    mechanism = by_hand(1.0, math.log(3))
    report = checker.check(text_of(mechanism, tmp_path))
    assert float(report.value) == pytest.approx(0.6, rel=1e-12)
    assert report.bound <= report.value
    assert float(report.bound) == pytest.approx(0.6, rel=1e-12)
    third = sum(Fraction(b) ** 2 / (2 * Fraction(1, 2)) for b in mechanism.dual.beta)
    assert float(report.bound + third) == pytest.approx(0.78, rel=1e-12)
    assert report.bound + third > report.value, "the uncorrected bound claims that this mechanism cannot exist"


def columns_of(k, ratio):
    """All staircase columns, the constant one included."""
    return np.array(list(itertools.product([1.0, ratio], repeat=k)))[1:]


def best_on_a_grid(problem, grid):
    """The LP over every staircase column at every value of a grid, and its dual, by scipy.

    The variables are the masses of the columns, the bias of each label (fixed at 0 or free) and the price of that bias.
    At a finite penalty 401 tangents of a parabola bound the price, which makes the value too low by very little.
    """
    k, ratio = problem.k, math.exp(problem.epsilon)
    staircases = columns_of(k, ratio)
    costs = (staircases @ (problem.prior[:, None] * problem.loss.table(problem.labels, grid))).ravel()
    rows = np.repeat(staircases, grid.size, axis=0).T
    means = np.tile(grid, len(staircases)) * rows
    weights = problem.prior * (0.0 if problem.unbiased else problem.bias_penalty)
    slopes = np.linspace(-2, 2, 401)[:, None]
    free = (0, 0) if problem.unbiased else (None, None)
    solved = linprog(
        np.concatenate([costs, np.zeros(k), np.ones(k)]),
        A_ub=np.hstack(
            [
                np.zeros((k * slopes.size, costs.size)),
                np.kron(np.diag(weights), slopes),
                np.kron(-np.eye(k), np.ones_like(slopes)),
            ]
        ),
        b_ub=np.kron(weights, slopes.ravel() ** 2 / 2),
        A_eq=np.block([[rows, np.zeros((k, 2 * k))], [means, -np.eye(k), np.zeros((k, k))]]),
        b_eq=np.concatenate([np.ones(k), problem.labels]),
        bounds=[(0, None)] * costs.size + [free] * k + [(0, None)] * k,
    )
    alpha, beta = solved.eqlin.marginals.reshape(2, k)
    return solved.fun, Dual(alpha, beta if problem.unbiased else np.where(weights > 0, beta, 0.0))


def any_response(problem, dual):
    """Some private table for the problem, so that there is a file to check; its own value does not matter here."""
    allowed = problem.outputs
    if isinstance(allowed, Grid):
        outputs = allowed.values[: problem.k]
    else:
        low, high = (0, 1) if isinstance(allowed, Line) else (allowed.low, allowed.high)
        outputs = np.linspace(low, high, problem.k + 2)[1:-1]
    return response(problem, outputs, ratio=privacy_ratio(problem.epsilon), dual=dual)


def bound_of(problem, dual, tmp_path):
    """The bound alone, also where the table at hand has a forbidden bias and `check` would not state one."""
    case = checker._read(checker._parse(text_of(any_response(problem, dual), tmp_path)))
    bound, note = checker._bound(case)
    assert note == ""
    return bound


@pytest.mark.parametrize("penalty", [0.0, 0.3, math.inf])
@pytest.mark.parametrize("loss", [losses.squared, losses.absolute, losses.poisson_log])
@pytest.mark.parametrize("k", [2, 3])
def test_on_a_grid_the_bound_of_an_lp_dual_meets_the_lp(k, loss, penalty, tmp_path):
    rng = np.random.default_rng(k)
    labels = np.sort(rng.uniform(1, 2, k))
    prior = rng.dirichlet(np.ones(k))
    grid = np.unique(np.concatenate([np.linspace(0.05, 4, 80), labels]))
    problem = regression(labels, prior, 1.2, loss=loss, bias_penalty=penalty, outputs=grid)
    value, dual = best_on_a_grid(problem, grid)
    bound = float(bound_of(problem, dual, tmp_path))
    slack = 1e-4 if penalty == 0.3 else 1e-9
    assert value - slack < bound < value + slack
    for scale in (1e-9, 1e-6, 1e-3, 1.0):
        for _ in range(5):
            alpha, beta = dual.alpha + scale * rng.normal(size=k), dual.beta + scale * rng.normal(size=k)
            perturbed = Dual(alpha, beta if penalty else np.zeros(k))
            assert float(bound_of(problem, perturbed, tmp_path)) < value + slack


NARROW, WIDE = Interval(-0.5, 1.6), Interval(-8, 9)


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize(
    ("loss", "penalty", "outputs"),
    [
        *itertools.product([losses.squared, losses.absolute], [0.0], [None, NARROW, WIDE]),
        *itertools.product([losses.squared], [0.3], [None, NARROW, WIDE]),
        *itertools.product([losses.squared], [math.inf], [None, WIDE]),
    ],
)
def test_off_a_grid_the_bound_is_close_to_that_of_a_fine_grid(outputs, penalty, loss, zero, tmp_path):
    """The dual of a fine grid, used on the continuum: a little below the grid's optimum, never above it."""
    prior = [0.25, 0.0, 0.75] if zero else [0.25, 0.5, 0.25]
    labels = np.array([0.0, 0.4, 1.0])
    ends = (-0.5, 1.6) if outputs == NARROW else (-1.0, 2.0)
    grid = np.union1d(np.linspace(*ends, 301), labels)
    problem = regression(labels, prior, 1.2, loss=loss, bias_penalty=penalty, outputs=outputs)
    value, dual = best_on_a_grid(problem, grid)
    bound = float(bound_of(problem, dual, tmp_path))
    assert bound < value + 1e-9
    if not (zero and penalty):  # with zero priors the dual is not unique, and one that serves the grid may fail outside
        assert bound > value - 2e-3


def rationals(problem, dual):
    """Label, prior, alpha and beta of each label, as fractions."""
    columns = (problem.labels, problem.prior, dual.alpha, dual.beta)
    return list(zip(*([Fraction(x) for x in column.tolist()] for column in columns), strict=True))


def reference(problem, dual, outputs, ratio):
    """The formula of the checker's docstring in fractions, with f evaluated at the given outputs only.

    The least f over some outputs is at least that over all of them, so at any ratio from exp(epsilon) to the checker's
    own this is at least what the checker may state.
    """
    rows, k = rationals(problem, dual), problem.k
    total = sum(alpha + beta * y for y, _, alpha, beta in rows)
    if not problem.unbiased:
        penalty = Fraction(problem.bias_penalty)
        total -= sum(beta**2 / (2 * penalty * p) for _, p, _, beta in rows if beta)
    least = math.inf
    for v in outputs:
        h = [p * problem.loss.bracket(v, y)[1] - alpha - beta * v for y, p, alpha, beta in rows]
        least = min(least, sum(h) + (ratio - 1) * sum(min(x, 0) for x in h))
    return total + (least * k / (ratio + k - 1) if least < 0 else least / ratio)


def places(problem, dual, ratio):
    """Where f may be least, exactly: a grid's values; ends, and the kinks or the vertex of every piece."""
    if isinstance(problem.outputs, Grid):
        return [Fraction(v) for v in problem.outputs.values.tolist()]
    ends = [Fraction(x) for x in (problem.outputs.low, problem.outputs.high) if math.isfinite(x)]
    rows = rationals(problem, dual)
    if problem.loss == losses.absolute:
        found = [y + sign * alpha / p for y, p, alpha, _ in rows if p for sign in (-1, 0, 1)]
    else:
        low, high = max(problem.outputs.low, -50.0), min(problem.outputs.high, 50.0)
        scan = np.concatenate([np.linspace(low, high, 4001), np.clip(problem.labels, low, high)])
        h = problem.prior[:, None] * problem.loss.table(problem.labels, scan)
        negative = h < dual.alpha[:, None] + np.outer(dual.beta, scan)
        found = []
        for piece in np.unique(negative, axis=1).T.tolist():
            scales = [ratio if inside else 1 for inside in piece]
            slope = sum(s * (p * y + beta) for s, (y, p, _, beta) in zip(scales, rows, strict=True))
            found.append(slope / sum(s * p for s, (_, p, _, _) in zip(scales, rows, strict=True)))
    first, last = ends or (min(found), max(found))
    return ends + [min(max(v, first), last) for v in found]


def random_question(rng):
    """A problem with a spiky, sparse or tiny prior, perhaps clustered labels, and multipliers of some size."""
    loss = [losses.squared, losses.squared, losses.absolute, losses.poisson_log][rng.integers(4)]
    low = 0 if loss == losses.poisson_log else -3
    labels = np.unique(np.round(rng.uniform(low, 3, rng.integers(1, 7)), rng.integers(1, 12)))
    k = labels.size
    prior = rng.dirichlet(np.full(k, rng.choice([0.1, 1.0]))) * (rng.random(k) < 0.8)
    prior = np.where(prior < 1e-290, 0, prior)
    prior = prior / prior.sum() if prior.any() else np.full(k, 1 / k)
    kind = "grid" if loss == losses.poisson_log else rng.choice(["line", "interval", "grid"])
    penalties = [0.0, 0.1, 10.0, math.inf] if kind == "grid" or loss == losses.squared else [0.0]
    penalty = float(rng.choice(penalties))
    outputs = None
    if kind == "grid":
        outputs = np.concatenate([rng.uniform(0.01 if low == 0 else -5, 5, 20), [1e7] + [-1e7] * (low < 0)])
        penalty = min(penalty, 10.0)
    elif kind == "interval" and penalty < math.inf:
        outputs = Interval(*np.sort(rng.uniform(-5, 5, 2)))
    epsilon = float(rng.choice([1e-6, 0.1, 1.0, 4.0, 20.0]))
    problem = regression(labels, prior, epsilon, loss=loss, bias_penalty=penalty, outputs=outputs)
    scale = float(rng.choice([1e-6, 0.1, 3.0]))
    wanted = (rng.random(k) < 0.8) & (problem.unbiased | (problem.prior * min(penalty, 1.0) > 0))
    return problem, Dual(scale * rng.normal(size=k), scale * rng.normal(size=k) * wanted)


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_never_exceeds_the_formula_and_is_all_of_it(seed, tmp_path):
    """At exp(epsilon) from below, and at the checker's own, where only roots, vertices and logarithms are rounded."""
    rng = np.random.default_rng(seed)
    for _ in range(6):
        problem, dual = random_question(rng)
        bound = bound_of(problem, dual, tmp_path)
        for ratio in (exp_bracket(problem.epsilon)[0], checker._exp_bounds(Fraction(problem.epsilon))[1]):
            formula = reference(problem, dual, places(problem, dual, ratio), ratio)
            assert bound <= formula
            if not dual.beta.any() or not isinstance(problem.outputs, Line):  # else f may be least beyond the scan
                assert formula - bound <= Fraction(1, 10**20) * (1 + abs(formula))
        assert float(bound) == pytest.approx(lower_bound(problem, dual, exact=True), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("seed", range(5))
def test_rounded_roots_never_overstate_the_least_column(loss, seed):
    """With units so coarse that a root is rounded by a good part of the whole range, and ends that fall beside it."""
    rng = random.Random(seed)
    for _ in range(200):
        k, unit, one, more = rng.randint(1, 4), rng.choice([1, 2, 4]), rng.choice([1, 2]), rng.randint(1, 30)
        rows = [(y, rng.randint(loss == "absolute", 5), rng.randint(-9, 9), rng.randint(-5, 5)) for y in range(k)]
        rows = [(y, p, alpha, beta * (loss == "squared")) for y, p, alpha, beta in rows]
        if not any(p for _, p, _, _ in rows):
            continue
        labels, prior, alphas, betas = map(list, zip(*rows, strict=True))
        low = rng.randint(-6, 5)
        ends = rng.choice([(-math.inf, math.inf), (low, low + rng.randint(1, 4))])
        case = SimpleNamespace(unit=unit, labels=labels, prior=prior, loss=loss, grid=[], ends=ends, rows=[[]] * k)
        find = checker._least_quadratic if loss == "squared" else checker._least_at_points
        least = find(case, checker._sides(case, [unit * alpha for alpha in alphas], betas), more, one)
        first, last = ends if low == ends[0] else (-20, 20)
        for x in (Fraction(i, 8) for i in range(8 * first, 8 * last + 1)):
            h = [
                p * ((x - y) ** 2 if loss == "squared" else 2 * unit * abs(x - y))
                - 2 * unit * (unit * alpha + beta * x)
                for y, p, alpha, beta in rows
            ]
            assert least <= one * sum(h) + more * sum(min(value, 0) for value in h)


@pytest.mark.parametrize("penalty", [0.0, 0.5, 20.0])
@pytest.mark.parametrize("epsilon", [0.4, 1.0, 5.0])
def test_no_private_table_beats_the_bound_whatever_the_multipliers(penalty, epsilon, tmp_path):
    """Exact values of random private tables against the bounds of a good dual and its perturbations: no exception."""
    rng = random.Random(3)
    best = by_hand(penalty, epsilon)
    ratio = privacy_ratio(epsilon)
    tables = [best]
    for _ in range(40):
        weights = circulant(rng, 2, 2, ratio, 3)
        spread = sorted(rng.uniform(-2, 2) for _ in range(4))
        tables.append(Mechanism(best.problem, None, spread, weights, ratio))
        tables.append(
            response(best.problem, sorted(v * (1 + rng.uniform(-1e-9, 1e-9)) for v in best.outputs), ratio=ratio)
        )
    least = min(checker.check(text_of(table, tmp_path)).value for table in tables)
    for scale in [0.0, *(10.0**-e for e in range(17))]:
        for _ in range(6):
            alpha = [a + scale * rng.gauss(0, 1) for a in best.dual.alpha]
            beta = [b + scale * rng.gauss(0, 1) * (penalty > 0) for b in best.dual.beta]
            assert bound_of(best.problem, Dual(alpha, beta), tmp_path) <= least


def test_unbiased_tables_without_any_bias_are_never_below_the_bound(tmp_path):
    """At ratio 2 debiased randomized response has integer outputs: no bias, so nothing blurs the comparison."""
    rng = np.random.default_rng(8)
    ratio, epsilon = Fraction(2), float(np.nextafter(math.log(2), 1))
    for k in (2, 3, 5):
        labels = np.arange(k)
        problem = unbiased_regression(labels, rng.dirichlet(np.ones(k)), epsilon)
        mechanism = response(problem, debiased(labels, ratio), ratio=ratio)
        assert mechanism.bias == 0
        value = checker.check(text_of(mechanism, tmp_path)).value
        grid = np.union1d(np.linspace(*mechanism.outputs[[0, -1]] * 1.2, 60), mechanism.outputs)
        _, dual = best_on_a_grid(problem, grid)
        for scale in [0.0, *(10.0**-e for e in range(12))]:
            noisy = Dual(dual.alpha + scale * rng.normal(size=k), dual.beta + scale * rng.normal(size=k))
            with_dual = Mechanism(problem, noisy, mechanism.outputs, mechanism.weights, ratio)
            report = checker.check(text_of(with_dual, tmp_path))
            assert report.bound <= value == report.value


def test_classification_is_bounded_from_above(tmp_path):
    """Randomized response for the uniform prior on k classes is right with probability E/(E + k - 1), and no more."""
    problem = classification(np.full(4, 0.25), 1.0)
    best = math.e / (math.e + 3)
    mechanism = response(problem, np.arange(4), ratio=privacy_ratio(1.0), dual=Dual(np.full(4, -best / 4), np.zeros(4)))
    report = checker.check(text_of(mechanism, tmp_path))
    assert report.maximised
    assert float(report.value) == pytest.approx(best, rel=1e-14)
    assert report.value <= report.bound
    assert 0 <= report.gap < 1e-14


def test_extreme_numbers_do_not_stop_it(tmp_path):
    """Labels whose squares nearly leave the range of floats, a prior of smallest normals, epsilon 1e-300 and 700."""
    tiny = sys.float_info.min
    for labels, prior, epsilon in (
        ([1e-150, 2e-150], [0.5, 0.5], 1.0),
        ([-1e150, 1e150], [0.5, 0.5], 1.0),
        ([0, 1, 2], [tiny, 1.0, 0.0], 1e-300),
        ([0, 1, 2], [tiny, 1.0, 0.0], 700.0),
    ):
        k = len(labels)
        problem = regression(labels, prior, epsilon, bias_penalty=2.0)
        dual = Dual(np.full(k, 1e-5), np.where(problem.prior > 0, 1e-200, 0))
        mechanism = response(problem, labels, ratio=privacy_ratio(epsilon), dual=dual)
        text = text_of(mechanism, tmp_path)
        report = checker.check(text)
        assert report.bound <= report.value
        assert checker.main([str(tmp_path / "checked.json")]) == 0
        assert report.epsilon == mechanism.realised_epsilon
        if abs(report.bound) < 10**308:
            assert float_below(report.bound) == pytest.approx(lower_bound(problem, dual, exact=True), rel=1e-9)
