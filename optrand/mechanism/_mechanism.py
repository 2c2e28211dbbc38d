"""Mechanisms: exact integer tables, proven private at construction, with their question, their proof and their file.

The sampler reads the table that was verified and nothing else.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand import losses
from optrand.base import _strict_json
from optrand.base._arithmetic import Integers, check_ratio, float_above, float_below, log_above, privacy_ratio, quotient
from optrand.base._files import write_atomically
from optrand.base._strict_json import Document
from optrand.base._suggestions import suggest_attributes
from optrand.base._validation import Floats, Record, check_values, exactly, expect, suggest_parameters
from optrand.certificates._certificate import AnyProof, Certificate, certify_table, exact_objective
from optrand.errors import InvalidFile, InvalidInput, OptrandError
from optrand.losses import Loss, Tabulated
from optrand.mechanism import _file_format
from optrand.mechanism._privacy_loss import DominatingPair
from optrand.mechanism._summary import Summary
from optrand.model._problem import Dual, Grid, Problem
from optrand.model._randomizer import Arcs, Moments, Randomizer
from optrand.model._table import IntegerArcs, Table
from optrand.sampling import Sampler
from optrand.sampling._draw import LabelIndex
from optrand.sampling._entropy import EntropySource, RecordEntropy

LARGEST = 10**_strict_json.MAX_DIGITS
"""Limit that no integer of a mechanism may reach, so that every mechanism can be saved."""


@suggest_attributes(
    {
        "certificate": "optimal proof status",
        "certificate.gap": "duality_gap gap relative_gap",
        "certificate.lower": "bound lower lower_bound",
        "certificate.upper": "upper upper_bound",
        "certify()": "audit check is_private prove verify",
        "epsilon": "eps map",
        "value": "cost expected_loss fun loss mse objective opt_value",
        "summary()": "describe info print report rmse solver_stats std variance",
        "losses()": "max_loss worst_case",
        "moments(labels)": "expected_value mean means var",
        "certificate.bias": "is_unbiased unbiased",
        "optrand.estimate.histogram(noisy, mechanism)": "inverse likelihood posterior",
        "matrix": "cdf channel columns design kernel P pdf pmf proba probabilities Q rows shape solution T to_numpy",
        "outputs": "support values",
        "labels": "classes classes_ domain inputs",
        "labels.size": "k size",
        "dual": "alpha beta dual_value duals multipliers",
        "sample(values)": "add_noise apply draw invoke predict privatize randomise randomize release rvs transform",
        "sample(values, source=optrand.sampling.SeededEntropy(seed))": "random_state rng seed",
        "optrand.learning.LabelDPRegressor": "fit fit_transform",
        "save(path)": "dump dumps to_dict to_json",
        "optrand.load(path)": "load loads read",
        "optrand.plotting.pmf_figure(mechanism)": "plot show",
        "pandas.DataFrame(mechanism.matrix, mechanism.labels, mechanism.outputs)": "to_csv to_frame to_pandas",
        "privacy_loss_distribution()": "compose pld privacy_loss",
    }
)
class ExactMechanism(Record, ABC, Generic[AnyProof]):
    """Base of mechanisms: an exact table with its proof, which is drawn from and saved.

    A subclass is a dataclass with the field :attr:`table`, whose constructor checks everything.
    """

    table: Table
    FORMAT: ClassVar[str]
    """Format that files state."""

    QUESTION: ClassVar[Sequence[str]]
    """Fields of a file beside those of the table."""

    @abstractmethod
    def certify(self) -> AnyProof:
        """Compute the certificate from the question, the table and the multipliers alone."""

    @cached_property
    def certificate(self) -> AnyProof:
        """Proven bounds of the optimum and the table's own privacy, computed once (see :func:`optrand.certify`)."""
        return self.certify()

    @property
    def labels(self) -> Floats:
        """Increasing labels, one per row of :attr:`weights`."""
        return self.table.labels

    @property
    def outputs(self) -> Floats:
        """Increasing outputs, one per column of :attr:`weights`."""
        return self.table.outputs

    @property
    def n(self) -> int:
        """Number of outputs."""
        return self.table.n

    @property
    def total(self) -> int:
        """Sum of the weights of each row."""
        return self.table.total

    @property
    def weights(self) -> Integers:
        """Table of integers, shape ``(k, n)``, read-only and written out on first use."""
        return self.table.weights

    @property
    def matrix(self) -> Floats:
        """Probabilities in floats, shape ``(k, n)``. Draws use the exact table."""
        return self.table.matrix

    @cached_property
    def sampler(self) -> Sampler:
        """Sampler of the table, prepared once."""
        return Sampler(self.table)

    @suggest_parameters
    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats:
        """Draw one output for every label in `values`, with exactly the probabilities of the table.

        Parameters
        ----------
        values : array of integers or floats, any shape, or one number
            Each equal to one of the labels.
        source : EntropySource, optional
            By default the operating system, the only choice for a release.

        Returns
        -------
        array of outputs, of the shape of `values`, or one float for one number

        Raises
        ------
        InvalidInput
            Values that are not numbers, or not labels. The message does not reveal which, or how many.
        """
        return self.sampler.sample(values, source=source)

    def sample_records(self, values: ArrayLike, ids: NDArray[np.uint64], streams: RecordEntropy) -> Floats:
        """Draw one output for every label, the same for the same record in any batch, order or partition.

        Parameters
        ----------
        values : (n,) array of integers or floats
            As for :meth:`sample`.
        ids : (n, 2) array of uint64
            Ids of the records, distinct over the whole release.
        streams : RecordEntropy
            Such as :class:`~optrand.sampling.RecordStreams`.
        """
        return self.sampler.sample_records(values, ids, streams)

    @abstractmethod
    def _encode_question(self) -> Document:
        """Return the question of the mechanism and its multipliers, as plain JSON values by the names in `QUESTION`."""

    @classmethod
    @abstractmethod
    def _decode(cls, content: Document) -> Self:
        """Build the mechanism of a file's content, or raise any error if it has another form."""

    @cached_property
    def _document(self) -> Document:
        content = {
            **self._encode_question(),
            "outputs": self.outputs.tolist(),
            "columns": _file_format.columns_document(self.table),
        }
        return _strict_json.seal(content, kind=self.FORMAT)

    @property
    def digest(self) -> str:
        """Digest ``sha256:...`` of the file's content, by which a ledger identifies the mechanism."""
        return str(self._document["digest"])

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the mechanism as canonical JSON, atomically. :func:`optrand.load` reads it back and verifies it.

        Raises
        ------
        InvalidInput
            `path` is a symbolic link, or exists without `overwrite`, or the problem's loss is the user's own.
        OSError
            As from the operating system. Nothing is left behind.
        """
        write_atomically(path, _strict_json.canonical(self._document), overwrite=overwrite)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a file's bytes: build the mechanism, with all of its checks, encode it, and compare the content.

        White space and the order of fields may differ.

        Raises
        ------
        InvalidFile
            The file is damaged, unknown, written by a newer optrand, or holds a table that does not keep its promise,
            whatever its digest is.
        """
        content = _strict_json.unseal(data, [*cls.QUESTION, "outputs", "columns"], kind=cls.FORMAT)
        try:
            mechanism = cls._decode(content)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            reason = str(error) if isinstance(error, OptrandError) else "a field has another form than save() gives it"
            raise InvalidFile(f"the file does not hold a mechanism that keeps its promise: {reason}") from error
        written = {name: mechanism._document[name] for name in content}
        if _strict_json.canonical(written) != _strict_json.canonical(content):
            raise InvalidFile(
                "the file is not written as save() writes it: a field too many, a number in another form (1 or -0.0 "
                "in place of 1.0 and 0.0), or numbers in another order"
            )
        return mechanism

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True, eq=False)
class Mechanism(ExactMechanism[Certificate]):
    """Epsilon-DP randomizer in exact integers, proven private at construction.

    Label ``y`` produces output ``i`` with probability ``weights[y, i] / total``, exactly.

    Parameters
    ----------
    problem : Problem
    table : Table
        For the labels of the problem, with outputs that the problem allows and positive weights.
    dual : Dual, optional
        Multipliers that certify its optimality. Privacy does not rest on them.

    Raises
    ------
    InvalidInput
        A table that is not private, or parts that do not fit.

    Notes
    -----
    Tabulation splits an output that floats cannot hold between the floats on either side, so that means are right to
    the last bit. Every figure of a mechanism is computed from the table that is drawn. For interval columns the proof
    takes ``O(k + n)`` integer operations, and only :attr:`weights` writes the table out.

    Examples
    --------
    >>> import math
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], epsilon=0.7)
    >>> mechanism = Mechanism(problem, Table.of_rows([0, 1], [-1.0, 2.0], [[2, 1], [1, 2]]))
    >>> mechanism.total, mechanism.realised_ratio, mechanism.exact_biases
    (3, Fraction(2, 1), (Fraction(0, 1), Fraction(0, 1)))
    >>> mechanism.realised_epsilon == math.nextafter(math.log(2), 1)
    True
    """

    FORMAT = _strict_json.FORMAT
    QUESTION = ("problem", "dual")

    problem: Problem
    table: Table
    dual: Dual | None = None

    def __post_init__(self) -> None:
        _check_types(self.problem, self.table, self.dual)
        if not np.array_equal(self.table.labels, self.problem.labels):
            raise InvalidInput("the labels of the table are not those of the problem")
        _check_outputs(self.table.outputs, self.problem)
        ratio = self.table.largest_ratio
        if ratio is None:
            raise InvalidInput("a weight is 0 where another label's weight is not: the mechanism would not be private")
        check_ratio(ratio, self.epsilon)
        if self.total >= LARGEST:
            raise InvalidInput(f"the weights' total has more than {_strict_json.MAX_DIGITS} digits: divide the weights")

    def certify(self, *, worst_case: bool = False) -> Certificate:
        """Compute the certificate from problem, table and multipliers alone (see :func:`optrand.certify`)."""
        return certify_table(self.problem, self.table, self.dual, worst_case=worst_case)

    @property
    def value(self) -> float:
        """Objective, exact and rounded to the unfavourable side. For classification the chance to keep the class."""
        loss = exact_objective(self.problem, self.table)
        return float_below(-loss) if self.problem.sign < 0 else float_above(loss)

    @property
    def epsilon(self) -> float:
        """Budget of the problem, in nats."""
        return self.problem.epsilon

    @property
    def prior(self) -> Floats:
        """Probabilities of the labels."""
        return self.problem.prior

    @cached_property
    def _intervals(self) -> tuple[IntegerArcs, Fraction] | None:
        """Interval columns of one ratio that add up to a multiple of the table, and the ratio."""
        # Columns of one output add up, and the sums may all stay below the ratio of the columns: that of the budget.
        for ratio in (self.realised_ratio, privacy_ratio(self.epsilon)):
            arcs = self.table.arcs(ratio)
            if arcs is not None:
                return arcs, ratio
        return None

    @property
    def arcs(self) -> IntegerArcs | None:
        """Interval columns that add up to a multiple of the table, if there are any."""
        return None if self._intervals is None else self._intervals[0]

    @property
    def ratio(self) -> Fraction:
        """Ratio of :attr:`arcs`, at most ``exp(epsilon)``, without arcs :attr:`realised_ratio`."""
        return self.realised_ratio if self._intervals is None else self._intervals[1]

    @cached_property
    def realised_ratio(self) -> Fraction:
        """Largest ratio of two weights of one output. Its logarithm is the realised epsilon."""
        ratio = self.table.largest_ratio
        return Fraction(1) if ratio is None else ratio

    @property
    def realised_epsilon(self) -> float:
        """Logarithm of :attr:`realised_ratio`, rounded up."""
        return log_above(self.realised_ratio)

    @cached_property
    def dominating_pair(self) -> DominatingPair:
        """Three losses and their masses that no two labels exceed: the exact account of repeated releases."""
        return DominatingPair.of_table(self.table, self.epsilon)

    def privacy_loss_distribution(self, interval: float | None = None) -> Any:
        """Return the privacy loss distribution for `dp_accounting`, by :meth:`.DominatingPair.distribution`."""
        return self.dominating_pair.distribution(interval)

    @property
    def exact_biases(self) -> tuple[Fraction, ...]:
        """``E[M(y)] - y`` of each label, exactly."""
        return self.table.biases

    def losses(self, loss: Loss | Tabulated = losses.squared, *, bias_penalty: float = 0.0) -> Floats:
        """Compute the expected loss and the bias penalty of each label, shape ``(k,)``. Squared loss is rounded up."""
        if loss != losses.squared:
            return self.randomizer.losses(loss, bias_penalty=bias_penalty)
        return np.array([float_above(exact) for exact in self.table.losses(bias_penalty)])

    @property
    def bias(self) -> float:
        """Largest ``|E[M(y)] - y|``, rounded up."""
        return float_above(self.table.largest_bias)

    @property
    def randomizer(self) -> Randomizer:
        """Channel in floats, for plots and reports, not for sampling: each probability is correctly rounded.

        Large tables of interval columns are arcs at the realised ratio.
        """
        largest_dense = 1 << 18
        if self.labels.size * self.n <= largest_dense or self.arcs is None:
            return Randomizer(self.labels, self.outputs, self.matrix, self.epsilon)
        total = self.arcs.total(self.ratio)
        masses = [quotient(mass * self.ratio.denominator, total) for mass in self.arcs.masses.tolist()]
        arcs = Arcs(self.arcs.k, self.arcs.first, self.arcs.last, self.outputs[self.arcs.at], np.array(masses))
        # A logarithm that misses the budget by no more than the rounding of ratios is claimed as the budget.
        logarithm = log_above(self.ratio)
        claimed = self.epsilon if math.isclose(logarithm, self.epsilon, rel_tol=2**-49) else logarithm
        return Randomizer.of_arcs(self.labels, arcs, claimed)

    exact: ClassVar[Literal[True]] = True

    def moments(self, labels: ArrayLike) -> Moments:
        """Compute the moments at some labels, each bias exact up to one rounding."""
        rows = LabelIndex(self.labels).find(check_values(labels, "labels"))
        if (rows < 0).any():
            raise InvalidInput("the mechanism is made for other labels: pass some of its own")
        return Moments(np.array(self.exact_biases, dtype=np.float64)[rows], self.table.variances[rows])

    def _encode_question(self) -> Document:
        return {
            "problem": _file_format.problem_document(self.problem),
            "dual": _file_format.dual_document(self.dual),
        }

    @classmethod
    def _decode(cls, content: Document) -> Self:
        problem = _file_format.read_problem(content["problem"])
        table = Table.of_columns(problem.labels, content["outputs"], _file_format.read_columns(content["columns"]))
        return cls(problem, table, _file_format.read_dual(content["dual"]))

    def summary(self, rows: int = 10_000) -> Summary:
        """Summarise value, noise and bias in plain words, also the noise of the mean of `rows` released labels."""
        return Summary.of(self.problem, self.table, self.value, rows)

    def _repr_html_(self) -> str:
        """Show the summary as a table, in a notebook."""
        return self.summary()._repr_html_()

    def __repr__(self) -> str:
        return f"<Mechanism: {self.labels.size} labels, {self.n} outputs, epsilon {self.epsilon:g}>"


def _check_types(problem: Problem, table: Table, dual: Dual | None) -> None:
    parts: tuple[tuple[object, type | tuple[type, ...], str, str], ...] = (
        (problem, Problem, "problem", "a Problem"),
        (table, Table, "table", "a Table: Table.of_rows(labels, outputs, weights)"),
        (dual, (Dual, type(None)), "dual", "a Dual or None"),
    )
    for part, kinds, name, way in parts:
        expect(part, kinds, name, way)
        exactly(part, kinds, name)
    if dual is not None and dual.alpha.size != problem.k:
        raise InvalidInput(f"dual has {dual.alpha.size} entries for {problem.k} labels, expected one per label")


def _check_outputs(outputs: Floats, problem: Problem) -> None:
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
