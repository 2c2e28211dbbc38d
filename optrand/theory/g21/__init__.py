"""[G21]: randomized response with a prior, learning with it, and its analysis."""
