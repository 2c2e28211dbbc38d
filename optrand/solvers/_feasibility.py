"""Typical losses, the units of outputs and costs in programs, and one feasible answer in closed form."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np

from optrand import losses
from optrand.base._validation import Floats
from optrand.certificates._bound import lower_bound
from optrand.closed_forms._regression import design_gap_response, design_two_ends
from optrand.errors import InvalidInput
from optrand.mechanism._tabulation import Solution, Stats
from optrand.model._problem import Dual, Interval, Problem, unbiased_range
from optrand.model._randomizer import Randomizer


def reach(problem: Problem) -> float:
    """About how far outputs lie from the middle of the labels: unbiased ones overhang them by up to ``1 / (E - 1)``."""
    overhang = 1 / math.expm1(problem.epsilon)
    penalty = problem.bias_penalty
    # A heuristic in between: without a penalty outputs need not overhang at all, and with a large one they do as if no
    # bias were allowed.
    willing = 1.0 if problem.unbiased else penalty and penalty / (penalty + overhang**2)
    spread = float(np.ptp(problem.labels)) or 1.0
    return spread * (0.5 + overhang * willing)


def typical_loss(problem: Problem, outputs: Floats) -> float:
    """About what an answer costs: the loss of a constant output as far off as :func:`reach` says.

    In classification, where outputs are no distances, the largest prior.
    """
    if problem.loss == losses.zero_one:
        return float(problem.prior.max())
    centre = float(problem.labels[0] + problem.labels[-1]) / 2
    nearest = [int(np.abs(outputs - end).argmin()) for end in (centre - reach(problem), centre + reach(problem))]
    typical = float(np.abs(problem.prior @ problem.loss_table(outputs[nearest])).mean())
    # These outputs may lose nothing, but others do.
    return typical or float(np.abs(problem.prior @ problem.loss_table(outputs)).max()) or 1.0


def attainable_loss(problem: Problem) -> float:
    """Return the least half squared error, bias charged, of some closed-form randomizers, an estimate of the optimum.

    These are the unbiased randomizer of the two end labels, debiased randomized response ([B23], Section 3.1), and at a
    finite bias penalty the constant output. Outputs are taken to be free, as this is a unit and not a bound. The result
    is not below the loss of labels beyond the ends of the outputs, which no randomizer avoids.
    """
    apart, excess = problem.labels - problem.labels[0], math.expm1(problem.epsilon)
    spread, k = float(apart[-1]) or 1.0, problem.k
    # A constant output costs this many times its loss, as all of its error is bias.
    charged = 1.0 if problem.unbiased else 1 + problem.bias_penalty
    overhang, unavoidable = spread / excess, 0.0
    # Some losses overflow if labels are next to the largest floats.
    with np.errstate(over="ignore", invalid="ignore"):
        # Half the variance of an answer at either end of the narrowest interval: (y - L) (U - y) / 2 (section 6).
        attained = [(apart + overhang) * (apart[-1] - apart + overhang) / 2]
        # Debiased randomized response has the outputs y + k (y - mean label) / (E - 1).
        outputs = apart + k * (apart - apart.mean()) / excess
        others = np.sum(outputs**2) - 2 * apart * outputs.sum() + k * apart**2
        attained.append((others + excess * (outputs - apart) ** 2) / (2 * (excess + k)))
        if not problem.unbiased:
            attained.append(charged * (apart - problem.prior @ apart) ** 2 / 2)
            beyond = problem.labels - np.clip(problem.labels, problem.outputs.low, problem.outputs.high)
            unavoidable = float(charged * problem.prior @ beyond**2 / 2)
        least = np.nan_to_num([*np.stack(attained) @ problem.prior, unavoidable], nan=1e300, posinf=1e300)
    # A unit must not be zero, as losses of about exp(-epsilon) may be in floats.
    return max(float(least[:-1].min()), float(least[-1]), 1e-24 * spread**2)


def feasible_answer(problem: Problem) -> Solution:
    """Return a private and, if the problem requires it, unbiased randomizer in closed form, optimal or not.

    It is the answer when time is over: a gap and a bit, or the two outputs that an unbiased randomizer needs if these
    are not allowed, or with a price of bias the best constant output. Its multipliers are the better ones of its own
    and of zeros.
    """
    none, outputs = Dual(np.zeros(problem.k), np.zeros(problem.k)), problem.outputs
    if not problem.unbiased:
        # Squared error and charge of a constant output are parabolas, whose weighted sum is least at the mean label.
        best = np.clip([problem.prior @ problem.labels], outputs.low, outputs.high)
        constant = Randomizer(problem.labels, best, np.ones((problem.k, 1)), problem.epsilon)
        return Solution(problem, constant, none, Stats("feasible answer"))
    # The ends of the narrowest interval (section 6), which rounding may put slightly outside of the outputs.
    ends = Interval(*np.clip(unbiased_range(problem.labels, problem.epsilon), outputs.low, outputs.high))
    found = design_two_ends(replace(problem, outputs=ends))
    # A gap and a bit is unbiased at every epsilon (section 11), but floats may not hold its outputs, or the problem may
    # not allow them.
    with suppress(InvalidInput):
        response = design_gap_response(problem.labels, problem.prior, problem.epsilon)
        if outputs.low <= response.randomizer.outputs[0] and response.randomizer.outputs[-1] <= outputs.high:
            found = response
    duals = [none] if found.dual is None else [none, found.dual]
    return replace(found, problem=problem, dual=max(duals, key=lambda dual: lower_bound(problem, dual)))
