"""Summary of an answer in numbers that mean something to those who use its noisy labels."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np

from optrand import losses
from optrand.base._validation import check_integer
from optrand.model._problem import Problem
from optrand.model._table import Table


@dataclass(frozen=True)
class Summary:
    """Numbers of a randomizer under the prior of its problem, in floats. :func:`optrand.certify` proves bounds.

    Attributes
    ----------
    labels, outputs : int
    epsilon : float
        In nats.
    value : float
        Objective of the problem.
    value_name : str
        Its name: ``half mean squared error``, or that of another loss, and of a bias penalty.
    deviation : float or None
        Standard deviation of one noisy label about its mean, the root of its mean square over the prior, in units of
        the labels. None for classes.
    mean_deviation : float or None
        Standard deviation that noise gives the mean of `rows` noisy labels, ``deviation / sqrt(rows)``.
    bias : float or None
        Root of the mean squared bias over the prior, which does not average out over rows. None for classes.
    kept : float or None
        Chance that a class is released as it is. None for numbers.
    rows : int
    """

    labels: int
    outputs: int
    epsilon: float
    value: float
    value_name: str
    deviation: float | None
    mean_deviation: float | None
    bias: float | None
    kept: float | None
    rows: int

    @classmethod
    def of(cls, problem: Problem, table: Table, value: float, rows: int) -> Summary:
        """Summarize the table that answers a problem, of a known value. `rows` is an integer above 0."""
        count = check_integer(rows, "rows", 1)
        parts: dict[str, Any] = {"labels": problem.k, "outputs": table.n, "epsilon": problem.epsilon}
        parts |= {"value": value, "rows": count, "value_name": _name_value(problem)}
        if problem.loss == losses.zero_one:
            return cls(**parts, deviation=None, mean_deviation=None, bias=None, kept=value)
        occurs = problem.prior > 0
        prior = problem.prior[occurs]
        deviation = math.sqrt(float(prior @ table.variances[occurs]))
        bias = math.sqrt(float(prior @ np.square(np.array(table.biases, dtype=np.float64)[occurs])))
        # A smaller bias is the rounding of floats, and is reported as 0.
        rounding = 1e-9 * max(deviation, float(np.ptp(problem.labels)))
        bias = bias if bias > rounding else 0.0
        return cls(**parts, deviation=deviation, mean_deviation=deviation / math.sqrt(count), bias=bias, kept=None)

    @property
    def facts(self) -> dict[str, str]:
        """Facts in words, by their names."""
        facts = {
            "labels": f"{self.labels:,}",
            "outputs": f"{self.outputs:,}",
            "epsilon": f"{self.epsilon:g}",
            self.value_name: f"{self.value:.7g}",
        }
        if self.deviation is not None:
            facts["standard deviation of a noisy label"] = f"{self.deviation:.7g} (label units)"
            facts[f"... of the mean of {self.rows:,} rows"] = f"{self.mean_deviation:.7g} (label units)"
            facts["root mean squared bias"] = f"{self.bias:.7g} (label units)"
        return facts

    def record(self) -> dict[str, Any]:
        """Return attributes by name, for JSON or a table."""
        return asdict(self)

    def __str__(self) -> str:
        width = max(map(len, self.facts))
        return "\n".join(f"{name:<{width}}   {fact}" for name, fact in self.facts.items())

    def _repr_html_(self) -> str:
        """Return the table of the facts, in a notebook."""
        rows = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(fact)}</td></tr>'
            for name, fact in self.facts.items()
        )
        return f"<table>{rows}</table>"


def _name_value(problem: Problem) -> str:
    if problem.loss == losses.zero_one:
        return "chance to keep a class"
    names = {
        "squared": "half mean squared error",
        "absolute": "mean absolute error",
        "poisson_log": "mean Poisson log loss",
    }
    name = names.get(problem.loss.name, f"mean {problem.loss.name} loss")
    return name if problem.unbiased or not problem.bias_penalty else f"{name}, and the penalty on bias"
