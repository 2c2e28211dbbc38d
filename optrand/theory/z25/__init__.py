"""[Z25]: labels as vectors of bits, and what is learned from them."""

from optrand.theory.z25 import (
    bits,
    crowds,
    deviation,
    neighbours,
    rates,
    retention,
    risk,
    soft_labels,
)

__all__ = ["CLAIMS"]

CLAIMS = (
    *bits.CLAIMS,
    *risk.CLAIMS,
    *retention.CLAIMS,
    *soft_labels.CLAIMS,
    *crowds.CLAIMS,
    *neighbours.CLAIMS,
    *deviation.CLAIMS,
    *rates.CLAIMS,
)
