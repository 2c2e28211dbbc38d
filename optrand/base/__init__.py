"""Ground floor: validation of arrays, exact arithmetic, strict JSON, atomic writes and numerals."""
