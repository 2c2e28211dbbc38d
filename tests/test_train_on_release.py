"""Training on labels that were released before: by their likelihood, at no cost, in every form that a release has."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from asserting import assert_error, by_case
from examples_to_learn import CLASSES, blobs, line
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score

import optrand
from optrand.accounting import Spent
from optrand.learning import (
    Clusters,
    DomainPrior,
    LabelDPClassifier,
    LabelDPRegressor,
    Likelihood,
    OnePrior,
    PrivateLabels,
    PublicClusters,
    RowPriors,
    Stages,
    TwoStages,
)
from optrand.learning._training import releases_of, tilt_priors
from optrand.release._record import FrameRecord
from optrand.sampling._entropy import SeededEntropy


def test_a_release_of_classes_is_trained_on_fresh_and_loaded(tmp_path) -> None:
    X, y = blobs()
    noisy, record = optrand.randomize(y, 2.0, labels=CLASSES)
    record.save(tmp_path / "y.release.json")
    read = optrand.load_release(tmp_path / "y.release.json")
    models = [LabelDPClassifier(LogisticRegression()).fit(X, (noisy, each)) for each in (record, read)]
    for model in models:
        assert (model.predict(X) == y).mean() > 0.9
        assert (model.classes_.tolist(), model.spent_) == (sorted(CLASSES), Spent(2.0))
        assert (model.epsilon_, model.priors_) == (2.0, [])
    assert (models[0].predict_proba(X) == models[1].predict_proba(X)).all()


def test_the_likelihood_is_that_of_the_records_mechanism() -> None:
    _, y = blobs(60)
    noisy, record = optrand.randomize(y, 1.5, labels=CLASSES)
    (release,) = releases_of((noisy, record), 60)
    weights, mechanism = record.mechanism.weights, record.mechanism
    for row, name in enumerate(noisy):
        column = weights[:, mechanism.outputs.tolist().index(float(CLASSES.index(name)))].tolist()
        exact = [float(Fraction(weight, max(column))) for weight in column]
        assert release.likelihood[row] == pytest.approx(exact, rel=1e-12)


def test_classes_that_are_numbers_in_another_order_keep_their_likelihood() -> None:
    """Places and names of the classes are both 0, 1, 2, in different orders."""
    X, text = blobs()
    y = np.array([2, 0, 1])[[CLASSES.index(one) for one in text]]
    noisy, record = optrand.randomize(y, 6.0, labels=[2, 0, 1], task="classification")
    model = LabelDPClassifier(LogisticRegression()).fit(X, (noisy, record))
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict(X) == y).mean() > 0.9


def test_it_is_never_randomized_again() -> None:
    """At an epsilon of 30 released labels are the true ones. The small epsilon of the estimator is for other fits."""
    X, y = blobs(200)
    noisy, record = optrand.randomize(y, 30.0, labels=CLASSES)
    model = LabelDPClassifier(LogisticRegression(), 0.01, random_state=0).fit(X, (noisy, record))
    np.testing.assert_array_equal(model.releases_[0].values, [CLASSES.index(one) for one in noisy])
    assert model.spent_ == Spent(30.0)
    exact = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-3)


def test_groups_have_each_their_mechanism() -> None:
    X, y = blobs(3000)
    frame = pd.DataFrame({"left": X[:, 0] < 2, "y": y})
    table, record = optrand.randomize(frame, 1.0, column="y", labels=CLASSES, groups="left")
    noisy = table["y"]
    model = LabelDPClassifier(LogisticRegression()).fit(X, (noisy, record, frame[["left"]]))
    assert (model.predict(X) == y).mean() > 0.9
    assert sorted(np.concatenate([one.rows for one in model.releases_]).tolist()) == list(range(3000))
    assert len(model.releases_) == len(record.distinct) == 2
    for release in model.releases_:
        assert len(set(frame["left"].to_numpy()[release.rows])) == 1
    assert_error("groups", LabelDPClassifier(LogisticRegression()).fit, X, (noisy, record))


def test_a_release_of_private_labels_and_what_a_failed_fit_has_left_are_trained_on() -> None:
    X, y = blobs()
    labels = PrivateLabels(y, 2.0, CLASSES, source=SeededEntropy(4))
    first = LabelDPClassifier(LogisticRegression(), 2.0, plan=Stages(2), random_state=0).fit(X, labels)
    again = LabelDPClassifier(LogisticRegression()).fit(X, first.releases_)
    assert (again.predict(X) == y).mean() > 0.9
    assert labels.spent == again.spent_ == Spent(2.0)
    part = LabelDPClassifier(LogisticRegression()).fit(X, first.releases_[0])
    assert (part.predict(X) == y).mean() > 0.85


def test_rows_without_a_label_are_left_out() -> None:
    X, y = blobs()
    given = pd.Series(y, dtype=object)
    given[::3] = None
    noisy, record = optrand.randomize(given, 4.0, labels=CLASSES, nulls="pass")
    model = LabelDPClassifier(LogisticRegression()).fit(X, (noisy, record))
    assert model.releases_[0].rows.tolist() == np.flatnonzero(np.arange(600) % 3).tolist()
    assert (model.predict(X) == y).mean() > 0.9


def test_scores_of_probabilities_are_right() -> None:
    X, text = blobs()
    noisy, record = optrand.randomize(text == "red", 3.0, labels=[True, False])
    model = LabelDPClassifier(LogisticRegression(), target=Likelihood(rounds=3)).fit(X, (noisy, record))
    assert model.classes_.tolist() == [False, True]
    assert roc_auc_score(text == "red", model.predict_proba(X)[:, 1]) > 0.95


def test_unbiased_numbers_are_trained_on_as_they_are() -> None:
    X, y = line(4000)
    noisy, record = optrand.randomize(y, 2.0, labels=range(21))
    model = LabelDPRegressor(LinearRegression()).fit(X, (noisy, record))
    plain = LinearRegression().fit(X, noisy)
    assert model.predict(X) == pytest.approx(np.clip(plain.predict(X), 0, 20))
    assert (model.epsilon_, model.range_) == (2.0, (0.0, 20.0))
    assert model.certificates_[0].require(gap=1e-6).epsilon <= 2.0


@pytest.mark.parametrize("penalty", [0.0, 5.0])
def test_biased_numbers_are_trained_on_by_their_likelihood(penalty) -> None:
    """Noisy labels with bias are nearer to the middle: a model of them as they are has too small a slope."""
    X, y = line(20_000)
    prior = np.bincount(y, minlength=21) / y.size
    mechanism = optrand.solve(optrand.regression(range(21), prior, 1.5, bias_penalty=penalty))
    noisy = mechanism.sample(y, source=SeededEntropy(2))
    slopes = [
        float(np.diff(made.predict([[0.0, 0.0], [1.0, 0.0]]))[0])
        for made in (
            LinearRegression().fit(X, y),
            LinearRegression().fit(X, noisy),
            LabelDPRegressor(LinearRegression()).fit(X, (noisy, mechanism)).estimator_,
        )
    ]
    assert slopes[1] < 0.7 * slopes[0]
    assert slopes[2] == pytest.approx(slopes[0], rel=0.1)


@pytest.mark.parametrize("labels", [range(21), [*range(20), 100]], ids=["even", "uneven"])
def test_labels_with_bias_and_nearly_no_noise_are_trained_on_as_they_are(labels) -> None:
    """The mechanism's prior is wrong, and must not make steps larger than the labels say."""
    X, places = line()
    mechanism = optrand.solve(optrand.regression(labels, np.full(21, 1 / 21), 16.0, bias_penalty=0.0))
    noisy = mechanism.sample(np.array(labels)[places], source=SeededEntropy(2))
    assert mechanism.certificate.bias > 1e-6
    fitted = LabelDPRegressor(LinearRegression()).fit(X, (noisy, mechanism)).estimator_
    np.testing.assert_allclose(fitted.coef_, LinearRegression().fit(X, noisy).coef_, rtol=0.01, atol=0.01)


def test_a_rare_label_far_from_all_others_makes_no_step_longer_than_the_one_before() -> None:
    """Once steps grew from round to round, to an R2 of -137."""
    X, places = line(4000)
    labels = np.array([*range(20), 100])
    mechanism = optrand.solve(optrand.regression(labels, np.bincount(places) / 4000, 1.0, bias_penalty=5.0))
    noisy = mechanism.sample(labels[places], source=SeededEntropy(1))
    assert LabelDPRegressor(LinearRegression()).fit(X, (noisy, mechanism)).score(X, labels[places]) > 0.4


def test_a_mechanism_of_one_output_teaches_its_prior_alone() -> None:
    X, y = line(200)
    mechanism = optrand.solve(optrand.regression(range(21), [1.0] + [0.0] * 20, 1.0, bias_penalty=0.0))
    noisy = mechanism.sample(y, source=SeededEntropy(1))
    assert mechanism.outputs.size == 1
    assert LabelDPRegressor(LinearRegression()).fit(X, (noisy, mechanism)).predict(X) == pytest.approx(0.0, abs=0.1)


@by_case(
    "plan",
    *(OnePrior(), TwoStages(groups=3), RowPriors(levels=4), PublicClusters(2)),
    *(Stages(2), DomainPrior(3, 0.1), Stages(2, domain_prior=DomainPrior(3, 0.1)), Clusters(3)),
    ids=lambda plan: type(plan).__name__,
)
def test_a_model_of_released_labels_has_cost_their_histograms_too(plan) -> None:
    (X, y), domain = (line(4000), range(21)) if plan.for_numbers else (blobs(), CLASSES)
    labels = PrivateLabels(y, 2.0, domain, source=SeededEntropy(3))
    made = LabelDPRegressor(LinearRegression()) if plan.for_numbers else LabelDPClassifier(LogisticRegression())
    if isinstance(plan, Clusters):
        made.set_params(target="labels")
    first = clone(made).set_params(epsilon=2.0, plan=plan, random_state=0).fit(X, labels)
    again = clone(made).fit(X, first.releases_)
    assert again.spent_ == first.spent_ == labels.spent
    assert again.score(X, y) > 0.7
    # A part of the rows has cost no more than all of them.
    assert clone(made).fit(X, first.releases_[-1]).spent_.epsilon <= labels.spent.epsilon <= 2


def test_what_is_not_the_release_of_these_rows_is_refused() -> None:
    X, y = blobs(60)
    noisy, record = optrand.randomize(y, 2.0, labels=CLASSES)
    numbers, of_numbers = optrand.randomize(np.arange(60) % 3, 2.0, labels=range(3))
    grouped = optrand.randomize(y, 2.0, labels=CLASSES, groups=np.arange(60) % 2)
    nulls = optrand.randomize([None, *y[1:]], 4.0, labels=[*CLASSES, None], nulls="class")
    classifier, regressor = LabelDPClassifier(DummyClassifier()), LabelDPRegressor(DummyRegressor())
    for made, features, given, match in (
        (classifier, X[:-1], (noisy, record), "59 samples"),
        (classifier, X, (y[::-1].astype("U8") + "x", record), "not labels of the record"),
        (regressor, X, (numbers + 0.25, of_numbers), "not outputs"),
        (regressor, X, (noisy, record), "LabelDPClassifier"),
        (classifier, X, ([None] * 60, record), "not labels|missing"),
        (classifier, X, (noisy, FrameRecord({"y": record})), "several columns"),
        (classifier, X, grouped, r"by groups of groups: pass \(noisy, record, groups\)"),
        (classifier, X, nulls, "nulls='pass'"),
        (classifier, X, y, "PrivateLabels"),
        (classifier, X, PrivateLabels(y, 1.0, CLASSES), "epsilon is None"),
    ):
        assert_error(match, made.fit, features, given)


def test_tilted_priors_have_their_means_and_together_the_priors_variance() -> None:
    rng = np.random.default_rng(1)
    labels = np.arange(21.0)
    prior = rng.dirichlet(np.full(21, 2.0))
    means = prior @ labels + rng.normal(scale=1.5, size=200)
    rows = tilt_priors(prior, labels, means)
    np.testing.assert_allclose(rows @ labels, means, atol=1e-6)
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    variance = prior @ labels**2 - (prior @ labels) ** 2
    within = (rows @ labels**2 - (rows @ labels) ** 2).mean()
    assert within + means.var() == pytest.approx(variance, rel=1e-3)


def test_one_prediction_for_all_rows_is_the_prior_and_ends_are_left_inside() -> None:
    labels, prior = np.array([0.0, 1.0, 5.0]), np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(tilt_priors(prior, labels, np.full(3, prior @ labels)), np.tile(prior, (3, 1)))
    ends = tilt_priors(prior, labels, np.array([-4.0, 9.0]))
    np.testing.assert_allclose(ends @ labels, [0.005, 4.995], atol=1e-6)
