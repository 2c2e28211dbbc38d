"""One release from beginning to end: read and check everything public, charge, plan, draw, publish."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from optrand.accounting.ledger import Charge
from optrand.accounting.spent import Spent
from optrand.base.arithmetic import decimal_value
from optrand.errors import InvalidInput, SpentNote
from optrand.release.batches import Account, Listener, Reader, Scan, Sink, Table, find_column, label_column
from optrand.release.groups import ONE_GROUP, Groups
from optrand.release.plan import Plan, draw_histograms, rehearse
from optrand.release.question import Question
from optrand.release.record import ReleaseRecord
from optrand.sampling.keyed import KeyedEntropy, subkey


def release(
    table: Table, questions: Sequence[Question], sink: Sink, account: Account, listener: Listener
) -> Sequence[ReleaseRecord]:
    """Release columns of a table with the same ids and groups, each charged for its epsilon before anything is drawn.

    Raises
    ------
    InvalidInput
        Something public or a label that cannot be released. Nothing was charged.
    AlreadySpent, OverBudget, InputChanged
        As from :meth:`.Ledger.begin`, or the table changed while it was read.
    NotCertified
        The gap of a mechanism is above that of its question. A note states the epsilon that was spent.
    """
    listener.stage("reading the table")
    reader = make_reader(table, questions, account)
    found = table.scan(reader, sink, account, listener)
    if not all(counts.any() for counts in found.counts):
        raise InvalidInput("there are no rows with a label: there is nothing to randomize")
    if table.cut and table.path is not None:
        listener.warn(
            f"the last line of {table.path.name} has no end: a copy of the table may have broken off in it and its "
            "label be cut, as 44 to 4"
        )
    sink.rehearse(reader)
    charges = begin_release(reader, found, sink.output, account)
    try:
        planned = [
            make_record(question, reader.groups, counts, charge, account, listener)
            for question, counts, charge in zip(reader.questions, found.counts, charges, strict=True)
        ]
        listener.stage("drawing labels")
        drawings = [record.drawing(charge.key or b"") for record, charge in zip(planned, charges, strict=True)]
        table.draw(reader, sink, account, found, drawings, listener)
        records = sink.close(planned)
        listener.stage("publishing")
        if account.ledger is None:
            sink.publish()
        else:
            account.ledger.complete(charges, sink.publish)
    except BaseException as error:
        sink.abandon()
        if not getattr(error, "released", False) and (note := _spent_note(charges, account)):
            error.add_note(note)
        raise
    return records


def make_reader(table: Table, questions: Sequence[Question], account: Account) -> Reader:
    """Check the columns of a table against the questions, and find its groups."""
    columns = tuple(label_column(table, question) for question in questions)
    by, ids = questions[0].groups, questions[0].ids
    for public in (*by, *ids):
        find_column(table, public, public=True)
    groups = Groups.among(by, (batch for _, batch in table.batches(by))) if by else ONE_GROUP
    return Reader(columns, groups, account.secret)


def begin_release(reader: Reader, scan: Scan, output: str, account: Account) -> list[Charge]:
    """Solve each problem for a uniform prior, so that a failure costs nothing, then charge all questions."""
    charges = []
    names = json.dumps(reader.groups.names).encode()
    for question, found, total in zip(reader.questions, scan.counts, scan.sums, strict=True):
        rows = int(found.sum())
        rehearse(question, rows)
        split = question.split(rows)
        charges.append(
            Charge(
                dataset=account.dataset or "",
                label=question.label,
                # The decimal of the question. Rounding leaves the labels a little less.
                epsilon=decimal_value(question.epsilon if split.prior else split.labels),
                prior_epsilon=decimal_value(split.prior) if split.prior else Fraction(0),
                question=question.digest,
                input=total.digest(account.secret, names),
                output=output,
            )
        )
    if account.ledger is None:
        return [replace(charge, id=os.urandom(16).hex(), key=os.urandom(32)) for charge in charges]
    return account.ledger.begin(charges, again=account.again, budget=account.budget)


def make_record(
    question: Question, groups: Groups, counts: NDArray[Any], charge: Charge, account: Account, listener: Listener
) -> ReleaseRecord:
    """Estimate the prior and find the mechanisms, or read them from the ledger if this release has done so before."""
    if charge.record is not None:
        return ReleaseRecord.from_bytes(charge.record.encode())
    listener.stage("estimating the prior")
    names = {"release": charge.id, "dataset": account.dataset or "", "column": question.label}
    source = KeyedEntropy(subkey(charge.key or b"", **names, purpose="prior"), private=True)
    # The same for every retry, as a function of the key: nobody can draw until the prior is likely.
    noisy = draw_histograms(question, counts, source)
    plan = Plan.make(question, counts.sum(axis=1), noisy, groups=groups, announce=listener.stage)
    if not plan.possible:
        listener.warn(plan.histogram_words)
    listener.stage("proving")
    made = ReleaseRecord.of(plan, release=charge.id, dataset=account.charged)
    if account.ledger is None:
        return made
    text = made.to_bytes().decode()
    entered = account.ledger.draw(charge, text)
    return made if entered == text else ReleaseRecord.from_bytes(entered.encode())


def _spent_note(charges: Sequence[Charge], account: Account) -> SpentNote | None:
    """Return a note on the epsilon that is spent if a release is interrupted after it was charged."""
    if account.ledger is None:
        priors = sum((charge.prior_epsilon for charge in charges), Fraction(0))
        return SpentNote(f"a prior was drawn for {Spent(priors)}, in no ledger") if priors else None
    total = Spent.total(charge.total for charge in charges)
    return SpentNote(
        f"{total} is charged to dataset {account.dataset!r}, once. Once the cause is gone, the same command goes on "
        "from there with the same noise, and does not pay for it again"
    )
