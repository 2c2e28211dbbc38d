"""``optrand verify``, ``audit`` and ``theory``: checks of mechanisms, releases, third-party tables and papers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

import optrand
from optrand.base._files import check_folder, refuse_target, write_atomically
from optrand.base._numerals import format_above, format_below, format_closely, format_spent
from optrand.cli._console import (
    UNVERIFIED,
    add_members,
    command_line,
    gap_words,
    in_options,
    print_line,
    print_rows,
    progress,
    show,
)
from optrand.cli._reading import (
    LABEL_FORMS,
    Epsilon,
    Force,
    loss_by_groups,
    option,
    parse_declared,
    parse_epsilon,
    parse_gap,
    read_prior,
    read_saved,
    record_facts,
)
from optrand.errors import InvalidInput, NotCertified
from optrand.model._problem import in_words

if TYPE_CHECKING:
    from optrand.audits._findings import Audit
    from optrand.certificates._certificate import Proof
    from optrand.programs._mechanism import ProgramMechanism


@command_line
def verify(
    saved: Annotated[Path, typer.Argument(metavar="FILE", help="A saved mechanism, or the record of a release.")],
    gap: Annotated[str | None, option("--gap SHARE", "Fail unless the verified gap is at most this.")] = None,
    table: Annotated[
        Path | None, option("--table FILE", "Fail unless this file is the released table, byte by byte.")
    ] = None,
) -> None:
    """Verify a saved mechanism or a release record.

    Everything is computed again from the file, in exact arithmetic. `python -m optrand.checker` checks a mechanism
    with code of its own. The record of a release, OUT.release.json, states the total epsilon and holds its mechanisms,
    which are verified too.
    """
    from optrand.programs._mechanism import ProgramMechanism

    required = math.inf if gap is None else parse_gap(gap)
    found = read_saved(saved)
    if table is not None and isinstance(found, optrand.Mechanism | ProgramMechanism):
        raise InvalidInput(f"{saved} is a mechanism, and --table needs the record of a release: OUT.release.json")
    if isinstance(found, ProgramMechanism):
        show({**_program_facts(found), "digest": found.digest})
        found.certificate.require(gap=required)
    elif isinstance(found, optrand.Mechanism):
        _verify_mechanism(found, required, each=None)
    else:
        facts = {**record_facts(found), "prior": found.prior, "estimates": in_options(found.estimates.words)}
        facts["table"] = "not compared: name it with --table"
        if found.relative_loss is not None:
            facts["expected loss"] = loss_by_groups(found.relative_loss)
        if table is not None:
            found.verify_table(table)
            facts["table"] = f"{table}, SHA-256 {'' if found.table is None else found.table.sha256}"
        show(facts)
        for mechanism in found.distinct:
            _verify_mechanism(mechanism, required, each="mechanisms")
    print_line("verified")


def _verify_mechanism(mechanism: optrand.Mechanism, required: float, *, each: str | None) -> None:
    with progress() as announce:
        announce("proving")
        proof = optrand.certify(mechanism)
    show({**proof_facts(mechanism, proof), "digest": mechanism.digest}, each=each)
    proof.require(gap=required)


def proof_facts(mechanism: optrand.Mechanism, proof: optrand.Certificate) -> dict[str, object]:
    """Return the proven facts of a mechanism, to be printed."""
    found, classes = mechanism.summary(), mechanism.problem.loss.name == "zero_one"
    facts: dict[str, object] = {
        "labels": mechanism.labels.size,
        "outputs": f"{mechanism.n}, {in_words(mechanism.problem.outputs)}",
        "realised epsilon": (
            proof.epsilon,
            f"{format_spent(proof.epsilon, proof.target_epsilon)} of {proof.target_epsilon!r} (verified in integers)",
        ),
        **({} if classes else {"largest bias": (proof.bias, format_closely(proof.bias, 3))}),
        **_proven_bounds(proof),
        "value is the": found.value_name,
    }
    if found.deviation is not None and found.mean_deviation is not None:
        one = f"standard deviation {found.deviation:.6g}, in units of the labels"
        facts["noise of one label"] = (found.deviation, one)
        of_mean = f"standard deviation {found.mean_deviation:.6g} over {found.rows:,} rows"
        facts["noise of a mean"] = (found.mean_deviation, of_mean)
    return facts


def _proven_bounds(proof: Proof) -> dict[str, object]:
    between = f"between {format_below(proof.lower, 10)} and {format_above(proof.upper, 10)}"
    return {
        "verified gap": (proof.gap, gap_words(proof.gap)),
        "optimal value": ([proof.lower, proof.upper], between),
    }


def _program_facts(mechanism: ProgramMechanism) -> dict[str, object]:
    """Return the proven facts of a linear program's mechanism, to be printed."""
    proof = mechanism.certificate
    facts: dict[str, object] = {"labels": mechanism.labels.size, "outputs": mechanism.outputs.size}
    for name, number in proof.realised:
        facts[name] = (number, f"kept, at most {format_above(number, 10)} (verified in integers)")
    return {**facts, **_proven_bounds(proof)}


@command_line
def audit(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="CSV of probabilities, one row per label. A first row may name outputs, a first column labels.",
        ),
    ],
    epsilon: Epsilon,
    labels: Annotated[
        str | None, option("--labels SET", f"Labels of the rows, in order: {LABEL_FORMS} Or names: yes,no.")
    ] = None,
    outputs: Annotated[str | None, option("--outputs SET", "Outputs of the columns, in the same forms.")] = None,
    prior: Annotated[
        Path | None,
        option("--prior FILE", "CSV of two columns, label and count (or probability): the losses are computed for it."),
    ] = None,
) -> None:
    """Audit somebody else's randomizer: its exact epsilon, rows, bias, and distance from the optimum.

    The exit code is 3 if it is not private as stated. Entries of 15 digits or more are taken for printed floats, whose
    rounding error, up to a billionth of epsilon, is reported and allowed.
    """
    from optrand.audits._reading import read_sheet

    budget, sheet = parse_epsilon(epsilon), read_sheet(table)
    # Python's numbers, as numpy's are printed with their type.
    rows = sheet.labels if labels is None else tuple(np.asarray(parse_declared(labels)).tolist())
    columns = sheet.outputs if outputs is None else tuple(np.asarray(parse_declared(outputs)).tolist())
    shares = None
    if prior is not None:
        of_rows = tuple(range(len(sheet.entries)) if rows is None else rows)
        named = any(isinstance(label, str) for label in of_rows)
        shares = read_prior(prior, tuple(map(str, of_rows)) if named else np.array(of_rows, dtype=float))
    with progress() as announce:
        announce("auditing")
        found = optrand.audit(sheet.entries, budget, labels=rows, outputs=columns, prior=shares)
    print_rows(str(found))
    if found.maximal_leakage is not None and found.guess is not None:
        prior_known = "under the prior" if found.prior is not None else "if all labels are as likely"
        print_rows(
            f"maximal leakage {format_above(found.maximal_leakage, 6)} nats, and the label is guessed with a chance "
            f"of at most {format_above(found.guess, 6)} {prior_known}"
        )
    add_members(**_members(found))
    if not found.private_up_to_rounding:
        raise NotCertified(f"{table} is not private as stated: {found.findings[-1]}")


def _members(found: Audit) -> dict[str, object]:
    """Return the findings for a JSON answer."""
    worst = found.worst
    same = ("private", "private_up_to_rounding", "stated_epsilon", "maximal_leakage", "guess", "findings")
    members: dict[str, object] = {
        **{name: getattr(found, name) for name in same},
        "epsilon": max(found.epsilon, found.normalised_epsilon),
        "pair_epsilons": None if found.pair_epsilons is None else found.pair_epsilons.tolist(),
        "delta_at_stated_epsilon": found.delta(found.stated_epsilon),
        "worst": {
            "output": worst.output,
            "likely_label": worst.likely,
            "unlikely_label": worst.unlikely,
            "probabilities": [float(worst.largest), float(worst.smallest)],
        },
        "row_errors": [float(error) for error in found.row_errors],
        "largest_bias": found.bias,
        "biases": None if found.biases is None else [float(bias) for bias in found.biases],
    }
    compared = found.comparison
    if compared is not None:
        members |= {
            "value": float(compared.value),
            "optimum": {
                "kind": compared.kind,
                "epsilon": compared.epsilon,
                "between": [compared.optimum.lower, compared.optimum.upper],
            },
            "gap": compared.gap if math.isfinite(compared.gap) else format_above(compared.gap),
        }
    return members


@command_line
def theory(
    paper: Annotated[str | None, option("--paper KEY", "Only the claims of one paper: G21, E22, Z25 or B23.")] = None,
    claim: Annotated[
        str | None,
        option("--claim NAME", "Only one claim, by its printed name ('Lemma 8') or a part of it (LP1), in detail."),
    ] = None,
    times: Annotated[
        int, typer.Option("--times", metavar="N", min=1, help="Try N times as many random instances of each claim.")
    ] = 1,
    page: Annotated[Path | None, option("--page FILE", "Write all findings as a page of Markdown.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the claims and their statements, and try none.")] = False,
    force: Force = False,
) -> None:
    """Test the numbered claims of the papers and print a finding for each.

    A claim holds, holds as corrected, is refuted by a counterexample, or is undecided because no computation settles
    one of its quantifiers. Every test must also refute a deliberately false variant of its claim.
    """
    from optrand.theory import BlindCheck, Finding, _catalogue, check, find

    chosen = find(paper=paper, number=claim)
    if listed:
        print_line("\n".join(f"{each.name}: {each.printed.wording}" for each in chosen))
        return
    if page is not None:
        check_folder(page.parent)
        refuse_target(page, overwrite=force)
    findings: list[Finding] = []
    failed = False
    with progress() as announce:
        for number, each in enumerate(chosen, 1):
            announce(f"{each.name} ({number} of {len(chosen)})")
            try:
                finding = check(each, times)
            except BlindCheck as error:
                failed = True
                print_line(str(error))
                continue
            failed = failed or finding.verdict is not each.verdict
            findings.append(finding)
            print_line(_catalogue.one_line(finding) if claim is None else f"{_catalogue.details(finding)}\n")
    if findings:
        print_line(f"{_catalogue.tally(findings)}")
    if failed:
        print_line("at least one claim has another verdict than its code declares, or could not be tested")
        raise typer.Exit(UNVERIFIED)
    if page is not None:
        write_atomically(page, _catalogue.page(findings).encode(), overwrite=force)
