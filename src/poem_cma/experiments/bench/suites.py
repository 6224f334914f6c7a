"""`poem-cma bench`: check the names, then run the losses and the field's suites that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from poem_cma.experiments.bench import command as arena
from poem_cma.experiments.campaign.watch import BadInput, Stopped
from poem_cma.problems.suites import SUITES, no_such

__all__ = ["BadInput", "Stopped", "bench"]

LOSSES = "losses"


def bench(
    suites: Sequence[str],
    *,
    problems: list[str] | None,
    methods: list[str] | None,
    seeds: int | None = None,
    budgets: Sequence[int] = (),
    **how: Unpack[arena.How],
) -> Path:
    """Run the suites; the losses alone write their report into `out`, beside others into ``out/losses``."""
    arena.check_packages()
    chosen = _suites(suites)
    if chosen == [LOSSES]:
        if seeds is not None or budgets:
            raise BadInput(f"--seeds and --budgets are for the suites {', '.join(SUITES)}; the losses have their own")
        return arena.bench(problems, methods, **how)
    from poem_cma.experiments.bench.field.command import field, make_request
    from poem_cma.experiments.bench.field.losses import read_losses

    out = how["out"]
    for_losses, for_field = _share_out(chosen, problems, methods)
    losses, in_folder = None, out / LOSSES
    if for_losses is not None:
        beside: arena.How = {**how, "out": in_folder}
        report = arena.bench(*for_losses, **beside)
        if for_field is None:
            return report
        losses = read_losses(in_folder, out, _headline(in_folder / "report.md"))
    if for_field is None:
        raise BadInput("none of these methods plays any of these problems")
    rest = [suite for suite in chosen if suite != LOSSES]
    names, who = for_field
    request = make_request(rest, full=how["full"], problems=names, methods=who, seeds=seeds, budgets=budgets)
    return field(request, jobs=how["jobs"], out=out, report_only=how.get("report_only", False), losses=losses)


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
