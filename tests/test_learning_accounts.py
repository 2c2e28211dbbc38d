"""Tiny cases of every plan, all transcripts: the account is at least the exact largest log-ratio.

A transcript is everything that leaves the holder: noisy labels and histograms, in order. A plan is a function of
earlier outputs, so it is run once for every transcript, on a holder that plays the script and keeps the exact
probability of it under every table of labels.
"""

import functools
import itertools
import re
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from examples_to_learn import sides
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyRegressor

from optrand import Mechanism, Problem, solve
from optrand.accounting import Spent
from optrand.base._arithmetic import log_bracket, privacy_ratio
from optrand.baselines import ClusterRelease, ClusterRR, LatticeAlibi, PeerToPeer, UnaryBits
from optrand.baselines._cluster import cluster_distribution
from optrand.closed_forms import RRWithPriorBatch
from optrand.learning import (
    Alibi,
    Bits,
    Clusters,
    Domain,
    DomainPrior,
    LabelRelease,
    Likelihood,
    NearestNeighbour,
    NoisyLabels,
    OnePrior,
    Peers,
    PriorRelease,
    PrivateLabels,
    PublicClusters,
    RowPriors,
    Stages,
    TwoStages,
    _training,
)
from optrand.learning._training import Training

EPSILON = 1.1


class Shares(ClassifierMixin, BaseEstimator):
    """Shares of labels among the rows on the same side of zero, one added to each count."""

    def fit(self, X, y, sample_weight=None):
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        self.classes_ = np.unique(y)
        self.sides_ = [
            np.array([1 + weights[(y == label) & (np.asarray(X)[:, 0] > 0) == side].sum() for label in self.classes_])
            for side in (False, True)
        ]
        return self

    def predict_proba(self, X):
        counts = np.array([self.sides_[int(x > 0)] for x in np.asarray(X)[:, 0]])
        return counts / counts.sum(axis=1, keepdims=True)


class Script:
    """Choices of one transcript, and the next of them in lexicographic order."""

    def __init__(self) -> None:
        self.path: list[int] = []
        self.sizes: list[int] = []
        self.at = 0

    def choose(self, options: list):
        if self.at == len(self.path):
            self.path.append(0)
            self.sizes.append(len(options))
        self.at += 1
        return options[self.path[self.at - 1]]

    def advance(self) -> bool:
        while self.path and self.path[-1] + 1 == self.sizes[-1]:
            self.path.pop()
            self.sizes.pop()
        if self.path:
            self.path[-1] += 1
        self.at = 0
        return bool(self.path)


class ScriptedLabels:
    """Stands in for the holder, and multiplies exact probabilities: ``exp(-exponent) * product`` for each table."""

    def __init__(self, n: int, k: int, script: Script) -> None:
        self.domain, self.script, self.n, self.k = Domain(tuple(range(k))), script, n, k
        self.tables = list(itertools.product(range(k), repeat=n))
        self.products = dict.fromkeys(self.tables, Fraction(1))
        self.exponents = dict.fromkeys(self.tables, Fraction(0))

    def __len__(self) -> int:
        return self.n

    def release(self, rows, randomizer, *, groups=None):
        if isinstance(randomizer, ClusterRR):
            return self._clusters(rows, randomizer, groups)
        if isinstance(randomizer, PeerToPeer):
            return self._peers(rows, randomizer, groups)
        values = []
        for at, row in enumerate(rows):
            options = list(outcomes(randomizer, at, self.k))
            value, chances = self.script.choose(options)
            values.append(value)
            self._multiply(row, chances)
        return LabelRelease(np.array(rows), np.array(values), randomizer, self.domain, Spent())

    def prior(self, rows, _, epsilon, *, bins=None):
        assert bins is None or bins.tolist() == list(range(self.k))
        counts = self._histogram(rows, Fraction(epsilon) / 2)
        return PriorRelease(np.array(rows), counts, epsilon)

    def _multiply(self, row, chances) -> None:
        for table in self.tables:
            self.products[table] *= chances[table[row]]

    def _histogram(self, rows, rate: Fraction) -> tuple[int, ...]:
        # Beyond the counts that there can be every ratio is one that occurs among them.
        beyond = int(len(rows) > 1)
        counts = self.script.choose(list(itertools.product(range(-beyond, len(rows) + beyond + 1), repeat=self.k)))
        for table in self.tables:
            true = np.bincount([table[row] for row in rows], minlength=self.k)
            self.exponents[table] += rate * int(np.abs(np.array(counts) - true).sum())
        return counts

    def _clusters(self, rows, randomizer, groups):
        distributions, values = [], np.zeros(len(rows), dtype=np.int64)
        for group in range(len(groups)):
            members = np.flatnonzero(groups.index == group)
            counts = self._histogram(rows[members], 1 / randomizer.noise_scale)
            shares = [Fraction(count, members.size) for count in counts]
            distributions.append(cluster_distribution(shares, randomizer.threshold))
        for at, row in enumerate(rows):
            values[at] = self.script.choose(list(range(self.k)))
            drawn = randomizer.resampling * distributions[groups.index[at]][values[at]]
            self._multiply(row, [(1 - randomizer.resampling) * (y == values[at]) + drawn for y in range(self.k)])
        given = ClusterRelease(values.copy(), groups, tuple(distributions), randomizer)
        return LabelRelease(np.array(rows), values, given, self.domain, Spent())

    def _peers(self, rows, randomizer, groups):
        """All that anybody sees: every flipped label, who copied it, and who sent it."""
        flip, flipped = Fraction(randomizer.flip), []
        for row in rows:
            flipped.append(self.script.choose([0, 1]))
            self._multiply(row, [flip if y != flipped[-1] else 1 - flip for y in (0, 1)])
        copied = [self.script.choose(np.flatnonzero(groups.index == group).tolist()) for group in groups.index]
        values = np.array(flipped)[copied]
        return LabelRelease(np.array(rows), values, randomizer, self.domain, Spent(), groups)

    @property
    def largest(self) -> Fraction:
        """Upper bound of the largest log-ratio of two neighbours, within 1e-59."""
        found = Fraction(0)
        for table in self.tables:
            for row, label in itertools.product(range(self.n), range(self.k)):
                other = (*table[:row], label, *table[row + 1 :])
                ratio = log_upper(self.products[table] / self.products[other])
                found = max(found, ratio + self.exponents[other] - self.exponents[table])
        return found


@functools.cache
def log_upper(ratio: Fraction) -> Fraction:
    return log_bracket(ratio)[1]


def outcomes(randomizer, at: int, k: int):
    """Outputs for one row, each with its exact probability under every label."""
    if isinstance(randomizer, RRWithPriorBatch):
        kept, ratio = randomizer.kept[at], privacy_ratio(randomizer.epsilon)
        size = int(kept.sum())
        for value in np.flatnonzero(kept):
            yield (
                value,
                [
                    Fraction(1, size) if not kept[y] else (ratio if y == value else 1) / (ratio + size - 1)
                    for y in range(k)
                ],
            )
        return
    if isinstance(randomizer, UnaryBits):
        zero = (1 - randomizer.flip, randomizer.flip)
        one, steps = zero[::-1], 1
    else:
        assert isinstance(randomizer, LatticeAlibi)
        steps = randomizer.steps
        zero, one = randomizer.coordinate.weights / Fraction(randomizer.coordinate.total)
    for places in itertools.product(range(steps + 1), repeat=k):
        chances = []
        for y in range(k):
            each = [(one if j == y else zero)[place] for j, place in enumerate(places)]
            chances.append(np.prod(np.array(each, dtype=object)))
        yield np.array(places) if steps == 1 else np.array(places) / steps, chances


def features(n: int):
    return np.where(np.arange(n) % 2, 1.0, -1.0)[:, np.newaxis]


def named(case):
    """Name of a case of a test, without places in memory: all workers must name it alike."""
    return re.sub(r"<function (\w+) at 0x\w+>", r"\1", str(case))


ONCE, LABELS = Likelihood(rounds=1), NoisyLabels()

CASES = {
    "one stage": (Stages(1), 2, 3, ONCE),
    "a domain prior, then a stage": (Stages(1, domain_prior=DomainPrior(sides, 0.3, 1)), 2, 2, ONCE),
    "two stages": (Stages(2), 3, 3, ONCE),
    "two stages, noisy labels": (Stages(2), 3, 3, LABELS),
    "two sure stages": (Stages(2, least=1, temperature=0.2, reuse=False), 3, 3, LABELS),
    "two filtered stages": (Stages(2, top_k_filter=True), 3, 2, LABELS),
    "three stages": (Stages(3), 3, 3, LABELS),
    "priors of single rows": (DomainPrior(sides, 0.3, 1), 2, 2, LABELS),
    "priors that drop labels": (DomainPrior(sides, 0.3, 1, least=1), 2, 2, LABELS),
    "one prior": (DomainPrior(sides, 0.3, 2), 2, 2, ONCE),
    "bits": (Bits(), 2, 2, ONCE),
    "a neighbour": (NearestNeighbour(1), 2, 2, ONCE),
    "alibi": (Alibi(2), 2, 2, ONCE),
    "clusters of single rows": (Clusters(sides, 0.2, 0.3, 1), 2, 2, LABELS),
    "one cluster": (Clusters(sides, 0.2, 0.3, 2), 2, 2, ONCE),
    "a pilot and a cluster": (Clusters(sides, None, 0.3, 1, pilot=0.5), 2, 2, ONCE),
    "peers": (Peers(sides, 1.0, 2), 2, 2, ONCE),
}


def account_and_ratio(plan, n, k, estimator, holder=ScriptedLabels, **options) -> tuple[Fraction, Fraction]:
    """The spent epsilon, and the largest log-ratio of all transcripts, which it must cover."""
    labels = PrivateLabels(np.arange(n) % k, EPSILON, range(k))

    def train(held) -> None:
        plan.train(Training(features(n), held, estimator, EPSILON, 0, labels.domain, **options))

    train(labels)
    script, found, more = Script(), Fraction(0), True
    while more:
        scripted = holder(n, k, script)
        train(scripted)
        found = max(found, scripted.largest)
        more = script.advance()
    assert found <= labels.spent.epsilon <= Fraction(EPSILON)
    return labels.spent.epsilon, found


@pytest.mark.parametrize("case", CASES)
def test_the_account_is_at_least_the_largest_log_ratio(case) -> None:
    plan, n, k, target = CASES[case]
    spent, found = account_and_ratio(plan, n, k, Shares(), target=target)
    # Nor is the account idle: some transcript distinguishes neighbours by nearly as much, except for clusters: the
    # shares of a few rows hide a label with a low share.
    idle = Fraction(1, 10**9) if case not in ("clusters of single rows", "one cluster") else spent / 2
    assert found > spent - idle


class ScriptedNumbers(ScriptedLabels):
    """Plays mechanisms by the integers of their tables."""

    def release(self, rows, randomizer, *, groups=None):
        assert groups is None
        weights = np.array(randomizer.weights, dtype=object)
        values = []
        for row in rows:
            output = self.script.choose(list(range(weights.shape[1])))
            values.append(randomizer.outputs[output])
            self._multiply(row, [Fraction(int(each[output]), int(each.sum())) for each in weights])
        return LabelRelease(np.array(rows), np.array(values), randomizer, self.domain, Spent())


PLANS = [
    (OnePrior(0.3), 1, 3, np.inf),
    (OnePrior(), 1, 2, 1.0),
    (PublicClusters(sides, 0.3, 1), 2, 2, 0.5),
    (TwoStages(smallest=1, groups=1), 2, 2, 2.0),
    (TwoStages(smallest=1, groups=2, group_share=0.4), 2, 2, 0.0),
    (RowPriors(smallest=1), 2, 2, 2.0),
    (RowPriors(0.34, levels=2, smallest=1), 3, 2, np.inf),
]


SOLVED: dict[Problem, Mechanism] = {}
"""Transcripts have few priors between them."""


def solved_once(problems: Iterable[Problem]) -> list[Mechanism]:
    return [
        SOLVED[problem] if problem in SOLVED else SOLVED.setdefault(problem, solve(problem)) for problem in problems
    ]


@pytest.mark.parametrize(("plan", "n", "k", "penalty"), PLANS, ids=named)
def test_the_account_of_numbers_is_the_largest_log_ratio(plan, n, k, penalty, monkeypatch) -> None:
    monkeypatch.setattr(_training, "solve_many", solved_once)
    spent, found = account_and_ratio(plan, n, k, DummyRegressor(), ScriptedNumbers, bias_penalty=penalty)
    assert found > spent - Fraction(1, 10**9)
