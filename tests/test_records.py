"""Pickles and copies are made by constructors: they are checked again, and carry no result that was computed before."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from asserting import assert_error

import optrand
from optrand import Dual, Grid, audit, losses
from optrand.audits._reading import ExactTable
from optrand.base._validation import Record
from optrand.baselines import Groups, LabelRandomization, LatticeAlibi, UniformRR
from optrand.baselines._cluster import ClusterPriorRelease, ClusterPriors, ClusterRelease
from optrand.baselines._peer_to_peer import PeerRelease
from optrand.learning import LabelRelease
from optrand.mechanism._privacy_loss import DominatingPair
from optrand.mechanism._tabulation import tabulate
from optrand.model._randomizer import Arcs, Randomizer
from optrand.model._table import Table
from optrand.sampling import Sampler
from optrand.solvers import design

PROBLEM = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
SOLUTION = design(PROBLEM)
MECHANISM = tabulate(SOLUTION)
TABLE = optrand.solve(optrand.classification([0.5, 0.3, 0.2], 1.0))

RECORDS: dict[str, Any] = {
    "problem": PROBLEM,
    "grid": Grid([1.0, 2.0]),
    "tabulated loss": losses.Tabulated([[0, 1], [3, 0]]),
    "dual": SOLUTION.dual,
    "solution": SOLUTION,
    "randomizer of arcs": SOLUTION.randomizer,
    "randomizer of a table": Randomizer([0, 1], [0, 1], [[0.75, 0.25], [0.25, 0.75]], 1.1),
    "arcs": Arcs(2, [0, 1], [0, 1], [-0.5, 1.5], [0.25, 0.25]),
    "mechanism of intervals": MECHANISM,
    "mechanism of classes": TABLE,
    "table": TABLE.table,
    "dominating pair": DominatingPair(Fraction(3), Fraction(1, 4)),
    "sampler": Sampler(Table.of_rows([0, 1], [0, 1], [[3, 1], [1, 3]])),
    "exact table": ExactTable.of([["0.75", "0.25"], ["1/4", "3/4"]]),
    "audit": audit([[0.75, 0.25], [0.25, 0.75]], 1.1),
    "label randomization": LabelRandomization((Fraction(1, 4), Fraction(3, 4)), Fraction(1, 2)),
    "uniform response": UniformRR(3, 1.0),
    "lattice": LatticeAlibi(3, 2.0),
    "vectors": optrand.unbiased_vectors([0.5, 0.3, 0.2], 1.0),
}
WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda record: pickle.loads(pickle.dumps(record)),  # noqa: S301
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RECORDS)
def test_a_copy_has_the_fields_of_its_record_and_nothing_else(name: str, way: str) -> None:
    record = RECORDS[name]
    assert isinstance(record, Record)
    vars(record)["forged"] = 1
    try:
        again = WAYS[way](record)
    finally:
        del vars(record)["forged"]
    assert type(again) is type(record)
    assert "forged" not in vars(again)
    assert repr(again) == repr(record)
    arguments = again._arguments()
    for field, value in record._arguments().items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(arguments[field], value)
            assert not arguments[field].flags.writeable
    if type(record).__eq__ is not object.__eq__:
        assert again == record


@pytest.mark.parametrize("way", [*WAYS, "replace"])
def test_forged_results_of_a_design_do_not_travel(way: str) -> None:
    """Every name under which a result was ever kept in these objects, with a value that proves too much."""
    solution = WAYS["pickle"](SOLUTION)
    for holder, names in {
        solution.dual: ("_bound", "bound", "estimated bound"),
        solution.randomizer: ("_facts", "measurements", "estimated value", "intervals", "extremes"),
        solution.randomizer.arcs: ("_exact", "tabulated"),
    }.items():
        vars(holder).update(dict.fromkeys(names, (None, 11.9)))
    travelled = replace(solution, dual=replace(solution.dual)) if way == "replace" else WAYS[way](solution)
    if way == "replace":
        travelled = replace(
            travelled, randomizer=Randomizer.of_arcs(PROBLEM.labels, replace(solution.randomizer.arcs), 1.0)
        )
    if way == "copy":
        travelled = replace(travelled, dual=copy.copy(travelled.dual), randomizer=copy.copy(travelled.randomizer))
    assert tabulate(travelled) == MECHANISM
    assert optrand.certify(tabulate(travelled)) == MECHANISM.certificate


@pytest.mark.parametrize("way", [*WAYS, "replace"])
def test_forged_figures_of_a_mechanism_do_not_travel(way: str) -> None:
    mechanism = tabulate(replace(SOLUTION))
    honest = optrand.certify(mechanism)
    forged = {"realised_ratio": Fraction(1), "certificate": None, "sampler": None, "_intervals": None, "_document": {}}
    vars(mechanism).update(forged)
    of_table = {"total": 1, "biases": (Fraction(9),) * 3, "squared_errors": (Fraction(0),) * 3, "weights": None}
    vars(mechanism.table).update(of_table)
    if way == "replace":
        again = replace(mechanism, table=Table(PROBLEM.labels, mechanism.outputs, mechanism.table.steps))
    else:
        again = WAYS[way](replace(mechanism, table=copy.copy(mechanism.table)) if way == "copy" else mechanism)
    assert again.certificate == optrand.certify(again) == honest
    assert again == MECHANISM
    assert again.exact_biases == (0, 0, 0)
    assert isinstance(again.sampler, Sampler)


def test_an_altered_pickle_is_proven_again_and_refused() -> None:
    heights = TABLE.table.steps.heights
    for record, changes, message in (
        (TABLE, {"problem": replace(TABLE.problem, epsilon=0.9)}, "would not be private"),
        (
            TABLE.table,
            {"steps": TABLE.table.steps._replace(heights=np.append(heights[:-1], heights[-1] + 1))},
            "another total",
        ),
    ):
        make, (kind, arguments) = record.__reduce__()
        assert make(kind, arguments) == record
        assert_error(message, make, kind, {**arguments, **changes})


def test_a_state_beside_the_arguments_is_refused() -> None:
    class Forged:
        def __reduce__(self) -> tuple[Any, ...]:
            return (*Dual([1.0], [0.0]).__reduce__(), {"bound": 11.9})

    assert_error("a Dual is made by its constructor only", pickle.loads, pickle.dumps(Forged()))


def test_arrays_of_the_caller_stay_their_own() -> None:
    """Writing into the arrays that a release was built from does not change the release."""
    groups = Groups.of_ids([0, 0, 1])
    for build, names in (
        (lambda ones: PeerRelease(ones, ones), ("rows", "labels")),
        (lambda ones: ClusterRelease(ones, groups, (), None), ("labels",)),
        (lambda ones: ClusterPriors(groups, [[0.5, 0.5]] * 2, ones, 1.0), ("uniform",)),
        (lambda ones: ClusterPriorRelease(ones, None, None), ("labels",)),
        (lambda ones: LabelRelease(ones, ones, None, None, None), ("rows", "values")),
        (lambda ones: Groups(ones, np.array(["a", "b"])), ("index",)),
    ):
        given = np.array([0, 1, 1])
        made = build(given)
        given[0] = 1
        for name in names:
            assert getattr(made, name).tolist() == [0, 1, 1]
            with pytest.raises(ValueError, match="read-only"):
                getattr(made, name)[0] = 1
