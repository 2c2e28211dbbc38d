"""How time and memory grow with the number of labels: the optimal unbiased randomizer of 11 to 100,001 labels.

Each number of labels is solved in a fresh process, at epsilon 1 on the real line, for a rough and for a smooth prior;
the clock runs over `solve` and `certify`, and the exact mechanism is proven. The growth is fitted as a power of the
number of labels, once over all of them and once by two powers that meet, where they meet best: that is where the growth
turns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import Reading, read_clock, required_gap
from benchmarks.harness import circumstances, duration, options, print_table, write_json
from benchmarks.speed import MEGABYTE, posed
from benchmarks.worker import Worker
from optrand.base.validation import Floats

__all__ = ["Growth", "growth"]

EPSILON = 1.0
SIZES = (11, 21, 53, 101, 201, 401, 701, 1_001, 2_001, 4_001, 10_001, 40_001, 100_001)
SMALL_SIZES = (6, 11, 16, 21, 26)
FAMILIES = ("Dirichlet", "exponential")
REPEATS = 5
PATIENCE = 20.0
"""Seconds on the clock after which a solve is not repeated."""

COLUMNS = ("prior", "labels", "time", "exponent", "runs", "tabulate", "outputs", "peak", "exact gap", "verdict")


@dataclass(frozen=True)
class Growth:
    """Powers of the number of labels: one for all, and two that meet.

    Attributes
    ----------
    overall : float
        The exponent of one power.
    before, after : float
        The exponents of two powers that agree at `turn`.
    turn : float
        The number of labels at which the growth changes.
    fit : (labels, times) arrays
        The two powers, at each number of labels that was measured.
    """

    overall: float
    before: float
    after: float
    turn: float
    fit: Floats


def growth(sizes: Sequence[int], amounts: Sequence[float]) -> Growth:
    """Least squares on logarithms; the turn is one of the sizes, with two smaller and two larger ones.

    Examples
    --------
    >>> found = growth([10, 20, 40, 80, 160], [1.0, 2.0, 4.0, 16.0, 64.0])
    >>> round(found.before, 3), round(found.after, 3), found.turn
    (1.0, 2.0, 40)
    """
    x, y = np.log(np.array(sizes, dtype=np.float64)), np.log(np.array(amounts, dtype=np.float64))
    overall = float(np.polyfit(x, y, 1)[0])
    best, turn, parts, fit = math.inf, math.nan, np.full(3, math.nan), np.full(x.size, math.nan)
    for place in range(2, x.size - 2):
        columns = np.stack([np.ones(x.size), x, np.maximum(x - x[place], 0)], axis=1)
        found = np.linalg.lstsq(columns, y, rcond=None)[0]
        error = float(np.square(columns @ found - y).sum())
        if error < best:
            best, turn, parts, fit = error, sizes[place], found, np.exp(columns @ found)
    return Growth(overall, float(parts[1]), float(parts[1] + parts[2]), turn, fit)


def judged(prior: str, k: int, found: Reading, needed: float) -> dict[str, Any]:
    """A reading as one flat record."""
    proven = found.gap <= needed
    verdict = f"proven within {needed:g}" if proven else f"not proven within {needed:g}"
    return {
        "prior": prior,
        "k": k,
        "epsilon": EPSILON,
        "seconds": found.median,
        "runs": len(found.seconds),
        "tabulating": found.median_tabulating,
        "outputs": max(found.outputs, default=0),
        "megabytes": found.peak / MEGABYTE,
        "exact_gap": found.gap,
        "proven": proven,
        "verdict": found.error or verdict,
    }


def records(prior: str, sizes: Sequence[int], limit: float) -> Iterator[dict[str, Any]]:
    """A fresh process for each number of labels."""
    for k in sizes:
        problem = posed(prior, k, EPSILON)
        worker = Worker()
        read_clock(worker, (posed(prior, 5, EPSILON),), repeats=1, patience=0.0, limit=limit)
        found = read_clock(worker, (problem,), repeats=REPEATS, patience=PATIENCE, limit=limit)
        worker.close()
        yield judged(prior, k, found, required_gap(problem))


def row(record: dict[str, Any], before: dict[str, Any] | None) -> list[str]:
    """A row of the table; the exponent is that from the row before."""
    start = [record["prior"], f"{record['k']:,}"]
    if not record["runs"]:
        return [*start, *("-" * 7), record["verdict"]]
    exponent = "-"
    if before and before["runs"]:
        exponent = f"{math.log(record['seconds'] / before['seconds']) / math.log(record['k'] / before['k']):.2f}"
    return [
        *start,
        duration(record["seconds"]),
        exponent,
        str(record["runs"]),
        duration(record["tabulating"]),
        f"{record['outputs']:,}",
        f"{record['megabytes']:.0f} MB",
        f"{record['exact_gap']:.1e}",
        record["verdict"],
    ]


def picture(found: dict[str, list[dict[str, Any]]], growths: dict[str, Growth], results: Path, name: str) -> None:
    """Time and peak memory against the number of labels."""
    from benchmarks.pictures import FAINT, drawing, log_log, looks

    with drawing(results, name, (7.2, 3.4)) as figure:
        left, right = figure.subplots(1, 2)
        for look, (prior, rows) in zip(looks(found, "priors"), found.items(), strict=True):
            sizes = [record["k"] for record in rows]
            law = growths[prior]
            powers = f"{prior}: $k^{{{law.before:.2f}}}$, then $k^{{{law.after:.2f}}}$ from {law.turn:,}"
            left.plot(sizes, [record["seconds"] for record in rows], label=powers, **look)
            left.plot(sizes, law.fit, label="_two powers", **FAINT)
            right.plot(sizes, [record["megabytes"] for record in rows], label=prior, **look)
        sizes = [record["k"] for rows in found.values() for record in rows]
        ticks = [size for size in (11, 101, 1_001, 10_001, 100_001) if min(sizes) <= size <= max(sizes)]
        log_log(left, "labels", "solving and proving (s)", ticks)
        log_log(right, "labels", "peak memory of the process (MB)", ticks)
        right.set_ylim(bottom=50)
        left.legend(loc="upper left")
        right.legend(loc="upper left")
        figure.suptitle(f"Optimal unbiased randomizers on the real line, ε = {EPSILON:g}, proven exactly", fontsize=9)


def main(arguments: Sequence[str]) -> int:
    """Measure, fit, print, draw, and return 1 if an answer is not proven."""
    given = options("labels", __doc__, limit=120.0).parse_args(arguments)
    found: dict[str, list[dict[str, Any]]] = {}
    for prior in FAMILIES[:1] if given.smoke else FAMILIES:
        found[prior] = []
        for record in records(prior, SMALL_SIZES if given.smoke else SIZES, given.limit):
            found[prior].append(record)
            print(f"{prior}, {record['k']:,} labels: {record['verdict']}", flush=True)
    rows = [row(now, before) for here in found.values() for before, now in zip([None, *here], here, strict=False)]
    print_table(f"Time and memory against the number of labels\n{circumstances()}", COLUMNS, rows)
    ended = {prior: [record for record in here if record["runs"]] for prior, here in found.items()}
    growths = {prior: growth([r["k"] for r in here], [r["seconds"] for r in here]) for prior, here in ended.items()}
    for prior, law in growths.items():
        print(
            f"{prior}: time grows as k^{law.overall:.2f} over all; as k^{law.before:.2f}, and from {law.turn:,} labels "
            f"on as k^{law.after:.2f}"
        )
    name = "labels-smoke" if given.smoke else "labels"
    write_json(given.results, name, [record for here in found.values() for record in here])
    picture(ended, growths, given.results, name)
    return 0 if all(record["proven"] for here in found.values() for record in here) else 1
