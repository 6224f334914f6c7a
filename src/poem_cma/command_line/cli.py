"""The command line: ``poem-cma``. What a command does is imported when it is run, so that help is quick."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

try:
    import typer
except ImportError:
    raise SystemExit('the command line needs typer: pip install "poem-cma[cli]"') from None

from poem_cma.command_line.commands import register

__all__ = ["main"]

app = typer.Typer(
    help="Minimise noisy functions, using only their values.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

register(app)


class Part(StrEnum):
    """What can be reproduced."""

    FIG1 = "fig1"
    FIG2 = "fig2"
    TABLE1 = "table1"
    ALL = "all"


def _version(wanted: bool) -> None:
    if wanted:
        from poem_cma import __version__

        typer.echo(f"poem-cma {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Parameter-free zeroth-order optimisation of noisy black boxes, and the paper's experiments."""


@app.command()
def reproduce(
    part: Annotated[Part, typer.Argument(help="What to reproduce.")] = Part.ALL,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="Full takes up to an hour, quick up to four minutes.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="The number of seeds, for all experiments.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="The number of processes; by default one for each processor, up to 4.")
    ] = None,
    out: Annotated[Path, typer.Option(file_okay=False, help="Where the results go.")] = Path("results/reproduce"),
    iterations: Annotated[int | None, typer.Option(min=50, help="The horizon of Figure 2, by default 10,000.")] = None,
) -> None:
    """Re-run the paper's experiments; write data, figures, claims and report.html.

    Data sets are read from $POEM_CMA_DATA or the user's cache, or downloaded. If the command was stopped, give it again
    to continue.
    """
    from poem_cma.experiments.reproduce.command import Stopped
    from poem_cma.experiments.reproduce.command import reproduce as run

    try:
        run(part.value, full=full, seeds=seeds, jobs=jobs, out=out, iterations=iterations)
    except (Stopped, OSError) as error:
        typer.echo(f"poem-cma: {error}", err=True)
        raise typer.Exit(1) from None


@app.command()
def bench(
    suite: Annotated[
        list[str] | None,
        typer.Option(
            help="losses (the default), simulators, policies, rough, noisy-bbob, or all; several with commas."
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full/--quick", help="Full takes hours, quick takes minutes.")] = False,
    problems: Annotated[str, typer.Option(help="Only these: names, separated by commas.")] = "",
    methods: Annotated[str, typer.Option(help="Only these: names, separated by commas.")] = "",
    seeds: Annotated[int | None, typer.Option(min=1, help="The number of seeds. Not for losses.")] = None,
    budgets: Annotated[str, typer.Option(help="Only these budgets, separated by commas. Not for losses.")] = "",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="The number of processes; by default one for each processor, up to 4.")
    ] = None,
    out: Annotated[Path, typer.Option(file_okay=False, help="Where the results go.")] = Path("results/bench"),
    report_only: Annotated[bool, typer.Option("--report-only", help="Run nothing; report what is there.")] = False,
) -> None:
    """Run our methods and their peers on the same problems; write raw results, scores and report.html.

    The suite losses has certified optima, and peers that were tuned on each problem. The other suites are black boxes:
    simulators, policies, rough functions and noisy-bbob. Peers that are not installed (extra bench) are left out with a
    note. If the command was stopped, give it again to continue.
    """
    from poem_cma.experiments.bench.suites import BadInput, Stopped
    from poem_cma.experiments.bench.suites import bench as run

    names = [_names(text) or None for text in (problems, methods)]
    try:
        run(
            _names(",".join(suite or ["losses"])), full=full, problems=names[0], methods=names[1], jobs=jobs, out=out,
            report_only=report_only, seeds=seeds, budgets=_budgets(budgets),
        )  # fmt: skip
    except (Stopped, OSError) as error:
        typer.echo(f"poem-cma: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, BadInput) else 1) from None


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _budgets(text: str) -> list[int]:
    """Budgets with commas between; each is a whole number of at least 10."""
    found = [int(name) if name.isascii() and name.isdigit() else 0 for name in _names(text)]
    if min(found, default=10) < 10:
        raise typer.BadParameter(f"expected whole numbers of at least 10 with commas between, not {text!r}")
    return sorted(set(found))


def main() -> None:
    """What ``poem-cma`` calls."""
    app()
