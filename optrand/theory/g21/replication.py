"""Every example several times over: how a bound that ignores epsilon comes to grow with 1 / epsilon ([G21], Lemma 15).

With `k` copies of every example, ``k = floor(1 / epsilon)``, an algorithm of budget epsilon is one of budget
``k epsilon <= 1`` for the examples that were copied, and these are only ``n / k``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from optrand.base.arithmetic import exp_bracket, privacy_ratio
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, worst
from optrand.theory.g21.groups import group_delta
from optrand.theory.g21.least_risk import known_of_a_sign

__all__ = ["CLAIMS", "least_excess"]

CONSTANT = Fraction(1, 10)
"""What stands for the constant of Lemma 15; delta is at most this share of epsilon."""

TOLERANCE = 1e-12


def least_excess(ratio: Fraction, delta: Fraction, *, copies: int, n: int) -> float:
    """What private algorithms lose at least, in units of ``D L``, on copies of directions with signs and on zeros.

    Parameters
    ----------
    ratio, delta : Fraction
        ``E = exp(epsilon)`` and delta, for one label.
    copies : int
        How often each direction occurs; at most `n`.
    n : int
        Examples in all: as many directions as fit, and the zero vector for the rest.

    Notes
    -----
    All copies of a direction have one label, so what is known of it is bounded as under ``E^copies`` and the delta of
    Fact 14. The mean excess over fair signs is ``(m copies / n) (1 - sqrt(known)) / (2 sqrt(m))`` for `m` directions.

    Examples
    --------
    >>> round(least_excess(Fraction(3), Fraction(0), copies=1, n=1), 12)
    0.25
    """
    directions = n // copies
    known = known_of_a_sign(ratio**copies, group_delta(ratio, delta, labels=copies))
    return copies * math.sqrt(directions) / n * (1 - math.sqrt(known)) / 2


@dataclass(frozen=True)
class _Copies:
    """A budget at most 1."""

    epsilon: Fraction

    @property
    def ratio(self) -> Fraction:
        """A rational just below ``exp(epsilon)``."""
        return privacy_ratio(float(self.epsilon))

    @property
    def number(self) -> int:
        """``floor(1 / epsilon)``."""
        return math.floor(1 / self.epsilon)

    @cached_property
    def grown(self) -> Fraction:
        """The delta of as many changed labels as there are copies, of 1 for a single label."""
        return group_delta(self.ratio, Fraction(1), labels=self.number)

    def __str__(self) -> str:
        return f"epsilon {self.epsilon}"


@dataclass(frozen=True)
class _Copied:
    """A budget at most 1, delta as a share of epsilon, and a number of examples: directions with signs, copied."""

    copies: _Copies
    share: Fraction
    n: int

    @cached_property
    def least(self) -> float:
        """What every algorithm loses at least."""
        delta = self.share * self.copies.epsilon
        return least_excess(self.copies.ratio, delta, copies=self.copies.number, n=self.n)

    @property
    def ignorant(self) -> float:
        """What the parameter 0 loses."""
        return self.copies.number * math.sqrt(self.n // self.copies.number) / (2 * self.n)

    def claimed(self, constant: Fraction) -> float:
        """That constant times ``1 / sqrt(epsilon n)``."""
        return float(constant) / math.sqrt(self.copies.epsilon * self.n)

    def __str__(self) -> str:
        return f"{self.copies}, delta {self.share} of it, n = {self.n}"


def _epsilons(budget: Budget) -> list[Fraction]:
    listed = ("1", "1/2", "1/3", "3/4", "501/1000", "499/1000", "1/10", "1/11", "2/21", "1/100", "2/201", "1/1000")
    steps = budget.pick(quick=40, full=400)
    return [*map(Fraction, listed), *(Fraction(i, steps) for i in range(1, steps))]


def _budgets(budget: Budget) -> Iterator[_Copies]:
    return map(_Copies, _epsilons(budget))


def _with_examples(budget: Budget) -> Iterator[_Copied]:
    for epsilon in _epsilons(budget):
        least = math.ceil(1 / epsilon)
        for n in sorted({least, least + 1, 2 * least - 1, 10 * least, 1_000 * least + 7}):
            yield from (_Copied(_Copies(epsilon), share, n) for share in (Fraction(0), CONSTANT))


def copies_share_a_budget(copies: _Copies) -> Comparison:
    """With ``k = floor(1 / epsilon)``, ``1/2 <= k epsilon <= 1``, and delta grows at most by ``(e - 1) / epsilon``.

    `k` is the number of copies; the paper says ``O(1 / epsilon)``. The lower end is what turns ``1 / sqrt(epsilon k
    n)`` into ``1 / sqrt(n)``. A delta of ``C epsilon`` becomes one of at most ``(e - 1) C``: that is meant by the last
    line of the proof, which has ``C / epsilon``.
    """
    return _shared(copies, grown=exp_bracket(1.0)[0] - 1)


def copies_cost_nothing(copies: _Copies) -> Comparison:
    """The same with a growth of delta by ``1 / epsilon``, the number of copies."""
    return _shared(copies, grown=Fraction(1))


def _shared(copies: _Copies, *, grown: Fraction) -> Comparison:
    together = copies.number * copies.epsilon
    return worst(
        at_most(Fraction(1, 2), together),
        at_most(together, 1),
        at_most(copies.grown, grown / copies.epsilon),
    )


def copies_are_hard(copied: _Copied) -> Comparison:
    """Any algorithm loses at least ``D L / (10 sqrt(epsilon n))`` on some data set of `n` examples.

    The paper leaves open the constant and that of delta, here at most ``epsilon / 10``. It asks for ``n >= 1 / gamma``
    and does not say what gamma is: epsilon is meant, so that one example fits with all its copies. Compared are that,
    what no algorithm goes below on copies of directions with signs, and what the parameter 0 loses there.
    """
    return worst(
        at_most(copied.claimed(CONSTANT), copied.least),
        at_most(copied.least, copied.ignorant, tolerance=TOLERANCE),
    )


def copies_say_nothing(copied: _Copied) -> Comparison:
    """On these data sets any algorithm loses at least ``D L / (2 sqrt(epsilon n))``."""
    return at_most(copied.claimed(Fraction(1, 2)), copied.ignorant, tolerance=TOLERANCE)


CLAIMS = (
    Claim(
        paper="G21",
        number="Lemma 15",
        part="with constants",
        hypothesis="epsilon at most 1, n at least 1 / epsilon, delta at most epsilon / 10; all LabelDP algorithms",
        instances=_with_examples,
        printed=copies_are_hard,
        false=copies_say_nothing,
    ),
    Claim(
        paper="G21",
        number="Lemma 15",
        part="copies",
        hypothesis="epsilon at most 1",
        instances=_budgets,
        printed=copies_share_a_budget,
        false=copies_cost_nothing,
    ),
)
