"""The regressor on private labels: its models, charges and refusals, and why bias needs a penalty."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from asserting import assert_error
from examples_to_learn import line, sides
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn_checks import DECLARED, check_as_users_get_it
from test_learning_accounts import named

import optrand
from benchmarks import priors
from optrand.base._arithmetic import decimal_value
from optrand.errors import InvalidInput, OverBudget
from optrand.learning import (
    Bits,
    LabelDPRegressor,
    OnePrior,
    PrivateLabels,
    PublicClusters,
    RowPriors,
    Stages,
    TwoStages,
)
from optrand.learning._number_plans import GROUP, coarse_bins, default_plan, group_prior, prediction_groups
from optrand.sampling._entropy import SeededEntropy

LABELS = range(21)


def holder(y, epsilon: float = 2.0, **options) -> PrivateLabels:
    return PrivateLabels(y, epsilon, LABELS, source=SeededEntropy(4), **options)


def model(plan=None, bias_penalty=None, *, epsilon=2.0, estimator=None, **options) -> LabelDPRegressor:
    chosen = Ridge() if estimator is None else estimator
    return LabelDPRegressor(chosen, epsilon, plan, bias_penalty, random_state=0, **options)


PLANS = [OnePrior(0.2), PublicClusters(sides, 0.1, 50), TwoStages(0.3), RowPriors(0.3, levels=4)]


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 3.0, 4.0])
@pytest.mark.parametrize("prior", [[0.98, 0.01, 0.01], [0.2, 0.5, 0.3], [0.9, 0.1]])
def test_no_unbiased_optimum_has_less_variance_than_the_bound(prior, epsilon) -> None:
    labels = np.array([0.0, 1.0, 5.0][: len(prior)])
    variances = optrand.solve(optrand.unbiased_regression(labels, prior, epsilon)).randomizer.variances
    farther = np.maximum(labels - labels[0], labels[-1] - labels)
    bound = farther**2 * math.exp(epsilon) / math.expm1(epsilon) ** 2
    assert (variances >= bound * (1 - 1e-9)).all()
    if len(prior) == 2:
        np.testing.assert_allclose(variances, bound, rtol=1e-9)


@pytest.mark.nightly
def test_groups_that_know_the_truth_need_a_price_on_bias() -> None:
    # Weeks worked at epsilon 1, a group for each label: at any finite bias penalty nothing is lost. Without bias each
    # group loses at least the bound of its label, 311 in the middle and 1,245 at the ends.
    labels, prior = np.arange(53.0), priors.weeks()
    one = optrand.solve(optrand.regression(labels, prior, 1.0, bias_penalty=100.0)).value
    assert round(one) == 1220
    truth = np.eye(53)
    priced = optrand.solve_many(optrand.regression(labels, p, 1.0, bias_penalty=100.0) for p in truth[[0, 26, 52]])
    assert max(solution.value for solution in priced) < 1e-6
    unbiased = optrand.solve_many(optrand.unbiased_regression(labels, p, 1.0) for p in truth[[0, 26, 52]])
    floors = np.array([52, 26, 52]) ** 2 * math.e / math.expm1(1) ** 2 / 2
    assert all(solution.value >= bound * (1 - 1e-9) for solution, bound in zip(unbiased, floors, strict=True))


@pytest.mark.parametrize("plan", PLANS, ids=named)
def test_every_plan_learns_pays_epsilon_and_is_certified(plan) -> None:
    X, y = line()
    labels = holder(y)
    fitted = model(plan).fit(X, labels)
    predictions = fitted.predict(X)
    assert ((predictions - y) ** 2).mean() < 0.6 * y.var()
    assert fitted.score(X, y) > 0
    # Predictions stay within the labels.
    assert fitted.predict([[1e6, 0.0], [-1e6, 0.0]]).tolist() == [20.0, 0.0]
    assert (fitted.spent_, fitted.epsilon_) == (labels.spent, 2.0)
    assert Fraction(1.9999999) < labels.spent.epsilon <= 2
    assert sorted(np.concatenate([one.rows for one in fitted.releases_]).tolist()) == list(range(len(y)))
    for proof in fitted.certificates_:
        assert proof.require(gap=1e-6).epsilon <= 2
    # The same seed splits alike.
    np.testing.assert_array_equal(model(plan).fit(X, holder(y)).predict(X), predictions)


def test_each_row_pays_for_one_histogram_and_one_label() -> None:
    X, y = line()
    labels = holder(y)
    fitted = model(TwoStages(groups=3)).fit(X, labels)
    paid = [Fraction(0)] * len(y)
    for one in (*fitted.priors_, *fitted.releases_):
        price = decimal_value(one.epsilon if hasattr(one, "epsilon") else one.randomizer.epsilon)
        for row in one.rows:
            paid[row] += price
    assert paid == [each.epsilon for each in labels.of_rows(slice(None))]
    assert len(fitted.priors_) == len(fitted.releases_) == 4
    # No histogram is read twice, and none of all rows.
    assert sum(one.rows.size for one in fitted.priors_) == len(y)


def test_rows_of_the_second_stage_pay_epsilon_for_their_label_and_no_histogram() -> None:
    X, y = line()
    labels = holder(y)
    fitted = model(RowPriors(0.25, levels=5)).fit(X, labels)
    (prior,) = fitted.priors_
    first, *second = fitted.releases_
    assert prior.rows.tolist() == first.rows.tolist()
    assert len(second) == 5
    assert {one.randomizer.epsilon for one in second} == {2.0}
    assert {spent.epsilon for one in second for spent in labels.of_rows(one.rows)} == {Fraction(2)}
    # Rows with a larger prediction have a prior of a larger mean, and the mean is the prediction's.
    means = [float(one.randomizer.prior @ one.randomizer.labels) for one in second]
    signals = [float(X[one.rows, 0].mean()) for one in second]
    assert np.corrcoef(means, signals)[0, 1] > 0.99


@pytest.mark.parametrize("epsilon", [0.3, math.log(2)])
def test_up_to_log_2_the_unbiased_randomizer_of_a_row_is_the_closed_form(epsilon) -> None:
    X, y = line()
    fitted = model(RowPriors(levels=3), math.inf, epsilon=epsilon).fit(X, holder(y, epsilon))
    for one in fitted.releases_[1:]:
        mechanism = one.randomizer
        best = optrand.closed_forms.gap_response(mechanism.labels, mechanism.prior, epsilon)
        np.testing.assert_array_equal(mechanism.outputs, best.outputs)
        assert mechanism.certificate.require(gap=1e-9).bias < 1e-9


def test_the_price_of_bias_reaches_the_second_stage_only() -> None:
    X, y = line()
    releases = model(TwoStages(groups=2), 0.0).fit(X, holder(y)).releases_
    assert abs(releases[0].randomizer.randomizer.biases).max() < 1e-6
    assert all(abs(one.randomizer.randomizer.biases).max() > 1 for one in releases[1:])
    # Without a price it is randomized response on bins.
    assert all(one.randomizer.randomizer.outputs.size < len(LABELS) for one in releases[1:])


def test_unbiased_labels_are_unbiased_and_plans_have_their_own_price() -> None:
    assert OnePrior().penalty(1000) == math.inf
    assert TwoStages().penalty(1000) == PublicClusters().penalty(1000) == math.sqrt(1000)
    X, y = line()
    first, second = (model(OnePrior(), penalty).fit(X, holder(y)) for penalty in (None, math.inf))
    np.testing.assert_array_equal(first.releases_[0].values, second.releases_[0].values)


def test_the_first_stage_may_have_a_model_of_its_own() -> None:
    X, y = line()
    seen = []

    class Spy(Ridge):
        def fit(self, X, y, sample_weight=None):
            seen.append(len(y))
            return super().fit(X, y, sample_weight)

    fitted = model(TwoStages(0.25, first=Spy())).fit(X, holder(y))
    assert type(fitted.estimator_) is Ridge
    # Before anything is drawn it is tried on a thousand rows.
    assert seen == [1000, 300]


def test_frames_pipelines_clones_and_labels_in_any_order() -> None:
    X, y = line()
    frame = pd.DataFrame(X, columns=["a", "b"])
    domain = list(reversed(LABELS))
    labels = PrivateLabels(y, 2.0, domain, source=SeededEntropy(4))
    learner = LabelDPRegressor(DecisionTreeRegressor(max_depth=3), 2.0, TwoStages(groups=2), random_state=0)
    assert clone(learner).get_params()["plan"] == TwoStages(groups=2)
    fitted = make_pipeline(StandardScaler(), clone(learner)).fit(frame, labels)
    assert ((fitted.predict(frame) - y) ** 2).mean() < 0.5 * y.var()
    assert fitted[-1].n_features_in_ == 2


def test_nothing_is_drawn_where_something_does_not_fit() -> None:
    X, y = line(600)
    labels = holder(y)
    for made, features, message in (
        (model(estimator=KNeighborsRegressor(), plan=TwoStages(groups=2)), X, "sample_weight"),
        (model(estimator=StandardScaler(), plan=OnePrior()), X, "no predict"),
        (model(TwoStages(0.1)), X, "60 are in stage 1"),
        (model(PublicClusters(2, None, 601)), X, "601"),
        (model(bias_penalty=-1.0), X, "bias_penalty is -1"),
        (model(bias_penalty=math.nan), X, "bias_penalty"),
        (model(), X[:-1], "599 samples"),
        (model(epsilon=2.5), X, "over the budget"),
        *((model(plan), X, r"TwoStages\(\)$") for plan in (Stages(2), Bits(), "TwoStages", TwoStages)),
    ):
        assert_error(message, made.fit, features, labels, error=(InvalidInput, OverBudget))
    assert_error("NaN", model().fit, np.where(X > 2.5, np.nan, X), labels, error=ValueError)
    # Unbiased noise is no class, and some of it is below 0.
    for estimator, message in ((LogisticRegression(), "Unknown label type"), (PoissonRegressor(), "out of the valid")):
        for plan in (OnePrior(), RowPriors()):
            assert_error(message, model(plan, estimator=estimator).fit, X, labels, error=ValueError)
    far, longer = line()
    far[1100, 1], many = np.inf, holder(longer)
    assert_error("infinity", model().fit, far, many, error=ValueError)
    assert many.spent.epsilon == 0
    assert_error("PrivateLabels", model().fit, X, y)
    assert_error("2 labels are classes", model().fit, X[:2], PrivateLabels(["a", "b"], 2.0, ["a", "b"]))
    assert labels.spent.epsilon == 0


def test_plain_labels_are_fitted_with_declared_ones() -> None:
    X, y = line(600)
    fitted = model(OnePrior(), labels=LABELS).fit(X, y)
    assert fitted.epsilon_ == 2.0
    assert fitted.certificates_[0].require(gap=1e-9).epsilon <= 2.0
    assert_error("outside the 2 declared", model(OnePrior(), labels=[-2, -1]).fit, X, y)
    assert_error("2 labels are classes", model(OnePrior(), labels=["a", "b"]).fit, X[:2], ["a", "b"])


def test_plans_without_meaning() -> None:
    for plan in (lambda: OnePrior(1.0), lambda: TwoStages(0.0), lambda: TwoStages(groups=0), lambda: PublicClusters(0)):
        assert_error(None, plan)
    assert_error("clusters is of type ndarray, expected their number, or a function that", PublicClusters, np.arange(3))


def test_checks_of_scikit_learn_on_the_class_that_users_get() -> None:
    assert check_as_users_get_it(LabelDPRegressor(Ridge(), 12.0, bias_penalty=0.0, labels=DECLARED)) >= 40


def test_ties_leave_no_empty_group_and_small_ones_are_pooled() -> None:
    predictions = np.repeat([0.0, 1.0, 2.0], [90, 5, 5])
    groups = prediction_groups(predictions, 8, 1)
    assert (groups.sizes > 0).all()
    assert groups.sizes.sum() == 100
    assert (prediction_groups(predictions, 8, 10).sizes >= 10).all()
    assert len(prediction_groups(predictions, 8, 200)) == 1


def test_bins_cover_all_labels_without_a_gap() -> None:
    rng = np.random.default_rng(0)
    for k in (2, 3, 5, 53):
        for prior in (np.full(k, 1 / k), rng.dirichlet(np.full(k, 0.1)) * 0.99 + 0.01 / k):
            bins = coarse_bins(prior)
            assert bins[0] == 0
            assert (np.isin(np.diff(bins), [0, 1])).all()
            assert (bins[1:] > 0).all()
            assert (bins[:-1] < bins[-1]).all()


def test_a_groups_prior_has_its_bins_the_shape_within_and_a_share_of_all() -> None:
    overall, bins = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 1, 2])
    found = group_prior(np.array([0.0, 1.0, 0.0]), bins, overall)
    np.testing.assert_allclose(found.sum(), 1)
    np.testing.assert_allclose(found[0], GROUP.global_share * 0.1)
    np.testing.assert_allclose(found[2] / found[1], 1.5)
    np.testing.assert_allclose(group_prior(np.array([0.1, 0.5, 0.4]), bins, overall), overall)


def test_default_plans_look_at_sizes_and_epsilon_alone() -> None:
    found = {(rows, epsilon): default_plan(rows, epsilon) for rows in (7999, 8000) for epsilon in (0.1, 1.99, 2.0, 8.0)}
    two = {case for case, plan in found.items() if isinstance(plan, TwoStages)}
    assert two == {(8000, 0.1), (8000, 1.99)}
    assert all(isinstance(plan, OnePrior) for case, plan in found.items() if case not in two)
    X, y = line(8000)
    one, two_stages = (model(None, epsilon=epsilon).fit(X, holder(y, epsilon)) for epsilon in (2.0, 1.9))
    assert (len(one.priors_), len(two_stages.priors_)) == (1, 3)
