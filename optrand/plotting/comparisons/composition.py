"""Composition of releases: epsilon of many at a small delta, beside the bounds that know the nominal epsilon only."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import FigureBase

from optrand.base.arithmetic import privacy_ratio
from optrand.base.validation import expect, integer, real
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.privacy_loss import DominatingPair
from optrand.plotting.canvas import Place, Size, canvas
from optrand.plotting.comparisons.curves import CURVES, light, looks

__all__ = ["composition_figure"]

POINTS = 16
"""Number of points of a curve at most."""


def composition_figure(
    mechanisms: dict[str, Mechanism],
    *,
    releases: int = 100,
    delta: float = 1e-6,
    ax: Place = None,
    title: bool = True,
    size: Size = None,
) -> FigureBase:
    """Epsilon of 1 to `releases` releases of each mechanism at a given delta, beside basic and advanced composition.

    Parameters
    ----------
    mechanisms : dict
        From 1 to 9 by name, all of one epsilon.
    releases : int
    delta : float
        Above 0 and below 1.

    Notes
    -----
    Basic composition is ``n epsilon`` with delta 0, advanced composition ``epsilon sqrt(2 n log(1 / delta)) + n epsilon
    (e^epsilon - 1)`` [DRV10]_, and what holds of any mechanism of that epsilon is the composition of a randomized bit
    [KOV17]_. Mechanisms are composed by :attr:`Mechanism.dominating_pair`.

    Examples
    --------
    >>> import optrand
    >>> classes = optrand.rr_with_prior([0.1] * 10, 0.1)
    >>> print(composition_figure({"10 classes": classes}, releases=20).get_suptitle())
    Releases of ε = 0.1 each, together at δ = 1e-06
    """
    expect(mechanisms, dict, "mechanisms", "a dict of mechanisms by name")
    for mechanism in mechanisms.values():
        expect(mechanism, Mechanism, "an entry of mechanisms", "a Mechanism, such as solve(problem)")
    count, small = integer(releases, "releases", 2), real(delta, "delta")
    if not 0 < small < 1:
        raise InvalidInput(f"delta is {small}, expected a number above 0 and below 1")
    budgets = {mechanism.epsilon for mechanism in mechanisms.values()}
    if len(budgets) != 1:
        raise InvalidInput(f"there are mechanisms of {len(budgets)} epsilons, expected one: draw several pictures")
    epsilon = budgets.pop()
    ratio = privacy_ratio(epsilon)
    pairs = {"any mechanism, exactly": DominatingPair(ratio, 1 / (ratio + 1))}
    pairs |= {name: mechanism.dominating_pair for name, mechanism in mechanisms.items()}
    n = np.unique(np.linspace(1, count, min(count, POINTS)).round().astype(int))
    advanced = epsilon * np.sqrt(2 * n * math.log(1 / small)) + n * epsilon * math.expm1(epsilon)
    curves = {"basic composition": n * epsilon, "advanced composition": advanced}
    for name, pair in pairs.items():
        curves[name] = np.array([pair.epsilon(small, releases=i) for i in n.tolist()])
    with canvas(CURVES, ax, size, (6.4, 4.0), title=title) as figure:
        axes = figure.add_subplot()
        for (name, values), look in zip(curves.items(), looks(list(curves), "curves"), strict=True):
            axes.plot(n, values, label=name, **look)
        axes.set(xlabel="releases of one label", ylabel=f"ε at δ = {small:g} (nats)", xlim=(0, None), ylim=(0, None))
        axes.set_ylim(top=max(n * epsilon) * 1.05)
        light(axes)
        axes.legend(loc="upper left")
        figure.suptitle(f"Releases of ε = {epsilon:g} each, together at δ = {small:g}")
    return figure
