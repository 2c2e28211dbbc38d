"""Releases of labels in memory: an array, a column or a frame in, and the kind that went in comes out.

Everything is read and checked, then everything is charged, and only then is anything drawn.
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from numpy.typing import ArrayLike

from optrand.accounting.ledger import Ledger
from optrand.accounting.request import checked_name
from optrand.accounting.spent import Spent
from optrand.base.arithmetic import float_above
from optrand.base.validation import flag
from optrand.baselines.additive import Additive
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model.losses import Loss, Tabulated
from optrand.release.account import Account, LedgerAccount, NoLedger
from optrand.release.asked import Asked
from optrand.release.batch import Nulls
from optrand.release.columns import Columns, Noise
from optrand.release.declared import DeclaredOutputs
from optrand.release.record import ReleaseRecord
from optrand.sampling.entropy import EntropySource, without_seed

__all__ = ["FrameRecord", "Randomized", "randomize"]


@dataclass(frozen=True)
class FrameRecord:
    """Records of several columns of one frame, whose costs add up.

    Attributes
    ----------
    columns : mapping of column to ReleaseRecord
    """

    columns: Mapping[Hashable, ReleaseRecord]

    @property
    def epsilon(self) -> float:
        """Total in nats: the exact sum over the columns, rounded up."""
        return float_above(
            sum((Fraction(part) for one in self.columns.values() for part in vars(one.parts).values()), Fraction())
        )

    @property
    def private(self) -> bool:
        """Whether no column's noise can be repeated."""
        return all(one.private for one in self.columns.values())

    @property
    def exact(self) -> bool:
        """Whether all labels were drawn with exactly the probabilities that are proven private."""
        return all(one.exact for one in self.columns.values())

    def __getitem__(self, column: Hashable) -> ReleaseRecord:
        """Record of one column."""
        return self.columns[column]


class Randomized(NamedTuple):
    """Noisy labels, and what may be told about them.

    Attributes
    ----------
    table : object
        Of the kind that went in.
    record : ReleaseRecord or FrameRecord
        The latter of several columns.
    """

    table: Any
    record: Any


@without_seed
def randomize(
    labels: Any,
    epsilon: float | Mapping[Hashable, float],
    *,
    domain: Any = None,
    classes: Any = None,
    column: Any = None,
    public_prior: Any = None,
    prior_epsilon: float | None = None,
    bias_penalty: float = math.inf,
    outputs: DeclaredOutputs | ArrayLike | None = None,
    loss: Loss | Tabulated | None = None,
    randomizer: str | Mechanism | Additive | None = None,
    k: int | None = None,
    clip: bool = False,
    nulls: Nulls = "refuse",
    ids: Any = None,
    groups: Any = None,
    dataset: str | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = "default",
    spend_again: bool = False,
    budget: float | Spent | None = None,
    entropy: Literal["keyed", "system"] | None = None,
    source: EntropySource | bytes | None = None,
    gap: float = 1e-6,
) -> Randomized:
    """Replace private labels by epsilon-label-DP ones, drawn by the best randomizer for a private prior.

    Neighbouring inputs differ in one label. How many rows there are and in which order, ids, other columns, what is
    declared, and with `nulls` "drop" or "pass" also which labels are missing, are public.

    Parameters
    ----------
    labels : object
        An array of numpy (also masked) or a list; a Series or DataFrame of pandas or polars; an Array, ChunkedArray,
        RecordBatch or Table of Arrow. Private.
    epsilon : float
        The whole budget of a column, in nats, prior included. Of several columns each spends it, or its own in a dict.
    domain : array of numbers
        All labels that may occur, public; never found in the labels.
    classes : list of str, int or bool
        The same of labels that are names; None among them is a missing label, with `nulls` "class".
    column : optional
        Of a frame the column of labels, or a list of several, which cost the sum. Then `domain`, `classes` and
        `public_prior` are dicts by column. Of anything else the name that it has in the record and in the ledger.
    public_prior : (k,) array, optional
        Probabilities of the labels as they are declared, trusted to be public: nothing is spent on a prior.
    prior_epsilon, bias_penalty, outputs, loss
        See :class:`~optrand.release.job.LabelJob`; by default noisy numbers are unbiased and anywhere on the line, and
        noisy classes are right as often as possible.
    randomizer : str, Mechanism or Additive, optional
        In place of the best one that is fit for histograms, a name of :data:`optrand.release.rules.RULES` (for a prior)
        or of :data:`optrand.release.named.NAMES` (without one), or an object.
    k : int, optional
        How many of the likeliest labels "rr-top-k" keeps; by default the best number.
    clip : bool
        Whether numbers beyond the ends of the domain count as the nearest end.
    nulls : {"refuse", "drop", "pass", "class"}
        What becomes of missing labels, masked ones among them.
    ids : array or name of a column, optional
        Unique ids of the records, integers or text, in the order of the labels (an index is not looked at); row numbers
        by default.
    groups : name of a column, list of names, or array, optional
        Public columns that partition the rows: each group has a prior and a best randomizer of its own, all for one
        epsilon; small ones are pooled. Never computed from labels. Estimates then take ``groups=``, too.
    dataset : str, optional
        Name under which the release is charged to a ledger, together with the column.
    ledger : Ledger, path or None
        The user's own by default. None, or no dataset: nothing is charged, and the record says so.
    spend_again : bool
        Release a column of the dataset that was released before: costs add up.
    budget : float or Spent, optional
        What all releases of the dataset may cost together.
    entropy : {"keyed", "system"}, optional
        Whether the noise of a record is a keyed function of its id, so that a release that broke off goes on with the
        same noise at no further cost, or comes from the operating system. Keyed by default where there is a ledger.
    source : EntropySource or bytes, optional
        Seeded words, or 32 bytes as the key, for tests and notebooks: the record says that the release is not private.
    gap : float
        Largest verified gap to the optimum that is accepted.

    Returns
    -------
    Randomized
        ``(table, record)``: other columns, the index and the order are kept; metadata of the frame is not.

    Raises
    ------
    InvalidInput
        An object of another kind (a lazy frame among them), options without meaning, labels that are missing or not
        declared (neither which nor how many is said), or ids that are not unique: nothing is spent.
    AlreadySpent, OverBudget, InputChanged
        From the ledger: see :meth:`.Ledger.begin`.
    NotCertified
        No answer is proven to within `gap`. A note says what was spent.

    Notes
    -----
    A warning is given before anything is drawn if no histogram can be estimated from the release. A release counts as
    complete when it is returned: asked for again it is refused.

    Examples
    --------
    >>> import numpy as np
    >>> noisy, record = randomize(np.arange(3000) % 4, 1.0, domain=range(4))
    >>> noisy.shape, record.epsilon, record.estimates.histogram
    ((3000,), 1.0, True)
    >>> import optrand
    >>> optrand.certify(record.mechanism).epsilon <= record.parts.labels
    True
    """
    several = isinstance(column, list)
    chosen = column if several else [column]
    if not all(isinstance(name, Hashable) for name in chosen):
        raise InvalidInput("a column is named by a text or a number, several by a list of such names")
    if not chosen or len({str(name) for name in chosen}) < len(chosen):
        raise InvalidInput(f"there are {len(chosen)} columns named, expected at least one and no name twice")
    by_column = {"epsilon": epsilon, "domain": domain, "classes": classes, "public_prior": public_prior}
    shared: dict[str, Any] = {
        "prior_epsilon": prior_epsilon,
        "bias_penalty": bias_penalty,
        "outputs": outputs,
        "loss": loss,
        "randomizer": randomizer,
        "k": k,
        "clip": clip,
        "gap": gap,
        "grouped": groups is not None,
    }
    asked = [
        Asked(**shared, **{option: _of(value, name, several=several) for option, value in by_column.items()})
        for name in chosen
    ]
    noise = Noise.of(entropy, source, keyed=_charges(dataset, ledger))
    with _opened(dataset, ledger, noise, again=flag(spend_again, "spend_again"), budget=budget) as account:
        private = Columns.read(
            labels, dict(zip(chosen, asked, strict=True)), nulls=nulls, ids=ids, groups=groups, account=account
        )
        table, records = private.released(account)
    return Randomized(table, FrameRecord(records) if several else records[column])


def _of(value: Any, column: Hashable, *, several: bool) -> Any:
    """Option of one of several columns: that of its name in a dict."""
    return value.get(column) if several and isinstance(value, Mapping) else value


def _charges(dataset: str | None, ledger: object) -> bool:
    """Whether a ledger is to be charged."""
    if ledger is not None and not isinstance(ledger, Ledger | str | os.PathLike):
        raise InvalidInput(f"the ledger is of type {type(ledger).__name__}, expected a Ledger, a path or None")
    if dataset is None and ledger not in (None, "default"):
        raise InvalidInput("a ledger charges named datasets: name the one that the labels belong to, dataset=...")
    return dataset is not None and ledger is not None


@contextmanager
def _opened(
    dataset: str | None, ledger: Any, noise: Noise, *, again: bool, budget: float | Spent | None
) -> Iterator[Account]:
    """Account of a dataset, in a ledger or in none."""
    if not _charges(dataset, ledger):
        if again or budget is not None:
            raise InvalidInput("no ledger knows what was spent: name a dataset, or leave out spend_again and budget")
        yield NoLedger(noise.source, key=noise.key, dataset=dataset)
        return
    if noise.source is not None and not noise.source.private:
        raise InvalidInput("words that others can draw again are no release to charge for: pass ledger=None")
    most = budget if budget is None or isinstance(budget, Spent) else Spent(budget)
    with ExitStack() as stack:
        if not isinstance(ledger, Ledger):
            ledger = stack.enter_context(Ledger.open(None if ledger == "default" else ledger))
        yield LedgerAccount(
            ledger,
            checked_name(dataset, "the dataset's name"),
            again=again,
            budget=most,
            source=noise.source,
            key=noise.key,
        )
