r"""Certificates: privacy of a randomizer, and its distance from the optimum by a dual bound.

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
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import overload

from optrand.base.arithmetic import float_above, float_below
from optrand.base.numerals import shown_above, shown_below
from optrand.base.validation import expect, flag
from optrand.certificates import exact as exact_pricing
from optrand.certificates import exact_loss
from optrand.certificates.measurements import Measurements
from optrand.errors import InvalidInput, NotCertified
from optrand.mechanism.mechanism import Mechanism
from optrand.model import losses
from optrand.model.kept import content, kept
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual, Solution

__all__ = ["Certificate", "certify", "lower_bound"]


@dataclass(frozen=True)
class Certificate:
    """Verified facts of a randomizer and of the problem that it answers.

    Attributes
    ----------
    lower, upper : float
        Bounds of the optimal value, rounded outward; infinite where there is none. One is the exact loss of the
        mechanism, or of the exact repair of a randomizer in floats; the other is the bound of the dual.
    target_epsilon : float
        Budget of the problem, in nats.
    epsilon : float
        Realised privacy loss, rounded up; infinite if the randomizer is not private at all.
    bias : float
        Largest ``|E[M(y)] - y|`` over the labels, in units of the labels.
    exact : bool
        Whether privacy, rows and biases are those of a mechanism, in exact arithmetic. Float randomizers are checked to
        a tolerance; `epsilon` and `bias` are their own, the loss is that of their repair.
    findings : tuple of str
        Reasons why the randomizer is not feasible; empty if it is.
    maximised : bool
        Whether the problem is one of classification, where the randomizer's own value is `lower` and the bound `upper`.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.classification([0.5, 0.3, 0.2], 1.0)
    >>> proof = optrand.certify(optrand.solve(problem))
    >>> proof.gap < 1e-12, round(proof.lower, 6), proof.epsilon <= 1 + 1e-9
    (True, 0.584847, True)
    """

    lower: float
    upper: float
    target_epsilon: float
    epsilon: float
    bias: float
    exact: bool
    findings: tuple[str, ...]
    maximised: bool = False

    @property
    def asked(self) -> float:
        """Name of :attr:`target_epsilon` in version 0.1."""
        warnings.warn("Certificate.asked is now target_epsilon", DeprecationWarning, stacklevel=2)
        return self.target_epsilon

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


@overload
def certify(subject: Solution | Mechanism, /, *, exact: bool = ..., worst_case: bool = ...) -> Certificate: ...
@overload
def certify(
    subject: Problem,
    randomizer: Randomizer | Mechanism,
    /,
    dual: Dual | None = ...,
    *,
    exact: bool = ...,
    worst_case: bool = ...,
) -> Certificate: ...
def certify(
    subject: Solution | Mechanism | Problem,
    randomizer: Randomizer | Mechanism | None = None,
    /,
    dual: Dual | None = None,
    *,
    exact: bool = False,  # noqa: ARG001
    worst_case: bool = False,
) -> Certificate:
    """Certify privacy, unbiasedness and optimality of a randomizer; a bad one gives findings, not an exception.

    Parameters
    ----------
    subject : Solution, Mechanism or Problem
        A solution or a mechanism brings its problem and dual; a problem needs a randomizer beside it.
    randomizer : Randomizer or Mechanism
        Only with a problem.
    dual : Dual, optional
        Only with a problem: the multipliers of the bound. Without one only feasibility is stated.
    exact : bool
        Of no effect any more: bounds and losses are always computed in exact arithmetic.
    worst_case : bool
        Whether to bound the largest loss over labels instead of the average one, for squared loss: `upper` is that of
        the randomizer; `lower`, the dual bound over the sum of the prior, is below that of every epsilon-DP randomizer
        that the problem allows (``docs/mathematics.md``, Corollary 4).

    Raises
    ------
    InvalidInput
        Arguments that do not fit together, or in the worst case a loss that is not squared.

    Notes
    -----
    The bound costs ``O(k log k)`` off a grid, ``O(k log n)`` on one for squared and ``O(k log n + n)`` for absolute
    loss; a randomizer of arcs ``O(k + n log n)``. Else, and for tables, ``O(n k)``.

    Examples
    --------
    A table that leaves out an output for one label only is not private:

    >>> import optrand
    >>> problem = optrand.classification([0.5, 0.5], 1.0)
    >>> broken = optrand.Randomizer([0, 1], [0, 1], [[1.0, 0.0], [0.3, 0.7]], 1.0)
    >>> optrand.certify(problem, broken).epsilon
    inf

    Debiased randomized response is best for two labels, whatever the prior:

    >>> proof = optrand.certify(optrand.debiased_rr([0, 1], math.log(3)), worst_case=True)
    >>> proof.gap < 1e-12, round(proof.upper, 9)
    (True, 0.375)
    """
    flag(worst_case, "worst_case")
    if isinstance(subject, Problem):
        if randomizer is None:
            raise InvalidInput("certify(problem, randomizer) needs a randomizer or a mechanism beside the problem")
        if not isinstance(randomizer, Randomizer | Mechanism):
            raise InvalidInput(
                f"beside a problem certify needs a randomizer, not a {type(randomizer).__name__}: wrap a table in "
                "Randomizer(labels, outputs, matrix, epsilon)"
            )
        problem, answer = subject, randomizer
    else:
        if not isinstance(subject, Solution | Mechanism):
            raise InvalidInput(
                "certify needs a solution, a mechanism, or a problem and a randomizer, "
                f"not a {type(subject).__name__}: "
                "certify(solve(problem)), or certify(problem, randomizer) for a randomizer of your own"
            )
        if randomizer is not None or dual is not None:
            raise InvalidInput("this brings its own problem and dual: pass certify(problem, randomizer, dual) instead")
        problem, dual = subject.problem, subject.dual
        answer = subject.randomizer if isinstance(subject, Solution) else subject
    bound = -math.inf if dual is None else lower_bound(problem, dual)
    if isinstance(answer, Mechanism):
        facts = Measurements.of_mechanism(problem, answer)
    else:
        facts = Measurements.of_randomizer(problem, answer)
    value, maximised = facts.value, problem.sign < 0
    if worst_case:
        bound, value = _worst_case(problem, answer, bound, feasible=not facts.findings)
    return Certificate(
        lower=float(-value if maximised else bound),
        upper=float(-bound if maximised else value),
        target_epsilon=problem.epsilon,
        epsilon=facts.epsilon,
        bias=facts.bias,
        exact=isinstance(answer, Mechanism),
        findings=facts.findings,
        maximised=maximised,
    )


def _worst_case(
    problem: Problem, answer: Randomizer | Mechanism, bound: float, *, feasible: bool
) -> tuple[float, float]:
    """Lower bound of every largest loss, and the largest loss of the randomizer."""
    if problem.loss != losses.squared:
        raise InvalidInput(f"worst_case=True takes squared loss, not {problem.loss.name}")
    if math.isfinite(bound):
        bound = float_below(Fraction(bound) / sum(map(Fraction, problem.prior.tolist())))
    found = exact_loss.of_each_label(problem, answer) if feasible else None
    return bound, math.inf if found is None else float_above(max(found))


def lower_bound(problem: Problem, dual: Dual, *, exact: bool = True) -> float:  # noqa: ARG001
    """Lower bound of the loss of every epsilon-DP randomizer with allowed outputs, by any multipliers, rounded down.

    It is that of the minimisation (for classification: minus the probability of a correct output); ``-inf`` if the
    multipliers prove nothing. `exact` has no effect any more.

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
    if (dual.beta[problem.bias_weights == 0] != 0).any():
        return -math.inf
    key = content(problem, dual.alpha, dual.beta), dual.origin
    return float_below(kept(dual, "_bound", key, lambda: exact_pricing.lower_bound(problem, dual)))
