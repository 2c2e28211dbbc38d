"""The classifier on private labels: what it learns, what it refuses before the draw, and scikit-learn's rules."""

from __future__ import annotations

import copy
import gc
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.multiclass import check_classification_targets

from optrand.baselines import Groups
from optrand.closed_forms import rr_with_prior_batch
from optrand.errors import InvalidInput, OverBudget
from optrand.learning import (
    Alibi,
    BinaryBits,
    Bits,
    Clusters,
    Debiased,
    DomainPrior,
    LabelDPClassifier,
    Likelihood,
    NearestNeighbour,
    NoisyLabels,
    Peers,
    PrivateLabels,
    SoftLabels,
    Stages,
)
from optrand.learning.cluster_plans import heterogeneity
from optrand.learning.likelihood import posterior
from optrand.learning.plans import at_least_two, pooled, selected, tempered
from optrand.sampling.entropy import SeededEntropy

CLASSES = ["red", "green", "blue"]
CENTRES = [[0, 0], [4, 0], [0, 4]]


def blobs(n: int = 600, seed: int = 0):
    X, y = make_blobs(n, centers=CENTRES, cluster_std=1.0, random_state=seed)
    return X, np.array(CLASSES)[y]


def holder(y, epsilon: float = 2.0, **options) -> PrivateLabels:
    return PrivateLabels(y, epsilon, CLASSES, source=SeededEntropy(4), **options)


def model(plan=None, target="likelihood", *, epsilon=2.0, estimator=None, **options) -> LabelDPClassifier:
    chosen = LogisticRegression(max_iter=1000) if estimator is None else estimator
    return LabelDPClassifier(chosen, epsilon, CLASSES, plan, target, random_state=0, **options)


# ---------------------------------------------------------------------------------------------------------- what learns


LEARNERS = [
    (Stages(1), "likelihood"),
    (Stages(1), "labels"),
    (Stages(1), "debiased"),
    (Stages(1), "soft"),
    (Stages(2), Likelihood(rounds=3)),
    (Stages(2, temperature=0.5, top_k_filter=True), "labels"),
    (Stages(2, reuse=False), "likelihood"),
    (Stages(3, domain_prior=DomainPrior(3, share=0.1)), "likelihood"),
    (DomainPrior(3, share=0.1), "likelihood"),
    (Bits(), "likelihood"),
    (Bits(), "bits"),
    (Bits(), "debiased"),
    (NearestNeighbour(60), "likelihood"),
    (Alibi(), "likelihood"),
    (Alibi(), "soft"),
    (Alibi(4), "debiased"),
    (Clusters(3, heterogeneity=0.1), "likelihood"),
    (Clusters(3, heterogeneity=0.1, share=0.05), "debiased"),
]


@pytest.mark.parametrize(("plan", "target"), LEARNERS, ids=str)
def test_every_plan_learns_within_its_budget(plan, target) -> None:
    X, y = blobs()
    labels = holder(y)
    fitted = model(plan, target).fit(X, labels)
    assert (fitted.predict(X) == y).mean() > 0.9
    assert fitted.classes_.tolist() == CLASSES
    shares = fitted.predict_proba(X)
    assert shares.shape == (600, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert fitted.epsilon_ <= 2.0
    assert fitted.spent_ == labels.spent
    assert fitted.spent_.exact
    rows = np.concatenate([release.rows for release in fitted.releases_])
    assert np.sort(rows).tolist() == list(range(600))
    assert all(spent.epsilon <= 2 for spent in labels.of_rows(np.arange(600)))


def test_alibi_in_floats_needs_leave() -> None:
    X, y = blobs(60)
    with pytest.raises(InvalidInput, match="allow_inexact"):
        model(Alibi(steps=None)).fit(X, holder(y))
    fitted = model(Alibi(steps=None)).fit(X, holder(y, allow_inexact=True))
    assert not fitted.spent_.exact


def test_certificates_prove_the_randomizer_of_every_row() -> None:
    X, y = blobs(60)
    fitted = model(Stages(2)).fit(X, holder(y))
    assert [len(each) for each in fitted.certificates_] == [36, 24]
    for certificates in fitted.certificates_:
        assert certificates[-1].require(gap=1e-9).epsilon <= 2.0
    assert len(list(fitted.certificates_[0])) == 36
    assert model(Bits()).fit(X, holder(y)).certificates_ == []


def test_the_likelihood_climbs_and_its_maximum_is_found() -> None:
    """Shares of labels alone: at the maximum of the likelihood, its gradient is the same for all labels."""
    y = np.array(CLASSES)[np.random.default_rng(1).choice(3, 1000, p=[0.7, 0.2, 0.1])]
    X = np.zeros((1000, 1))
    shares_of = DummyClassifier(strategy="prior")
    fitted = model(Bits(), Likelihood(rounds=100, smallest=0.0), estimator=shares_of, epsilon=1.5).fit(X, holder(y))
    shares, table = fitted.predict_proba(X[:1])[0], fitted.releases_[0].likelihood
    gradient = (table / (table @ shares)[:, np.newaxis]).mean(axis=0)
    assert gradient == pytest.approx(np.ones(3), abs=1e-4)
    best = np.log(table @ shares).sum()
    for other in (np.full(3, 1 / 3), np.array([0.6, 0.2, 0.2]), np.array([0.8, 0.1, 0.1])):
        assert best > np.log(table @ other).sum()


def test_an_estimator_with_a_likelihood_of_its_own_is_given_the_table() -> None:
    class Own(ClassifierMixin, BaseEstimator):
        def fit_likelihood(self, X, table):
            assert table.shape == (len(X), 3)
            self.classes_, self.shares_ = np.arange(3), table.mean(axis=0) / table.mean(axis=0).sum()
            return self

        def predict_proba(self, X):
            return np.tile(self.shares_, (len(X), 1))

    X, y = blobs(150)
    assert model(estimator=Own()).fit(X, holder(y)).predict_proba(X[:2]).shape == (2, 3)
    # Priors of clusters are no part of the table.
    labels = holder(y)
    for plan in (DomainPrior(3), Clusters(3), Stages(2, domain_prior=DomainPrior(3))):
        with pytest.raises(InvalidInput, match="no fit"):
            model(plan, estimator=Own()).fit(X, labels)
    assert labels.spent.epsilon == 0


@pytest.mark.parametrize("plan", [DomainPrior(3, 0.5), Clusters(3), Stages(2, domain_prior=DomainPrior(3, 0.5))])
def test_what_priors_of_clusters_have_cost_is_not_forgotten(plan) -> None:
    class Own(LogisticRegression):
        def fit_likelihood(self, X, table):
            raise NotImplementedError

    X, y = blobs()
    fitted = model(plan, estimator=Own(), epsilon=0.25).fit(X, holder(y, 0.25))
    # Randomized response at epsilon 1/8 is right for 36 percent.
    assert (fitted.predict(X) == y).mean() > 0.9


# -------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("made", "match"),
    [
        (model(estimator=KNeighborsClassifier()), "takes no sample_weight"),
        (model(estimator=Perceptron()), "no predict_proba"),
        (model(estimator=object()), "no fit"),
        (model(Bits(), "labels"), "releases vectors"),
        (model(target="best"), "expected one of"),
        (model(target=3), "expected a name"),
        (model(epsilon=0.0), "epsilon"),
        (model(Stages(3, split=(0.98, 0.01, 0.01))), "would have none"),
        (model(DomainPrior(smallest=100)), "fewer than smallest"),
        (model(Clusters(smallest=100)), "fewer than smallest"),
        (model(Stages(2, domain_prior=DomainPrior(2))), "fewer than smallest"),
        (model(NearestNeighbour(100)), "neighbours"),
        (LabelDPClassifier(LogisticRegression(), 1.0, CLASSES[::-1]), "declared classes in their order"),
        (LabelDPClassifier(LogisticRegression(), 1.0, ["red"]), "at least two"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_drawn(made, match) -> None:
    X, y = blobs(40)
    labels = holder(y)
    with pytest.raises(InvalidInput, match=match):
        made.fit(X, labels)
    assert labels.spent.epsilon == 0


def test_nan_is_the_estimators_own_error_and_costs_nothing() -> None:
    X, y = blobs(40)
    X[7, 1] = np.nan
    labels = holder(y)
    with pytest.raises(ValueError, match="contains NaN"):
        model().fit(X, labels)
    assert labels.spent.epsilon == 0
    boosted = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5)
    assert model(estimator=boosted).fit(X, labels).predict(X).shape == (40,)


def test_a_row_that_cannot_pay_stops_the_whole_plan() -> None:
    X, y = blobs(40)
    labels = holder(y, 2.0)
    labels[[39]].prior([0], CLASSES, 0.5)
    with pytest.raises(OverBudget):
        model(Stages(2)).fit(X, labels)
    assert labels[:39].spent.epsilon == 0
    assert model(Stages(2), epsilon=1.5).fit(X, labels).spent_.epsilon == 2


def test_epsilon_beyond_the_budget() -> None:
    X, y = blobs(40)
    with pytest.raises(OverBudget):
        model(epsilon=2.5).fit(X, holder(y, 2.0))


def test_rows_and_labels_must_agree() -> None:
    X, y = blobs(40)
    for labels, message in ((holder(y)[:39], "samples"), (None, "are None")):
        with pytest.raises(InvalidInput, match=message):
            model().fit(X, labels)


@pytest.mark.parametrize(
    "record",
    [
        lambda: Stages(0),
        lambda: Stages(2, split=(0.5, 0.6)),
        lambda: Stages(2, split=(1.0,)),
        lambda: Stages(2, temperature=0.0),
        lambda: Stages(2, least=3),
        lambda: DomainPrior(share=1.0),
        lambda: DomainPrior(0),
        lambda: Clusters(heterogeneity=0.0),
        lambda: NearestNeighbour(0),
        lambda: Alibi(0),
        lambda: Likelihood(rounds=0),
        lambda: Likelihood(smallest=0.7),
    ],
)
def test_records_without_meaning(record) -> None:
    with pytest.raises(InvalidInput):
        record()


# -------------------------------------------------------------------------------------------------------------- one fit


def test_plain_labels_need_one_fit_and_have_one() -> None:
    X, y = blobs(60)
    with pytest.raises(InvalidInput, match="one_fit=True"):
        model().fit(X, y)
    once = model(one_fit=True)
    other = clone(once)
    assert once.fit(X, y).epsilon_ == 2.0
    for again in (once, other, clone(once), clone(other)):
        with pytest.raises(OverBudget, match="one_fit"):
            again.fit(X, y)
    with pytest.raises(OverBudget):
        pickle.loads(pickle.dumps(once)).fit(X, y)  # noqa: S301
    with pytest.raises(InvalidInput, match="one_fit"):
        pickle.dumps(model(one_fit=True))


def test_a_search_cannot_give_every_clone_a_permission() -> None:
    X, y = blobs(60)
    for base in (model(), copy.copy(model()), pickle.loads(pickle.dumps(model()))):  # noqa: S301
        search = GridSearchCV(base, {"one_fit": [True]}, cv=KFold(2), error_score="raise", refit=False)
        with pytest.raises(OverBudget, match="one_fit=True"):
            search.fit(X, y)


def test_threads_that_fit_one_estimator_have_one_permission_and_forks_have_none() -> None:
    X, y = blobs(60)
    once = model(one_fit=True)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: once._permission(), range(40)))
    assert len(set(map(id, found))) == 1
    child = os.fork()
    if child == 0:
        try:
            once.fit(X, y)
        except OverBudget:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert once.fit(X, y).epsilon_ == 2.0


@pytest.mark.parametrize("jobs", [1, 2])
def test_cross_validation_of_plain_labels_raises(jobs) -> None:
    X, y = blobs(60)
    with pytest.raises((OverBudget, InvalidInput, pickle.PicklingError)) as caught:
        cross_val_score(model(one_fit=True), X, y, cv=KFold(2), error_score="raise", n_jobs=jobs)
    assert "one_fit=True" in f"{caught.value} {caught.value.__cause__}"


# --------------------------------------------------------------------------------------------------------- scikit-learn


def test_a_fitted_estimator_holds_no_reference_to_the_labels() -> None:
    X, y = blobs(60)
    labels = holder(y)
    fitted = model(Stages(2, domain_prior=DomainPrior(1, smallest=5))).fit(X, labels)
    seen, open_ = set(), [fitted]
    while open_:
        one = open_.pop()
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        assert one is not labels
        assert not isinstance(one, PrivateLabels)
        if (not callable(one) and type(one).__module__ != "builtins") or isinstance(one, dict | list | tuple):
            open_ += gc.get_referents(one)
    copy = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    assert (copy.predict(X) == fitted.predict(X)).all()
    once = model(one_fit=True).fit(X, y)
    assert not any(isinstance(value, PrivateLabels) for value in vars(once).values())


def test_frames_and_names_of_features() -> None:
    X, y = blobs(60)
    frame = pd.DataFrame(X, columns=["left", "right"])
    fitted = model(Stages(2)).fit(frame, holder(y))
    assert fitted.feature_names_in_.tolist() == ["left", "right"]
    assert fitted.score(frame, y) > 0.5


def test_parameters_survive_clones() -> None:
    made = model(Stages(2), NoisyLabels())
    again = clone(made)
    assert again.get_params()["plan"] == Stages(2)
    assert again.get_params()["target"] == NoisyLabels()
    assert again.set_params(estimator__C=3.0).estimator.C == 3.0


class Fresh(LabelDPClassifier):
    """The classifier with a new holder for each fit, so that scikit-learn's checks can fit it on plain labels."""

    estimator, epsilon, plan, target, one_fit = GaussianNB(), 60.0, None, Likelihood(rounds=1), False
    _classes = (0, 1)

    def __init__(self, random_state=None):
        self.random_state = random_state

    @property
    def classes(self):
        return self._classes

    def fit(self, X, y):
        if y is None:
            return super().fit(X, y)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        self._classes = np.unique(y)
        return super().fit(X, PrivateLabels(y, 60.0, self._classes, source=SeededEntropy(1)))


def test_scikit_learns_checks() -> None:
    results = check_estimator(Fresh(), on_skip=None, on_fail=None)
    failed = {each["check_name"]: repr(each["exception"])[:200] for each in results if each["status"] == "failed"}
    assert failed == {}
    assert sum(each["status"] == "passed" for each in results) > 40


# ------------------------------------------------------------------------------------------------------- parts of plans


def test_a_second_label_is_kept_where_it_would_be_dropped() -> None:
    rng = np.random.default_rng(0)
    priors = rng.dirichlet([0.05] * 6, size=300)
    priors[0] = [1, 0, 0, 0, 0, 0]
    for epsilon in (0.1, 1.0, 4.0):
        before, after = (rr_with_prior_batch(p, epsilon) for p in (priors, at_least_two(priors, epsilon)))
        assert (before.k_star == 1).any()
        assert (after.k_star == np.maximum(before.k_star, 2)).all()


def test_temperatures() -> None:
    beliefs = np.array([[0.8, 0.2, 0.0], [1e-200, 0.0, 1.0]])
    np.testing.assert_allclose(tempered(beliefs, 1.0), [[0.8, 0.2, 0.0], [0.0, 0.0, 1.0]], atol=1e-15)
    np.testing.assert_allclose(tempered(beliefs, 0.5)[0], [16 / 17, 1 / 17, 0])
    rr_with_prior_batch(tempered(beliefs, 0.6), 1.0)


def test_small_groups_are_pooled_by_their_sizes() -> None:
    groups = Groups.of_ids([0] * 9 + [1] * 2 + [2] * 8 + [3] * 3)
    assert sorted(pooled(groups, 5).sizes.tolist()) == [5, 8, 9]
    assert sorted(pooled(groups, 6).sizes.tolist()) == [9, 13]
    assert pooled(groups, 2) is groups
    assert pooled(Groups.of_ids([0, 1]), 5).sizes.tolist() == [2]


def test_a_filter_selects_rows_of_a_release() -> None:
    labels = holder(np.array(CLASSES))
    release = labels.release(slice(None), rr_with_prior_batch([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]], 1.0))
    part = selected(release, np.array([True, False, True]))
    assert part.rows.tolist() == [0, 2]
    assert (part.likelihood == release.likelihood[[0, 2]]).all()
    assert len(selected(release, np.zeros(3, dtype=bool))) == 0


def test_posteriors() -> None:
    np.testing.assert_allclose(posterior(np.array([[1.0, 0.25]]), np.array([[0.2, 0.8]])), [[0.5, 0.5]])
    assert Fraction(posterior(np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]]))[0, 1]) == 1


def test_targets_are_records() -> None:
    assert len({Likelihood(), NoisyLabels(), Debiased(), SoftLabels(), BinaryBits()}) == 5
    X, y = blobs(60)
    with pytest.raises(InvalidInput, match="need bits"):
        model(Alibi(), "bits").fit(X, holder(y))


# -------------------------------------------------------------------------------------------------- clusters and peers


def two(n: int = 400):
    X, y = make_blobs(n, centers=[[0, 0], [4, 0]], cluster_std=1.0, random_state=1)
    return X, np.array(["no", "yes"])[y]


@pytest.mark.parametrize("target", ["likelihood", "labels", "debiased"])
def test_peers_learn_and_every_row_pays_for_its_flip(target) -> None:
    X, y = two()
    labels = PrivateLabels(y, 2.0, ["no", "yes"], source=SeededEntropy(2))
    plan = Peers(2, rate=0.5)
    fitted = LabelDPClassifier(LogisticRegression(), 2.0, ["no", "yes"], plan, target, random_state=0).fit(X, labels)
    assert (fitted.predict(X) == y).mean() > 0.9
    (release,) = fitted.releases_
    assert 100 < len(release) < 300
    assert release.trust == "local"
    paid = {spent.epsilon for spent in labels.of_rows(np.arange(400))}
    assert paid == {Fraction(plan.mechanism(2.0).epsilon)}
    assert max(paid) <= 2


def test_the_learner_sees_less_of_peers_than_is_paid() -> None:
    labels = PrivateLabels([0, 1] * 15, 2.0, [0, 1], source=SeededEntropy(2))
    groups, mechanism = Groups.of_ids([0] * 10 + [1] * 20), Peers(2, rate=0.5).mechanism(2.0)
    release = labels.release(slice(None), mechanism, groups=groups)
    small, large = (mechanism.at_delta(1e-4, size).epsilon for size in (10, 20))
    assert large < small == release.towards_learner(1e-4).epsilon < mechanism.epsilon
    assert labels.spent.delta == 0


def test_peers_have_two_classes() -> None:
    X, y = blobs(60)
    labels = holder(y)
    with pytest.raises(InvalidInput, match="2 classes, not of 3"):
        model(Peers()).fit(X, labels)
    assert labels.spent.epsilon == 0


def test_heterogeneity_is_measured_by_a_pilot_that_pays_for_it() -> None:
    X, y = blobs()
    labels = holder(y)
    fitted = model(Clusters(3, heterogeneity=None)).fit(X, labels)
    pilot, rest = fitted.releases_
    assert (len(pilot), len(rest)) == (120, 480)
    assert not set(pilot.rows) & set(rest.rows)
    assert 0.03 < rest.randomizer.mechanism.threshold <= Fraction(1, 3)
    assert [spent.epsilon for spent in labels.of_rows(pilot.rows[:2])] == [2, 2]
    assert (fitted.predict(X) == y).mean() > 0.9
    assert heterogeneity(np.eye(2)[[0, 0, 1, 1]], Groups.of_ids([0, 0, 1, 1])) == 0
    assert heterogeneity(np.eye(2)[[0, 1, 0, 1]], Groups.of_ids([0, 0, 1, 1])) == 1


def test_clusters_of_other_rows_are_refused() -> None:
    X, y = blobs(60)
    labels = holder(y)
    for plan in (DomainPrior(lambda _: [0] * 59), Clusters(lambda _: [0] * 61, 0.1)):
        with pytest.raises(InvalidInput, match="expected one a row"):
            model(plan).fit(X, labels)
    assert labels.spent.epsilon == 0


def test_a_prior_that_is_sure_of_a_label_keeps_a_second_one() -> None:
    """With one label kept nothing is released of the rows; the priors still say what each cluster holds."""
    X, y = blobs()
    asked = model(DomainPrior(3, share=0.1)).fit(X, holder(y)).releases_[0].randomizer
    assert asked.k_star.min() == 2
    lone = model(DomainPrior(3, share=0.1, least=1)).fit(X, holder(y))
    assert lone.releases_[0].randomizer.k_star.max() == 1
    assert (lone.predict(X) == y).mean() > 0.9


def test_features_that_neighbours_cannot_use_cost_nothing() -> None:
    X, y = blobs(60)
    X[3, 0] = np.nan
    labels = holder(y)
    with pytest.raises(ValueError, match="NaN"):
        model(NearestNeighbour(5)).fit(X, labels)
    assert labels.spent.epsilon == 0


def test_estimators_that_refuse_negative_weights_do_so_before_the_draw() -> None:
    class NoNegative(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if sample_weight is not None and (sample_weight < 0).any():
                raise ValueError("negative weights")
            return super().fit(X, y, sample_weight)

    X, y = blobs(60)
    labels = holder(y)
    with pytest.raises(ValueError, match="negative weights"):
        model(target="debiased", estimator=NoNegative()).fit(X, labels)
    assert labels.spent.epsilon == 0
    assert model(estimator=NoNegative()).fit(X, labels).epsilon_ == 2.0


def test_warm_starts_go_on_with_the_model_before() -> None:
    class Counting(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            self.fits_ = getattr(self, "fits_", 0) + 1
            return super().fit(X, y, sample_weight)

    X, y = blobs(120)
    for warm, fits in ((True, 6), (False, 1)):
        estimator = Counting(max_iter=1000, warm_start=warm)
        fitted = model(Stages(2), Likelihood(rounds=3), estimator=estimator).fit(X, holder(y))
        assert fitted.estimator_.fits_ == fits


def test_no_label_is_left_out_at_a_small_epsilon() -> None:
    X, y = make_blobs(500, centers=5 * np.eye(5), cluster_std=1.0, random_state=2)
    labels = PrivateLabels(y, 0.7, range(5), source=SeededEntropy(2))
    made = LabelDPClassifier(LogisticRegression(C=0.1), 0.7, range(5), random_state=0).fit(X, labels)
    assert made.estimator_.classes_.tolist() == [0, 1, 2, 3, 4]
    assert (made.predict(X) == y).mean() > 0.75
