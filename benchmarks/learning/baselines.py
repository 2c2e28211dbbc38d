"""DP-SGD (Opacus) and PATE beside label privacy, on the same rows and with the same linear model.

Classes are no week, some weeks and all 52. DP-SGD protects a whole row, features and label, with a delta: for the same
epsilon it promises more. So does PATE, except for the features of the rows that it queries. Its noisy votes (GNMax,
Papernot et al., 2018) are drawn here, in floats.
"""

from __future__ import annotations

import importlib
import math
import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.learning import tables
from benchmarks.learning.experiment import Cell, Experiment, Settings, Setup, fit_classifier
from benchmarks.learning.reports import report
from benchmarks.learning.sgd import least_sigma
from optrand.base._validation import Floats
from optrand.learning import Stages

KINDS = 3
"""No week, some weeks, all 52."""

Codes = NDArray[np.int64]


def measure(setup: Setup, cell: Cell) -> dict[str, float]:
    """Measure the percentage of test rows whose class a linear model misses."""
    given, settings = tables.of(setup, cell.seed), setup.settings
    X, test = given.indicators
    y, truth = (1 * (weeks > 0) + (weeks == given.labels[-1]) for weeks in given.y)
    model = LogisticRegression(**settings["logistic"])
    if cell.arm == "DP-SGD":
        guesses = dp_sgd(X, y, test, cell, settings)
    elif cell.arm == "PATE":
        guesses = pate(X, y, model, cell, settings).predict(test)
    else:
        plan = Stages(2 if cell.arm == "two stages" else 1)
        guesses = fit_classifier(cell, model, X, y, KINDS, plan, "likelihood").predict(test)
    return {"linear": 100 * float((guesses != truth).mean())}


def dp_sgd(X: Floats, y: Codes, test: Floats, cell: Cell, settings: Settings) -> Codes:
    """Guess by a linear softmax model, trained by Opacus: (epsilon, delta) for adding or removing a row."""
    torch, opacus = importlib.import_module("torch"), importlib.import_module("opacus")
    warnings.filterwarnings("ignore", message="Full backward hook|Secure RNG|Optimal order")
    torch.manual_seed(cell.seed)
    rows = torch.utils.data.TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
    loader = torch.utils.data.DataLoader(rows, batch_size=settings["batch"])
    model = torch.nn.Linear(X.shape[1], KINDS)
    model, steps, loader = opacus.PrivacyEngine().make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=settings["rate"]),
        data_loader=loader,
        target_epsilon=cell.epsilon,
        target_delta=settings["delta"],
        epochs=settings["epochs"],
        max_grad_norm=settings["clip"],
    )
    for _ in range(settings["epochs"]):
        for features, classes in loader:
            steps.zero_grad()
            torch.nn.functional.cross_entropy(model(features), classes).backward()
            steps.step()
    with torch.no_grad():
        guesses: Codes = model(torch.tensor(test, dtype=torch.float32)).argmax(1).numpy()
    return guesses


def pate(X: Floats, y: Codes, model: Any, cell: Cell, settings: Settings) -> Any:
    """Train a student on noisy votes on some public features. A changed row changes one vote of each query.

    Votes are then ``sqrt(2)`` apart, and those of all queries together are one Gaussian mechanism.
    """
    rng = np.random.default_rng(cell.seed)
    queries = rng.permutation(len(X))[: settings["queries"]]
    votes = np.zeros((queries.size, KINDS))
    for part in np.array_split(rng.permutation(len(X)), settings["teachers"]):
        votes[np.arange(queries.size), model.fit(X[part], y[part]).predict(X[queries])] += 1
    sigma = least_sigma(math.sqrt(2 * queries.size), cell.epsilon, settings["delta"])
    return model.fit(X[queries], (votes + sigma * rng.normal(size=votes.shape)).argmax(axis=1))


EXPERIMENTS = {
    "baselines": Experiment(
        "DP-SGD and PATE beside label privacy, three classes of weeks worked",
        measure,
        partial(report, error="test error (percent)"),
        ("torch", "opacus", "pandas"),
    )
}
