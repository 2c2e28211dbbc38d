"""Report: one page with a mechanism's certificate, budget and pictures, for people who do not run Python."""

from __future__ import annotations

from optrand.plotting.report.groups_page import group_report_page
from optrand.plotting.report.page import report_page

__all__ = ["group_report_page", "report_page"]
