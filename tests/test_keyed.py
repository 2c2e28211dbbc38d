"""Draws that belong to records: known answers of the ciphers, exact distributions, no words that two records share."""

import hmac
import os
import pickle
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import given
from hypothesis import strategies as st
from words import GivenWords, SpelledIds, numbered

import optrand
from optrand.errors import InvalidInput
from optrand.model._table import Table
from optrand.sampling import KeyedEntropy, RecordStreams, Sampler
from optrand.sampling import _entropy as module
from optrand.sampling._entropy import check_ids, subkey

NAMES = {"release": "r", "dataset": "d", "column": "c", "purpose": "labels"}
LABELS = np.arange(5.0)
WEIGHTS = [[9 if i == y else 2 for i in range(5)] for y in range(5)]


SAMPLERS = [
    Sampler(Table.of_rows(range(5), range(5), WEIGHTS)),
    optrand.solve(optrand.unbiased_regression(LABELS, np.full(5, 0.2), 1.0)),
]
each_sampler = pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)


# -------------------------------------------------------------------------------------------------------- known answers
def reference_subkey(master, *fields):
    """RFC 5869 in the standard library: extract without salt, one block of expand."""
    encoded = [b"optrand keyed 1", *(field.encode() for field in fields)]
    info = b"".join(struct.pack("<Q", len(field)) + field for field in encoded)
    return hmac.digest(hmac.digest(bytes(32), master, "sha256"), info + b"\x01", "sha256")


def test_a_subkey_is_hkdf_of_fields_with_their_lengths():
    master = bytes(range(32))
    expected = reference_subkey(master, "r", "d", "c", "labels", "g", "sha256:0")
    assert subkey(master, **NAMES, group="g", mechanism="sha256:0") == expected


def test_words_are_those_of_aes(monkeypatch):
    # FIPS 197, Appendix C.3: AES-256 of 0011...ff under the key 000102...1f.
    monkeypatch.setattr(module, "_derive", lambda *_: bytes(range(32)))
    ids = np.frombuffer(bytes.fromhex("00112233445566778899aabbccddeeff"), dtype="<u8").astype(np.uint64)
    words = RecordStreams(bytes(32)).first_words(np.array([ids]))
    assert words.tolist() == [int.from_bytes(bytes.fromhex("8ea2b7ca516745bf"), "little")]
    # NIST SP 800-38A, F.1.5 and the definition of counter mode: block 0 of the stream is AES of the counter 0.
    zero = RecordStreams(bytes(32)).first_words(np.zeros((1, 2), dtype=np.uint64))
    assert KeyedEntropy(bytes(range(32))).words(1).tolist() == zero.tolist()
    # Under the key 0, published with the algorithm: AES-256(0) = dc95c078a2408989ad48a21492842087.
    assert KeyedEntropy(bytes(32)).words(2).tobytes().hex() == "dc95c078a2408989ad48a21492842087"


def test_what_a_key_draws_never_changes():
    """Literals: a release that was killed under one version must go on under the next."""
    streams = RecordStreams(subkey(bytes(range(32)), **NAMES))
    assert streams.first_words(numbered(3)).tolist() == [
        9326807279211272766,
        11343391769555125147,
        17919471522714611020,
    ]
    assert streams.substream(numbered(3)[2]).words(2).tolist() == [17812349768900724980, 2559056746011883742]


# -------------------------------------------------------------------------------------------------------------- subkeys
FIELDS = st.lists(st.text("a1,:/\0 \u00e9\U0001f600", max_size=4), min_size=6, max_size=6)


@given(FIELDS, FIELDS)
def test_fields_cannot_run_into_one_another(one, other):
    keys = [
        subkey(bytes(32), release=a, dataset=b, column=c, purpose=d, group=e, mechanism=f)
        for a, b, c, d, e, f in (one, other)
    ]
    assert (keys[0] == keys[1]) == (one == other)


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), bytearray(32), "0" * 32, None])
def test_keys_are_32_bytes(key):
    for use in (RecordStreams, KeyedEntropy, lambda key: subkey(key, **NAMES)):
        assert_error("the key is", use, key)


def test_names_are_unicode():
    assert_error("not valid Unicode", subkey, bytes(32), **{**NAMES, "dataset": "\ud800"})


# ------------------------------------------------------------------------------- one record, one draw, in every batch
def labels_and_ids(count):
    values = np.random.default_rng(3).integers(0, 5, count)
    ids = np.random.default_rng(4).integers(0, 2**64, (count, 2), dtype=np.uint64)
    return values, ids


@each_sampler
def test_order_batches_and_partitions_make_no_difference(sampler):
    values, ids = labels_and_ids(400)
    streams = RecordStreams(bytes(32))
    drawn = sampler.sample_records(values, ids, streams)
    order = np.random.default_rng(5).permutation(400)
    np.testing.assert_array_equal(sampler.sample_records(values[order], ids[order], streams), drawn[order])
    for cuts in ([1], [7, 200], range(0, 400, 13)):
        parts = zip(np.split(values, cuts), np.split(ids, cuts), strict=True)
        joined = [sampler.sample_records(*part, RecordStreams(bytes(32))) for part in parts]
        np.testing.assert_array_equal(np.concatenate(joined), drawn)
    assert (sampler.sample_records(values, ids, RecordStreams(bytes(31) + b"1")) != drawn).any()


# ---------------------------------------------------------------------------------------------- privacy needs the ids
def test_two_labels_of_one_id_are_not_private():
    """An event that has a chance for one table alone. With distinct ids its chances have a ratio of at most 3."""
    sampler = Sampler(Table.of_rows([0, 1], [0, 1], [[3, 1], [1, 3]]))
    words = numbered(4)
    twice, mixed = ([sampler.sample_records([0, z], words[[i, i]], SpelledIds(2, 1)) for i in range(4)] for z in (0, 1))
    assert sum(one != other for one, other in twice) == 0
    assert sum(one != other for one, other in mixed) == 2
    pairs = list(product(range(4), range(4)))
    apart = [
        sum(len(set(sampler.sample_records([0, z], words[list(pair)], SpelledIds(2, 1)))) > 1 for pair in pairs)
        for z in (0, 1)
    ]
    assert apart == [6, 10]


def test_ties_are_settled_by_the_records_own_stream():
    """A threshold in the middle of a first word: the record's second word decides, whichever record it is."""
    sampler, tie = Sampler(Table.of_rows([0], [0, 1], [[1, 2]])), 2**64 // 3

    class Tied:
        width = 64

        def first_words(self, ids):
            return np.where(ids[:, 0] % 2, np.uint64(tie), np.uint64(2**62))

        def substream(self, record):
            assert record[0] % 2 == 1
            return GivenWords(64, [2**64 - 1 if record[1] else 0])

    ids = np.array([[1, 0], [2, 0], [1, 1], [2, 1], [3, 1], [3, 0]], dtype=np.uint64)
    # 1/3 does not go on with all zeros or all ones after 64 binary digits.
    assert sampler.sample_records(np.zeros(6), ids, Tied()).tolist() == [0, 0, 1, 0, 1, 0]


def test_no_two_records_share_words():
    ids = np.concatenate((numbered(3000), numbered(3000)[:, ::-1], ~numbered(3000)))
    ids = np.unique(ids, axis=0)
    streams = RecordStreams(bytes(32))
    words = [*streams.first_words(ids).tolist()]
    for record in ids:
        words += streams.substream(record).words(4).tolist()
    assert len(set(words)) == 5 * len(ids)


def test_a_stream_begins_anew_and_requests_follow_each_other():
    streams = RecordStreams(bytes(32))
    assert streams.substream(numbered(1)[0]).words(3).tolist() == streams.substream(numbered(1)[0]).words(3).tolist()
    whole, parts = KeyedEntropy(bytes(32)), KeyedEntropy(bytes(32))
    count = 1000
    assert whole.words(count).tolist() == [*parts.words(5).tolist(), *parts.words(count - 5).tolist()]
    ids = numbered(count)
    assert streams.first_words(ids)[-3:].tolist() == streams.first_words(ids[-3:]).tolist()


# --------------------------------------------------------------------------------------------------- threads and forks
def test_64_threads_share_no_word():
    source = KeyedEntropy(bytes(32))
    with ThreadPoolExecutor(64) as pool:
        taken = np.concatenate(list(pool.map(lambda _: source.words(257), range(64))))
    assert np.unique(taken).size == 64 * 257
    assert sorted(taken.tolist()) == sorted(KeyedEntropy(bytes(32)).words(64 * 257).tolist())


FORKS = """
import os, sys
import numpy as np
from optrand.errors import InvalidInput
from optrand.sampling import KeyedEntropy, RecordStreams
streams, source = RecordStreams(bytes(32)), KeyedEntropy(bytes(32))
source.words(3)
for worker in range(64):
    if not os.fork():
        ids = np.zeros((50, 2), dtype=np.uint64)
        ids[:, 0] = np.arange(50 * worker, 50 * worker + 50)
        try:
            source.words(1)
        except InvalidInput:
            os.write(1, f"{worker} {' '.join(map(str, streams.first_words(ids).tolist()))}\\n".encode())
        os._exit(0)
    os.wait()
"""


def test_64_forked_workers_share_no_word_and_carry_no_counter():
    run = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True)
    lines = sorted((list(map(int, line.split())) for line in run.stdout.splitlines()), key=lambda line: line[0])
    words = [word for line in lines for word in line[1:]]
    assert len(lines) == 64
    assert len(set(words)) == 64 * 50
    assert words == RecordStreams(bytes(32)).first_words(numbered(3200)).tolist()


def test_no_key_is_pickled_or_printed():
    key = os.urandom(32)
    for holder in (RecordStreams(key), KeyedEntropy(key)):
        assert_error("not copied or pickled", pickle.dumps, holder)
        assert "private=False" in repr(holder)
        assert key.hex() not in repr(holder)
    assert RecordStreams(key, private=True).substream(numbered(1)[0]).private


# ------------------------------------------------------------------------------------------------------------ bad input
@by_case(
    "ids",
    [[1, 0]],
    np.zeros((2, 2)),
    np.zeros((2, 2), dtype=np.int64),
    np.zeros(2, dtype=np.uint64),
    np.zeros((2, 3), dtype=np.uint64),
    np.ma.masked_array(np.zeros((2, 2), dtype=np.uint64), mask=[[True, False], [False, False]]),
)
def test_ids_of_another_form_are_refused(ids):
    assert_error("ids of records", check_ids, ids)


@each_sampler
def test_there_are_as_many_ids_as_labels(sampler):
    streams = RecordStreams(bytes(32))
    for values, count in (([0, 1], 3), ([[0], [1]], 2), (0, 1)):
        assert_error("an id for each record", sampler.sample_records, values, numbered(count), streams)
    assert_error(None, sampler.sample_records, [np.nan, 0], numbered(2), streams)
    assert sampler.sample_records([], numbered(0), streams).shape == (0,)


def test_a_function_with_too_wide_words_is_refused():
    class Wide(SpelledIds):
        def first_words(self, ids):
            return np.full(len(ids), 16, dtype=np.uint64)

    with pytest.raises(InvalidInput, match="more than its 4 bits"):
        Sampler(Table.of_rows([0], [0, 1], [[1, 1]])).sample_records([0], numbered(1), Wide(4, 2))
