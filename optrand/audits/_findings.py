"""``optrand.audit``: exact epsilon, delta, leakage, bias and distance from the optimum of a third-party randomizer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from optrand.audits._reading import TOLERANCE, ExactTable
from optrand.base._arithmetic import exp_bracket, float_above, is_at_most_exp, least_reading, log_above
from optrand.base._numerals import format_above, format_below, format_closely
from optrand.base._validation import (
    MAX_EPSILON,
    Floats,
    Record,
    check_epsilon,
    check_labels,
    check_prior,
    check_real,
    check_values,
    rectangular,
    suggest_parameters,
)
from optrand.certificates._certificate import Certificate
from optrand.errors import InvalidInput
from optrand.model._problem import classification, regression
from optrand.model._table import Table
from optrand.solvers import solve

Names = Sequence[object] | ArrayLike


@dataclass(frozen=True)
class Worst:
    """Output with the largest privacy loss, and the two labels that it distinguishes.

    Attributes
    ----------
    output : object
        Name of the output, or its column.
    likely, unlikely : object
        Names of the labels, or their rows. The output is most probable for the label `likely`.
    largest, smallest : Fraction
        Probabilities of the output for the two.
    """

    output: object
    likely: object
    unlikely: object
    largest: Fraction
    smallest: Fraction

    @property
    def ratio(self) -> Fraction | None:
        """Ratio of the two probabilities. None if it is infinite, or if a probability is negative."""
        return None if self.smallest <= 0 < self.largest or self.smallest < 0 else self.largest / self.smallest

    def __str__(self) -> str:
        return (
            f"output {self.output} has probability {_show(self.largest)} if the label is {self.likely}, "
            f"and {_show(self.smallest)} if it is {self.unlikely}"
        )


@dataclass(frozen=True)
class Comparison:
    """Value of a randomizer under a prior, beside the certified optimum.

    Attributes
    ----------
    value : Fraction
        Half the mean squared error. For classes it is the probability that the output is the label.
    optimum : Certificate
        Its `lower` and `upper` enclose the optimum at `epsilon`.
    epsilon : float
        Budget of the optimum: the stated one, or the randomizer's own if that is larger.
    kind : str
        ``"unbiased"``, ``"biased"`` or ``"classes"``.
    """

    value: Fraction
    optimum: Certificate
    epsilon: float
    kind: str

    @property
    def gap(self) -> float:
        """Largest distance from the optimum, relative to the randomizer's own value, or absolute if that is 0."""
        away = self.value - Fraction(self.optimum.lower)
        if self.kind == "classes":
            away = Fraction(self.optimum.upper) - self.value
        return float_above(max(away, Fraction(0)) / (abs(self.value) or 1))

    def __str__(self) -> str:
        best = f"best {'' if self.kind == 'classes' else self.kind + ' '}randomizer at epsilon {self.epsilon:g}"
        ends = f"between {format_below(self.optimum.lower, 6)} and {format_above(self.optimum.upper, 6)}"
        if self.kind == "classes":
            value = f"probability of the true class {format_below(self.value, 6)}"
        else:
            value = (
                f"half squared error {format_above(self.value, 6)} (root mean square {math.sqrt(2 * self.value):.4g})"
            )
        return f"{value}. The {best} has {ends}, so this is within {format_above(100 * self.gap, 3)} % of the optimum"


@dataclass(frozen=True, eq=False)
class Audit(Record):
    """Findings about a randomizer that is given as a table, by :func:`audit`.

    Attributes
    ----------
    table : ExactTable
    stated_epsilon : float
    labels, outputs : tuple
        Names of the rows and of the columns, their numbers by default.
    numeric : bool
        Whether labels and outputs were given as numbers, so that bias is defined.
    comparison : Comparison or None
        Value under the prior and the certified optimum. None without a prior, or if no loss is defined.
    prior : tuple of float or None
        Probabilities of the labels, if they were given.
    """

    table: ExactTable
    stated_epsilon: float
    labels: tuple[object, ...]
    outputs: tuple[object, ...]
    numeric: bool
    comparison: Comparison | None
    prior: tuple[float, ...] | None = None

    def __repr__(self) -> str:
        size = f"{len(self.labels):,} labels, {len(self.outputs):,} outputs"
        return f"<Audit: {size}, epsilon {self.epsilon:g}, stated {self.stated_epsilon:g}>"

    def __bool__(self) -> NoReturn:
        """Raise, as an audit with findings would count as true."""
        raise TypeError("an audit is neither true nor false: read its attribute private, or private_up_to_rounding")

    @property
    def epsilon(self) -> float:
        """Largest logarithm of a ratio of two entries of a column, rounded up. It may be infinite."""
        return _epsilon(self._ratios[0])

    @property
    def normalised_epsilon(self) -> float:
        """Epsilon after each row is divided by its sum: the epsilon of a sampler that normalises rows."""
        return _epsilon(self._ratios[1])

    @property
    def _ratios(self) -> tuple[Fraction | None, Fraction | None]:
        """Largest ratios of the table as given and of that with normalised rows. None if infinite."""
        return self.worst.ratio, None if self._normalised is None else self._normalised.largest_ratio

    @property
    def _most(self) -> float:
        return max(self.epsilon, self.normalised_epsilon)

    @cached_property
    def _normalised(self) -> Table | None:
        """Rows divided by their sums, without outputs that never occur. None if a probability is negative."""
        return None if self.table.negative else self.table.over(*map(np.arange, self.table.weights.shape))

    @cached_property
    def pair_epsilons(self) -> Floats | None:
        """Epsilon of each ordered pair of labels, rounded up, shape ``(k, k)``. None if a probability is negative.

        Entry ``[y, z]`` is the largest logarithm of ``M[y, o] / M[z, o]``, rows normalised: infinite if label `z` never
        has an output of label `y`. The largest entry is :attr:`normalised_epsilon`.
        """
        table, places = self._normalised, range(len(self.labels))
        return None if table is None else np.array([[_epsilon(table.pair_ratio(y, z)) for z in places] for y in places])

    def delta(self, epsilon: float) -> float | None:
        """Return the least delta for which the randomizer is (epsilon, delta)-DP, rounded up.

        It is the largest ``sum_o max(0, M[y, o] - exp(epsilon) M[z, o])`` over pairs of labels, rows normalised. None
        if a probability is negative.

        Parameters
        ----------
        epsilon : float
            In nats, at least 0.
        """
        budget = check_real(epsilon, "epsilon")
        if not 0 <= budget <= MAX_EPSILON:
            raise InvalidInput(f"epsilon is {budget:g}, expected a number from 0 to {MAX_EPSILON:g}")
        if self._normalised is None:
            return None
        # A smaller ratio only raises the excess.
        return float_above(self._normalised.excess(exp_bracket(budget)[0] if budget else Fraction(1)))

    @cached_property
    def maximal_leakage(self) -> float | None:
        """Maximal leakage ``log sum_o max_y M[y, o]`` in nats, rounded up. None if a probability is negative.

        An output multiplies the chance to guess anything about the label at most by its exponential, for any prior
        (Issa, Wagner and Kamath 2020).
        """
        return None if self._normalised is None else log_above(self._normalised.leakage)

    @cached_property
    def guess(self) -> float | None:
        """Probability that the best guess of the label is right, rounded up. None if a probability is negative.

        The prior is the given one, or uniform.
        """
        table, k = self._normalised, len(self.labels)
        if table is None:
            return None
        prior = [Fraction(1, k)] * k if self.prior is None else [Fraction(p) for p in self.prior]
        best = (max(p * weight for p, weight in zip(prior, column, strict=True)) for column in table.weights.T)
        return float_above(sum(best, Fraction(0)) / table.total)

    @cached_property
    def private(self) -> bool:
        """Whether rows are probabilities, and the table keeps the stated epsilon both as given and after normalisation.

        The decision involves no rounding, but the rows of a table of floats may miss 1 by a billionth.
        """
        return self._probabilities and all(
            is_at_most_exp(ratio, least_reading(self.stated_epsilon)) for ratio in self._ratios
        )

    @property
    def _probabilities(self) -> bool:
        """Whether no entry is negative, and the rows sum to 1 up to the rounding of floats."""
        return not self.table.negative and max(map(abs, self.row_errors)) <= self._tolerance

    @property
    def _tolerance(self) -> float:
        return TOLERANCE if self.table.rounded else 0.0

    @property
    def private_up_to_rounding(self) -> bool:
        """Whether it is private, or a table of floats that exceeds the stated epsilon by a billionth at most."""
        rounding = self.table.rounded and self._most <= self.stated_epsilon * (1 + TOLERANCE) + TOLERANCE * 1e-6
        return self.private or (rounding and self._probabilities)

    @cached_property
    def worst(self) -> Worst:
        """Output and pair of labels that attain epsilon. Among infinite ratios, that of the most probable event."""
        weights, unit = self.table.weights, self.table.unit
        ends = zip(self.outputs, weights.T.tolist(), weights.argmax(axis=0), weights.argmin(axis=0), strict=True)
        columns = [
            Worst(output, self.labels[y], self.labels[z], Fraction(column[y], unit), Fraction(column[z], unit))
            for output, column, y, z in ends
            if any(column)
        ]
        return max(columns, key=lambda one: (one.ratio is None, one.largest if one.ratio is None else one.ratio))

    @cached_property
    def row_errors(self) -> tuple[Fraction, ...]:
        """Sum of each row less one, exactly."""
        return tuple(Fraction(total, self.table.unit) - 1 for total in self.table.weights.sum(axis=1))

    @cached_property
    def biases(self) -> tuple[Fraction, ...] | None:
        """``E[M(y)] - y`` of each row, normalised, exactly. None if labels or outputs are not numbers."""
        return None if self._numbers is None else self._in_given_order(self._numbers.biases)

    @cached_property
    def _numbers(self) -> Table | None:
        if not self.numeric or self.table.negative:
            return None
        return self.table.over(np.array(self.labels, float), np.array(self.outputs, float))

    def _in_given_order(self, values: Sequence[Fraction]) -> tuple[Fraction, ...]:
        ranks = np.argsort(np.argsort(np.array(self.labels, float)))
        return tuple(values[rank] for rank in ranks)

    @property
    def bias(self) -> float | None:
        """Largest ``|E[M(y)] - y|``, rounded up. None if labels or outputs are not numbers."""
        return None if self.biases is None else float_above(max(map(abs, self.biases)))

    @property
    def gap(self) -> float | None:
        """Largest distance from the optimum, relative to the randomizer's value. None without a comparison."""
        return None if self.comparison is None else self.comparison.gap

    @property
    def findings(self) -> tuple[str, ...]:
        """Faults in words. Empty if the table has no fault."""
        found = []
        if self.table.negative:
            count = int((self.table.weights < 0).sum())
            found.append("1 probability is negative" if count == 1 else f"{count} probabilities are negative")
        off = [abs(error) for error in self.row_errors]
        wrong = sum(error > self._tolerance for error in off)
        if wrong:
            label = self.labels[off.index(max(off))]
            found.append(
                f"{wrong} row(s) do not sum to 1, that of label {label} misses it by {format_above(max(off), 3)}: "
                "add the missing outputs to every row"
            )
        if self._most > self.stated_epsilon and not self.private_up_to_rounding:
            found.append(f"not {self.stated_epsilon:g}-DP: {self._epsilon_words}, as {self.worst}")
        return tuple(found)

    @property
    def _epsilon_words(self) -> str:
        if self._most == math.inf:
            return "epsilon is infinite"
        after = "" if self._most == self.epsilon else " once its rows are normalised"
        return f"epsilon is {format_above(self._most, 10)}{after}"

    def __str__(self) -> str:
        if self.private and not self._most:
            lines = ["private: the output does not depend on the label"]
        elif self.private:
            lines = [f"private as stated: {self._epsilon_words} (stated {self.stated_epsilon:g}), as {self.worst}"]
        elif self.private_up_to_rounding:
            over = self._most - self.stated_epsilon
            lines = [f"private as stated up to the rounding of floats, by {format_above(over, 2)}, as {self.worst}"]
        else:
            lines = ["NOT private as stated"]
        lines += self.findings
        if self.biases is not None:
            sizes = [abs(bias) for bias in self.biases]
            at = self.labels[sizes.index(max(sizes))]
            lines.append(f"largest bias {format_closely(max(sizes), 3)}" + (f", of label {at}" if max(sizes) else ""))
        if self.comparison is not None:
            lines.append(str(self.comparison))
        return "\n".join(lines)


@suggest_parameters
def audit(
    matrix: ArrayLike | Sequence[Sequence[object]],
    epsilon: float,
    *,
    labels: Names | None = None,
    outputs: Names | None = None,
    prior: ArrayLike | None = None,
) -> Audit:
    """Compute exact epsilon, rows, bias and distance from the optimum of a third-party randomizer.

    Parameters
    ----------
    matrix : (k, m) array or nested lists
        Probabilities, one row per label: floats, fractions, or decimals as text. All are read exactly.
    epsilon : float
        Stated budget, in nats.
    labels : (k,) sequence, optional
        Numbers, or names. If `labels` and `outputs` are both numbers, the loss is half the squared error. Otherwise
        labels are classes, and an output is right if it has the name of the label or, without names, its column.
    outputs : (m,) sequence, optional
        Numbers, or names.
    prior : (k,) array, optional
        Probabilities of the labels. Without them there is no loss to compare.

    Returns
    -------
    Audit
        `print` it for a verdict.

    Raises
    ------
    InvalidInput
        The matrix is not a table of numbers, a row sums to 0 or less, or names do not fit.

    Notes
    -----
    A randomizer without bias (to a billionth of the range of the labels) is compared with the best unbiased one, any
    other with the best of all. The optimum has the stated epsilon, or the randomizer's own if that is larger. Cost
    ``O(k m)`` exact operations, and a solve.

    Examples
    --------
    Randomized response over three outputs, as it should be, and with a label that never yields one of them:

    >>> right = audit(
    ...     [["0.5", "0.25", "0.25"], ["0.25", "0.5", "0.25"], ["0.25", "0.25", "0.5"]], 0.7
    ... )
    >>> right.private, right.epsilon == math.nextafter(math.log(2), 1), right.findings
    (True, True, ())
    >>> right.pair_epsilons.round(3).tolist()
    [[0.0, 0.693, 0.693], [0.693, 0.0, 0.693], [0.693, 0.693, 0.0]]
    >>> round(right.delta(0.5), 6), round(right.maximal_leakage, 6), right.guess
    (0.08782, 0.405465, 0.5)
    >>> print(
    ...     audit([["0.5", "0.25", "0.25"], ["0.25", "0.75", 0], ["0.25", "0.25", "0.5"]], 0.7)
    ... )
    NOT private as stated
    not 0.7-DP: epsilon is infinite, as output 2 has probability 0.5 if the label is 2, and 0 if it is 1
    """
    table, budget = ExactTable.of(matrix), check_epsilon(epsilon)
    k, m = table.weights.shape
    rows, columns = _names(matrix, "index", labels, k, "labels"), _names(matrix, "columns", outputs, m, "outputs")
    numbers = _numbers(rows), _numbers(columns)
    if numbers[0] is not None:
        check_labels(numbers[0])
    numeric = numbers[0] is not None and numbers[1] is not None
    found = Audit(table, budget, rows or tuple(range(k)), columns or tuple(range(m)), numeric, None)
    if prior is None:
        return found
    shares = check_prior(prior, found.labels)
    compared = None if table.negative else _compare(found, shares)
    return replace(found, comparison=compared, prior=tuple(shares.tolist()))


def _compare(found: Audit, prior: Floats) -> Comparison | None:
    """Compare under a prior. Return None if epsilon is infinite or no output is right for any label."""
    epsilon = max(found.stated_epsilon, found._most)
    if epsilon > MAX_EPSILON:
        return None
    if found._numbers is not None and found.bias is not None:
        labels = np.array(found.labels, float)
        values = [error / 2 for error in found._in_given_order(found._numbers.squared_errors)]
        scale = float(np.ptp(labels)) or abs(float(labels[0])) or 1.0
        unbiased = found.bias <= TOLERANCE * scale
        problem = regression(labels, prior, epsilon, bias_penalty=math.inf if unbiased else 0.0)
        kind = "unbiased" if unbiased else "biased"
    else:
        places = {name: i for i, name in enumerate(found.outputs)}
        if not set(found.labels) & set(places):
            return None
        rows = zip(found.labels, found.table.weights.tolist(), strict=True)
        values = [Fraction(row[places[name]] if name in places else 0, sum(row)) for name, row in rows]
        problem, kind = classification(prior, epsilon), "classes"
    value = sum((Fraction(p) * one for p, one in zip(prior.tolist(), values, strict=True)), Fraction(0))
    return Comparison(value, solve(problem).certificate.require(gap=math.inf), epsilon, kind)


def _names(matrix: object, axis: str, given: Names | None, size: int, name: str) -> tuple[object, ...] | None:
    """Return the given names, or those of a frame's rows or columns, unless these are the numbers from 0."""
    axis_names: Any = getattr(matrix, axis, None)
    own = None if axis_names is None or callable(axis_names) else list(axis_names)
    if given is None and own != list(range(size)):
        given = own
    if given is None:
        return None
    # A set has no order, so its names cannot be matched with rows.
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping, Set)):
        raise InvalidInput(f"{name} are of type {type(given).__name__}, expected a sequence of {size}")
    names = tuple(rectangular(given, name).tolist() if isinstance(given, np.ndarray) else given)
    if len(names) != size:
        raise InvalidInput(f"there are {len(names)} {name} for a matrix with {size}, expected one each")
    try:
        distinct = set(names)
    except TypeError:
        raise InvalidInput(f"{name} hold lists or other things that cannot be names: pass numbers or texts") from None
    if len(distinct) != size:
        raise InvalidInput(f"{name} are not distinct: add up the columns of one output, and keep one row per label")
    if own is not None and own != list(names) and set(own) == distinct:
        raise InvalidInput(
            f"the names of the {axis} of the matrix are given in another order: give them in its order, or reindex it"
        )
    return names


def _numbers(names: tuple[object, ...] | None) -> Floats | None:
    if names is None or any(isinstance(name, (str, bytes, bool)) for name in names):
        return None
    return check_values([float(name) if isinstance(name, Fraction) else name for name in names], "labels and outputs")


def _show(probability: Fraction) -> str:
    return str(probability) if probability.denominator == 1 else f"{float(probability):.6g}"


def _epsilon(ratio: Fraction | None) -> float:
    return math.inf if ratio is None else log_above(ratio)
