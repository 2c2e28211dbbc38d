"""Mechanisms: exact integer tables, proven private at construction, with their problem, their dual and their file.

The sampler reads the table that was verified and nothing else.
"""

from __future__ import annotations

import errno
import math
import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base import strict_json
from optrand.base.arithmetic import Integers, float_above, log_above, quotient
from optrand.base.files import write_atomically
from optrand.base.suggestions import missing
from optrand.base.validation import Floats, frozen
from optrand.base.validation import values as checked_values
from optrand.errors import InvalidFile, InvalidInput
from optrand.mechanism import file_format
from optrand.mechanism.privacy import LARGEST, checked_integers, verified_ratio, verified_total
from optrand.mechanism.privacy_loss import DominatingPair
from optrand.model import losses
from optrand.model.arcs import Arcs, IntegerArcs
from optrand.model.exact_columns import ExactColumns, charged, deviations
from optrand.model.losses import Loss, Tabulated
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.protocol import Moments
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual
from optrand.model.summary import Summary
from optrand.sampling import ArcSampler, Sampler
from optrand.sampling.drawing import LabelIndex
from optrand.sampling.entropy import EntropySource, RecordEntropy, without_seed

__all__ = ["Mechanism", "load"]

DENSE = 1 << 18
"""Largest table that arcs are sampled from.

A table is drawn from two to four times as fast as arcs are, but preparing it costs about half a microsecond and a
hundred bytes an entry: at this size a tenth of a second, which a million draws repay.
"""

FIELDS = ("problem", "dual", "outputs", "ratio", "total")


@dataclass(frozen=True, eq=False, init=False)
class Mechanism:
    """Epsilon-DP randomizer in exact integers, proven private at construction.

    Label ``y`` produces output ``i`` with probability ``weights[y, i] / total``, exactly.

    Parameters
    ----------
    problem : Problem
    dual : Dual or None
        Multipliers that certify its optimality; privacy does not rest on them.
    outputs : (n,) array
        Strictly increasing, inside the problem's output set.
    weights : (k, n) array of int, or IntegerArcs
        Positive integers of any size, all rows with one total; or the interval columns that they are sums of.
    ratio : Fraction
        Above 1 and at most ``exp(epsilon)``; no column may exceed it. With arcs it is also their ratio.

    Raises
    ------
    InvalidInput
        A table that is not private, rows with different totals, or parts that do not fit.

    Notes
    -----
    An output that floats cannot hold is two columns, at the floats on either side, so that means are right to the last
    bit: :attr:`outputs` and :attr:`weights` are what is drawn, :attr:`n`, :attr:`unsplit` and :attr:`design` count and
    show such pairs as one.

    Of arcs the proof takes ``O(k + n)`` integer operations, and only :attr:`weights` writes the table out. Two
    mechanisms are equal where their files are: arcs and the table that they make are two files.

    Examples
    --------
    >>> import math
    >>> from optrand.model.problem import unbiased_regression
    >>> problem = unbiased_regression([0, 1], [0.5, 0.5], epsilon=0.7)
    >>> mechanism = Mechanism(problem, None, [-1.0, 2.0], [[2, 1], [1, 2]], Fraction(2))
    >>> mechanism.total, mechanism.realised_ratio, mechanism.exact_biases
    (3, Fraction(2, 1), (Fraction(0, 1), Fraction(0, 1)))
    >>> mechanism.realised_epsilon == math.nextafter(math.log(2), 1)
    True
    >>> arcs = IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 1])
    >>> Mechanism(problem, None, [-1.0, 2.0], arcs, Fraction(2)).weights.tolist()
    [[2, 1], [1, 2]]
    """

    problem: Problem
    dual: Dual | None
    outputs: Floats
    table: Integers | IntegerArcs
    ratio: Fraction
    total: int
    """The total of every row of :attr:`weights`."""

    def __init__(
        self,
        problem: Problem,
        dual: Dual | None,
        outputs: ArrayLike,
        weights: ArrayLike | IntegerArcs,
        ratio: Fraction,
    ) -> None:
        """Prove the promise, or refuse."""
        _check_types(problem, dual)
        checked = _checked_outputs(outputs, problem)
        table = _checked_table(weights, problem.k, checked.size)
        verified_ratio(ratio, problem.epsilon)
        total = table.total(ratio) if isinstance(table, IntegerArcs) else verified_total(table, ratio)
        if total >= LARGEST:
            raise InvalidInput(f"the weights' total has more than {strict_json.MAX_DIGITS} digits: divide the weights")
        fields = {"problem": problem, "dual": dual, "outputs": checked, "table": table, "ratio": ratio, "total": total}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def epsilon(self) -> float:
        """Budget of the problem, in nats."""
        return self.problem.epsilon

    @property
    def labels(self) -> Floats:
        """Increasing labels, one a row of :attr:`weights`."""
        return self.problem.labels

    @property
    def arcs(self) -> IntegerArcs | None:
        """Interval columns that the table was given as, if it was."""
        return self.table if isinstance(self.table, IntegerArcs) else None

    @cached_property
    def weights(self) -> Integers:
        """Table of integers, shape ``(k, n)``, read-only; of arcs it is written out on first use."""
        return self.table.table(self.ratio) if isinstance(self.table, IntegerArcs) else self.table

    @property
    def realised_ratio(self) -> Fraction:
        """Largest ratio of two weights of one output, exactly: 1 where labels make no difference."""
        if self.arcs is not None:
            return self.arcs.largest_ratio(self.ratio)
        tops, bottoms = self.weights.max(axis=0), self.weights.min(axis=0)
        return max(Fraction(top, bottom) for top, bottom in zip(tops, bottoms, strict=True))

    @property
    def realised_epsilon(self) -> float:
        """Logarithm of :attr:`realised_ratio`, rounded up."""
        return log_above(self.realised_ratio)

    @cached_property
    def dominating_pair(self) -> DominatingPair:
        """Three losses and their masses that no two labels exceed: the exact account of repeated releases."""
        if self.arcs is not None:
            return DominatingPair.of_arcs(self.arcs, self.ratio, self.total)
        # Where labels make no difference any ratio will do, with no mass.
        ratio = self.realised_ratio if self.realised_ratio > 1 else self.ratio
        return DominatingPair.of_table(self.weights, ratio, self.total)

    def privacy_loss_distribution(self, interval: float | None = None) -> Any:
        """Privacy loss distribution for `dp_accounting`, by :meth:`DominatingPair.distribution`.

        Parameters
        ----------
        interval : float, optional
            Discretisation of the losses; that of the distributions which it is composed with.

        Raises
        ------
        MissingExtra
            `dp_accounting` is not installed.
        """
        return self.dominating_pair.distribution(interval)

    @cached_property
    def exact_biases(self) -> tuple[Fraction, ...]:
        """``E[M(y)] - y`` of each label, exactly."""
        if self.arcs is not None:
            return tuple(self.columns(joined=False).biases)
        return tuple(deviations(self.weights, self.labels, self.outputs, total=self.total))

    def exact_losses(self, bias_penalty: float = 0.0) -> list[Fraction]:
        """Half the squared error of each label and of the charge of its bias, exactly."""
        if self.arcs is not None:
            errors = self.columns(joined=False).squared_errors()
        else:
            errors = deviations(self.weights, self.labels, self.outputs, 2, total=self.total)
        return charged(errors, self.exact_biases, bias_penalty)

    def losses(self, loss: Loss | Tabulated = losses.squared, *, bias_penalty: float = 0.0) -> Floats:
        """Expected loss of each label and the charge of its bias, shape ``(k,)``; squared loss exact and rounded up."""
        if loss != losses.squared:
            return self.randomizer.losses(loss, bias_penalty=bias_penalty)
        return np.array([float_above(exact) for exact in self.exact_losses(bias_penalty)])

    @property
    def bias(self) -> float:
        """Largest ``|E[M(y)] - y|``, rounded up."""
        return float_above(max(abs(bias) for bias in self.exact_biases))

    @property
    def randomizer(self) -> Randomizer:
        """Channel in floats, for plots and reports, not for sampling.

        Each probability of a table, and each mass of an arc, is correctly rounded. Arcs are tables at the ratio
        ``exp(epsilon)``: where :attr:`ratio` is lower by more than rounding, they claim its logarithm instead.
        """
        if self.arcs is None:
            matrix = (self.weights / self.total).astype(np.float64)
            return Randomizer(self.labels, self.outputs, matrix, self.epsilon)
        return self._channel(self.arcs, self.outputs)

    @property
    def design(self) -> Randomizer:
        """Channel in floats before columns were split between neighbouring floats: for pictures."""
        return self.randomizer if self.arcs is None else self._channel(*self.unsplit.rounded()[::-1])

    def _channel(self, flow: IntegerArcs, outputs: Floats) -> Randomizer:
        masses = np.array([quotient(mass * self.ratio.denominator, self.total) for mass in flow.masses.tolist()])
        arcs = Arcs(flow.k, flow.first, flow.last, outputs[flow.at], masses)
        logarithm = log_above(self.ratio)
        claimed = self.epsilon if math.isclose(logarithm, self.epsilon, rel_tol=2**-49) else logarithm
        return Randomizer.of_arcs(self.labels, arcs, claimed)

    @cached_property
    def n(self) -> int:
        """Number of outputs, two neighbouring floats that share a column counted as one."""
        return self.outputs.size if self.arcs is None else len(set(self.unsplit.outputs))

    @cached_property
    def unsplit(self) -> ExactColumns:
        """Columns of :attr:`arcs`, with outputs that are exact where floats are split (on a grid none are).

        Raises
        ------
        InvalidInput
            The mechanism is a table.
        """
        return self.columns(joined=not isinstance(self.problem.outputs, Grid))

    def columns(self, *, joined: bool) -> ExactColumns:
        """Columns of :attr:`arcs`, as they are or with those joined that one was split into.

        Raises
        ------
        InvalidInput
            The mechanism is a table.
        """
        if self.arcs is None:
            raise InvalidInput("the mechanism is a table: only interval columns are split between neighbouring floats")
        return self._joined if joined else self._split

    @cached_property
    def _joined(self) -> ExactColumns:
        return ExactColumns.of_integers(self.labels, self.outputs, cast(IntegerArcs, self.arcs), self.ratio)

    @cached_property
    def _split(self) -> ExactColumns:
        arcs = cast(IntegerArcs, self.arcs)
        return ExactColumns.of_integers(self.labels, self.outputs, arcs, self.ratio, joined=False)

    @cached_property
    def sampler(self) -> Sampler | ArcSampler:
        """Sampler of the table, or of the arcs where the table would be large; prepared once."""
        if self.arcs is None or self.labels.size * self.outputs.size <= DENSE:
            return Sampler.of_proven(self.labels, self.outputs, self.weights, self.total)
        return ArcSampler.of_proven(self.labels, self.outputs, self.arcs, self.ratio, self.total)

    @without_seed
    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats:
        """One output for every label in `values`, drawn with exactly the probabilities of the table.

        Parameters
        ----------
        values : array of labels, any shape
        source : EntropySource, optional
            By default the operating system, the only choice for a release.

        Returns
        -------
        array of outputs, of the shape of `values`

        Raises
        ------
        InvalidInput
            Values that are no labels; the message tells neither which nor how many.
        """
        return self.sampler.sample(values, source=source)

    def sample_records(self, values: ArrayLike, ids: NDArray[np.uint64], streams: RecordEntropy) -> Floats:
        """One output for every label, the same for the same record whatever the batch, the order or the partition.

        Parameters
        ----------
        values : (n,) array of labels
        ids : (n, 2) array of uint64
            Ids of the records, distinct over the whole release.
        streams : RecordEntropy
            Such as :class:`~optrand.sampling.keyed.RecordStreams`.

        Returns
        -------
        (n,) array of outputs

        Raises
        ------
        InvalidInput
            As from :meth:`sample`, or ids of another type or number.
        """
        return self.sampler.sample_records(values, ids, streams)

    exact: ClassVar[Literal[True]] = True

    def moments(self, labels: ArrayLike) -> Moments:
        """Moments at some labels, each bias exact but for one rounding.

        Raises
        ------
        InvalidInput
            Numbers that are no labels.
        """
        rows = LabelIndex(self.labels).find(checked_values(labels, "labels"))
        if (rows < 0).any():
            raise InvalidInput("the mechanism is made for other labels: pass some of its own")
        biases = np.array([float(bias) for bias in self.exact_biases])
        return Moments(biases[rows], self.randomizer.variances[rows])

    @property
    def outputs_in_words(self) -> str:
        """How many outputs there are, and between which."""
        return f"{self.n} values from {self.outputs[0]:g} to {self.outputs[-1]:g}"

    @cached_property
    def _document(self) -> dict[str, Any]:
        return strict_json.sealed(
            {
                "problem": file_format.problem_document(self.problem),
                "dual": file_format.dual_document(self.dual),
                "outputs": self.outputs.tolist(),
                "ratio": {"numerator": str(self.ratio.numerator), "denominator": str(self.ratio.denominator)},
                "total": str(self.total),
                **file_format.table_document(self.table),
            },
        )

    @property
    def digest(self) -> str:
        """Digest ``sha256:...`` of the file's content, by which a ledger identifies the mechanism."""
        return str(self._document["digest"])

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the mechanism as canonical JSON, atomically; :func:`load` reads it back and verifies it again.

        Raises
        ------
        InvalidInput
            `path` is a symbolic link, or exists without `overwrite`, or the problem's loss is the user's own and has no
            name.
        OSError
            As from the operating system; nothing is left behind.
        """
        write_atomically(path, strict_json.canonical(self._document), overwrite=overwrite)

    def __eq__(self, other: object) -> bool:
        """Equal where every field of the file is."""
        return isinstance(other, Mechanism) and self.digest == other.digest

    def __hash__(self) -> int:
        """Hash of the digest."""
        return hash(self.digest)

    def summary(self, rows: int = 10_000) -> Summary:
        """Numbers of this mechanism in plain words; see :meth:`optrand.Solution.summary`."""
        return Summary.of(self.problem, self.design, rows=rows)

    def _repr_html_(self) -> str:
        """Summary as a table, in a notebook."""
        return self.summary()._repr_html_()

    def __repr__(self) -> str:
        """One line, without the tables."""
        return f"<Mechanism: {self.labels.size} labels, {self.n} outputs, epsilon {self.epsilon:g}>"


def load(path: str | os.PathLike[str]) -> Mechanism:
    """Read a mechanism of :meth:`Mechanism.save` and verify it again.

    White space and the order of fields may differ.

    Raises
    ------
    InvalidFile
        The file is damaged, unknown, written by a newer optrand, or holds a table that is not epsilon-DP, whatever its
        digest is.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from optrand.model.problem import unbiased_regression
    >>> problem = unbiased_regression([0, 1], [0.5, 0.5], epsilon=0.7)
    >>> mechanism = Mechanism(problem, None, [-1.0, 2.0], [[2, 1], [1, 2]], Fraction(2))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     mechanism.save(f"{directory}/coin.json")
    ...     load(f"{directory}/coin.json") == mechanism
    True
    """
    file = Path(path)
    if not file.exists() or file.is_dir():
        kind, code = (IsADirectoryError, errno.EISDIR) if file.is_dir() else (FileNotFoundError, errno.ENOENT)
        raise kind(code, f"the mechanism is {missing(file)}: name a file of Mechanism.save", str(file))
    content = strict_json.unsealed(file.read_bytes(), FIELDS, file_format.TABLES)
    problem = file_format.read_problem(content["problem"])
    dual = file_format.read_dual(content["dual"])
    outputs = strict_json.numbers(content["outputs"], "outputs")
    ratio = _read_ratio(content["ratio"])
    try:
        table = file_format.read_table(content, problem.k, len(outputs))
        mechanism = Mechanism(problem, dual, outputs, table, ratio)
    except InvalidInput as error:
        raise InvalidFile(f"the file does not hold a private mechanism: {error}") from error
    if strict_json.integer(content["total"], "total") != mechanism.total:
        raise InvalidFile("the file's total is not that of its weights")
    return mechanism


def _read_ratio(document: object) -> Fraction:
    parts = strict_json.fields(document, "ratio", ["numerator", "denominator"])
    numerator, denominator = (
        strict_json.integer(parts[name], f"ratio.{name}") for name in ("numerator", "denominator")
    )
    if denominator == 0 or Fraction(numerator, denominator).denominator != denominator:
        raise InvalidFile("ratio is not a fraction in lowest terms")
    return Fraction(numerator, denominator)


def _check_types(problem: Problem, dual: Dual | None) -> None:
    if not isinstance(problem, Problem):
        raise InvalidInput(f"problem is of type {type(problem).__name__}, expected a Problem")
    if dual is not None and not isinstance(dual, Dual):
        raise InvalidInput(f"dual is of type {type(dual).__name__}, expected a Dual or None")
    if dual is not None and dual.alpha.size != problem.k:
        raise InvalidInput(f"dual has {dual.alpha.size} entries for {problem.k} labels, expected one per label")


def _checked_table(given: ArrayLike | IntegerArcs, k: int, n: int) -> Integers | IntegerArcs:
    if not isinstance(given, IntegerArcs):
        return checked_integers(given, k, n)
    if (given.k, given.n) != (k, n):
        raise InvalidInput(f"the arcs are made for {given.k} labels and {given.n} outputs, expected {k} and {n}")
    return given


def _checked_outputs(given: ArrayLike, problem: Problem) -> Floats:
    outputs = frozen(checked_values(given, "outputs"))
    if (np.diff(outputs) <= 0).any():
        raise InvalidInput("outputs of a mechanism must strictly increase")
    allowed = problem.outputs
    if isinstance(allowed, Grid):
        outside = ~np.isin(outputs, allowed.values)
    else:
        outside = (outputs < allowed.low) | (outputs > allowed.high)
    if outside.any():
        raise InvalidInput(
            f"{int(outside.sum())} output(s) lie outside the problem's output set, the first is "
            f"{outputs[outside][0]:g}: expected outputs that the problem allows"
        )
    if problem.loss.positive_outputs and outputs[0] <= 0:
        raise InvalidInput(f"{problem.loss.name} needs outputs above 0, the lowest is {outputs[0]:g}")
    return outputs
