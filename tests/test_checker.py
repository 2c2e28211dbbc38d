"""The independent checker: it stands alone, agrees with `load`, and its bound is below every mechanism's loss."""

import copy
import decimal
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
from asserting import assert_error, by_case
from tables import resealed, response
from test_hostile_files import ORIGINALS, places, verdicts

from optrand import checker
from optrand.base._arithmetic import exp_bracket, float_below, log_bracket, privacy_ratio
from optrand.certificates._bound import lower_bound
from optrand.model._problem import Dual, regression
from tests.tables import mechanism_of

SOURCE = Path(checker.__file__)


def text_of(mechanism, tmp_path):
    mechanism.save(tmp_path / "checked.json", overwrite=True)
    return (tmp_path / "checked.json").read_text()


# ------------------------------------------------------------------------------------------------------ it stands alone
def run(*arguments, cwd):
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def coin():
    """Labels -1, 1 at E = 3 up to rounding: the optimum of `by_hand` below, with outputs -2, 2 and no bias at all."""
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
    assert (lines["private"], lines["bias"]) == (f"proven, with epsilon {math.log(3)!r}", "0.0")
    assert float(lines["value"]) == coin.value
    assert abs(float(lines["gap"].split(",")[0])) < 1e-14

    content = json.loads(path.read_bytes())
    content["columns"] = [[[0, "31"], [1, "-21"]], [[0, "9"], [1, "21"]]]
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
def test_without_multipliers_or_with_forbidden_bias_there_is_no_bound(tmp_path, coin):
    without = mechanism_of(coin.problem, None, coin.outputs, coin.weights, coin.ratio)
    report = checker.check(text_of(without, tmp_path))
    assert (report.bound, report.gap) == (None, None)
    assert "no multipliers" in report.note
    poisson, *_ = (each for each in ORIGINALS if each["problem"]["loss"]["name"] == "poisson_log")
    assert checker.check(resealed(poisson)).note == "no bound for poisson_log off a grid"
    assert checker.check(text_of(coin, tmp_path)).bound is not None
    shifted = mechanism_of(coin.problem, coin.dual, [-2.0, math.nextafter(2.0, 3)], coin.weights, coin.ratio)
    report = checker.check(text_of(shifted, tmp_path))
    assert report.bound is None
    assert report.bias == Fraction(3, 4) / 2**51
    assert report.note == f"bias is forbidden, and the largest is {float(report.bias)!r}"


@pytest.mark.parametrize("content", ORIGINALS[::2], ids=range(len(ORIGINALS[::2])))
def test_negative_zeros_are_no_numbers_of_a_file(content, tmp_path):
    """A loaded mechanism has the digest of its file, which is never that of a file with a -0.0."""
    zeros = 0
    for path in places(content):
        changed = copy.deepcopy(content)
        at = changed
        for step in path[:-1]:
            at = at[step]
        if path and type(at[path[-1]]) is float and at[path[-1]] == 0:
            at[path[-1]] = -0.0
            zeros += 1
            assert verdicts(resealed(changed), tmp_path / "zero.json") == (False, False), path
    assert zeros


TEXT = json.dumps(ORIGINALS[-1], sort_keys=True, separators=(",", ":"))
"""An unbiased mechanism."""


def test_white_space_is_free():
    for spread in ({"indent": 3}, {"separators": (" ,\n", "\t:\r\n")}):
        assert checker.check(json.dumps(json.loads(TEXT), **spread)) == checker.check(TEXT)


@pytest.mark.parametrize("name", ["labels", "name", "alpha", "columns", "digest", "d\\u0069gest"])
def test_no_field_may_be_given_twice_at_any_depth(name, tmp_path):
    text = json.dumps(json.loads(TEXT))
    place = text.index(f'"{name.encode().decode("unicode_escape")}": ')
    for first in ("0", '"1"', '{"a": [{}]}', f'"{name}"'):
        twice = f'{text[:place]}"{name}" :{first}, {text[place:]}'
        assert json.loads(twice) == json.loads(text)
        assert verdicts(twice, tmp_path / "twice.json") == (False, False)
        assert_error("given twice", checker.check, twice, error=checker.Refused)


MALFORMED = [
    (lambda text: text[:-5], "not JSON"),
    (lambda text: text.replace('"schema":1', '"schema":2'), "newer optrand"),
    (lambda text: text.replace("0.7", "NaN"), "not JSON of finite numbers"),
    (lambda text: text.replace("0.7", "1e999"), "not JSON of finite numbers"),
    (lambda text: text.replace('"sha256:', '"sha256:0'), "digest is not that"),
    (lambda text: text.replace("0.25", "0.2500001"), "digest is not that"),
    (lambda text: text.replace('"columns"', '"rows"'), "missing, malformed or unknown: 'columns', 'rows'"),
    (lambda _: "[" * 100_000, "not JSON"),
    (lambda _: "[]", "not an optrand mechanism"),
    (lambda _: '{"schema": true}', "not an optrand mechanism"),
]
FIELDS = [
    *[("columns", [[[0, height]]] * 3) for height in ("007", "7\n", 7, 7.0, "0", "-0", "+7", "--7", "7" * 4001)],
    *[("columns", [[[label, "1"]]] * 3) for label in ("0", 0.0, -1, True, None)],
    *[("columns", wrong) for wrong in ([], [[]], [[[]]], [[[0, "1", "1"]]], [[0, "1"]], {}, "1")],
    ("outputs", [-1, 1.0, 3.0]),
    ("outputs", [-1.0, 1.0, True]),
    ("outputs", [[-1.0, 1.0, 3.0]]),
    ("format", "optrandXmechanism"),
    ("dual", {"alpha": [0.5] * 3, "beta": [0.5] * 3, "origin": 1.0, "more": 1.0}),
    ("dual", {"alpha": [0.5] * 3, "beta": [0.5] * 3, "origin": 0.0}),
    ("dual", {"alpha": [], "beta": []}),
    ("schema", -1),
]


def with_field(field, value):
    return lambda text: resealed({**json.loads(text), field: value})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [*MALFORMED, *((with_field(*each), f"missing, malformed or unknown: '{each[0]}'") for each in FIELDS)],
)
def test_what_is_malformed_is_named(spoil, message, tmp_path):
    text = spoil(TEXT)
    assert verdicts(text, tmp_path / "spoilt.json") == (False, False)
    assert_error(message, checker.check, text, error=checker.Refused)


def test_a_total_of_more_digits_than_a_weight_may_have_is_refused(tmp_path):
    for digits, accepted in ((3999, True), (4000, False)):
        columns = [[[0, "9" * digits]], [[0, "1"]], [[0, "1"]]]
        text = with_field("columns", columns)(TEXT)
        assert verdicts(text, tmp_path / "long.json") == (accepted, accepted)


# ------------------------------------------------------------------------------------------- exp and log, by themselves
@pytest.mark.parametrize("x", [5e-324, 1e-300, 1e-9, 0.5, 1.0, math.pi, 20.0, 700.0])
def test_exp_bounds_hold_the_exponential_tightly(x):
    low, high = checker._exp_bounds(Fraction(x))
    below, above = exp_bracket(x, 1500)
    assert low < below < above < high
    assert (high - low) * 2**110 < below - 1


@by_case("x", Fraction(5e-324), Fraction(1, 3), 1 - Fraction(1, 2**60), Fraction(1), Fraction(7, 5), 10**320)
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
    (v^2 - 2vt + 1)/2 + lam (vt - 1)^2 / 2, least at v = t (1 + lam)/(1 + lam t^2), at lam = inf at v = 1/t. With
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
    text = text_of(mechanism, tmp_path)
    report = checker.check(text)
    if report.bias and penalty == math.inf:  # a float misses the optimum's output: one bound, and nothing to compare
        assert (report.bound, report.gap) == (None, None)
        bound = checker._bound(checker._read(checker._parse(text)))[0]
        assert float(bound) == pytest.approx(float(report.value), rel=1e-12)
    else:
        assert report.bound <= report.value
        assert 0 <= report.gap < 1e-12


@pytest.mark.nightly
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
            assert float_below(report.bound) == pytest.approx(lower_bound(problem, dual), rel=1e-9)
