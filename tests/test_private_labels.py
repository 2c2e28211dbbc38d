"""The holder of private labels: an exact account, and no way around it."""

import contextlib
import copy
import os
import pickle
import subprocess
import sys
import threading
import traceback
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from asserting import assert_error, by_case
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import optrand
from optrand.baselines import Alibi, ClusterRR, DiscreteLaplace, Groups, Laplace, UnaryBits, UniformRR
from optrand.closed_forms import rr_with_prior_batch
from optrand.errors import DrawFailed, InvalidInput, MissingExtra, OverBudget
from optrand.learning import LabelDPClassifier, LabelRelease, PrivateLabels
from optrand.sampling._entropy import SeededEntropy

CLASSES = ["maybe", "no", "yes"]


def made(n: int = 12, epsilon: float | Fraction = 1.0, **options) -> PrivateLabels:
    return PrivateLabels(np.array(CLASSES)[np.arange(n) % 3], epsilon, CLASSES, source=SeededEntropy(1), **options)


def paid(labels: PrivateLabels) -> list[Fraction]:
    return [each.epsilon for each in labels.of_rows(np.arange(len(labels)))]


@given(st.lists(st.tuples(st.sets(st.integers(0, 5), min_size=1), st.sampled_from([0.1, 0.25, 0.7])), max_size=12))
def test_the_account_is_that_of_sums_done_by_hand(requests) -> None:
    labels, expected = made(6, 1.5), [Fraction(0)] * 6
    for rows, epsilon in requests:
        after = [expected[row] + Fraction(str(epsilon)) * (row in rows) for row in range(6)]
        if max(after) > Fraction(3, 2):
            assert_error(None, labels.release, sorted(rows), UniformRR(3, epsilon), error=OverBudget)
        else:
            labels.release(sorted(rows), UniformRR(3, epsilon))
            expected = after
    assert paid(labels) == expected


class Strange:
    """A randomizer that passes for one of ours, and fails on demand."""

    exact, k, epsilon = True, 3, 0.7

    def __init__(self, refusal: type[Exception] | None = None) -> None:
        self.refusal, self.calls = refusal, 0

    def sample(self, values, **_):
        self.calls += 1
        if self.refusal is not None:
            raise self.refusal(f"no output for {values.tolist()}")
        return np.zeros_like(values)


def test_what_is_over_budget_draws_nothing_and_what_fails_is_not_refunded() -> None:
    labels, counting = made(3), Strange()
    labels.release([0], counting)
    assert_error(None, labels.release, [0, 1], counting, error=OverBudget)
    assert counting.calls == 1
    assert_error(None, labels.release, [1], Strange(RuntimeError), error=DrawFailed)
    assert paid(labels) == [Fraction(7, 10), Fraction(7, 10), 0]


@pytest.mark.parametrize("refusal", [KeyError, InvalidInput])
def test_a_draw_that_fails_repeats_no_label(refusal) -> None:
    with pytest.raises((DrawFailed, InvalidInput)) as caught:
        made(3).release([0, 1, 2], Strange(refusal))
    frames = [frame.f_locals for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert not [name for names in frames for name in names if name in ("codes", "values") and "self" not in names]
    if refusal is KeyError:
        assert "ended in KeyError" in str(caught.value)
        assert "no output" not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__context__ is None


def test_a_seeded_source_is_said_to_protect_nobody() -> None:
    seeded, system = made(), PrivateLabels([0, 1], 1.0, [0, 1])
    assert (seeded.private, system.private) == (False, True)
    assert "nobody is protected" in repr(seeded[[0]])
    assert "nobody" not in repr(system)


def test_slices_share_one_account() -> None:
    labels = made(6)
    view = labels[2:][np.array([0, 3])]
    assert len(view) == 2
    assert view.shape == (2,)
    view.release([1], UniformRR(3, 1.0))
    assert [row for row, cost in enumerate(paid(labels)) if cost] == [5]
    with pytest.raises(OverBudget):
        labels[np.arange(6) == 5].release([0], UniformRR(3, 0.1))
    assert labels[:5].spent.epsilon == 0
    # And they release their own labels.
    labels = PrivateLabels([0, 1, 2, 1], 40.0, [0, 1, 2])
    release = labels[[3, 2]].release([1, 0], UniformRR(3, 40.0))
    assert (release.rows.tolist(), release.values.tolist()) == ([1, 0], [2, 1])


def test_threads_take_turns() -> None:
    labels, won = made(1, 1.0), []

    def ask() -> None:
        with contextlib.suppress(OverBudget):
            won.append(labels.release([0], UniformRR(3, 0.6)))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


def test_a_forked_account_is_none() -> None:
    labels = made(2)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            labels.release([0], UniformRR(3, 0.5))
            os.write(writing, b"released")
        except OverBudget:
            os.write(writing, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"refused"


@by_case(
    "look",
    copy.copy,
    copy.deepcopy,
    pickle.dumps,
    PrivateLabels.__getstate__,
    np.asarray,
    np.array,
    list,
    sorted,
    pd.Series,
    lambda x: [*x],
)
def test_labels_are_not_copied_nor_turned_into_arrays(look) -> None:
    assert_error("private labels cannot be", look, made())


@pytest.mark.parametrize("rows", [[0, 0], [12], [-1], [0.0], [[0]], "all", [True] * 3, 3])
def test_rows_are_distinct_places(rows) -> None:
    labels = made()
    assert_error(None, labels.release, rows, UniformRR(3, 1.0))
    with pytest.raises(InvalidInput):
        labels[rows]
    assert labels.spent.epsilon == 0


@pytest.mark.parametrize("strange", ["perhaps", None, float("nan"), 3, ["yes"]])
def test_strange_labels_are_refused_and_not_repeated(strange) -> None:
    given = np.array(["yes", "no", None], dtype=object)
    given[2] = strange
    with pytest.raises(InvalidInput, match="at least one label is missing or outside") as caught:
        PrivateLabels(given, 1.0, CLASSES)
    assert "perhaps" not in str(caught.value)


def test_strange_numbers_domains_and_budgets_are_refused() -> None:
    for strange in (0.5, 7, float("nan"), float("inf"), -1):
        assert_error(
            "at least one label is missing or outside", PrivateLabels, np.array([0, 1, strange]), 1.0, [2, 1, 0]
        )
    assert_error("labels is no array", PrivateLabels, ["yes", ["no", "yes"]], 1.0, CLASSES)
    for domain in (["a"], ["a", "a"], ["a", None], "ab", 3, [["a"], ["b"]], [0, float("nan")], []):
        assert_error(None, PrivateLabels, ["a", "a"], 1.0, domain)
    for options in ({"epsilon": 0}, {"epsilon": -1.0}, {"delta": 1.0}, {"delta": -0.1}):
        assert_error(None, made, **options)


def test_the_domain_is_the_declared_one_whatever_kind_the_labels_are() -> None:
    for kind in (["no", "yes"], pd.Series(["no", "yes"]), pd.Categorical(["no", "yes"], categories=["yes", "no", "x"])):
        labels = PrivateLabels(kind, 40.0, CLASSES)
        assert labels.domain.labels == tuple(CLASSES)
        assert labels.release([0, 1], UniformRR(3, 40.0)).values.tolist() == [1, 2]
    numbers = PrivateLabels(np.array([30, 10]), 40.0, [30, 20, 10])
    assert numbers.release([0, 1], UniformRR(3, 40.0)).values.tolist() == [0, 2]


def test_noise_in_floats_and_delta_need_leave_and_are_said() -> None:
    class WithDelta(UniformRR):
        delta = 1e-6

    assert_error("for real numbers only", made().release, [0], Alibi(3, 1.0))
    assert_error(None, made().release, [0], WithDelta(3, 1.0), error=OverBudget)
    labels = made(2, allow_inexact=True, delta=1e-6)
    assert not labels.release([0], Alibi(3, 1.0)).spent.exact
    assert "for real numbers only" in str(labels.spent)
    labels.release([1], WithDelta(3, 1.0))
    assert labels.spent.delta == Fraction(1, 10**6)


@by_case(
    "randomizer, domain",
    *[(each, CLASSES) for each in (UniformRR(4, 1.0), UnaryBits(2, 1.0), optrand.rr([5, 6, 7], 1.0), object())],
    *[(each, CLASSES) for each in (rr_with_prior_batch([[0.2, 0.3, 0.5]] * 2, 1.0), DiscreteLaplace([0, 2], 1.0))],
    # Additive noise wants labels within its range and on its lattice.
    *[(each, range(3)) for each in (Laplace([0, 1], 1.0), DiscreteLaplace([0, 2], 1.0, step=2.0))],
    ids=lambda each: type(each).__name__,
)
def test_randomizers_for_other_labels_are_refused_before_they_are_charged(randomizer, domain) -> None:
    labels = PrivateLabels(list(domain), 1.0, domain, allow_inexact=True)
    assert_error(None, labels.release, [0, 1, 2], randomizer)
    assert labels.spent.epsilon == 0


def test_mechanisms_take_the_numbers_of_the_domain_or_of_its_classes() -> None:
    mechanism = optrand.rr([10, 20], 40.0)
    assert PrivateLabels([20, 10], 40.0, [20, 10]).release([0, 1], mechanism).values.tolist() == [20.0, 10.0]
    classes = optrand.rr([0, 1, 2], 40.0)
    assert made(3, 40.0).release([0, 1, 2], classes).values.tolist() == [0.0, 1.0, 2.0]
    assert PrivateLabels([0, 1, 2], 2.0, [0, 1, 2]).release([0], DiscreteLaplace([0, 2], 1.0)).spent.exact


def test_the_threat_model_is_in_the_type() -> None:
    labels = made(12, 9.0)
    assert labels.release([0], UnaryBits(3, 1.0)).trust == "local"
    clusters = ClusterRR(3, threshold=0.1, noise_scale=4, resampling=0.9)
    groups = Groups.of_ids([0] * 6 + [1] * 6)
    release = labels.release(slice(None), clusters, groups=groups)
    assert (release.trust, release.spent.epsilon) == ("central", clusters.exact_epsilon)
    assert labels.prior([3], CLASSES, 0.5).trust == "central"
    assert_error("groups=", labels.release, slice(None), clusters)


def test_a_prior_counts_the_labels_in_the_order_asked_for() -> None:
    labels = PrivateLabels([2] * 3000 + [0] * 1000, 2.0, [0, 1, 2], source=SeededEntropy(3))
    prior = labels.prior(slice(None), [2, 1, 0], 1.0)
    assert np.abs(np.array(prior.counts) - [3000, 0, 1000]).max() < 30
    coarse = labels.prior(slice(None), [2, 1, 0], 1.0, bins=[1, 0, 0])
    assert np.abs(np.array(coarse.counts) - [1000, 3000]).max() < 30
    assert (prior.probabilities > 0).all()
    for shares in (prior.probabilities, prior.projected, prior.clipped.probabilities):
        assert shares.sum() == pytest.approx(1.0, abs=1e-12)
    for wrong in ([0, 2], [0, 1], [0, 0, -1]):
        assert_error(None, labels.prior, [0], [0, 1, 2], 1.0, bins=wrong)
    assert_error(None, labels.prior, [0], [0, 1], 1.0)


def test_a_release_holds_no_reference_to_the_labels() -> None:
    release = made().release([0, 1, 2], UnaryBits(3, 1.0))
    again = pickle.loads(pickle.dumps(release))  # noqa: S301
    assert isinstance(again, LabelRelease)
    assert (again.likelihood == release.likelihood).all()


class OneRelease(ClassifierMixin, BaseEstimator):
    """Spends one epsilon on each row that it is fitted on."""

    def fit(self, _, y):
        self.release_ = y.release(slice(None), UniformRR(3, 1.0))
        return self


def nothing(*_) -> float:
    return 0.0


X = np.arange(24.0).reshape(12, 2)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_second_fold_raises(jobs) -> None:
    labels, estimator = made(), LabelDPClassifier(DummyClassifier(), 1.0)
    # In one process the account refuses. To another the labels do not travel.
    with pytest.raises((OverBudget, InvalidInput, pickle.PicklingError)) as caught:
        cross_val_score(estimator, X, labels, cv=KFold(3), scoring=nothing, error_score="raise", n_jobs=jobs)
    chain = f"{caught.value} {caught.value.__cause__}"
    assert ("over the budget" in chain) if jobs == 1 else ("private labels cannot be pickled" in chain)
    # The first fold of one process has trained on two thirds of the rows. No copy of the account has.
    assert sum(paid(labels)) == (8 if jobs == 1 else 0)


def test_folds_that_train_on_disjoint_rows_are_parallel_and_splitters_must_not_look() -> None:
    labels = made()
    cross_val_score(OneRelease(), X, labels, cv=KFold(2), scoring=nothing, error_score="raise")
    assert paid(labels) == [1] * 12
    for cv in (StratifiedKFold(2), 2):
        with pytest.raises(InvalidInput, match="must not look at labels"):
            cross_val_score(OneRelease(), X, made(), cv=cv, scoring=nothing, error_score="raise")


def test_labels_pass_through_splits_and_pipelines() -> None:
    labels = made(12, 8.0)
    train, test, left, right = train_test_split(X, labels, random_state=0)
    assert len(left) == len(train) == 9
    assert len(right) == len(test) == 3
    pipeline = make_pipeline(StandardScaler(), LabelDPClassifier(LogisticRegression(), 8.0))
    assert set(pipeline.fit(train, left).predict(test)) <= set(CLASSES)
    assert right.spent.epsilon == 0
    assert left.spent.epsilon == 8
    assert_error("would leak", pipeline.score, test, right)


def test_without_scikit_learn_the_package_says_what_is_missing() -> None:
    script = """
import sys
sys.modules["sklearn"] = None
import optrand
try:
    optrand.learning
except optrand.errors.MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "optrand.learning needs scikit-learn: pip install 'optrand[learning]'\n"
    assert issubclass(MissingExtra, ImportError)
