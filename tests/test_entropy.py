import json
import os
import subprocess
import sys

import numpy as np
import pytest
from asserting import assert_error, by_case

import optrand
from optrand import baselines
from optrand.learning import PrivateLabels
from optrand.sampling import private_prior
from optrand.sampling._entropy import EntropySource, SeededEntropy, SystemEntropy, check_width, check_words


class Given:
    """Return the given bytes, as a source that breaks its promises would."""

    private = False

    def __init__(self, width, answer):
        self.width = width
        self.answer = answer

    def words(self, _count):
        return self.answer


@pytest.mark.parametrize("source", [SystemEntropy(), SeededEntropy(1)])
def test_words_are_64_uniform_bits(source):
    assert isinstance(source, EntropySource)
    assert source.width == 64
    words = check_words(source, 20_000)
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).sum(axis=0, dtype=np.int64)
    # 20,000 fair coins for each bit: standard deviation 71. Seven of them: once in 10^10 runs for any of 64 bits.
    assert np.abs(ones - 10_000).max() < 7 * 71
    assert np.unique(words).size == words.size


def test_system_entropy_uses_the_bytes_it_gets(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda size: bytes(i % 251 for i in range(size)))
    assert SystemEntropy().words(3).tobytes() == bytes(range(24))


@by_case(
    "draw",
    *[
        lambda made=made: made.sample([0])
        for made in (
            *(optrand.rr([0, 1], 1.0), optrand.closed_forms.rr_with_prior_batch([[0.5, 0.5]], 1.0)),
            *(optrand.unbiased_vectors([0.5, 0.5], 1.0), baselines.UniformRR(2, 1.0), baselines.UnaryBits(2, 1.0)),
            *(baselines.Alibi(2, 1.0), baselines.LatticeAlibi(2, 1.0, 2), baselines.Laplace([0, 1], 1.0)),
            *(baselines.Staircase([0, 1], 1.0), baselines.DiscreteLaplace([0, 1], 1.0)),
            baselines.DiscreteStaircase([0, 1], 1.0),
        )
    ],
    *[
        lambda made=made: made.release([0, 1], baselines.Groups.of_ids([0, 0]))
        for made in (
            baselines.ClusterRR(2, threshold=0.1, noise_scale=2.0, resampling=0.5),
            baselines.ClusterPriorRR(2, optrand.sampling.split_budget(1.0, 2, 100)),
            baselines.PeerToPeer(0.1, 0.5),
        )
    ],
    lambda: optrand.unbiased_rounding([0.5], [0, 1]),
    lambda: private_prior([1, 1], 1.0),
    lambda: PrivateLabels([0, 1], 1.0, [0, 1]).release([0], baselines.UniformRR(2, 1.0)),
)
def test_the_operating_system_is_the_source_unless_another_is_given(monkeypatch, draw):
    words, counts = SeededEntropy(0), []
    monkeypatch.setattr(SystemEntropy, "words", lambda _, count: counts.append(count) or words.words(count))
    draw()
    assert counts


def test_a_fork_shares_no_words():
    script = """
import os
from optrand.sampling._entropy import SystemEntropy
source = SystemEntropy()
source.words(5)
child = os.fork()
os.write(1, f"{source.words(5).tolist()}\\n".encode())
if child:
    os.waitpid(child, 0)
"""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    parent, child = (set(json.loads(line)) for line in run.stdout.splitlines())
    assert len(parent) == len(child) == 5
    assert parent.isdisjoint(child)


def test_only_the_system_is_private():
    assert SystemEntropy().private
    assert not SeededEntropy(3).private
    assert "not for a release" in repr(SeededEntropy(3))


def test_a_seed_repeats_and_another_does_not():
    first, again, other = SeededEntropy(5), SeededEntropy(np.int64(5)), SeededEntropy(6)
    words = first.words(8)
    assert words.tolist() == [*again.words(3).tolist(), *again.words(5).tolist()]
    assert not np.isin(other.words(8), words).any()
    assert not np.isin(first.words(8), words).any()


@pytest.mark.parametrize("seed", [None, True, 1.0, "1", -1])
def test_a_seed_is_a_number_from_0(seed):
    assert_error("seed", SeededEntropy, seed)


@pytest.mark.parametrize("width", [0, 65, -1, True, 8.0, "8", None])
def test_width_is_from_1_to_64(width):
    assert_error("from 1 to 64", check_width, Given(width, np.zeros(1, dtype=np.uint64)))


@by_case("answer", [1, 2], np.zeros(2, dtype=np.int64), np.zeros(3, dtype=np.uint64), np.zeros((2, 1), dtype=np.uint64))
def test_words_of_another_shape_or_type_are_refused(answer):
    assert_error("did not return 2 words", check_words, Given(64, answer), 2)


@pytest.mark.parametrize("width", [1, 8, 63])
def test_a_word_that_is_too_wide_is_refused(width):
    widest = np.array([0, 2**width - 1], dtype=np.uint64)
    assert check_words(Given(width, widest), 2) is widest
    assert_error(f"more than its {width} bits", check_words, Given(width, widest + np.uint64(1)), 2)
