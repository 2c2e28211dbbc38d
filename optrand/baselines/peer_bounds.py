r"""Bounds of [E22] for its peer-to-peer mechanism, beside what holds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from optrand.base.validation import integer, real
from optrand.baselines.peer_to_peer import PeerToPeer
from optrand.errors import InvalidInput

__all__ = ["PeerToPeerRow", "lemma9", "lemma9_at", "peer_to_peer_table", "theorem3", "theorem3_flip"]


def lemma9(mechanism: PeerToPeer, delta: float, size: int) -> float:
    r"""The epsilon of [E22], Lemma 9, at a delta; infinite where its hypotheses do not hold.

    .. math:: \epsilon = \theta \log\Big(e + \frac{3}{s\alpha}\Big) + \sqrt\theta\, \xi \log\Big(1 +
              \frac{3}{\sqrt{s\alpha}}\Big), \qquad
              \delta = \exp\Big(-\frac{\alpha \xi^2}{4 (\alpha + 1/s) (1 - \alpha)}\Big)

    Parameters
    ----------
    mechanism : PeerToPeer
    delta : float
        Above 0 and below 1.
    size : int
        `s`, the size of the smallest cluster.

    Notes
    -----
    Hypotheses: :math:`s \alpha \geq 2` and :math:`\xi \leq 3 \alpha \sqrt{\theta s (1 - \alpha)}`; also
    :math:`\alpha \leq 1/2`, which the proof needs and the lemma does not say.
    """
    s, alpha, theta = integer(size, "the size of a cluster", 1), mechanism.flip, mechanism.rate
    target = real(delta, "delta")
    if not 0 < target < 1:
        raise InvalidInput(f"delta is {target:g}, expected a number above 0 and below 1")
    if not 2 / s <= alpha <= 1 / 2:
        return math.inf
    xi = math.sqrt(-4 * (alpha + 1 / s) * (1 - alpha) * math.log(target) / alpha)
    return lemma9_at(mechanism, xi, s)[0] if xi <= 3 * alpha * math.sqrt(theta * s * (1 - alpha)) else math.inf


def lemma9_at(mechanism: PeerToPeer, xi: float, size: int) -> tuple[float, float]:
    r"""Epsilon and delta of [E22], Lemma 9, at a :math:`\xi`, whether or not its hypotheses hold.

    Parameters
    ----------
    mechanism : PeerToPeer
        With a flip above 0 and below 1.
    xi : float
        At least 0; the larger, the larger is epsilon, and the smaller delta.
    size : int
        `s`, the size of the smallest cluster.

    Examples
    --------
    >>> epsilon, delta = lemma9_at(PeerToPeer(0.4, 1.0), 3.7, 20)
    >>> round(epsilon, 3), round(delta, 4)
    (3.804, 0.0063)
    """
    flip, rate = mechanism.flip, mechanism.rate
    least = size * flip
    spread = math.sqrt(rate) * xi * math.log1p(3 / math.sqrt(least))
    delta = math.exp(-flip * xi**2 / (4 * (flip + 1 / size) * (1 - flip)))
    return rate * math.log(math.e + 3 / least) + spread, delta


def theorem3(mechanism: PeerToPeer, size: int) -> float:
    r"""The epsilon of [E22], Theorem 3, with the constants of its proof; infinite where it does not speak.

    Lemma 9 at :math:`\xi = 4 \sqrt{\log s}`, which gives :math:`\delta \leq 1/s^2`.

    Notes
    -----
    The theorem takes :math:`\alpha = 4 \sqrt 2 \log s / \sqrt{\theta s} \leq 1/2`, which takes more than 10,000
    users even at :math:`\theta = 1`; a larger flip, up to 1/2, serves its proof as well.
    """
    s = integer(size, "the size of a cluster", 2)
    if not theorem3_flip(s, mechanism.rate) <= mechanism.flip <= 1 / 2:
        return math.inf
    return lemma9_at(mechanism, 4 * math.sqrt(math.log(s)), s)[0]


@dataclass(frozen=True)
class PeerToPeerRow:
    r"""One line of :func:`peer_to_peer_table`: four epsilons of one mechanism, in nats.

    Attributes
    ----------
    size : int
        `s`, the users of a cluster.
    flip, rate : float
        :math:`\alpha` and :math:`\theta`.
    delta : float
        :math:`1 / s^2`.
    epsilon : float
        At this delta, by binomial sums.
    exhaustive : bool
        Whether all labels of the other users were tried.
    lemma9, theorem3 : float
        At this delta, as printed in [E22]; infinite where they do not speak.
    flips : float
        Pure, of the flips alone.
    """

    size: int
    flip: float
    rate: float
    delta: float
    epsilon: float
    exhaustive: bool
    lemma9: float
    theorem3: float
    flips: float


def theorem3_flip(size: int, rate: float) -> float:
    r"""The flip of [E22], Theorem 3: :math:`\alpha = 4 \sqrt 2 \log s / \sqrt{\theta s}`, where that is at most 1/2.

    Examples
    --------
    >>> round(theorem3_flip(20_000, 1.0), 4), round(theorem3_flip(1_000, 1.0), 4)
    (0.3961, 1.2357)
    """
    return 4 * math.sqrt(2) * math.log(size) / math.sqrt(rate * size) if rate else math.inf


def peer_to_peer_table(cases: Iterable[tuple[int, float, float]]) -> list[PeerToPeerRow]:
    r"""Epsilons of Algorithm 2 of [E22] at :math:`\delta = 1/s^2`, beside what the paper proves.

    Parameters
    ----------
    cases : iterable of (s, alpha, theta)
        Size of the cluster, probability of a flip, rate of subsampling.

    Returns
    -------
    list of PeerToPeerRow

    Notes
    -----
    Seconds for each case of up to 20,000 users, minutes for 200,000.

    Examples
    --------
    >>> for row in peer_to_peer_table([(60, 0.2, 0.5), (100, 0.1, 1.0)]):
    ...     print(f"{row.epsilon:.3f} {row.lemma9:.3f} {row.theorem3:.3f} {row.flips:.3f}")
    0.287 inf inf 1.386
    0.730 inf inf 2.197
    """
    rows = []
    for size, flip, rate in cases:
        mechanism = PeerToPeer(flip, rate)
        delta = 1 / integer(size, "the size of a cluster", 2) ** 2
        privacy = mechanism.at_delta(delta, size)
        printed = lemma9(mechanism, delta, size), theorem3(mechanism, size)
        rows.append(
            PeerToPeerRow(size, flip, rate, delta, privacy.epsilon, privacy.exhaustive, *printed, mechanism.epsilon)
        )
    return rows
