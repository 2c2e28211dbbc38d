"""The state of one fit, with which a plan releases labels and learns from them, and fits on earlier releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from optrand.accounting._spent import Odometer, Spent
from optrand.base._validation import Floats
from optrand.baselines._additive import Additive
from optrand.baselines._groups import Groups
from optrand.errors import InvalidInput
from optrand.estimate._averages import UNBIASED, output_numbers
from optrand.learning._domain import Domain
from optrand.learning._likelihoods import LabelRelease, PriorRelease, Rows, label_inputs
from optrand.learning._private_labels import PrivateLabels
from optrand.learning._targets import Likelihood, Start, Target, likelihood_of, posterior, probabilities
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._released import Released
from optrand.model._problem import regression
from optrand.studies._many import solve_many


class RowGroup(NamedTuple):
    """Rows, and the prior over the increasing labels, the budget and the bias penalty of their optimal randomizer."""

    rows: Rows
    prior: Floats
    epsilon: float
    bias_penalty: float


@dataclass(eq=False)
class Training:
    """State of one fit."""

    X: Any
    labels: PrivateLabels
    estimator: Any  # cloned for every model
    epsilon: float  # of each row, in nats
    seed: int  # of public random choices
    domain: Domain  # in the order in which priors are counted: as declared for classes, increasing for numbers
    target: Target = Likelihood()  # noqa: RUF009
    informed: bool = False  # whether the first model of a classifier begins with priors of clusters
    bias_penalty: float = math.inf  # weight of squared bias beside half the squared error, for a regressor
    releases: list[LabelRelease] = field(default_factory=list)
    priors: list[PriorRelease] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)

    @property
    def k(self) -> int:
        return len(self.domain)

    @property
    def rows(self) -> int:
        return len(self.labels)

    @property
    def numbers(self) -> Floats:
        return np.array(self.domain.labels, dtype=np.float64)

    def features(self, rows: Rows) -> Any:
        return _safe_indexing(self.X, rows)

    def release(self, rows: Rows, randomizer: Any, *, groups: Groups | None = None) -> LabelRelease:
        """Release the labels of some rows, and keep them in `releases`, with the histograms that were drawn before."""
        drawn = self.labels.release(rows, randomizer, groups=groups)
        self.releases.append(replace(drawn, priors=tuple(self.priors)))
        return self.releases[-1]

    def release_optimally(self, groups: Sequence[RowGroup]) -> list[LabelRelease]:
        """Release labels by the optimal randomizer of each group. All are solved before any label is drawn."""
        problems = [regression(self.numbers, one.prior, one.epsilon, bias_penalty=one.bias_penalty) for one in groups]
        mechanisms = solve_many(problems)
        return [self.release(one.rows, mechanism) for one, mechanism in zip(groups, mechanisms, strict=True)]

    def prior(self, rows: Rows, epsilon: float, *, bins: NDArray[np.intp] | None = None) -> PriorRelease:
        """Release a histogram of some rows over the domain, or over bins of it, and keep it in `priors`."""
        self.priors.append(self.labels.prior(rows, self.domain, epsilon, bins=bins))
        return self.priors[-1]

    def beliefs(self, model: Any, rows: Rows) -> Floats:
        return probabilities(model, self.features(rows), self.k)

    def predict(self, model: Any, rows: Rows) -> Floats:
        """Return the predictions of a regressor, clipped to the range of the labels."""
        return clip_to_range(model.predict(self.features(rows)), self.numbers)

    def learn(self, releases: Sequence[LabelRelease], *, before: Any = None, beliefs: Floats | None = None) -> Any:
        """Train a classifier on releases.

        Training starts from the predictions of the model `before`, or without one from `beliefs`, priors of all rows.
        """
        rows = np.concatenate([release.rows for release in releases])
        known = beliefs if before is None else self.beliefs(before, rows)
        start = Start(known, before, self.informed)
        return self.target.fit(self.estimator, self.features(rows), releases, start)

    def learn_numbers(
        self, stages: Sequence[Sequence[LabelRelease]], *, spread: float = 0.0, estimator: Any = None
    ) -> Any:
        """Train a regressor, by default that of the fit, on the noisy numbers of mechanisms, stage by stage.

        All rows of a stage have one weight: the inverse of their mean noise plus `spread`, the variance of the labels.
        As a stage is a random part of all rows, its weight does not bias the model.
        """
        releases = [release for stage in stages for release in stage]
        features, values = _examples(self.X, releases)
        model = clone(self.estimator if estimator is None else estimator)
        if len(stages) == 1:
            return model.fit(features, values)
        parts = []
        for stage in stages:
            sizes = np.array([len(release) for release in stage])
            # Twice the value of a mechanism is its variance plus its bias penalty.
            noise = np.array([2 * release.randomizer.value for release in stage])
            parts.append(np.full(sizes.sum(), 1 / (sizes @ noise / sizes.sum() + spread)))
        weights = np.concatenate(parts)
        return model.fit(features, values, sample_weight=weights / weights.mean())


def _examples(X: Any, releases: Sequence[LabelRelease]) -> tuple[Any, Floats]:
    rows = np.concatenate([release.rows for release in releases])
    return _safe_indexing(X, rows), np.concatenate([release.values for release in releases], dtype=np.float64)


def clip_to_range(predictions: Any, labels: Floats) -> Floats:
    return np.asarray(predictions, dtype=np.float64).clip(labels[0], labels[-1])


def tilt_priors(prior: Floats, labels: Floats, means: Floats, weights: NDArray[Any] | None = None) -> Floats:
    r"""Compute the distribution over increasing labels of each predicted mean, by exponential tilting of a prior.

    .. math:: p_i(y) \propto p(y) \, e^{\theta_i y - \tau y^2 / 2}

    The tilt :math:`\theta_i` gives row `i` its mean. One :math:`\tau \geq 0` for all rows takes from the prior's
    variance the part that the predictions explain, so that the rows' distributions have, together, the variance of the
    prior, which is positive everywhere. `weights` are the numbers of rows of each mean, by default 1. Shape ``(m, K)``.
    """
    scale = labels[-1] - labels[0]
    places = (labels - labels[0]) / scale
    # At the very ends the tilt would be infinite, and the randomizer's prior would have a single label.
    wanted = np.clip((means - labels[0]) / scale, 1e-3, 1 - 1e-3)
    shares = np.full(means.size, 1 / means.size) if weights is None else weights / weights.sum()
    total = float(prior @ (places - prior @ places) ** 2)
    left = total - float(shares @ (wanted - shares @ wanted) ** 2)

    def excess(tau: float) -> float:
        rows = _tilt(prior, places, wanted, tau)
        return float(shares @ (rows @ places**2 - (rows @ places) ** 2)) - left

    # The variance within rows falls as tau grows. At 1e4 a row's deviation is a hundredth of the range.
    narrowest = 1e4
    tau = 0.0 if excess(0.0) <= 0 else narrowest
    if tau and excess(narrowest) < 0:
        tau = float(brentq(excess, 0.0, narrowest, rtol=1e-6))
    return _tilt(prior, places, wanted, tau)


def _tilt(prior: Floats, places: Floats, means: Floats, tau: float) -> Floats:
    """Tilt a narrowed prior to each mean, by bisection. Means increase with the tilt."""
    logs = np.log(prior) - tau * places**2 / 2
    low, high = np.full(means.size, -1e4), np.full(means.size, 1e4)
    # 60 halvings determine a tilt to the precision of floats.
    for _ in range(60):
        middle = (low + high) / 2
        above = softmax(logs + middle[:, np.newaxis] * places, axis=1) @ places > means
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(softmax(logs + ((low + high) / 2)[:, np.newaxis] * places, axis=1))


def is_release(y: Any) -> bool:
    """Return whether `y` is released labels: a pair of labels and record, or releases of private labels."""
    if isinstance(y, (list, tuple)) and y and all(isinstance(one, LabelRelease) for one in y):
        return True
    pair = isinstance(y, tuple) and len(y) in (2, 3)
    return isinstance(y, LabelRelease) or (pair and (isinstance(y[1], (Mechanism, Released)) or _is_frame(y[1])))


def releases_of(y: Any, rows: int) -> list[LabelRelease]:
    """Split released labels into one release for each mechanism, without rows whose label is missing.

    `y` is as in :meth:`LabelDPClassifier.fit`. In a pair the record may also be the mechanism that drew the labels.
    Raise InvalidInput if labels are of other rows, or values cannot have been drawn by the mechanism.
    """
    if isinstance(y, tuple) and not isinstance(y[0], LabelRelease):
        if len(y[0]) != rows:
            raise InvalidInput(
                f"X has {rows} samples and the release {len(y[0])}, expected a released label for each row"
            )
        releases = _of_record(*y)
    else:
        releases = [y] if isinstance(y, LabelRelease) else list(y)
    if any(release.domain.labels != releases[0].domain.labels for release in releases):
        raise InvalidInput("the releases are of different domains: train on each alone")
    if any(release.rows.size and release.rows.max() >= rows for release in releases):
        raise InvalidInput(f"the releases are of more rows than the {rows} samples of X: pass the X of their holder")
    if not sum(len(release) for release in releases):
        raise InvalidInput("all released labels are missing: nothing is left to train on")
    return releases


def account_of(releases: Sequence[LabelRelease], rows: int) -> Spent:
    """Return the largest payment of a row for some releases and the histograms that chose their randomizers."""
    # Several releases share a histogram, which was drawn once.
    priors = {id(prior): prior for release in releases for prior in release.priors}.values()
    odometer = Odometer(max(rows, *(int(prior.rows.max()) + 1 for prior in priors)) if priors else rows)
    for prior in priors:
        odometer.charge(prior.rows, Spent(prior.epsilon))
    for release in releases:
        odometer.charge(release.rows, release.spent)
    return odometer.cost


def priors_of(releases: Sequence[LabelRelease]) -> Floats | None:
    """Return the prior of each released row's mechanism over the domain, shape ``(n, K)``, or None for other noise.

    The likelihood does not contain them, and a release by groups has paid for them.
    """
    if not all(isinstance(release.randomizer, Mechanism) for release in releases):
        return None
    rows = []
    for release in releases:
        places = np.searchsorted(release.randomizer.labels, label_inputs(release.randomizer, release.domain))
        prior = release.randomizer.prior[places] + 1e-6
        rows.append(np.tile(prior / prior.sum(), (len(release), 1)))
    return np.concatenate(rows)


def fit_numbers(estimator: Any, X: Any, releases: Sequence[LabelRelease]) -> Any:
    r"""Train a regressor on released numbers.

    Unbiased values are used as they are. Biased ones are replaced, in five rounds of Fisher scoring, by

    .. math:: m_i + \frac{s_i}{\rho}, \qquad s_i = E[y \mid z_i, m_i] - m_i, \qquad
              \rho = \frac{\sum_i s_i^2}{\sum_i s_i^2 + \operatorname{Var}[y \mid z_i, m_i]},

    where :math:`m_i` is the prediction of the round before, and a label is distributed as the mechanism's prior, tilted
    to that mean. A fixed point is one of expectation maximisation, which would take a share :math:`\rho` of each step:
    the part of a label's variance that is left in a released one, 1 without noise. It is kept above half of its first
    value.
    """
    if all(_is_unbiased(release.randomizer) for release in releases):
        return clone(estimator).fit(*_examples(X, releases))
    features = _safe_indexing(X, np.concatenate([release.rows for release in releases]))
    order = releases[0].domain.order
    numbers = np.array(releases[0].domain.numbers)[order]
    table, priors = likelihood_of(releases)[:, order], priors_of(releases)
    prior = np.full(numbers.size, 1 / numbers.size) if priors is None else priors[:, order].mean(axis=0)
    # Predicted means are rounded to 256 levels, so that rows share their tilted priors.
    levels = np.linspace(numbers[0], numbers[-1], 256)
    means, least = np.full(table.shape[0], prior @ numbers), 0.0
    # The same number of rounds as in Likelihood.
    for _ in range(5):
        nearest = np.abs(means[:, np.newaxis] - levels).argmin(axis=1)
        beliefs = tilt_priors(prior, numbers, levels, np.bincount(nearest, minlength=levels.size))[nearest]
        means, after = beliefs @ numbers, posterior(table, beliefs)
        steps = after @ numbers - means
        # Were beliefs right, the denominator would be the variance before the release. If they are wrong and the noise
        # is small, steps divided by a share of that variance would be too large.
        squares = steps @ steps
        share = squares / (squares + (after @ numbers**2 - (after @ numbers) ** 2).sum())
        # A step multiplies the error of means by about 1 - r / share, if r is the true share. Steps diverge if the
        # share is below r / 2, and are slow if it is above r. For noise of variance s, r = v / (v + s) falls with the
        # variance v that labels have beside their means: in a good model, and also at the ends of the labels, where a
        # step that was too long ends. Half the first share is a heuristic. Of 0, 1/8, 1/4 and 1/2 it was best for
        # boosting and a rare far label. It costs up to 0.03 of R2 if linear models explain nearly all of the variance.
        least = least or share / 2
        # Without any information steps are zero, and so is the share.
        share = max(share, least, np.finfo(np.float64).eps)
        model = clone(estimator).fit(features, means + steps / share)
        means = clip_to_range(model.predict(features), numbers)
    return model


def _is_unbiased(randomizer: Any) -> bool:
    if isinstance(randomizer, Additive):
        return randomizer.clip is None
    if not isinstance(randomizer, Mechanism):
        raise InvalidInput(f"a release by {type(randomizer).__name__} has no numbers: use LabelDPClassifier")
    return bool(randomizer.certificate.bias <= UNBIASED * float(np.ptp(randomizer.labels)))


def _of_record(noisy: Any, record: Any, groups: Any = None) -> list[LabelRelease]:
    """Split the released labels of a record by the mechanisms that drew them."""
    if _is_frame(record):
        raise InvalidInput("the record is of several columns: pass (noisy[column], record[column]) of one of them")
    if isinstance(record, Mechanism):
        mechanisms, values = [record], np.asarray(noisy, dtype=np.float64)
        places = np.zeros(values.size, dtype=np.intp)
    elif groups is None and record.groups:
        raise InvalidInput(
            f"the release is by groups of {', '.join(record.groups)}: pass (noisy, record, groups), with these columns"
        )
    else:
        mechanisms, places, values = record.by_row(noisy, groups)
    domain, spent, found = _domain_of(record), Spent(record.epsilon), []
    for place, mechanism in enumerate(mechanisms):
        rows = np.flatnonzero(~np.isnan(values) & (places == place))
        # This refuses values that are not outputs.
        output_numbers(values[rows], mechanism)
        if rows.size or len(mechanisms) == 1:
            found.append(LabelRelease(rows, values[rows], mechanism, domain, spent))
    return found


def _domain_of(record: Any) -> Domain:
    nominal = getattr(record, "task", None) == "classification"
    if nominal and None in record.labels:
        raise InvalidInput(
            "in the release missing labels are a class of their own: release with nulls='pass' or 'drop' to train on it"
        )
    if nominal:
        return Domain(tuple(record.labels), nominal=True)
    labels = [float(label) for label in record.labels]
    whole = all(label.is_integer() for label in labels)
    return Domain(tuple(int(label) for label in labels) if whole else tuple(labels))


def _is_frame(record: Any) -> bool:
    return hasattr(record, "columns") and hasattr(record, "epsilon") and not isinstance(record, (Mechanism, Released))
