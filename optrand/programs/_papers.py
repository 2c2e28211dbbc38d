"""The linear programs of the papers, row for row as they are printed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from optrand.base._validation import check_epsilon, check_prior, suggest_parameters
from optrand.programs._constraints import Unbiased
from optrand.programs._privacy import Pure
from optrand.programs._program import Program
from optrand.programs._rows import Rows, Sense


@suggest_parameters
def lp1(prior: ArrayLike, epsilon: float, *, form: str = "pairwise") -> Program:
    r"""Return LP1 of [G21], proof of Theorem 3: the largest probability that the output is the label.

    .. math:: \max_M \sum_y p_y M_{y y} \quad\text{s.t.}\quad M_{y o} \leq e^\epsilon M_{z o}, \quad
              \sum_o M_{y o} = 1, \quad M \geq 0.

    Parameters
    ----------
    prior : (K,) array
        Probabilities of the classes ``0 ... K-1``.
    epsilon : float
        In nats.
    form : str
        ``"pairwise"``, as printed, or ``"floor"``; see :class:`~optrand.programs.Pure`.

    Examples
    --------
    >>> answer = lp1([0.5, 0.3, 0.2], 1.0).solve()
    >>> round(answer.value, 6), answer.certify().gap < 1e-9
    (0.584847, True)
    """
    shares = check_prior(prior)
    classes = np.arange(shares.size)
    return Program(classes, shares, classes, loss=np.eye(shares.size), privacy=Pure(epsilon, form=form), maximize=True)


@suggest_parameters
def lp2(prior: ArrayLike, epsilon: float) -> Program:
    r"""Return LP2 of [G21], proof of Theorem 3: a relaxation of LP1 with the diagonal ``q[y] = M[y, y]`` alone.

    .. math:: \max_q \sum_y p_y q_y \quad\text{s.t.}\quad q_y + e^{-\epsilon} \sum_{z \neq y} q_z \leq 1, \quad q \geq
              0.

    The rows imply ``q[y] <= 1`` as well.

    Parameters
    ----------
    prior : (K,) array
        Probabilities of the classes.
    epsilon : float
        In nats.

    Examples
    --------
    >>> program = lp2([0.5, 0.3, 0.2], 1.0)
    >>> program.row_names()[0], round(program.solve().value, 6)
    ('kept[0]', 0.584847)
    """
    shares, budget = check_prior(prior), check_epsilon(epsilon)
    classes = np.arange(shares.size)
    row, column = classes[:, np.newaxis], classes[np.newaxis, :]
    powers = np.where(row == column, 0.0, -budget)
    rows = Rows.of(
        *("kept", Sense.LESS, [(row, column, 1.0, powers)], 1.0),
        shape=(shares.size,),
        label=str,
    )
    return Program.without_table((f"q[y={y}]" for y in classes), shares, [rows], maximize=True)


@suggest_parameters
def algorithm1(
    labels: ArrayLike, prior: ArrayLike, epsilon: float, outputs: ArrayLike, *, form: str = "pairwise"
) -> Program:
    r"""Return the program of Algorithm 1 of [B23], ComputeOptUnbiasedRand, for half the squared error.

    .. math:: \min_M \sum_y p_y \sum_o M_{y o} \tfrac12 (v_o - y)^2 \quad\text{s.t.}\quad
              M_{y o} \leq e^\epsilon M_{z o}, \quad \sum_o M_{y o} = 1, \quad \sum_o M_{y o} v_o = y, \quad M \geq 0.

    Parameters
    ----------
    labels, prior : (k,) arrays
        Increasing numbers, and their probabilities.
    epsilon : float
        In nats.
    outputs : (n,) array
        Increasing numbers, such as ``optrand.feasible_output_set(labels, epsilon, n).values`` (Algorithm 2).
    form : str
        ``"pairwise"``, as printed, or ``"floor"``.

    Notes
    -----
    For another loss, other constraints or another notion of privacy use :class:`~optrand.programs.Program`. Outputs
    anywhere on the line need no program: :func:`optrand.unbiased_regression`.

    Examples
    --------
    >>> program = algorithm1([0, 1, 2], [0.5, 0.3, 0.2], 1.0, [-1.5, 0, 1, 2, 3.5])
    >>> program.row_names()[3:5], float(program.cost[0])
    (['mean[0]', 'mean[1]'], 0.5625)
    """
    return Program(labels, prior, outputs, privacy=Pure(epsilon, form=form), constraints=[Unbiased()])
