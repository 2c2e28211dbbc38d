"""Additive noise in a file beside the table that it made, canonical JSON with a digest, and back."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np

from optrand.base import strict_json
from optrand.base.files import write_atomically
from optrand.base.strict_json import Document, fields, integer, number, numbers
from optrand.base.validation import Floats
from optrand.baselines import DiscreteLaplace, DiscreteStaircase, LabelRandomizer, Laplace, Moments, Staircase
from optrand.baselines.additive import Additive
from optrand.errors import InvalidFile, InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model.outputs import Interval

__all__ = [
    "KINDS",
    "MECHANISM",
    "NOISE",
    "finite_moments",
    "holds_noise",
    "kind_of",
    "load_randomizer",
    "randomizer_digest",
    "save_randomizer",
]

MECHANISM, NOISE = ".mechanism.json", ".randomizer.json"
"""Endings of the files beside a table."""

FORMAT = "optrand.randomizer"
FIELDS = ("kind", "labels", "epsilon", "sensitivity", "clip", "parameters", "exact", "moments")

KINDS: dict[str, type[Additive]] = {
    "laplace": Laplace,
    "staircase": Staircase,
    "discrete-laplace": DiscreteLaplace,
    "discrete-staircase": DiscreteStaircase,
}
"""The noise that a file can hold, and so a release can be made with."""

TOLERANCE = 1e-9
"""Moments are floats of closed forms, and the last bits of ``exp`` are not the same on every machine."""


def finite_moments(randomizer: LabelRandomizer, labels: Floats) -> Moments:
    """The moments of a randomizer at some labels.

    Raises
    ------
    InvalidInput
        They are no floats.

    Examples
    --------
    >>> finite_moments(Laplace([0, 1], 1.0), np.array([0.0, 1.0])).variances.tolist()
    [2.0, 2.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        moments = randomizer.moments(labels)
    if not (np.isfinite(moments.biases) & np.isfinite(moments.variances)).all():
        raise InvalidInput("the moments of the noise are no floats: raise epsilon, or rescale the labels")
    return moments


def save_randomizer(
    randomizer: Additive | Mechanism, path: str | os.PathLike[str], *, labels: Floats, overwrite: bool = False
) -> None:
    """Write additive noise, or a mechanism, as canonical JSON, whole or not at all.

    Parameters
    ----------
    randomizer : Laplace, Staircase, DiscreteLaplace, DiscreteStaircase or Mechanism
    path : path
        A new file, or an existing one with `overwrite`; never a symbolic link.
    labels : (k,) array
        The declared set, increasing; its moments are written down.
    overwrite : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InvalidInput
        The target may not be written, or moments are no floats.
    OSError
        As from the operating system; nothing is left behind.
    """
    if isinstance(randomizer, Mechanism):
        randomizer.save(path, overwrite=overwrite)
        return
    document = strict_json.sealed(_document(randomizer, labels), kind=FORMAT)
    write_atomically(path, strict_json.canonical(document), overwrite=overwrite)


def randomizer_digest(randomizer: Additive | Mechanism, labels: Floats) -> str:
    """Digest ``sha256:...`` of the content of the file that :func:`save_randomizer` writes."""
    if isinstance(randomizer, Mechanism):
        return randomizer.digest
    return str(strict_json.sealed(_document(randomizer, labels), kind=FORMAT)["digest"])


def kind_of(noise: Additive) -> str:
    """Name of the kind of some noise in :data:`KINDS`."""
    return next(name for name, kind in KINDS.items() if type(noise) is kind)


def _document(randomizer: Additive, labels: Floats) -> Document:
    kind = kind_of(randomizer)
    values = {name: getattr(randomizer, name) for name in _parameters(type(randomizer))}
    clip, moments = randomizer.clip, finite_moments(randomizer, labels)
    return {
        "kind": kind,
        "labels": labels.tolist(),
        "epsilon": randomizer.epsilon,
        "sensitivity": randomizer.sensitivity,
        "clip": None if clip is None else {"low": clip.low, "high": clip.high},
        "parameters": {name: str(value) if isinstance(value, int) else value for name, value in values.items()},
        "exact": randomizer.exact,
        "moments": {"biases": moments.biases.tolist(), "variances": moments.variances.tolist()},
    }


def holds_noise(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it holds additive noise, rather than a mechanism or anything else.

    Raises
    ------
    InvalidFile
        The file is no JSON at all.
    OSError
        The file cannot be read.
    """
    return strict_json.stated_format(Path(path).read_bytes()) == FORMAT


def load_randomizer(path: str | os.PathLike[str]) -> Additive:
    """Read saved noise, and verify what its file says about it.

    Parameters
    ----------
    path : path
        What :func:`save_randomizer` wrote. White space and the order of fields may differ; the content may not.

    Raises
    ------
    InvalidFile
        The file is damaged, unknown or written by a newer optrand, holds parameters without meaning, calls exact what
        is not, or states other moments than the noise has.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> labels = np.arange(4.0)
    >>> noise = DiscreteLaplace(labels, 1.0, clip=Interval(0, 3))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save_randomizer(noise, f"{directory}/noise.json", labels=labels)
    ...     load_randomizer(f"{directory}/noise.json") == noise
    True
    """
    content = strict_json.unsealed(Path(path).read_bytes(), FIELDS, kind=FORMAT)
    kind = content["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidFile(f"the file's kind is unknown: expected one of {', '.join(KINDS)}")
    labels = np.array(numbers(content["labels"], "labels"))
    if labels.size < 2 or (np.diff(labels) <= 0).any():
        raise InvalidFile("labels do not strictly increase: expected two or more that do")
    stated = fields(content["moments"], "moments", ("biases", "variances"))
    claimed = Moments(*(_one_each(stated[name], f"moments.{name}", labels.size) for name in ("biases", "variances")))
    try:
        randomizer = KINDS[kind](labels, number(content["epsilon"], "epsilon"), **_options(content, kind))
        moments = finite_moments(randomizer, labels)
    except InvalidInput as error:
        raise InvalidFile(f"the file does not hold a private randomizer: {error}") from error
    if content["exact"] is not randomizer.exact:
        raise InvalidFile(f"the file does not say rightly whether {kind} noise is exact: expected {randomizer.exact}")
    size = np.sqrt(moments.variances + moments.biases**2)
    for given, true, scale in (
        (claimed.biases, moments.biases, size),
        (claimed.variances, moments.variances, size**2),
    ):
        if not (np.abs(given - true) <= TOLERANCE * scale).all():
            raise InvalidFile("the file's moments are not those of its noise")
    return randomizer


def _parameters(kind: type[Additive]) -> list[str]:
    """Names of the options of one kind alone."""
    common = {field.name for field in dataclasses.fields(Additive)}
    return [field.name for field in dataclasses.fields(kind) if field.name not in common]


def _options(content: Document, kind: str) -> dict[str, Any]:
    """The arguments of the constructor beside labels and epsilon."""
    options: dict[str, Any] = {"sensitivity": number(content["sensitivity"], "sensitivity")}
    if content["clip"] is not None:
        ends = fields(content["clip"], "clip", ("low", "high"))
        options["clip"] = Interval(number(ends["low"], "clip.low"), number(ends["high"], "clip.high"))
    given = fields(content["parameters"], "parameters", _parameters(KINDS[kind]))
    for name in given:
        read = integer if name == "rise" else number
        options[name] = read(given[name], f"parameters.{name}")
    return options


def _one_each(value: object, where: str, count: int) -> Floats:
    given = numbers(value, where)
    if len(given) != count:
        raise InvalidFile(f"{where} has {len(given)} entries, expected one for each of {count} labels")
    return np.array(given)
