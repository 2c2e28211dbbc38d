r"""Assembly of the dual bound, in integers.

With :math:`m = \min f` and the multipliers' own part of the bound (:mod:`optrand.certificates.certificate`) it is

.. math:: \mathrm{base} + \frac{k}{E + k - 1} \min(0, m) + \frac{1}{E} \max(0, m),

for any one :math:`E \geq e^\epsilon` in :math:`f` and here, since a larger :math:`E` admits more randomizers.
"""

from __future__ import annotations

from fractions import Fraction
from operator import mul

import numpy as np

from optrand.base.arithmetic import exp_bracket, places, scaled
from optrand.base.validation import Floats
from optrand.model.problem import Problem
from optrand.model.solution import Dual

__all__ = ["assembled", "excess_above", "measured", "multipliers_below"]

BITS = 128
"""Binary digits of ``exp(epsilon) - 1``."""


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
    """Bound of its parts in integers: `base` in ``2**-digits``; `lowest`, at most ``min f``, in ``2**-(digits + s)``.

    The `excess` is ``n, s`` of :func:`excess_above`, with which `lowest` was computed.
    """
    more, shift = excess
    one = 1 << shift
    # E + k - 1 or E, in units of 2**-shift.
    mass, share = (k * one + more, k) if lowest < 0 else (one + more, 1)
    return Fraction(base * mass + lowest * share, mass << digits)


def measured(numbers: Floats, dual: Dual, digits: int) -> list[int]:
    """Integers ``(numbers - origin) * 2**digits``, for squared and absolute loss, which depend on distances only.

    Examples
    --------
    >>> import numpy as np
    >>> measured(np.array([3.0, 0.5]), Dual([0.0], [0.0], origin=2.5), 1)
    [1, -4]
    """
    (origin,) = scaled(np.array([dual.origin]), digits)
    return [number - origin for number in scaled(numbers, digits)]


def multipliers_below(problem: Problem, dual: Dual, digits: int) -> int:
    r"""Part of the bound that needs no column, rounded down.

    .. math:: \sum_y \alpha_y + \sum_y \beta_y (y - o) - \sum_y \frac{\beta_y^2}{2 \lambda p_y}

    with the dual's origin :math:`o`; :math:`\beta_y` must be zero where :math:`\lambda p_y` is. The unit is
    ``2**-digits``, no fewer digits than ``alpha`` and ``beta * (y - origin)`` have.
    """
    line, mass = places(np.append(problem.labels, dual.origin)), places(problem.prior)
    slopes = scaled(dual.beta, digits - line)
    part: int = sum(scaled(dual.alpha, digits)) + sum(map(mul, slopes, measured(problem.labels, dual, line)))
    if problem.unbiased:
        return part
    above, below = problem.bias_penalty.as_integer_ratio()
    # Of the slopes' squares over the prior, to the units of the whole.
    shift = mass + 2 * line - digits
    above, below = 2 * above << max(-shift, 0), below << max(shift, 0)
    charges = zip(slopes, scaled(problem.prior, mass), strict=True)
    return part + sum(-slope * slope * below // (above * p) for slope, p in charges if slope)
