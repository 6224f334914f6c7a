"""Files of earlier versions of the library are opened, shown and gone on with."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from cases import CASES, D
from inside import state_of
from written import BUDGET, FIXTURES, STOPPED, WRITTEN, file_of, optimizer, run, tell, tell_one

import poem_cma as pc
from poem_cma.auto.state import AutoState
from poem_cma.command_line.show import _page
from poem_cma.run import checkpoint
from poem_cma.run.flatten import UPGRADES, flatten, restore, tree
from poem_cma.store import View

VERSIONS = sorted(folder.name for folder in FIXTURES.iterdir() if folder.is_dir())
versions = pytest.mark.parametrize("version", VERSIONS)
names = pytest.mark.parametrize("name", WRITTEN)


def copied(tmp_path: Path, version: str, file: str) -> Path:
    """A file that may be changed."""
    return Path(shutil.copy(FIXTURES / version / file, tmp_path / "file"))


def test_this_version_has_left_files() -> None:
    assert pc.__version__ in VERSIONS


@names
@versions
def test_a_store_is_gone_on_with(tmp_path: Path, version: str, name: str) -> None:
    """No stored call is made again; the run ends within its budget, and takes a larger one."""
    store, case, calls = copied(tmp_path, version, f"{file_of(name)}.db"), CASES[name], 0
    with View(store) as view:
        assert view.versions == [version]
        assert len(view.calls()) == STOPPED
        opt = view.optimizer()
        assert opt is not None
        assert 0.5 * STOPPED < opt.nfev <= STOPPED

    def fun(x: np.ndarray, n: int) -> float:
        nonlocal calls
        calls += 1
        return case.fun(x, n)

    result = run(case, fun, store)
    assert STOPPED + calls == result.nfev <= BUDGET
    assert result.status not in (4, 5)  # interrupted, given up
    longer = run(case, fun, store, budget=2 * BUDGET)
    assert STOPPED + calls == longer.nfev <= 2 * BUDGET
    assert longer.status == 6 or longer.nfev > 1.8 * BUDGET
    with View(store) as view:
        assert view.versions == list(dict.fromkeys([version, pc.__version__]))


@names
@versions
def test_a_checkpoint_is_gone_on_with(version: str, name: str) -> None:
    opt = pc.Optimizer.load(FIXTURES / version / f"{file_of(name)}.run")
    before, history = opt.nfev, opt.result().history["nfev"].tolist()
    assert STOPPED <= before < 1.5 * STOPPED
    assert 0 < tell(CASES[name], opt, np.inf) <= BUDGET - before
    assert opt.done
    assert opt.result().history["nfev"].tolist()[: len(history)] == history


@versions
def test_a_finished_store_returns_its_result(tmp_path: Path, version: str) -> None:
    def never(x: np.ndarray, n: int) -> float:
        raise AssertionError("called")

    result = run(CASES["auto near"], never, copied(tmp_path, version, "finished.db"))
    assert result.status not in (4, 5)
    assert 0.9 * BUDGET < result.nfev <= BUDGET
    assert np.isfinite(result.fun)


@versions
def test_show_says_which_version_wrote_a_file(tmp_path: Path, version: str) -> None:
    text, _ = _page(copied(tmp_path, version, "finished.db"), 80, None, verify=True)
    assert f"written by  poem-cma {version}" in text


def test_states_of_the_papers_methods_without_records_are_read() -> None:
    """With steps in flight, of which a file has the fields in which they differ: they go on as states of today do."""
    case = CASES["poem-cma"]
    former = pc.Optimizer.load(FIXTURES / "state-1.run")
    now = pc.Optimizer(np.zeros(D), method=case.method, seed=3, budget=BUDGET, ahead=2)
    while now.nfev < former.nfev - 2:
        flight = list(iter(now.ask, None))
        for probe in flight[::-1]:
            tell_one(case, now, probe)
    flight = list(iter(now.ask, None))
    tell_one(case, now, flight[1])
    assert len(flight) == 3
    again = list(iter(former.ask, None))
    assert [probe.id for probe in again] == [flight[0].id, flight[2].id]
    for opt, probes in ((now, [flight[0], flight[2]]), (former, again)):
        for probe in probes:
            tell_one(case, opt, probe)
        tell(case, opt, np.inf)
    assert former.nfev == now.nfev == BUDGET
    np.testing.assert_allclose(former.result().x, now.result().x, rtol=1e-6)
    for column, values in now.result().history.items():
        np.testing.assert_allclose(former.result().history[column], values, rtol=1e-6)


def test_a_far_search_of_former_records_is_read() -> None:
    """The sums of its noise measurement are dropped, and the search goes on to the end of its budget."""
    former = pc.Optimizer.load(FIXTURES / "noise-1.run")
    noise = state_of(former).search.noise
    assert (noise.seen, noise.rate) == (0.0, 1.0)
    assert tell(CASES["auto far"], former, np.inf) <= BUDGET
    assert former.done


def test_a_store_of_such_a_run_is_gone_on_with(tmp_path: Path) -> None:
    case, calls, store = CASES["poem-cma"], 0, Path(shutil.copy(FIXTURES / "state-1.db", tmp_path))

    def fun(x: np.ndarray, n: int) -> float:
        nonlocal calls
        calls += 1
        return case.fun(x, n)

    result = run(case, fun, store, ahead=2)
    assert STOPPED + calls == result.nfev == BUDGET
    fresh = run(case, fun, tmp_path / "fresh.db", ahead=2)
    np.testing.assert_allclose(result.x, fresh.x, rtol=1e-6)


def test_a_field_that_is_new_takes_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of this version are read by one whose states have another field."""
    fields: Any = [*AutoState.__annotations__.items(), ("fresh", float)]
    new: Any = NamedTuple("AutoState", fields)  # type: ignore[misc]
    new.__new__.__defaults__ = (*AutoState.__new__.__defaults__, 7.0)  # type: ignore[misc]
    members = {name: member for name, member in vars(AutoState).items() if isinstance(member, property)}
    newer = type("AutoState", (new,), members)
    algorithm = type(pc.methods.auto().algorithm)
    monkeypatch.setattr(algorithm, "record", newer)
    opt = pc.Optimizer.load(FIXTURES / pc.__version__ / "auto-near.run")
    assert state_of(opt).fresh == 7.0
    tell(CASES["auto near"], opt, np.inf)
    assert opt.done


def test_a_field_that_has_changed_is_brought_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metres have become millimetres under another name; what a newer version wrote is refused by name."""

    class Length(NamedTuple):
        metres: float

    written = flatten("length", Length(2.0))
    new: Any = NamedTuple("Length", [("millimetres", float)])
    with pytest.raises(ValueError, match="its Length has fields that are not known here: metres"):
        restore(tree(written)["length"], {"Length": new})
    monkeypatch.setitem(UPGRADES, "Length", (lambda fields: {"millimetres": 1000.0 * fields["metres"]},))
    assert restore(tree(written)["length"], {"Length": new}) == (2000.0,)
    newest = flatten("length", new(2000.0))
    assert newest["length.version"] == 2
    assert restore(tree(newest)["length"], {"Length": new}) == (2000.0,)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="holds Length in version 2, and Length is read up to version 1"):
        restore(tree(newest)["length"], {"Length": new})


def test_an_error_names_the_version_that_wrote_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(checkpoint, "this_version", lambda: "9.0")
        newer.setitem(UPGRADES, "AutoState", (dict,))
        opt = optimizer(CASES["auto far"])
        opt.save(tmp_path / "run")
    with pytest.raises(ValueError, match=rf"written by poem-cma 9\.0; this is {pc.__version__}"):
        pc.Optimizer.load(tmp_path / "run")
