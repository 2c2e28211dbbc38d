"""Tiny cases of the plans of regression, all transcripts: the account is at least the exact largest log-ratio."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from test_learning_accounts import EPSILON, Script, ScriptedLabels, features, named, sides

from optrand import Mechanism, Problem, solve
from optrand.accounting import Spent
from optrand.learning import LabelRelease, OnePrior, PrivateLabels, PublicClusters, RowPriors, TwoStages, _training
from optrand.learning._training import Training


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
def test_the_account_is_at_least_the_largest_log_ratio(plan, n, k, penalty, monkeypatch) -> None:
    monkeypatch.setattr(_training, "solve_many", solved_once)
    X, labels = features(n), PrivateLabels(np.arange(n) % k, EPSILON, range(k))
    plan.train(Training(X, labels, DummyRegressor(), EPSILON, 0, labels.domain, bias_penalty=penalty))
    script, found, more = Script(), Fraction(0), True
    while more:
        scripted = ScriptedNumbers(n, k, script)
        plan.train(Training(X, scripted, DummyRegressor(), EPSILON, 0, labels.domain, bias_penalty=penalty))
        found = max(found, scripted.largest)
        more = script.advance()
    assert found <= labels.spent.epsilon <= Fraction(EPSILON)
    # Nor is the account idle: some transcript tells two neighbours apart by nearly as much.
    assert found > labels.spent.epsilon - Fraction(1, 10**9)
