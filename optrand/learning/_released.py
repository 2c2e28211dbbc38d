"""Training on labels that were released before: they are never randomized again, and nothing is charged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from optrand.accounting._spent import Odometer, Spent
from optrand.base._validation import Floats
from optrand.baselines._additive import Additive
from optrand.errors import InvalidInput
from optrand.estimate._averages import UNBIASED, output_numbers
from optrand.learning._domain import Domain
from optrand.learning._likelihoods import LabelRelease, label_inputs
from optrand.learning._targets import likelihood_of, posterior
from optrand.learning._training import clip_to_range, tilt_priors
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._released import Released


def is_release(y: Any) -> bool:
    """Return whether `y` is released labels: a pair of labels and record, or releases of private labels."""
    if isinstance(y, LabelRelease):
        return True
    if not isinstance(y, (list, tuple)) or not y:
        return False
    if all(isinstance(one, LabelRelease) for one in y):
        return True
    return isinstance(y, tuple) and len(y) in (2, 3) and (isinstance(y[1], (Mechanism, Released)) or _is_frame(y[1]))


def releases_of(y: Any, rows: int) -> list[LabelRelease]:
    """Return released labels as one release for each mechanism, without rows whose label is missing.

    `y` is as in :meth:`LabelDPClassifier.fit`. In a pair the record may also be the mechanism that drew the labels.
    Raise if labels are of other rows, or values cannot have been drawn by the mechanism.
    """
    releases = _of_record(*y) if isinstance(y, tuple) and not isinstance(y[0], LabelRelease) else _of_holder(y)
    if any(release.domain.labels != releases[0].domain.labels for release in releases):
        raise InvalidInput("the releases are of different domains: train on each alone")
    if isinstance(y, tuple) and not isinstance(y[0], LabelRelease) and len(y[0]) != rows:
        raise InvalidInput(f"X has {rows} samples and the release {len(y[0])}, expected a released label for each row")
    if any(release.rows.size and release.rows.max() >= rows for release in releases):
        raise InvalidInput(f"the releases are of more rows than the {rows} samples of X: pass the X of their holder")
    if not sum(len(release) for release in releases):
        raise InvalidInput("all released labels are missing: nothing is left to train on")
    return releases


def account_of(releases: Sequence[LabelRelease], rows: int) -> Spent:
    odometer = Odometer(rows)
    for release in releases:
        odometer.charge(release.rows, release.spent)
    return odometer.realised


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

    Unbiased values are trained on as they are. Biased ones are replaced, in five rounds of Fisher scoring, by

    .. math:: m_i + \frac{E[y \mid z_i, m_i] - m_i}{\rho}, \qquad
              \rho = \frac{\sum_i (E[y \mid z_i, m_i] - m_i)^2}{\sum_i \operatorname{Var}[y \mid m_i]},

    where :math:`m_i` is the prediction of the round before, and a label is distributed as the mechanism's prior, tilted
    to that mean. A fixed point is one of expectation maximisation, which would take a share :math:`\rho` of each step:
    the part of a label's variance that is left in a released one.
    """
    features = _safe_indexing(X, np.concatenate([release.rows for release in releases]))
    if all(_is_unbiased(release.randomizer) for release in releases):
        values = np.concatenate([np.asarray(release.values, dtype=np.float64) for release in releases])
        return clone(estimator).fit(features, values)
    order = releases[0].domain.order
    numbers = np.array(releases[0].domain.numbers)[order]
    table, priors = likelihood_of(releases)[:, order], priors_of(releases)
    prior = np.full(numbers.size, 1 / numbers.size) if priors is None else priors[:, order].mean(axis=0)
    # Predicted means are rounded to 256 levels, so that rows share their tilted priors.
    levels = np.linspace(numbers[0], numbers[-1], 256)
    means = np.full(table.shape[0], prior @ numbers)
    # As many rounds as Likelihood has.
    for _ in range(5):
        nearest = np.abs(means[:, np.newaxis] - levels).argmin(axis=1)
        beliefs = tilt_priors(prior, numbers, levels, np.bincount(nearest, minlength=levels.size))[nearest]
        means = beliefs @ numbers
        steps = posterior(table, beliefs) @ numbers - means
        share = (steps @ steps) / (beliefs @ numbers**2 - means**2).sum()
        model = clone(estimator).fit(features, means + steps / share)
        means = clip_to_range(model.predict(features), numbers)
    return model


def _is_unbiased(randomizer: Any) -> bool:
    if isinstance(randomizer, Additive):
        return randomizer.clip is None
    if not isinstance(randomizer, Mechanism):
        raise InvalidInput(f"a release by {type(randomizer).__name__} has no numbers: take LabelDPClassifier")
    return bool(randomizer.certificate.bias <= UNBIASED * float(np.ptp(randomizer.labels)))


def _of_holder(y: Any) -> list[LabelRelease]:
    return [y] if isinstance(y, LabelRelease) else list(y)


def _of_record(noisy: Any, record: Any, groups: Any = None) -> list[LabelRelease]:
    """Split the released labels of a record by the mechanisms that drew them."""
    if _is_frame(record):
        raise InvalidInput("the record is of several columns: pass (noisy[column], record[column]) of one of them")
    if isinstance(record, Mechanism):
        mechanisms, values = [record], np.asarray(noisy, dtype=np.float64)
        places = np.zeros(values.size, dtype=np.intp)
    else:
        mechanisms, places, values = record.by_row(noisy, groups)
    domain = _domain_of(record)
    present = ~np.isnan(values)
    found = [np.flatnonzero(present & (places == place)) for place in range(len(mechanisms))]
    spent = Spent(record.epsilon)
    for rows, mechanism in zip(found, mechanisms, strict=True):
        # Refuses values that are no outputs.
        output_numbers(values[rows], mechanism)
    return [
        LabelRelease(rows, values[rows], mechanism, domain, spent)
        for rows, mechanism in zip(found, mechanisms, strict=True)
        if rows.size or len(mechanisms) == 1
    ]


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
