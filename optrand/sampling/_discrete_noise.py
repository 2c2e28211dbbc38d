"""Integer noise with exactly the probabilities of its formula, drawn from random bits in integers.

Here ``epsilon`` is a rational number, and powers of :math:`e^{-1}` are coins ([CKS20], Algorithm 1).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from optrand.sampling._entropy import EntropySource, SystemEntropy, check_width, check_words


class RandomBits:
    """Random bits in any number, from the words of a source. The rest of a word serves the next request.

    One object lives as long as one call, so that a fork can copy no random bits.
    """

    def __init__(self, source: EntropySource) -> None:
        self._source = source
        self._width = check_width(source)
        self._pool = 0
        self._held = 0

    def take(self, count: int) -> int:
        """Draw a uniform integer of `count` bits."""
        missing = -(-(count - self._held) // self._width)
        if missing > 0:
            for word in check_words(self._source, missing).tolist():
                # New words go on top: bits are used up in the order in which they came.
                self._pool |= word << self._held
                self._held += self._width
        value = self._pool & ((1 << count) - 1)
        self._pool >>= count
        self._held -= count
        return value

    def below(self, bound: int) -> int:
        """Draw a uniform integer from 0 to ``bound - 1``, by rejection: fewer than two rounds on average."""
        bits = (bound - 1).bit_length()
        while (value := self.take(bits)) >= bound:
            pass
        return value

    def bernoulli_exp(self, numerator: int, denominator: int) -> bool:
        """Return True with probability ``exp(-numerator / denominator)``, for a fraction from 0 to 1.

        Draw coins of probability ``x / 1, x / 2, ...`` until one fails. The number of the first failure is odd with
        probability ``1 - x + x^2 / 2! - ... = exp(-x)``.
        """
        trial = 1
        # A coin of probability x / trial as one comparison of integers.
        while self.below(denominator * trial) < numerator:
            trial += 1
        return trial % 2 == 1

    def survives(self, rate: Fraction) -> bool:
        """Return True with probability ``exp(-rate)``, `rate` at least 0: one coin per unit, and one for the rest."""
        whole, rest = divmod(rate.numerator, rate.denominator)
        return all(self.bernoulli_exp(1, 1) for _ in range(whole)) and self.bernoulli_exp(rest, rate.denominator)

    def geometric(self, scale: Fraction) -> int:
        """Return the integer of at least 0 with ``Pr[x]`` proportional to ``exp(-x / scale)``."""
        steps, stride = scale.numerator, scale.denominator
        # The remainder by `steps`: uniform, and kept with probability exp(-within / steps).
        while not self.bernoulli_exp(within := self.below(steps), steps):
            pass
        # The quotient: successes of probability exp(-1) before the first failure.
        whole = 0
        while self.bernoulli_exp(1, 1):
            whole += 1
        # Runs of `stride` integers have the ratio exp(-stride / steps) = exp(-1 / scale).
        return (within + steps * whole) // stride

    def laplace(self, scale: Fraction) -> int:
        return self._draw_signed(lambda: self.geometric(scale))

    def _draw_signed(self, size: Callable[[], int]) -> int:
        """Draw a size and a sign. Draw again after a negative zero, which would make zero twice as likely."""
        while True:
            drawn, negative = size(), self.take(1) == 1
            if drawn or not negative:
                return -drawn if negative else drawn

    def _two_over_e(self) -> bool:
        """Return True with probability ``2 exp(-1) = 1 - 1 / 3 + 1 / (3 * 4) - ...``, as in :meth:`bernoulli_exp`."""
        trial = 3
        while self.below(trial) == 0:
            trial += 1
        return trial % 2 == 1

    def staircase(self, epsilon: Fraction, sensitivity: int, rise: int) -> int:
        lower = sensitivity - rise
        # Halve until the lower level is below the upper one. Each half combines with one unit of epsilon to 2 / e.
        halves = min(int(epsilon), (-(-lower // rise) - 1).bit_length() if lower else 0)
        bound = max(rise << halves, lower)

        # With probability 2**halves * exp(-epsilon).
        def falls() -> bool:
            return all(self._two_over_e() for _ in range(halves)) and self.survives(epsilon - halves)

        # A round ends on the upper level with weight `rise` and on the lower one with weight ``lower * exp(-epsilon)``,
        # both times ``2**halves`` and over ``2 * bound``.
        def within() -> int:
            while True:
                if self.take(1) == 0:
                    if self.below(bound) < rise << halves:
                        return self.below(rise)
                elif self.below(bound) < lower and falls():
                    return rise + self.below(lower)

        return self._draw_signed(lambda: within() + sensitivity * self.geometric(1 / epsilon))


def discrete_laplace(scale: Fraction, count: int, *, source: EntropySource | None = None) -> tuple[int, ...]:
    """Draw integers of any size with ``Pr[x]`` exactly proportional to ``exp(-abs(x) / scale)``, for a scale above 0.

    With the scale ``t / s``: a uniform ``u < t``, kept with probability ``exp(-u / t)``, plus ``t`` times a geometric
    number of successes of probability ``exp(-1)``, has ``Pr[x]`` proportional to ``exp(-x / t)``. Divided by ``s`` and
    rounded down it has ratio ``exp(-s / t)`` ([CKS20], Algorithms 1 and 2). Three to ten microseconds per draw.

    Examples
    --------
    >>> from optrand.sampling import SeededEntropy
    >>> discrete_laplace(Fraction(3, 2), 8, source=SeededEntropy(0))
    (-3, -3, 3, 0, 2, 0, 1, 0)
    """
    bits = RandomBits(SystemEntropy() if source is None else source)
    return tuple(bits.laplace(scale) for _ in range(count))


def discrete_staircase(
    epsilon: Fraction, count: int, *, sensitivity: int, rise: int, source: EntropySource | None = None
) -> tuple[int, ...]:
    r"""Draw integers with exactly the probabilities of the staircase of [B23], Definition 19.

    .. math:: \Pr[x] \propto e^{-\varepsilon (\lfloor |x| / \Delta \rfloor + [|x| \bmod \Delta \geq r])}

    The sensitivity :math:`\Delta` is the length of a stair, and `rise` is the place :math:`r` on it, from 1 to the
    sensitivity, where the probability drops.

    The remainder of ``abs(x)`` is on the upper level or the lower one with weights ``r`` and :math:`(\Delta - r)
    e^{-\varepsilon}`, which are coins once both are divided by a bound on the larger, and uniform on it. The number of
    whole stairs is geometric. A negative zero starts again. Few rounds however long the stair, at the best `rise`.

    Examples
    --------
    >>> from optrand.sampling import SeededEntropy
    >>> discrete_staircase(Fraction(1), 8, sensitivity=4, rise=2, source=SeededEntropy(0))
    (8, -1, 0, -2, 1, -7, -8, -3)
    """
    bits = RandomBits(SystemEntropy() if source is None else source)
    return tuple(bits.staircase(epsilon, sensitivity, rise) for _ in range(count))
