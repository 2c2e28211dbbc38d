"""Releases of tables on a Spark cluster, with the step from batch to batch that releases on one machine take."""

from __future__ import annotations

from optrand.release.spark.release import randomize

__all__ = ["randomize"]
