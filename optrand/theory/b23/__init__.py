"""[B23]: optimal unbiased randomizers for regression."""
