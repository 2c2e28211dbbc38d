import itertools
import math
import tracemalloc
from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from words import ExhaustedError, GivenWords

from optrand.base.arithmetic import privacy_ratio
from optrand.errors import InvalidInput
from optrand.sampling import Sampler
from optrand.sampling.drawing import BLOCK
from optrand.sampling.entropy import SeededEntropy


def table(rows):
    """A sampler over labels 0, 1, ... and outputs 0, 1, ... with the given rows of weights."""
    return Sampler(np.arange(len(rows)), np.arange(len(rows[0])), rows, sum(rows[0]))


def randomized_response(k, epsilon):
    ratio = privacy_ratio(epsilon)
    rows = [[ratio.numerator if i == y else ratio.denominator for i in range(k)] for y in range(k)]
    return table(rows)


def inverse_cdf(weights, width, words):
    """The reference, in fractions: how many words decide, and which output; None if they do not suffice."""
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


def draw_one(sampler, row, source):
    return float(sampler.sample(int(sampler.labels[row]), source=source))


def draw_batch(sampler, row, source):
    return sampler.sample(np.array([sampler.labels[row]]), source=source).item()


def counts_by_enumeration(sampler, row, width, depth, draw):
    """How often each output comes out over all streams of `depth` words; None counts the undecided streams."""
    counts = Counter()
    for words in itertools.product(range(2**width), repeat=depth):
        try:
            counts[draw(sampler, row, GivenWords(width, words))] += 1
        except ExhaustedError:
            counts[None] += 1
    return counts


DYADIC = [
    # width, depth, weights of two rows that sum to a power of two, at most 2**(width * depth)
    (1, 3, [[1, 3, 4], [5, 2, 1]]),
    (1, 6, [[1, 13, 31, 19], [16, 16, 16, 16]]),
    (2, 1, [[1, 3], [2, 2]]),
    (2, 3, [[1, 13, 31, 19], [63, 0, 0, 1]]),
    (2, 4, [[101, 3, 0, 152], [0, 0, 256, 0]]),
    (3, 2, [[7, 9, 0, 48], [0, 64, 0, 0]]),
    (4, 2, [[101, 3, 0, 152], [0, 1, 255, 0]]),
    (5, 2, [[1000, 1, 22, 1], [0, 0, 1, 1023]]),
    (8, 1, [[101, 3, 0, 152], [64, 64, 64, 64]]),
]


@pytest.mark.parametrize("draw", [draw_one, draw_batch])
@pytest.mark.parametrize(("width", "depth", "rows"), DYADIC)
def test_counts_over_all_bit_strings_equal_the_weights(width, depth, rows, draw):
    sampler = table(rows)
    for row, weights in enumerate(rows):
        counts = counts_by_enumeration(sampler, row, width, depth, draw)
        scale = 2 ** (width * depth) // sampler.total
        assert counts == {float(i): scale * weight for i, weight in enumerate(weights) if weight}


@pytest.mark.parametrize("draw", [draw_one, draw_batch])
@pytest.mark.parametrize(
    ("width", "depth", "weights"),
    [
        (1, 8, [1, 1, 1]),
        (2, 4, [3, 0, 7, 1]),
        (3, 2, [0, 5, 95, 0]),
        (4, 2, [1, 10**6, 1]),
        (8, 1, [33, 33, 34, 1]),
        (10, 1, [5, 6]),
        (13, 1, [1, 2, 4]),
    ],
)
def test_counts_bracket_weights_that_no_bit_string_can_meet(width, depth, weights, draw):
    """A stream decides for output i if and only if its interval lies in ``[C_i, C_{i+1}) / total``: count those."""
    strings, total = 2 ** (width * depth), sum(weights)
    counts = counts_by_enumeration(table([weights]), 0, width, depth, draw)
    edges = [Fraction(c * strings, total) for c in accumulate(weights, initial=0)]
    undecided = counts[None]
    assert 0 < undecided < len(weights)
    for i, weight in enumerate(weights):
        assert counts[float(i)] == max(0, math.floor(edges[i + 1]) - math.ceil(edges[i]))
        assert counts[float(i)] <= Fraction(weight * strings, total) <= counts[float(i)] + undecided


def test_one_batch_of_all_words():
    rows = [[101, 3, 0, 152], [0, 1, 255, 0]]
    values = np.repeat([0, 1], 256)
    drawn = table(rows).sample(values, source=GivenWords(8, [*range(256), *range(256)]))
    for y, weights in enumerate(rows):
        assert np.bincount(drawn[values == y].astype(int), minlength=4).tolist() == weights


@st.composite
def draws(draw):
    """A row of weights, a width, and streams of words that keep close to the row's thresholds."""
    size = draw(st.sampled_from([8, 70, 200, 1200]))
    integers = st.one_of(st.just(0), st.integers(0, 3), st.integers(0, 2**size))
    weights = draw(st.lists(integers, min_size=1, max_size=9).filter(any))
    width = draw(st.integers(1, 64))
    streams = []
    for _ in range(draw(st.integers(1, 6))):
        edge = draw(st.sampled_from(list(accumulate(weights))))
        length = draw(st.integers(0, 4))
        digits = (edge << width * length) // sum(weights)
        followed = [digits >> width * (length - 1 - i) for i in range(length)]
        nudge = draw(st.sampled_from([-1, 0, 0, 1]))
        words = [*followed[:-1], followed[-1] + nudge] if followed else []
        streams.append([word % 2**width for word in words] + draw(st.lists(st.integers(0, 2**width - 1), max_size=4)))
    return weights, width, streams


@settings(max_examples=300, deadline=None)
@given(draws())
@example(([1, 2, 1], 2, [[1], [3], [0]]))
@example(([5], 64, [[0], [2**64 - 1]]))
@example(([0, 3, 0], 3, [[7], [0]]))
def test_every_decision_is_the_inverse_cdf(case):
    weights, width, streams = case
    sampler = table([weights, weights[::-1]])
    for words in streams:
        expected = inverse_cdf(weights, width, words)
        for draw in (draw_one, draw_batch):
            source = GivenWords(width, words)
            if expected is None:
                with pytest.raises(ExhaustedError):
                    draw(sampler, 0, source)
            else:
                used, output = expected
                assert draw(sampler, 0, source) == output
                assert source.left == words[used:]
    # In a batch the first words come together, and further words one by one for the values that need them.
    decided = [(words, inverse_cdf(weights, width, words)) for words in streams]
    decided = [(words, expected) for words, expected in decided if expected]
    source = GivenWords(width, [w for words, _ in decided for w in words[:1]])
    source.left += [w for words, (used, _) in decided for w in words[1:used]]
    drawn = sampler.sample(np.zeros(len(decided)), source=source)
    assert drawn.tolist() == [output for _, (_, output) in decided]
    assert source.left == []


@pytest.mark.parametrize("n", [2, 53, 800, 40_000])
def test_wide_rows_equal_the_inverse_cdf(n):
    """Whole blocks against one bisection a value, in integers; 40,000 outputs need the wider guide."""
    rng = np.random.default_rng(n)
    rows = rng.integers(0, 50, (2, n)).astype(object) * 10**30 + rng.integers(0, 2, (2, n)).astype(object)
    rows[:, n // 2] += rows.sum(axis=1).max() - rows.sum(axis=1)
    rows[:, 0] += 1
    sampler = table(rows.tolist())
    values = rng.integers(0, 2, 3000)
    drawn = sampler.sample(values, source=SeededEntropy(n))
    sums = [list(accumulate(row)) for row in rows.tolist()]
    words = SeededEntropy(n).words(values.size).tolist()
    expected = [
        bisect_right(sums[y], word * sampler.total // 2**64) for y, word in zip(values.tolist(), words, strict=True)
    ]
    assert drawn.tolist() == expected


def test_many_labels_share_the_guide():
    """With 5,000 labels a cell is wider; the diagonal table must still return each label."""
    k = 5_000
    rows = np.full((k, 3), 0, dtype=object)
    rows[np.arange(k), np.arange(k) % 3] = 7
    labels = np.arange(k) * 0.5
    sampler = Sampler(labels, [0, 1, 2], rows, 7)
    tracemalloc.start()
    drawn = sampler.sample(labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (drawn == np.arange(k) % 3).all()
    # A guide of 2**22 cells at most, and a few arrays of its size while it is made: not 5,000 times 2**12.
    assert peak < 4 * 8 * 2**22


def test_frequencies():
    """Chi-square over three rows at once, on a fixed stream."""
    rows = [[1, 2, 3, 4], [4, 0, 5, 1], [7, 1, 1, 1]]
    values = np.repeat([0, 1, 2], 100_000)
    drawn = table(rows).sample(values, source=SeededEntropy(11)).astype(int)
    for y, weights in enumerate(rows):
        counts = np.bincount(drawn[values == y], minlength=4)
        used = np.array(weights) > 0
        assert counts[~used].sum() == 0
        assert stats.chisquare(counts[used], np.array(weights)[used] * 1e4).pvalue > 1e-3


@pytest.mark.parametrize("weights", [[0, 0, 5], [5, 0, 0], [0, 5, 0], [0, 3, 0, 2, 0], [0, 2**70, 0, 1, 0]])
@pytest.mark.parametrize("width", [1, 4, 12, 64])
def test_weight_zero_never_comes(weights, width):
    sampler = table([weights])
    extremes = [0, 1, 2**width - 2, 2**width - 1, 2 ** (width - 1)]
    edges = [(c << width) // sampler.total + step for c in accumulate(weights) for step in (-1, 0, 1)]
    for word in extremes + edges:
        if 0 <= word < 2**width:
            drawn = sampler.sample([0], source=GivenWords(width, [word] + [0] * 100)).item()
            assert weights[int(drawn)] > 0


def test_one_label_and_one_output():
    assert Sampler([4], [2.5], [[3]], 3).sample(np.full((2, 3), 4)).tolist() == [[2.5] * 3] * 2
    assert Sampler([4], [2.5], [[3]], 3).sample(4) == 2.5


@pytest.mark.parametrize("epsilon", [40, 700])
def test_huge_ratios_keep_their_last_unit(epsilon):
    """The other label has probability ``1 / (R + 1)``, that is, x below it: try the numbers on both sides."""
    ratio = privacy_ratio(float(epsilon))
    sampler = randomized_response(2, float(epsilon))
    length = 64 * 20
    edge = (ratio.denominator << length) // sampler.total
    for number, output in ((edge - 1, 0), (edge + 1, 1), (0, 0), (2**length - 1, 1)):
        words = [number >> 64 * (19 - i) & (2**64 - 1) for i in range(20)]
        for draw in (draw_one, draw_batch):
            assert draw(sampler, 1, GivenWords(64, words)) == output


def test_epsilon_700_is_the_identity_in_practice():
    values = np.arange(53).repeat(400)
    assert (randomized_response(53, 700.0).sample(values) == values).all()


@pytest.mark.parametrize("shape", [(0,), (3, 0), (), (1,), (7,), (2, 3, 4), (BLOCK,), (BLOCK + 1,), (2, BLOCK)])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float64, np.float32])
def test_shapes_and_types(shape, dtype):
    values = np.full(shape, 1, dtype=dtype)
    drawn = table([[1, 0], [0, 1]]).sample(values)
    assert isinstance(drawn, np.ndarray)
    assert drawn.shape == shape
    assert drawn.dtype == np.float64
    assert (drawn == 1).all()


@pytest.mark.parametrize("value", [1, 1.0, np.int8(1), np.uint64(1), np.float16(1)])
def test_scalars(value):
    drawn = table([[1, 0], [0, 1]]).sample(value)
    assert isinstance(drawn, np.float64)
    assert drawn == 1.0


def test_lists_views_and_orders():
    sampler = Sampler([0, 1, 2], [10, 11, 12], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], 1)
    grid = np.arange(3).repeat(4).reshape(3, 4)
    for values in (grid, grid.T, grid[::-1, ::2], np.asfortranarray(grid)):
        assert (sampler.sample(values) == values + 10).all()
    assert sampler.sample([[0, 2], [1, 1]]).tolist() == [[10, 12], [11, 11]]
    assert sampler.sample([]).shape == (0,)


LABEL_SETS = [
    [0, 1, 2],
    [-3, 4, 5, 90],
    [-0.5, 0.1, 0.2, 1e300],
    [0, 2.5],
    [2.0**53 - 1, 2.0**53],
    [-(2.0**60), 0, 2.0**60],
    [2.0**24, 2.0**24 + 1],
    [0, 1e6],
    [3],
]


@pytest.mark.parametrize("labels", LABEL_SETS)
def test_labels_find_their_rows_exactly(labels):
    k = len(labels)
    sampler = Sampler(labels, np.arange(k), np.eye(k, dtype=int).astype(object), 1)
    assert sampler.sample(labels).tolist() == list(range(k))
    assert [sampler.sample(label) for label in labels] == list(range(k))
    outside = [math.nextafter(label, sign * math.inf) for label in labels for sign in (-1, 1)]
    outside += [math.nan, math.inf, -math.inf, 0.5, labels[0] - 7, labels[-1] * 2 + 1, 1e308, -1e308]
    outside = [value for value in outside if value not in labels]
    with pytest.raises(InvalidInput, match="at least one value is not among"):
        sampler.sample([*outside, *labels])
    for value in outside:
        with pytest.raises(InvalidInput, match="at least one value is not among"):
            sampler.sample(value)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20, unique_by=lambda x: x + 0.0))
def test_any_labels_find_their_rows(labels):
    labels = np.sort(np.array(labels) + 0.0)
    k = labels.size
    sampler = Sampler(labels, np.arange(k), np.eye(k, dtype=int).astype(object), 1)
    assert sampler.sample(labels[::-1]).tolist() == list(range(k))[::-1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_what_lies_between_integer_labels_is_no_label(dtype):
    sampler = Sampler([0, 1, 3], [0, 1, 2], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], 1)
    assert sampler.sample(np.array([3, -0.0, 1], dtype=dtype)).tolist() == [2, 0, 1]
    for stranger in (0.5, 1.5, 2, 2.998):
        with pytest.raises(InvalidInput, match="at least one value is not among"):
            sampler.sample(np.array([1, stranger, 3], dtype=dtype))


def test_integers_too_large_for_floats():
    big = 2**53
    sampler = Sampler([0, big], [0, 1], [[1, 0], [0, 1]], 1)
    assert sampler.sample(np.array([0, big])).tolist() == [0, 1]
    for dtype in (np.int64, np.uint64):
        with pytest.raises(InvalidInput, match="at least one value is not among"):
            sampler.sample(np.array([big, big + 1], dtype=dtype))
    with pytest.raises(InvalidInput, match="at least one value is not among"):
        sampler.sample(big + 1)
    narrow = Sampler([big - 1, big], [0, 1], [[1, 0], [0, 1]], 1)
    with pytest.raises(InvalidInput, match="at least one value is not among"):
        narrow.sample(np.array([big, big + 1]))
    far = Sampler([-(2.0**62), 2.0**62], [0, 1], [[1, 0], [0, 1]], 1)
    assert far.sample(np.array([2**62, -(2**62)])).tolist() == [1, 0]
    for stranger in (2**62 + 1, -(2**63)):
        with pytest.raises(InvalidInput, match="at least one value is not among"):
            far.sample(np.array([2**62, stranger]))


def test_small_floats_are_not_rounded_into_the_range():
    """As 32-bit floats 2**24 + 1 is 2**24, which is no label here: the bounds must not be rounded either."""
    sampler = Sampler([2**24 + 1, 2**24 + 2], [0, 1], [[1, 0], [0, 1]], 1)
    assert sampler.sample(np.array([2**24 + 2], dtype=np.float32)).tolist() == [1]
    with pytest.raises(InvalidInput, match="at least one value is not among"):
        sampler.sample(np.array([2**24], dtype=np.float32))
    above = Sampler([2**24, 2**24 + 3], [0, 1], [[1, 0], [0, 1]], 1)
    with pytest.raises(InvalidInput, match="at least one value is not among"):
        above.sample(np.array([2**24 + 4], dtype=np.float32))
    tenth = Sampler([0.1, 0.5], [0, 1], [[1, 0], [0, 1]], 1)
    with pytest.raises(InvalidInput, match="at least one value is not among"):
        tenth.sample(np.array([0.1, 0.5], dtype=np.float32))
    with pytest.raises(InvalidInput, match="at least one value is not among"):
        tenth.sample(np.float32(0.1))


def test_bad_values_are_neither_counted_nor_named():
    """Wherever they stand and however many there are, the message is the same."""
    messages = set()
    for places in ([5], [BLOCK + 5], [-1], [5, BLOCK + 5, -1]):
        values = np.zeros(2 * BLOCK + 10)
        values[places] = [123.456, np.nan, 7][: len(places)]
        with pytest.raises(InvalidInput, match="at least one value is not among the 2 labels") as caught:
            table([[1, 0], [0, 1]]).sample(values)
        messages.add(str(caught.value))
    assert len(messages) == 1


@pytest.mark.parametrize(
    "values",
    [
        True,
        np.True_,
        [True, False],
        "1",
        ["1"],
        None,
        [None, 1],
        1j,
        [2**80],
        np.array([1], dtype=object),
        np.array([1], dtype=np.longdouble),
        np.longdouble(1),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
    ],
)
def test_values_that_are_no_numbers(values):
    with pytest.raises(InvalidInput, match="values are of type"):
        table([[1, 0], [0, 1]]).sample(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [1, 0]}, "labels of a sampler must strictly increase"),
        ({"outputs": [1, 1]}, "outputs of a sampler must strictly increase"),
        ({"labels": [0, math.nan]}, "NaN"),
        ({"labels": [0, 1, 2]}, "shape"),
        ({"weights": [[3, 1]]}, "shape"),
        ({"weights": [[3.0, 1.0], [1, 3]]}, "Python integers"),
        ({"weights": np.array([[3, 1], [1, 3]])[:, ::-1] * 1.0}, "Python integers"),
        ({"weights": [[np.int64(3), 1], [1, 3]]}, "Python integers"),
        ({"weights": [[3, True], [1, 3]]}, "Python integers"),
        ({"total": 4.0}, "Python integers"),
        ({"weights": [[5, -1], [1, 3]]}, "at least 0"),
        ({"weights": [[0, 0], [0, 0]], "total": 0}, "above 0"),
        ({"weights": [[3, 1], [1, 2]]}, "1 row"),
        ({"total": 5}, "2 row"),
    ],
)
def test_tables_that_are_none(change, message):
    good = {"labels": [0, 1], "outputs": [0, 1], "weights": [[3, 1], [1, 3]], "total": 4}
    Sampler(**good)
    with pytest.raises(InvalidInput, match=message):
        Sampler(**{**good, **change})


def test_a_sampler_cannot_be_changed():
    rows = np.array([[3, 1], [1, 3]], dtype=object)
    sampler = Sampler([0, 1], [0, 1], rows, 4)
    rows[0] = [0, 4]
    assert sampler.weights.tolist() == [[3, 1], [1, 3]]
    for array in (sampler.weights, sampler.labels, sampler.outputs):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_careless_source_is_refused():
    class Careless(GivenWords):
        def words(self, count):
            return np.full(count, 4, dtype=np.uint64)

    for values in (0, [0, 0]):
        with pytest.raises(InvalidInput, match="more than its 2 bits"):
            table([[1, 3], [3, 1]]).sample(values, source=Careless(2, []))


def test_memory_does_not_grow_with_the_values():
    sampler = randomized_response(53, 1.0)
    values = np.zeros(40 * BLOCK, dtype=np.int64)
    sampler.sample(values[:1])
    tracemalloc.start()
    drawn = sampler.sample(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < drawn.nbytes + 12 * 8 * BLOCK
