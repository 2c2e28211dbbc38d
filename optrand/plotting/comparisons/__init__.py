"""Pictures that compare many randomizers, problems or runs, drawn from computed records.

============================  =========================================================================================
:func:`composition_figure`    epsilon of many releases, beside basic and advanced composition
:func:`frontier_figure`       least variance for every bias, from a :class:`optrand.studies.Sweep`
:func:`moments_figure`        loss, variance and bias against epsilon for several randomizers ([B23], Figure 4(a))
:func:`rr_with_prior_figure`  gain of RRWithPrior by each `k`, and the `k` it chooses ([G21], Algorithm 2)
:func:`shares_figure`         shares of the labels behind a release, their errors, and the truth where it is known
:func:`times_figure`          solve time against mesh size or the number of labels, from rows of benchmarks
============================  =========================================================================================
"""

from __future__ import annotations

from optrand.plotting.comparisons.composition import composition_figure
from optrand.plotting.comparisons.frontier import frontier_figure
from optrand.plotting.comparisons.kept import rr_with_prior_figure
from optrand.plotting.comparisons.moments import moments_figure
from optrand.plotting.comparisons.shares import shares_figure
from optrand.plotting.comparisons.times import times_figure

__all__ = [
    "composition_figure",
    "frontier_figure",
    "moments_figure",
    "rr_with_prior_figure",
    "shares_figure",
    "times_figure",
]
