"""Tables of public features with a number to be private: weeks worked, what customers spend, visits to a physician."""

from __future__ import annotations

import csv
import datetime
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.learning.experiment import Setup
from benchmarks.learning.fetch import find_file
from optrand.base.validation import Floats
from optrand.data import WEEKS_LABEL, weeks_worked_path

NUMBERS = (0, 5, 16, 17, 18, 30)
"""Columns of the census that are numbers: age, wage, capital gains and losses, dividends, employer's size."""

LEFT_OUT = (24, 39, 41)
"""Columns that are no features: the survey weight, the label, and the class of income."""

LABEL = 39
RARE = 50
"""Rows below which values of a column share an indicator."""

CUT = datetime.date(1997, 10, 1)
MOST_SPENT, STEP = 400, 4
RECENT = 60


@dataclass(frozen=True, eq=False)
class Table:
    """Training and test rows.

    Attributes
    ----------
    codes, indicators : pair of (n, d) arrays
        Features of training and test rows: categories as codes, for trees, and as indicators, for linear models.
    y : pair of (n,) arrays
    labels : (K,) array
        Declared.
    """

    codes: tuple[Floats, Floats]
    indicators: tuple[Floats, Floats]
    y: tuple[NDArray[Any], NDArray[Any]]
    labels: NDArray[Any]


TEST_ROWS = 99_762
"""Rows of the census's test file."""

MOST_VISITS = 40


@lru_cache(maxsize=1)
def table(data: str, folder: Path, train: int, test: int, seed: int) -> Table:
    """Rows of a data set that a seed draws; the test rows of weeks worked are from a file of their own."""
    rng = np.random.default_rng(1000 + seed)
    X, y, kinds, labels = LOADERS[data](folder)
    if data == "weeks":
        apart = y.size - TEST_ROWS
        order = np.r_[rng.permutation(apart)[:train], apart + rng.permutation(TEST_ROWS)[:test]]
    else:
        order = rng.permutation(y.size)
    return _split(X, y, kinds, order, (train, test), labels)


def _split(
    X: Floats,
    y: NDArray[Any],
    kinds: NDArray[np.bool_],
    order: NDArray[np.intp],
    sizes: tuple[int, int],
    labels: NDArray[Any],
) -> Table:
    """First rows of an order for training, and the next for tests; indicators are learned on training rows."""
    train, test = order[: sizes[0]], order[sizes[0] : sum(sizes)]
    numbers = StandardScaler()
    encoder = make_column_transformer(
        (OneHotEncoder(min_frequency=RARE, handle_unknown="infrequent_if_exist"), np.flatnonzero(kinds)),
        (numbers, np.flatnonzero(~kinds)),
        sparse_threshold=0,
    )
    known = encoder.fit_transform(X[train])
    return Table((X[train], X[test]), (known, encoder.transform(X[test])), (y[train], y[test]), labels)


def coded(columns: Sequence[Sequence[str]], numbers: Sequence[bool]) -> Floats:
    """Columns as numbers, texts by their place among the sorted ones."""
    found = [
        np.array(column, dtype=np.float64) if number else np.unique(column, return_inverse=True)[1].astype(np.float64)
        for column, number in zip(columns, numbers, strict=True)
    ]
    return np.column_stack(found)


@lru_cache(maxsize=1)
def census(train: Path, test: Path) -> tuple[Floats, NDArray[Any], NDArray[np.bool_]]:
    """Features, weeks worked, and which features are categories; the training file first."""
    rows: list[list[str]] = []
    for path in (train, test):
        with path.open(encoding="utf-8", newline="") as file:
            rows.extend(row for row in csv.reader(file, skipinitialspace=True) if len(row) == 42)
    used = [place for place in range(42) if place not in LEFT_OUT]
    columns = list(zip(*rows, strict=True))
    numbers = [place in NUMBERS for place in used]
    X = coded([columns[place] for place in used], numbers)
    return X, np.array(columns[LABEL], dtype=np.int64), ~np.array(numbers)


@lru_cache(maxsize=1)
def bundled() -> tuple[Floats, NDArray[Any], NDArray[np.bool_]]:
    """Features of the bundled table of weeks worked, the label, and which features are categories."""
    with gzip.open(weeks_worked_path(), "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name != WEEKS_LABEL]
    numbers = [name == "age" for name in names]
    X = coded([[row[name] for row in rows] for name in names], numbers)
    return X, np.array([int(row[WEEKS_LABEL]) for row in rows]), ~np.array(numbers)


@lru_cache(maxsize=1)
def visits(path: Path) -> tuple[Floats, NDArray[Any]]:
    """What is known of a person in a year, and visits to a physician, those above 40 as 40."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = np.array([[float(each) for each in row] for row in list(csv.reader(file))[1:]])
    return rows[:, 1:], np.minimum(rows[:, 0], MOST_VISITS).astype(np.int64)


@lru_cache(maxsize=1)
def revenue(path: Path) -> tuple[Floats, NDArray[Any]]:
    """What a customer bought before October 1997, and spent after it: in steps of 4 dollars up to 400."""
    bought: dict[str, list[tuple[datetime.date, int, float]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[0].isdigit():
            day = datetime.datetime.strptime(parts[1], "%Y%m%d").date()
            bought.setdefault(parts[0], []).append((day, int(parts[2]), float(parts[3])))
    features, spent = [], []
    for events in bought.values():
        before = [event for event in events if event[0] < CUT]
        if before:
            features.append(_habits(before))
            later = sum(event[2] for event in events if event[0] >= CUT)
            spent.append(STEP * round(min(MOST_SPENT, later) / STEP))
    return np.log1p(np.array(features)), np.array(spent, dtype=np.int64)


def _habits(before: Sequence[tuple[datetime.date, int, float]]) -> list[float]:
    days = sorted(event[0] for event in before)
    money = [event[2] for event in before]
    recent = [event for event in before if (CUT - event[0]).days < RECENT]
    return [
        len(before),
        (CUT - days[-1]).days,
        (CUT - days[0]).days,
        (days[-1] - days[0]).days,
        sum(money),
        sum(money) / len(money),
        max(money),
        before[-1][2],
        sum(event[1] for event in before),
        len(recent),
        sum(event[2] for event in recent),
        len(set(days)),
    ]


def _weeks(folder: Path) -> Loaded:
    return *census(find_file(folder, "census_train.csv"), find_file(folder, "census_test.csv")), np.arange(53)


def _bundled(folder: Path) -> Loaded:  # noqa: ARG001
    return *bundled(), np.arange(53)


def _revenue(folder: Path) -> Loaded:
    X, y = revenue(find_file(folder, "cdnow.txt"))
    return X, y, np.zeros(X.shape[1], dtype=bool), np.arange(0, MOST_SPENT + 1, STEP)


def _visits(folder: Path) -> Loaded:
    X, y = visits(find_file(folder, "visits.csv"))
    return X, y, np.zeros(X.shape[1], dtype=bool), np.arange(MOST_VISITS + 1)


Loaded = tuple[Floats, NDArray[Any], NDArray[np.bool_], NDArray[Any]]
"""Features, labels, which features are categories, and the declared labels."""

LOADERS = {"weeks": _weeks, "bundled": _bundled, "revenue": _revenue, "visits": _visits}


def of(setup: Setup, seed: int) -> Table:
    """Table of an experiment."""
    settings = setup.settings
    return table(settings["data"], setup.data, settings["train"], settings["test"], seed)
