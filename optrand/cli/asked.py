"""Job of ``optrand randomize``: what labels are, and what they are to become, from the options as they are written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from optrand.cli.options import read_epsilon, read_gap, read_penalty
from optrand.errors import InvalidInput

if TYPE_CHECKING:
    from optrand.base.validation import Floats
    from optrand.mechanism.mechanism import Mechanism
    from optrand.model.losses import Loss, Tabulated
    from optrand.release.base_job import Job
    from optrand.release.rules import Rule

__all__ = ["Asked"]

LOSSES = {"squared": "squared", "absolute": "absolute", "poisson": "poisson_log", "zero-one": "zero_one"}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Options about labels, None where they were not given."""

    labels: str | None
    classes: str | None
    task: str | None
    loss: str | None
    randomizer: str | None
    minimax: bool
    k: str | None
    epsilon: str
    prior_epsilon: str | None
    public_prior: Path | None
    paid_prior: Path | None
    outputs: str | None
    bias_penalty: str | None
    clip: bool
    clip_outputs: str | None
    allow_inexact: bool
    allow_gap: str | None
    group: str | None
    nulls: str

    def named(self) -> tuple[str | None, ...] | None:
        """Names of the classes, None among them for missing labels.

        Raises
        ------
        InvalidInput
            Neither numbers nor classes are declared, or both; or a task that is not theirs.
        """
        from optrand.release.class_names import parse_classes

        if (self.labels is None) == (self.classes is None):
            raise InvalidInput("labels are either numbers (--labels) or classes (--classes): give one of the two")
        if self.task not in (None, "classification", "regression"):
            raise InvalidInput(f"--task is {self.task!r}, expected classification or regression")
        if self.classes is None:
            if self.nulls == "class":
                raise InvalidInput("a missing label is a class of its own only among --classes")
            return None
        if self.task == "regression":
            raise InvalidInput("classes are no numbers: leave out --task regression, or declare --labels")
        if self.clip:
            raise InvalidInput("classes have no ends to clip to: leave out --clip")
        names = parse_classes(self.classes)
        return (*names, None) if self.nulls == "class" else names

    def job(self) -> tuple[Job, tuple[str | None, ...] | None]:
        """The job, and the names of its classes."""
        import numpy as np

        from optrand.release.declared import parse_labels
        from optrand.release.rules import RULES

        names = self.named()
        labels = parse_labels(self.labels or "") if names is None else np.arange(len(names), dtype=np.float64)
        budget, name = read_epsilon(self.epsilon), self._name
        if self.k is not None and name != "rr-top-k":
            raise InvalidInput("--k is how many labels --randomizer rr-top-k keeps: leave it out")
        if name is not None and name not in RULES:
            return self._without_prior(name, labels, budget), names
        return self._with_prior(labels, names, budget, rule=None if name is None else self._rule(name)), names

    @property
    def _classes(self) -> bool:
        return self.classes is not None or self.task == "classification"

    @property
    def _name(self) -> str | None:
        """Name of the randomizer: randomized response of classes where nothing asks for a prior."""
        if self.minimax:
            if self.randomizer not in (None, "minimax"):
                raise InvalidInput(
                    f"--minimax and --randomizer {self.randomizer} are two randomizers: give one of them"
                )
            return "minimax"
        asks = (self.prior_epsilon, self.public_prior, self.paid_prior, self.loss, self.allow_gap, self.group)
        default = "rr" if self._classes and all(one is None for one in asks) else None
        return default if self.randomizer is None else self.randomizer

    def _rule(self, name: str) -> Rule:
        from optrand.release.decimals import whole
        from optrand.release.rules import Rule

        if self._classes and name in ("rr-on-bins", "gap-response"):
            raise InvalidInput(f"classes have no order, and {name!r} needs one: take rr, rr-top-k or rr-with-prior")
        if self.k is None:
            return Rule(name)
        size = whole(self.k)
        if size is None or size < 1:
            raise InvalidInput(f"--k is {self.k!r}, expected a whole number above 0")
        return Rule(name, size)

    def _without_prior(self, name: str, labels: Floats, budget: float) -> Job:
        from optrand.release.baseline_job import BaselineJob
        from optrand.release.declared import parse_clip
        from optrand.release.named import NAMES, named_randomizer
        from optrand.release.rules import RULES

        solved = () if name == "minimax" else ("outputs", "bias_penalty", "allow_gap")
        self._refuse(name, "prior_epsilon", "public_prior", "paid_prior", *solved, "loss")
        saved = name.endswith(".json")
        if not saved and name not in NAMES:
            known = ", ".join((*RULES, *NAMES))
            raise InvalidInput(f"--randomizer is {name!r}, expected one of {known}, or a saved mechanism, FILE.json")
        if self._classes and name != "rr" and not saved:
            raise InvalidInput(
                f"{name!r} makes numbers that are no classes: use rr, which is minimax for classes, rr-with-prior or "
                "rr-top-k"
            )
        if name == "minimax":
            return self._minimax(labels, budget)
        interval = None if self.clip_outputs is None else parse_clip(self.clip_outputs)
        drawing = (
            self._saved(Path(name), labels, budget)
            if saved
            else named_randomizer(name, labels, epsilon=budget, clip_outputs=interval)
        )
        return BaselineJob(
            labels=labels,
            randomizer=drawing,
            clip=self.clip,
            allow_inexact=self.allow_inexact,
            classes=self._classes,
        )

    def _minimax(self, labels: Floats, budget: float) -> Job:
        from optrand.release.baseline_job import BaselineJob
        from optrand.release.declared import parse_outputs
        from optrand.release.named import minimax_mechanism

        if self.clip_outputs is not None:
            raise InvalidInput("--clip-outputs is for an additive --randomizer: use --outputs interval:LOW:HIGH")
        penalty = read_penalty("inf" if self.bias_penalty is None else self.bias_penalty)
        outputs = parse_outputs("line" if self.outputs is None else self.outputs)
        return BaselineJob(
            labels=labels,
            randomizer=minimax_mechanism(labels, budget, bias_penalty=penalty, outputs=outputs),
            clip=self.clip,
            minimax_gap=1e-6 if self.allow_gap is None else read_gap(self.allow_gap, "--allow-gap"),
        )

    def _saved(self, path: Path, labels: Floats, budget: float) -> Mechanism:
        """Mechanism of a file, verified as it is loaded."""
        import numpy as np

        from optrand.mechanism.mechanism import load

        mechanism = load(path)
        if self.clip_outputs is not None:
            raise InvalidInput("--clip-outputs is for additive noise, not for a mechanism")
        if mechanism.epsilon > budget:
            raise InvalidInput(f"the mechanism of {path} spends {mechanism.epsilon!r} and --epsilon is less: raise it")
        if self.classes is not None and not np.isin(mechanism.outputs, labels).all():
            raise InvalidInput(f"the mechanism of {path} has outputs that are no classes: 0, 1, ... in their order")
        return mechanism

    def _with_prior(
        self, labels: Floats, names: tuple[str | None, ...] | None, budget: float, *, rule: Rule | None
    ) -> Job:
        from optrand.model.outputs import Grid
        from optrand.release.class_names import read_class_prior
        from optrand.release.declared import parse_outputs, read_prior
        from optrand.release.job import LabelJob
        from optrand.release.paid_prior import load_paid_prior

        if self.clip_outputs is not None:
            raise InvalidInput("--clip-outputs is for an additive --randomizer: use --outputs interval:LOW:HIGH")
        loss, public = self._loss(rule), None
        if self.public_prior is not None:
            public = (
                read_prior(self.public_prior, labels) if names is None else read_class_prior(self.public_prior, names)
            )
        grid = self._classes or loss.name == "zero_one"
        gap = {} if self.allow_gap is None else {"max_gap": read_gap(self.allow_gap, "--allow-gap")}
        return LabelJob(
            labels=labels,
            epsilon=budget,
            prior_epsilon=None if self.prior_epsilon is None else read_epsilon(self.prior_epsilon, "--prior-epsilon"),
            public_prior=public,
            paid_prior=None if self.paid_prior is None else load_paid_prior(self.paid_prior),
            outputs=Grid(labels) if grid else parse_outputs("line" if self.outputs is None else self.outputs),
            bias_penalty=self._penalty(loss, rule),
            loss=loss,
            rule=rule,
            clip=self.clip,
            **gap,
        )

    def _penalty(self, loss: Loss | Tabulated, rule: Rule | None) -> float:
        """Penalty on bias; by default no bias is allowed, but for losses that are not squared."""
        if rule is not None and rule.bias_penalty is not None:
            return rule.bias_penalty
        if self.bias_penalty is not None:
            return read_penalty(self.bias_penalty)
        return math.inf if loss.name == "squared" else 0.0

    def _loss(self, rule: Rule | None) -> Loss | Tabulated:
        """What an error costs."""
        from optrand.model import losses
        from optrand.release.declared import read_loss

        loss: Loss | Tabulated
        if rule is not None and rule.loss is not None:
            self._refuse(rule.name, "loss", "bias_penalty", "outputs")
            loss = rule.loss
        elif self.loss is not None and self.loss.startswith("@"):
            loss = read_loss(self.loss[1:])
        else:
            name = self.loss if self.loss is not None else "zero-one" if self._classes else "squared"
            if name not in LOSSES:
                raise InvalidInput(f"--loss is {name!r}, expected one of {', '.join(LOSSES)}, or @FILE")
            loss = losses.by_name[LOSSES[name]]
        if loss == losses.zero_one and self.task == "regression":
            raise InvalidInput("zero-one is the loss of classification: leave out --task regression")
        if loss == losses.zero_one or self._classes:
            self._refuse("classification", "bias_penalty", "outputs")
        if self._classes and loss != losses.zero_one and not isinstance(loss, losses.Tabulated):
            raise InvalidInput(f"{loss.name} is no loss of classes, which are right or wrong: leave it out, or @FILE")
        return loss

    def _refuse(self, subject: str, *names: str) -> None:
        given = [f"--{name.replace('_', '-')}" for name in names if getattr(self, name) is not None]
        if given:
            raise InvalidInput(f"{', '.join(given)} means nothing to {subject!r}, only to the optimal randomizer")
