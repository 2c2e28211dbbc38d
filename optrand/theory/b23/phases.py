"""Optimal unbiased randomizers along their monotone path: one delay for all labels, and bins at a public phase."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise, product

import optrand
from optrand.theory.b23.optima import posed
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, equal, none, worst
from optrand.theory.instances import Setting, label_set, prior, seeded, shares

__all__ = ["Path"]

Interval = tuple[int, int]

RARE = 1_000
"""Odds of two labels at which floats no longer order the columns of the rarer one."""

GIVEN = f"halved squared loss, exact integer optima on the line, no label {RARE:,} times as likely as another"


class Path(Setting):
    """Labels, a prior and a ratio, and the columns of an exact optimum in the order of both ends of their intervals."""

    @cached_property
    def mechanism(self) -> optrand.Mechanism:
        """Optimum on the real line, in integers."""
        return optrand.solve(posed(self))

    @cached_property
    def columns(self) -> list[tuple[Interval, int, int]]:
        """Labels that each column favours, from one up to but not with another; its mass; its place in the table."""
        arcs = self.mechanism.arcs
        if arcs is None:
            raise AssertionError("an optimum on the line is kept as intervals")
        found = zip(arcs.first.tolist(), arcs.last.tolist(), arcs.masses.tolist(), arcs.at.tolist(), strict=True)
        return sorted(((first, last + 1), mass, at) for first, last, mass, at in found)

    def length(self, favoured: Interval, mass: int, gain: Fraction) -> Fraction:
        """Mass of a column, times 1 plus a gain for the prior of the labels that it favours."""
        return mass * (1 + gain * sum(self.prior[slice(*favoured)], Fraction(0)))

    def steps_back(self) -> int:
        """Number of columns one of whose ends lies before that of the column before."""
        return sum(any(b < a for a, b in zip(x, y, strict=True)) for (x, *_), (y, *_) in pairwise(self.columns))


def _paths(budget: Budget) -> Iterator[Path]:
    """Optima of uniform priors, and of random ones of labels that are about as likely as each other."""
    for k, ratio in product(range(2, 7), (Fraction(3, 2), Fraction(3), Fraction(10))):
        yield Path(tuple(map(Fraction, range(k))), shares([1] * k), ratio)
    random = seeded(20)
    for _ in range(budget.pick(quick=15, full=500)):
        k = random.randint(2, 12)
        path = Path(label_set(random, k), prior(random, k), 1 + Fraction(random.randint(20, 900), 100))
        if max(path.prior) < RARE * min(path.prior):
            yield path


@claim(
    "B23 Theorem 6: delay",
    kind="ours",
    on=_paths,
    given=f"{GIVEN}; each column as long as its mass",
    sides=("longest delay, or steps back (count)", "shortest delay, or zero"),
    false=Variant("The same where each column is as long as its output is likely under the prior.", gain=True),
)
def one_delay(path: Path, gain: bool = False) -> Comparison:
    """Neither end of the favoured interval moves back, and the first follows the last one delay later at all labels."""
    more = path.ratio - 1 if gain else Fraction(0)
    times = [Fraction(0), *accumulate(path.length(favoured, mass, more) for favoured, mass, _ in path.columns)]
    begins = list(zip(times[:-1], path.columns, strict=True))
    delays = [
        next((time for time, ((first, _), *_) in begins if first > y), times[-1])
        - next(time for time, ((_, last), *_) in begins if last > y)
        for y in range(path.k)
    ]
    return worst(equal(max(delays), min(delays)), none(path.steps_back()))


@claim(
    "B23 Theorem 6: phases",
    kind="ours",
    on=_paths,
    given=GIVEN,
    sides=("distance of the table from the mixture", "zero"),
    false=Variant("The same at a uniform phase.", uniform=True),
)
def bins_at_a_phase(path: Path, uniform: bool = False) -> Comparison:
    """An optimum is randomized response on `n` bins at a public phase, of a density in proportion to `n + E - 1`.

    Counted are labels that are not in exactly one bin of a phase; then the largest distance of a row of the table from
    the mixture of the bins is compared with 0.
    """
    mechanism, stray = path.mechanism, 0
    ratio = mechanism.ratio
    times = [0, *accumulate(mass for _, mass, _ in path.columns)]
    delay = sum(mass for (first, _), mass, _ in path.columns if not first)
    mixed = [[Fraction(0)] * mechanism.outputs.size for _ in range(path.k)]
    for start, end in pairwise(sorted({time % delay for time in times} | {0, delay})):
        columns = [path.columns[bisect_right(times, time) - 1] for time in range(start, times[-1], delay)]
        density = (end - start) / (len(columns) + ratio - 1 if uniform else Fraction(1))
        for y, row in enumerate(mixed):
            own = [first <= y < last for (first, last), *_ in columns]
            stray += sum(own) != 1
            for (*_, at), favoured in zip(columns, own, strict=True):
                row[at] += density * (ratio if favoured else 1)
    apart = max(
        sum(
            abs(entry / sum(row) - Fraction(weight, mechanism.total))
            for entry, weight in zip(row, weights, strict=True)
        )
        for row, weights in zip(mixed, mechanism.weights.tolist(), strict=True)
    )
    return worst(equal(apart, 0), none(stray))
