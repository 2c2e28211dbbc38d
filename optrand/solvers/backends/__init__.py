"""Cone programs on Clarabel, and the linear programs of grids on HiGHS (:mod:`optrand.programs.backends`)."""
