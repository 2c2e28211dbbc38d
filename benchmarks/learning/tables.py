"""Tables of public features with a number to be private: weeks worked, spending of customers, visits to a physician."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.learning.experiment import Setup
from benchmarks.learning.fetch import find_file
from optrand.base._validation import Floats
from optrand.data import WEEKS_LABEL, weeks_worked_path

if TYPE_CHECKING:
    import pandas as pd

CENSUS_NUMBERS = (0, 5, 16, 17, 18, 30)
"""Columns of the census that are numbers: age, wage, capital gains and losses, dividends, employer's size."""

CENSUS_LEFT_OUT = (24, 41)
"""Columns that are no features: the survey weight, and the class of income."""

CENSUS_LABEL = 39
CENSUS_TEST_ROWS = 99_762
RARE = 50
"""Rows below which values of a column share an indicator."""

CUT = datetime(1997, 10, 1)
MOST_SPENT, STEP = 400, 4
MOST_VISITS = 40


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


def of(setup: Setup, seed: int) -> Table:
    """Return the table of an experiment."""
    settings = setup.settings
    return table(settings["data"], setup.data, settings["train"], settings["test"], seed)


@lru_cache(maxsize=1)
def table(data: str, folder: Path, train: int, test: int, seed: int) -> Table:
    """Draw rows of a data set by a seed. The test rows of weeks worked are from a file of their own."""
    from pandas.api.types import is_numeric_dtype

    rng = np.random.default_rng(1000 + seed)
    features, y, labels = read(data, folder)
    if data == "weeks":
        apart = y.size - CENSUS_TEST_ROWS
        order = np.r_[rng.permutation(apart)[:train], apart + rng.permutation(CENSUS_TEST_ROWS)[:test]]
    else:
        order = rng.permutation(y.size)
    first, then = order[:train], order[train : train + test]
    kinds = np.array([not is_numeric_dtype(kind) for kind in features.dtypes])
    columns = [
        column.astype("category").cat.codes if kind else column
        for kind, (_, column) in zip(kinds, features.items(), strict=True)
    ]
    X = np.column_stack(columns).astype(np.float64)
    encoder = make_column_transformer(
        (OneHotEncoder(min_frequency=RARE, handle_unknown="infrequent_if_exist"), np.flatnonzero(kinds)),
        (StandardScaler(), np.flatnonzero(~kinds)),
        sparse_threshold=0,
    )
    known = encoder.fit_transform(X[first])
    return Table((X[first], X[then]), (known, encoder.transform(X[then])), (y[first], y[then]), labels)


@lru_cache(maxsize=1)
def read(data: str, folder: Path) -> tuple[pd.DataFrame, NDArray[np.int64], NDArray[Any]]:
    """Read a data set: its features, categories as text, the label of each row, and the declared labels."""
    import pandas as pd

    if data == "revenue":
        features, y = read_customers(find_file(folder, "cdnow.txt"))
        return features, y, np.arange(0, MOST_SPENT + 1, STEP)
    if data == "visits":
        rows = pd.read_csv(find_file(folder, "visits.csv"))
        visits = rows.pop("mdvis").clip(upper=MOST_VISITS)
        return rows.astype(np.float64), visits.to_numpy(np.int64), np.arange(MOST_VISITS + 1)
    if data == "bundled":
        rows = pd.read_csv(weeks_worked_path(), dtype=str, keep_default_na=False)
        rows["age"] = rows["age"].astype(np.float64)
        return rows, rows.pop(WEEKS_LABEL).to_numpy().astype(np.int64), np.arange(53)
    files = [find_file(folder, f"census_{part}.csv") for part in ("train", "test")]
    options: dict[str, Any] = {"header": None, "skipinitialspace": True, "dtype": str, "keep_default_na": False}
    rows = pd.concat([pd.read_csv(file, **options) for file in files]).drop(columns=list(CENSUS_LEFT_OUT))
    rows = rows.astype(dict.fromkeys(CENSUS_NUMBERS, np.float64))
    return rows, rows.pop(CENSUS_LABEL).to_numpy().astype(np.int64), np.arange(53)


def read_customers(path: Path) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Read the purchases before October 1997, and the spending after it, in steps of 4 dollars up to 400."""
    import pandas as pd

    names = ["customer", "date", "count", "dollars"]
    events = pd.read_csv(path, sep=r"\s+", names=names, header=0, parse_dates=["date"])
    past = events[events["date"] < CUT]
    groups, recent = past.groupby("customer"), past[(CUT - past["date"]).dt.days < 60].groupby("customer")
    last, first = (CUT - groups["date"].max()).dt.days, (CUT - groups["date"].min()).dt.days
    habits = {
        "purchases": groups.size(),
        "days since the last": last,
        "days since the first": first,
        "days between": first - last,
        "dollars": groups["dollars"].sum(),
        "mean dollars": groups["dollars"].mean(),
        "most dollars": groups["dollars"].max(),
        "last dollars": groups["dollars"].last(),
        "pieces": groups["count"].sum(),
        "recent purchases": recent.size(),
        "recent dollars": recent["dollars"].sum(),
        "days": groups["date"].nunique(),
    }
    later = events[events["date"] >= CUT].groupby("customer")["dollars"].sum().round(2)
    spent = later.reindex(groups.size().index, fill_value=0.0).clip(upper=MOST_SPENT)
    return np.log1p(pd.DataFrame(habits).fillna(0.0).astype(np.float64)), STEP * (spent / STEP).round().to_numpy(
        np.int64
    )
