"""Cone programs on Clarabel."""
