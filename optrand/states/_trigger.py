"""States of event-level reports: which reports a source may send, each of a trigger datum in a reporting window."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from optrand.base._validation import check_integer
from optrand.errors import InvalidInput

MOST = 1000
"""More reports, windows or trigger data than any configuration has. A larger number is probably a mistake."""

Report = tuple[int, int]
State = tuple[Report, ...]


@dataclass(frozen=True)
class TriggerStates(Sequence[State]):
    """States of a source, counted without listing them, in a fixed order: a sequence to index, search and iterate.

    A state is a tuple of reports ``(trigger datum, window)`` in increasing order, at most :attr:`max_reports` of them.

    Attributes
    ----------
    max_reports : int
        Largest number of reports of a source.
    windows : tuple of int
        Number of reporting windows of each trigger datum.
    limits : tuple of int
        Largest number of reports of each trigger datum: its summary buckets.

    Examples
    --------
    >>> states = trigger_states(1, 1, 2)
    >>> list(states), states[2], states.index(((1, 0),))
    ([(), ((1, 0),), ((0, 0),)], ((0, 0),), 1)
    """

    max_reports: int
    windows: tuple[int, ...]
    limits: tuple[int, ...]

    def __post_init__(self) -> None:
        check_integer(self.max_reports, "max_reports", 1, MOST)
        check_integer(len(self.windows), "the number of trigger data", 1, MOST)
        if len(self.limits) != len(self.windows):
            raise InvalidInput(f"there are {len(self.limits)} limits for {len(self.windows)} trigger data")
        for count, limit in zip(self.windows, self.limits, strict=True):
            check_integer(count, "the number of windows", 1, MOST)
            check_integer(limit, "the limit of a trigger datum", 1, MOST)

    @cached_property
    def _cells(self) -> tuple[Report, ...]:
        return tuple((datum, window) for datum, count in enumerate(self.windows) for window in range(count))

    @cached_property
    def size(self) -> int:
        """Number of states, of any size. ``len`` is limited to ``sys.maxsize``."""
        return self._completions[0][self.max_reports][0]

    @cached_property
    def _completions(self) -> list[list[list[int]]]:
        """Number of ways to fill the cells from each one on, by reports left and reports that its datum has had."""
        most = self.max_reports
        table = [[[1] * (most + 1)] * (most + 1)]
        for datum, window in reversed(self._cells):
            limit, after, rows = min(self.limits[datum], most), table[-1], []
            for free in range(most + 1):
                ways = [
                    sum(after[free - more][had + more] for more in range(min(free, limit - had) + 1))
                    for had in range(limit + 1)
                ]
                # The share of the datum before does not count.
                rows.append(ways if window else ways[:1] * (most + 1))
            table.append(rows)
        return table[::-1]

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, place: int, /) -> State: ...
    @overload
    def __getitem__(self, place: slice, /) -> list[State]: ...
    def __getitem__(self, place: int | slice, /) -> State | list[State]:
        """Return the state at a position, in one step per cell and report."""
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(self.size))]
        rest = operator.index(place) + (self.size if operator.index(place) < 0 else 0)
        if not 0 <= rest < self.size:
            raise IndexError(f"state {operator.index(place)} of {self.size}")
        reports, free, had = list[Report](), self.max_reports, 0
        for cell, report in enumerate(self._cells):
            had = had if report[1] else 0
            more = 0
            while rest >= (ways := self._completions[cell + 1][free - more][had + more]):
                rest -= ways
                more += 1
            reports += [report] * more
            free, had = free - more, had + more
        return tuple(reports)

    def index(self, state: object, start: int = 0, stop: int | None = None, /) -> int:
        """Return the position of a state. Raise :class:`InvalidInput` (a ``ValueError``) if it is not one of these."""
        reports = state if isinstance(state, tuple) else (None,)
        place, free, had = 0, self.max_reports, 0
        for cell, report in enumerate(self._cells):
            had = had if report[1] else 0
            more = reports.count(report)
            if more > min(free, self.limits[report[0]] - had):
                break
            place += sum(self._completions[cell + 1][free - fewer][had + fewer] for fewer in range(more))
            free, had = free - more, had + more
        listed = len(reports) == self.max_reports - free and list(reports) == sorted(reports)
        if not listed or not start <= place < (self.size if stop is None else stop):
            raise InvalidInput("this is no state: expected a tuple of reports (trigger datum, window) in order")
        return place

    def __contains__(self, state: object) -> bool:
        try:
            return self.index(state) >= 0
        except InvalidInput:
            return False


def trigger_states(
    max_reports: int,
    windows: int | Sequence[int],
    data_cardinality: int | None = None,
    *,
    limits: int | Sequence[int] | None = None,
) -> TriggerStates:
    r"""Count the states of the flexible event-level reports of a source in the Attribution Reporting API.

    Parameters
    ----------
    max_reports : int
        Largest number of reports of the source.
    windows : int or sequence of int
        Number of reporting windows, of every trigger datum or of each.
    data_cardinality : int, optional
        Number of trigger data, not needed if `windows` lists them.
    limits : int or sequence of int, optional
        Largest number of reports of every trigger datum, or of each (its summary buckets), `max_reports` by default.

    Returns
    -------
    TriggerStates

    Raises
    ------
    InvalidInput
        Numbers below 1, or lists of other lengths.

    Notes
    -----
    Without limits they are stars and bars: :math:`\binom{c + r}{r}` for `r` reports and `c` windows of all trigger data
    together. In general they are counted window by window, the recurrence of [ARA26]_, in ``O(c r^2)`` steps.

    Examples
    --------
    The published defaults, of navigation and of event sources:

    >>> trigger_states(3, 3, 8).size, trigger_states(1, 1, 2).size
    (2925, 3)
    """
    if isinstance(windows, Sequence):
        counts = tuple(windows)
        if data_cardinality not in (None, len(counts)):
            raise InvalidInput(
                f"there are windows for {len(counts)} trigger data, but data_cardinality is {data_cardinality}"
            )
    else:
        counts = (windows,) * check_integer(data_cardinality, "data_cardinality", 1, MOST)
    most = max_reports if limits is None else limits
    return TriggerStates(max_reports, counts, tuple(most) if isinstance(most, Sequence) else (most,) * len(counts))
