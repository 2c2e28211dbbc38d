"""Prices of columns under given multipliers, and the bound that follows: in floats, and in exact arithmetic."""

from optrand.pricing.prices import Prices, negative_ranges, price

__all__ = ["Prices", "negative_ranges", "price"]
