r"""Histograms behind a release: how precise they will be, and a mechanism made fit for them before it draws.

The optimum for squared loss need not tell neighbouring labels apart. Its counts are compared with those of debiased
randomized response, which releases every label by an output of its own: with :math:`q = 1 / (e^\epsilon + k - 1)` and
:math:`p = e^\epsilon q` its noise on the count of ``y``, a row, has under the prior ``h`` the variance

.. math:: \frac{h_y p (1 - p) + (1 - h_y) q (1 - q)}{(p - q)^2}.

Where the largest ratio of standard deviations is above :data:`MULTIPLE`, as where the optimum is singular, labels are
drawn from debiased randomized response with a small probability ``w``. Unbiased values of an indicator, of second
moment :math:`S` from the optimum and :math:`S'` from the other, are then combined to one of at most :math:`((1 - w) / S
+ w / S')^{-1}` where outputs tell which of the two drew. All of it is a function of the labels declared, epsilon and
the prior.

Of classes the optimum leaves out those that are rare, often all but one. Where the ratio is above
:data:`CLASS_MULTIPLE` randomized response, whose counts have the same errors, draws as many labels as cost
:data:`CLASS_COST` of the probability that a label stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optrand.base.validation import Floats, frozen
from optrand.closed_forms import debiased_rr
from optrand.closed_forms.response import response_weights
from optrand.errors import InvalidInput
from optrand.estimate.debiasing import Debiasing
from optrand.estimate.factors import LARGEST as FACTORED
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.mixture import mixture
from optrand.mechanism.tabulation import tabulate
from optrand.model import losses
from optrand.model.outputs import Line
from optrand.release.named import randomized_response

__all__ = ["CLASS_COST", "CLASS_MULTIPLE", "COST", "MULTIPLE", "Conditioning", "conditioned"]

MULTIPLE = 10.0
"""Standard deviation of a count, in those of debiased randomized response, above which the two are mixed."""

COST = 0.008
"""Largest share of the loss, under the prior, that mixing may cost: with the smoothing of the prior at most 1 %."""

CLASS_MULTIPLE = 10.0
"""Multiple of randomized response above which it is mixed into a mechanism of classes."""

CLASS_COST = 0.01
"""Share of the probability that a class stays, under the prior, that mixing costs."""

LARGEST = 2001
"""Most labels whose counts' errors are computed: as many solutions with a factored table."""

BLOCK = 1 << 21
"""Values of outputs that are held at a time."""


@dataclass(frozen=True, eq=False)
class Conditioning:
    """Fitness of a mechanism for histograms, and for losses whose noise is undone.

    Attributes
    ----------
    mechanism : Mechanism
    weight : float
        Share of labels that debiased randomized response draws; 0 where nothing was mixed in.
    cost : float
        Share of the loss that this costs under the prior; of classes, of the probability that one stays.

    Examples
    --------
    >>> import optrand
    >>> best = optrand.tabulate(optrand.solve(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)))
    >>> optrand.certify(best).require(gap=1e-9).epsilon
    1.0
    >>> found = Conditioning(best)
    >>> found.possible, round(found.multiple, 3)
    (True, 1.73)
    """

    mechanism: Mechanism
    weight: float = 0.0
    cost: float = 0.0

    @cached_property
    def obstacle(self) -> str:
        """Reason why no histogram can be estimated; empty where one can."""
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

        Times the root of the number of rows it is that of the whole count. None where there is no histogram, and beyond
        2,001 labels.
        """
        k = self.mechanism.labels.size
        if not self.possible or k > LARGEST:
            return None
        prior, squares = self._debiasing.prior, np.empty(k)
        step = max(1, BLOCK // self.mechanism.outputs.size)
        for start in range(0, k, step):
            block = slice(start, min(start + step, k))
            values = self._debiasing.values(np.eye(k, block.stop - start, -start))
            squares[block] = self._debiasing.chances @ values**2
        return frozen(np.sqrt(np.maximum(squares - prior, 0.0)))

    @cached_property
    def response_errors(self) -> Floats:
        """The same of debiased randomized response at the same epsilon."""
        k, prior = self.mechanism.labels.size, self.mechanism.problem.prior
        stay, other = response_weights(k, self.mechanism.epsilon)
        # p - q without cancellation.
        apart = math.expm1(self.mechanism.epsilon) * other
        rest = other * (k - 1)
        return frozen(np.sqrt(prior * stay * rest + (1 - prior) * other * (1 - other)) / apart)

    @property
    def multiple(self) -> float:
        """Largest ratio of the two errors; infinite where there is no histogram, NaN where it was not computed."""
        if not self.possible:
            return math.inf
        if self.count_errors is None:
            return math.nan
        if self.mechanism.labels.size == 1:
            return 1.0
        return float((self.count_errors / self.response_errors).max())

    @property
    def words(self) -> str:
        """What can be estimated of the labels' histogram, in a line."""
        if not self.possible:
            return f"no histogram, no loss of a label: {self.obstacle}"
        if self.count_errors is None:
            return "histogram and losses"
        mixed = f"; it draws {self.weight:.2g} of the labels, at {self.cost:.2%} of {self.lost}" if self.weight else ""
        return (
            f"histogram and losses, each count within {self.multiple:.3g} times the noise of debiased randomized "
            f"response{mixed}"
        )

    @property
    def lost(self) -> str:
        """Words for the quantity that :attr:`cost` is a share of."""
        return "the chance that a class stays" if self.mechanism.problem.loss == losses.zero_one else "the loss"

    @cached_property
    def _debiasing(self) -> Debiasing:
        return Debiasing.of(self.mechanism)


def conditioned(mechanism: Mechanism) -> Conditioning:
    """Fitness of an optimum for histograms, mixed with randomized response where that is worth it.

    Parameters
    ----------
    mechanism : Mechanism
        The optimum for the prior of its problem. Any other than an unbiased one of arcs on the line, or one of classes,
        is left as it is.

    Returns
    -------
    Conditioning
        Of the mechanism to draw from: a weight just large enough for :data:`MULTIPLE`, at a cost of at most
        :data:`COST`; of classes one that costs :data:`CLASS_COST`.
    """
    found, problem = Conditioning(mechanism), mechanism.problem
    if problem.loss == losses.zero_one:
        return _of_classes(found)
    unbiased_on_the_line = mechanism.arcs is not None and problem.outputs == Line() and problem.bias_penalty == math.inf
    if not unbiased_on_the_line or not found.multiple > MULTIPLE:
        return found
    response = tabulate(debiased_rr(mechanism.labels, mechanism.epsilon, prior=problem.prior))
    if response.ratio != mechanism.ratio:
        return found
    least, dearer = (float(problem.prior @ one.losses()) for one in (mechanism, response))
    weight = min(_wanted(found), COST * least / (dearer - least)) if dearer > least else 1 / 2
    mixed = mixture(mechanism, response, weight)
    return Conditioning(mixed, weight, float(problem.prior @ mixed.losses()) / least - 1)


def _of_classes(found: Conditioning) -> Conditioning:
    """Classes mixed with randomized response; tables too large to be debiased are left."""
    best = found.mechanism
    k, prior = best.labels.size, best.problem.prior
    if k < 2 or k**2 > FACTORED or not found.multiple > CLASS_MULTIPLE:
        return found
    response = randomized_response(best.labels, best.epsilon)
    if response.ratio != best.ratio:
        return found
    stays, other = (float(prior @ _kept(one)) for one in (best, response))
    weight = min(1 / 2, CLASS_COST * stays / (stays - other)) if stays > other else 1 / 2
    mixed = mixture(best, response, weight)
    return Conditioning(mixed, weight, 1 - float(prior @ _kept(mixed)) / stays)


def _kept(mechanism: Mechanism) -> Floats:
    """Probability of each class to stay what it is, shape ``(k,)``."""
    table = mechanism.randomizer
    same: Floats = np.where(table.outputs == table.labels[:, np.newaxis], table.matrix, 0.0).sum(axis=1)
    return same


def _wanted(found: Conditioning) -> float:
    """Weight of debiased randomized response with which no count's error is above :data:`MULTIPLE` times its own."""
    prior, other = found.mechanism.problem.prior, found.response_errors**2
    allowed, best = 1 / (MULTIPLE**2 * other + prior), 1 / (other + prior)
    now = np.zeros_like(prior) if found.count_errors is None else 1 / (found.count_errors**2 + prior)
    return float(np.max((allowed - now) / (best - now), where=now < allowed, initial=0.0))
