"""Request for the release of one column of labels, in one frozen record for Python, the command line and Spark.

Everything in it is public, and is checked before a private label is read.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from optrand import losses
from optrand.base import _strict_json
from optrand.base._suggestions import nearby
from optrand.base._validation import (
    Floats,
    check_epsilon,
    check_flag,
    check_integer,
    check_labels,
    check_prior,
    check_real,
    freeze_array,
    rectangular,
    suggest_parameters,
)
from optrand.errors import InvalidInput
from optrand.losses import Loss, Tabulated
from optrand.mechanism._mechanism import Mechanism
from optrand.model._meshes import feasible_output_set
from optrand.model._problem import Grid, Interval, Line, OutputSet, Problem, regression
from optrand.sampling._priors import BudgetSplit, split_at, split_budget

Nulls = Literal["refuse", "drop", "pass", "class"]
"""A missing label stops the release, its row is left out, it stays missing, or it is a class of its own.

`drop` and `pass` make public which labels are missing.
"""

Task = Literal["regression", "classification"]
"""Labels are numbers, or they are names, which have neither order nor distance."""

Name = str | int | bool | None

RANDOMIZERS: dict[str, tuple[Loss | None, float | None]] = {
    "optimal": (None, None),
    "rr-with-prior": (losses.zero_one, 0.0),
    "rr-top-k": (losses.zero_one, 0.0),
    "rr-on-bins": (losses.squared, 0.0),
    "gap-response": (losses.squared, math.inf),
}
"""Randomizers for a prior by name, with the loss and the bias penalty that they are for."""

LOSSES = {
    "squared": losses.squared,
    "absolute": losses.absolute,
    "poisson": losses.poisson_log,
    "zero-one": losses.zero_one,
}
"""Losses by name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """Request for the release of one column of private labels.

    Parameters
    ----------
    epsilon : float
        The whole budget in nats, prior included.
    column : str
        Name of the column of private labels.
    labels : array of numbers, or list of str, int or bool
        All labels that may occur: numbers or names. Declared from public knowledge, never found in the private labels.
        Numbers match private ones up to the rounding of floats: see :func:`~optrand.base._validation.as_declared`. None
        among names stands for missing labels, with ``nulls="class"``.
    task : {"regression", "classification"}, optional
        By default regression if all labels are numbers, else classification. With ``"classification"`` integers are
        names, such as classes 0, 1 and 2.
    prior : float or (k,) array, optional
        The part of epsilon that is spent on a private estimate of the prior, or a public prior, which costs nothing and
        is trusted to be public. By default see :func:`~optrand.sampling.split_budget`.
    randomizer : str or Mechanism, optional
        In place of the best randomizer that is fit for histograms: ``"optimal"`` (the best one as it is),
        ``"rr-with-prior"``, ``"rr-top-k"`` or ``"rr-top-k:3"``, ``"rr-on-bins"`` and ``"gap-response"`` use a prior,
        ``"rr"``, ``"debiased-rr"`` and ``"minimax"`` do not. Or a mechanism for these labels.
    loss : str, Loss or Tabulated, optional
        By default squared for numbers and zero-one for names. A table has a row for each label and a column for each
        output, both in increasing order.
    bias_penalty : float, optional
        From 0 to inf. By default inf (no bias) for squared loss and 0 for other losses.
    outputs : Line, Interval, Grid, array of numbers or int, optional
        Allowed noisy numbers, by default the whole line. An integer is the size of an even grid.
    clip : bool
        Whether numbers beyond the ends of the declared set count as the nearest end.
    nulls : {"refuse", "drop", "pass", "class"}
        Treatment of missing labels.
    groups : tuple of str
        Public columns whose values partition the rows: each group has a prior and a randomizer of its own.
    ids : tuple of str
        Columns that identify a record, together. By default row numbers do.
    gap : float
        Largest proven relative gap to the optimum that is accepted.

    Raises
    ------
    InvalidInput
        Options without meaning, or options that exclude each other.

    Examples
    --------
    >>> question = Question(column="weeks", labels=range(53), epsilon=1.0)
    >>> question.split(rows=20_000)
    BudgetSplit(prior=0.05, labels=0.95)
    >>> Question(column="student", labels=["yes", "no"], epsilon=1.0).task
    'classification'
    """

    epsilon: float
    column: str = "labels"
    labels: Any = None
    task: Task | None = None
    prior: Any = None
    randomizer: Any = None
    loss: Any = None
    bias_penalty: float | None = None
    outputs: Any = None
    clip: bool = False
    nulls: Nulls = "refuse"
    groups: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    gap: float = 1e-6

    def __post_init__(self) -> None:
        """Check and normalise every option."""
        nulls: object = self.nulls
        if not isinstance(nulls, str) or nulls not in get_args(Nulls):
            raise InvalidInput(f"nulls is {self.nulls!r}, expected one of {', '.join(get_args(Nulls))}")
        self._set("column", _check_name(self.column, "column is the name of the column of labels, expected text"))
        check_flag(self.clip, "clip")
        penalty: object = self.bias_penalty
        if penalty is not None and not (isinstance(penalty, float) and penalty == math.inf):
            self._set("bias_penalty", check_real(penalty, "bias_penalty"))
        order = self._check_labels()
        self._set("epsilon", check_epsilon(self.epsilon))
        if check_real(self.gap, "gap") < 0:
            raise InvalidInput(f"gap is {self.gap!r}, expected a number of at least 0")
        self._check_columns()
        self._check_randomizer()
        self._check_problem(order)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_labels(self) -> NDArray[np.intp] | None:
        """Set the task, sort labels that are numbers and return their order. Names keep theirs: return None."""
        given, task = _list_declared(self.labels), cast(object, self.task)
        if task is None:
            named = isinstance(given, list) and any(isinstance(each, str | bool | np.bool_ | None) for each in given)
            task = "classification" if named else "regression"
        elif not isinstance(task, str) or task not in get_args(Task):
            raise InvalidInput(f"task is {task!r}, expected one of {', '.join(get_args(Task))}")
        self._set("task", task)
        order = None
        if task == "classification":
            self._set("labels", _check_names(given))
        else:
            if any(isinstance(each, str) for each in given):
                raise InvalidInput("labels are names, and task='regression' is for numbers: leave it out")
            numbers = check_labels(given)
            order = np.argsort(numbers)
            self._set("labels", freeze_array(numbers[order]))
        if self.nulls == "class" and not self.nominal:
            raise InvalidInput(
                "missing labels can be a class only if labels are names, and these are numbers: add "
                "task='classification' if they are names"
            )
        if (self.nulls == "class") != (self.nominal and None in self.labels):
            raise InvalidInput(
                "missing labels are a class if and only if None is among the declared labels: declare both or neither"
            )
        return order

    def _check_columns(self) -> None:
        for name in ("groups", "ids"):
            columns = check_names(getattr(self, name), name)
            if self.column in columns:
                raise InvalidInput(f"column {self.column!r} holds the labels, which are private: {name} are public")
            self._set(name, columns)

    def _check_randomizer(self) -> None:
        given = self.randomizer
        if given is None and self.nominal and self.prior is None and self.loss is None and not self.groups:
            # Without a prior to gain from, randomized response keeps classes best, and histograms can be estimated.
            given = "rr"
        if isinstance(given, str):
            name, colon, size = given.partition(":")
            known = (*RANDOMIZERS, "rr", "debiased-rr", "minimax")
            if name not in known or (colon and (name != "rr-top-k" or not size)):
                raise InvalidInput(f"the randomizer is {given!r}: {nearby(name, known)}")
            if size:
                check_integer(int(size) if size.isdecimal() else size, "K of rr-top-k:K", 1, self.k)
            if self.nominal and name in ("rr-on-bins", "gap-response", "debiased-rr", "minimax"):
                raise InvalidInput(f"names have no order, and {name!r} needs one: take rr, rr-with-prior or rr-top-k")
        elif isinstance(given, Mechanism):
            self._check_mechanism(given)
        elif given is not None:
            raise InvalidInput(f"the randomizer is of type {type(given).__name__}, expected a Mechanism or a name")
        self._set("randomizer", given)
        if given is not None and not self.needs_prior:
            solved = ("outputs", "bias_penalty") if given != "minimax" else ()
            useless = [name for name in ("prior", "loss", *solved) if getattr(self, name) is not None]
            useless += ["groups"] if self.groups else []
            if useless:
                subject = f"{given!r}" if isinstance(given, str) else "a given mechanism"
                raise InvalidInput(f"{', '.join(useless)} has no effect on {subject}, which needs no prior")

    def _check_mechanism(self, given: Mechanism) -> None:
        if not np.array_equal(given.labels, self.values):
            raise InvalidInput("the mechanism is made for other labels than the declared ones: make it for these")
        if given.epsilon > self.epsilon:
            raise InvalidInput(f"the mechanism spends {given.epsilon:g} and epsilon is {self.epsilon:g}: raise it")
        if self.nominal and not np.isin(given.outputs, self.values).all():
            raise InvalidInput("the mechanism has outputs other than classes 0, 1, ...: use one for classification")

    def _check_problem(self, order: Any) -> None:
        """Set the loss, penalty and outputs, none of which is None afterwards."""
        loss, penalty = RANDOMIZERS.get(self.rule, (None, None))
        if loss is not None:
            useless = [name for name in ("loss", "bias_penalty", "outputs") if getattr(self, name) is not None]
            if useless:
                raise InvalidInput(f"{self.rule} has its own loss: leave out {', '.join(useless)}")
            self._set("bias_penalty", penalty)
        if self.nominal and (self.clip or self.outputs is not None or self.bias_penalty):
            raise InvalidInput("labels are names, not numbers: leave out clip, outputs and bias_penalty")
        chosen = loss or _check_loss(self.loss) or (losses.zero_one if self.nominal else losses.squared)
        if self.nominal and chosen != losses.zero_one and not isinstance(chosen, Tabulated):
            raise InvalidInput(f"{chosen.name} is not a loss of names, which are right or wrong: leave it out")
        if chosen == losses.zero_one and (self.outputs is not None or (loss is None and self.bias_penalty is not None)):
            raise InvalidInput("zero-one loss has the labels as outputs: leave out outputs and bias_penalty")
        if self.bias_penalty is None:
            self._set("bias_penalty", math.inf if chosen == losses.squared else 0.0)
        self._set("loss", chosen)
        on_labels = self.nominal or chosen == losses.zero_one
        self._set("outputs", Grid(self.values) if on_labels else _check_outputs(self.outputs))
        if isinstance(self.prior, bool | int | float | np.number | str):
            # split_at refuses a prior that leaves nothing for the labels.
            self._set("prior", split_at(self.epsilon, self.prior).prior)  # type: ignore[arg-type]
        elif self.prior is not None:
            shares = check_prior(_as_array(self.prior, "prior"), self.k)
            self._set("prior", freeze_array(shares if order is None else shares[order]))
        # The largest part for the labels at any number of rows.
        most = split_at(self.epsilon, self.prior).labels if isinstance(self.prior, float) else self.epsilon
        self.problem(most)

    @property
    def nominal(self) -> bool:
        """Whether labels are names, without order and distance."""
        return self.task == "classification"

    @property
    def rule(self) -> str:
        """Name of the randomizer, without its K. Empty if none is named."""
        return self.randomizer.partition(":")[0] if isinstance(self.randomizer, str) else ""

    @property
    def needs_prior(self) -> bool:
        """Whether the randomizer depends on a prior."""
        return self.randomizer is None or self.rule in RANDOMIZERS

    @property
    def buys_prior(self) -> bool:
        """Whether a part of epsilon is spent on a prior."""
        return self.needs_prior and self.k > 1 and not isinstance(self.prior, np.ndarray)

    @property
    def draws_optimum(self) -> bool:
        """Whether the best randomizer draws as it is, with nothing mixed in for histograms."""
        return self.randomizer is not None or isinstance(self.prior, np.ndarray)

    @cached_property
    def values(self) -> Floats:
        """Declared labels as numbers, increasing, ``(k,)``: names by their indices."""
        return freeze_array(np.arange(len(self.labels), dtype=np.float64) if self.nominal else self.labels)

    @property
    def k(self) -> int:
        """Number of declared labels."""
        return int(self.values.size)

    @cached_property
    def names(self) -> tuple[str | None, ...] | None:
        """Names as a table of text would hold them. None for numbers."""
        return tuple(map(name_text, self.labels)) if self.nominal else None

    def split(self, rows: int) -> BudgetSplit:
        """Split the budget between prior and labels for a public number of rows."""
        if not self.buys_prior:
            given = self.randomizer
            return BudgetSplit(0.0, given.epsilon if isinstance(given, Mechanism) else self.epsilon)
        return split_budget(self.epsilon, self.k, rows) if self.prior is None else split_at(self.epsilon, self.prior)

    def problem(self, epsilon: float, prior: Floats | None = None) -> Problem:
        """Return the problem of the labels' part of the budget, by default with a uniform prior."""
        given, shares = self.outputs, np.full(self.k, 1 / self.k) if prior is None else prior
        outputs = feasible_output_set(self.values, epsilon, given) if isinstance(given, int) else given
        penalty = self.bias_penalty or 0.0
        return regression(self.values, shares, epsilon, loss=self.loss, bias_penalty=penalty, outputs=outputs)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that determines the noise, by which a retry is recognised."""
        # The gap decides whether labels are released, not which.
        names = set(Question.__dataclass_fields__) - {"gap"}
        document = {name: _plain(value) for name, value in vars(self).items() if name in names}
        return hashlib.sha256(_strict_json.canonical(document)).hexdigest()


Question.__init__ = suggest_parameters(Question.__init__)  # type: ignore[method-assign]


def _plain(value: Any) -> Any:
    """Convert an option to its JSON value."""
    if isinstance(value, Mechanism):
        return value.digest
    if isinstance(value, Tabulated | Grid):
        value = value.entries if isinstance(value, Tabulated) else value.values
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if isinstance(value, str | tuple) else repr(value)


def name_text(name: Name) -> str | None:
    """Return a name as a table of text would hold it."""
    return str(name).lower() if isinstance(name, bool) else None if name is None else str(name)


def check_names(given: object, what: str) -> tuple[str, ...]:
    """Check names of columns. A text is one name."""
    names, wrong = (given,) if isinstance(given, str) else given, f"{what} are names of columns, none of them twice"
    checked = tuple(_check_name(name, wrong) for name in names) if isinstance(names, tuple | list) else None
    if checked is None or len(set(checked)) < len(checked):
        raise InvalidInput(wrong)
    return checked


def _check_name(name: object, wrong: str) -> str:
    """Check and normalise the name of a column.

    In another encoding than UTF-8 a name reaches Python with its bytes escaped as surrogates.
    """
    try:
        if isinstance(name, str) and name:
            return os.fsencode(name).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        pass
    raise InvalidInput(wrong)


def _as_array(given: Any, name: str, example: str = "[0.5, 0.3, 0.2]") -> Any:
    """Return a public list as an array or a list."""
    if isinstance(given, str | bytes | Mapping | set | frozenset) or np.ma.isMaskedArray(given):
        raise InvalidInput(f"{name} is of type {type(given).__name__}, expected a list such as {example}")
    if isinstance(given, Iterable) and not (isinstance(given, range) or hasattr(given, "__array__")):
        # The cells of a list are checked themselves: numpy makes numbers of booleans.
        return list(given)
    return rectangular(given, name)


def _list_declared(given: Any) -> Any:
    """Return declared labels as an array or a list."""
    if given is None:
        raise InvalidInput(
            "declare which labels can occur, from public knowledge: labels=range(53) for numbers, or "
            "labels=['yes', 'no'] for names"
        )
    found = _as_array(given, "labels", "range(53) or ['yes', 'no']")
    if not isinstance(found, list):
        if found.ndim != 1:
            raise InvalidInput(f"labels is of type {type(given).__name__}, expected a list of numbers or names")
        if found.dtype.kind in "iuf":
            return found
        found = list(found) if found.dtype.kind in "mM" else found.tolist()
    strange = (each for each in found if not isinstance(each, Real | str | np.bool_ | None))
    if (other := next(strange, None)) is not None:
        raise InvalidInput(
            f"labels hold values of type {type(other).__name__}, expected numbers or text: convert them, and the "
            "column, such as by float or str"
        )
    return found


def _check_names(given: Any) -> tuple[Name, ...]:
    names = [name.item() if isinstance(name, np.generic) else name for name in given]
    named = [name for name in names if name is not None]
    kinds = sorted({type(name).__name__ for name in named})
    if len(kinds) != 1 or not isinstance(named[0], str | int):
        given = f"of type {' and '.join(kinds)}" if kinds else "missing"
        raise InvalidInput(f"labels that are names are {given}, expected all text, all integers or all booleans")
    # Surrogates, by which Python escapes bytes of other encodings.
    if isinstance(named[0], str) and any("\ud800" <= letter <= "\udfff" for letter in "".join(named)):
        raise InvalidInput("a label is not valid Unicode text: rename it")
    if len(set(names)) < len(names):
        raise InvalidInput(f"there are {len(names)} labels, expected no name twice")
    return tuple(names)


def _check_loss(given: object) -> Loss | Tabulated | None:
    if isinstance(given, str):
        if given not in LOSSES:
            raise InvalidInput(f"the loss is {given!r}: {nearby(given, LOSSES)}")
        return LOSSES[given]
    if given is not None and not isinstance(given, Loss | Tabulated):
        raise InvalidInput(losses.unknown(given))
    if isinstance(given, Loss) and losses.by_name.get(given.name) != given:
        raise InvalidInput(f"the loss {given.name!r} is not one of optrand.losses: use losses.Tabulated")
    return given


def _check_outputs(given: Any) -> OutputSet | int:
    if given is None:
        return Line()
    if isinstance(given, Line | Interval | Grid):
        return given
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return check_integer(
            given, "the size of the grid of outputs", 2, 10**7, why=": no single output is unbiased for two labels"
        )
    return Grid(check_labels(_as_array(given, "outputs")))
