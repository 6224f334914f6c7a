"""`poem-cma bench`: check the names, then run the losses and the field's suites that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from poem_cma.experiments.bench import command as arena
from poem_cma.experiments.campaign.watch import BadInput, Stopped
from poem_cma.problems.suites import SUITES, no_such

__all__ = ["BadInput", "Stopped", "bench"]

LOSSES = "losses"


def bench(
    suites: Sequence[str],
    *,
    full: bool,
    problems: list[str] | None,
    methods: list[str] | None,
    jobs: int | None,
    out: Path,
    report_only: bool = False,
    seeds: int | None = None,
    budgets: Sequence[int] = (),
) -> Path:
    """Run the suites; the losses alone write their report into `out`, beside others into ``out/losses``."""
    if absent := [package for package in arena.NEEDED if find_spec(package) is None]:
        raise Stopped(f'{", ".join(absent)} not installed: pip install "poem-cma[bench]"')
    chosen = _suites(suites)
    common = {"full": full, "problems": problems, "methods": methods}
    if chosen == [LOSSES]:
        if seeds is not None or budgets:
            raise BadInput(f"--seeds and --budgets are for the suites {', '.join(SUITES)}; the losses have their own")
        return arena.bench(**common, jobs=jobs, out=out, report_only=report_only)  # type: ignore[arg-type]
    from poem_cma.experiments.bench.field.command import field, make_request
    from poem_cma.experiments.bench.field.losses import read_losses

    for_losses, for_field = _share_out(chosen, problems, methods)
    report, losses = out / LOSSES / "report.html", None
    if for_losses is not None:
        report = arena.bench(
            full=full,
            problems=for_losses[0],
            methods=for_losses[1],
            jobs=jobs,
            out=out / LOSSES,
            report_only=report_only,
        )
        losses = read_losses(out / LOSSES, out, _headline(out / LOSSES / "report.md"))
    if for_field is None:
        return report
    rest = [suite for suite in chosen if suite != LOSSES]
    request = make_request(
        rest, full=full, problems=for_field[0], methods=for_field[1], seeds=seeds, budgets=budgets
    )  # fmt: skip
    return field(request, jobs=jobs, out=out, report_only=report_only, losses=losses)


def _suites(names: Sequence[str]) -> list[str]:
    known = [LOSSES, *SUITES]
    for name in names:
        if name not in (*known, "all"):
            raise BadInput(f"no suite {name!r}; there are {', '.join(known)}, and all")
    return known if "all" in names else [name for name in known if name in names]


_Names = tuple[list[str] | None, list[str] | None]


def _share_out(
    chosen: list[str], problems: list[str] | None, methods: list[str] | None
) -> tuple[_Names | None, _Names | None]:
    """The problems and methods for the losses, and those for the field; None for whom nothing is left."""
    from poem_cma import problems as library
    from poem_cma.experiments.bench.field.library import NotHere, names_of
    from poem_cma.experiments.bench.field.players import PLAYERS as FIELD
    from poem_cma.experiments.bench.players import PLAYERS as ARENA

    fields: list[str] = []
    absent = ""
    for suite in chosen:
        try:
            fields += names_of(suite) if suite != LOSSES else []
        except NotHere as error:
            absent += f" ({suite} is left out: {error})"
    with_losses = LOSSES in chosen
    known = [*(library.names() if with_losses else ()), *fields]
    for name in problems or ():
        if name not in known:
            raise BadInput(no_such("problem", name, known) + absent)
    players = [*FIELD, *(name for name in ARENA if with_losses and name not in FIELD)]
    for name in methods or ():
        if name not in players:
            raise BadInput(no_such("method", name, players))

    def of(known_problems: Sequence[str], known_methods: Sequence[str]) -> _Names | None:
        mine = None if problems is None else [name for name in problems if name in known_problems]
        who = None if methods is None else [name for name in methods if name in known_methods]
        return None if mine == [] or who == [] else (mine, who)

    return (of(library.names(), list(ARENA)) if with_losses else None), of(fields, list(FIELD))


def _headline(report: Path) -> str:
    """The line below the heading."""
    lines = [line for line in report.read_text(encoding="utf-8").splitlines() if line]
    return lines[1].rstrip(".")[:1].lower() + lines[1].rstrip(".")[1:]
