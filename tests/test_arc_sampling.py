"""Draws from arcs: the law of their table, exactly, whatever the words are wide and however the arcs are nested."""

import itertools
import math
import random
import tracemalloc
from collections import Counter
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tables import layered_arcs, rows_of
from test_sampling import counts_by_enumeration, draw_batch, draw_one, inverse_cdf
from words import ExhaustedError, GivenWords

from optrand.base.arithmetic import privacy_ratio
from optrand.errors import InvalidInput
from optrand.model.arcs import IntegerArcs
from optrand.sampling import ArcSampler, Sampler
from optrand.sampling.drawing import BLOCK
from optrand.sampling.entropy import SeededEntropy

COIN = IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 1])


def sampler_of(arcs, ratio):
    """A sampler over labels 0, 1, ... and outputs 0, 1, ..."""
    return ArcSampler(np.arange(arcs.k), np.arange(arcs.n), arcs, ratio)


# ---------------------------------------------------------------------------------------- exactly, by enumerating words


def dyadic_cases():
    """Random arcs whose total is a power of two: a last arc over all labels, at ``r`` a unit, makes it so."""
    found = 0
    for seed in itertools.count():
        rng = random.Random(seed)
        k, n = rng.choice([1, 2, 3, 4, 5, 7, 8, 9]), rng.choice([1, 2, 3, 20])
        arcs, ratio = layered_arcs(rng, k, rng.randint(1, 3), n, 3), rng.choice([Fraction(3), Fraction(5, 3)])
        missing = next((m for q in range(10) if (m := 2**q - arcs.total(ratio)) > 0 and m % ratio.numerator == 0), None)
        if missing is None:
            continue
        parts = [(arcs.first, 0), (arcs.last, k - 1), (arcs.at, arcs.n), (arcs.masses, missing // ratio.numerator)]
        first, last, at, masses = ([*array.tolist(), more] for array, more in parts)
        yield IntegerArcs(k, first, last, at, masses), ratio
        found += 1
        if found == 25:
            return


DYADIC = list(dyadic_cases())


@pytest.mark.parametrize("draw", [draw_one, draw_batch])
@pytest.mark.parametrize("case", range(len(DYADIC)))
def test_counts_over_all_bit_strings_equal_the_weights(case, draw):
    """Every string decides, and each output comes out exactly ``weight * strings / total`` times: for every label."""
    arcs, ratio = DYADIC[case]
    sampler, rows = sampler_of(arcs, ratio), rows_of(arcs, ratio)
    bits = sampler.total.bit_length() - 1
    assert sampler.total == 2**bits
    for width in {1, 2, 3, bits} if bits <= 7 else {bits, -(-bits // 2)}:
        depth = -(-bits // width)
        for row, weights in enumerate(rows):
            counts = counts_by_enumeration(sampler, row, width, depth, draw)
            scale = 2 ** (width * depth) // sampler.total
            assert counts == {float(i): scale * weight for i, weight in enumerate(weights)}


@pytest.mark.parametrize("draw", [draw_one, draw_batch])
@pytest.mark.parametrize(("width", "depth"), [(1, 9), (2, 5), (3, 3), (4, 2), (9, 1)])
def test_counts_bracket_weights_that_no_bit_string_can_meet(width, depth, draw):
    """What is decided never exceeds the weight, and the undecided strings, at most one an edge, make up the rest."""
    strings = 2 ** (width * depth)
    for seed in range(6):
        rng = random.Random(seed)
        arcs, ratio = layered_arcs(rng, rng.randint(1, 6), 2, 4, 3), Fraction(7, 3)
        sampler = sampler_of(arcs, ratio)
        for row, weights in enumerate(rows_of(arcs, ratio)):
            counts = counts_by_enumeration(sampler, row, width, depth, draw)
            undecided = counts[None]
            assert undecided < 2 * arcs.masses.size
            for i, weight in enumerate(weights):
                assert counts[float(i)] <= Fraction(weight * strings, sampler.total) <= counts[float(i)] + undecided


def segments(sampler, row):
    """The weights and outputs of the arcs in the order in which the sampler lays them out for a label."""
    arcs, ratio = sampler.arcs, sampler.ratio
    everywhere, *others = (entries.tolist() for entries in sampler._tree.on_the_way(row))
    low, more = ratio.denominator, ratio.numerator - ratio.denominator
    favoured = [j for entries in others for j in entries]
    assert sorted(everywhere) == list(range(arcs.masses.size))
    assert sorted(favoured) == [j for j in everywhere if arcs.first[j] <= row <= arcs.last[j]]
    weights = [low * arcs.masses[j] for j in everywhere] + [more * arcs.masses[j] for j in favoured]
    return weights, [int(arcs.at[j]) for j in [*everywhere, *favoured]]


@st.composite
def draws(draw):
    """Arcs, a width, a label, and streams of words that keep close to the edges between its arcs."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    k = draw(st.integers(1, 20))
    arcs = layered_arcs(rng, k, draw(st.integers(1, 4)), draw(st.sampled_from([1, 3, 50])), rng.choice([1, 3, 2**100]))
    ratio = draw(st.sampled_from([Fraction(2), Fraction(9, 7), privacy_ratio(1.0), privacy_ratio(0.01)]))
    sampler, row, width = sampler_of(arcs, ratio), draw(st.integers(0, k - 1)), draw(st.integers(1, 64))
    streams = []
    for _ in range(draw(st.integers(1, 6))):
        edge = draw(st.sampled_from(list(accumulate(segments(sampler, row)[0]))))
        length = draw(st.integers(1, 4))
        digits = ((edge << width * length) // sampler.total) + draw(st.sampled_from([-1, 0, 0, 1]))
        words = [(digits >> width * (length - 1 - i)) % 2**width for i in range(length)]
        streams.append(words + draw(st.lists(st.integers(0, 2**width - 1), max_size=4)))
    return sampler, row, width, streams


@settings(max_examples=300)
@given(draws())
def test_every_decision_is_the_inverse_cdf(case):
    sampler, row, width, streams = case
    weights, outputs = segments(sampler, row)
    assert sum(weights) == sampler.total
    for words in streams:
        expected = inverse_cdf(weights, width, words)
        for draw in (draw_one, draw_batch):
            source = GivenWords(width, words)
            if expected is None:
                with pytest.raises(ExhaustedError):
                    draw(sampler, row, source)
            else:
                used, segment = expected
                assert draw(sampler, row, source) == outputs[segment]
                assert source.left == words[used:]


def test_one_batch_of_all_words_for_all_labels():
    """All words of a width at once, for every label, in one call: the counts are the weights."""
    arcs, ratio = max(((arcs, ratio) for arcs, ratio in DYADIC if arcs.total(ratio) <= 256), key=lambda case: case[0].k)
    sampler, k = sampler_of(arcs, ratio), arcs.k
    width = sampler.total.bit_length() - 1
    values = np.repeat(np.arange(k), 2**width)
    drawn = sampler.sample(values, source=GivenWords(width, [*range(2**width)] * k))
    counts = [np.bincount(drawn[values == y].astype(int), minlength=arcs.n).tolist() for y in range(k)]
    assert counts == rows_of(arcs, ratio)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0, 40.0])
def test_whole_words_and_single_draws_agree(epsilon):
    """Blocks of 64-bit words against the same words one by one."""
    arcs = layered_arcs(random.Random(4), 300, 40, 2000, 2**60)
    sampler = sampler_of(arcs, privacy_ratio(epsilon))
    values = np.random.default_rng(1).integers(0, 300, BLOCK + 500)
    words = SeededEntropy(5).words(values.size)
    batch = sampler.sample(values, source=GivenWords(64, words))
    for i in range(0, values.size, 37):
        assert batch[i] == sampler.sample(int(values[i]), source=GivenWords(64, [words[i]]))


# ----------------------------------------------------------------------------------------------------- in large samples


def test_it_draws_like_the_dense_sampler():
    """Chi-square of two samples of 300,000, on fixed streams, with tied outputs and nested arcs."""
    arcs, ratio = layered_arcs(random.Random(8), 12, 6, 15, 2**50), privacy_ratio(1.5)
    sampler = sampler_of(arcs, ratio)
    dense = Sampler(sampler.labels, sampler.outputs, arcs.table(ratio), sampler.total)
    for label in range(12):
        values = np.full(300_000, label)
        ours, theirs = (
            np.bincount(each.sample(values, source=SeededEntropy(20 * label + i)).astype(int), minlength=arcs.n)
            for i, each in enumerate((sampler, dense))
        )
        assert stats.chi2_contingency([ours, theirs]).pvalue > 1e-4
        assert stats.chisquare(ours, arcs.table(ratio)[label].astype(float) / sampler.total * 3e5).pvalue > 1e-4


def many_arcs(k, seed):
    """Arcs that begin and end in turn, as in an optimal unbiased randomizer: mass that ends at a label begins anew."""
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
    return IntegerArcs(k, first, last, np.arange(len(arcs)), np.array(masses, dtype=object))


def test_ten_thousand_labels_and_no_table():
    """A table of 130 million integers that is never made: frequencies by chi-square, and the memory."""
    k, ratio = 10_001, privacy_ratio(3.0)
    arcs = many_arcs(k, 3)
    assert arcs.n > 13_000
    tracemalloc.start()
    sampler = sampler_of(arcs, ratio)
    sampler.sample(0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    for label in (0, 1, 5_000, 8_191, 8_192, 10_000):
        size = 400_000
        drawn = sampler.sample(np.full(size, label), source=SeededEntropy(label)).astype(int)
        favours = (arcs.first <= label) & (label <= arcs.last)
        expected = np.where(favours, float(ratio), 1.0) * arcs.masses.astype(float)
        expected *= size / expected.sum()
        counts = np.bincount(drawn, minlength=arcs.n)
        # The favoured outputs one by one; all others in fifty heaps.
        heaps = np.where(favours, 50 + np.cumsum(favours), np.arange(arcs.n) * 50 // arcs.n)
        observed, wanted = (np.bincount(heaps, weights) for weights in (counts, expected))
        assert stats.chisquare(observed[wanted > 0], wanted[wanted > 0]).pvalue > 1e-4


# --------------------------------------------------------------------------------------------------------- what is said


@pytest.mark.parametrize("shape", [(0,), (3, 0), (), (1,), (2, 3, 4), (BLOCK + 1,)])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float64, np.float32])
def test_shapes_and_types(shape, dtype):
    sampler = ArcSampler([1, 4], [10, 20], COIN, privacy_ratio(700.0))
    drawn = sampler.sample(np.full(shape, 4, dtype=dtype))
    assert isinstance(drawn, np.ndarray)
    assert drawn.shape == shape
    assert drawn.dtype == np.float64
    assert (drawn == 20).all()


@pytest.mark.parametrize("value", [4, 4.0, np.int8(4), np.float16(4)])
def test_single_numbers(value):
    drawn = ArcSampler([1, 4], [10, 20], COIN, privacy_ratio(700.0)).sample(value)
    assert isinstance(drawn, np.float64)
    assert drawn == 20


def test_bad_values_are_neither_counted_nor_named():
    sampler = sampler_of(COIN, Fraction(3))
    with pytest.raises(InvalidInput, match="at least one value is not among the 2 labels") as caught:
        sampler.sample([0, 123.456, 1, math.nan])
    assert "123" not in str(caught.value)
    with pytest.raises(InvalidInput, match="at least one value"):
        sampler.sample(123.456)
    with pytest.raises(InvalidInput, match="values are of type"):
        sampler.sample(["1"])


def test_one_label_and_one_arc():
    sampler = ArcSampler([4], [2.5], IntegerArcs(1, [0], [0], [0], [3]), Fraction(2))
    assert sampler.sample(np.full((2, 3), 4)).tolist() == [[2.5] * 3] * 2
    assert sampler.sample(4) == 2.5
    assert sampler.total == 6


def test_a_careless_source_is_refused():
    class Careless(GivenWords):
        def words(self, count):
            return np.full(count, 4, dtype=np.uint64)

    for values in (0, [0, 0]):
        with pytest.raises(InvalidInput, match="more than its 2 bits"):
            sampler_of(COIN, Fraction(3)).sample(values, source=Careless(2, []))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [1, 0]}, "labels of a sampler must strictly increase"),
        ({"outputs": [1, 1]}, "outputs of a sampler must strictly increase"),
        ({"labels": [0, 1, 2]}, r"made for \(2, 2\) labels and outputs, expected \(3, 2\)"),
        ({"outputs": [0]}, r"made for \(2, 2\) labels and outputs, expected \(2, 1\)"),
        ({"arcs": [[3, 1], [1, 3]]}, "arcs are of type list"),
        ({"arcs": IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 2])}, "not covered"),
        ({"ratio": 3}, "Fraction above 1"),
        ({"ratio": 3.0}, "Fraction above 1"),
        ({"ratio": Fraction(1)}, "Fraction above 1"),
    ],
)
def test_parts_that_do_not_fit(change, message):
    good = {"labels": [0, 1], "outputs": [0, 1], "arcs": COIN, "ratio": Fraction(3)}
    ArcSampler(**good)
    with pytest.raises(InvalidInput, match=message):
        ArcSampler(**{**good, **change})


def test_the_tree_keeps_few_entries():
    """An interval of labels is at most two nodes on a level, and a single label is one leaf."""
    arcs = layered_arcs(random.Random(2), 1000, 5, 5000, 9)
    sampler = sampler_of(arcs, Fraction(2))
    kept = Counter(sampler._tree.entries[sampler._tree.starts[1] :].tolist())
    assert max(kept.values()) <= 2 * math.log2(1024)
    assert all(kept[j] == 1 for j in np.flatnonzero(arcs.first == arcs.last).tolist())
