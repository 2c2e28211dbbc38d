r"""From the cheapest column to the bound, in integers.

With the multipliers' own part of the bound and :math:`m = \min f` (:mod:`optrand.certificate`) it is

.. math:: \mathrm{base} + \frac{k}{E + k - 1} \min(0, m) + \frac{1}{E} \max(0, m),

and holds for any :math:`E \geq e^\epsilon`, as long as it is the same one in :math:`f` and here: a larger :math:`E`
admits more randomizers.
"""

from __future__ import annotations

from fractions import Fraction

from optrand.exact import exp_bracket

__all__ = ["assembled", "excess_above"]

BITS = 128
"""Binary digits that ``exp(epsilon) - 1`` keeps."""


def excess_above(epsilon: float) -> tuple[int, int]:
    """Integers ``n, s >= 0`` with ``exp(epsilon) - 1 <= n / 2**s``, as tight as :data:`BITS` digits allow.

    Examples
    --------
    >>> n, s = excess_above(1.0)
    >>> n.bit_length() >= BITS, n / 2**s
    (True, 1.7182818284590453)
    """
    above = exp_bracket(epsilon, 60 if epsilon > 1e-9 else 400)[1] - 1
    shift = max(0, BITS - (above.numerator.bit_length() - above.denominator.bit_length()))
    return -((-above.numerator << shift) // above.denominator), shift


def assembled(base: int, lowest: int, k: int, *, excess: tuple[int, int], digits: int) -> Fraction:
    """The bound, from its parts in integers.

    Parameters
    ----------
    base : int
        In units of ``2**-digits``.
    lowest : int
        At most ``min f``, in units of ``2**-(digits + s)``.
    k : int
        The number of labels.
    excess : (int, int)
        ``n, s`` as from :func:`excess_above`, with which `lowest` was computed.
    digits : int
    """
    more, shift = excess
    one = 1 << shift
    # E + k - 1 or E, in units of 2**-shift.
    mass, share = (k * one + more, k) if lowest < 0 else (one + more, 1)
    return Fraction(base * mass + lowest * share, mass << digits)
