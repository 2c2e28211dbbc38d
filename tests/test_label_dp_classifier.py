"""The classifier on private labels: its models, its refusals before the draw, and scikit-learn's rules."""

import gc
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from asserting import assert_error, by_case
from examples_to_learn import CLASSES, blobs
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.metrics import get_scorer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn_checks import DECLARED, check_as_users_get_it

from optrand.baselines import Groups
from optrand.closed_forms import RRWithPriorBatch, rr_with_prior_batch
from optrand.errors import InvalidInput, OverBudget
from optrand.learning import (
    Alibi,
    Bits,
    Clusters,
    DomainPrior,
    LabelDPClassifier,
    Likelihood,
    NearestNeighbour,
    NoisyLabels,
    OnePrior,
    Peers,
    PrivateLabels,
    PublicClusters,
    SoftLabels,
    Stages,
    TwoStages,
)
from optrand.learning._cluster_plans import heterogeneity
from optrand.learning._plans import keep_two_labels, pool_small_groups, select_likeliest, temper
from optrand.learning._targets import posterior
from optrand.sampling._entropy import SeededEntropy


def holder(y, epsilon: float = 2.0, **options) -> PrivateLabels:
    return PrivateLabels(y, epsilon, CLASSES, source=SeededEntropy(4), **options)


def model(plan=None, target="likelihood", *, epsilon=2.0, estimator=None, **options) -> LabelDPClassifier:
    chosen = LogisticRegression(max_iter=1000) if estimator is None else estimator
    return LabelDPClassifier(chosen, epsilon, plan, target, random_state=0, **options)


LEARNERS = [
    (Stages(1), "labels"),
    (Stages(1), SoftLabels()),
    (Stages(2, temperature=0.5, top_k_filter=True), "debiased"),
    (Stages(3, reuse=False, domain_prior=DomainPrior(3, share=0.1)), Likelihood(rounds=2)),
    (DomainPrior(3, share=0.1), "likelihood"),
    (Bits(), "bits"),
    (Bits(), "debiased"),
    (NearestNeighbour(60), "likelihood"),
    (Alibi(4), "likelihood"),
    (Clusters(3, heterogeneity=0.1, share=0.05), "debiased"),
]


@pytest.mark.parametrize(("plan", "target"), LEARNERS, ids=str)
def test_every_plan_learns_within_its_budget(plan, target) -> None:
    X, y = blobs()
    labels = holder(y)
    fitted = model(plan, target).fit(X, labels)
    assert (fitted.predict(X) == y).mean() > 0.9
    assert fitted.classes_.tolist() == sorted(CLASSES)
    shares = fitted.predict_proba(X)
    assert shares.shape == (600, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert fitted.epsilon_ <= 2.0
    assert fitted.spent_ == labels.spent
    assert fitted.spent_.exact
    rows = np.concatenate([release.rows for release in fitted.releases_])
    assert np.sort(rows).tolist() == list(range(600))
    assert all(spent.epsilon <= 2 for spent in labels.of_rows(np.arange(600)))
    for release in fitted.releases_:
        if isinstance(release.randomizer, RRWithPriorBatch):
            assert release.randomizer[len(release) - 1].certificate.require(gap=1e-9).epsilon <= 2.0


def test_the_likelihood_climbs_and_its_maximum_is_found() -> None:
    """Shares of labels alone: at the maximum of the likelihood, its gradient is the same for all labels."""
    y = np.array(CLASSES)[np.random.default_rng(1).choice(3, 1000, p=[0.7, 0.2, 0.1])]
    X = np.zeros((1000, 1))
    shares_of = DummyClassifier(strategy="prior")
    fitted = model(Bits(), Likelihood(rounds=100, smallest=0.0), estimator=shares_of, epsilon=1.5).fit(X, holder(y))
    # Likelihoods are in the declared order of the classes, probabilities in the sorted one.
    declared = np.searchsorted(fitted.classes_, CLASSES)
    shares, table = fitted.predict_proba(X[:1])[0][declared], fitted.releases_[0].likelihood
    gradient = (table / (table @ shares)[:, np.newaxis]).mean(axis=0)
    assert gradient == pytest.approx(np.ones(3), abs=1e-4)
    best = np.log(table @ shares).sum()
    for other in (np.full(3, 1 / 3), np.array([0.6, 0.2, 0.2]), np.array([0.8, 0.1, 0.1])):
        assert best > np.log(table @ other).sum()


class Own(ClassifierMixin, BaseEstimator):
    """Learns from the table of likelihoods itself."""

    def fit_likelihood(self, X, table):
        assert table.shape == (len(X), 3)
        self.classes_, self.shares_ = np.arange(3), table.mean(axis=0) / table.mean(axis=0).sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


def test_an_estimator_with_a_likelihood_of_its_own_is_given_the_table() -> None:
    X, y = blobs(150)
    assert model(estimator=Own()).fit(X, holder(y)).predict_proba(X[:2]).shape == (2, 3)


@pytest.mark.parametrize("plan", [DomainPrior(3, 0.5), Clusters(3)])
def test_what_priors_of_clusters_have_cost_is_not_forgotten(plan) -> None:
    """They are no part of the table."""

    class Both(LogisticRegression):
        def fit_likelihood(self, X, table):
            raise NotImplementedError

    X, y = blobs()
    fitted = model(plan, estimator=Both(), epsilon=0.25).fit(X, holder(y, 0.25))
    # Randomized response at epsilon 1/8 is right for 36 percent.
    assert (fitted.predict(X) == y).mean() > 0.9


class NoNegative(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        if sample_weight is not None and (sample_weight < 0).any():
            raise ValueError("negative weights")
        return super().fit(X, y, sample_weight)


def gap(row: int, kind=np.asarray):
    """Makes one cell of the features missing."""
    return lambda X: kind(np.where((np.arange(len(X)) == row)[:, np.newaxis], np.nan, X))


@by_case(
    "made, features, match",
    (model(estimator=KNeighborsClassifier()), None, "takes no sample_weight"),
    (model(estimator=Perceptron()), None, "no predict_proba"),
    (model(estimator=object()), None, "no fit"),
    (model(DomainPrior(3), estimator=Own()), None, "no fit"),
    (model(Stages(2, domain_prior=DomainPrior(3, smallest=5)), estimator=Own()), None, "no fit"),
    (model(target="debiased", estimator=NoNegative()), None, "negative weights"),
    (model(Bits(), "labels"), None, "releases vectors"),
    (model(Alibi(), "bits"), None, "need bits"),
    (model(Alibi(steps=None)), None, "allow_inexact"),
    (model(target="best"), None, "expected one of"),
    (model(target=3), None, "target is of type int, .* or a Target"),
    (model(epsilon=0.0), None, "epsilon"),
    (model(Stages(3, split=(0.99, 0.005, 0.005))), None, "would have none"),
    (model(DomainPrior(smallest=100)), None, "fewer than smallest"),
    (model(Clusters(smallest=100)), None, "fewer than smallest"),
    (model(DomainPrior(lambda _: [0] * 59)), None, "expected one per row"),
    (model(Clusters(lambda _: [0] * 61, 0.1)), None, "expected one per row"),
    (model(NearestNeighbour(100)), None, "neighbours"),
    (model(Peers()), None, "2 classes, not of 3"),
    (model().set_params(random_state="0"), None, "random_state"),
    (model(epsilon=None), None, "epsilon is None"),
    (model(epsilon=2.5), None, "over the budget"),
    (model(), gap(7), "contains NaN"),
    (model(NearestNeighbour(5)), gap(7), "NaN"),
    *((model(), gap(1050, kind), "NaN") for kind in (np.asarray, np.ndarray.tolist, csr_array, pd.DataFrame)),
    *((model(plan), None, r"Stages\(2\)$") for plan in (OnePrior(), TwoStages(), PublicClusters(), 2, Stages)),
)
def test_what_cannot_work_is_refused_before_anything_is_drawn(made, features, match) -> None:
    # Only the gaps are looked for beyond the thousand rows that an estimator is tried on.
    X, y = blobs(60 if features is None else 1100)
    labels = holder(y)
    assert_error(match, made.fit, X if features is None else features(X), labels, error=(OverBudget, ValueError))
    assert labels.spent.epsilon == 0


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_plain_labels_are_fitted_with_declared_ones_and_pay_each_time(kind) -> None:
    X, y = blobs(60)
    made = model(epsilon=20.0, labels=CLASSES)
    for _ in range(2):
        assert made.fit(X, kind(y)).epsilon_ == 20.0
        assert len(made.releases_) == 1
        assert (made.predict(X) == y).mean() > 0.9
    assert not any(isinstance(value, PrivateLabels) for value in vars(made).values())
    copy = pickle.loads(pickle.dumps(made))  # noqa: S301
    assert (clone(copy).fit(X, kind(y)).predict(X) == y).mean() > 0.9


def test_labels_of_other_rows_or_not_declared_are_refused_and_not_repeated() -> None:
    X, y = blobs(60)
    masked = np.ma.masked_array(np.arange(60) % 3, np.arange(60) == 7)
    for made, labels, message in (
        (model(), holder(y)[:59], "60 samples and y 59"),
        (model(), None, "is None"),
        (model(), y, "expected PrivateLabels"),
        (model(labels=CLASSES[:2]), y, "outside the 2 declared"),
        (model(labels=CLASSES), y[:59], "60 samples and y 59"),
        (model(labels=range(3)), masked, "mask"),
        (model(labels=CLASSES[:1]), y, "at least two"),
        (model(labels=CLASSES[::-1]), holder(y), "another order"),
        (model(labels=CLASSES, epsilon=None), y, "epsilon is None"),
    ):
        with pytest.raises(InvalidInput, match=message) as caught:
            made.fit(X, labels)
        assert not set(CLASSES) & set(str(caught.value).split())
        assert not hasattr(made, "releases_")


def test_what_only_one_estimator_minds_another_takes() -> None:
    X, y = blobs(40)
    assert model(estimator=NoNegative()).fit(X, holder(y)).epsilon_ == 2.0
    assert not model(Alibi(steps=None)).fit(X, holder(y, allow_inexact=True)).spent_.exact
    X[7, 1] = np.nan
    assert model(estimator=DecisionTreeClassifier(max_depth=3)).fit(X, holder(y)).predict(X).shape == (40,)


def test_a_row_that_cannot_pay_stops_the_whole_plan() -> None:
    X, y = blobs(40)
    labels = holder(y, 2.0)
    labels[[39]].prior([0], CLASSES, 0.5)
    with pytest.raises(OverBudget):
        model(Stages(2)).fit(X, labels)
    assert labels[:39].spent.epsilon == 0
    assert model(Stages(2), epsilon=1.5).fit(X, labels).spent_.epsilon == 2


def test_records_without_meaning() -> None:
    for record in (
        lambda: Stages(0),
        lambda: Stages(2, split=(0.5, 0.6)),
        lambda: Stages(2, split=(1.0,)),
        lambda: Stages(2, split=0.5),
        lambda: Stages(2, split=("a", "b")),
        lambda: Stages(2, temperature=0.0),
        lambda: Stages(2, least=3),
        lambda: DomainPrior(share=1.0),
        lambda: DomainPrior(0),
        lambda: Clusters(heterogeneity=0.0),
        lambda: NearestNeighbour(0),
        lambda: Alibi(0),
        lambda: Likelihood(rounds=0),
        lambda: Likelihood(smallest=0.7),
    ):
        assert_error(None, record)


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


def test_frames_clones_and_random_states_of_every_kind() -> None:
    X, y = blobs(60)
    frame = pd.DataFrame(X, columns=["left", "right"])
    for state in (np.random.default_rng(0), np.random.RandomState(0), None):
        made = clone(model(Stages(2), NoisyLabels())).set_params(estimator__C=3.0, random_state=state)
        assert (made.plan, made.target, made.estimator.C) == (Stages(2), NoisyLabels(), 3.0)
        fitted = made.fit(frame, holder(y))
        assert fitted.feature_names_in_.tolist() == ["left", "right"]
        assert fitted.score(frame, y) > 0.5


def test_checks_of_scikit_learn_on_the_class_that_users_get() -> None:
    made = LabelDPClassifier(LogisticRegression(), 60.0, target=Likelihood(rounds=1), labels=DECLARED)
    assert check_as_users_get_it(made) >= 45
    # Labels are named y, and are no metadata.
    assert not hasattr(LabelDPClassifier, "set_fit_request")


def test_a_second_label_is_kept_where_it_would_be_dropped() -> None:
    rng = np.random.default_rng(0)
    priors = rng.dirichlet([0.05] * 6, size=300)
    priors[0] = [1, 0, 0, 0, 0, 0]
    for epsilon in (0.1, 1.0, 4.0):
        before, after = (rr_with_prior_batch(p, epsilon) for p in (priors, keep_two_labels(priors, epsilon)))
        assert (before.k_star == 1).any()
        assert (after.k_star == np.maximum(before.k_star, 2)).all()


def test_temperatures_and_posteriors() -> None:
    beliefs = np.array([[0.8, 0.2, 0.0], [1e-200, 0.0, 1.0]])
    np.testing.assert_allclose(temper(beliefs, 1.0), [[0.8, 0.2, 0.0], [0.0, 0.0, 1.0]], atol=1e-15)
    np.testing.assert_allclose(temper(beliefs, 0.5)[0], [16 / 17, 1 / 17, 0])
    np.testing.assert_allclose(posterior(np.array([[1.0, 0.25]]), np.array([[0.2, 0.8]])), [[0.5, 0.5]])
    assert posterior(np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]]))[0, 1] == 1


def test_small_groups_are_pooled_by_their_sizes() -> None:
    groups = Groups.of_ids([0] * 9 + [1] * 2 + [2] * 8 + [3] * 3)
    assert sorted(pool_small_groups(groups, 5).sizes.tolist()) == [5, 8, 9]
    assert sorted(pool_small_groups(groups, 6).sizes.tolist()) == [9, 13]
    assert pool_small_groups(groups, 2) is groups
    assert pool_small_groups(Groups.of_ids([0, 1]), 5).sizes.tolist() == [2]


def test_a_filter_selects_the_rows_whose_label_is_likely() -> None:
    labels = holder(np.array(CLASSES))
    release = labels.release(slice(None), rr_with_prior_batch([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]], 1.0))
    # Beliefs that are sure of the noisy label, in row 1 of the others.
    sure = np.eye(3)[release.values]
    part = select_likeliest(release, np.where([[False], [True], [False]], 1 - sure, sure), 1)
    assert part.rows.tolist() == [0, 2]
    assert (part.likelihood == release.likelihood[[0, 2]]).all()
    assert len(select_likeliest(release, 1 - sure, 2)) == 0


def two(n: int = 400):
    X, y = make_blobs(n, centers=[[0, 0], [4, 0]], cluster_std=1.0, random_state=1)
    return X, np.array(["no", "yes"])[y]


def test_peers_learn_and_every_row_pays_for_its_flip_and_the_learner_sees_less() -> None:
    X, y = two()
    labels = PrivateLabels(y, 2.0, ["no", "yes"], source=SeededEntropy(2))
    plan = Peers(2, rate=0.5)
    fitted = LabelDPClassifier(LogisticRegression(), 2.0, plan, "debiased", random_state=0)
    assert (fitted.fit(X, labels).predict(X) == y).mean() > 0.9
    (release,) = fitted.releases_
    assert 100 < len(release) < 300
    assert release.trust == "local"
    mechanism = plan.mechanism(2.0)
    assert {spent.epsilon for spent in labels.of_rows(np.arange(400))} == {mechanism.exact_epsilon}
    assert mechanism.exact_epsilon <= 2
    assert labels.spent.delta == 0
    smallest = min(release.groups.sizes)
    assert plan.towards_learner(release, 1e-4).epsilon == mechanism.at_delta(1e-4, smallest).epsilon < mechanism.epsilon


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


def test_a_prior_that_is_sure_of_a_label_keeps_a_second_one() -> None:
    """With one label kept nothing of the rows is released. The priors still describe the clusters."""
    X, y = blobs()
    asked = model(DomainPrior(3, share=0.1)).fit(X, holder(y)).releases_[0].randomizer
    assert asked.k_star.min() == 2
    lone = model(DomainPrior(3, share=0.1, least=1)).fit(X, holder(y))
    assert lone.releases_[0].randomizer.k_star.max() == 1
    assert (lone.predict(X) == y).mean() > 0.9


def test_warm_starts_go_on_with_the_model_before_and_ensembles_grow_new_trees() -> None:
    class Counting(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            self.fits_ = getattr(self, "fits_", 0) + 1
            return super().fit(X, y, sample_weight)

    X, y = blobs(120)
    target = Likelihood(rounds=3)
    # Each round of the second stage goes on with the model of the first, whose rounds began anew.
    for warm, fits in ((True, 2), (False, 1)):
        fitted = model(Stages(2), target, estimator=Counting(warm_start=warm)).fit(X, holder(y))
        assert fitted.estimator_.fits_ == fits
    forests = [RandomForestClassifier(5, warm_start=warm, random_state=0) for warm in (True, False)]
    grown, anew = (model(Stages(2), target, estimator=each).fit(X, holder(y)) for each in forests)
    assert (grown.predict_proba(X) == anew.predict_proba(X)).all()


def test_no_label_is_left_out_at_a_small_epsilon() -> None:
    X, y = make_blobs(500, centers=5 * np.eye(5), cluster_std=1.0, random_state=2)
    labels = PrivateLabels(y, 0.7, range(5), source=SeededEntropy(2))
    made = LabelDPClassifier(LogisticRegression(C=0.1), 0.7, random_state=0).fit(X, labels)
    assert made.estimator_.classes_.tolist() == [0, 1, 2, 3, 4]
    assert (made.predict(X) == y).mean() > 0.75


@pytest.mark.parametrize("domain", [["yes", "no"], [True, False], [0, 1]], ids=str)
def test_scorers_of_scikit_learn_are_right_in_any_order_of_the_domain(domain) -> None:
    X, y = two()
    values = y if isinstance(domain[0], str) else np.array(y == "yes", dtype=type(domain[0]))
    labels = PrivateLabels(values.tolist(), 20.0, domain, source=SeededEntropy(2))
    fitted = LabelDPClassifier(LogisticRegression(), 20.0, random_state=0).fit(X, labels)
    assert fitted.classes_.tolist() == sorted(domain)
    assert fitted.classes_.dtype == np.array(domain).dtype == fitted.predict(X).dtype
    for scorer, least in (("accuracy", 0.95), ("roc_auc", 0.98), ("neg_log_loss", -0.2)):
        assert get_scorer(scorer)(fitted, X, values) > least


class Failing(LogisticRegression):
    """Learns stand-ins for labels, and fails at its second fit."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Failing.fits += 1
        if Failing.fits > 1:
            raise RuntimeError("no convergence")
        return super().fit(X, y, sample_weight)


def test_a_model_that_fails_keeps_the_releases_that_were_paid_for() -> None:
    X, y = blobs(60)
    labels, Failing.fits = holder(y), 0
    made = model(estimator=Failing())
    assert_error("no convergence", made.fit, X, labels, error=RuntimeError)
    assert labels.spent.epsilon == 2
    (release,) = made.releases_
    assert len(release) == 60
    assert made.spent_ == labels.spent
    assert_error(None, made.predict, X, error=NotFittedError)


def test_many_classes_keep_every_label_that_is_nearly_as_likely_as_the_best() -> None:
    """At the first round the weights of 1,200 classes are one weight E / (E + 1199) and 1199 equal ones below it."""

    class Counting(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            Counting.met = np.unique(y).size
            return super().fit(X, y, sample_weight)

    y = np.arange(30)
    labels = PrivateLabels(y, 0.1, range(1200), source=SeededEntropy(1))
    target = Likelihood(rounds=1)
    made = LabelDPClassifier(Counting(strategy="prior"), 0.1, target=target, random_state=0)
    made.fit(np.zeros((30, 1)), labels)
    assert Counting.met == 1200


@pytest.mark.parametrize(("plan", "target"), [(Bits(), "bits"), (Stages(2), "likelihood")])
def test_one_class_left_is_a_constant_model_and_no_error_after_paying(plan, target) -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    labels = PrivateLabels(["a"] * 40, 60.0, ["a", "b", "c", "d"], source=SeededEntropy(1))
    made = LabelDPClassifier(LogisticRegression(), 60.0, plan, target, random_state=0)
    fitted = made.fit(X, labels)
    assert set(fitted.predict(X)) == {"a"}
    shares = fitted.predict_proba(X)
    assert shares.shape == (40, 4)
    assert shares[:, 0] == pytest.approx(np.ones(40), abs=1e-6)
