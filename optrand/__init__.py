"""Optimal label-differential-privacy randomizers, with proofs."""
