"""Summary of a release, as it is printed and as a JSON answer has it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from optrand.base.numerals import shown_above, shown_spent
from optrand.cli.reporting import told_gap

if TYPE_CHECKING:
    from optrand.release.plan import Summary
    from optrand.release.table_job import TableJob

__all__ = ["drawn_with", "figures", "told"]


def told(summary: Summary, *, bought: bool, classes: bool) -> dict[str, object]:
    """Facts of a release, a line each; `bought` where its labels are drawn by the best randomizer for a prior."""
    split = summary.split
    facts: dict[str, object] = {"rows": summary.rows, "labels": f"{summary.labels} declared"}
    if bought:
        facts["prior"] = summary.prior
        facts["budget"] = f"{summary.epsilon!r}: prior {split.prior!r}, labels {split.labels!r}"
        facts["outputs"] = f"{summary.outputs}, {summary.allowed}"
    else:
        facts["budget"] = f"{summary.epsilon!r}: all of it for the labels, no prior is needed"
        facts["outputs"] = summary.allowed
    if not classes:
        facts["largest bias"] = shown_above(summary.bias, 3)
        if not bought:
            facts["largest variance"] = shown_above(summary.variance, 6)
    if bought or math.isfinite(summary.gap):
        facts["verified gap"] = told_gap(summary.gap)
    if not bought:
        facts["privacy"] = EXACT if summary.exact else INEXACT
    return {**facts, **_spent_and_lost(summary, bought=bought, classes=classes), "estimates": summary.histograms}


EXACT = "exact: labels were drawn with the very probabilities that are proven private"
INEXACT = (
    "holds for real numbers ONLY: the noise was drawn in floats, whose last bits may tell labels apart, so that "
    "epsilon is not guaranteed"
)


def _spent_and_lost(summary: Summary, *, bought: bool, classes: bool) -> dict[str, object]:
    spent = shown_spent(summary.realised_epsilon, summary.epsilon)
    real = "" if summary.exact else ", for real numbers"
    how = "prior and labels together, rounded up" if bought else f"at most{real}"
    under = "under the prior above" if bought else "were all declared labels equally frequent"
    if classes:
        return {
            "realised epsilon": f"{spent} ({how})",
            "label changes": f"with probability {shown_above(summary.noisy_label_loss, 6)} (expected, {under})",
        }
    return {
        "realised epsilon": f"{spent} ({how})",
        "noisy label loss": f"{shown_above(summary.noisy_label_loss, 6)} (expected, {under})",
    }


def drawn_with(on_file: TableJob, target: Path, summary: Summary) -> dict[str, object]:
    """Paths of the randomizers, and what they gained over one for all."""
    from optrand.release.job import LabelJob

    if summary.relative_loss is None:
        return {"mechanism" if isinstance(on_file.job, LabelJob) else "saved": on_file.beside(target)}
    share = f"{shown_above(summary.relative_loss, 3)} of that of one randomizer for all groups"
    return {"expected loss": share, "mechanisms": on_file.beside(target)}


def figures(summary: Summary) -> dict[str, object]:
    """Figures of a summary for a JSON answer."""
    return {
        "epsilon": summary.epsilon,
        "prior_epsilon": summary.split.prior,
        "labels_epsilon": summary.split.labels,
        "labels": summary.labels,
        "largest_bias": summary.bias,
        "verified_gap": summary.gap,
        "realised_epsilon": summary.realised_epsilon,
        "noisy_label_loss": summary.noisy_label_loss,
        "copied": summary.copied,
    }
