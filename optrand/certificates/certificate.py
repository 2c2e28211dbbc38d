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
from typing import Protocol, TypeVar

from optrand.base.arithmetic import float_above, float_below, log_above
from optrand.base.numerals import shown_above
from optrand.base.validation import expect, flag
from optrand.certificates import bound as dual_bound
from optrand.certificates.loss import exact_objective
from optrand.certificates.proof import Proof
from optrand.errors import InvalidInput
from optrand.model import losses
from optrand.model.problem import Problem
from optrand.model.solution import Dual
from optrand.model.table import Table

__all__ = ["Certificate", "certify", "certify_table", "lower_bound"]


@dataclass(frozen=True, kw_only=True)
class Certificate(Proof):
    """Verified facts of a mechanism and of the problem that it answers.

    One end of the interval is the exact loss of the mechanism as it is drawn, column for column, the other is the bound
    of the dual. If rounding outputs to floats costs loss, the two are apart by that much. A problem of classification
    is maximised.

    Attributes
    ----------
    lower, upper, maximised, findings
        As in :class:`~optrand.certificates.proof.Proof`.
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
            f"realised epsilon {shown_above(self.epsilon, 10)} of {self.target_epsilon:g}",
            f"largest bias {shown_above(self.bias, 2)}",
        ]


AnyProof = TypeVar("AnyProof", bound=Proof, covariant=True)


class Certifying(Protocol[AnyProof]):
    """A mechanism, or an answer of :mod:`optrand.programs`: each has a certificate of its own kind."""

    def certify(self) -> AnyProof:
        """Compute the certificate from the exact table or the point, and the multipliers."""
        ...


def certify(mechanism: Certifying[AnyProof], /, *, worst_case: bool = False) -> AnyProof:
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
    if not isinstance(getattr(mechanism, "problem", None), Problem):
        raise InvalidInput("worst_case=True takes a mechanism of squared loss, not that of a program")
    return mechanism.certify(worst_case=True)  # type: ignore[call-arg]


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
    """Compute a lower bound of every largest loss, and the largest loss of the table."""
    if problem.loss != losses.squared:
        raise InvalidInput(f"worst_case=True takes squared loss, not {problem.loss.name}")
    if math.isfinite(bound):
        bound = float_below(Fraction(bound) / sum(map(Fraction, problem.prior.tolist())))
    return bound, float_above(max(table.losses(problem.bias_penalty))) if feasible else math.inf


def lower_bound(problem: Problem, dual: Dual) -> float:
    """Compute a lower bound of the loss of every epsilon-DP randomizer of a problem from any multipliers, rounded down.

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
