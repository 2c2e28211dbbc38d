"""Integer mechanisms: the proof of privacy, tabulation of designs, exact means, and the file format."""

from optrand.mechanism.mechanism import Mechanism, load
from optrand.mechanism.tabulation import tabulate

__all__ = ["Mechanism", "load", "tabulate"]
