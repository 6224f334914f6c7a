"""`poem-cma show`: a run as a table and a chart, also while it goes on. Nothing in the file is run."""

from __future__ import annotations

import time
from math import ceil, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from poem_cma.command_line.bounds import names_of
from poem_cma.command_line.target import CommandError
from poem_cma.estimate import Estimate
from poem_cma.parameters.nest import structure_of
from poem_cma.parameters.runs import nested
from poem_cma.result import Result, Status
from poem_cma.run.failures import printable
from poem_cma.store import StoreError, View

__all__ = ["chart", "show"]

_SECONDS_BETWEEN_LOOKS = 1.0
_MOST_VARIABLES = 12
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def show(path: Path, *, watch: bool, plot: Path | None) -> None:
    """Print where the run is; with `watch`, again and again until it ends."""
    try:
        from rich.console import Console, Group
        from rich.live import Live
        from rich.text import Text
    except ImportError:
        raise CommandError('show needs rich: pip install "poem-cma[progress]"') from None
    console = Console()
    text, ended = _page(path, console.width, plot, verify=True)
    if not watch or ended:
        console.print(Text(text))
        return
    try:
        with Live(Group(Text(text)), console=console, auto_refresh=False) as live:
            while not ended:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
                text, ended = _page(path, console.width, plot, verify=False)
                live.update(Group(Text(text)), refresh=True)
    except KeyboardInterrupt:
        return


def _page(path: Path, width: int, plot: Path | None, verify: bool) -> tuple[str, bool]:
    try:
        with View(path, verify=verify) as view:
            opt = view.optimizer()
            lines = _lines(view, opt)
            page = "\n".join(f"{name:>12}  {printable(value)}" for name, value in lines.items())
            if opt is not None:
                page += "\n\n" + _variables(_named(view, opt))
            history = None if opt is None else opt.history.arrays()
            if history is not None and len(history["nfev"]) > 1:
                page += "\n\n" + chart(history["nfev"], history["fun"], min(width, 100) - 2)
            if plot is not None:
                _save_plot(view, opt, plot)
            return page, view.result is not None
    except StoreError as error:
        raise CommandError(str(error)) from None


def _lines(view: View, opt: Any) -> dict[str, str]:
    settings, plan, status, result = view.settings, view.plan, view.status, view.result
    budget, done = plan["budget"], status.get("nfev", 0) + view.measured
    if opt is not None:
        done = opt.nfev + view.measured
    about = ", ".join(f"{name} {settings[name]}" for name in ("dimension", "batch", "ahead", "seed"))
    lines = {"run": str(settings["name"] or view.path.name), "method": f"{settings['method']}, {about}"}
    lines["written by"] = f"poem-cma {', '.join(view.versions)}"
    if result is not None:
        x = result.get("x")
        lines["calls"] = f"{result['nfev']} of {budget}"
        lines["value"] = f"{result['fun']:.6g} ± {result['fun_stderr']:.2g}, freshly measured"
        lines["gain"] = str(Estimate(*result["gain"]))
        lines["failures"] = str(result["failures"])
        if x is not None:
            lines["x"] = "[" + ", ".join(f"{v:.6g}" for v in x[:8]) + (", ..." if len(x) > 8 else "") + "]"
        lines["end"] = ("" if result["status"] in Status.SUCCESSES else "FAILED: ") + result["message"].splitlines()[0]
        return lines
    lines["calls"] = f"{done} of {budget} ({100.0 * done / budget:.1f}%)"
    if status:
        lines["value"] = f"{status['value']:.6g} ± {status['stderr']:.2g}, of recent probes"
        lines["distance"] = f"{status['distance']:.4g}"
        lines["step"] = f"{status['step_size']:.3g}"
        lines["failures"] = str(status["failures"])
        age = max(0.0, time.time() - status["time"])
        lines["workers"] = f"{status['busy']} of {status['workers']} busy, written {age:.0f} s ago"
        lines["time left"] = _time_left(view, done, budget)
    return lines


def _named(view: View, opt: Any) -> Result:
    """The result so far, with the names that the command has given to the variables."""
    result: Result = opt.result()
    launch = view.launch or {}
    x0, names = launch.get("x0"), names_of(launch.get("bounds", []))
    form = structure_of(dict.fromkeys(names, 0.0) if names and not isinstance(x0, dict) else x0)
    return result if form is None else nested(result, form)


def _variables(result: Result) -> str:
    """The variables that matter most: their names, where the run is, and how much they matter."""
    rows = result.by_variable()
    kept = sorted(sorted(range(len(rows)), key=lambda i: -np.nan_to_num(rows[i][2]))[:_MOST_VARIABLES])
    lines = [f"{'variable':>12}  {'x':>14}  {'sensitivity':>11}"]
    for name, value, share in (rows[i] for i in kept):
        lines.append(f"{name:>12}  {value:>14.6g}  {'?' if share != share else f'{share:.1%}':>11}")
    if len(kept) < len(rows):
        lines.append(f"{'':>12}  and {len(rows) - len(kept)} more")
    return "\n".join(lines)


def _time_left(view: View, done: int, budget: int) -> str:
    """At the pace of the last calls."""
    finished = np.sort(view.calls()["finished"])[-200:].tolist()
    if len(finished) < 2 or finished[-1] <= finished[0]:
        return "?"
    seconds = (budget - done) * (finished[-1] - finished[0]) / (len(finished) - 1)
    if not isfinite(seconds):
        return "?"
    hours, rest = divmod(ceil(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"


def _save_plot(view: View, opt: Any, plot: Path) -> None:
    if opt is None:
        raise CommandError("there is nothing to plot: only the code that started this run can load its method")
    try:
        import matplotlib as mpl
    except ImportError:
        raise CommandError('a picture needs matplotlib: pip install "poem-cma[plot]"') from None
    mpl.use("Agg")
    try:
        _named(view, opt).plot().savefig(plot)
    except (OSError, ValueError) as error:
        raise CommandError(f"{plot} cannot be written: {error}") from None


def chart(nfev: Any, values: Any, width: int, height: int = 8) -> str:
    """The value against the calls, in characters: the mean of each column, from the least to the greatest."""
    width = max(20, width - 12)
    columns = np.minimum((nfev / max(nfev[-1], 1) * width).astype(int), width - 1)
    known = np.isfinite(values)
    if not known.any():
        return ""
    sums = np.bincount(columns[known], values[known], width)
    counts = np.bincount(columns[known], minlength=width)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    means[0] = values[known][0] if counts[0] == 0 else means[0]
    for j in range(1, width):  # a column without a step repeats the last one
        means[j] = means[j] if isfinite(means[j]) else means[j - 1]
    low, high = float(np.nanmin(means)), float(np.nanmax(means))
    levels = np.nan_to_num((means - low) / ((high - low) or 1.0)) * (8 * height - 1) + 1
    rows = []
    for row in range(height - 1, -1, -1):
        label = high if row == height - 1 else low if row == 0 else None
        cells = np.clip(levels - 8 * row, 0, 8).astype(int)
        rows.append(f"{'' if label is None else f'{label:.4g}':>10} ▏" + "".join(_EIGHTHS[c] for c in cells))
    return "\n".join(rows) + f"\n{'':>10}  0{f'{int(nfev[-1])} calls':>{width - 1}}"
