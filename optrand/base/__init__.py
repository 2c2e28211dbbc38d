"""Lowest layer: validation of arrays, exact arithmetic, strict JSON, atomic writes and numerals."""
