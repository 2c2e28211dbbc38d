"""``optrand solve``, ``sweep`` and ``plot``: optimal mechanisms of public priors, the cost of privacy, and pictures."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import optrand
from optrand.base._files import check_target, refuse_target, write_atomically
from optrand.base._numerals import format_above, format_below, read_number, read_whole
from optrand.cli._console import add_members, command_line, gap_words, note, print_line, print_rows, progress, show
from optrand.cli._reading import (
    OUTPUT_FORMS,
    Epsilon,
    Force,
    Labels,
    Outputs,
    Prior,
    Saved,
    csv_text,
    option,
    parse_epsilon,
    parse_labels,
    parse_outputs,
    parse_penalty,
    parse_several,
    read_prior,
    read_saved,
    show_total,
)
from optrand.cli._verifying import proof_facts
from optrand.errors import InvalidInput, NotCertified
from optrand.model._meshes import feasible_output_set
from optrand.model._problem import Line, Problem, regression

if TYPE_CHECKING:
    from optrand.release._record import ReleaseRecord
    from optrand.studies._many import Sweep

SEVERAL = "One or more: a list such as 0.5,1,2, or LOW:HIGH:N for N evenly spaced ones, or both."


@command_line
def solve(
    labels: Labels,
    prior: Prior,
    epsilon: Epsilon,
    output: Annotated[Path, option("--output -o FILE", "File for the mechanism.")],
    outputs: Annotated[
        str,
        option(
            "--outputs SET",
            f"Allowed outputs: {OUTPUT_FORMS}. Or few outputs that are placed for the prior: adaptive:12 "
            "for at most 12, adaptive:0.01 for the least number within 1 % of the optimum.",
        ),
    ] = "line",
    bias_penalty: Annotated[
        str,
        option(
            "--bias-penalty PENALTY",
            "Weight of half the squared bias in the objective, from 0 (ignore bias) to inf (unbiased).",
        ),
    ] = "inf",
    knots: Annotated[
        str | None,
        option(
            "--knots N",
            "For labels that are all numbers between the two ends: place N knots, round labels to them without "
            "bias, and randomize the knots.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Compute and prove the optimal randomizer for a public prior, by default unbiased and on the real line."""
    placement = _parse_placement(outputs)
    if placement is not None and knots is not None:
        raise InvalidInput("--knots and --outputs adaptive are two ways to few outputs: use one of them")
    allowed = "line" if placement is not None else outputs
    problem = _read_problem(labels, prior, [parse_epsilon(epsilon)], parse_penalty(bias_penalty), allowed)
    check_target(output, prior, overwrite=force)
    facts: dict[str, object] = {}
    with progress() as announce:
        announce("1 of 2, solving and making it exact")
        if placement is not None:
            mechanism, facts = _solve_with_few_outputs(problem, placement)
        elif knots is not None:
            mechanism, added = _solve_between_knots(problem, knots)
            facts = _knot_facts(problem, mechanism, added)
        else:
            mechanism = optrand.solve(problem)
        announce("2 of 2, proving")
        proof = optrand.certify(mechanism).require(gap=math.inf)
    mechanism.save(output, overwrite=force)
    show({**proof_facts(mechanism, proof), **facts, "mechanism": output})


def _read_problem(labels: str, prior: Path, epsilons: Sequence[float], bias_penalty: float, outputs: str) -> Problem:
    """Return the problem of the first epsilon. A grid is that of the smallest one, which is the widest."""
    names, allowed = parse_labels(labels), parse_outputs(outputs)
    if isinstance(allowed, int):
        allowed = feasible_output_set(names, min(epsilons), allowed)
    return regression(names, read_prior(prior, names), epsilons[0], bias_penalty=bias_penalty, outputs=allowed)


def _parse_placement(text: str) -> dict[str, float | int] | None:
    """Parse ``adaptive:N`` or ``adaptive:SHARE`` as an argument of :func:`optrand.adaptive_outputs`, or return None."""
    kind, _, amount = text.partition(":")
    if kind != "adaptive":
        return None
    count = read_whole(amount)
    if count is not None and count >= 1:
        return {"n": count}
    expected = "a number of outputs, such as adaptive:12, or a share of the optimum above 0, such as adaptive:0.01"
    share = read_number(amount, "--outputs adaptive", expected)
    if not 0 < share < math.inf:
        raise InvalidInput(f"--outputs is {text!r}, expected {expected}")
    return {"tolerance": share}


def _solve_with_few_outputs(
    problem: Problem, placement: dict[str, float | int]
) -> tuple[optrand.Mechanism, dict[str, object]]:
    found = optrand.adaptive_outputs(problem, **placement)  # type: ignore[arg-type]
    lost = f"{found.n}: at most {format_above(100 * found.excess, 3)} % above the optimum of all outputs"
    return found.mechanism, {"placed outputs": lost}


def _solve_between_knots(problem: Problem, knots: str) -> tuple[optrand.Mechanism, float]:
    """Place knots for the prior, and return their best mechanism and the loss that rounding to them adds."""
    count = read_whole(knots)
    if count is None or count < 2:
        raise InvalidInput(f"--knots is {knots!r}, expected a whole number of at least 2")
    if not problem.unbiased or not isinstance(problem.outputs, Line):
        raise InvalidInput("--knots is for unbiased outputs on the line: leave out --bias-penalty and --outputs")
    prior = optrand.studies.ContinuousPrior(problem.labels, problem.prior)
    placed = optrand.studies.place_knots(prior, count)
    return optrand.continuous_mechanism(prior, problem.epsilon, knots=placed).mechanism, placed.added


def _knot_facts(problem: Problem, mechanism: optrand.Mechanism, added: float) -> dict[str, object]:
    """Return the facts of labels that are rounded to knots, in place of those of the knots' mechanism."""
    proof, rows = mechanism.certificate, mechanism.summary().rows
    # The loss is half the mean squared error, and rounding is independent of the noise.
    total = proof.upper + added
    deviation = math.sqrt(2 * total)
    alone = (
        f"between {format_below(proof.lower, 10)} and {format_above(proof.upper, 10)} for the knots, without rounding"
    )
    of_mean = deviation / math.sqrt(rows)
    return {
        "labels": (problem.k, f"{problem.k}, rounded to the knots below"),
        "optimal value": ([proof.lower, proof.upper], alone),
        "noise of one label": (deviation, f"standard deviation {deviation:.6g} with rounding, in units of the labels"),
        "noise of a mean": (of_mean, f"standard deviation {of_mean:.6g} with rounding over {rows:,} rows"),
        "knots": f"{mechanism.labels.size}: round labels to them first, unbiased (optrand.studies.ContinuousMechanism)",
        "loss by rounding": (added, f"{added:.6g}, half its variance"),
        "total loss": (total, f"{format_above(total, 6)}: the optimal value and the loss by rounding"),
    }


@command_line
def sweep(
    labels: Labels,
    prior: Prior,
    epsilons: Annotated[str, option("--epsilon NATS", f"Privacy budget. {SEVERAL}")],
    bias_penalties: Annotated[
        str, option("--bias-penalty PENALTIES", f"From 0 (ignore bias) to inf (unbiased). {SEVERAL}")
    ] = "inf",
    outputs: Outputs = "line",
    output: Annotated[
        Path | None, option("--output -o FILE", "File for all columns of the result: .csv or .parquet.")
    ] = None,
    force: Force = False,
) -> None:
    """Compute the cost of privacy and of unbiasedness: one certified row for every epsilon and bias penalty.

    All rows have the same grid of outputs, that of the smallest epsilon, which is the widest. A row whose outputs admit
    no unbiased randomizer is marked as infeasible, and the exit code is 0. If a row has no proof, the others are still
    computed, and the exit code is 3.
    """
    budgets = parse_several(epsilons, "--epsilon", parse_epsilon)
    penalties = parse_several(bias_penalties, "--bias-penalty", parse_penalty)
    # With a penalty of 0 any outputs are feasible. A row whose outputs are too narrow for its penalty is infeasible.
    problem = _read_problem(labels, prior, budgets, 0.0, outputs)
    if output is not None:
        if output.suffix.lower() not in WRITERS:
            ending = f"ends in {output.suffix}" if output.suffix else "has no ending"
            raise InvalidInput(f"{output.name} {ending}: rows are written as {' or '.join(WRITERS)}, name such a file")
        check_target(output, prior, overwrite=force)
        if output.suffix.lower() == ".parquet":
            # Without it nothing is solved.
            import pyarrow  # noqa: F401
    with progress() as announce:
        table = optrand.studies.sweep(
            problem,
            epsilons=budgets,
            bias_penalties=penalties,
            progress=lambda done, total: announce(f"{done} of {total} problems solved"),
        )
    _print_rows(table)
    if output is not None:
        write_atomically(output, WRITERS[output.suffix.lower()](table), overwrite=force)
    failed = sum(row.status == "failed" for row in table)
    if failed:
        raise NotCertified(f"{failed} of {len(table)} problems have no proof: see their notes")


def _print_rows(table: Sweep) -> None:
    add_members(rows=list(table.records()))
    # The file holds every column.
    columns = ("epsilon", "bias_penalty", "value", "gap", "variance", "squared_bias", "outputs", "status")
    rows = [[name.replace("_", " ") for name in columns]]
    rows += [[_cell(name, getattr(row, name)) for name in columns] for row in table]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for cells in rows:
        print_rows("  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)))
    for row in table:
        if row.reason:
            note(f"epsilon {row.epsilon:g}, bias penalty {row.bias_penalty:g}: {row.reason}")


def _cell(name: str, fact: object) -> str:
    if not isinstance(fact, float):
        return str(fact)
    return format_above(fact, 6) if name in ("value", "gap", "variance", "squared_bias") else f"{fact:.6g}"


def _parquet(table: Sweep) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(table.records()), stream)
    return stream.getvalue()


def _csv(table: Sweep) -> bytes:
    return csv_text([table.columns, *(row.values() for row in table.records())]).encode()


WRITERS: dict[str, Callable[[Sweep], bytes]] = {".csv": _csv, ".parquet": _parquet}
"""Writers of the saved rows by the ending of the file."""


@command_line
def plot(
    saved: Saved,
    output: Annotated[
        Path,
        option(
            "--output -o FILE",
            "A picture (.png, .svg, .pdf), a page (.html), or a folder for every picture (a name without ending).",
        ),
    ],
    force: Force = False,
) -> None:
    """Draw a saved mechanism, or that of a release.

    A picture shows the probabilities of the outputs of up to six labels. For a release by groups it shows the prior of
    each group and the noise of its mechanism. A page of HTML needs no network and no script: it holds the facts that
    `verify` proves, the meaning of the budget, and every picture. If the proof fails, the page states it and the exit
    code is 3.
    """
    from optrand.programs._mechanism import ProgramMechanism

    found = read_saved(saved)
    if isinstance(found, ProgramMechanism):
        raise InvalidInput(f"{saved} holds the mechanism of a linear program, of which there are no pictures")
    ending = output.suffix.lower()
    if ending in (".html", ".htm"):
        _write_page(found, saved.name, output, force=force)
    elif ending or output.is_file():
        _draw_picture(found, output, force=force)
    else:
        _draw_all(found, output, force=force)


def _draw_picture(subject: optrand.Mechanism | ReleaseRecord, output: Path, *, force: bool) -> None:
    from optrand.plotting._saving import check_ending

    check_ending(output)
    refuse_target(output, overwrite=force)
    with progress() as announce:
        announce("drawing")
        if isinstance(subject, optrand.Mechanism):
            figure = optrand.plotting.pmf_figure(subject)
        elif subject.groups:
            figure = optrand.plotting.groups_figure(subject.mechanisms, total=subject.epsilon)
        else:
            figure = optrand.plotting.pmf_figure(subject)
            figure.suptitle(f"{figure.get_suptitle()}, of a total of {format_above(subject.epsilon, 6)}", fontsize=8)
        optrand.plotting.save_figure(figure, output)
    show_total(subject)
    show({"picture": output})


def _write_page(subject: optrand.Mechanism | ReleaseRecord, name: str, output: Path, *, force: bool) -> None:
    from optrand.plotting.report import group_report_page, report_page

    refuse_target(output, overwrite=force)
    with progress() as announce:
        announce("proving")
        mechanisms = [subject] if isinstance(subject, optrand.Mechanism) else subject.distinct
        proofs = [optrand.certify(mechanism) for mechanism in mechanisms]
        announce("drawing")
        if isinstance(subject, optrand.Mechanism) or not subject.groups:
            page = report_page(subject, proofs[0], name=name)
        else:
            page = group_report_page(subject.mechanisms, subject.parts, relative_loss=subject.relative_loss)
    write_atomically(output, page.encode(), overwrite=force)
    show_total(subject)
    print_line(f"page  {output}")
    for proof in proofs:
        proof.require(gap=math.inf)
    print_line(f"verified, gap {gap_words(max(proof.gap for proof in proofs))}")


def _draw_all(subject: optrand.Mechanism | ReleaseRecord, output: Path, *, force: bool) -> None:
    from optrand.plotting._saving import gallery

    if getattr(subject, "groups", ()):
        raise InvalidInput("the release is by groups, each with a mechanism of its own: draw a picture or a page")
    with progress() as announce:
        pictures, left_out = gallery(subject, output, overwrite=force, announce=announce)
    show_total(subject)
    for name, reason in left_out.items():
        print_line(f"note: no picture of the {name}: {reason}")
    show({"pictures": len(pictures), "folder": output})
