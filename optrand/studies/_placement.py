r"""Points of a weighted set to which rounding the whole set adds the least variance: an exact dynamic programme.

Unbiased randomized rounding between two neighbours :math:`a < b` of the chosen points adds
:math:`C(a, b) = \sum_{a < x < b} w_x (x - a)(b - x)`. The sum over neighbours is to be least for a given number of
points, the first and the last among them.

*Choosing from the set itself loses nothing.* Hold all chosen points but one, :math:`t`, and move that one between two
neighbours of the set. Then :math:`C(a, t) + C(t, b)` is a sum of terms :math:`(x - a)(t - x)` and
:math:`(x - t)(b - x)`, linear in :math:`t`: one of the two neighbours is as good. ∎

*Monotone choices.* For :math:`a \leq b \leq c \leq d`, with :math:`z_+ = \max(z, 0)`,

.. math:: C(a, d) + C(b, c) - C(a, c) - C(b, d)
          = \sum_x w_x \big((x - a)_+ - (x - b)_+\big) \big((d - x)_+ - (c - x)_+\big) \geq 0.

So the best last-but-one point never moves back as the last one moves on, and halving the range of last points finds all
of them in :math:`O(m \log m)`, all ranges of one depth in one pass over arrays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from optrand.base._validation import Floats

Places = NDArray[np.intp]
Cost = Callable[[Places, Places], Floats]


class Placements:
    """Best two, three, ... of at least two increasing points with weights, computed on demand.

    ``O(m log m)`` time and ``O(m)`` memory for each further point. Ties and differences below about 1e-15 of the total
    weight times the squared range are decided by rounding.
    """

    def __init__(self, points: Floats, weights: Floats) -> None:
        self._width = float(points[-1] - points[0])
        x = (points - points[0]) / self._width - 0.5
        moments = [np.concatenate(([0.0], np.cumsum(weights * x**power))) for power in range(3)]

        def cost(a: Places, b: Places) -> Floats:
            """`C`, from prefix sums: of two points that coincide, 0."""
            inside, first, second = (moment[np.maximum(b, a + 1)] - moment[a + 1] for moment in moments)
            total: Floats = np.maximum((x[a] + x[b]) * first - second - x[a] * x[b] * inside, 0.0)
            return total

        self._cost = cost
        every = np.arange(points.size)
        # Entry j of the costs: the least variance below each point with that point and at most j + 1 points before it.
        self._costs = [cost(np.zeros_like(every), every)]
        self._choices: list[Places] = []

    def compute_variance(self, n: int) -> float:
        """Return the variance that rounding to the best `n` points adds, times the weights."""
        self._reach(n)
        return float(self._costs[n - 2][-1]) * self._width**2

    def places(self, n: int) -> Places:
        """Return the indices of the best `n` points. Fewer if more would add nothing."""
        self._reach(n)
        places = [self._costs[0].size - 1]
        for choice in reversed(self._choices[: n - 2]):
            places.append(int(choice[places[-1]]))
        return np.unique([0, *places])

    def fewest(self, added: float) -> int:
        """Return the least number of points that adds at most `added`."""
        n = 2
        while self.compute_variance(n) > added and n < self._costs[0].size:
            n += 1
        return n

    def _reach(self, n: int) -> None:
        while len(self._costs) < n - 1:
            costs, choices = _one_more(self._costs[-1], self._cost)
            self._costs.append(costs)
            self._choices.append(choices)


def _one_more(before: Floats, cost: Cost) -> tuple[Floats, Places]:
    """Minimise ``before[a] + C(a, b)`` over ``a <= b`` for every `b`; return also the first `a` that attains it.

    Every pass settles the middle of each open range of `b`, whose `a` then bounds those of both halves.
    """
    size = before.size
    least, choice = np.empty(size), np.empty(size, dtype=np.intp)
    # Columns: the first and the last b of a range, and the lowest and the highest a that may be its best.
    ranges = np.array([[0, size - 1, 0, size - 1]], dtype=np.intp)
    while ranges.size:
        first, last, low, high = ranges.T
        middle = (first + last) // 2
        # All candidates of all open ranges in one array, range after range.
        counts = np.minimum(high, middle) - low + 1
        starts = np.cumsum(counts) - counts
        options = np.arange(counts.sum()) - np.repeat(starts - low, counts)
        totals = before[options] + cost(options, np.repeat(middle, counts))
        least[middle] = np.minimum.reduceat(totals, starts)
        # Of equal minima the first, so that choices stay monotone.
        hits = np.flatnonzero(totals == np.repeat(least[middle], counts))
        _, earliest = np.unique(np.searchsorted(starts, hits, side="right"), return_index=True)
        best = options[hits[earliest]]
        choice[middle] = best
        below = np.stack((first, middle - 1, low, best), axis=1)[first < middle]
        above = np.stack((middle + 1, last, best, high), axis=1)[middle < last]
        ranges = np.concatenate((below, above))
    return least, choice
