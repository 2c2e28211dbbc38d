"""The price of bias: every compromise between the least loss and no bias, which [B23] leaves to future work.

Weeks worked (53 labels) at four epsilons. A penalty on squared bias goes from 0 to infinity; at every penalty the
mechanism is proven to have the least loss, so that no mechanism of the same bias has less variance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, Row, Table
from benchmarks.priors import WEEKS, posed
from optrand.studies import SweepRow, sweep

EPSILONS = (0.5, 1.0, 2.0, 4.0)
COLUMNS = {
    "epsilon": "epsilon:g",
    "penalty": "penalty:g",
    "loss and penalty": "value:.6f",
    "gap": "gap:.1e",
    "deviation": "deviation:.4f",
    "bias": "bias:.4f",
    "outputs": "outputs",
    "verdict": "verdict",
}


def measure(given: Any) -> Iterator[Row]:
    """Sweep the penalties at every epsilon."""
    penalties = [0.0, *np.geomspace(1e-2, 1e4, 3 if given.smoke else 25).tolist(), math.inf]
    for row in sweep(posed("weeks", 6 if given.smoke else WEEKS, 1.0), epsilons=EPSILONS, bias_penalties=penalties):
        proven = row.status == "certified" and row.gap <= 1e-9
        yield {
            "epsilon": row.epsilon,
            "penalty": row.bias_penalty,
            "value": row.value,
            "gap": row.gap,
            "deviation": math.sqrt(row.variance),
            "bias": math.sqrt(row.squared_bias),
            "outputs": row.outputs,
            "right": proven,
            "verdict": "proven within 1e-09" if proven else f"not proven: {row.reason}",
            "row": row,
        }


def draw(rows: Sequence[Row], _: Any) -> Any:
    """Draw bias against variance."""
    from optrand.plotting import frontier_figure

    swept: list[SweepRow] = [row.pop("row") for row in rows]
    return frontier_figure(swept)


TABLES = (Table("Weeks worked: bias and variance from penalty 0 to infinity", "penalty", COLUMNS),)
main = Benchmark("frontier", __doc__, measure, TABLES, draw=draw).run
