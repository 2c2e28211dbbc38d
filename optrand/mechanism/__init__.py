"""Integer mechanisms: the proof of privacy, tabulation of designs, exact means, and the file format."""

from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import tabulate

__all__ = ["Mechanism", "tabulate"]
