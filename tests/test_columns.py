"""Staircase columns in integers: equal coverage, moments that make means right, columns between two floats."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flows import arcs_of, forward, mixed
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import optrand
from optrand.base._arithmetic import privacy_ratio
from optrand.mechanism._columns import cover_equally, least_change, node_equations, set_equations
from optrand.mechanism._tabulation import ExactColumns, conserve_flow, move_along_tree, scale_columns
from optrand.model._randomizer import Arcs, LabelSets


def members_of(sets: LabelSets) -> np.ndarray:
    """Membership from the definition, shape ``(k, n)``."""
    members = np.zeros((sets.k, sets.n), dtype=bool)
    for j, start, stop in zip(sets.owner, sets.start, sets.stop, strict=True):
        members[start:stop, j] = True
    return members


def rows_of(columns: ExactColumns) -> list[list[Fraction]]:
    """Table of probabilities, an entry for each column, from the definition."""
    members = members_of(columns.sets)
    weights = [
        [mass * (columns.ratio if inside else 1) for inside, mass in zip(row, columns.masses, strict=True)]
        for row in members
    ]
    return [[weight / sum(row) for weight in row] for row in weights]


def biases_of(columns):
    return [Fraction(deviation, columns.total << columns.digits) for deviation in columns.deviations]


def means_of(columns: ExactColumns) -> list[Fraction]:
    return [sum(p * v for p, v in zip(row, columns.outputs, strict=True)) for row in rows_of(columns)]


random_members = st.integers(1, 6).flatmap(
    lambda k: st.lists(st.lists(st.booleans(), min_size=k, max_size=k).filter(any), min_size=1, max_size=6).map(
        lambda columns: np.array(columns).T
    )
)


@given(random_members, st.randoms(use_true_random=False), st.sampled_from([1e-3, 1.0, 20.0]))
def test_sets_are_their_members(members, rng, epsilon) -> None:
    sets = LabelSets.of_members(members)
    n = members.shape[1]
    assert np.array_equal(members_of(sets), members)
    amounts = [rng.randint(-5, 10**30) for _ in range(n)]
    assert sets.sum_over(amounts) == [
        sum(x for x, inside in zip(amounts, row, strict=True) if inside) for row in members
    ]
    kept = np.array([rng.random() < 0.7 for _ in range(n)])
    assert np.array_equal(members_of(sets.only(kept)), members[:, kept])
    floats = np.array([rng.random() for _ in range(n)])
    assert sets.sum_over(floats.tolist()) == pytest.approx(members @ floats)
    # Node equations are differences of the table's rows, over 1 - exp(-epsilon).
    table = np.where(members, 1.0, math.exp(-epsilon)) / -math.expm1(-epsilon)
    expected = np.diff(table, axis=0, prepend=0.0)
    assert set_equations(sets, epsilon).toarray() == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_intervals_are_sets_of_one_run() -> None:
    first, last = np.array([0, 1, 0]), np.array([0, 3, 3])
    sets = LabelSets.of_intervals(4, first, last)
    assert sets.are_intervals
    assert np.array_equal(set_equations(sets, 1.0).toarray(), node_equations(4, first, last, 1.0).toarray())
    assert not LabelSets.of_members(np.array([[True], [False], [True]])).are_intervals


def some_arcs(rng, k, n):
    ends = np.sort(rng.integers(0, k, size=(n, 2)), axis=1)
    return Arcs(k, ends[:, 0], ends[:, 1], np.sort(rng.normal(size=n)), rng.random(n))


@given(st.integers(0, 2**32), st.sampled_from([1e-3, 0.5, 3.0, 30.0]))
def test_the_equations_are_differences_of_the_rows_of_the_table(seed, epsilon):
    rng = np.random.default_rng(seed)
    arcs = some_arcs(rng, int(rng.integers(1, 9)), int(rng.integers(1, 20)))
    ratio = math.exp(epsilon)
    labels = np.arange(arcs.k)[:, np.newaxis]
    favoured = (arcs.first <= labels) & (labels <= arcs.last)
    dense = np.where(favoured, 1.0, 1 / ratio) / (1 - 1 / ratio)
    equations = node_equations(arcs.k, arcs.first, arcs.last, epsilon).toarray()
    assert equations == pytest.approx(np.diff(dense, axis=0, prepend=0.0), rel=1e-12, abs=1e-12 * dense.max())


def test_the_least_change_is_that_of_the_normal_equations():
    rng = np.random.default_rng(0)
    system, reach, wanted = rng.normal(size=(4, 9)), rng.random(9) + 0.1, rng.normal(size=4)
    change = least_change(sparse.csr_array(system), reach, wanted)
    assert system @ change == pytest.approx(wanted, rel=1e-10)
    # Stationary: x / reach is a combination of the rows.
    assert np.linalg.lstsq(system.T, change / reach, rcond=None)[1] == pytest.approx([0.0], abs=1e-20)


def test_an_equation_without_any_arc_changes_nothing():
    assert least_change(sparse.csr_array((2, 3)), np.ones(3), np.array([1.0, 0.0])).tolist() == [0.0] * 3


def test_no_mass_moves_by_more_than_the_nodes_were_off() -> None:
    """Flows that are broken at every node, also with dead ends, whose columns are dropped."""
    rng = np.random.default_rng(14)
    emptied = 0
    for _ in range(1_000):
        k = int(rng.integers(1, 6))
        arcs = [(a, b) for a in range(k) for b in range(a + 1, k + 1) if rng.random() < 0.5] or [(0, k)]
        first, end = (np.array(side) for side in zip(*arcs, strict=True))
        wanted = rng.integers(0, 6, len(arcs))
        masses = np.array(conserve_flow(LabelSets.of_intervals(k, first, end - 1), wanted.tolist()))
        assert (masses >= 0).all()
        entering, leaving = (
            [np.bincount(side, amounts, k + 1)[1:k] for amounts in (wanted, masses)] for side in (end, first)
        )
        assert entering[1].tolist() == leaving[1].tolist()
        assert np.abs(masses - wanted).max() <= np.abs(entering[0] - leaving[0]).sum()
        emptied += bool(((masses == 0) & (wanted > 0)).any())
    assert emptied > 250


@given(random_members, st.randoms(use_true_random=False))
def test_singletons_make_up_for_labels_that_fall_short(members, rng) -> None:
    sets, n = LabelSets.of_members(members), members.shape[1]
    wanted, offsets = [rng.randint(0, 9) for _ in range(n)], np.arange(float(n))
    covered, outputs, masses = cover_equally(sets, offsets, wanted)
    assert len(set(covered.sum_over(masses))) == 1
    assert masses[0] >= wanted[0]
    assert max(covered.sum_over(masses)) == max(sets.sum_over(wanted))
    assert set(outputs.tolist()) <= set(offsets.tolist())
    assert np.array_equal(members_of(covered)[:, :n], members)


@pytest.mark.parametrize("columns", [forward, mixed], ids=["forward", "nested"])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0, 20.0])
def test_moments_along_a_tree_make_all_means_right(columns, epsilon) -> None:
    rng = np.random.default_rng(3)
    reached = 0
    for k in (1, 2, 3, 7, 20):
        labels = np.cumsum(rng.exponential(size=k)) - 2
        problem = optrand.unbiased_regression(labels, rng.dirichlet(np.ones(k)), epsilon)
        arcs = arcs_of(problem, columns(rng, k) if columns is forward else columns(rng, k, 4))
        sets = LabelSets.of_intervals(k, arcs.first, arcs.last)
        wanted = [round(mass) for mass in (arcs.masses / arcs.masses.sum() * 2.0**60).tolist()]
        near = scale_columns(labels, sets, conserve_flow(sets, wanted), arcs.outputs, privacy_ratio(epsilon))
        assert means_of(near) == [Fraction(y) + bias for y, bias in zip(labels.tolist(), biases_of(near), strict=True)]
        assert k == 1 or any(near.deviations)
        moved = move_along_tree(near, np.ones(len(near.masses), dtype=bool))
        if columns is forward:
            assert moved is not None
        if moved is not None:
            reached += 1
            assert means_of(moved) == [Fraction(y) for y in labels.tolist()]
            assert not any(moved.deviations)
            assert all(mass > 0 for mass in moved.masses)
            assert len({sum(row) for row in rows_of(moved)}) == 1
            assert set(moved.table(labels).biases) == {0}
    assert reached >= 2


def test_columns_that_do_not_reach_all_nodes_are_not_moved() -> None:
    sets = LabelSets.of_intervals(3, np.array([0, 1]), np.array([0, 2]))
    near = scale_columns(np.arange(3.0), sets, [5, 5], np.array([-1.0, 2.0]), Fraction(3))
    assert move_along_tree(near, np.ones(2, dtype=bool)) is None
    apart = LabelSets.of_members(np.array([[True, False], [False, True], [True, False]]))
    split = scale_columns(np.arange(3.0), apart, [5, 5], np.array([-1.0, 2.0]), Fraction(3))
    assert move_along_tree(split, np.ones(2, dtype=bool)) is None


outputs_of_columns = st.lists(
    st.fractions(-(10**6), 10**6, max_denominator=10**12), min_size=2, max_size=5, unique=True
)


@given(outputs_of_columns, st.sampled_from([Fraction(3), Fraction(3, 2), Fraction(10**9 + 1, 10**9)]), st.data())
def test_a_split_column_keeps_privacy_and_means(values, ratio, data) -> None:
    """Columns in pairs of a set and its complement, of any rational outputs: Proposition 17."""
    k, digits = 3, 80
    members = []
    for _ in values:
        inside = data.draw(st.lists(st.booleans(), min_size=k, max_size=k).filter(lambda x: any(x) and not all(x)))
        members += [inside, [not each for each in inside]]
    sets = LabelSets.of_members(np.array(members).T)
    own = math.lcm(*(v.denominator for v in values))
    doubled = [v for v in values for _ in range(2)]
    moments = [v.numerator * (own // v.denominator) << digits for v in doubled]
    columns = ExactColumns([0, 1 << digits, 5 << digits], sets, [own] * len(doubled), moments, ratio, digits)
    assert columns.outputs == doubled
    table = columns.table(np.array([0.0, 1.0, 5.0]))
    assert table.biases == tuple(biases_of(columns))
    assert table.largest_ratio is not None
    assert table.largest_ratio <= ratio
    for v in values:
        nearest = float(v)
        other = math.nextafter(nearest, math.inf if v > Fraction(nearest) else -math.inf)
        assert {nearest, other if Fraction(nearest) != v else nearest} <= set(table.outputs.tolist())


def test_offsets_are_measured_from_the_origin_and_clipped_to_the_ends() -> None:
    sets = LabelSets.of_intervals(1, np.zeros(3, dtype=int), np.zeros(3, dtype=int))
    offsets = np.array([0.3, -0.3, 0.9])
    exact = [Fraction(v) for v in offsets.tolist()]
    columns = scale_columns(np.zeros(1), sets, [1, 1, 1], offsets, Fraction(2))
    assert columns.outputs == exact
    columns = scale_columns(np.zeros(1), sets, [1, 1, 1], offsets, Fraction(2), origin=8.0, ends=(7.0, 8.75))
    assert columns.outputs == [8 + exact[0], 8 + exact[1], Fraction(35, 4)]
