r"""Certificates: privacy of a mechanism, and its distance from the optimum by a dual bound.

For *any* multipliers :math:`\alpha, \beta` let :math:`h_y(v) = p_y g(v, y) - \alpha_y - \beta_y v`, let :math:`f(v) =
\sum_y ( h_y(v) + (E - 1) \min(h_y(v), 0) )` be the price of the cheapest column at :math:`v`, :math:`E = e^\epsilon`,
and :math:`m = \min_v f(v)` over the allowed outputs. Every epsilon-DP randomizer has a loss of at least

.. math:: \sum_y \alpha_y + \sum_y \beta_y y - \sum_y \frac{\beta_y^2}{2 \lambda p_y}
          + \frac{k}{E + k - 1} \min(0, m) + \frac{1}{E} \max(0, m),

the third term absent if the bias penalty :math:`\lambda` is infinite. If it is finite, :math:`\beta_y = 0` is
required of labels with :math:`\lambda p_y = 0`. Proof: ``docs/mathematics.md``, Theorem 3. The other end of a
certificate is the exact loss of the table that is drawn. This module does not import a solver.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import mul
from typing import Any, NoReturn, Protocol, Self, TypeVar

from optrand import losses
from optrand.base._arithmetic import float_above, float_below, log_above, log_bracket, places, scale_to_integers
from optrand.base._numerals import format_above, format_below
from optrand.base._suggestions import suggest_attributes
from optrand.base._validation import check_flag, suggest_parameters
from optrand.certificates._bound import lower_bound
from optrand.errors import InvalidInput, NotCertified
from optrand.losses import Tabulated
from optrand.model._problem import Dual, Problem
from optrand.model._table import Table

PROVEN = 1e-9
"""Relative gap with which an answer counts as optimal: every solver, and `solve`, stops at it."""


@suggest_attributes(
    {
        "require(gap=1e-9)": (
            "check is_optimal is_valid ok optimal passed private proof proved status unbiased valid verify"
        ),
        "epsilon": "eps",
        "lower": "dual lower_bound",
        "upper": "primal upper_bound",
        "gap": "duality_gap relative_gap",
        "dataclasses.asdict(certificate)": "summary to_dict to_json",
    }
)
@dataclass(frozen=True, kw_only=True)
class Proof:
    """Interval that holds an optimum, between the value of an answer and a bound that no answer passes.

    Attributes
    ----------
    lower, upper : float
        Ends of the interval, rounded outward, infinite if nothing was proven.
    maximised : bool
        Whether larger values are better, so that the answer's own value is `lower` and the bound is `upper`.
    findings : tuple of str
        Reasons why the answer is not feasible, empty if it is.
    """

    lower: float
    upper: float
    maximised: bool = False
    findings: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """Objective at the answer, rounded to the unfavourable side."""
        return self.lower if self.maximised else self.upper

    @property
    def bound(self) -> float:
        """Bound that no feasible answer passes, rounded to the safe side."""
        return self.upper if self.maximised else self.lower

    @property
    def gap(self) -> float:
        """Gap ``upper - lower`` relative to the value, absolute if that is 0, and rounded up. It is never negative."""
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            return math.inf
        # In rationals: a difference of floats could round down.
        difference = Fraction(self.upper) - Fraction(self.lower)
        return float_above(max(Fraction(0), difference) / (abs(Fraction(self.value)) or 1))

    def require(self, gap: float = PROVEN) -> Self:
        """Return this certificate, or raise if it does not prove feasibility and a relative gap of at most `gap`.

        Raises
        ------
        NotCertified
            With the reason, and this certificate attached.
        """
        if self.findings:
            raise NotCertified("; ".join(self.findings), certificate=self)
        if not self.gap <= gap:
            raise NotCertified(
                f"the verified gap is {format_above(self.gap, 3)}, more than the {gap:.3g} that was required: the "
                f"optimum lies between {format_below(self.lower, 10)} and {format_above(self.upper, 10)}",
                certificate=self,
            )
        return self

    def __bool__(self) -> NoReturn:
        """Refuse to be true or false: a certificate that proves nothing is an object, too."""
        raise TypeError("a certificate is neither true nor false: use its require(gap=...), which raises if it fails")

    def _facts(self) -> list[str]:
        """Return the further facts of the summary."""
        return []

    def __str__(self) -> str:
        verdict = "not feasible: " + "; ".join(self.findings) if self.findings else "feasible"
        if self.findings and self.lower > self.upper:
            # A point that breaks rows may be better than every feasible one.
            interval = f"bound {self.bound:.10g}, passed by the value {self.value:.10g}"
        else:
            ends = format_below(self.lower, 10), format_above(self.upper, 10)
            interval = f"optimum in [{', '.join(ends)}], gap {format_above(self.gap, 2)}"
        return "; ".join([interval, *self._facts(), verdict])


@dataclass(frozen=True, kw_only=True)
class Certificate(Proof):
    """Verified facts of a mechanism and of the problem that it answers.

    One end of the interval is the exact loss of the mechanism as it is drawn, column for column, the other is the bound
    of the dual. If rounding outputs to floats costs loss, the two are apart by that much. A problem of classification
    is maximised. Further attributes are those of :class:`~optrand.certificates._certificate.Proof`.

    Attributes
    ----------
    target_epsilon : float
        Budget of the problem, in nats.
    epsilon : float
        Realised privacy loss, rounded up.
    bias : float
        Largest ``|E[M(y)] - y|`` over the labels, in units of the labels, rounded up.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.classification([0.5, 0.3, 0.2], 1.0)
    >>> proof = optrand.solve(problem).certificate
    >>> proof.gap < 1e-12, round(proof.lower, 6), proof.epsilon <= 1 + 1e-9
    (True, 0.584847, True)
    """

    target_epsilon: float
    epsilon: float
    bias: float

    def _facts(self) -> list[str]:
        return [
            f"realised epsilon {format_above(self.epsilon, 10)} of {self.target_epsilon:g}",
            f"largest bias {format_above(self.bias, 2)}",
        ]


AnyProof = TypeVar("AnyProof", bound=Proof, covariant=True)


class Certifying(Protocol[AnyProof]):
    """A mechanism, or an answer of :mod:`optrand.programs`: each has a certificate of its own kind."""

    def certify(self) -> AnyProof:
        """Compute the certificate from the exact table or the point, and the multipliers."""
        ...


@suggest_parameters
def certify(mechanism: Certifying[AnyProof], /, *, worst_case: bool = False) -> AnyProof:
    """Certify privacy, unbiasedness and optimality of a mechanism. A bad one has findings and raises nothing.

    Everything is computed again from the problem, the table and the multipliers alone.

    Parameters
    ----------
    mechanism : Mechanism, ProgramMechanism or Answer
        A mechanism or an answer of :mod:`optrand.programs` has a :class:`~optrand.programs.ProgramCertificate`. Tables
        of floats are for :func:`optrand.audit`.
    worst_case : bool
        Whether to bound the largest loss over labels instead of the average one, for squared loss: `upper` is that of
        the mechanism, and `lower`, the dual bound over the sum of the prior, is below that of every epsilon-DP
        randomizer that the problem allows (``docs/mathematics.md``, Corollary 4).

    Raises
    ------
    InvalidInput
        Another object, or with `worst_case` a loss that is not squared.

    Notes
    -----
    For squared and absolute loss the bound costs ``O(k log k)`` off a grid and ``O(k log n + n)`` on one, and the loss
    of interval columns ``O(k + n log k)``. For other losses and for tables they cost ``O(n k)``.

    Examples
    --------
    Debiased randomized response is best for two labels, whatever the prior:

    >>> import optrand
    >>> proof = optrand.certify(optrand.debiased_rr([0, 1], math.log(3)), worst_case=True)
    >>> proof.gap < 1e-12, round(proof.upper, 9)
    (True, 0.375)
    """
    check_flag(worst_case, "worst_case")
    if not hasattr(mechanism, "certify") or isinstance(mechanism, type):
        raise InvalidInput(
            f"certify needs a mechanism, not a {type(mechanism).__name__}: certify(solve(problem)), or for a table of "
            "floats, optrand.audit(matrix, epsilon)"
        )
    if not worst_case:
        return mechanism.certify()
    if not isinstance(getattr(mechanism, "problem", None), Problem):
        raise InvalidInput("worst_case=True takes a mechanism of squared loss, not that of a program")
    return mechanism.certify(worst_case=True)  # type: ignore[call-arg]


def certify_table(problem: Problem, table: Table, dual: Dual | None, *, worst_case: bool = False) -> Certificate:
    """Certify a private table as an answer to a problem, with the multipliers of the bound (see :func:`certify`)."""
    bound = -math.inf if dual is None else lower_bound(problem, dual)
    bias = float_above(table.largest_bias)
    findings, value = list[str](), math.inf
    if problem.unbiased and bias:
        # A biased table may well beat every unbiased one. Its loss is no upper bound of their optimum.
        findings.append(f"biased by up to {format_above(bias, 3)} where no bias is allowed")
    else:
        value = float_above(exact_objective(problem, table))
        if value == math.inf:
            findings.append("its loss overflows in floats")
    if worst_case:
        bound, value = _bound_worst_case(problem, table, bound, feasible=not findings)
    maximised, ratio = problem.sign < 0, table.largest_ratio
    return Certificate(
        lower=float(-value if maximised else bound),
        upper=float(-bound if maximised else value),
        target_epsilon=problem.epsilon,
        epsilon=math.inf if ratio is None else log_above(ratio),
        bias=bias,
        findings=tuple(findings),
        maximised=maximised,
    )


def _bound_worst_case(problem: Problem, table: Table, bound: float, *, feasible: bool) -> tuple[float, float]:
    """Compute a lower bound of every largest loss, and the largest loss of the table."""
    if problem.loss != losses.squared:
        raise InvalidInput(f"worst_case=True takes squared loss, not {problem.loss.name}")
    # The largest loss is at least the mean loss under any prior. A prior of floats need not sum to exactly 1.
    if math.isfinite(bound):
        bound = float_below(Fraction(bound) / sum(map(Fraction, problem.prior.tolist())))
    return bound, float_above(max(table.losses(problem.bias_penalty))) if feasible else math.inf


def exact_objective(problem: Problem, table: Table) -> Fraction:
    """Compute the objective of the minimisation: the expected loss and the penalty on bias.

    An infinite penalty is not charged: the caller refuses biased tables.
    """
    loss = expected_loss(problem, table)
    if problem.unbiased or not problem.bias_penalty:
        return loss
    charges = zip(map(Fraction, problem.prior.tolist()), table.biases, strict=True)
    return loss + Fraction(problem.bias_penalty) * sum((p * b * b for p, b in charges), Fraction(0)) / 2


def expected_loss(problem: Problem, table: Table) -> Fraction:
    """Compute the expected loss, for classification minus the probability to keep the class.

    It is that of the table that is drawn, in rational arithmetic. An irrational loss is rounded up. A step of a column
    counts for all labels from its place on, so that interval columns cost ``O(k + n log k)`` integer operations.
    """
    if problem.loss == losses.squared:
        return table.mean_squared_error(problem.prior) / 2
    finer = places(problem.prior)
    parts = scale_to_integers(problem.prior, finer)
    if problem.loss == losses.absolute:
        digits = max(places(problem.labels), places(table.outputs))
        labels, outputs = scale_to_integers(problem.labels, digits), scale_to_integers(table.outputs, digits)
        return Fraction(_sum_absolute(parts, labels, outputs, table), table.total << (finer + digits))
    if problem.loss == losses.poisson_log:
        return _sum_poisson(problem, parts, table) / (table.total << finer)
    return _sum_entries(problem, parts, table) / (table.total << finer)


def _sum_absolute(parts: list[int], labels: list[int], outputs: list[int], table: Table) -> int:
    zeroth, once = _sum_from(parts), _sum_from(map(mul, parts, labels))
    whole = 0
    for v, column in zip(outputs, table.columns, strict=True):
        turn = bisect_left(labels, v)
        for y, step in column:
            # Labels before `turn` lie below the output, all others at it or above.
            middle = max(y, turn)
            # Sums of p |v - y| over the labels from the step on: v - y of those below the output, y - v of the others.
            weight, pull = (sums[y] - 2 * sums[middle] for sums in (zeroth, once))
            whole += step * (v * weight - pull)
    return whole


def _sum_poisson(problem: Problem, parts: list[int], table: Table) -> Fraction:
    """Compute the sum of ``v - y log v`` from the weight of each output, and that weight times the label."""
    line = places(problem.labels)
    zeroth, once = _sum_from(parts), _sum_from(map(mul, parts, scale_to_integers(problem.labels, line)))
    whole = Fraction(0)
    for v, column in zip(map(Fraction, table.outputs.tolist()), table.columns, strict=True):
        weight, pull = (sum(step * sums[y] for y, step in column) for sums in (zeroth, once))
        # The lower end of the logarithm rounds the loss up.
        whole += v * weight - log_bracket(v)[0] * Fraction(pull, 1 << line)
    return whole


def _sum_entries(problem: Problem, parts: list[int], table: Table) -> Fraction:
    """Sum a loss that is known entry by entry, in ``O(k n)`` steps, for classes ``O(n)``."""
    # An output is right for one label at most.
    if problem.loss == losses.zero_one:
        rows = {y: i for i, y in enumerate(problem.labels.tolist())}
        own = (rows.get(v) for v in table.outputs.tolist())
        return Fraction(
            -sum(
                parts[row] * sum(step for y, step in column if y <= row)
                for row, column in zip(own, table.columns, strict=True)
                if row is not None
            )
        )
    if isinstance(problem.loss, Tabulated):
        entries = problem.loss_table(table.outputs)
        digits = places(entries.ravel())
        costs: Iterable[list[Any]] = (scale_to_integers(column, digits) for column in entries.T)
    else:
        # An irrational loss counts as the upper end of its bracket.
        bracket, labels, digits = problem.loss.bracket, list(map(Fraction, problem.labels.tolist())), 0
        costs = ([bracket(Fraction(v), y)[1] for y in labels] for v in table.outputs.tolist())
    whole = Fraction(0)
    for each, column in zip(costs, table.columns, strict=True):
        sums = _sum_from(map(mul, parts, each))
        whole += sum(step * sums[y] for y, step in column)
    return whole / (1 << digits)


def _sum_from(amounts: Iterable[int]) -> list[int]:
    """Return sums of the amounts of all labels from each one on, and 0 at the end."""
    return list(accumulate(reversed(list(amounts)), initial=0))[::-1]
