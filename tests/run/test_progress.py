"""The line that shows a run: in a terminal, in a notebook, and nowhere else."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import poem_cma as pc
from poem_cma.run.progress import Bar, clock

PARTS = re.compile(
    r"poem-cma [^\n]*?(\d+)/(\d+) left (\d+:\d\d:\d\d|-:--:--)\s*\n"
    r"value (\S+) ± (\S+)  distance (\S+)  step (\S+)  d\* (\S+)(?:  failures (\d+))?"
)

SCRIPT = """
import numpy as np, poem_cma as pc
def fun(x):
    fun.calls += 1
    return float(abs(x - 1).sum()) if fun.calls % 50 else float("nan")
fun.calls = 0
r = pc.minimize(fun, np.zeros(4), method="poem-cma", budget=400, seed=0, progress=True)
print("done", r.nfev)
"""


def solved(console: Any) -> tuple[pc.Optimizer, Bar]:
    opt = pc.Optimizer(np.zeros(4), method="poem-cma", budget=400, seed=0)
    with Bar(opt, 400, console=console) as bar:
        while (probe := opt.ask()) is not None:
            opt.tell(probe, [float(np.abs(x - 1.0).sum()) for x in probe.points])
            bar()
        bar.finish(opt.nfev)
    return opt, bar


def test_a_terminal_shows_everything_that_was_promised() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=80, force_jupyter=False, no_color=True)
    opt, _ = solved(console)
    shown = PARTS.findall(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.getvalue()))
    calls, budget, left, value, error, distance, step, dimension, failures = shown[-1]
    result = opt.result()
    assert (calls, budget, failures) == (str(opt.nfev), "400", "")
    assert left == "0:00:00"
    assert float(value) == pytest.approx(opt.value[0], rel=1e-3)
    assert float(error) == pytest.approx(opt.value[1], rel=0.6)
    assert float(distance) == pytest.approx(result.history["distance"][-1], rel=1e-2)
    assert float(step) == pytest.approx(result.history["step_size"][-1], rel=0.1)
    assert float(dimension) == pytest.approx(result.history["effective_dimension"][-1], rel=1e-2)


LINE = re.compile(r"poem-cma  (\d+)/400  value \S+ ± \S+  distance \S+  .*left \d+:\d\d:\d\d")


@pytest.mark.parametrize("rich", [True, False])
def test_a_log_gets_plain_lines(rich: bool) -> None:
    """A first and a last one in a short run, with and without rich."""
    script = SCRIPT if rich else "import sys; sys.modules['rich'] = None\n" + SCRIPT
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "done 400\n"
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    shown = [LINE.fullmatch(line) for line in lines]
    assert all(shown)
    assert shown[1][1] == "400"


def test_a_log_gets_one_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run of 200 steps that takes five minutes by the clock."""
    seconds = iter(range(10**6))
    monkeypatch.setattr("poem_cma.run.progress.time.monotonic", lambda: 1.5 * next(seconds))
    written = io.StringIO()
    opt = pc.Optimizer(np.zeros(4), method="poem", budget=400, seed=0)
    with Bar(opt, 400, console=Console(file=written, force_terminal=False, force_jupyter=False)) as bar:
        while (probe := opt.ask()) is not None:
            opt.tell(probe, [float(np.abs(x - 1.0).sum()) for x in probe.points])
            bar()
        bar.finish(opt.nfev)
    assert 6 <= len(written.getvalue().splitlines()) <= 8


def test_a_first_step_of_many_slow_evaluations_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first look of `auto` takes dozens of evaluations, each of which takes a minute here."""
    minutes = iter(range(10**6))
    monkeypatch.setattr("poem_cma.run.progress.time.monotonic", lambda: 60.0 * next(minutes))
    pc.minimize(lambda x: float(np.abs(x - 1.0).sum()), np.zeros(4), budget=200, seed=0, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"auto  \d/200  the first step is under way  left \d+:\d\d:\d\d", lines[0])
    assert lines[-1].endswith("left 0:00:00")


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are for POSIX systems")
def test_a_real_terminal() -> None:
    import pty

    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stderr=theirs, stdout=subprocess.PIPE, text=True, env=environment
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        written += part
    os.close(ours)
    assert child.communicate()[0] == "done 400\n"
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())
    shown = PARTS.findall(plain)
    assert shown[-1][0] == "400"
    assert int(shown[-1][8]) > 0  # failures are shown


def test_a_notebook_gets_one_output_that_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython's own display, publishing to us instead of to a browser."""
    display = pytest.importorskip("IPython.core.display_functions", reason="IPython is not installed")
    sent: list[tuple[str, bool]] = []

    def publish(data: Any, metadata: Any = None, *, transient: Any = None, update: bool = False, **_: Any) -> None:
        sent.append((data["text/html"], update))

    class Formatter:
        def format(self, what: Any, **_: Any) -> tuple[dict[str, str], dict[str, str]]:
            return {"text/html": what.data}, {}

    class Shell:
        display_formatter = Formatter()

        @staticmethod
        def initialized() -> bool:
            return True

        @staticmethod
        def instance() -> Any:
            return Shell()

    monkeypatch.setattr("IPython.core.interactiveshell.InteractiveShell", Shell)
    monkeypatch.setattr(display, "publish_display_data", publish)
    opt, _ = solved(Console(force_jupyter=True))
    assert [update for _, update in sent] == [False] + [True] * (len(sent) - 1)
    assert len(sent) >= 2
    assert f'<progress value="{opt.nfev}" max="400"' in sent[-1][0]
    assert "d* " in sent[-1][0]


def test_hours() -> None:
    assert clock(59.2) == "0:01:00"
    assert clock(float("inf")) == "-:--:--"
