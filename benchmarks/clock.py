"""The clock of the flow solver's benchmarks: solving and proving are timed, and only an exact proof counts."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.worker import OVER_LIMIT, Worker
from optrand import certify, solve, tabulate
from optrand.base.validation import Floats
from optrand.model.problem import Problem

__all__ = ["Reading", "clocked", "read_clock", "required_gap"]

STRICT, LOOSE, LOOSE_FROM = 1e-9, 1e-8, 6.0


@dataclass(frozen=True)
class Reading:
    """What the clock showed for some problems, solved one after the other.

    Attributes
    ----------
    seconds : tuple of float
        Of `solve` and `certify` for all problems, a run each.
    processor : tuple of float
        The processor's time for the same, of all threads: less than `seconds` where the machine had other things to do.
    tabulating : tuple of float
        Of `tabulate` for all problems, a run each.
    gaps : tuple of float
        The largest relative gap over all runs of the exact mechanism of each problem; infinite if it is not feasible.
    outputs : tuple of int
        How many outputs the last run's answers have.
    peak : int
        The largest memory of the process so far, in bytes; the proof of the exact mechanism included.
    error : str
        Why there is nothing to show.
    """

    seconds: tuple[float, ...] = ()
    processor: tuple[float, ...] = ()
    tabulating: tuple[float, ...] = ()
    gaps: tuple[float, ...] = ()
    outputs: tuple[int, ...] = ()
    peak: int = 0
    error: str = ""

    @property
    def median(self) -> float:
        """The median time of solving and proving; infinite if no run ended."""
        return statistics.median(self.seconds) if self.seconds else math.inf

    @property
    def median_processor(self) -> float:
        """The median of the processor's time."""
        return statistics.median(self.processor) if self.processor else math.inf

    @property
    def median_tabulating(self) -> float:
        """The median time of making the exact tables."""
        return statistics.median(self.tabulating) if self.tabulating else math.inf

    @property
    def gap(self) -> float:
        """The largest gap of an exact mechanism; infinite without an answer."""
        return max(self.gaps, default=math.inf)


def required_gap(problem: Problem) -> float:
    """The relative gap within which a problem's exact mechanism must be proven, or its time does not count.

    Examples
    --------
    >>> import optrand
    >>> [required_gap(optrand.unbiased_regression([0, 1], [0.5, 0.5], epsilon)) for epsilon in (4, 6)]
    [1e-09, 1e-08]
    """
    return LOOSE if problem.epsilon >= LOOSE_FROM else STRICT


def clocked(problems: Sequence[Problem], repeats: int, patience: float = math.inf) -> Reading:
    """Solve and prove all problems, `repeats` times or until `patience` seconds have been clocked."""
    runs: list[Floats] = []
    gaps, outputs = [0.0] * len(problems), [0] * len(problems)
    while len(runs) < repeats and (not runs or sum(run[0] for run in runs) < patience):
        spent = np.zeros(3)
        for place, problem in enumerate(problems):
            start, busy = time.perf_counter(), time.process_time()
            solution = solve(problem)
            certify(solution)
            solved, worked = time.perf_counter(), time.process_time()
            mechanism = tabulate(solution)
            made = time.perf_counter()
            proof = certify(mechanism)
            spent += solved - start, worked - busy, made - solved
            gaps[place] = max(gaps[place], math.inf if proof.findings else proof.gap)
            outputs[place] = mechanism.n
        runs.append(spent)
    seconds, processor, tabulating = (tuple(column) for column in np.transpose(runs).tolist())
    return Reading(seconds, processor, tabulating, tuple(gaps), tuple(outputs), peak_memory())


def read_clock(worker: Worker, problems: Sequence[Problem], *, repeats: int, patience: float, limit: float) -> Reading:
    """A reading from another process, given up after `limit` seconds a run."""
    found, error = worker.call(clocked, problems, repeats, patience, limit=limit * repeats)
    return found if isinstance(found, Reading) else Reading(error=error or OVER_LIMIT)


def peak_memory() -> int:
    """The most memory that this process has held so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # What getrusage reports of a process that another one started counts the memory of that one, too.
        peaks = [line.split()[1] for line in status.read_text(encoding="ascii").splitlines() if line[:6] == "VmHWM:"]
        return 1024 * int(peaks[0])
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
