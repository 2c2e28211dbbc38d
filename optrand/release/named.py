"""Randomizers as a user names them: for a set of labels and a budget, the best of each family."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from optrand.base.arithmetic import privacy_ratio
from optrand.base.validation import Floats
from optrand.base.validation import labels as checked_labels
from optrand.baselines.additive import Additive, LatticeAdditive, as_written
from optrand.closed_forms import debiased_rr
from optrand.closed_forms.response import response_weights
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.tabulation import tabulate
from optrand.model.arcs import IntegerArcs
from optrand.model.outputs import Grid, Interval
from optrand.model.problem import classification
from optrand.model.solution import Dual
from optrand.release.declared import DeclaredOutputs, EvenGrid
from optrand.release.randomizer_file import KINDS
from optrand.studies import minimax

__all__ = ["NAMES", "lattice_step", "minimax_mechanism", "named_randomizer", "randomized_response"]


def randomized_response(labels: Floats, epsilon: float) -> Mechanism:
    r"""Randomized response in integers: the label itself is :math:`R \leq e^\epsilon` times likelier than each other.

    .. math:: W_{y v} = R_{\mathrm{num}} \text{ if } v = y, \text{ else } R_{\mathrm{den}}

    Parameters
    ----------
    labels : (k,) array
        Distinct numbers in any order.
    epsilon : float
        In nats.

    Returns
    -------
    Mechanism
        With the dual that proves it optimal for classification under a uniform prior.

    Notes
    -----
    :func:`optrand.rr` as one arc of mass 1 a label: ``O(k)`` numbers, where its table has ``k**2``. The dual is its
    closed form, the value over ``k`` for every label.

    Examples
    --------
    >>> from optrand.certificates.certificate import certify
    >>> mechanism = randomized_response(np.arange(3.0), 1.0)
    >>> (mechanism.weights[0] / mechanism.total).astype(float).round(4).tolist()
    [0.5761, 0.2119, 0.2119]
    >>> certify(mechanism).gap < 1e-12
    True
    """
    names = np.sort(checked_labels(labels))
    k = names.size
    problem = classification(np.full(k, 1 / k), epsilon, labels=names)
    dual = Dual(np.full(k, -response_weights(k, problem.epsilon)[0] / k), np.zeros(k))
    each = np.arange(k)
    arcs = IntegerArcs(k, each, each, each, np.ones(k, dtype=object))
    return Mechanism(problem, dual, names, arcs, privacy_ratio(problem.epsilon))


def lattice_step(labels: Floats) -> float:
    """The longest step of which all labels, as they are written, are whole multiples apart.

    Parameters
    ----------
    labels : (k,) array
        Increasing, at least two.

    Raises
    ------
    InvalidInput
        No float is that step.

    Examples
    --------
    >>> lattice_step(np.array([0.1, 0.3, 0.7])), lattice_step(np.array([-3.0, 0.0, 9.0]))
    (0.2, 3.0)
    """
    written = [as_written(label) for label in labels.tolist()]
    apart = [label - written[0] for label in written[1:]]
    scale = math.lcm(*(distance.denominator for distance in apart))
    step = Fraction(math.gcd(*(int(distance * scale) for distance in apart)), scale)
    nearest = float(step)
    if nearest == 0 or as_written(nearest) != step:
        raise InvalidInput("the labels are on no lattice whose step is a float: round them to fewer digits first")
    return nearest


FINITE: dict[str, Callable[[Floats, float], Mechanism]] = {
    "rr": randomized_response,
    "debiased-rr": lambda labels, epsilon: tabulate(debiased_rr(labels, epsilon)),
    "minimax": lambda labels, epsilon: minimax_mechanism(labels, epsilon),
}

NAMES = (*FINITE, *KINDS)
"""Names that :func:`named_randomizer` knows."""


def minimax_mechanism(
    labels: Floats, epsilon: float, *, bias_penalty: float = math.inf, outputs: DeclaredOutputs | None = None
) -> Mechanism:
    """Mechanism whose largest loss of all labels is least: see :func:`optrand.studies.minimax`.

    Raises
    ------
    InvalidInput
        Outputs on a grid, or no care for bias.
    """
    if isinstance(outputs, EvenGrid | Grid):
        raise InvalidInput("minimax takes outputs on the line or an interval, not a grid: leave the grid out")
    return minimax(labels, epsilon, bias_penalty=bias_penalty, outputs=outputs).tabulate()


def named_randomizer(
    name: str, labels: Floats, *, epsilon: float, clip_outputs: Interval | None = None
) -> Additive | Mechanism:
    """The randomizer of a name that needs no prior, for these labels and the whole of a budget.

    Parameters
    ----------
    name : str
        One of :data:`NAMES`.
    labels : (k,) array
        The declared set.
    epsilon : float
        In nats.
    clip_outputs : Interval, optional
        Clip noisy labels to it; additive noise only.

    Returns
    -------
    Additive or Mechanism
        Noise scaled to the range of the labels, staircases of their best shape, lattices of their longest step; the
        unbiased mechanism whose largest variance over labels is least, for ``minimax``.

    Raises
    ------
    InvalidInput
        Another name, an interval for a randomizer without noise, or arguments without meaning.

    Examples
    --------
    >>> named_randomizer("discrete-staircase", np.arange(53.0), epsilon=1.0).rise
    22
    """
    names = checked_labels(labels)
    if name in KINDS:
        # A single label is refused by the noise itself.
        lattice = issubclass(KINDS[name], LatticeAdditive) and names.size > 1
        step = {"step": lattice_step(np.sort(names))} if lattice else {}
        return KINDS[name](names, epsilon, clip=clip_outputs, **step)
    if name not in FINITE:
        raise InvalidInput(f"the randomizer is {name!r}, expected one of {', '.join(NAMES)}")
    if clip_outputs is not None:
        raise InvalidInput(
            f"{name} adds no noise that could be clipped: expected an interval for its outputs only with one of "
            f"{', '.join(KINDS)}"
        )
    return FINITE[name](names, epsilon)
