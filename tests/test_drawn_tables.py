"""A certificate is about the table that is drawn: loss, bias and epsilon of files, by fractions from their text alone.

The expected values are computed without the package. The text of a file is read with :mod:`json`, the table in it is
written out in fractions, and :mod:`oracle` takes its loss. The package and the stand-alone checker then read the
same text: both accept it or both refuse it, and their statements on an accepted one are true.
"""

import decimal
import json
import math
import random
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from asserting import assert_error
from oracle import Channel, exponential, least_float, split_cost
from tables import circulant, resealed

import optrand
from optrand import Interval, Mechanism, certify, checker, losses, solve
from optrand.base import _strict_json
from optrand.errors import InvalidFile
from tests.tables import mechanism_of

LONGEST = 630
"""Outputs of the longest chain of neighbouring floats: such a file was once verified at 0.264, and lost 235.4."""

# ------------------------------------------------------------------------------------------------------------ the truth


@dataclass(frozen=True)
class Truth:
    """Loss, largest bias and ratio of the table that the text of a file holds."""

    least: Fraction
    most: Fraction
    bias: Fraction
    ratio: Fraction


def written(mechanism: Mechanism) -> str:
    return _strict_json.canonical(mechanism._document).decode()


def rows_of(content: dict[str, Any]) -> list[list[int]]:
    """The table of a file, or of one that is being crafted, entry by entry."""
    if "weights" in content:
        return [list(row) for row in content["weights"]]
    heights = [dict(column) for column in content["columns"]]
    steps = [[int(height.get(y, 0)) for height in heights] for y, _ in enumerate(content["problem"]["labels"])]
    return [list(row) for row in accumulate(steps, lambda above, row: list(map(sum, zip(above, row, strict=True))))]


def ratio_of(content: dict[str, Any]) -> Fraction:
    return max(Fraction(max(column), min(column)) for column in zip(*rows_of(content), strict=True))


def truth_of(text: str) -> Truth:
    content = json.loads(text)
    asked, rows = content["problem"], rows_of(content)
    totals = [sum(row) for row in rows]
    channel = Channel(
        list(map(Fraction, content["outputs"])),
        [[Fraction(weight, total) for weight in row] for row, total in zip(rows, totals, strict=True)],
    )
    allowed = {name: np.array(values) for name, values in asked["outputs"].items() if name == "values"}
    problem = SimpleNamespace(
        labels=np.array(asked["labels"]),
        prior=np.array(asked["prior"]),
        bias_penalty=float(asked["bias_penalty"]),
        loss=SimpleNamespace(name=asked["loss"]["name"], entries=np.array(asked["loss"].get("entries", []))),
        outputs=SimpleNamespace(**allowed),
    )
    assert channel.ratio is not None
    assert channel.worst_row == 0
    return Truth(*channel.objective(problem), channel.largest_bias(problem.labels), channel.ratio)


def examine(text: str, path: Path) -> tuple[str, float]:
    """Hold the package and the checker to the truth of a file. Return how it ended, and the certified gap."""
    path.write_text(text)
    try:
        report = checker.check(text)
    except checker.Refused:
        assert_error(None, optrand.load, path, error=InvalidFile)
        return "refused", math.inf
    loaded, truth = optrand.load(path), truth_of(text)
    proof = certify(loaded)
    # Privacy and bias are stated for every file, also with other findings.
    for stated in (proof.epsilon, loaded.realised_epsilon, report.epsilon):
        assert truth.ratio <= exponential(stated)[1]
        assert truth.ratio <= exponential(decimal.Decimal(repr(stated)))[1]
    assert truth.ratio <= exponential(loaded.epsilon)[1]
    assert truth.ratio <= exponential(decimal.Decimal(repr(loaded.epsilon)))[1]
    assert truth.bias == report.bias == max(map(abs, loaded.exact_biases))
    assert math.nextafter(proof.bias, -1) < truth.bias <= proof.bias
    sign = -1 if report.maximised else 1
    low, high = (proof.lower, proof.upper) if sign > 0 else (-proof.upper, -proof.lower)
    value, bound = sign * report.value, None if report.bound is None else sign * report.bound
    # The checker rounds logarithms and the charge of a bias up, far beyond the digits of a float.
    assert truth.least <= value <= truth.most + abs(truth.most) * Fraction(1, 10**20)
    rounded = loaded.problem.loss == losses.poisson_log or 0 < loaded.problem.bias_penalty < math.inf
    assert value == truth.most or rounded
    assert low <= high
    if bound is not None:
        assert bound <= truth.least
    if proof.findings:
        # The bound is that of the problem, which a mechanism that is not allowed may well undercut.
        assert high == math.inf
        return "found wanting", math.inf
    assert low <= truth.least
    assert truth.least <= high
    assert truth.least < truth.most or high == least_float(truth.most)
    # Two proofs of one bound by other arithmetic, of which neither knows the other.
    if bound is not None and math.isfinite(low):
        assert abs(Fraction(low) - bound) <= Fraction(1, 10**9) * max(abs(bound), abs(truth.least))
    return "certified", proof.gap


# ----------------------------------------------------------------------------------------------------------- far labels
def far_problem(rng: np.random.Generator) -> optrand.Problem:
    """Labels up to 1e15 or at powers of two, neighbouring floats or wider apart, at any epsilon from 0.1 to 20."""
    k, epsilon = int(rng.integers(2, 9)), float(np.exp(rng.uniform(math.log(0.1), math.log(20))))
    if rng.random() < 0.3:
        epsilon = float(rng.choice([0.1, 0.3, 0.5, 1.0, 2.0, 8.0, 12.0, 16.0, 20.0]))
    # On either side of a power of two floats are not equally far apart.
    away = float(rng.choice([np.rint(10 ** rng.uniform(3, 15)), 1e15, 2.0**49, 2.0 ** int(rng.integers(10, 50))]))
    unit = 2.0 ** int(rng.integers(0, 12)) * math.ulp(away)
    steps = [1, 1, 3] if k == 4 and rng.random() < 0.5 else rng.integers(1, 9, size=k - 1)
    labels = away + unit * (np.concatenate(([0.0], np.cumsum(steps))) - int(rng.integers(0, 3)))
    prior = np.full(k, 1 / k) if rng.random() < 0.3 else rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])))
    return optrand.unbiased_regression(labels * rng.choice([-1.0, 1.0]), prior, epsilon)


def examine_far(problem: optrand.Problem, path: Path) -> tuple[float, float]:
    """Gap of the drawn mechanism, with and without the rounding of its outputs, relative to the loss."""
    mechanism = solve(problem)
    ended, gap = examine(written(mechanism), path)
    assert ended == "certified"
    assert certify(mechanism).upper == certify(optrand.load(path)).upper
    return gap, gap - split_cost(mechanism) / certify(mechanism).upper


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.nightly)])
def test_the_loss_of_far_labels_is_that_of_the_table_that_is_drawn(count: int, tmp_path) -> None:
    rng = np.random.default_rng([29, count])
    found = [examine_far(far_problem(rng), tmp_path / "far.json") for _ in range(count)]
    # Some labels are so close that floats cost a share of the loss, and the gap states it. Nothing else is lost.
    assert max(gap for gap, _ in found) > 1e-3
    assert max(rest for _, rest in found) < 1e-9


def test_what_floats_cost_is_in_the_gap(tmp_path) -> None:
    """Labels one float apart: the drawn table loses 3.401e-8, and outputs of any digits would lose 2.886e-8."""
    problem = optrand.unbiased_regression(2.0**52 + np.array([0.0, 1.0, 2.0, 5.0]), np.full(4, 0.25), 20.0)
    mechanism = solve(problem)
    proof, truth = certify(mechanism), truth_of(written(mechanism))
    assert proof.lower == pytest.approx(2.8856e-8, rel=1e-4)
    assert proof.upper == least_float(truth.most) == pytest.approx(3.4009e-8, rel=1e-4)
    assert examine(written(mechanism), tmp_path / "far.json")[0] == "certified"


# ------------------------------------------------------------------------------------------------------- crafted tables
def originals(rng: np.random.Generator) -> list[str]:
    """Files of optimal mechanisms near zero and far from it, of every loss and allowed set."""
    three, four, away = [0.0, 1.0, 2.0], [0.0, 1.0, 2.5, 4.0], float(rng.choice([1.0, 1e3, 2.0**20, 1e12, 2.0**49]))
    prior, epsilon = rng.dirichlet(np.ones(3)), float(rng.choice([0.1, 0.7, 1.0, 2.0, 5.0, 12.0]))
    heavy, regression = rng.dirichlet(np.ones(4)), optrand.regression
    table = losses.Tabulated(rng.integers(0, 9, (3, 5)).astype(float))
    low, high = optrand.unbiased_range(three, epsilon)
    width, grid = high - low, np.array([-3.0, -1.0, 0.5, 2.0, 5.0])
    asked = [
        optrand.unbiased_regression(away + np.array(four), heavy, epsilon),
        optrand.unbiased_regression(three, prior, epsilon, outputs=Interval(low - 0.1 * width, high + width)),
        optrand.unbiased_regression([-1.0, 1.0], [0.25, 0.75], epsilon),
        regression(away + np.array(four), heavy, epsilon),
        regression(four, heavy, epsilon, bias_penalty=3.0),
        regression(four, heavy, epsilon, loss=losses.absolute),
        regression(three, prior, epsilon, loss=losses.absolute, bias_penalty=0.5, outputs=grid),
        regression([1.0, 2.0, 4.0], prior, epsilon, loss=losses.poisson_log),
        regression(three, prior, epsilon, loss=table, outputs=grid),
        optrand.classification(prior, epsilon),
    ]
    return [written(solve(problem)) for problem in asked]


def with_rows(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content with rows of weights in place of columns, to be crafted on."""
    return {name: field for name, field in content.items() if name != "columns"} | {"weights": rows_of(content)}


def with_columns(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a file: the steps of each column."""
    rest = {name: field for name, field in content.items() if name != "weights"}
    steps = [
        [[y, str(after - before)] for y, (before, after) in enumerate(pairwise([0, *column])) if after != before]
        for column in zip(*content["weights"], strict=True)
    ]
    return rest | {"columns": steps}


def set_columns(content: dict[str, Any], columns: list[tuple[float, tuple[int, ...]]]) -> None:
    """Write columns in the order of their outputs, those of one output added up."""
    merged = dict[float, tuple[int, ...]]()
    for v, column in columns:
        merged[v + 0.0] = tuple(map(sum, zip(merged.get(v + 0.0, (0,) * len(column)), column, strict=True)))
    content["outputs"] = sorted(merged)
    rows = list(zip(*(merged[v] for v in content["outputs"]), strict=True))
    content["weights"] = [list(row) for row in rows]


def chain(v: float, before: int, after: int) -> list[float]:
    """An output with a number of floats before and after it, each the neighbour of the next."""
    found = [v]
    for count, end in ((before, -math.inf), (after, math.inf)):
        place = v
        for _ in range(count):
            place = math.nextafter(place, end)
            found.append(place)
    return sorted(found)


def spread(content: dict[str, Any], rng: random.Random) -> None:
    """Each output's column, divided among a chain of neighbouring floats, evenly or not."""
    longest = max(1, rng.choice([1, 2, 3, 20, LONGEST]) // (2 * len(content["outputs"])))
    even, columns = rng.random() < 0.5, []
    for v, column in zip(content["outputs"], zip(*rows_of(content), strict=True), strict=True):
        reach = rng.randint(1, longest)
        places = chain(v, reach, reach if even else rng.randint(0, longest))
        # Shares of 10**9, of which one float takes the rest, so that every column is divided and none changed.
        shares = [10**9 // len(places) if even else rng.randint(1, 10**6) for _ in places[1:]]
        for place, share in zip(places, [10**9 - sum(shares), *shares], strict=True):
            columns.append((place, tuple(share * weight for weight in column)))
    set_columns(content, columns)


def nudge(content: dict[str, Any], rng: random.Random) -> None:
    """Some outputs moved by a few floats, or by a share of their size."""
    for i, v in enumerate(content["outputs"]):
        if rng.random() < 0.6:
            share = rng.choice([-1, 1]) * 10.0 ** -rng.randint(6, 16)
            content["outputs"][i] = rng.choice([rng.choice(chain(v, 3, 3)), v * (1 + share)]) + 0.0


def pull_aside(content: dict[str, Any], rng: random.Random) -> None:
    """Weights of thousands of digits, and far outputs of next to no probability."""
    factor = 10 ** rng.choice([0, 3, 30, 300, 3000])
    columns = [
        (v, tuple(factor * weight for weight in column))
        for v, column in zip(content["outputs"], zip(*rows_of(content), strict=True), strict=True)
    ]
    for _ in range(rng.randint(1, 3)):
        columns.append((rng.choice([-1, 1]) * 10.0 ** rng.randint(-20, 140), (1,) * len(columns[0][1])))
    set_columns(content, columns)


def shuffle(content: dict[str, Any], rng: random.Random) -> None:
    """Another table altogether at the same outputs or at neighbouring floats, private and anything but optimal."""
    k = len(content["problem"]["labels"])
    weights = circulant(rng, k, rng.randint(1, 3), ratio_of(content), 10 ** rng.choice([1, 5, 50]))
    allowed = content["problem"]["outputs"].get("values")
    places = list(allowed or [*content["outputs"], *chain(rng.choice(content["outputs"]), 5, 5)])
    outputs = [rng.choice(places) for _ in range(weights.shape[1])]
    set_columns(content, list(zip(outputs, map(tuple, weights.T.tolist()), strict=True)))


def break_table(content: dict[str, Any], rng: random.Random) -> None:
    """Something that no mechanism has: columns of zeros, equal outputs, rows of other totals, a column too steep."""
    outputs, rows, kind = content["outputs"], content["weights"], rng.randrange(5)
    i = rng.randrange(len(outputs))
    if kind == 0:
        outputs.insert(i, math.nextafter(outputs[i], -math.inf))
        for row in rows:
            row.insert(i, 0)
    elif kind == 1:
        outputs.insert(i, outputs[i])
        for row in rows:
            row.insert(i, row[i])
    elif kind == 2:
        row = rng.choice(rows)
        row[i] += 1
    elif kind == 3:
        rows[0][i] = 0
    else:
        # Rows keep their totals, and columns break the ratio.
        steep = 1000 * math.ceil(ratio_of(content))
        weights = rows_of(content)
        steep *= max(map(max, weights))
        columns = list(zip(outputs, zip(*weights, strict=True), strict=True))
        columns += [(outputs[i], (steep, *[1] * (len(rows) - 1)))]
        columns += [(math.nextafter(outputs[-1], math.inf), (1, *[steep] * (len(rows) - 1)))]
        set_columns(content, columns)


def forge_dual(content: dict[str, Any], rng: random.Random) -> None:
    """Multipliers scaled, exchanged or of any size: all that they prove must be true."""
    dual = content["dual"]
    if dual is None:
        return
    scale = 1 + rng.choice([1e-15, -1e-12, 1e-6, 0.1, -2.0, 1e6])
    for name in ("alpha", "beta"):
        dual[name] = [x * scale * (1 + rng.choice([0.0, 1e-9]) * rng.random()) + 0.0 for x in dual[name]]
    if rng.random() < 0.2:
        dual["alpha"].reverse()


CRAFTS = {"spread": spread, "nudge": nudge, "pull aside": pull_aside, "shuffle": shuffle, "break": break_table}


def crafted(texts: list[str], rng: random.Random) -> tuple[str, str]:
    """Name of the craft, and the text of a file that it made, sealed."""
    content = with_rows(json.loads(rng.choice(texts)))
    name = rng.choice([*CRAFTS, "spread", "nudge"])
    CRAFTS[name](content, rng)
    if rng.random() < 0.3:
        forge_dual(content, rng)
    return name, resealed(with_columns(content))


@pytest.mark.parametrize("count", [100, pytest.param(5000, marks=pytest.mark.nightly)])
def test_what_is_certified_of_a_crafted_file_is_so(count: int, tmp_path) -> None:
    found, rng = Counter[tuple[str, str]](), random.Random(0)
    for number in range(count):
        if number % 100 == 0:
            texts = originals(np.random.default_rng([count, number]))
        name, text = crafted(texts, rng)
        found[name, examine(text, tmp_path / "crafted.json")[0]] += 1
    assert {end for _, end in found} == {"certified", "found wanting", "refused"}
    assert {end for name, end in found if name == "break"} == {"refused"}
    assert all(found[name, "certified"] >= count / 100 for name in ("spread", "nudge", "pull aside", "shuffle")), found


def test_a_chain_of_630_outputs_loses_what_it_draws(tmp_path) -> None:
    """Each output of a coin, spread evenly over 315 numbers: half their variance, ``(315**2 - 1) / 24``, more."""
    problem = optrand.unbiased_regression([2.0**52, 2.0**52 + 512], [0.5, 0.5], 1.0)
    outputs = [2.0**52 - 512 + step for step in range(-157, 158)] + [2.0**52 + 1024 + step for step in range(-157, 158)]
    weights = [[2] * 315 + [1] * 315, [1] * 315 + [2] * 315]
    mechanism = mechanism_of(problem, solve(problem).dual, [v + 0.0 for v in outputs], weights, Fraction(2))
    text = written(mechanism)
    truth = truth_of(text)
    assert len(outputs) == LONGEST
    assert truth.bias == 0
    assert truth.most == (Fraction(2, 3) * 512**2 + Fraction(1, 3) * 1024**2) / 2 + Fraction(315**2 - 1, 24)
    assert examine(text, tmp_path / "chain.json")[0] == "certified"
