"""The arena's numbers as tables of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from poem_cma.experiments.bench.ratios import Ratio, geometric_mean
from poem_cma.experiments.bench.results import FLOOR, Curve, ProblemResults, Results
from poem_cma.experiments.bench.solved import Profiles
from poem_cma.experiments.campaign.table import Table

__all__ = ["accuracy_table", "finals", "noise_table", "overview", "ratio_table", "settings_table", "tuning_table"]


def ratio_table(ratios: list[Ratio], budget: int) -> Table:
    """For every noisy problem: the best peer, where it ends, and how many calls `auto` needs to get there."""
    rows = []
    for r in ratios:
        if r.ahead:
            ours = f"auto reaches the peer's last gap after {_count(r.our_calls)} calls"
        else:
            ours = f"not reached; the peer reaches auto's last gap after {_count(r.peer_calls)} calls"
        rows.append([
            r.problem.name, str(r.problem.d), r.peer.label, _gap(r.peer.final), _gap(r.ours.final), ours,
            _ratio(r.value),
        ])  # fmt: skip
    if ratios:
        mean = geometric_mean([r.value for r in ratios])
        ahead = sum(r.value >= 1.0 for r in ratios)
        rows.append(
            [
                "geometric mean",
                "",
                "",
                "",
                "",
                f"at least 1 on {ahead} of {len(ratios)} problems",
                _ratio(mean),
            ]
        )
    header = [
        "problem", "d", "best peer", f"its gap at {budget:,} calls", f"auto's gap at {budget:,} calls",
        "which means", "calls of the peer / of auto",
    ]  # fmt: skip
    return Table("Calls of the best peer for each of ours", header, rows)


def overview(results: Results, profiles: Iterable[Profiles]) -> Table:
    """Every method: shares of problems solved, what tuning is worth, and what a call costs beside F."""
    made = list(profiles)
    noisy = [p for p in results.problems if p.noisy]
    rows = []
    for name in _players(noisy):
        own = [(p.curve(name), p.curve(name, "tuned")) for p in noisy]
        solved = [f"{100 * float(p.solved[p.names.index(name)]):.0f}%" if name in p.names else "" for p in made]
        worth = [_kept(d.final) / _kept(t.final) for d, t in own if d is not None and t is not None]
        first = sum(_wins(p, name) for p in noisy)
        overhead = float(np.median([c.overhead for pair in own for c in pair if c is not None]))
        title = next(c.player.title for pair in own for c in pair if c is not None)
        rows.append([
            title, str(sum(d is not None or t is not None for d, t in own)), str(first), *solved,
            f"{geometric_mean(worth):.1f}" if worth else "nothing to tune", f"{1e6 * overhead:.0f} µs",
        ])  # fmt: skip
    header = [
        "method", "noisy problems", "best on", *(f"solved to {p.accuracy:g}" for p in made),
        "gap with defaults / tuned", "time a call, beside F",
    ]  # fmt: skip
    return Table("All methods", header, rows)


def finals(results: Results) -> Table:
    """The median gap at the end: ours, and every peer at its best."""
    titles = {c.player.name: c.player.title for p in results.problems for c in p.curves}
    rows = []
    for p in results.problems:
        least = min((c.final for c in p.curves if c.player.role != "limit"), default=None)
        best = {name: min((c.final for c in p.curves if c.player.name == name), default=None) for name in titles}
        rows.append([p.name, *(_gap(gap) + " ★" * (gap == least) if gap is not None else "" for gap in best.values())])
    title = "Median gap at the end, the better of defaults and tuned; a star for the best without gradients"
    return Table(title, ["problem", *titles.values()], rows)


def noise_table(results: Results) -> Table:
    """What common random numbers are worth to each peer: the best gap in tuning without them over that with them."""
    rows = []
    for name in _players(results.problems):
        worth = []
        for p in results.problems:
            tried = p.tunings.get(name, {}).get("tried", ())
            with_them, without = (_least(tried, shared) for shared in (True, False))
            if p.noisy and p.shareable and with_them is not None and without is not None:
                worth.append(_kept(without) / _kept(with_them))
        if worth:
            title = next(c.player.title for p in results.problems for c in p.curves if c.player.name == name)
            rows.append(
                [title, str(len(worth)), *(_times(value) for value in (geometric_mean(worth), min(worth), max(worth)))]
            )
    header = ["peer", "problems", "gap without / with, geometric mean", "least", "largest"]
    return Table("What common random numbers are worth, at the setting found with them", header, rows)


def _times(value: float) -> str:
    """Two decimals, and whole numbers from a thousand up."""
    return f"{value:.2f}" if value < 1000.0 else f"{value:,.0f}"


def tuning_table(results: Results) -> Table:
    """The declared grid of each peer."""
    rows = []
    seen: dict[str, Curve] = {c.player.name: c for p in results.problems for c in p.curves if c.player.axes}
    for curve in seen.values():
        player = curve.player
        axes = "; then ".join(
            f"{axis.name} {'times ' if axis.factors else ''}{', '.join(_value(v) for v in axis.values)}"
            + (" (where there is a domain)" if axis.constrained else "")
            for axis in player.axes[: results.request.scale.axes]
        )
        rows.append([player.title, _setting(player.default), _setting(player.start), axes])
    return Table("Defaults and grids", ["peer", "defaults", "tuning starts at", "and tries"], rows)


def settings_table(results: Results) -> Table:
    """What tuning found."""
    rows = [
        [p.name, c.player.title, _setting(c.setting), _gap(c.final), "; ".join(c.notes)]
        for p in results.problems
        for c in p.curves
        if c.variant == "tuned"
    ]
    return Table("The settings that tuning found", ["problem", "peer", "setting", "median gap", "remark"], rows)


def accuracy_table(profiles: Profiles) -> Table:
    """The order of the players by the area under the performance profile."""
    rows = [
        [label, f"{area:.2f}", f"{100 * solved:.0f}%"]
        for label, area, solved in zip(profiles.labels, profiles.area, profiles.solved, strict=True)
    ]
    header = ["method", "area under the performance profile", "solved within the budget"]
    return Table(f"Problems solved to a gap of {profiles.accuracy:g}", header, rows)


def _players(problems: Iterable[ProblemResults]) -> dict[str, None]:
    return dict.fromkeys(c.player.name for p in problems for c in p.curves)


def _wins(problem: ProblemResults, name: str) -> bool:
    fair = [c for c in problem.curves if c.player.role != "limit"]
    return bool(fair) and min(fair, key=lambda c: c.final).player.name == name


def _least(tried: Iterable[Mapping[str, Any]], shared: bool) -> float | None:
    scores = [row["score"] for row in tried if row["setting"].get("shared", row["setting"].get("paired")) is shared]
    return min(scores, default=None)


def _kept(gap: float) -> float:
    """A gap above 1 counts as 1, for one can stay at x0."""
    return min(max(gap, FLOOR), 1.0)


def _gap(gap: float) -> str:
    return f"{gap:.2g}" if gap < 1e3 else "diverges"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _count(calls: float) -> str:
    return f"{round(calls):,}"


def _setting(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in setting.items()) or "its own"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
