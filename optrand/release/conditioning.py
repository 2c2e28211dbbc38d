r"""Fitness of a mechanism for histograms, and a mixture that is fit for them.

The optimum for squared loss may draw neighbouring labels from the same distribution. Its counts are compared with
those of debiased randomized response, which releases every label by an output of its own: with :math:`q = 1 /
(e^\epsilon + k - 1)` and :math:`p = e^\epsilon q` its noise on the count of ``y`` has, for one row under the prior
``h``, the variance

.. math:: \frac{h_y p (1 - p) + (1 - h_y) q (1 - q)}{(p - q)^2}.

If the largest ratio of standard deviations is above :attr:`Limits.multiple`, labels are drawn from debiased randomized
response with a small probability ``w``. Unbiased values of an indicator, of second moment :math:`S` from the optimum
and :math:`S'` from the other, then have a combination of at most :math:`((1 - w) / S + w / S')^{-1}`, if outputs show
which of the two drew. All of it is a function of the declared labels, epsilon and the prior.

The optimum for classes leaves out those that are rare, often all but one. If its ratio is too large, randomized
response draws as many labels as cost :attr:`Limits.class_cost` of the probability that a label stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optrand.base.validation import Floats, frozen
from optrand.closed_forms import debiased_rr, rr
from optrand.closed_forms.response import response_weights
from optrand.errors import InvalidInput
from optrand.estimate.debiasing import LARGEST as FACTORED
from optrand.estimate.debiasing import Debiasing
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.mixture import mixture
from optrand.model import losses
from optrand.model.outputs import Line

__all__ = ["Conditioning", "Limits", "condition"]


@dataclass(frozen=True)
class Limits:
    """Limits of mixing.

    Attributes
    ----------
    multiple : float
        Standard deviation of a count, as a multiple of that of (debiased) randomized response, above which the two
        are mixed.
    cost : float
        Largest share of the loss under the prior that mixing may cost. Together with the smoothing of the prior it is
        at most 1 %.
    class_cost : float
        Share of the probability that a class stays, under the prior, that mixing costs.
    labels : int
        Most labels for which errors of counts are computed: as many solutions with a factored table.
    block : int
        Values of outputs that are held in memory at a time.
    """

    multiple: float = 10.0
    cost: float = 0.008
    class_cost: float = 0.01
    labels: int = 2001
    block: int = 1 << 21


LIMITS = Limits()


@dataclass(frozen=True, eq=False)
class Conditioning:
    """Fitness of a mechanism for histograms, and for losses whose noise is undone.

    Attributes
    ----------
    mechanism : Mechanism
    weight : float
        Share of labels that (debiased) randomized response draws. 0 if nothing was mixed in.
    cost : float
        Share of the loss that this costs under the prior; of classes, of the probability that one stays.

    Examples
    --------
    >>> import optrand
    >>> best = optrand.solve(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0))
    >>> found = Conditioning(best)
    >>> found.possible, round(found.multiple, 3)
    (True, 1.73)
    """

    mechanism: Mechanism
    weight: float = 0.0
    cost: float = 0.0

    @cached_property
    def obstacle(self) -> str:
        """Reason why no histogram can be estimated; empty if one can."""
        try:
            _ = self._debiasing
        except InvalidInput as error:
            return str(error)
        return ""

    @property
    def possible(self) -> bool:
        """Whether histograms, and losses without the noise's bias, can be estimated."""
        return not self.obstacle

    @cached_property
    def count_errors(self) -> Floats | None:
        """Standard deviation of the noise on each count, shape ``(k,)``, for one row under the prior.

        Times the root of the number of rows it is that of the whole count. None if there is no histogram, or too many
        labels to compute it.
        """
        k = self.mechanism.labels.size
        if not self.possible or k > LIMITS.labels:
            return None
        prior, squares = self._debiasing.prior, np.empty(k)
        step = max(1, LIMITS.block // self.mechanism.outputs.size)
        for start in range(0, k, step):
            block = slice(start, min(start + step, k))
            values = self._debiasing.values(np.eye(k, block.stop - start, -start))
            squares[block] = self._debiasing.chances @ values**2
        return frozen(np.sqrt(np.maximum(squares - prior, 0.0)))

    @cached_property
    def response_errors(self) -> Floats:
        """The same for debiased randomized response at the same epsilon."""
        k, prior = self.mechanism.labels.size, self.mechanism.problem.prior
        stay, other = response_weights(k, self.mechanism.epsilon)
        # p - q without cancellation.
        apart = math.expm1(self.mechanism.epsilon) * other
        rest = other * (k - 1)
        return frozen(np.sqrt(prior * stay * rest + (1 - prior) * other * (1 - other)) / apart)

    @property
    def multiple(self) -> float:
        """Largest ratio of the two errors; infinite without a histogram, NaN if it was not computed."""
        if not self.possible:
            return math.inf
        if self.count_errors is None:
            return math.nan
        if self.mechanism.labels.size == 1:
            return 1.0
        return float((self.count_errors / self.response_errors).max())

    @property
    def lost(self) -> str:
        """Name of the quantity that :attr:`cost` is a share of."""
        return "the chance that a class stays" if self.mechanism.problem.loss == losses.zero_one else "the loss"

    @cached_property
    def _debiasing(self) -> Debiasing:
        return Debiasing.of(self.mechanism)


def condition(mechanism: Mechanism) -> Conditioning:
    """Mix randomized response into an optimum if histograms need it.

    Parameters
    ----------
    mechanism : Mechanism
        The optimum for the prior of its problem. Any other than an unbiased one on the line, or one of classes, is left
        as it is.

    Returns
    -------
    Conditioning
        Parts of the mechanism, with a weight just large enough for :attr:`Limits.multiple`, at a cost of at most
        :attr:`Limits.cost`; of classes a weight that costs :attr:`Limits.class_cost`.
    """
    found, problem = Conditioning(mechanism), mechanism.problem
    if problem.loss == losses.zero_one:
        return _condition_classes(found)
    unbiased_on_the_line = mechanism.arcs is not None and problem.outputs == Line() and problem.bias_penalty == math.inf
    if not unbiased_on_the_line or not found.multiple > LIMITS.multiple:
        return found
    response = debiased_rr(mechanism.labels, mechanism.epsilon, prior=problem.prior)
    least, dearer = (float(problem.prior @ one.losses()) for one in (mechanism, response))
    weight = min(_find_weight(found), LIMITS.cost * least / (dearer - least)) if dearer > least else 1 / 2
    mixed = mixture(mechanism, response, weight)
    return Conditioning(mixed, weight, float(problem.prior @ mixed.losses()) / least - 1)


def _condition_classes(found: Conditioning) -> Conditioning:
    """Mix randomized response into a mechanism of classes, unless its table is too large to be debiased."""
    best = found.mechanism
    k, prior = best.labels.size, best.problem.prior
    if k < 2 or k**2 > FACTORED or not found.multiple > LIMITS.multiple:
        return found
    response = rr(best.labels, best.epsilon)
    if response.ratio != best.ratio:
        return found
    stays, other = (float(prior @ _stay_probabilities(one)) for one in (best, response))
    weight = min(1 / 2, LIMITS.class_cost * stays / (stays - other)) if stays > other else 1 / 2
    mixed = mixture(best, response, weight)
    return Conditioning(mixed, weight, 1 - float(prior @ _stay_probabilities(mixed)) / stays)


def _stay_probabilities(mechanism: Mechanism) -> Floats:
    """Return the probability that each class is released unchanged, shape ``(k,)``."""
    table = mechanism.randomizer
    same: Floats = np.where(table.outputs == table.labels[:, np.newaxis], table.matrix, 0.0).sum(axis=1)
    return same


def _find_weight(found: Conditioning) -> float:
    """Find the weight of debiased randomized response at which no error of a count is above the limit."""
    prior, other = found.mechanism.problem.prior, found.response_errors**2
    allowed, best = 1 / (LIMITS.multiple**2 * other + prior), 1 / (other + prior)
    now = np.zeros_like(prior) if found.count_errors is None else 1 / (found.count_errors**2 + prior)
    return float(np.max((allowed - now) / (best - now), where=now < allowed, initial=0.0))
