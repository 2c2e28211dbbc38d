"""Declared sets, jobs and options of a release in memory, as a user passes them to :func:`optrand.randomize`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from optrand.base.validation import Floats, flag, real
from optrand.base.validation import epsilon as checked_epsilon
from optrand.base.validation import labels as checked_labels
from optrand.base.validation import prior as checked_prior
from optrand.baselines.additive import Additive
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model import losses
from optrand.model.losses import Loss, Tabulated
from optrand.model.outputs import Grid, Interval, Line
from optrand.release.base_job import Job
from optrand.release.baseline_job import BaselineJob
from optrand.release.declared import DeclaredOutputs, EvenGrid, PublicPrior
from optrand.release.declared_sets import DeclaredClasses, DeclaredNumbers
from optrand.release.job import LabelJob
from optrand.release.named import NAMES, minimax_mechanism, named_randomizer
from optrand.release.rules import RULES, Rule

__all__ = ["Asked", "ClassName"]

ClassName = str | int | bool | None


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked for one column: see :func:`optrand.randomize` for the parameters.

    Raises
    ------
    InvalidInput
        Options without meaning, or that exclude each other.
    """

    epsilon: float
    domain: Any = None
    classes: Any = None
    public_prior: Any = None
    prior_epsilon: float | None = None
    bias_penalty: float = math.inf
    outputs: Any = None
    loss: Loss | Tabulated | None = None
    randomizer: str | Mechanism | Additive | None = None
    k: int | None = None
    clip: bool = False
    gap: float = 1e-6
    grouped: bool = False

    def __post_init__(self) -> None:
        """Check what goes together."""
        checked_epsilon(self.epsilon)
        flag(self.clip, "clip")
        real(self.gap, "gap")
        if (self.domain is None) == (self.classes is None):
            raise InvalidInput(
                "the labels that may occur are public and never found in the labels: declare either numbers, such as "
                "domain=range(53), or names, such as classes=['yes', 'no']"
            )
        if self.classes is not None and (self.clip or self.outputs is not None or self.bias_penalty != math.inf):
            raise InvalidInput("classes are no numbers: leave out clip, outputs and bias_penalty")
        if self.loss is not None and not isinstance(self.loss, Loss | Tabulated):
            raise InvalidInput(losses.unknown(self.loss))
        if self.k is not None and self.randomizer != "rr-top-k":
            raise InvalidInput("k is the number of labels that randomizer='rr-top-k' keeps: leave it out")
        if self.rule is not None:
            if self.rule.loss is not None and self._asks_for_another:
                raise InvalidInput(f"{self.randomizer} has its own loss: leave out outputs, loss and bias_penalty")
            if self.classes is not None and self.rule.name in ("rr-on-bins", "gap-response"):
                raise InvalidInput(f"classes have no order, and {self.rule.name!r} needs one: take 'rr' or 'rr-top-k'")
        elif self.randomizer is not None:
            priors, minimax = (self.public_prior, self.prior_epsilon, self.loss), self.randomizer == "minimax"
            if any(option is not None for option in priors) or (self._asks_for_another and not minimax):
                raise InvalidInput(
                    "a randomizer is given, so that none is solved for: leave out public_prior, prior_epsilon, "
                    "outputs, loss and bias_penalty"
                )

    @property
    def _asks_for_another(self) -> bool:
        """Whether a problem is stated that is not that of the default."""
        return self.outputs is not None or self.loss is not None or self.bias_penalty != math.inf

    @cached_property
    def rule(self) -> Rule | None:
        """Randomizer for a prior, where one is named."""
        return Rule(self.randomizer, self.k) if isinstance(self.randomizer, str) and self.randomizer in RULES else None

    @cached_property
    def names(self) -> tuple[ClassName, ...] | None:
        """Declared classes, of their type."""
        return None if self.classes is None else _class_names(self.classes)

    @cached_property
    def declared(self) -> DeclaredNumbers | DeclaredClasses:
        """Declared set."""
        if self.names is None:
            return DeclaredNumbers(np.sort(self._numbers), clip=self.clip)
        return DeclaredClasses(tuple(_as_text(name) for name in self.names))

    @cached_property
    def job(self) -> Job:
        """What finds the randomizer."""
        labels, classes = self.declared.labels, self.names is not None
        # Without a prior to gain from, classes are best kept by randomized response, which answers histograms.
        priors = (self.public_prior, self.prior_epsilon, self.loss)
        priorless = not self.grouped and all(one is None for one in priors)
        drawing = "rr" if classes and priorless and self.randomizer is None else self.randomizer
        rule = self.rule
        if drawing is not None and rule is None:
            return BaselineJob(
                labels=labels,
                randomizer=self._randomizer(drawing, labels),
                clip=self.clip,
                classes=classes,
                minimax_gap=self.gap if drawing == "minimax" else None,
            )
        loss = self.loss or (losses.zero_one if classes else losses.squared)
        penalty = 0.0 if classes else self.bias_penalty
        if rule is not None and rule.loss is not None and rule.bias_penalty is not None:
            loss, penalty = rule.loss, rule.bias_penalty
        return LabelJob(
            labels=labels,
            epsilon=self.epsilon,
            prior_epsilon=self.prior_epsilon,
            public_prior=self._prior(labels),
            outputs=Grid(labels) if classes or loss == losses.zero_one else _outputs(self.outputs),
            bias_penalty=penalty,
            loss=loss,
            rule=rule,
            max_gap=self.gap,
            clip=self.clip,
        )

    def check_type(self, kind: Any, column: str) -> None:
        """Refuse a column whose type is not that of the declared set, :class:`InvalidInput`."""
        self.declared.released_type(kind, column, text=False)
        if self.names is None:
            return
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        for name, known in (("booleans", pa.types.is_boolean), ("integers", pa.types.is_integer)):
            if known(value) != (_type_of(self.names) == name):
                raise InvalidInput(
                    f"column {column!r} is of type {value} and the declared classes are {_type_of(self.names)}: "
                    "declare them as the column has them"
                )

    @property
    def _numbers(self) -> Floats:
        return checked_labels(_array(self.domain, "domain"))

    def _prior(self, labels: Floats) -> PublicPrior | None:
        if self.public_prior is None:
            return None
        shares = checked_prior(_array(self.public_prior, "public_prior"), labels.size)
        return PublicPrior(shares if self.names is not None else shares[np.argsort(self._numbers)])

    def _randomizer(self, given: object, labels: Floats) -> Mechanism | Additive:
        if given == "minimax" and self.names is None:
            outputs = _outputs(self.outputs)
            given = minimax_mechanism(labels, self.epsilon, bias_penalty=self.bias_penalty, outputs=outputs)
        if isinstance(given, str):
            if given not in NAMES:
                raise InvalidInput(f"the randomizer is {given!r}, expected one of {', '.join((*RULES, *NAMES))}")
            given = named_randomizer(given, labels, epsilon=self.epsilon)
        if not isinstance(given, Mechanism | Additive):
            raise InvalidInput(
                f"the randomizer is of type {type(given).__name__}, expected a Mechanism, additive noise or a name"
            )
        if given.epsilon > self.epsilon:
            raise InvalidInput(f"the randomizer spends {given.epsilon:g} and epsilon is {self.epsilon:g}: raise it")
        if self.names is not None and not (isinstance(given, Mechanism) and np.isin(given.outputs, labels).all()):
            raise InvalidInput("the randomizer has outputs that are no classes: take 'rr', or a mechanism of them")
        return given


def _array(given: Any, name: str) -> Any:
    """Numbers that are declared, as an array or a list."""
    if isinstance(given, str | bytes | Mapping | set | frozenset) or np.ma.isMaskedArray(given):
        raise InvalidInput(f"{name} is of type {type(given).__name__}, expected a list of numbers, such as range(53)")
    try:
        array = np.asarray(given)
    except ValueError:
        raise InvalidInput(f"{name} is a ragged list, expected one of numbers") from None
    # The cells of a list are checked themselves: numpy makes numbers of booleans.
    return list(given) if isinstance(given, list | tuple) else array


def _class_names(given: Any) -> tuple[ClassName, ...]:
    if isinstance(given, str | bytes | Mapping | set | frozenset) or np.ma.isMaskedArray(given):
        raise InvalidInput(f"classes are of type {type(given).__name__}, expected a list such as ['yes', 'no']")
    try:
        names = [name.item() if isinstance(name, np.generic) else name for name in given]
    except TypeError:
        raise InvalidInput(
            f"classes are of type {type(given).__name__}, expected a list such as ['yes', 'no']"
        ) from None
    named = [name for name in names if name is not None]
    if not named or len({type(name) for name in named}) > 1 or not isinstance(named[0], str | int):
        raise InvalidInput(
            "classes are of several types or none, expected all text, all integers or all True and False"
        )
    if isinstance(named[0], str) and any("\ud800" <= character <= "\udfff" for name in named for character in name):
        raise InvalidInput("a class is no valid Unicode text: rename it")
    return tuple(names)


def _type_of(names: tuple[ClassName, ...]) -> str:
    first = next(name for name in names if name is not None)
    return "booleans" if isinstance(first, bool) else "integers" if isinstance(first, int) else "text"


def _as_text(name: ClassName) -> str | None:
    return str(name).lower() if isinstance(name, bool) else None if name is None else str(name)


def _outputs(given: DeclaredOutputs | ArrayLike | None) -> DeclaredOutputs:
    if given is None:
        return Line()
    if isinstance(given, Line | Interval | Grid | EvenGrid):
        return given
    return Grid(checked_labels(_array(given, "outputs")))
