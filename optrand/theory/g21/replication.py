"""Every example several times over: how a bound that ignores epsilon comes to grow with 1 / epsilon ([G21]_, Lemma 15).

With `k` copies of every example, ``k = floor(1 / epsilon)``, an algorithm of budget epsilon is one of budget
``k epsilon <= 1`` for the examples that were copied, and these are only ``n / k``.

References
----------
.. [G21] Ghazi et al., *Deep Learning with Label Differential Privacy*, 2021.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from optrand.exact import privacy_ratio
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, none, worst
from optrand.theory.g21.groups import group_delta
from optrand.theory.g21.least_risk import known_of_a_sign

__all__ = ["CLAIMS", "CONSTANT", "least_excess"]

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
class _Small:
    """A budget at most 1, and a number of examples."""

    epsilon: Fraction
    share: Fraction
    n: int

    @property
    def ratio(self) -> Fraction:
        """A rational just below ``exp(epsilon)``."""
        return privacy_ratio(float(self.epsilon))

    @property
    def delta(self) -> Fraction:
        """The paper's, as a share of epsilon."""
        return self.share * self.epsilon

    @property
    def copies(self) -> int:
        """``floor(1 / epsilon)``."""
        return math.floor(1 / self.epsilon)

    @cached_property
    def grown(self) -> float:
        """The delta of as many changed labels as there are copies, of 1 for a single label."""
        return float(group_delta(self.ratio, Fraction(1), labels=self.copies))

    @cached_property
    def excess(self) -> float:
        """What every algorithm loses at least: where examples are too few for the copies, on as many as there are."""
        return least_excess(self.ratio, self.delta, copies=min(self.copies, self.n), n=self.n)

    def __str__(self) -> str:
        return f"epsilon {self.epsilon}, delta {self.share} of it, n = {self.n}"


def _epsilons(budget: Budget) -> list[Fraction]:
    listed = ("1", "1/2", "1/3", "3/4", "501/1000", "499/1000", "1/10", "1/11", "2/21", "1/100", "2/201", "1/1000")
    steps = budget.pick(quick=40, full=400)
    return [*map(Fraction, listed), *(Fraction(i, steps) for i in range(1, steps))]


def _budgets(budget: Budget) -> Iterator[_Small]:
    for epsilon in _epsilons(budget):
        yield from (_Small(epsilon, share, 1) for share in (CONSTANT, Fraction(1, 2), Fraction(1, 1000)))


def _with_examples(budget: Budget) -> Iterator[_Small]:
    for epsilon in _epsilons(budget):
        least = math.ceil(1 / epsilon)
        for n in sorted({1, least, least + 1, 2 * least - 1, 10 * least, 1_000 * least + 7}):
            yield from (_Small(epsilon, share, n) for share in (Fraction(0), CONSTANT))


def copies_share_a_budget(small: _Small) -> Comparison:
    """With ``k = floor(1 / epsilon)``, ``1/2 <= k epsilon <= 1``, and delta grows at most by ``(e - 1) / epsilon``.

    `k` is the number of copies; the paper says ``O(1 / epsilon)``. The lower end is what turns ``1 / sqrt(epsilon k
    n)`` into ``1 / sqrt(n)``.
    """
    return _shared(small, least=Fraction(1, 2), grown=math.e - 1)


def copies_cost_nothing(small: _Small) -> Comparison:
    """The same with a growth of delta by ``1 / epsilon``, the number of copies."""
    return _shared(small, least=Fraction(1, 2), grown=1.0)


def _shared(small: _Small, *, least: Fraction, grown: float) -> Comparison:
    together = small.copies * small.epsilon
    return worst(
        at_most(least, together),
        at_most(together, 1),
        at_most(small.grown, grown / float(small.epsilon), tolerance=TOLERANCE),
    )


def delta_may_be_large(small: _Small) -> Comparison:
    """A delta of ``C / epsilon`` leaves a delta of at most ``2 C`` for the examples that were copied."""
    return at_most(float(small.share / small.epsilon) * small.grown, 2 * float(small.share))


def delta_must_be_small(small: _Small) -> Comparison:
    """A delta of ``C epsilon`` leaves a delta of at most ``2 C`` for the examples that were copied."""
    return at_most(float(small.delta) * small.grown, 2 * float(small.share))


def delta_is_kept(small: _Small) -> Comparison:
    """A delta of ``C epsilon`` leaves a delta of at most ``C`` for the examples that were copied."""
    return at_most(float(small.delta) * small.grown, float(small.share))


def few_examples_are_enough(small: _Small) -> Comparison:
    """Any algorithm loses at least ``D L / (10 sqrt(epsilon n))`` on some data set, whatever `n` is.

    The paper asks that `n` be at least ``1 / gamma``, of a gamma that it does not name. Nor does it name the constant;
    no other one would do, since no algorithm needs to lose more than ``D L``. Delta is at most ``epsilon / 10``.
    """
    return at_most(_claimed(small), small.excess if small.epsilon * small.n >= 1 else 1.0)


def as_many_examples_as_copies(small: _Small) -> Comparison:
    """The same where `n` is at least ``1 / epsilon``; of fewer examples it is ``D L / 10``."""
    return at_most(min(_claimed(small), float(CONSTANT)), small.excess)


def each_copy_counts(small: _Small) -> Comparison:
    """Where `n` is at least ``1 / epsilon``, any algorithm loses at least ``D L / (10 epsilon sqrt(n))``."""
    steeper = _claimed(small) / math.sqrt(small.epsilon)
    return at_most(steeper, 1.0) if small.epsilon * small.n >= 1 else none(0)


def _claimed(small: _Small) -> float:
    return float(CONSTANT) / math.sqrt(small.epsilon * small.n)


CLAIMS = (
    Claim(
        paper="G21",
        number="Lemma 15",
        part="with constants",
        hypothesis="epsilon at most 1, delta at most epsilon / 10; all (epsilon, delta)-LabelDP algorithms",
        instances=_with_examples,
        printed=few_examples_are_enough,
        corrected=as_many_examples_as_copies,
        false=each_copy_counts,
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
    Claim(
        paper="G21",
        number="Lemma 15",
        part="last step",
        hypothesis="epsilon at most 1, any C above 0",
        instances=_budgets,
        printed=delta_may_be_large,
        corrected=delta_must_be_small,
        false=delta_is_kept,
    ),
)
