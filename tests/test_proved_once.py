"""State, solve, certify, sample, save: each thing is checked, bounded and repaired once."""

import cProfile
import pstats
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from asserting import assert_error

import optrand
from optrand.errors import NotCertified
from optrand.mechanism._tabulation import Solution, tabulate
from optrand.model._randomizer import Arcs
from optrand.solvers import design

T = TypeVar("T")


def counted(step: Callable[[], T]) -> tuple[T, Counter[str]]:
    """The result of a step, and how often it called each function of the package, as ``module.function``."""
    profile = cProfile.Profile()
    result = profile.runcall(step)
    calls = Counter[str]()
    for (file, _, name), (_, count, *_) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        calls["all"] += count
        if "optrand" in Path(file).parts:
            calls[f"{Path(file).stem}.{name}"] += count
    return result, calls


def test_one_answer_is_proven_once(tmp_path: Path) -> None:
    prior = np.random.default_rng(1).dirichlet(np.ones(53))
    problem, stated = counted(lambda: optrand.unbiased_regression(np.arange(53), prior, 1.0))
    assert (
        stated["_validation.check_labels"],
        stated["_validation.check_prior"],
        stated["_validation.check_epsilon"],
    ) == (1, 1, 1)
    mechanism, solved = counted(lambda: optrand.solve(problem))
    assert (solved["_bound.lower_bound"], solved["_tabulation._correct_means"]) == (1, 1)
    assert (solved["_certificate.exact_objective"], solved["_tabulation._tabulate"]) == (1, 1)
    assert (solved["_tabulation._round"], solved["_table.largest_ratio"]) == (1, 1)
    proof, certified = counted(lambda: mechanism.certificate)
    assert (certified["_bound.lower_bound"], certified["_tabulation._correct_means"]) == (0, 0)
    assert proof.require(gap=1e-12).bias == 0
    again, kept_proof = counted(lambda: mechanism.certificate)
    assert again is proof
    assert kept_proof["_bound.lower_bound"] == 0
    _, drawn = counted(lambda: mechanism.sample([0, 5, 52]))
    assert (drawn["_validation.check_values"], drawn["_table.row_sums"]) == (0, 0)
    # The first draw adds up the table, one call for each entry.
    assert drawn["all"] < 53 * mechanism.n + 1_000
    _, saved = counted(lambda: mechanism.save(tmp_path / "mechanism.json"))
    assert saved["_table.row_sums"] == 0


def test_an_answer_whose_numbers_changed_is_judged_again() -> None:
    problem = optrand.unbiased_regression([0, 1, 3], [0.5, 0.3, 0.2], 1.0)
    solution = design(problem)
    mechanism, arcs = tabulate(solution), solution.randomizer.arcs
    assert isinstance(arcs, Arcs)
    wider = optrand.unbiased_regression([0, 1, 3], [0.5, 0.3, 0.2], 2.0)
    assert tabulate(Solution(wider, solution.randomizer)).table == mechanism.table
    biased = optrand.regression([0, 1, 3], [0.5, 0.3, 0.2], 1.0)
    assert tabulate(Solution(biased, solution.randomizer)).value <= mechanism.value
    arcs.masses.flags.writeable = True
    arcs.masses[0] *= 2
    assert_error(None, tabulate, Solution(problem, solution.randomizer), error=NotCertified)
