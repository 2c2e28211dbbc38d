"""[Z25]: labels as vectors of bits, and what is learned from them."""
