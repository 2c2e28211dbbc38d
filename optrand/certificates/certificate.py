r"""Certificates: privacy of a mechanism, and its distance from the optimum by a dual bound.

For *any* multipliers :math:`\alpha, \beta` let :math:`h_y(v) = p_y g(v, y) - \alpha_y - \beta_y v`, let :math:`f(v) =
\sum_y ( h_y(v) + (E - 1) \min(h_y(v), 0) )` be the price of the cheapest column at :math:`v`, :math:`E = e^\epsilon`,
and :math:`m = \min_v f(v)` over the allowed outputs. Every epsilon-DP randomizer has a loss of at least

.. math:: \sum_y \alpha_y + \sum_y \beta_y y - \sum_y \frac{\beta_y^2}{2 \lambda p_y}
          + \frac{k}{E + k - 1} \min(0, m) + \frac{1}{E} \max(0, m),

the third term absent where the bias penalty :math:`\lambda` is infinite; where it is finite, :math:`\beta_y = 0` is
required of labels with :math:`\lambda p_y = 0`. Proof: ``docs/mathematics.md``, Theorem 3. This module does not import
a solver.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, Protocol, TypeVar, overload, runtime_checkable

from optrand.base.arithmetic import float_above, float_below, log_above
from optrand.base.numerals import shown_above, shown_below
from optrand.base.validation import expect, flag
from optrand.certificates import bound as dual_bound
from optrand.certificates.loss import exact_objective
from optrand.errors import InvalidInput, NotCertified
from optrand.model import losses
from optrand.model.problem import Problem
from optrand.model.solution import Dual
from optrand.model.table import Table

__all__ = ["Certificate", "certify", "certify_table", "lower_bound"]


@dataclass(frozen=True)
class Certificate:
    """Verified facts of a mechanism and of the problem that it answers.

    Attributes
    ----------
    lower, upper : float
        Bounds of the optimal value, rounded outward; infinite where there is none. One is the exact loss of the
        mechanism as it is drawn, column for column, the other is the bound of the dual. Where rounding outputs to
        floats costs loss, the two are apart by that much.
    target_epsilon : float
        Budget of the problem, in nats.
    epsilon : float
        Realised privacy loss, rounded up.
    bias : float
        Largest ``|E[M(y)] - y|`` over the labels, in units of the labels, rounded up.
    findings : tuple of str
        Reasons why the mechanism does not answer the problem; empty if it does.
    maximised : bool
        Whether the problem is one of classification, where the mechanism's own value is `lower` and the bound `upper`.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.classification([0.5, 0.3, 0.2], 1.0)
    >>> proof = optrand.solve(problem).certificate
    >>> proof.gap < 1e-12, round(proof.lower, 6), proof.epsilon <= 1 + 1e-9
    (True, 0.584847, True)
    """

    lower: float
    upper: float
    target_epsilon: float
    epsilon: float
    bias: float
    findings: tuple[str, ...]
    maximised: bool = False

    def __bool__(self) -> NoReturn:
        """Refuse to be true or false: a certificate that proves nothing is an object, too."""
        raise TypeError("a certificate is neither true nor false: use its require(gap=...), which raises if it fails")

    @property
    def gap(self) -> float:
        """Gap ``upper - lower`` relative to the value of the randomizer, absolute where that is 0; rounded up."""
        value = self.lower if self.maximised else self.upper
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            return math.inf
        return float_above((Fraction(self.upper) - Fraction(self.lower)) / (abs(Fraction(value)) or 1))

    def require(self, gap: float = 1e-9) -> Certificate:
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
                f"the verified gap is {shown_above(self.gap, 3)}, more than the {gap:.3g} that was required: the "
                f"optimum lies between {shown_below(self.lower, 10)} and {shown_above(self.upper, 10)}",
                certificate=self,
            )
        return self

    def __str__(self) -> str:
        """Summary in one line."""
        verdict = "not feasible: " + "; ".join(self.findings) if self.findings else "feasible"
        return (
            f"optimum in [{shown_below(self.lower, 10)}, {shown_above(self.upper, 10)}], "
            f"gap {shown_above(self.gap, 2)}; realised epsilon {shown_above(self.epsilon, 10)} "
            f"of {self.target_epsilon:g}; "
            f"largest bias {shown_above(self.bias, 2)}; {verdict}"
        )


Proof = TypeVar("Proof", covariant=True)


@runtime_checkable
class Certifying(Protocol):
    """A mechanism of a problem."""

    @property
    def problem(self) -> Problem:
        """Problem that the mechanism answers."""
        ...

    @property
    def table(self) -> Table:
        """Exact table."""
        ...

    def certify(self, *, worst_case: bool = ...) -> Certificate:
        """Compute the certificate from the problem, the table and the multipliers."""
        ...


class SelfCertifying(Protocol[Proof]):
    """A mechanism or an answer of :mod:`optrand.programs`, which has a certificate of its own kind."""

    def certify(self) -> Proof:
        """Compute the certificate from the exact table or the point, and the multipliers."""
        ...


@overload
def certify(mechanism: Certifying, /, *, worst_case: bool = ...) -> Certificate: ...
@overload
def certify(mechanism: SelfCertifying[Proof], /) -> Proof: ...
def certify(mechanism: Any, /, *, worst_case: bool = False) -> Any:
    """Certify privacy, unbiasedness and optimality of a mechanism; a bad one gives findings, not an exception.

    Everything is computed again from the problem, the table and the multipliers alone.

    Parameters
    ----------
    mechanism : Mechanism, ProgramMechanism or Answer
        A mechanism or an answer of :mod:`optrand.programs` has a :class:`~optrand.programs.ProgramCertificate`. Tables
        of floats are for :func:`optrand.audit`.
    worst_case : bool
        Whether to bound the largest loss over labels instead of the average one, for squared loss: `upper` is that of
        the mechanism; `lower`, the dual bound over the sum of the prior, is below that of every epsilon-DP randomizer
        that the problem allows (``docs/mathematics.md``, Corollary 4).

    Raises
    ------
    InvalidInput
        Something else, or in the worst case a loss that is not squared.

    Notes
    -----
    The bound costs ``O(k log k)`` off a grid, ``O(k log n)`` on one for squared and ``O(k log n + n)`` for absolute
    loss; the loss of interval columns ``O(k + n log k)``. Else, and for tables, ``O(n k)``.

    Examples
    --------
    Debiased randomized response is best for two labels, whatever the prior:

    >>> import optrand
    >>> proof = optrand.certify(optrand.debiased_rr([0, 1], math.log(3)), worst_case=True)
    >>> proof.gap < 1e-12, round(proof.upper, 9)
    (True, 0.375)
    """
    flag(worst_case, "worst_case")
    if not hasattr(mechanism, "certify") or isinstance(mechanism, type):
        raise InvalidInput(
            f"certify needs a mechanism, not a {type(mechanism).__name__}: certify(solve(problem)); for a table of "
            "floats, optrand.audit(matrix, epsilon)"
        )
    if not worst_case:
        return mechanism.certify()
    if not isinstance(mechanism, Certifying):
        raise InvalidInput("worst_case=True takes a mechanism of squared loss, not that of a program")
    return mechanism.certify(worst_case=True)


def certify_table(problem: Problem, table: Table, dual: Dual | None, *, worst_case: bool = False) -> Certificate:
    """Certify a private table as an answer to a problem, with the multipliers of the bound; see :func:`certify`."""
    bound = -math.inf if dual is None else lower_bound(problem, dual)
    bias = float_above(table.largest_bias)
    findings, value = _find_bias(problem, bias), math.inf
    if not findings:
        value = float_above(exact_objective(problem, table))
        findings = () if value < math.inf else ("its loss overflows in floats",)
    if worst_case:
        bound, value = _worst_case(problem, table, bound, feasible=not findings)
    maximised, ratio = problem.sign < 0, table.largest_ratio
    return Certificate(
        lower=float(-value if maximised else bound),
        upper=float(-bound if maximised else value),
        target_epsilon=problem.epsilon,
        epsilon=math.inf if ratio is None else log_above(ratio),
        bias=bias,
        findings=findings,
        maximised=maximised,
    )


def _find_bias(problem: Problem, bias: float) -> tuple[str, ...]:
    if problem.unbiased and bias:
        return (f"biased by up to {shown_above(bias, 3)} where no bias is allowed",)
    return ()


def _worst_case(problem: Problem, table: Table, bound: float, *, feasible: bool) -> tuple[float, float]:
    """Lower bound of every largest loss, and the largest loss of the table."""
    if problem.loss != losses.squared:
        raise InvalidInput(f"worst_case=True takes squared loss, not {problem.loss.name}")
    if math.isfinite(bound):
        bound = float_below(Fraction(bound) / sum(map(Fraction, problem.prior.tolist())))
    return bound, float_above(max(table.losses(problem.bias_penalty))) if feasible else math.inf


def lower_bound(problem: Problem, dual: Dual) -> float:
    """Lower bound of the loss of every epsilon-DP randomizer with allowed outputs, by any multipliers, rounded down.

    It is that of the minimisation (for classification: minus the probability of a correct output); ``-inf`` if the
    multipliers prove nothing.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.classification([0.5, 0.5], 1.0)
    >>> lower_bound(problem, optrand.Dual([-0.5, -0.5], [0, 0])) <= lower_bound(
    ...     problem, optrand.Dual([-0.36552929, -0.36552929], [0, 0]))
    True
    """
    expect(problem, Problem, "problem", "one of optrand.regression, unbiased_regression or classification")
    expect(dual, Dual, "dual", "a Dual, such as that of a solution")
    if dual.alpha.size != problem.k:
        raise InvalidInput(f"the dual has {dual.alpha.size} entries for {problem.k} labels")
    return dual_bound.lower_bound(problem, dual)
