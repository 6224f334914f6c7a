"""The field's numbers as tables of text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from poem_cma.experiments.bench.field.players import PLAYERS
from poem_cma.experiments.bench.field.results import FieldResults, Place
from poem_cma.experiments.bench.field.scores import count_harm, duel, mean_of_medians, standings
from poem_cma.experiments.campaign.table import Table

__all__ = ["details", "duel_table", "headline", "means_table", "players_table", "suite_table", "wins_table"]

#: The most names of problems in a line.
_NAMED = 20


def headline(results: FieldResults) -> str:
    """The outcome of our default method in one line."""
    if "auto" not in results.methods:
        return "auto has no complete runs here"
    marks = _marks(results, "auto")
    runs, worse, told = _harm(results, "auto")
    places = f"{len(marks)} problems with a budget" if len(marks) != 1 else "1 problem with a budget"
    end = f", {told} of those said so" if worse else ""
    return (
        f"auto is first on {marks.count('first')}, within 0.1 of the first on {marks.count('near')} and behind on "
        f"{marks.count('behind')} of {places}; {worse or 'none'} of its {runs} runs ended worse than x0{end}"
    )


def details(results: FieldResults) -> str:
    """A second line: where our default method is behind, and its duels with pycma and the best of ARS's settings."""
    if "auto" not in results.methods:
        return ""
    behind = _in_order(
        place.problem
        for place, medians in results.medians.items()
        if "auto" in medians and standings(medians)["auto"] == "behind"
    )
    more = f" and {len(behind) - _NAMED} more" if len(behind) > _NAMED else ""
    line = f"It is behind on {', '.join(behind[:_NAMED])}{more}. " if behind else ""
    for name in ("pycma", "ars-best"):
        if name in results.methods:
            title = PLAYERS[name].title.replace(",", " with the")
            lower, level, higher = duel(*(_medians(results, who) for who in ("auto", name)))
            line += f"Against {title}, its median is lower on {lower}, level on {level} and higher on {higher}. "
    return line.rstrip()


def wins_table(results: FieldResults) -> Table:
    """How often each method is first, near or behind, and how often its runs do harm."""
    rows = []
    for name in results.methods:
        marks = _marks(results, name)
        runs, worse, told = _harm(results, name)
        rows.append([
            PLAYERS[name].title, str(len(marks)), *(str(marks.count(mark)) for mark in ("first", "near", "behind")),
            str(runs), str(worse), str(told) if worse else "",
        ])  # fmt: skip
    header = [
        "method", "problems with budgets", "first", "within 0.1", "behind", "runs", "worse than x0", "of which said so",
    ]  # fmt: skip
    return Table("Wins and losses", header, rows)


def means_table(results: FieldResults) -> Table:
    """The mean of the medians for every suite and budget."""
    columns = sorted({(p.suite, p.budget) for p in results.scores}, key=lambda c: (_suites(results).index(c[0]), c[1]))
    rows = []
    for name in results.methods:
        row = [PLAYERS[name].title]
        for suite, budget in columns:
            places = [p for p in results.of(suite) if p.budget == budget]
            own = [results.medians[p][name] for p in places if name in results.medians[p]]
            part = f" ({len(own)} of {len(places)})" if len(own) < len(places) else ""
            row.append(f"{mean_of_medians(own):.2f}{part}" if own else "")
        rows.append(row)
    header = ["method", *(f"{suite}, {budget:,}" for suite, budget in columns)]
    return Table("Mean of the medians, by suite and budget", header, rows)


def duel_table(results: FieldResults, ours: str = "auto") -> Table:
    """Our default method against every other: lower, level, higher."""
    rows = []
    for name in results.methods:
        if name == ours or ours not in results.methods:
            continue
        row = [PLAYERS[name].title]
        for suite in [None, *_suites(results)]:
            better, level, worse = duel(*(_medians(results, who, suite) for who in (ours, name)))
            row.append(f"{better} : {level} : {worse}" if better + level + worse else "")
        rows.append(row)
    header = [f"{PLAYERS[ours].title} against", "all", *_suites(results)]
    return Table("One against one: lower median, level within 0.005, higher", header, rows)


def suite_table(results: FieldResults, suite: str) -> Table:
    """Medians and, in brackets, the worst seed, for every problem, budget and method of a suite."""
    places = results.of(suite)
    names = [name for name in results.methods if any(name in results.scores[p] for p in places)]
    rows = []
    for p in places:
        first = {name for name, mark in standings(results.medians[p]).items() if mark == "first"}
        cells = [
            _score(results, p, name) + (" ★" if name in first else "") if name in results.scores[p] else ""
            for name in names
        ]
        rows.append([p.problem, str(results.sizes[p.suite, p.problem]), f"{p.budget:,}", *cells])
    header = ["problem", "d", "budget", *(PLAYERS[name].title for name in names)]
    return Table(f"{suite}: median score (worst seed), a star for the first", header, rows)


def players_table(results: FieldResults) -> Table:
    """Who plays how, and how long a method takes beside F."""
    rows = []
    for name in results.methods:
        beside = [runs[name].seconds for runs in results.runs.values() if name in runs]
        player = PLAYERS[name]
        rows.append([player.title, player.name, player.about, f"{1e6 * float(np.median(beside)):,.0f} µs"])
    return Table("Who plays", ["method", "name", "settings", "time an evaluation, beside F"], rows)


def _marks(results: FieldResults, name: str) -> list[str]:
    return [standings(medians)[name] for medians in results.medians.values() if name in medians]


def _medians(results: FieldResults, name: str, suite: str | None = None) -> dict[Place, float]:
    places = [p for p in results.medians if suite in (None, p.suite)]
    return {p: results.medians[p][name] for p in places if name in results.medians[p]}


def _harm(results: FieldResults, name: str) -> tuple[int, int, int]:
    runs, worse, told = 0, 0, 0
    for place, scores in results.scores.items():
        if name in scores:
            more, spoke = count_harm(scores[name], results.runs[place][name].said)
            runs, worse, told = runs + len(scores[name]), worse + more, told + spoke
    return runs, worse, told


def _suites(results: FieldResults) -> list[str]:
    return _in_order(p.suite for p in results.scores)


def _in_order(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _score(results: FieldResults, place: Place, name: str) -> str:
    return f"{_short(results.medians[place][name])} ({_short(max(results.scores[place][name]))})"


def _short(score: float) -> str:
    return f"{score:.3f}" if score < 9.9995 else f"{score:.2g}"
