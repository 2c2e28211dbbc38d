"""Labels that peers exchange: sums against enumeration, privacy from both sides, and the paper's figures beside."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from asserting import assert_error, by_case
from scipy import stats

from optrand.baselines._groups import Groups
from optrand.baselines._peer_to_peer import SUMS, PeerPair, PeerToPeer, Sums, lemma9, lemma9_at, theorem3, theorem3_flip
from optrand.sampling._entropy import SeededEntropy

TOLERANCE = 1e-10
"""Error of sums of binomial probabilities in floats."""


@cache
def law_by_enumeration(labels, flip, rate):
    """Algorithm 2 on one cluster, step by step in fractions: every flip, every choice of a user, every subset sent.

    An outcome is the transcript of the learner: for each user the label that was sent, or None.
    """
    users = range(len(labels))
    law: Counter[tuple[int | None, ...]] = Counter()
    for flips in itertools.product((0, 1), repeat=len(labels)):
        flipped = [y ^ f for y, f in zip(labels, flips, strict=True)]
        flip_mass = math.prod(flip if f else 1 - flip for f in flips)
        for chosen in itertools.product(users, repeat=len(labels)):
            choice_mass = Fraction(1, len(labels) ** len(labels))
            for sent in itertools.product((0, 1), repeat=len(labels)):
                sent_mass = math.prod(rate if s else 1 - rate for s in sent)
                outcome = tuple(flipped[j] if s else None for j, s in zip(chosen, sent, strict=True))
                law[outcome] += flip_mass * choice_mass * sent_mass
    return law


def delta_by_enumeration(size, flip, rate, epsilon):
    """The largest sum of the excess of one law over the other, over all pairs of neighbours."""
    laws = {labels: law_by_enumeration(labels, flip, rate) for labels in itertools.product((0, 1), repeat=size)}
    ratio = math.exp(epsilon)
    worst = 0.0
    for one, two in itertools.permutations(laws, 2):
        if sum(a != b for a, b in zip(one, two, strict=True)) == 1:
            excess = (max(0.0, float(laws[one][x]) - ratio * float(laws[two][x])) for x in laws[one])
            worst = max(worst, math.fsum(excess))
    return worst


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(("flip", "rate"), [(Fraction(1, 4), Fraction(1, 2)), (Fraction(1, 10), Fraction(1))])
def test_sums_agree_with_every_outcome_of_algorithm_2(size, flip, rate):
    mechanism = PeerToPeer(float(flip), float(rate))
    for epsilon in (1e-6, 0.2, 0.7, 1.5):
        privacy = mechanism.delta(epsilon, size)
        assert privacy.exhaustive
        assert privacy.delta == pytest.approx(delta_by_enumeration(size, flip, rate, epsilon), abs=TOLERANCE)


def test_one_user_alone_has_the_flips_and_the_rate():
    # The label is sent with probability 0.3, flipped with probability 0.2: delta = 0.3 (0.8 - 0.2 e^epsilon).
    mechanism = PeerToPeer(0.2, 0.3)
    assert mechanism.delta(1.0, 1).delta == pytest.approx(0.3 * (0.8 - 0.2 * math.e), abs=TOLERANCE)
    assert mechanism.delta(mechanism.epsilon + 1e-9, 1).delta == pytest.approx(0, abs=TOLERANCE)
    # At a little less than log 4 it is 0.3 * 0.8 (1 - e^(less)).
    assert mechanism.delta(mechanism.epsilon - 0.01, 1).delta == pytest.approx(-0.24 * math.expm1(-0.01), rel=0.02)


@pytest.mark.parametrize(("size", "flip", "rate"), [(10, 0.1, 0.5), (40, 0.3, 1.0), (40, 0.02, 0.2)])
def test_privacy_from_both_sides(size, flip, rate):
    mechanism = PeerToPeer(flip, rate)
    for target in (1e-2, 1e-4):
        privacy = mechanism.at_delta(target, size)
        assert 0 < privacy.epsilon <= mechanism.epsilon
        assert mechanism.delta(privacy.epsilon, size).delta <= target * (1 + 1e-6)
        assert mechanism.delta(privacy.epsilon * 0.99, size).delta > target


def test_laws_are_those_of_a_plain_sum():
    # All of it again without cuts: scipy's binomials, every number of flips, every number of copies.
    size, flip, rate, ones = 30, 0.15, 0.4, 7
    pair = PeerPair.of(size, flip, rate, ones=ones)
    flipped = np.convolve(
        stats.binom.pmf(np.arange(ones + 1), ones, 1 - flip),
        stats.binom.pmf(np.arange(size - ones), size - 1 - ones, flip),
    )
    laws = [np.convolve(flipped, own) for own in ([1 - flip, flip], [flip, 1 - flip])]
    for epsilon in (0.0, 0.1, 0.4):
        deltas = np.zeros(2)
        for t in range(size + 1):
            table = stats.binom.pmf(np.arange(t + 1), t, np.arange(size + 1)[:, np.newaxis] / size)
            p, q = (law @ table for law in laws)
            ratio = math.exp(epsilon)
            excess = [np.maximum(p - ratio * q, 0).sum(), np.maximum(q - ratio * p, 0).sum()]
            deltas += stats.binom.pmf(t, size, rate) * np.array(excess)
        low, high = pair.delta(epsilon)
        assert low == pytest.approx(deltas.max(), rel=1e-9)
        assert high == pytest.approx(deltas.max(), rel=1e-9)


def test_numbers_of_copies_that_are_taken_together_bracket_the_sum(monkeypatch):
    apart = PeerPair.of(120, 0.1, 0.5, ones=0)
    monkeypatch.setattr("optrand.baselines._peer_to_peer.SUMS", Sums(single=0))
    together = PeerPair.of(120, 0.1, 0.5, ones=0)
    assert len(together.numbers) <= len(SUMS.offsets) < SUMS.single
    assert len(together.numbers) < len(apart.numbers)
    assert math.fsum(together.masses) == pytest.approx(1, abs=TOLERANCE)
    for epsilon in (0.0, 0.2, 0.5):
        low, high = together.delta(epsilon)
        assert low < apart.delta(epsilon)[0]
        assert apart.delta(epsilon)[1] < high
        assert high < 1.3 * low


def test_the_search_over_labels_of_others_finds_what_trying_all_finds(monkeypatch):
    for flip, rate, target in ((0.3, 1.0, 1e-13), (0.1, 0.3, 1e-4), (0.02, 1.0, 1e-3)):
        mechanism = PeerToPeer(flip, rate)
        tried = mechanism.at_delta(target, 40)
        with monkeypatch.context() as patch:
            patch.setattr("optrand.baselines._peer_to_peer.SUMS", Sums(exhaustive=0))
            found = mechanism.at_delta(target, 40)
        assert tried.exhaustive
        assert not found.exhaustive
        assert found.epsilon == pytest.approx(tried.epsilon, rel=1e-6)
        assert found.ones == tried.ones


def test_more_flips_than_not_are_the_same_as_fewer():
    one, two = PeerToPeer(0.25, 0.5), PeerToPeer(0.75, 0.5)
    assert one.epsilon == two.epsilon
    assert one.peer_delta(10) == two.peer_delta(10) == 0.05
    assert one.delta(0.3, 12).delta == two.delta(0.3, 12).delta


def test_without_noise_nothing_is_private_and_without_copies_all_is():
    plain = PeerToPeer(0, 1)
    assert plain.epsilon == math.inf
    # The one user with a 1 among five is never asked with probability (4/5)^5. Otherwise the copies disclose it.
    assert plain.delta(20.0, 5).delta == pytest.approx(1 - 0.8**5, abs=TOLERANCE)
    assert plain.at_delta(0.1, 5).epsilon == math.inf
    assert PeerToPeer(0.5, 1).at_delta(1e-6, 5).epsilon == 0
    assert PeerToPeer(0.1, 0).at_delta(1e-6, 5).epsilon == 0


def test_lemma_9_is_the_printed_formula():
    # s = 1000, alpha = 0.1, theta = 1, delta = 1e-6: xi^2 = 4 (0.101) (0.9) log(1e6) / 0.1.
    xi = math.sqrt(4 * 0.101 * 0.9 * math.log(1e6) / 0.1)
    expected = math.log(math.e + 0.03) + xi * math.log(1.3)
    assert lemma9(PeerToPeer(0.1, 1.0), 1e-6, 1000) == pytest.approx(expected)
    assert lemma9_at(PeerToPeer(0.1, 1.0), xi, 1000) == pytest.approx((expected, 1e-6))
    # Its hypotheses: s alpha >= 2, xi not too large, alpha at most 1/2.
    assert lemma9(PeerToPeer(0.1, 1.0), 0.5, 19) == math.inf
    assert lemma9(PeerToPeer(0.1, 1.0), 1e-6, 100) == math.inf
    assert lemma9(PeerToPeer(0.6, 1.0), 1e-6, 1000) == math.inf


def test_lemma_9_reaches_as_far_as_its_proof():
    # s = 20, alpha = 0.4, theta = 1: xi goes up to 1.2 sqrt(12) = 4.157, beyond 1.2 sqrt(20) 0.6 = 3.22.
    mechanism = PeerToPeer(0.4, 1.0)
    at, beyond = (math.exp(-0.4 * xi**2 / (4 * 0.45 * 0.6)) for xi in (4.15, 4.16))
    assert lemma9(mechanism, beyond, 20) == math.inf
    assert mechanism.delta(lemma9(mechanism, at, 20), 20).delta <= at


def test_theorem_3_is_lemma_9_at_its_own_xi():
    size = 20_000
    flip = theorem3_flip(size, 1.0)
    mechanism = PeerToPeer(flip, 1.0)
    xi = 4 * math.sqrt(math.log(size))
    delta = math.exp(-flip * xi**2 / (4 * (flip + 1 / size) * (1 - flip)))
    assert delta <= 1 / size**2
    assert theorem3(mechanism, size) == pytest.approx(lemma9(mechanism, delta, size))
    assert theorem3(PeerToPeer(flip - 0.01, 1.0), size) == math.inf
    assert theorem3(PeerToPeer(0.4, 0.0), size) == math.inf


def test_releases_follow_algorithm_2():
    mechanism = PeerToPeer(0.25, 0.5)
    copies = 20_000
    groups = Groups.of_ids(np.tile(np.arange(copies), 2))
    release = mechanism.release([0] * copies + [1] * copies, groups, source=SeededEntropy(5))
    got = np.full(2 * copies, -1)
    got[release.rows] = release.labels
    drawn = Counter(zip(got[:copies].tolist(), got[copies:].tolist(), strict=True))
    law = law_by_enumeration((0, 1), Fraction(1, 4), Fraction(1, 2))
    observed = [drawn[tuple(-1 if x is None else x for x in outcome)] for outcome in law]
    assert sum(observed) == copies
    assert stats.chisquare(observed, [float(mass) * copies for mass in law.values()]).pvalue > 1e-3


def test_copies_stay_in_their_cluster():
    groups = Groups.of_ids(np.tile([9, 4, 7], 100))
    release = PeerToPeer(0, 1).release(np.tile([0, 1, 0], 100), groups, source=SeededEntropy(1))
    np.testing.assert_array_equal(release.rows, np.arange(300))
    np.testing.assert_array_equal(release.labels, np.tile([0, 1, 0], 100))


@by_case(
    "message, call",
    ("flip is 1.5, expected a probability from 0 to 1", lambda _: PeerToPeer(1.5, 0.5)),
    ("flip is -0.1", lambda _: PeerToPeer(-0.1, 0.5)),
    ("rate is 2", lambda _: PeerToPeer(0.5, 2)),
    ("flip is nan", lambda _: PeerToPeer(math.nan, 0.5)),
    ("rate is of type str", lambda _: PeerToPeer(0.1, "all")),
    ("never flipped, or always, are not private", lambda _: PeerToPeer(0, 0.5).exact_epsilon),
    *[("delta is", lambda peers, delta=delta: peers.at_delta(delta, 10)) for delta in (0.0, 1e-30, 1.0, -1.0)],
    ("delta is 0", lambda peers: lemma9(peers, 0.0, 10)),
    *[("size of a cluster is", lambda peers, size=size: peers.delta(1.0, size)) for size in (0, 2.5)],
    ("expected one label and one group", lambda peers: peers.release([0, 1, 1], Groups.of_ids([0, 0]))),
)
def test_arguments_without_meaning_are_refused(message, call):
    assert_error(message, call, PeerToPeer(0.1, 0.5))
