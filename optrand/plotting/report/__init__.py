"""Report: one page with a mechanism's certificate, budget and pictures, for people who do not run Python."""

from __future__ import annotations

from optrand.errors import missing_extra

try:
    from optrand.plotting.report.groups_page import group_report_page
    from optrand.plotting.report.page import report_page
except ModuleNotFoundError as error:
    raise missing_extra(error) or error from error

__all__ = ["group_report_page", "report_page"]
