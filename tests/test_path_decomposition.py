"""Flows as mixtures of randomized responses on bins: every promise of the theorem, in integers."""

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error
from flows import arcs_of, forward, mixed

import optrand
from optrand import Mechanism
from optrand.mechanism._tabulation import Solution, tabulate
from optrand.model._randomizer import Arcs, Randomizer
from optrand.model._table import IntegerArcs
from optrand.studies import decompose_paths
from optrand.studies._paths import Paths, merge_neighbours
from tests.tables import mechanism_of


def flow_mechanism(rng: np.random.Generator, k: int, kind: str, epsilon: float = 1.0) -> Mechanism:
    """The exact mechanism of a random flow, biased if the flow is nested."""
    columns = forward(rng, k) if kind == "forward" else mixed(rng, k, 5)
    build = optrand.unbiased_regression if kind == "forward" else optrand.regression
    problem = build(np.arange(k), rng.dirichlet(np.ones(k)), epsilon)
    return tabulate(Solution(problem, Randomizer.of_arcs(problem.labels, arcs_of(problem, columns), epsilon)))


def whole(mechanism: Mechanism) -> Mechanism:
    """Return the same with columns that are split between neighbouring floats at the heavier of them: hardly biased."""
    problem = optrand.regression(mechanism.labels, mechanism.problem.prior, mechanism.epsilon)
    return mechanism_of(problem, None, *merge_neighbours(mechanism), mechanism.ratio)


def response_on_bins(paths: Paths, number: int) -> list[list[Fraction]]:
    """Randomized response on the bins of a path, from its definition, over all outputs of the mixture."""
    path, where = paths[number], {v: i for i, v in enumerate(paths.outputs.tolist())}
    table = [[Fraction(0)] * len(where) for _ in range(paths.labels.size)]
    for y, row in enumerate(table):
        for first, last, output in zip(path.first.tolist(), path.last.tolist(), path.outputs.tolist(), strict=True):
            row[where[output]] += paths.ratio if first <= y <= last else 1
        table[y] = [entry / (path.bins + paths.ratio - 1) for entry in row]
    return table


@pytest.mark.parametrize("kind", ["forward", "nested"])
@pytest.mark.parametrize("k", [1, 2, 6, 15])
def test_the_mixture_is_the_mechanism_exactly(kind: str, k: int) -> None:
    mechanism = whole(flow_mechanism(np.random.default_rng(k), k, kind))
    paths = decompose_paths(mechanism)
    assert sum(paths.weights) == 1
    mixture = sum(weight * np.array(response_on_bins(paths, number)) for number, weight in enumerate(paths.weights))
    assert (mixture == mechanism.weights * Fraction(1, mechanism.total)).all()


@pytest.mark.parametrize("kind", ["forward", "nested"])
@pytest.mark.parametrize("k", [3, 30, 300])
def test_paths_partition_the_labels_and_sum_to_the_flow(kind: str, k: int) -> None:
    mechanism = whole(flow_mechanism(np.random.default_rng(10 * k), k, kind))
    flow, paths = mechanism.arcs, decompose_paths(mechanism)
    assert flow is not None
    assert len(paths) <= flow.masses.size - np.unique(flow.first).size + 1
    carried = [0] * flow.masses.size
    for path, mass, bins in zip(paths, paths.masses, paths.bins.tolist(), strict=True):
        assert path.mass == mass > 0
        assert path.bins == bins
        assert (path.first[0], path.last[-1]) == (0, k - 1)
        assert np.array_equal(path.first[1:], path.last[:-1] + 1)
        assert np.array_equal(path.outputs, mechanism.outputs[flow.at[path.arcs]])
        assert path.keeps == mechanism.ratio / (bins + mechanism.ratio - 1)
        for arc in path.arcs.tolist():
            carried[arc] += mass
    assert carried == flow.masses.tolist()


def test_intervals_that_move_forward_give_components_of_nearly_equal_size() -> None:
    rng = np.random.default_rng(4)
    spans = []
    for k in (2, 9, 50, 400):
        for epsilon in (0.1, 1.0, 6.0):
            paths = decompose_paths(flow_mechanism(rng, k, "forward", epsilon))
            spans.append(int(np.ptp(paths.bins)))
    assert max(spans) == 1
    nested = decompose_paths(flow_mechanism(np.random.default_rng(0), 60, "nested"))
    assert np.ptp(nested.bins) > 1


def test_the_optimum_of_four_labels_by_hand() -> None:
    """Columns [0], [0, 1], [1], [2, 3], [3] and [1, 2] with masses 2, 1, 1, 2, 1, 1: coverage 3.

    Node 0 gives 2 and 1. Node 1 gets the 2 of [0] and gives [1] and [1, 2] 1 each. Node 2 gets 1 of [0, 1] and 1 of
    [1], for [2, 3]. Node 3 gets the 1 of [1, 2], for [3]. On the circle of length 3 the place of [0] is (0, 2): then
    [1] holds (0, 1) and [1, 2] holds (1, 2), and [0, 1] holds (2, 3). So the paths are [0][1][2, 3], [0][1, 2][3] and
    [0, 1][2, 3], each of mass 1, and with R = 3 they weigh 3 + 2, 3 + 2 and 2 + 2 of 14.
    """
    share = Fraction(1, 2 + 1 + 1 + 2 + 1 + 1 + (3 - 1) * 3)
    masses = np.array([2, 1, 1, 2, 1, 1]) * float(share)
    arcs = Arcs(4, [0, 0, 1, 2, 3, 1], [0, 1, 1, 3, 3, 2], [0.0, 1.0, 2.0, 4.0, 5.0, 3.0], masses)
    paths = decompose_paths(Randomizer.of_arcs(range(4), arcs, math.log(3)))
    assert [path.outputs.tolist() for path in paths] == [[0, 2, 4], [0, 3, 5], [1, 4]]
    assert [float(weight) for weight in paths.weights] == pytest.approx([5 / 14, 5 / 14, 4 / 14], rel=1e-14)
    assert [float(path.keeps) for path in paths] == pytest.approx([3 / 5, 3 / 5, 3 / 4], rel=1e-14)


def test_what_is_no_sum_of_intervals_is_refused() -> None:
    apart = Randomizer([0, 1, 2], [0, 1], [[0.75, 0.25], [0.25, 0.75], [0.75, 0.25]], math.log(3))
    assert_error("columns favour labels that are not an interval", decompose_paths, apart)
    assert_error("not a list", decompose_paths, [[0.5, 0.5]])
    uneven = Arcs(2, [0, 1], [0, 1], [-0.5, 1.5], [0.2, 0.3])
    with pytest.raises(optrand.errors.NotCertified, match=r"not 1\.1-DP"):
        decompose_paths(Randomizer.of_arcs([0, 1], uneven, 1.1))


@pytest.mark.nightly
def test_ten_thousand_labels_are_decomposed_without_writing_all_paths_out() -> None:
    k = 10_001
    mechanism = flow_mechanism(np.random.default_rng(6), k, "forward")
    tracemalloc.start()
    paths = decompose_paths(mechanism)
    some = [paths[number] for number in (0, len(paths) // 2, -1)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All paths together have about ten million bins, of 32 bytes each.
    assert int(paths.bins.sum()) > 5_000_000
    assert peak < 50e6
    assert sum(paths.masses) == mechanism.arcs.coverage[0]  # type: ignore[union-attr]
    assert all(path.last[-1] == k - 1 for path in some)


def test_pairs_of_neighbouring_floats_are_merged_and_nothing_else() -> None:
    problem = optrand.regression([0.0], [1.0], 1.0)
    ones = [0.0, math.nextafter(1, 0), 1.0, math.nextafter(1, 2), 1 + 2**-51, 1 + 2**-50]
    arcs = IntegerArcs(1, [0] * 6, [0] * 6, [0, 1, 2, 3, 4, 5], [1, 1, 2, 3, 3, 4])
    outputs, merged = merge_neighbours(mechanism_of(problem, None, ones, arcs, Fraction(2)))
    assert outputs.tolist() == [0.0, 1.0, math.nextafter(1, 2), 1 + 2**-50], "chains are not"
    assert merged.masses.tolist() == [1, 3, 6, 4]
    pair = [1.0, math.nextafter(1, 2)]
    line, grid = (optrand.regression([0.0, 1.0], [0.5, 0.5], 1.0, outputs=outputs) for outputs in (None, pair))
    for asked, arcs in (
        (line, IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 1])),
        (grid, IntegerArcs(2, [0, 0], [1, 1], [0, 1], [1, 1])),
    ):
        kept = merge_neighbours(mechanism_of(asked, None, pair, arcs, Fraction(2)))[0]
        assert kept.tolist() == pair, "columns of other intervals, and values of grids"
    # Of no intervals at a ratio below 4.
    three = optrand.regression([0.0, 1.0, 2.0], [0.5, 0.25, 0.25], 1.0)
    table = mechanism_of(three, None, [0.0, 1.0], [[5, 2], [2, 5], [5, 2]])
    assert_error("is a table", merge_neighbours, table)
