"""The options of `minimize`, `resume`, `show`, `export` and `dimension`. What they do is imported when they are run."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from poem_cma.command_line.target import CommandError
from poem_cma.run.failures import printable

__all__ = ["register"]

Text = str | None


class Format(StrEnum):
    """What a store can be exported as."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    DB = "db"


def _option(help: str, metavar: str = "N") -> Any:  # noqa: A002
    return typer.Option(help=help, metavar=metavar)


Target = Annotated[Text, typer.Argument(help="package.module:function or path/to/file.py:function.", metavar="TARGET")]
Settings = Annotated[Path | None, typer.Option(help="A TOML file with any of these settings.", metavar="FILE")]
Command = Annotated[
    Text,
    _option(
        "A program instead of TARGET: {x} is the point, {x[0]} a coordinate, {seed} the sample, {file} a JSON file.",
        "TEXT",
    ),
]
Sample = Annotated[Text, _option("The function that draws xi: package.module:function or file.py:function.", "PLACE")]
X0 = Annotated[Text, _option("Where to start: 1,2.5,0*10 (ten zeros); or JSON with names.", "NUMBERS")]
Seed = Annotated[Text, _option("The seed of the random numbers; the same seed gives the same run.")]
Paired = Annotated[bool | None, typer.Option("--paired/--unpaired", help="Whether points that are compared share xi.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Budget = Annotated[Text, _option("The largest number of evaluations, all counted.")]
Count = Annotated[Text, _option("The number of processes that evaluate; by default 1.")]
Timeout = Annotated[Text, _option("The seconds that an evaluation may take.", "SECONDS")]
Retries = Annotated[Text, _option("How often a failed evaluation is repeated; by default 2.")]
Patience = Annotated[Text, _option("The seconds to wait if no workers are left; by default without end.", "SECONDS")]
TimeLimit = Annotated[Text, _option("Stop after so many seconds.", "SECONDS")]
Run = Annotated[Path, typer.Argument(help="The file of a run.", metavar="RUN.db")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (minimize, resume, show, export, dimension):
        app.command()(command)


def _do(work: Callable[[], int | None]) -> None:
    try:
        code = work()
    except CommandError as error:
        lines = [printable(line) for line in str(error).splitlines()]
        typer.echo("poem-cma: " + "\n".join(lines), err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if code:
        raise typer.Exit(code)


def minimize(
    target: Target = None,
    settings: Settings = None,
    command: Command = None,
    sample: Sample = None,
    x0: X0 = None,
    ball: Annotated[Text, _option("Search a ball around 0 with this radius.", "R")] = None,
    bounds: Annotated[
        Text,
        _option(
            "Search a box: lower:upper for all variables, or a list such as rate=1e-4:1:log,servers=1:20:int.", "RANGES"
        ),
    ] = None,
    l1_ball: Annotated[Text, _option("Search where the sum of |x| is at most this.", "R")] = None,
    simplex: Annotated[Text, _option("Search where no number is negative and the sum is this.", "TOTAL")] = None,
    outside: Annotated[bool | None, typer.Option("--outside", help="Allow evaluations outside the domain.")] = None,
    scale: Annotated[Text, _option("The typical size of each variable.", "NUMBERS")] = None,
    method: Annotated[Text, _option("auto, poem-cma or poem.", "NAME")] = None,
    budget: Budget = None,
    store: Annotated[
        Text, _option("Keep the run in this file; if the file exists, continue its run.", "RUN.db")
    ] = None,
    name: Annotated[
        Text, _option("A name for the function in the store; by default TARGET or the command.", "TEXT")
    ] = None,
    workers: Count = None,
    timeout: Timeout = None,
    retries: Retries = None,
    patience: Patience = None,
    batch: Annotated[Text, _option('Samples in each step, or "auto" to keep all workers busy.')] = None,
    ahead: Annotated[Text, _option("Steps that are started before the current one is complete.")] = None,
    paired: Paired = None,
    maximize: Annotated[bool | None, typer.Option("--maximize", help="Look for the largest mean.")] = None,
    evaluate: Annotated[Text, _option("Fresh samples that measure the result, by two evaluations each.")] = None,
    stop_below: Annotated[
        Text, _option("Stop when recent values are below; with --maximize, when they are above.", "VALUE")
    ] = None,
    time_limit: TimeLimit = None,
    on_failure: Annotated[
        Text, _option("What a failed evaluation does: drop leaves it out, raise ends the run.", "WHAT")
    ] = None,
    seed: Seed = None,
    json: AsJson = False,
) -> None:
    """Minimise a function or a program."""
    options = {k: v for k, v in locals().items() if k not in ("settings", "json")}
    from poem_cma.command_line import run

    _do(lambda: run.minimize(settings, options, as_json=json))


def resume(
    store: Run,
    budget: Budget = None,
    workers: Count = None,
    timeout: Timeout = None,
    retries: Retries = None,
    patience: Patience = None,
    time_limit: TimeLimit = None,
    json: AsJson = False,
) -> None:
    """Continue the run of a store that you trust: this runs the function or program that it names."""
    options = {k: v for k, v in locals().items() if k not in ("store", "json")}
    from poem_cma.command_line import run

    _do(lambda: run.resume(store, options, as_json=json))


def show(
    store: Run,
    watch: Annotated[bool, typer.Option("--watch", help="Update every second until the run ends.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Save a picture in this file.", metavar="FILE.png")] = None,
) -> None:
    """Print and chart a run, also while it is in progress. This runs no code from the file."""
    from poem_cma.command_line.show import show as look

    _do(lambda: look(store, watch=watch, plot=plot))


def export(
    store: Run,
    format: Annotated[Format, typer.Option(help="The format; db is a consistent copy of the store.")] = Format.CSV,  # noqa: A002
    out: Annotated[Path | None, typer.Option(help="The file to write; - is standard output.", metavar="FILE")] = None,
) -> None:
    """Write every evaluation of a store to a file, also during the run."""
    from poem_cma.command_line.export import export as write

    def work() -> None:
        if (target := write(store, format.value, out)) is not None:
            typer.echo(f"written to {target}", err=True)

    _do(work)


def dimension(
    target: Target = None,
    settings: Settings = None,
    command: Command = None,
    sample: Sample = None,
    x0: X0 = None,
    samples: Annotated[Text, _option("The number of pairs of evaluations; by default d ln d.")] = None,
    radius: Annotated[Text, _option("The smoothing radius.", "R")] = None,
    tol: Annotated[Text, _option("Drop eigenvalues below this share of the largest.", "SHARE")] = None,
    ridge: Annotated[Text, _option("Add this multiple of the identity to the covariance.", "VALUE")] = None,
    paired: Paired = None,
    seed: Seed = None,
    json: AsJson = False,
) -> None:
    """Estimate the effective dimension of a function at a point (the paper's Algorithm 2)."""
    options = {k: v for k, v in locals().items() if k not in ("settings", "json")}
    from poem_cma.command_line import run

    _do(lambda: run.dimension(settings, options, as_json=json))
