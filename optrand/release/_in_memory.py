"""Releases in memory: an array, a column or a frame in, and an object of the same kind out.

Objects that only export Arrow (DuckDB, narwhals, Ibis, ...) become Arrow tables. Public columns are kept as they are.
Metadata of a frame and the label's own dictionary are not, since they may hold a statistic of the true labels.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from optrand.accounting._ledger import Ledger
from optrand.accounting._spent import Spent
from optrand.base._validation import as_doubles, suggest_parameters
from optrand.errors import InvalidInput
from optrand.release._batches import Account, Listener, Sink, Table, release
from optrand.release._cells import (
    ARRAYS,
    PANDAS,
    array_of,
    arrow_column,
    as_table,
    is_frame,
    is_of,
    plain,
    single_place,
)
from optrand.release._question import Nulls, Question
from optrand.release._record import FrameRecord

OPTIONS = [name for name in Question.__dataclass_fields__ if name not in ("column", "groups", "ids")]
"""Options of a question that may differ by column."""

Names = tuple[str | None, ...] | None
"""Declared labels of a column as text, None for numbers: see :attr:`.Question.names`."""


class Randomized(NamedTuple):
    """Noisy labels, and their record.

    Attributes
    ----------
    table : object
        An object of the same kind as the data.
    record : ReleaseRecord or FrameRecord
        The latter for several columns.
    """

    table: Any
    record: Any


@suggest_parameters
def randomize(
    data: Any,
    epsilon: float | Mapping[Hashable, float],
    *,
    column: Any = None,
    labels: Any = None,
    task: Any = None,
    prior: Any = None,
    randomizer: Any = None,
    loss: Any = None,
    bias_penalty: Any = None,
    outputs: Any = None,
    clip: Any = False,
    nulls: Nulls | Mapping[Hashable, Nulls] = "refuse",
    ids: Any = None,
    groups: Any = None,
    dataset: str | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = "default",
    again: bool = False,
    budget: float | Spent | None = None,
    gap: Any = 1e-6,
) -> Randomized:
    """Replace private labels by epsilon-label-DP ones, drawn by the best randomizer for a private prior.

    Neighbouring inputs differ in one label. Public are the number and order of rows, ids, other columns, the
    declared set, and with `nulls` "drop" or "pass" also which labels are missing.

    Parameters
    ----------
    data : object
        An array of numpy (also masked) or a list, a column or frame of pandas or polars, an array or table of Arrow, or
        any other object that exports Arrow, such as a relation of DuckDB, which comes back as an Arrow table. Private.
    epsilon : float
        The whole budget of a column in nats, prior included. Several columns each spend it, or their own in a dict.
    column : optional
        The column of labels of a frame, or a list of several, which cost the sum: then all options down to `nulls`, and
        `gap`, may be dicts by column. Of anything else the name that it has in the record and in the ledger.
    labels, task, prior, randomizer, loss, bias_penalty, outputs, clip, nulls, gap
        See :class:`~optrand.release.Question`. All labels that can occur, numbers or names, are declared from
        public knowledge.
    ids : names of columns, or array, optional
        Identity of each record: one column, several together, or an array of ids in the order of the labels. By
        default row numbers. An index is not looked at.
    groups : names of columns, or array, optional
        Public columns that partition the rows: each group has a prior and a best randomizer of its own, all for one
        epsilon. Small ones are pooled. Estimates then take ``groups=``, too.
    dataset : str, optional
        Name under which the release is charged to a ledger, together with the column.
    ledger : Ledger, path, URL or None
        The user's own by default, or a file, or ``postgresql://user@host/database``. None, or no dataset: nothing is
        charged.
    again : bool
        Release a column of the dataset that was released before. Costs add up.
    budget : float or Spent, optional
        Largest total cost of all releases of the dataset.

    Returns
    -------
    Randomized
        ``(table, record)``: other columns, the index and the order are kept. Metadata of the frame is not. An index
        that is named like the labels, or equals them, also as text, is refused, and so are such groups. A categorical
        of names has the declared ones as categories.

    Raises
    ------
    InvalidInput
        An object of another kind, options without meaning, labels that are missing or not declared (the message
        discloses neither which nor how many), or ids that are not unique. Nothing is charged.
    AlreadySpent, OverBudget, InputChanged
        From the ledger: see :meth:`.Ledger.begin`.
    NotCertified
        No answer is proven to within `gap`. A note states the epsilon that was spent.

    Notes
    -----
    A warning is given before anything is drawn if no histogram can be estimated from the release, and before anything
    is charged unless it depends on the private prior. A release counts as complete when it is returned: the same call
    again is refused. An interrupted call is resumed with the same noise.

    Examples
    --------
    >>> noisy, record = randomize(np.arange(3000) % 4, 1.0, labels=range(4))
    >>> noisy.shape, record.epsilon, record.estimates.histogram
    ((3000,), 1.0, True)
    """
    parameters = locals()
    given = {name: parameters[name] for name in OPTIONS}
    framed = is_frame(data)
    known = isinstance(data, pa.Table | pa.RecordBatch) or is_of(data, "pandas", "DataFrame")
    if framed and not (known or is_of(data, "polars", "DataFrame")):
        # An object that only exports Arrow may be readable once.
        data = as_table(data)
    several = isinstance(column, list)
    chosen = column if several else [column]
    _check_columns(data, column, chosen, framed=framed)
    id_columns = _public_columns(data, ids, "ids", framed=framed)
    group_columns = _public_columns(data, groups, "groups", framed=framed)
    # A dict has the option of each of several columns, or leaves it at its default.
    by_column = {option: value for option, value in given.items() if several and isinstance(value, Mapping)}
    _check_options(by_column, chosen)
    questions = []
    for name in chosen:
        options = {option: value for option, value in given.items() if option not in by_column}
        options |= {option: value[name] for option, value in by_column.items() if name in value}
        # A Series has a name of its own.
        own = getattr(data, "name", None)
        called = str(name) if name is not None else own if isinstance(own, str) and own else "labels"
        questions.append(Question(column=called, groups=tuple(group_columns), ids=tuple(id_columns), **options))
    account = Account.open(dataset, ledger, again=again, budget=budget)
    private = {
        q.column: arrow_column(data, name if framed else None) for q, name in zip(questions, chosen, strict=True)
    }
    for name, cells in zip(chosen, private.values(), strict=True):
        _check_frame(data, name, cells)
        if any(_are_equal(column, cells) for column in group_columns.values()):
            raise InvalidInput("the groups equal the labels, cell by cell, and groups are public: name other columns")
    rows = len(next(iter(private.values())))
    public = {**id_columns, **group_columns}
    for what, cells in public.items():
        if len(cells) != rows:
            raise InvalidInput(f"there are {len(cells)} {what} for {rows} labels, expected one for each")
    table = Table(pa.table({**private, **public}))
    sink = Sink(partial(_put_labels, data, {name: q.names for name, q in zip(chosen, questions, strict=True)}))
    # The warning names the caller, four frames up: above the listener, release, this function and its parameter check.
    records = release(table, questions, sink, account, Listener(warn=partial(warnings.warn, stacklevel=5)))
    by_name = dict(zip(chosen, records, strict=True))
    return Randomized(sink.table, FrameRecord(by_name) if several else records[0])


def _check_columns(data: Any, column: Any, chosen: Sequence[Any], *, framed: bool) -> None:
    if not all(isinstance(name, Hashable) for name in chosen):
        raise InvalidInput("a column is named by a text or a number, several by a list of such names")
    if not chosen or len({str(name) for name in chosen}) < len(chosen):
        raise InvalidInput(f"there are {len(chosen)} columns named, expected at least one and no name twice")
    if not framed and not isinstance(column, str | None):
        raise InvalidInput(
            f"labels are of type {type(data).__name__}, which has no columns: pass a frame, or as column the text "
            "by which the record names them"
        )


def _check_options(by_column: Mapping[str, Any], chosen: Sequence[Any]) -> None:
    """Refuse a dict of options that names another column, whose option would be lost, or a column without its own."""
    for option, value in by_column.items():
        for name in value:
            if name not in chosen:
                raise InvalidInput(
                    f"{option} names column {name!r}, which is not among those to release, "
                    f"{', '.join(map(repr, chosen))}: give it for these"
                )
        lacks = next((name for name in chosen if name not in value), None)
        if lacks is not None and option in {"epsilon", "labels"}:
            none = "is no epsilon" if option == "epsilon" else "are no labels"
            raise InvalidInput(f"there {none} for column {lacks!r}: name {option} for each")


def _public_columns(data: Any, given: Any, what: str, *, framed: bool) -> dict[str, Any]:
    """Return columns of ids or groups by name: columns of a frame that are named, or one that is passed itself."""
    if given is None:
        return {}
    names = [given] if isinstance(given, str) else given
    if framed and isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        return {name: arrow_column(data, name) for name in names}
    if isinstance(given, str):
        raise InvalidInput(f"labels have no columns that could hold {what}: pass the {what} themselves")
    return {what: arrow_column(given)}


def _check_frame(data: Any, column: Any, labels: Any) -> None:
    """Refuse a frame of pandas whose index is named like the labels or equals them, since it would be released too."""
    if not is_of(data, "pandas", "DataFrame", "Series"):
        return
    own = column if is_of(data, "pandas", "DataFrame") else data.name
    for name in {column, own} & set(data.index.names) - {None}:
        raise InvalidInput(
            f"the index is named {name!r}, like the labels, and would be released with them: reset_index(drop=True)"
        )
    for number in range(data.index.nlevels):
        level = data.index.get_level_values(number)
        # A range from 0 in steps of 1 numbers the rows. Other ranges may be labels.
        if type(level).__name__ == "RangeIndex" and (level.start, level.step) == (0, 1):
            continue
        if _are_equal(level, labels):
            raise InvalidInput(
                "the index equals the labels, cell by cell, and would be released with them: reset_index(drop=True)"
            )


def _are_equal(public: Any, labels: Any) -> bool:
    """Decide whether a public column holds the labels, row by row, whatever its type: 7, 7.0 and "7" are equal."""
    try:
        one, other = (_comparable(column) for column in (arrow_column(public), labels))
    except (InvalidInput, pa.ArrowException):
        return False
    return bool(one.type == other.type and one.null_count < len(one) and one.equals(other))


def _comparable(column: Any) -> Any:
    """Return cells as floats if they are numbers, booleans or text of such, and otherwise as text in lower case."""
    cells = plain(column)
    if pa.types.is_boolean(cells.type):
        cells = cells.cast(pa.int8())
    if not (pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type) or pa.types.is_decimal(cells.type)):
        cells = pc.utf8_lower(pc.utf8_trim_whitespace(cells.cast(pa.string())))
        for kind in (pa.float64(), pa.bool_()):
            try:
                return _comparable(cells.cast(kind))
            except pa.ArrowInvalid:
                continue
        return cells
    if pa.types.is_floating(cells.type):
        cells = pa.array(as_doubles(cells.to_numpy(zero_copy_only=False)))
    numbers = cells.cast(pa.float64(), safe=False)
    return pc.if_else(pc.is_nan(numbers), None, numbers)


def _put_labels(data: Any, names: Mapping[Any, Names], labels: Sequence[Any], kept: NDArray[np.bool_] | None) -> Any:
    """Replace the labels of an object by Arrow arrays, or refuse an object that cannot hold them."""
    try:
        return _replace_labels(data, dict(zip(names, labels, strict=True)), kept, names)
    except (InvalidInput, MemoryError):
        raise
    except Exception as error:
        # Errors of other libraries depend on the type, and their messages may quote a cell.
        raise InvalidInput(
            f"labels are of type {type(data).__name__}, in which they cannot be replaced "
            f"({type(error).__name__}): pass an array, or a plain frame"
        ) from None


def _replace_labels(
    data: Any, noisy: Mapping[Any, Any], kept: NDArray[np.bool_] | None, names: Mapping[Any, Names]
) -> Any:
    """Return an object of the kind that was given, with noisy labels in place of the private ones.

    They are Arrow arrays by the name of their column, None for an object that is a column: a cell for each `kept` row.
    """
    if is_frame(data):
        if is_of(data, "pandas", "DataFrame"):
            return _replace_in_pandas(data, noisy, kept, names)
        if is_of(data, "polars", "DataFrame"):
            rest = data if kept is None else data.filter(kept.tolist())
            return rest.with_columns([_to_polars(labels, rest.get_column(name)) for name, labels in noisy.items()])
        table = as_table(data) if kept is None else as_table(data).filter(pa.array(kept))
        for name, labels in noisy.items():
            place = single_place(table.schema.names, name)
            table = table.set_column(place, pa.field(name, labels.type), labels)
        table = table.replace_schema_metadata(None)
        return table.combine_chunks().to_batches()[0] if isinstance(data, pa.RecordBatch) else table
    (labels,) = noisy.values()
    if is_of(data, "pandas", "Series"):
        return _to_pandas(labels, data if kept is None else data[kept], *names.values())
    if is_of(data, "pandas", *PANDAS):
        series = type(labels.to_pandas())
        found = _to_pandas(labels, series(data if kept is None else data[kept]), *names.values())
        return found.set_axis(found.array).index.rename(data.name) if is_of(data, "pandas", "Index") else found.array
    if is_of(data, "polars", "Series"):
        return _to_polars(labels, data)
    if isinstance(data, ARRAYS):
        return _to_array(labels, data, kept)
    return pa.chunked_array([labels]) if isinstance(data, pa.ChunkedArray) else labels


def _replace_in_pandas(
    data: Any, noisy: Mapping[Any, Any], kept: NDArray[np.bool_] | None, names: Mapping[Any, Names]
) -> Any:
    frame = data.copy() if kept is None else data[kept].copy()
    frame.attrs = {}
    for name, labels in noisy.items():
        place = single_place(frame.columns, name)
        frame.isetitem(place, _to_pandas(labels, frame.iloc[:, place], names[name]))
    return frame


def _to_array(labels: Any, data: Any, kept: NDArray[np.bool_] | None) -> Any:
    given, gaps = array_of(data), np.asarray(labels.is_null())
    masked = np.ma.isMaskedArray(given)
    if masked and gaps.any() and not gaps.all():
        # Masked cells get an arbitrary drawn label, so that integers stay integers.
        labels = labels.fill_null(labels.drop_null()[0])
    if labels.null_count and not pa.types.is_floating(labels.type):
        # numpy would convert integers to floats, which cannot represent large ones.
        cells = np.array(labels.to_pylist(), dtype=object)
    else:
        cells = labels.to_numpy(zero_copy_only=False)
    if given.dtype.kind in "UT" and not labels.null_count:
        cells = cells.astype(np.str_ if given.dtype.kind == "U" else given.dtype)
    if masked:
        cells = np.ma.array(cells, mask=gaps)
    if kept is None or kept.all():
        cells = cells.reshape(given.shape)
    return cells if isinstance(data, np.ndarray | range) else cells.tolist()


def _to_pandas(labels: Any, like: Any, names: Names) -> Any:
    """Return a Series with the index and the name of another, and its type unless labels are floats.

    Categories are the declared names. Other categories, and the order of an unordered list, may show which labels
    occurred, and in which row first.
    """
    cells = labels.to_pandas(integer_object_nulls=True)
    kind = like.dtype
    if str(kind) == "category" and names is not None:
        declared = pa.array(names, pa.string()).drop_null().cast(labels.type).to_pandas()
        ordered = kind.ordered and set(kind.categories) == set(declared)
        cells = cells.astype(type(kind)(kind.categories if ordered else declared, ordered=ordered))
    elif not pa.types.is_floating(labels.type) and not (
        labels.null_count and isinstance(kind, np.dtype) and kind.kind in "iub"
    ):
        cells = cells.astype(kind)
    # Subclasses of Series construct themselves.
    return like._constructor(cells.array, index=like.index, name=like.name)


def _to_polars(labels: Any, like: Any) -> Any:
    """Return a Series with the name of another, and its type unless labels are floats."""
    noisy = type(like)(like.name, labels)
    if pa.types.is_floating(labels.type):
        return noisy
    if type(like.dtype).__name__ == "Enum" and set(labels.drop_null().to_pylist()) - set(like.dtype.categories):
        raise InvalidInput("a declared class is not in the column's Enum: cast it to text first")
    return noisy.cast(like.dtype)
