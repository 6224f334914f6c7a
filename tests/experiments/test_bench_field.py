"""`poem-cma bench --suite` from end to end: runs that resume, the page, and one line for everything that is wrong."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from reproduce_helpers import browse, run_command
from typer.testing import CliRunner

from poem_cma.command_line.cli import app
from poem_cma.experiments.bench import player as arena_player
from poem_cma.experiments.bench import provenance
from poem_cma.experiments.bench import suites as module
from poem_cma.experiments.bench.field import command
from poem_cma.experiments.bench.field import player as field_player
from poem_cma.experiments.bench.field.library import load
from poem_cma.experiments.campaign.watch import BadInput, Stopped
from poem_cma.problems.suites import SUITES

SMALL = ("bench", "--suite", "rough", "--problems", "wall,stairs-on", "--methods", "poem,ars,random-search")
SMALL = (*SMALL, "--seeds", "2", "--budgets", "40,80", "--jobs", "2")


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The small suite in the place of rough, cells computed in this process; the names of the cells computed."""
    monkeypatch.setitem(SUITES, "rough", "field_stub")
    load.cache_clear()
    heard: list[str] = []

    def compute(folder: Path, todo: Any, of: int, *, work: Any, **_: Any) -> None:
        for group in todo:
            work(folder, group)
            heard.extend(cell.name for cell in group)

    monkeypatch.setattr(command, "compute", compute)
    return heard


def bench(out: Path, suites: tuple[str, ...] = ("rough",), **more: Any) -> Path:
    given: dict[str, Any] = {"full": False, "problems": None, "methods": None, "jobs": 1, "out": out}
    given |= {"problems": ["bowl", "bowl-own"]} if suites == ("rough",) else {}
    return module.bench(suites, **{**given, **more})


def test_a_finished_cell_is_not_run_again(stub: list[str], tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"methods": ["poem", "ars"], "budgets": (30,)}
    bench(tmp_path, seeds=1, **chosen)
    assert len(stub) == 4
    files = {p: p.read_bytes() for p in tmp_path.glob("cells/field/*.json")}
    stub.clear()
    bench(tmp_path, seeds=2, **chosen)
    assert len(stub) == 4  # the second seed
    assert {p: p.read_bytes() for p in files} == files
    stub.clear()
    next(iter(files)).unlink()
    bench(tmp_path, seeds=2, **chosen)
    assert len(stub) == 1
    stub.clear()
    report = bench(tmp_path, seeds=2, report_only=True, **chosen)
    assert not stub
    assert report == tmp_path / "report.html"


def test_other_code_makes_a_result_out_of_date(
    stub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: dict[str, Any] = {"methods": ["poem", "ars"], "budgets": (30,), "seeds": 1, "problems": ["bowl"]}
    bench(tmp_path, **chosen)
    stub.clear()
    monkeypatch.setattr(field_player, "source_digest", lambda _: "another")
    bench(tmp_path, **chosen)
    assert len(stub) == 1
    assert "-poem-" in stub[0]


def test_the_command_resumes_and_its_page_opens(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run_command(tmp_path, *SMALL, "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "24 of 24 cells" in done.stderr
    assert re.search(r"planned for \d+\.\d minutes with 2 processes", done.stderr)
    again = run_command(tmp_path, *SMALL, "--out", str(out))
    assert "all 24 cells are there already" in again.stderr
    next(out.glob("cells/field/rough-wall-ars-*.json")).unlink()
    only = run_command(tmp_path, *SMALL, "--report-only", "--out", str(out))
    assert "1 of 24 cells are not there yet" in only.stderr
    page = browse(tmp_path / "profile", out / "report.html", "--window-size=390,900", "--dump-dom")
    assert 'data-charts="1"' in page.stdout  # the script has drawn the profiles
    assert page.stdout.count('class="row ours"') == 1
    assert "Uncaught" not in page.stderr


def test_the_losses_beside_others_have_a_folder_of_their_own(
    stub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def arena(problems: Any, methods: Any, *, out: Path, **_: Any) -> Path:
        assert (problems, methods) == (["box-corner"], ["poem"])
        out.mkdir()
        record = {"problem": "box-corner", "d": 30, "peer": "pycma", "variant": "tuned", "peer_gap": 0.5}
        record |= {"auto_gap": 0.01, "ratio": 7.25}
        (out / "ratios.json").write_text(json.dumps([record]))
        (out / "report.md").write_text("## Quick\n\nCalls of the best peer: 7.25.\n")
        (out / "report.html").write_text("arena")
        return out / "report.html"

    monkeypatch.setattr(module.arena, "bench", arena)
    report = bench(
        tmp_path, ("losses", "rough"), problems=["box-corner", "bowl"], methods=["poem", "ars"], seeds=1, budgets=(30,)
    )
    html = report.read_text(encoding="utf-8")
    assert "calls of the best peer: 7.25." in html
    assert 'href="losses/report.html"' in html
    assert "<td>pycma, tuned</td><td>0.5</td><td>0.01</td><td>7.25</td>" in html
    lines = (tmp_path / "report.md").read_text(encoding="utf-8").splitlines()
    assert lines[lines.index("### Losses: calls of the best peer for each of ours") + 2] == (
        "Calls of the best peer: 7.25."
    )
    assert "| box-corner | 30 | pycma, tuned | 0.5 | 0.01 | 7.25 |" in lines
    assert len(stub) == 2


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--suite", "rouhg"), "no suite 'rouhg'; there are losses, simulators, policies, rough, noisy-bbob, and all"),
        (("--suite", "rough", "--problems", "wal"), "no problem 'wal'; did you mean wall"),
        (("--suite", "rough,policies", "--problems", "hinge-w8a"), "no problem 'hinge-w8a'; "),
        (("--suite", "rough", "--methods", "pycmaa"), "no method 'pycmaa'; did you mean pycma"),
        (("--suite", "rough", "--methods", "zo-sgd"), "no method 'zo-sgd'; "),
        (("--problems", "max-afine"), "no problem 'max-afine'; did you mean max-affine?"),
        (("--suite", "losses,rough", "--problems", "wall", "--methods", "zo-sgd"), "none of these methods "),
        (("--seeds", "3"), "--seeds and --budgets are for the suites"),
    ],
)
def test_names_that_do_not_exist(arguments: tuple[str, ...], line: str, tmp_path: Path) -> None:
    failed = CliRunner().invoke(app, ["bench", *arguments, "--out", str(tmp_path / "out")])
    assert failed.exit_code == 2
    assert failed.stderr.startswith(f"poem-cma: {line}")
    assert len(failed.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("budgets", ["300,many", "9", "-300", "1e3"])
def test_budgets_that_are_none(budgets: str) -> None:
    failed = CliRunner().invoke(app, ["bench", "--suite", "rough", "--budgets", budgets])
    assert failed.exit_code == 2
    assert "whole numbers of at least 10" in failed.stderr


def test_a_suite_whose_package_is_missing_is_left_out(
    stub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        if name in (SUITES["simulators"], SUITES["noisy-bbob"]):
            raise ModuleNotFoundError(f"No module named {name}", name={"simulators": "simopt"}.get(name[18:], "cocoex"))
        return importlib.import_module(name)

    monkeypatch.setattr("poem_cma.problems.suites.import_module", missing)
    request = command.make_request(["simulators", "rough", "noisy-bbob"], methods=["ars"], problems=["bowl"])
    assert request.notes == (
        'the suite simulators is left out: simoptlib is not installed (pip install "poem-cma[bench]")',
        'the suite noisy-bbob is left out: coco-experiment is not installed (pip install "poem-cma[bench]")',
    )
    with pytest.raises(Stopped, match="the suite simulators is left out: simoptlib is not installed"):
        command.make_request(["simulators"])
    report = bench(tmp_path, ("simulators", "rough"), problems=["bowl"], methods=["ars"], seeds=1, budgets=(30,))
    assert "the suite simulators is left out: simoptlib is not installed" in report.read_text(encoding="utf-8")


def test_problems_that_cannot_be_built_are_left_out(stub: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import field_stub

    def broken() -> Any:
        raise ImportError('the box needs carpenters: pip install "carpenters"')

    monkeypatch.setitem(field_stub.BLACK_BOXES, "bowl-own", broken)
    request = command.make_request(["rough"], methods=["ars"], problems=["bowl", "bowl-own"])
    assert request.problems == (("rough", "bowl"),)
    line = 'the box needs carpenters: pip install "carpenters"'
    assert request.notes == (f"bowl-own (rough) is left out: {line}",)
    monkeypatch.setitem(field_stub.BLACK_BOXES, "bowl", broken)
    load.cache_clear()
    with pytest.raises(Stopped, match=re.escape(f"the suite rough is left out: {line}")):
        command.make_request(["rough"], methods=["ars"], problems=["bowl", "bowl-own"])


def test_players_whose_packages_are_missing_are_left_out(stub: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_player, "installed", lambda name: None if name in ("cma", "Py-BOBYQA") else "1")
    request = command.make_request(["rough"], problems=["bowl"])
    assert 'pycma: cma not installed (pip install "poem-cma[bench]")' in request.notes
    assert 'Py-BOBYQA: Py-BOBYQA not installed (pip install "poem-cma[bench]")' in request.notes
    assert not {"pycma", "pycma-noise", "py-bobyqa"} & set(request.players)
    assert {"auto", "ars", "ng-tbpsa"} <= set(request.players)
    with pytest.raises(Stopped, match="pycma: cma not installed"):
        command.make_request(["rough"], problems=["bowl"], methods=["pycma"])


def test_a_player_whose_package_breaks_on_import_is_left_out(
    stub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_peer.py").write_text("raise OSError('libpeer.so: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(provenance._MODULES, "cma", "broken_peer")
    provenance._broken.cache_clear()
    request = command.make_request(["rough"], problems=["bowl"], methods=["pycma", "ars"])
    assert request.players == ("ars",)
    assert request.notes == ("pycma: cma cannot be imported (libpeer.so: cannot open)",)
    provenance._broken.cache_clear()


def test_a_broken_environment_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.arena, "find_spec", lambda name: None if name == "plotly" else True)
    with pytest.raises(Stopped, match=r'plotly not installed: pip install "poem-cma\[bench\]"'):
        bench(tmp_path)
    failed = CliRunner().invoke(app, ["bench", "--suite", "rough", "--out", str(tmp_path)])
    assert failed.exit_code == 1
    assert len(failed.stderr.strip().splitlines()) == 1
    assert not issubclass(Stopped, BadInput)


def test_packages_of_the_arena_are_found_as_before() -> None:
    assert arena_player._version("numpy") is not None
    assert arena_player._version("no-such-distribution") is None
