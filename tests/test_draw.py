"""Draws from tables: exactly the weights, for any words and any layout of the table."""

import math
import random
import tracemalloc
from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import accumulate, pairwise, product

import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from tables import layered_arcs, rows_of
from words import ExhaustedError, GivenWords, SpelledIds, enumerated, numbered

from optrand.base._arithmetic import privacy_ratio
from optrand.errors import InvalidInput
from optrand.model._table import IntegerArcs, Table, split_column
from optrand.sampling import Sampler
from optrand.sampling._draw import BLOCK, DENSE, Weights
from optrand.sampling._entropy import SeededEntropy

LAYOUTS = {"rows": Weights.of_rows, "columns": Weights.of_columns}
each_layout = pytest.mark.parametrize("layout", LAYOUTS)


def sampler_of(rows, layout=None):
    """Sampler over labels and outputs 0, 1, ..., laid out in one way or, by default, as its size has it."""
    sampler = Sampler(Table.of_rows(range(len(rows)), range(len(rows[0])), rows))
    if layout:
        vars(sampler)["_weights"] = LAYOUTS[layout](sampler.table)
    return sampler


def of_arcs(arcs, ratio, labels=None, outputs=None):
    """The table of arcs, by default with numbered labels and outputs."""
    labels = range(arcs.k) if labels is None else labels
    outputs = range(arcs.n) if outputs is None else outputs
    return Table.of_arcs(labels, outputs, arcs, ratio)


def diagonal(labels):
    """Sampler that records which of the labels it was given."""
    k = len(labels)
    return Sampler(Table.of_rows(labels, range(k), [[int(i == y) for i in range(k)] for y in range(k)]))


def stepped_rows(rng, k, n, most, total=None):
    """Random rows whose columns are step functions of the label, nested, repeated and zero as chance has it."""
    columns = []
    for _ in range(n):
        cuts = sorted(rng.sample(range(1, k), rng.randint(0, k - 1)))
        heights = [rng.choice([0, 1, rng.randint(0, most)]) for _ in range(len(cuts) + 1)]
        columns.append([heights[bisect_right(cuts, y)] for y in range(k)])
    sums = [sum(row) for row in zip(*columns, strict=True)]
    columns.append([(max(sums) + 1 if total is None else total) - each for each in sums])
    return [list(row) for row in zip(*columns, strict=True)]


def draw_one(sampler, row, source):
    return float(sampler.sample(int(sampler.labels[row]), source=source))


def draw_batch(sampler, row, source):
    return sampler.sample(np.array([sampler.labels[row]]), source=source).item()


def inverse_cdf(weights, width, words):
    """The reference, in fractions: how many words decide, and for which weight, or None if they do not suffice."""
    total = sum(weights)
    edges = [Fraction(c, total) for c in accumulate(weights, initial=0)]
    low, size = Fraction(0), Fraction(1)
    for used, word in enumerate(words, start=1):
        size /= 2**width
        low += word * size
        for i in range(len(weights)):
            if edges[i] <= low and low + size <= edges[i + 1]:
                return used, i
    return None


# ---------------------------------------------------------------------------------------------- all words, enumerated
def law(draw, width, depth):
    """The probability of each draw, and that of no draw, over all streams of this number of words."""
    if width == 1:
        return enumerated(draw, depth)
    counts = Counter()
    for words in product(range(2**width), repeat=depth):
        try:
            counts[draw(GivenWords(width, words))] += 1
        except ExhaustedError:
            counts[None] += 1
    shares = {drawn: Fraction(count, 2 ** (width * depth)) for drawn, count in counts.items()}
    return shares, shares.pop(None, Fraction(0))


def nightly(*values):
    """Values of a parameter that are tried at night alone."""
    return [pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.nightly) for each in values]


DYADIC = [
    [[1, 3], [2, 2]],
    [[1, 13, 31, 19], [63, 0, 0, 1], [16, 16, 16, 16]],
    [[101, 3, 0, 152], [0, 0, 256, 0], [64, 64, 64, 64]],
    [[1000, 1, 22, 1], [0, 0, 1, 1023]],
    *(stepped_rows(random.Random(seed), 1 + seed, 1 + seed % 4, 9, 2 ** (6 + seed % 2)) for seed in range(3)),
    stepped_rows(random.Random(7), 4, 40, 3, 256),
]
"""Tables whose total is a power of two, so that enough words decide every draw."""


@each_layout
@pytest.mark.parametrize("width", [1, *nightly(2, 3), 5])
@pytest.mark.parametrize("rows", DYADIC)
def test_counts_over_all_words_equal_the_weights(rows, width, layout):
    """Trees of words of a width, alone, in batches and by record id: not one stream is left undecided."""
    total = sum(rows[0])
    depth = -(-(total.bit_length() - 1) // width)
    sampler = sampler_of(rows, layout)
    ids = numbered(2 ** (width * depth))
    for row, weights in enumerate(rows):
        expected = {float(output): Fraction(weight, total) for output, weight in enumerate(weights) if weight}
        for draw in (draw_one, draw_batch):
            assert law(partial(draw, sampler, row), width, depth) == (expected, 0)
        drawn = Counter(sampler.sample_records(np.full(len(ids), row), ids, SpelledIds(width, depth)).tolist())
        assert {output: Fraction(count, len(ids)) for output, count in drawn.items()} == expected


# ------------------------------------------------------------------------------------------------- words near the edges
@st.composite
def draws(draw):
    """A table, a label, a width, and streams of words that keep close to the edges between the weights."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    most = 2 ** draw(st.sampled_from([2, 8, 70, 200, 1200]))
    if draw(st.booleans()):
        rows = stepped_rows(rng, draw(st.integers(1, 20)), draw(st.integers(1, 6)), most)
    else:
        arcs = layered_arcs(rng, rng.randint(1, 20), rng.randint(1, 4), rng.choice([1, 3, 50]), most)
        rows = rows_of(arcs, rng.choice([Fraction(2), Fraction(9, 7), privacy_ratio(1.0), privacy_ratio(0.01)]))
    sampler = sampler_of(rows, draw(st.sampled_from([*LAYOUTS])))
    row, width = draw(st.integers(0, len(rows) - 1)), draw(st.one_of(st.just(64), st.integers(1, 64)))
    streams = []
    for _ in range(draw(st.integers(1, 6))):
        edge = draw(st.sampled_from([0, *accumulate(sampler._weights.row(row)[0])]))
        length = draw(st.integers(1, 4))
        nudge = draw(st.sampled_from([0, 0, 1, 2, 3, 2**6, 2**12]))
        digits = ((edge << width * length) // sampler.table.total) + draw(st.sampled_from([-1, 1])) * nudge
        words = [(digits >> width * (length - 1 - i)) % 2**width for i in range(length)]
        streams.append(words + draw(st.lists(st.integers(0, 2**width - 1), max_size=4)))
    return rows, sampler, row, width, streams


@settings(max_examples=4 * settings.default.max_examples)
@given(draws())
@example(([[1, 2, 1]], sampler_of([[1, 2, 1]]), 0, 2, [[1], [3], [0]]))
@example(([[5]], sampler_of([[5]], "columns"), 0, 64, [[0], [2**64 - 1]]))
@example(([[0, 3, 0]], sampler_of([[0, 3, 0]]), 0, 3, [[7], [0]]))
def test_every_decision_is_the_inverse_cdf(case):
    rows, sampler, row, width, streams = case
    weights, outputs = sampler._weights.row(row)
    summed = Counter()
    for weight, output in zip(weights, outputs, strict=True):
        summed[int(sampler.outputs[output])] += weight
    assert +summed == Counter({output: weight for output, weight in enumerate(rows[row]) if weight})
    decided = []
    for words in streams:
        expected = inverse_cdf(weights, width, words)
        for draw in (draw_one, draw_batch):
            source = GivenWords(width, words)
            if expected is None:
                assert_error(None, draw, sampler, row, source, error=ExhaustedError)
            else:
                used, at = expected
                assert draw(sampler, row, source) == sampler.outputs[outputs[at]]
                assert source.left == words[used:]
        if expected:
            decided.append((words, *expected))
    # In a batch the first words come together, and further words one by one for the values that need them.
    source = GivenWords(width, [words[0] for words, _, _ in decided])
    source.left += [word for words, used, _ in decided for word in words[1:used]]
    drawn = sampler.sample(np.full(len(decided), row), source=source)
    assert drawn.tolist() == [sampler.outputs[outputs[at]] for _, _, at in decided]
    assert source.left == []


@pytest.mark.parametrize("n", [2, 53, 800, 40_000])
def test_wide_rows_equal_the_inverse_cdf(n):
    """Whole blocks against one bisection per value, in integers. 40,000 outputs need a wider guide."""
    rng = np.random.default_rng(n)
    rows = rng.integers(0, 50, (2, n)).astype(object) * 10**30 + rng.integers(0, 2, (2, n)).astype(object)
    rows[:, n // 2] += rows.sum(axis=1).max() - rows.sum(axis=1)
    rows[:, 0] += 1
    sampler = sampler_of(rows.tolist())
    values = rng.integers(0, 2, 3000)
    drawn = sampler.sample(values, source=SeededEntropy(n))
    sums = [list(accumulate(row)) for row in rows.tolist()]
    words = SeededEntropy(n).words(values.size).tolist()
    total = sums[0][-1]
    assert drawn.tolist() == [
        bisect_right(sums[y], word * total // 2**64) for y, word in zip(values.tolist(), words, strict=True)
    ]


# ------------------------------------------------------------------------------------------------- columns and levels
def test_columns_are_sums_of_few_intervals():
    rng = random.Random(1)
    for _ in range(300):
        k = rng.randint(1, 12)
        heights = [rng.randint(0, 4) for _ in range(k)]
        column = tuple((y, b - a) for y, (a, b) in enumerate(pairwise([0, *heights])) if a != b)
        if not column:
            continue
        base, intervals = split_column(column, k)
        assert base == min(heights)
        assert len(intervals) <= len(column)
        assert all(a <= c and b <= d for (a, b, _), (c, d, _) in pairwise(intervals))
        assert heights == [base + sum(m for a, b, m in intervals if a <= y < b) for y in range(k)]


def path_of_columns(k, seed):
    """A table of intervals that begin and end in turn, as in optima: mass that ends at a label begins anew."""
    rng = random.Random(seed)
    running, arcs = [(0, mass) for mass in [rng.randint(1, 2**40) for _ in range(30)]], []
    for y in range(1, k):
        ended = [running.pop(0) for _ in range(rng.choice([1, 1, 2]))]
        arcs += [(first, y - 1, mass) for first, mass in ended]
        freed = sum(mass for _, mass in ended)
        part = rng.randint(0, freed)
        begun = [part, freed - part] if 0 < part < freed and len(running) < 40 else [freed]
        running += [(y, mass) for mass in begun]
    arcs += [(first, k - 1, mass) for first, mass in running]
    first, last, masses = zip(*arcs, strict=True)
    return Table.of_arcs(
        range(k), range(len(arcs)), IntegerArcs(k, first, last, range(len(arcs)), masses), privacy_ratio(3.0)
    )


def nested_columns(k, seed):
    """A table of intervals in halves, quarters and so on, of which each lies inside others."""
    rng = random.Random(seed)
    arcs = []
    for depth in range(k.bit_length()):
        mass = rng.randint(1, 2**40)
        cuts = sorted({0, k, *(k * i // 2**depth for i in range(2**depth))})
        arcs += [(a, b - 1, mass) for a, b in pairwise(cuts)]
    first, last, masses = zip(*arcs, strict=True)
    return Table.of_arcs(
        range(k), range(len(arcs)), IntegerArcs(k, first, last, range(len(arcs)), masses), privacy_ratio(3.0)
    )


@pytest.mark.parametrize(("columns", "levels"), [(path_of_columns, (2, 2)), (nested_columns, (3, 18))])
def test_ten_thousand_labels_and_no_table(columns, levels):
    """More than a hundred million entries that are never written out: frequencies by chi-square, and the memory."""
    k = 10_001
    table = columns(k, 3)
    assert table.n > 13_000
    tracemalloc.start()
    sampler = Sampler(table)
    sampler.sample(0)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert levels[0] <= sampler._weights.starts.shape[1] <= levels[1]
    assert "weights" not in vars(table)
    assert (kept, peak) < (16e6, 50e6)
    least = np.array([float(min(accumulate(h for _, h in column))) for column in table.columns])
    for label in (0, 8_191, 8_192, 10_000):
        size = 200_000
        drawn = sampler.sample(np.full(size, label), source=SeededEntropy(label)).astype(int)
        weights = np.array([float(sum(h for y, h in column if y <= label)) for column in table.columns])
        is_favoured = weights > least
        expected = weights * (size / weights.sum())
        counts = np.bincount(drawn, minlength=table.n)
        # The favoured outputs one by one, all others in fifty heaps.
        heaps = np.where(is_favoured, 50 + np.cumsum(is_favoured), np.arange(table.n) * 50 // table.n)
        observed, wanted = (np.bincount(heaps, amounts) for amounts in (counts, expected))
        assert stats.chisquare(observed[wanted > 0], wanted[wanted > 0]).pvalue > 1e-4


def test_large_tables_without_long_steps_are_written_out():
    k = math.isqrt(DENSE)
    for size, levels in ((k, 1), (k + 1, 2)):
        sampler = Sampler(
            Table.of_arcs(range(size), range(size), IntegerArcs(size, *[range(size)] * 3, [1] * size), Fraction(2))
        )
        assert (sampler._weights.starts.shape[1], sampler.sample(range(size)).size) == (levels, size)
    rng = np.random.default_rng(1)
    rows = rng.integers(1, 9, (600, 500))
    rows[:, -1] += 5000 - rows.sum(axis=1)
    assert Sampler(Table.of_rows(range(600), range(500), rows.tolist()))._weights.starts.shape[1] == 1


# ------------------------------------------------------------------------------------------------------ values, labels
@each_layout
@pytest.mark.parametrize("shape", [(3, 0), (), (2, 3, 4), (BLOCK + 1,)])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float64, np.float32])
def test_shapes_and_types(shape, dtype, layout):
    drawn = sampler_of([[1, 0], [0, 1]], layout).sample(np.full(shape, 1, dtype=dtype))
    assert isinstance(drawn, np.ndarray)
    assert (drawn.shape, drawn.dtype) == (shape, np.float64)
    assert (drawn == 1).all()


def test_lists_views_and_orders():
    sampler = Sampler(Table.of_rows([0, 1, 2], [10, 11, 12], np.eye(3, dtype=int).tolist()))
    grid = np.arange(3).repeat(4).reshape(3, 4)
    for values in (grid, grid.T, grid[::-1, ::2], np.asfortranarray(grid)):
        assert (sampler.sample(values) == values + 10).all()
    assert sampler.sample([[0, 2], [1, 1]]).tolist() == [[10, 12], [11, 11]]
    assert sampler.sample([]).shape == (0,)


LABEL_SETS = [
    *[[0, 1, 2], [-3, 4, 5, 90], [-0.5, 0.1, 0.2, 1e300], [0, 2.5], [2.0**53 - 1, 2.0**53], [-(2.0**60), 0, 2.0**60]],
    *[[2.0**24, 2.0**24 + 1], [0, 1e6], [3]],
]

unknown = partial(pytest.raises, InvalidInput, match=r"^at least one value is not among the \d+ labels: declare")


@pytest.mark.parametrize("labels", LABEL_SETS)
def test_labels_find_their_rows_exactly(labels):
    k = len(labels)
    sampler = diagonal(labels)
    assert sampler.sample(labels).tolist() == list(range(k))
    assert [sampler.sample(label) for label in labels] == list(range(k))
    outside = [math.nextafter(label, sign * math.inf) for label in labels for sign in (-1, 1)]
    outside += [math.nan, math.inf, -math.inf, 0.5, labels[0] - 7, labels[-1] * 2 + 1, 1e308, -1e308]
    outside = [value for value in outside if value not in labels]
    with unknown():
        sampler.sample([*outside, *labels])
    for value in outside:
        with unknown():
            sampler.sample(value)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_numbers_between_integer_labels_are_refused(dtype):
    sampler = diagonal([0, 1, 3])
    assert sampler.sample(np.array([3, -0.0, 1], dtype=dtype)).tolist() == [2, 0, 1]
    for stranger in (0.5, 1.5, 2, 2.998):
        with unknown():
            sampler.sample(np.array([1, stranger, 3], dtype=dtype))


@by_case(
    "labels, values",
    ([0, 2**53], np.array([2**53, 2**53 + 1], dtype=np.int64)),
    ([0, 2**53], np.array([2**53, 2**53 + 1], dtype=np.uint64)),
    ([0, 2**53], 2**53 + 1),
    ([2**53 - 1, 2**53], np.array([2**53, 2**53 + 1])),
    ([-(2.0**62), 2.0**62], np.array([2**62, 2**62 + 1])),
    ([-(2.0**62), 2.0**62], np.array([2**62, -(2**63)])),
    # As 32-bit floats 2**24 + 1 is 2**24, which is not a label here: the bounds must not be rounded either.
    ([2**24 + 1, 2**24 + 2], np.array([2**24], dtype=np.float32)),
    ([2**24, 2**24 + 3], np.array([2**24 + 4], dtype=np.float32)),
    ([float(np.float32(0.1)), 0.5], np.array([0.1, 0.5], dtype=np.float32)),
    ([0, 1], np.array([0, np.nan])),
    ([0, 1], np.nan),
)
def test_numbers_that_only_rounding_makes_labels_are_refused(labels, values):
    with unknown():
        diagonal(labels).sample(values)


def test_large_labels_and_short_decimals_are_found():
    assert diagonal([-(2.0**62), 2.0**62]).sample(np.array([2**62, -(2**62)])).tolist() == [1, 0]
    assert diagonal([2**24 + 1, 2**24 + 2]).sample(np.array([2**24 + 2], dtype=np.float32)).tolist() == [1]
    tenth = diagonal([0.1, 0.5])
    for dtype in (np.float32, np.float16):
        assert tenth.sample(np.array([[0.1, 0.5]], dtype=dtype)).tolist() == [[0, 1]]
        assert tenth.sample(dtype(0.1)) == 0


@by_case(
    "values",
    *[True, np.True_, [True, False], "1", ["1"], None, [None, 1], 1j, [2**80], np.array([1], dtype=object)],
    *[np.array([1], dtype=np.longdouble), np.longdouble(1), np.array(["2020-01-01"], dtype="datetime64[D]")],
)
def test_values_other_than_numbers_are_refused(values):
    assert_error("values are of type", sampler_of([[1, 0], [0, 1]]).sample, values)


# -------------------------------------------------------------------------------------------------------- constructor
COIN = Table.of_rows([0, 1], [0, 1], [[3, 1], [1, 3]])


class Lying(Table):
    """A subclass, whose methods could mislead the sampler."""


def test_parts_that_do_not_fit_are_refused():
    assert_error("table is of type list, expected Table itself", Sampler, [[3, 1], [1, 3]])
    assert_error("no subclass", Sampler, Lying(COIN.labels, COIN.outputs, COIN.steps))


def test_a_sampler_cannot_be_changed():
    sampler = Sampler(COIN)
    for array in (sampler.labels, sampler.outputs):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@each_layout
def test_a_careless_source_is_refused(layout):
    class Careless(GivenWords):
        def words(self, count):
            return np.full(count, 4, dtype=np.uint64)

    for values in (0, [0, 0]):
        with pytest.raises(InvalidInput, match="more than its 2 bits"):
            sampler_of([[1, 3], [3, 1]], layout).sample(values, source=Careless(2, []))


def test_memory_does_not_grow_with_the_values():
    arcs = layered_arcs(random.Random(4), 53, 4, 50, 9)
    sampler = Sampler(of_arcs(arcs, Fraction(2)))
    values = np.zeros(40 * BLOCK, dtype=np.int64)
    sampler.sample(values[:1])
    tracemalloc.start()
    drawn = sampler.sample(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < drawn.nbytes + 12 * 8 * BLOCK
