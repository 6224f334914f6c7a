"""The suites through `problems.names` and `problems.load`: every name is found, and no more is imported than needed."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from poem_cma import problems
from poem_cma.problems import suites
from poem_cma.problems.packages import package
from poem_cma.problems.suites import SUITES, load_black_box

FIRST = {"simulators": "example-1", "policies": "cartpole", "rough": "queue", "noisy-bbob": "f101-gauss-sphere-d5-i1"}


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules of suites that are imported from now on."""
    heard: list[str] = []

    def listen(name: str) -> Any:
        heard.append(name)
        return import_module(name)

    monkeypatch.setattr(suites, "import_module", listen)
    return heard


def test_every_name_belongs_to_one_suite() -> None:
    found = [name for suite in ("losses", *SUITES) for name in problems.names(suite=suite)]
    assert len(found) == len(set(found)) > 300
    assert all(FIRST[suite] == problems.names(suite=suite)[0] for suite in SUITES if suite != "rough")
    assert problems.names() == problems.names(suite="losses")


@pytest.mark.parametrize("suite", ["policies", "rough"])
def test_a_black_box_is_loaded_by_its_name(suite: str) -> None:
    box = problems.load(FIRST[suite])
    assert isinstance(box, problems.BlackBox)
    assert (box.name, box.suite) == (FIRST[suite], suite)
    assert problems.load(FIRST[suite], suite=suite).judge(box.x0) == box.judge(box.x0)


def test_a_loss_is_loaded_as_before() -> None:
    for found in (problems.load("box-corner"), problems.load("box-corner", suite="losses")):
        assert isinstance(found, problems.Problem)
        assert found.optimum == problems.certify("box-corner")[0]


def test_no_more_suites_are_imported_than_needed(imported: list[str]) -> None:
    problems.load("box-corner")
    assert imported == []
    problems.load("queue", suite="rough")
    assert imported == [SUITES["rough"]]
    imported.clear()
    problems.load("cartpole")
    assert SUITES["rough"] not in imported
    assert SUITES["noisy-bbob"] not in imported


def test_a_suite_that_cannot_be_imported_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, SUITES["simulators"], None)
    assert problems.load("queue").name == "queue"
    with pytest.raises(ValueError, match=r"no problem 'example-1'.*the suite simulators cannot be imported"):
        problems.load("example-1")
    with pytest.raises(ImportError):
        load_black_box("example-1", "simulators")
    with pytest.raises(ImportError):
        problems.names(suite="simulators")


@pytest.mark.parametrize(
    ("package", "problem", "needed"),
    [
        ("simopt", "sscont-1", "need SimOpt, but simopt"),
        ("cocoex", "f101-gauss-sphere-d5-i1", "need COCO, but cocoex is missing"),
        ("sklearn", "zero-one-cancer", "cancer needs scikit-learn, but sklearn"),
    ],
)
def test_a_missing_package_is_named(package: str, problem: str, needed: str) -> None:
    """The other problems can be built without it."""
    code = f"""
import sys
sys.modules[{package!r}] = None
from poem_cma import problems
print(problems.load("cartpole").name, problems.load("wall").name)
try:
    problems.load({problem!r})
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    others, line = done.stdout.strip().splitlines()
    assert others == "cartpole wall"
    assert needed in line
    assert "pip install" in line


def test_a_package_that_breaks_on_import_is_named_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_box.py").write_text("raise RuntimeError('compiled for\\nanother NumPy')")
    monkeypatch.syspath_prepend(tmp_path)
    line = r"^the wall needs a box, which cannot be imported \(compiled for another NumPy\)$"
    with pytest.raises(ImportError, match=line):
        package("broken_box", "the wall needs a box")


def test_names_that_do_not_exist() -> None:
    everything = "losses, simulators, policies, rough, noisy-bbob"
    for wrong in (lambda: problems.names(suite="rouhg"), lambda: problems.load("queue", suite="rouhg")):
        with pytest.raises(ValueError, match=f"no suite 'rouhg'; there are {everything}$"):
            wrong()
    with pytest.raises(ValueError, match="no suite of black boxes 'losses'; there are simulators, policies, rough"):
        suites.black_boxes("losses")
    with pytest.raises(ValueError, match="no problem 'quue'; did you mean queue"):
        problems.load("quue")
    with pytest.raises(ValueError, match="no problem 'max-afine'; did you mean max-affine"):
        problems.load("max-afine")
    with pytest.raises(ValueError, match=r"no problem 'queue'; there are hinge-mushrooms, .*, and \d+ more$"):
        problems.load("queue", suite="losses")
    with pytest.raises(ValueError, match=r"no problem '%'; there are .*, and \d+ more$") as caught:
        problems.load("%")
    assert len(str(caught.value)) < 400
