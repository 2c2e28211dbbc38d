"""Programs that a problem becomes: each has ``build(problem)`` and ``read(problem, answer)``.

===============  ==============================================================  =====================
`Pairwise`       LP1 of [G21] and Algorithm 1 of [B23] as printed                ``n k (k - 1)`` rows
`Floor`          the same optimum, one floor variable per output                 ``k n`` rows
`LP2`            the relaxation in the proof of [G21] Theorem 3                  ``k`` rows
===============  ==============================================================  =====================
"""

from optrand.solvers.backends.linear import LP, LPSolution
from optrand.solvers.grid.floor import Floor
from optrand.solvers.grid.lp2 import LP2
from optrand.solvers.grid.pairwise import Pairwise

__all__ = ["LP", "LP2", "Floor", "LPSolution", "Pairwise"]
