"""Backends: one convention of signs for every engine."""

import math

import numpy as np
import pytest
from scipy import sparse

from optrand.programs import Cvxpy, Highs
from optrand.programs._backends import Form
from optrand.programs._certificate import Status
from optrand.solvers._clarabel import Clarabel, ConicProgram

ENGINES = [Highs(), Highs(method="ipm"), Cvxpy(), Cvxpy(solver="HIGHS"), Cvxpy(solver="SCIPY")]

ACCURACY = 1e-6
"""Accuracy of the least accurate backend, an interior-point engine with its own default tolerances."""

every_engine = pytest.mark.parametrize("engine", ENGINES, ids=repr)


def form(cost, equal, equal_to, less, less_than):
    """Two kinds of rows, ``equal @ x == equal_to`` first, then ``less @ x <= less_than``."""
    return Form(
        np.array(cost, dtype=float),
        sparse.csr_array(np.vstack((equal, less)).astype(float)),
        np.concatenate((equal_to, np.full(len(less_than), -np.inf))),
        np.concatenate((equal_to, less_than)).astype(float),
        np.full(len(cost), np.inf),
    )


@every_engine
def test_signs_of_an_equation_and_of_an_inequality(engine):
    """Minimise x + 2 y with x + y = 1 and x <= 1/4: x = 1/4, y = 3/4, cost 7/4.

    One unit more of the equation is one more y, at 2. One unit more of the bound moves one from y to x, which saves 1.
    """
    answer = engine.run(form([1, 2], [[1, 1]], [1], [[1, 0]], [0.25]))
    assert answer.x == pytest.approx([0.25, 0.75], abs=ACCURACY)
    assert answer.multipliers == pytest.approx([2.0, -1.0], abs=ACCURACY)


@every_engine
def test_multipliers_are_derivatives_and_leave_no_negative_reduced_cost(engine):
    rng = np.random.default_rng(3)
    equal, less = rng.uniform(0.1, 1, (2, 6)), rng.uniform(0.1, 1, (3, 6))
    inside = rng.uniform(0.1, 1, 6)
    cost, equal_to, less_than = rng.uniform(0.5, 2, 6), equal @ inside, less @ inside + 0.01
    answer = engine.run(form(cost, equal, equal_to, less, less_than))
    equal_dual, less_dual = answer.multipliers[:2], answer.multipliers[2:]
    assert (answer.x >= -ACCURACY).all()
    assert (less_dual <= ACCURACY).all()
    reduced = cost - equal.T @ equal_dual - less.T @ less_dual
    assert (reduced >= -ACCURACY).all()
    assert cost @ answer.x == pytest.approx(equal_to @ equal_dual + less_than @ less_dual, abs=ACCURACY)
    step = 1e-4
    for i in range(2):
        moved = engine.run(form(cost, equal, equal_to + step * np.eye(2)[i], less, less_than))
        change = cost @ (moved.x - answer.x) / step
        assert change == pytest.approx(equal_dual[i], abs=1e-2)


@every_engine
def test_a_program_without_an_answer_is_said_to_have_none(engine):
    answer = engine.run(form([1, 1], [[1, 1]], [1], [[1, 1]], [0.5]))
    assert answer.status is not Status.OPTIMAL
    assert not (answer.x.size and answer.multipliers.size)


def cone(cost, equal, equal_to, less, less_than, quadratic):
    """A program in ``c, m, q`` and others, with ``m^2 <= c q``: the cone ``c + q >= hypot(c - q, 2 m)``."""
    triples = np.zeros((3, len(cost)))
    triples[:, :3] = [[-1, 0, -1], [-1, 0, 1], [0, -2, 0]]
    matrices = [sparse.csc_array(np.array(rows, dtype=float)) for rows in (np.diag(quadratic), equal, less)]
    right = np.array(equal_to, dtype=float), np.array(less_than, dtype=float)
    cones = sparse.csc_array(triples)
    return ConicProgram(matrices[0], np.array(cost, dtype=float), matrices[1], right[0], matrices[2], right[1], cones)


def test_signs_of_a_cone_program():
    """Minimise q - m with c = 2 and m^2 <= c q: q = m^2 / 2 is least with m at 1. The cost is -1/2 = -c / 4."""
    answer = Clarabel().solve(cone([0, -1, 1], [[1, 0, 0]], [2], np.zeros((0, 3)), [], np.zeros(3)))
    assert answer.x == pytest.approx([2.0, 1.0, 0.5], abs=ACCURACY)
    assert answer.equal_dual == pytest.approx([-0.25], abs=ACCURACY)
    # In the cone lies (c + q, c - q, 2 m), on its boundary. The multipliers lie in it too, and at right angles.
    assert answer.cone_slack == pytest.approx(np.array([[2.5, 1.5, 2.0]]), abs=ACCURACY)
    (a, b, c), slack = answer.cone_dual[0], answer.cone_slack[0]
    assert a == pytest.approx(math.hypot(b, c), abs=ACCURACY)
    assert (a, b, c) @ slack == pytest.approx(0.0, abs=ACCURACY)
    # The cost of q, 1, is its share of the multipliers: cost = - (a, b, c) @ rows.
    assert a - b == pytest.approx(1.0, abs=ACCURACY)


def test_a_cone_program_with_a_bound_and_a_quadratic_cost():
    """Minimise q + 3 b^2 / 2 with c = 1, m + b = 2, m <= 1/2.

    At m = 1/2 b is 3/2, and q = 1/4. One unit more of the mean costs 3 b = 9/2, one more of c saves q / c = 1/4.
    """
    equal, less = [[1, 0, 0, 0], [0, 1, 0, 1]], [[0, 1, 0, 0]]
    answer = Clarabel().solve(cone([0, 0, 1, 0], equal, [1, 2], less, [0.5], [0, 0, 0, 3.0]))
    assert answer.x == pytest.approx([1.0, 0.5, 0.25, 1.5], abs=ACCURACY)
    assert answer.equal_dual == pytest.approx([-0.25, 4.5], abs=ACCURACY)
    assert answer.status


def test_a_cone_program_without_an_answer():
    """No m and q go with c = -1."""
    answer = Clarabel().solve(cone([0, 0, 1], [[1, 0, 0]], [-1], np.zeros((0, 3)), [], np.zeros(3)))
    assert "Infeasible" in answer.status
