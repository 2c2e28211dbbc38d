"""One page that shows a mechanism: its certificate, its budget and its pictures, for people who do not run Python.

===============================  ===========================================================
:func:`report_page`              the page, as HTML
:mod:`~optrand.plotting.report.facts`     what it states: tables of numbers, sentences about privacy
:mod:`~optrand.plotting.report.pictures`  what it shows: the pictures, and what each says in words
:mod:`~optrand.plotting.report.svg`       figures as pieces of a page
:mod:`~optrand.plotting.report.page`      the page around them
===============================  ===========================================================
"""

from __future__ import annotations

from optrand.plotting.report.page import report_page

__all__ = ["report_page"]
