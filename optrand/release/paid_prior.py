"""A prior that was estimated from the private labels and paid for, kept so that a retry need not pay again.

The file may be published as the noisy labels may: a line that says what it cost, then a table of labels and counts.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optrand.base.files import write_atomically
from optrand.base.validation import Floats, frozen
from optrand.base.validation import labels as checked_labels
from optrand.errors import InvalidInput, SpentNote
from optrand.sampling.priors import BudgetSplit, EstimatedPrior, split_at

__all__ = ["PaidPrior", "load_paid_prior"]

_HEADER = re.compile(
    r"label,noisy count \(prior epsilon (?P<part>[^ ]+) of (?P<whole>[^ ]+) for (?P<rows>[0-9]+) rows\)"
)
_ROW = re.compile(r"(?P<label>[^,]+),(?P<count>[0-9]+)")


@dataclass(frozen=True, eq=False)
class PaidPrior:
    """A noisy histogram of the private labels, and the budget that it is a part of.

    Attributes
    ----------
    labels : (k,) array
        The declared set, increasing.
    estimate : EstimatedPrior
        The noisy counts, and what they spent.
    epsilon : float
        The whole budget, in nats, that the prior and the labels share.
    rows : int
        How many labels were counted.

    Raises
    ------
    InvalidInput
        Another number of counts than of labels, or a part that leaves nothing of the whole.
    """

    labels: Floats
    estimate: EstimatedPrior
    epsilon: float
    rows: int

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        object.__setattr__(self, "labels", frozen(np.sort(checked_labels(self.labels))))
        if len(self.estimate.counts) != self.labels.size:
            raise InvalidInput(f"there are {len(self.estimate.counts)} counts for {self.labels.size} labels")
        split_at(self.epsilon, self.estimate.epsilon)

    @property
    def split(self) -> BudgetSplit:
        """Budget that the prior has spent, and what is left for the labels."""
        return split_at(self.epsilon, self.estimate.epsilon)

    def save(self, path: Path) -> None:
        """Write the prior, whole or not at all; never over another file."""
        header = f"label,noisy count (prior epsilon {self.split.prior!r} of {self.epsilon!r} for {self.rows} rows)"
        rows = (f"{label!r},{count}" for label, count in zip(self.labels.tolist(), self.estimate.counts, strict=True))
        write_atomically(path, ("\n".join((header, *rows)) + "\n").encode())

    def spent(self, kept: Path | None) -> SpentNote:
        """Note for a release that breaks off after the prior was drawn."""
        words = f"the prior was drawn before this and has spent {self.split.prior!r} of the budget of {self.epsilon!r}"
        if kept is None:
            return SpentNote(f"{words}; it was not kept")
        return SpentNote(
            f"{words}; it is kept in {kept}: a retry with --paid-prior {kept} (paid_prior= of the job) goes on from it "
            "and does not pay for it again"
        )


def load_paid_prior(path: str | os.PathLike[str]) -> PaidPrior:
    """The prior that a job which broke off has kept.

    Raises
    ------
    InvalidInput
        No such file, or one that was not written by :meth:`PaidPrior.save`.
    """
    try:
        header, *rows = Path(path).read_text(encoding="utf-8").splitlines()
        stated, matches = _HEADER.fullmatch(header), [_ROW.fullmatch(row) for row in rows]
        if stated is None or None in matches:
            raise ValueError
        pairs = [(float(match["label"]), int(match["count"])) for match in matches if match is not None]
        estimate = EstimatedPrior(tuple(count for _, count in pairs), float(stated["part"]))
        labels = np.array([label for label, _ in pairs])
        if (np.diff(labels) <= 0).any():
            raise ValueError
        return PaidPrior(labels, estimate, float(stated["whole"]), int(stated["rows"]))
    except (OSError, ValueError):
        raise InvalidInput(
            f"{path} is no prior that was paid for: expected the file, unchanged, that a job which broke off has left"
        ) from None
