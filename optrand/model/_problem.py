"""Problems: a loss to minimise over all epsilon-DP randomizers of a set of labels, with allowed outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from optrand import losses
from optrand.base._arithmetic import float_above, float_below, privacy_ratio
from optrand.base._suggestions import suggest_attributes
from optrand.base._validation import (
    Floats,
    Value,
    check_distinct,
    check_epsilon,
    check_labels,
    check_prior,
    check_real,
    check_squarable,
    check_values,
    exactly,
    freeze_array,
    rectangular,
    suggest_parameters,
)
from optrand.errors import Infeasible, InvalidInput
from optrand.losses import Loss, Tabulated


@dataclass(frozen=True)
class Line:
    """All real numbers."""

    low: ClassVar[float] = -math.inf
    high: ClassVar[float] = math.inf


@dataclass(frozen=True)
class Interval:
    """All real numbers from ``low`` to ``high``, both included.

    Examples
    --------
    >>> Interval(-10, 60)
    Interval(low=-10.0, high=60.0)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", check_real(self.low, "the interval's low end") + 0.0)
        object.__setattr__(self, "high", check_real(self.high, "the interval's high end") + 0.0)
        check_squarable(np.array([self.low, self.high]), "the interval's ends")
        if self.low >= self.high:
            raise InvalidInput(f"the interval from {self.low:g} to {self.high:g} is empty: its low end must be lower")


@dataclass(frozen=True, eq=False)
class Grid(Value):
    """Grid of given values, kept in increasing order.

    Examples
    --------
    >>> Grid([3, 1, 2]).values.tolist()
    [1.0, 2.0, 3.0]
    """

    values: Floats

    def __post_init__(self) -> None:
        array = check_values(self.values, "outputs")
        check_distinct(array, "outputs")
        check_squarable(array, "outputs")
        object.__setattr__(self, "values", freeze_array(np.sort(array)))

    @property
    def low(self) -> float:
        """Smallest value."""
        return float(self.values[0])

    @property
    def high(self) -> float:
        """Largest value."""
        return float(self.values[-1])

    def __repr__(self) -> str:
        if self.values.size <= 6:
            return f"Grid({self.values.tolist()})"
        return f"<Grid: {self.values.size} values from {self.low:g} to {self.high:g}>"


OutputSet = Line | Interval | Grid


def as_output_set(given: OutputSet | ArrayLike | None) -> OutputSet:
    """Return an output set: ``None`` is the line, an array is a grid."""
    if given is None:
        return Line()
    if isinstance(given, (Line, Interval, Grid)):
        return given
    if isinstance(given, tuple) and len(given) == 2:
        raise InvalidInput(
            f"outputs={given!r} may mean two things: pass Interval{given!r} for all numbers between the two, "
            f"or Grid({list(given)!r}) for these two numbers alone"
        )
    if isinstance(given, str | dict | set):
        raise InvalidInput(
            f"outputs is of type {type(given).__name__}, expected Interval(low, high), Grid([...]), an array of "
            "numbers, or None for the real line"
        )
    return Grid(rectangular(given, "outputs"))


def in_words(allowed: OutputSet) -> str:
    """Return the allowed outputs in words."""
    ends = "on the real line" if isinstance(allowed, Line) else f"from {allowed.low!r} to {allowed.high!r}"
    return f"of {allowed.values.size} values {ends}" if isinstance(allowed, Grid) else f"anywhere {ends}"


def unbiased_range(labels: ArrayLike, epsilon: float) -> tuple[float, float]:
    """Return the narrowest ends between which there is an unbiased epsilon-DP randomizer, rounded outward.

    With ``E = exp(epsilon)`` they are ``(E y_min - y_max) / (E - 1)`` and ``(E y_max - y_min) / (E - 1)``
    (``docs/mathematics.md``, section 6), here for the rational ratio just below ``E`` of exact mechanisms.

    Examples
    --------
    >>> import math
    >>> [round(end, 12) for end in unbiased_range([0, 1], math.log(3))]
    [-0.5, 1.5]
    """
    return _find_unbiased_range(check_labels(labels), check_epsilon(epsilon))


def _find_unbiased_range(labels: Floats, epsilon: float) -> tuple[float, float]:
    low, high = Fraction(float(labels.min())), Fraction(float(labels.max()))
    overhang = (high - low) / (privacy_ratio(epsilon) - 1)
    return float_below(low - overhang), float_above(high + overhang)


@suggest_attributes(
    {
        "optrand.solve(problem)": (
            "gap is_dcp matrix objective P plot Q solution solve solver solver_stats status summary"
        ),
        "optrand.programs.algorithm1": "constraints get_problem_data parameters",
        "loss": "cost kind task",
        "epsilon": "alpha eps",
        "bias_penalty": "bias penalty",
        "labels": "bounds classes domain",
        "k": "size size_metrics",
        "outputs": "grid n variables",
        "dataclasses.replace(problem, epsilon=1.0)": "copy replace",
        "dataclasses.asdict(problem)": "to_dict",
    }
)
@dataclass(frozen=True, eq=False)
class Problem(Value):
    r"""Problem of minimising the expected loss, and a penalty on bias, over epsilon-DP randomizers.

    .. math:: \sum_y p_y \Big( E[g(v, y)] + \tfrac{\lambda}{2} (E[v] - y)^2 \Big), \qquad v \sim M(y)

    with :math:`\lambda` = `bias_penalty`. If it is infinite, the penalty is the constraint ``E[v] = y`` for every
    label, those of prior zero included.

    Parameters
    ----------
    labels : (k,) array
        Strictly increasing.
    prior : (k,) array
        Probabilities of the labels. Zeros are welcome.
    epsilon : float
        Privacy budget in nats.
    loss : Loss or Tabulated
        See :mod:`optrand.losses`.
    bias_penalty : float
        From 0 to ``math.inf`` (unbiased).
    outputs : Line, Interval or Grid
        Allowed outputs.

    Raises
    ------
    InvalidInput
        An argument without meaning.
    Infeasible
        Outputs between whose ends no unbiased randomizer exists.
    """

    labels: Floats
    prior: Floats
    epsilon: float
    loss: Loss | Tabulated
    bias_penalty: float
    outputs: OutputSet

    def __post_init__(self) -> None:
        labels = check_labels(self.labels)
        if (np.diff(labels) <= 0).any():
            raise InvalidInput(
                "labels of a Problem must increase: use the constructors, which sort them with the prior"
            )
        self._set(labels, check_prior(self.prior, labels))

    def _set(self, labels: Floats, prior: Floats) -> None:
        """Set labels and prior, which are checked, and check the rest."""
        object.__setattr__(self, "labels", freeze_array(labels))
        object.__setattr__(self, "prior", freeze_array(prior))
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "bias_penalty", _check_bias_penalty(self.bias_penalty))
        if not isinstance(self.loss, (Loss, Tabulated)):
            raise InvalidInput(losses.unknown(self.loss))
        exactly(self.loss, (Loss, Tabulated), "loss")
        exactly(self.outputs, (Line, Interval, Grid), "outputs")
        self._check_loss()
        if self.unbiased:
            self._check_feasible()

    def _check_loss(self) -> None:
        loss, outputs = self.loss, self.outputs
        if isinstance(loss, Tabulated):
            if not isinstance(outputs, Grid):
                raise InvalidInput("a tabulated loss needs outputs on a grid, one column per value")
            loss.table(self.labels, outputs.values)
        elif losses.by_name.get(loss.name) != loss and not isinstance(outputs, Grid):
            raise InvalidInput(
                f"the loss {loss.name!r} is not one of optrand.losses, and such a loss needs outputs on a grid: pass "
                "the allowed values as outputs=[...]"
            )
        elif loss == losses.zero_one and (not isinstance(outputs, Grid) or self.bias_penalty):
            raise InvalidInput(
                "zero_one needs outputs on a grid and no bias penalty: use classification(prior, epsilon)"
            )
        elif loss != losses.squared and self.bias_penalty and not isinstance(outputs, Grid):
            raise InvalidInput(f"{loss.name} with a bias penalty needs outputs on a grid: pass outputs=[...]")
        if loss.positive_outputs:
            if self.labels[0] < 0:
                raise InvalidInput(f"{loss.name} needs labels of at least 0")
            if isinstance(outputs, (Interval, Grid)) and outputs.low <= 0:
                raise InvalidInput(f"{loss.name} needs outputs above 0")

    def _check_feasible(self) -> None:
        low, high = _find_unbiased_range(self.labels, self.epsilon)
        # A range that is too short by a few roundings of the formula is left to a proof.
        largest = max(abs(low), abs(high))
        slack = 8 * math.ulp(largest) if math.isfinite(largest) else 0.0
        if self.k == 1:
            low = high = float(self.labels[0])
        for side, label, have, need in (
            ("lowest", self.labels[0], self.outputs.low, low),
            ("highest", self.labels[-1], self.outputs.high, high),
        ):
            if (have > need + slack) if side == "lowest" else (have < need - slack):
                raise Infeasible(
                    f"the {side} label, {label:g}, cannot be unbiased at epsilon {self.epsilon:g}: the {side} output "
                    f"is {have:g}, and outputs that reach from {low!r} to {high!r} or further would do "
                    "(optrand.feasible_output_set makes such a grid)"
                )

    @property
    def k(self) -> int:
        """Number of labels."""
        return self.labels.size

    @property
    def origin(self) -> float:
        """Origin from which labels are measured without loss: 0, or a middle label if they lie 16 ranges away from it.

        If labels are within a factor of two of each other, the difference of any two is a float (Sterbenz,
        *Floating-Point Computation*, 1974, Theorem 4.3.1).
        """
        far = max(abs(self.labels[0]), abs(self.labels[-1])) > 16 * (self.labels[-1] - self.labels[0])
        return float(self.labels[self.k // 2]) if far and self.k > 1 else 0.0

    @property
    def unbiased(self) -> bool:
        """Whether the bias penalty is infinite."""
        return self.bias_penalty == math.inf

    @property
    def bias_weights(self) -> Floats:
        """Twice the cost of a squared bias of each label: ``bias_penalty * prior``, or infinity for unbiased."""
        return np.full(self.k, math.inf) if self.unbiased else self.bias_penalty * self.prior

    @property
    def sign(self) -> float:
        """Sign of the reported value: -1 for classification, which reports the probability of a correct output."""
        return -1.0 if self.loss == losses.zero_one else 1.0

    def loss_table(self, outputs: Floats) -> Floats:
        """Return the loss of each of some allowed outputs for every label, shape ``(k, len(outputs))``."""
        if isinstance(self.loss, Loss):
            return self.loss.table(self.labels, outputs)
        grid = self.outputs.values if isinstance(self.outputs, Grid) else outputs
        where = np.minimum(np.searchsorted(grid, outputs), grid.size - 1)
        if not np.array_equal(grid[where], outputs):
            raise InvalidInput("a tabulated loss is known for the values of its grid only")
        return self.loss.entries[:, where]

    def value(self, randomizer: Any) -> float:
        """Compute the objective of a ``Randomizer``. For classification the chance that the output is the label."""
        if self.loss == losses.squared:
            expected = float(self.prior @ randomizer.squared_errors) / 2
        else:
            blocks = randomizer.blocks()
            expected = sum(float(self.prior @ np.einsum("ki,ki->k", m, self.loss_table(v))) for v, m in blocks)
        if self.bias_penalty and not self.unbiased:
            expected += 0.5 * self.bias_penalty * float(self.prior @ randomizer.biases**2)
        return self.sign * expected

    def __repr__(self) -> str:
        bias = "unbiased" if self.unbiased else f"bias penalty {self.bias_penalty:g}"
        return (
            f"<Problem: {self.k} labels, epsilon {self.epsilon:g}, loss {self.loss.name}, {bias}, "
            f"outputs {in_words(self.outputs)}>"
        )


@dataclass(frozen=True, eq=False)
class Dual(Value):
    """Multipliers of the two families of constraints, one of each per label.

    Attributes
    ----------
    alpha : (k,) array
        Multipliers of ``sum_i M[y, i] = 1``, in units of the loss.
    beta : (k,) array
        Multipliers of ``E[M(y)] = y`` (or of the definition of the bias, at a finite penalty), in loss per unit of the
        label. Zero if bias is free.
    origin : float
        The output from which `beta` is measured: far from zero, floats hold good multipliers only near the labels.

    Notes
    -----
    In a minimisation ``h_y(v) = p_y g(v, y) - alpha_y - beta_y (v - origin)`` is the reduced cost. Any numbers give
    a true bound (:func:`optrand.lower_bound`).
    """

    alpha: Floats
    beta: Floats
    origin: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "origin", check_real(self.origin, "origin") + 0.0)
        # Adding 0 turns -0.0 into 0.0: equal duals have one digest.
        object.__setattr__(self, "alpha", freeze_array(freeze_array(self.alpha) + 0.0))
        object.__setattr__(self, "beta", freeze_array(freeze_array(self.beta) + 0.0))
        if self.alpha.ndim != 1 or self.alpha.shape != self.beta.shape:
            raise InvalidInput("a dual needs two vectors of one length, one entry per label")
        if not (np.isfinite(self.alpha).all() and np.isfinite(self.beta).all()):
            raise InvalidInput("a dual needs finite multipliers")

    def __repr__(self) -> str:
        return f"<Dual: multipliers of {self.alpha.size} labels>"


def _check_bias_penalty(given: object) -> float:
    if isinstance(given, float) and given == math.inf:
        return math.inf
    penalty = check_real(given, "bias_penalty")
    if penalty < 0:
        raise InvalidInput(f"bias_penalty is {penalty}, expected a number from 0 to math.inf")
    return penalty + 0.0


@suggest_parameters
def regression(
    labels: ArrayLike,
    prior: ArrayLike,
    epsilon: float,
    *,
    loss: Loss | Tabulated = losses.squared,
    bias_penalty: float = 0.0,
    outputs: OutputSet | ArrayLike | None = None,
) -> Problem:
    """State the problem of the least expected loss, with a penalty on bias.

    Parameters
    ----------
    labels : (k,) array
        Distinct numbers in any order. They are sorted, and the prior (and the rows of a tabulated loss) with them.
    prior : (k,) array
        Probabilities.
    epsilon : float
        Privacy budget in nats.
    loss : Loss or Tabulated
        Squared by default.
    bias_penalty : float
        0 gives randomized response on bins if outputs may lie anywhere, ``math.inf`` gives unbiased randomizers.
    outputs : None, Line, Interval, Grid or (n,) array
        The real line by default. An array means exactly these values, in any order, that of the columns of a tabulated
        loss.

    Examples
    --------
    >>> regression([2, 0, 1], [0.2, 0.5, 0.3], 1.0).prior.tolist()
    [0.5, 0.3, 0.2]
    """
    array = check_labels(labels)
    weights = check_prior(prior, array)
    order = np.argsort(array)
    allowed = as_output_set(outputs)
    if isinstance(loss, Tabulated) and isinstance(allowed, Grid):
        loss.table(array, allowed.values)
        columns = slice(None) if allowed is outputs else np.argsort(np.asarray(outputs))
        loss = Tabulated(loss.entries[order][:, columns])
    problem = object.__new__(Problem)
    for name, value in (("epsilon", epsilon), ("loss", loss), ("bias_penalty", bias_penalty), ("outputs", allowed)):
        object.__setattr__(problem, name, value)
    problem._set(array[order], weights[order])
    return problem


@suggest_parameters
def unbiased_regression(
    labels: ArrayLike, prior: ArrayLike, epsilon: float, *, outputs: OutputSet | ArrayLike | None = None
) -> Problem:
    """State the problem of least expected squared error without bias ([B23], Algorithm 1, also on the real line).

    It is :func:`regression` with loss :math:`(v - y)^2 / 2` and an infinite bias penalty.

    Examples
    --------
    >>> unbiased_regression([0, 1], [0.5, 0.5], 1.0).unbiased
    True
    """
    return regression(labels, prior, epsilon, bias_penalty=math.inf, outputs=outputs)


@suggest_parameters
def classification(prior: ArrayLike, epsilon: float, *, labels: ArrayLike | None = None) -> Problem:
    """State the problem of the largest probability that the output is the label (LP1 of [G21]).

    Parameters
    ----------
    prior : (K,) array
        Probabilities of the classes.
    epsilon : float
        Privacy budget in nats.
    labels : (K,) array, optional
        The numbers that name the classes, ``0 ... K-1`` by default.

    Examples
    --------
    >>> classification([0.5, 0.3, 0.2], 1.0).labels.tolist()
    [0.0, 1.0, 2.0]
    """
    names = np.arange(rectangular(prior, "prior").size) if labels is None else labels
    return regression(names, prior, epsilon, loss=losses.zero_one, outputs=names)
