"""[Z25]: labels as vectors of bits, and learning from them."""
