"""The command line: solve, verify, randomize, plot.

A thin skin: every command reads its options, calls the library, prints what came back. What went wrong is one line on
the standard error and an exit code; never a traceback, which could show a private label.
"""

from __future__ import annotations

import functools
import math
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from optrand.errors import InvalidFile, InvalidInput, NotCertified, OptrandError

if TYPE_CHECKING:
    from optrand.certificate import Certificate
    from optrand.mechanism import Mechanism
    from optrand.release.job import Summary

__all__ = ["FAILED", "UNVERIFIED", "WRONG_INPUT", "app", "main"]

FAILED, WRONG_INPUT, UNVERIFIED = 1, 2, 3

EXIT_CODES = """\b
Exit codes:
  0  done
  1  an error of the run, such as a full disk
  2  wrong usage or input; nothing was written
  3  verification failed: not private, not unbiased, or no proof good enough"""

LABEL_FORMS = "LOW:HIGH[:STEP] with both ends in, a list such as 1,2.5,7, or @FILE."

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    # typer's own report of a crash prints local variables, labels among them.
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EXIT_CODES,
)

Command = TypeVar("Command", bound=Callable[..., None])

Labels = Annotated[str, typer.Option("--labels", metavar="SET", help=f"The declared set of labels: {LABEL_FORMS}")]
Epsilon = Annotated[str, typer.Option("--epsilon", metavar="NATS", help="The privacy budget, above 0 and at most 700.")]
Mesh = Annotated[
    int | None,
    typer.Option(
        "--mesh", metavar="N", help="How many outputs the grid has; by default 8 (k - 1) + 1 for up to 65 labels."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Saved = Annotated[Path, typer.Argument(metavar="MECHANISM", help="A saved mechanism.")]


def main() -> None:
    """Run the command line; a request to terminate ends it in good order, temporary files removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))
    app()


def _reported(command: Command) -> Command:
    """Turn what a command raises into one line on the standard error and an exit code."""

    @functools.wraps(command)
    def wrapper(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except (InvalidFile, NotCertified) as error:
            _stop(str(error), UNVERIFIED)
        except InvalidInput as error:
            _stop(str(error), WRONG_INPUT)
        except OptrandError as error:
            _stop(str(error), FAILED)
        except MemoryError:
            _stop("not enough memory", FAILED)
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            _stop(f"{error.strerror or type(error).__name__}{where}", FAILED)
        except (typer.Exit, typer.Abort, KeyboardInterrupt):
            raise
        except Exception as error:
            # The message of an error that nobody foresaw may hold a label; where it happened does not.
            _stop(f"internal error: {type(error).__name__} in {_origin(error)}; please report it", FAILED)

    return wrapper  # type: ignore[return-value]


def _stop(message: str, code: int) -> None:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)


def _origin(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What is being done and for how long, on the standard error, if a person is looking; gone when it is over."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda stage: progress.update(task, description=stage)


def _epsilon(text: str, name: str) -> float:
    from optrand.validation import epsilon

    try:
        number = float(text)
    except ValueError:
        raise InvalidInput(f"{name} is {text!r}, expected a number above 0 (nats)") from None
    return epsilon(number, name)


def _show(facts: dict[str, object]) -> None:
    width = max(len(name) for name in facts)
    for name, fact in facts.items():
        typer.echo(f"{name:<{width}}  {fact}")


def _gap(gap: float) -> str:
    return f"{gap:.3g}" if math.isfinite(gap) else "unknown: no bound was proven"


def _loaded(path: Path) -> Mechanism:
    from optrand.mechanism import load

    if not path.is_file():
        raise InvalidInput(f"{path} is {'not a regular file' if path.exists() else 'not there'}: expected a mechanism")
    return load(path)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"optrand {version('optrand')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Optimal label-differential-privacy randomizers, with proofs."""


@app.command(epilog=EXIT_CODES)
@_reported
def solve(
    labels: Labels,
    prior: Annotated[
        Path, typer.Option("--prior", metavar="FILE", help="Two columns: label, count or probability. Taken as PUBLIC.")
    ],
    epsilon: Epsilon,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to save the mechanism.")],
    mesh: Mesh = None,
    force: Force = False,
) -> None:
    """Compute and prove the optimal unbiased randomizer of a prior."""
    from optrand.certificate import certify
    from optrand.files import refuse_target
    from optrand.problem import unbiased_regression
    from optrand.release.declared import parse_labels, read_prior
    from optrand.release.job import output_grid
    from optrand.solvers import solve as solved
    from optrand.tabulation import tabulate

    budget = _epsilon(epsilon, "--epsilon")
    names = parse_labels(labels)
    public = read_prior(prior, names)
    grid = output_grid(names, budget, mesh)
    refuse_target(output, overwrite=force)
    typer.echo(f"note: {prior} is taken as public; if it was computed from private labels, use `optrand randomize`")
    if public.absent:
        typer.echo(f"note: {public.absent} label(s) are not in {prior}: their prior is 0")
    with _progress() as announce:
        announce("solving")
        solution = solved(unbiased_regression(names, public.probabilities, budget, outputs=grid))
        announce("making it exact")
        mechanism = tabulate(solution)
        announce("proving")
        proof = certify(mechanism, exact=True).require(gap=math.inf)
    mechanism.save(output, overwrite=force)
    _show({**_proven(mechanism, proof), "mechanism": output})


def _proven(mechanism: Mechanism, proof: Certificate) -> dict[str, object]:
    return {
        "labels": f"{mechanism.labels.size}, outputs {mechanism.outputs.size}",
        "realised epsilon": f"{proof.epsilon!r} of {proof.asked!r} (verified in integers)",
        "largest bias": f"{proof.bias:.3g}",
        "verified gap": _gap(proof.gap),
        "optimal value": f"between {proof.lower:.10g} and {proof.upper:.10g}",
    }


@app.command(epilog=EXIT_CODES)
@_reported
def verify(
    mechanism: Saved,
    gap: Annotated[
        float | None, typer.Option("--gap", metavar="SHARE", help="Fail unless the verified gap is at most this.")
    ] = None,
) -> None:
    """Prove a saved mechanism private and near optimal.

    Nothing but the file is trusted, and all of it is checked in exact arithmetic. `python -m optrand.checker` does the
    same with none of this code.
    """
    from optrand.certificate import certify

    if gap is not None and not gap >= 0:
        raise InvalidInput(f"--gap is {gap}, expected a share of at least 0, such as 1e-6")
    loaded = _loaded(mechanism)
    with _progress() as announce:
        announce("proving")
        proof = certify(loaded, exact=True)
    _show({**_proven(loaded, proof), "digest": loaded.digest})
    proof.require(gap=math.inf if gap is None else gap)
    typer.echo("verified")


@app.command(epilog=EXIT_CODES)
@_reported
def randomize(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The table: .csv, .csv.gz or .parquet.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The released table, of the same kind.")],
    label: Annotated[str, typer.Option("--label", metavar="COLUMN", help="The column of private labels.")],
    labels: Labels,
    epsilon: Epsilon,
    prior_epsilon: Annotated[
        str | None,
        typer.Option(
            "--prior-epsilon",
            metavar="NATS",
            help="What the prior may spend of the budget; by default sqrt(k / n), at most a twentieth of it.",
        ),
    ] = None,
    public_prior: Annotated[
        Path | None,
        typer.Option(
            "--public-prior",
            metavar="FILE",
            help="A prior that spends nothing and is TRUSTED to be public. Two columns: label, count or probability.",
        ),
    ] = None,
    mesh: Mesh = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Move labels beyond the ends of the declared set to the nearest end.")
    ] = False,
    force: Force = False,
) -> None:
    """Replace every label of a table by a private one.

    The mechanism is saved beside OUT, as OUT.mechanism.json. Every other column is copied as it is: drop columns that
    were computed from the labels. Nothing that is printed or saved is computed from the true labels, but for the prior,
    which is paid for, and the number of rows, which is public. Every run spends the budget again: a second release of
    the same labels, or what a killed run left behind, adds to the first.
    """
    from optrand.release.declared import parse_labels, read_prior
    from optrand.release.job import LabelJob
    from optrand.release.table_job import TableJob, mechanism_path

    names = parse_labels(labels)
    job = LabelJob(
        labels=names,
        epsilon=_epsilon(epsilon, "--epsilon"),
        prior_epsilon=None if prior_epsilon is None else _epsilon(prior_epsilon, "--prior-epsilon"),
        public_prior=None if public_prior is None else read_prior(public_prior, names),
        mesh=mesh,
        clip=clip,
    )
    with _progress() as announce:
        summary = TableJob(job=job, column=label, overwrite=force).run(source, target, announce=announce)
    _show({**_told(summary), "table": target, "mechanism": mechanism_path(target)})


def _told(summary: Summary) -> dict[str, object]:
    split = summary.split
    return {
        "rows": summary.rows,
        "labels": f"{summary.labels} declared",
        "prior": summary.prior,
        "budget": f"{summary.epsilon!r}: prior {split.prior!r}, labels {split.labels!r}",
        "mesh size": f"{summary.mesh}, of which {summary.outputs} are used",
        "verified gap": _gap(summary.gap),
        "realised epsilon": f"{summary.realised_epsilon!r} (prior and labels together, rounded up)",
        "noisy label loss": f"{summary.noisy_label_loss:.6g} (expected, under the prior above)",
    }


@app.command(epilog=EXIT_CODES)
@_reported
def plot(
    mechanism: Saved,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf.")],
    force: Force = False,
) -> None:
    """Draw a saved mechanism.

    One probability mass function per label, and the table with its staircase signature.
    """
    from optrand.certificate import certify
    from optrand.plotting import mechanism_figure, save_figure

    loaded = _loaded(mechanism)
    with _progress() as announce:
        announce("drawing")
        save_figure(mechanism_figure(loaded, certify(loaded)), output, overwrite=force)
    typer.echo(f"picture  {output}")


if __name__ == "__main__":
    main()
