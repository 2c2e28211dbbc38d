"""Networks on releases: the losses are as documented, and invalid networks are refused before the draw."""

import importlib.util
import os
import sys

import numpy as np
import pytest
from asserting import assert_error, by_case
from examples_to_learn import blob_codes as blobs
from sklearn.base import clone

from optrand.errors import MissingExtra
from optrand.learning import Alibi, Bits, Clusters, LabelDPClassifier, Likelihood, PrivateLabels, Stages
from optrand.learning.torch import TorchClassifier
from optrand.sampling._entropy import SeededEntropy

if importlib.util.find_spec("torch") is None and "CI" not in os.environ:
    pytest.skip("no tests of networks without torch (`make torch` installs it)", allow_module_level=True)


@pytest.fixture(autouse=True)
def one_thread():
    """Networks as small as these are trained faster by one thread than by many."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def network(**options) -> TorchClassifier:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        module = torch.nn.Sequential(
            torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 3)
        )
    return TorchClassifier(module, **{"epochs": 15, "batch_size": 64, "learning_rate": 0.05, **options})


def parameters(fitted: TorchClassifier) -> np.ndarray:
    return np.concatenate([each.detach().numpy().ravel() for each in fitted.network_.parameters()])


@by_case(
    "plan, target",
    (Stages(1), "debiased"),
    (Stages(2), "likelihood"),
    (Bits(), "bits"),
    pytest.param(Stages(1), "labels", marks=pytest.mark.nightly),
    pytest.param(Alibi(), "soft", marks=pytest.mark.nightly),
    pytest.param(Clusters(3), "likelihood", marks=pytest.mark.nightly),
    ids=str,
)
def test_networks_learn_from_every_kind_of_release(plan, target) -> None:
    X, y = blobs()
    labels = PrivateLabels(y, 2.0, [0, 1, 2], source=SeededEntropy(4))
    fitted = LabelDPClassifier(network(warm_start=True), 2.0, plan, target, random_state=0).fit(X, labels)
    assert (fitted.predict(X) == y).mean() > 0.85
    assert fitted.epsilon_ == 2.0


def test_a_likelihood_of_certain_labels_is_cross_entropy() -> None:
    X, y = blobs(100)
    one_hot = np.eye(3)[y]
    by_likelihood = network(epochs=2).fit_likelihood(X, one_hot)
    by_weights, by_labels = network(epochs=2).fit_weights(X, one_hot), network(epochs=2).fit(X, y)
    np.testing.assert_allclose(parameters(by_likelihood), parameters(by_weights), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(parameters(by_weights), parameters(by_labels))
    other = network(epochs=2).fit_likelihood(X, np.maximum(one_hot, 0.3))
    assert np.abs(parameters(other) - parameters(by_weights)).max() > 0.01


def test_the_likelihood_of_a_constant_network_is_maximised() -> None:
    """Scores that are parameters alone: at the best shares the gradient of the likelihood is one for every label."""
    import torch

    class Shares(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scores = torch.nn.Parameter(torch.zeros(3))

        def forward(self, x):
            return self.scores.expand(len(x), 3)

    table = 0.2 + np.eye(3)[np.repeat([0, 1, 2], [30, 20, 14])]
    fitted = TorchClassifier(Shares(), epochs=300, batch_size=64, learning_rate=0.1, weight_decay=0.0)
    shares = fitted.fit_likelihood(np.zeros((64, 1)), table).predict_proba(np.zeros((1, 1)))[0]
    gradient = (table / (table @ shares)[:, np.newaxis]).mean(axis=0)
    assert shares.min() > 0.05
    assert gradient == pytest.approx(np.ones(3), abs=1e-3)


def test_negative_weights_do_not_run_away() -> None:
    X, y = blobs(200)
    weights = 3 * np.eye(3)[y] - 2 / 3
    fitted = network(epochs=40).fit_weights(X, weights)
    assert np.isfinite(parameters(fitted)).all()
    losses = -(weights * np.log(fitted.predict_proba(X))).sum(axis=1)
    assert abs(losses.mean()) < 1.0
    assert (fitted.predict(X) == y).mean() > 0.9


def test_features_and_scores_are_tried_before_the_draw() -> None:
    X, y = blobs(60)
    labels = PrivateLabels(y, 2.0, [0, 1, 2])
    broken = X.copy()
    broken[7, 1] = np.nan
    for features, holder, match in (
        (broken, labels, "NaN"),
        (X, PrivateLabels(y, 2.0, [0, 1, 2, 3]), "scores of shape"),
    ):
        assert_error(match, LabelDPClassifier(network(), 2.0).fit, features, holder)
        assert holder.spent.epsilon == 0


def test_images_of_any_shape() -> None:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(8, 2))
    X, y = np.random.default_rng(0).normal(size=(40, 1, 4, 4)), np.arange(40) % 2
    X[y == 1] += 3
    labels = PrivateLabels(y, 8.0, [0, 1])
    learner = TorchClassifier(module, epochs=20, learning_rate=0.05, batch_size=8)
    made = LabelDPClassifier(learner, 8.0, target=Likelihood())
    assert (made.fit(X, labels).predict(X) == y).mean() > 0.9


def test_seeds_decide_and_disturb_nothing() -> None:
    import torch

    X, y = blobs(100)
    torch.manual_seed(5)
    expected = torch.rand(3).tolist()
    torch.manual_seed(5)
    once, again = (network(epochs=2, mixup=4.0).fit(X, y) for _ in range(2))
    assert torch.rand(3).tolist() == expected
    np.testing.assert_array_equal(parameters(once), parameters(again))
    other, unmixed = network(epochs=2, mixup=4.0, seed=1).fit(X, y), network(epochs=2).fit(X, y)
    assert (parameters(once) != parameters(other)).any()
    assert (parameters(once) != parameters(unmixed)).any()


def test_a_warm_start_goes_on_and_a_clone_does_not() -> None:
    X, y = blobs(100)
    cold, warm = network(epochs=2), network(epochs=2, warm_start=True)
    first = parameters(cold.fit(X, y))
    np.testing.assert_array_equal(parameters(cold.fit(X, y)), first)
    np.testing.assert_array_equal(parameters(warm.fit(X, y)), first)
    assert (parameters(warm.fit(X, y)) != first).any()
    np.testing.assert_array_equal(parameters(clone(warm).fit(X, y)), first)


def test_without_torch_a_network_says_what_is_missing(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"networks need torch: pip install 'optrand\[torch\]'"):
        TorchClassifier(None).fit([[0.0]], [0])
