"""Files that somebody has tampered with and sealed again: read or refused in words, soon, and alike by both readers."""

import copy
import decimal
import itertools
import json
import math
import random
import re
import time
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error
from tables import circulant, layered_arcs, resealed, response

from optrand import checker, losses
from optrand.errors import InvalidFile
from optrand.losses import Tabulated
from optrand.model._problem import Dual, Interval, classification, regression, unbiased_regression
from optrand.programs._mechanism import load
from tests.tables import mechanism_of

PATIENCE = 20.0
"""Seconds that a file of a megabyte may take: a hundred times less is usual, and all that grows faster takes longer."""

NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, -5e-324, 2.3e-308, 1e-300, 1e-150, 1e-9, 1.0 + 1e-9, 1e15, 2.0**53, 1e150]
NUMBERS += [1.0000001e150, -1e150, 1e153, 1e308, -1e308, 1.7976931348623157e308, 700.0, 700.0000001, 0.7, 1e-16]
NUMBERS += [math.nan, math.inf, -math.inf, 0, 1, -1, 2, 10**19, 10**25, 2**61 - 1, True, False, None]

STRINGS = ["", "0", "1", "2", "3", "-1", "01", "+1", "1.0", "1e3", " 1", "1\n", "1/2", "1/3", "-1/3", "2/6", "1/0"]
STRINGS += ["0/1", "-0", "inf", "NaN", "\ud800", "é", "٣", "9" * 4000, "9" * 4001, "9" * 5000, "1" + "0" * 3999]
STRINGS += [f"{10**3999}/{10**3999 + 1}", "line", "grid", "interval", "squared", "absolute", "poisson_log", "zero_one"]
STRINGS += ["tabulated", "optrand.mechanism"]

SHAPES = [[], {}, [[]], [1.0], ["1"], [None], {"kind": "line"}, {"name": "squared"}, {"\ud800": 1.0}, [[[[1.0]]]]]


def originals():
    """A mechanism for every loss, allowed set and price of bias, of interval columns and of others."""
    labels, prior, epsilon, ratio = [0.0, 1.0, 2.5], [0.5, 0.25, 0.25], 0.7, Fraction(2)
    dual, plain = Dual([0.1, -0.2, 0.3], [0.5, 0.0, -0.25], 1.5), Dual([0.1, -0.2, 0.3], [0.0] * 3)
    grid, table = [0.25, 1.0, 1.5, 3.0], Tabulated([[0.0, 1.0, 4.0, 9.0], [1.0, 0.0, 1.0, 4.0], [4.0, 1.0, 0.0, 1.0]])
    poisson, absolute = losses.poisson_log, losses.absolute
    asked = [
        (unbiased_regression(labels, prior, epsilon), dual),
        (unbiased_regression(labels, prior, epsilon, outputs=Interval(-9, 9)), None),
        (regression(labels, [0.5, 0.0, 0.5], epsilon, bias_penalty=0.5), Dual([0.1, -0.2, 0.3], [0.5, 0.0, 1.0])),
        (regression(labels, prior, epsilon, outputs=grid), plain),
        (regression(labels, prior, epsilon, loss=absolute), plain),
        (regression(labels, prior, epsilon, loss=absolute, outputs=Interval(-3, 6)), None),
        (regression(labels, prior, epsilon, loss=absolute, bias_penalty=1.0, outputs=grid), dual),
        (regression(labels, prior, epsilon, loss=poisson), plain),
        (regression(labels, prior, epsilon, loss=poisson, bias_penalty=3.0, outputs=grid), dual),
        (regression(labels, prior, epsilon, loss=table, bias_penalty=1.0, outputs=grid), dual),
        (classification(prior, epsilon), plain),
    ]
    rng = random.Random(1)
    for problem, multipliers in asked:
        outputs = problem.labels if problem.loss == losses.zero_one else np.array(grid)
        arcs = layered_arcs(rng, 3, 3, outputs.size, 7)
        for weights in (arcs, circulant(rng, 3, 1, ratio, 5)):
            n = arcs.n if weights is arcs else 3
            yield json.loads(bytes_of(mechanism_of(problem, multipliers, outputs[:n], weights, ratio)))
    yield json.loads(bytes_of(response(asked[0][0], [-9.0, 1.0, 4.0], ratio=ratio, dual=dual)))


def bytes_of(mechanism):
    return json.dumps(mechanism._document)


ORIGINALS = list(originals())


def places(content, path=()):
    yield path
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for name, value in items:
        yield from places(value, (*path, name))


def tampered(rng):
    """One to three things changed in one of the files, and a fresh digest. Now and then a field is given twice."""
    content = copy.deepcopy(rng.choice(ORIGINALS))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        *parents, last = rng.choice([path for path in places(content) if path and path[0] != "digest"])
        target = content
        for name in parents:
            target = target[name]
        edit(target, last, rng)
    text = resealed(content)
    if rng.random() < 0.02:
        name = rng.choice(['"schema"', '"labels"', '"kind"', '"alpha"'])
        text = text.replace(f"{name}:", f"{name}: 1.0, {name}:", 1)
    return text


def edit(target, place, rng):
    change, value = rng.randrange(9), target[place]
    if change == 0:
        del target[place]
    elif change == 1 and isinstance(target, list):
        target.insert(place, copy.deepcopy(value))
    elif change == 2 and isinstance(target, list):
        del target[place:]
    elif change == 3 and isinstance(target, list):
        other = rng.randrange(len(target))
        target[place], target[other] = target[other], value
    elif change == 4 and isinstance(target, dict):
        target[rng.choice(["origin", "remark", "weights", "columns", "schema", "\udfff"])] = rng.choice(
            [*NUMBERS, *SHAPES]
        )
    elif change <= 6 and isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,3999}", value):
        target[place] = str(int(value) * rng.choice([1, 1, 2]) + rng.choice([-1, 1]))
    elif change <= 6 and type(value) is int:
        target[place] = value + rng.choice([-1, 1])
    elif change <= 6 and isinstance(value, float):
        target[place] = rng.choice(
            [value * (1 - 2**-53), value * (1 + 2**-52), -value, value * 2, value + 1, value / 3]
        )
    else:
        target[place] = copy.deepcopy(rng.choice(rng.choice([NUMBERS, STRINGS, SHAPES])))


def verdicts(text, path):
    """Whether the package and the checker accept. An error that is not their own fails the test."""
    path.write_text(text)
    loaded = checked = True
    try:
        load(path)
    except InvalidFile:
        loaded = False
    try:
        checker.check(text)
    except checker.Refused:
        checked = False
    return loaded, checked


def is_private(content):
    """The promise, from the text of the file alone, in rationals: by no code of the package."""
    with decimal.localcontext(prec=120):
        below = Fraction(decimal.Decimal(content["problem"]["epsilon"]).exp()) * (1 - Fraction(1, 10**110))
    k, columns = len(content["problem"]["labels"]), content["columns"]
    steps = [[y for y, _ in column] for column in columns]
    if not all(0 <= y < k for at in steps for y in at) or any(at != sorted(set(at)) for at in steps):
        return False
    if any(int(height) == 0 for column in columns for _, height in column) or len(columns) != len(content["outputs"]):
        return False
    weights = [[sum(int(height) for at, height in column if at <= y) for y in range(k)] for column in columns]
    return (
        len({sum(row) for row in zip(*weights, strict=True)}) == 1
        and all(0 < a <= below * b for column in weights for a, b in itertools.product(column, repeat=2))
        and all(a < b for a, b in itertools.pairwise(content["outputs"]))
    )


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 20))]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_accepted_is_private_and_all_else_is_refused_in_words(seed, tmp_path):
    rng = random.Random(seed)
    counts, slowest = {True: 0, False: 0}, 0.0
    for _ in range(500):
        text = tampered(rng)
        start = time.perf_counter()
        loaded, checked = verdicts(text, tmp_path / "tampered.json")
        slowest = max(slowest, time.perf_counter() - start)
        assert loaded == checked, text
        counts[loaded] += 1
        if loaded:
            assert is_private(json.loads(text)), text
    assert min(counts.values()) > 20, f"both verdicts must occur: {counts}"
    assert slowest < PATIENCE / 4


def large():
    """Files of about a megabyte of something that a careless reader is slow at."""
    content = ORIGINALS[0]
    k, low, asked = 20_000, 10**3900, content["problem"]
    prior, each = np.full(k, 1 / k), list(range(k))
    many = {"labels": np.arange(float(k)).tolist(), "prior": (prior / math.fsum(prior)).tolist()}
    wide = {**content, "dual": None, "problem": asked | many, "outputs": many["labels"]}
    grid = {"outputs": {"kind": "grid", "values": (np.arange(50_000) / 4 - 9).tolist()}, "bias_penalty": 0.0}
    long = {"columns": [[[0, str(10**3999 + i)], [1, "-1"], [2, "1"]] for i in range(80)]}
    flat = {"columns": [[[0, str(10**3990 + i)]] for i in range(80)]}
    repeated = ",".join(f'"field {i}": 1' for i in range(50_000))

    def kept(weight, other):
        """Columns of randomized response, by the text of its two weights."""
        up, down, few = str(weight - other), str(other - weight), str(other)
        steps = [[[0, few], [y, up], [y + 1, down]] for y in each]
        return [[[0, str(weight)], [1, down]], *steps[1:-1], [[0, few], [k - 1, up]]]

    return {
        "fields": resealed({**content, **{f"field {i}": 1.0 for i in each}}),
        "a field given twice": f'{{{repeated}, "field 49999": 2, {resealed(content)[1:]}',
        "a prior beyond floats": resealed({**content, "problem": asked | many | {"prior": [1e308] * k}}),
        "columns": resealed({**wide, "columns": kept(2, 1)}),
        "columns of one total too many": resealed({**wide, "columns": [*kept(2, 1)[:-1], [[0, "1"]]]}),
        "long weights": resealed({**wide, "columns": kept(2 * 10**15 + 1, 10**15 + 3)}),
        "colliding labels": resealed({**wide, "columns": [[[i * (2**61 - 1), "1"]] for i in each]}),
        "a ratio of four thousand digits": resealed(
            {
                **content,
                "dual": None,
                "outputs": [0.5, 1.0],
                "columns": [[[0, str(low + 1)], [1, "-1"]], [[0, str(low)], [1, "1"]]],
            }
        ),
        "weights of four thousand digits": resealed({**content, **flat, "outputs": np.arange(80.0).tolist()}),
        "weights whose total is longer": resealed({**content, **long, "outputs": np.arange(80.0).tolist()}),
        "a grid": resealed({**content, "problem": asked | grid, "dual": None}),
        "a long number": resealed(content).replace("0.7", "0.7" + "0" * 1_000_000),
        "depth": '{"a":' * 200_000,
        "nested lists": resealed(content)[:-1] + ', "deep": ' + "[" * 400_000 + "]" * 400_000 + "}",
    }


ACCEPTED = {
    "columns",
    "long weights",
    "a ratio of four thousand digits",
    "weights of four thousand digits",
    "a grid",
    "a long number",
}


@pytest.mark.nightly
def test_a_megabyte_of_anything_is_read_or_refused_soon(tmp_path):
    for kind, text in large().items():
        start = time.perf_counter()
        assert verdicts(text, tmp_path / "large.json") == (kind in ACCEPTED, kind in ACCEPTED), kind
        assert time.perf_counter() - start < PATIENCE, kind


def test_a_prior_beyond_floats_is_refused_in_words():
    assert_error("divide it by its largest entry, then by its sum", regression, [0, 1, 2], [1e308] * 3, 1.0)
