"""Integer mechanisms: the proof of privacy, tabulation of solutions, exact means, and the file format."""

from optrand.mechanism.mechanism import Mechanism, load
from optrand.mechanism.paths import decompose_paths
from optrand.mechanism.phases import phases_of
from optrand.mechanism.tabulation import tabulate

__all__ = ["Mechanism", "decompose_paths", "load", "phases_of", "tabulate"]
