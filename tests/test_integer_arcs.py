"""Interval columns in integers against the table that they stand for."""

import random
from fractions import Fraction

import numpy as np
import pytest
from tables import layered_arcs, rows_of

from optrand.base._arithmetic import privacy_ratio
from optrand.errors import InvalidInput
from optrand.model._table import IntegerArcs, Table

RATIOS = [Fraction(2), Fraction(5, 3), privacy_ratio(0.7), privacy_ratio(40.0)]


def cases(count):
    """Layers of random cuts, some with few outputs (so that arcs share them), some with huge masses."""
    for seed in range(count):
        rng = random.Random(seed)
        k, n = rng.randint(1, 9), rng.choice([1, 2, 4, 40])
        yield layered_arcs(rng, k, rng.randint(1, 4), n, rng.choice([1, 5, 10**40])), rng.choice(RATIOS)


def test_the_table_and_its_sums_are_those_of_the_definition():
    for arcs, ratio in cases(100):
        rows = rows_of(arcs, ratio)
        table = Table.of_arcs(np.arange(arcs.k), np.arange(arcs.n), arcs, ratio)
        assert table.weights.tolist() == rows
        assert {arcs.total(ratio)} == {sum(row) for row in rows}
        values = [7 * i - 3 for i in range(arcs.n)]
        assert table.row_sums(values) == [sum(w * v for w, v in zip(row, values, strict=True)) for row in rows]


def test_the_largest_ratio_is_that_of_the_table():
    seen = set()
    for arcs, ratio in cases(200):
        columns = list(zip(*rows_of(arcs, ratio), strict=True))
        expected = max(Fraction(max(column), min(column)) for column in columns)
        assert Table.of_arcs(np.arange(arcs.k), np.arange(arcs.n), arcs, ratio).largest_ratio == expected
        seen.add("none" if expected == 1 else "full" if expected == ratio else "between")
    assert seen == {"none", "full", "between"}


def test_unequal_coverage_is_refused_by_the_table():
    for arcs, ratio in cases(100):
        masses = arcs.masses.copy()
        masses[0] += 1
        whole = arcs.first[0] == 0 and arcs.last[0] == arcs.k - 1
        changed = IntegerArcs(arcs.k, arcs.first, arcs.last, arcs.at, masses)
        if whole:
            assert changed.total(ratio) == arcs.total(ratio) + ratio.numerator
        else:
            assert len(set(changed.coverage)) > 1
            with pytest.raises(InvalidInput, match="another total than row 0"):
                Table.of_arcs(np.arange(arcs.k), np.arange(arcs.n), changed, ratio)
