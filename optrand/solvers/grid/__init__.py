"""Problems on a grid: one linear program with a floor per output, or column generation.

The programs as the papers print them are :func:`optrand.programs.lp1`, :func:`~optrand.programs.lp2` and
:func:`~optrand.programs.algorithm1`.
"""
