"""Stores and what can happen to files: a second writer, a full disk, a power cut, damage, other programs' files."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest
from runs import P, bits, finished_store, run

from poem_cma.store import StoreError, View, layout
from poem_cma.store import store as writer
from poem_cma.store.check import check
from poem_cma.store.documents import read_documents

HERE = pathlib.Path(__file__).parents[1]


def python(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, cwd=HERE, check=False, **options)


def started(code: str) -> subprocess.Popen[str]:
    """A process that has printed its first line."""
    command = [sys.executable, "-u", "-c", textwrap.dedent(code)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=HERE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_second_writer_is_told_who_the_first_is_until_that_one_is_gone(tmp_path: pathlib.Path) -> None:
    store = tmp_path / "run.db"
    first = started(f"""
        import time
        from runs import P, run
        def fun(x, i):
            print("calling")
            time.sleep(60)
        run(fun, store={str(store)!r})
    """)
    before = store.read_bytes()
    with pytest.raises(StoreError, match=f"is being written by process {first.pid} on .* since .*one run a store"):
        run(store=store)
    assert store.read_bytes() == before
    first.kill()
    first.communicate()
    assert bits(run(store=store)) == bits(run())


SMALL = """
    import resource, sys
    from runs import run, P
    from poem_cma.store import store as writer
    writer.CALLS_BETWEEN_SNAPSHOTS = 50
    resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, resource.RLIM_INFINITY))
    run(store={store!r}, budget=3000)
"""


@pytest.mark.parametrize("size", [20_000, 50_000, 111_111, 200_000])
def test_a_full_disk_is_a_clear_error_and_the_run_goes_on_when_there_is_room(tmp_path: pathlib.Path, size: int) -> None:
    store = tmp_path / "run.db"
    done = python(SMALL.format(size=size, store=str(store)))
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "StoreError" in last
    assert "could not be written" in last or "cannot be made" in last
    if store.exists():
        check(store)
    calls = 0

    def fun(x: np.ndarray, i: int) -> float:
        nonlocal calls
        calls += 1
        return P.fun(x, i)

    kept = 0
    if store.exists():
        with View(store) as view:
            kept = len(view.calls())
    assert bits(run(fun, store=store, budget=3000)) == bits(run(budget=3000))
    assert calls == 3000 - kept
    assert kept > 0 or size < 60_000


def test_a_full_file_system(tmp_path: pathlib.Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(mount)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        store = mount / "run.db"
        with pytest.raises(StoreError, match=r"could not be written .*make room, and the same call goes on"):
            run(store=store, budget=3000)
        with View(store) as view:
            kept = len(view.calls())
        assert kept > 0
        subprocess.run(["mount", "-o", "remount,size=20m", str(mount)], check=True)
        assert bits(run(store=store, budget=3000)) == bits(run(budget=3000))
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_a_write_that_fails_half_way_leaves_what_was_there(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every statement of a run's transactions fails once, at one place after the other."""
    monkeypatch.setattr(writer, "CALLS_BETWEEN_SNAPSHOTS", 20)
    expected = bits(run(budget=100))
    store = tmp_path / "run.db"
    real = layout.connect
    fails = [0]

    class Failing:
        def __init__(self, db: sqlite3.Connection, at: int) -> None:
            self._db, self._left = db, at

        def __getattr__(self, name: str) -> Any:
            return getattr(self._db, name)

        def _count(self) -> None:
            self._left -= 1
            if self._left == 0:
                fails[0] += 1
                raise sqlite3.OperationalError("disk I/O error")

        def execute(self, *arguments: Any) -> Any:
            if arguments[0].startswith(("INSERT", "DELETE", "COMMIT", "BEGIN")):
                self._count()
            return self._db.execute(*arguments)

        def executemany(self, *arguments: Any) -> Any:
            self._count()
            return self._db.executemany(*arguments)

    for at in range(1, 400):

        def connect(path: pathlib.Path, *, write: bool, at: int = at) -> Any:
            db = real(path, write=write)
            return Failing(db, at) if write else db

        monkeypatch.setattr(layout, "connect", connect)
        before = fails[0]
        try:
            result = run(budget=100, store=store)
            break
        except StoreError:
            assert fails[0] == before + 1
            check(store)
    assert fails[0] > 20
    assert bits(result) == expected


def test_a_power_cut_leaves_a_store_that_goes_on(tmp_path: pathlib.Path) -> None:
    """What a disk may have lost: the end of the write-ahead log, from any byte on."""
    store = tmp_path / "run.db"
    process = started(f"""
        import os
        from runs import P, run
        calls = 0
        def fun(x, i):
            global calls
            calls += 1
            if calls == 250:
                print("here")
                import time; time.sleep(60)
            return P.fun(x, i)
        run(fun, store={str(store)!r})
    """)
    process.kill()
    process.communicate()
    log = store.with_name("run.db-wal").read_bytes()
    assert len(log) > 50_000
    expected = bits(run())
    for cut in np.random.default_rng(0).integers(len(log), size=8).tolist():
        copy = tmp_path / f"{cut}.db"
        shutil.copy(store, copy)
        copy.with_name(copy.name + "-wal").write_bytes(log[:cut])
        assert bits(run(store=copy)) == expected


def test_a_commit_waits_for_the_disk_at_least_every_second(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock of our own: 10 ms a call. Between two commits that wait lie at most a second of calls."""
    now = [0.0]
    monkeypatch.setattr(writer.time, "monotonic", lambda: now[0])
    waits: list[float] = []
    enter = writer._Transaction.__enter__

    def entered(self: Any) -> Any:
        if self._sync:
            waits.append(now[0])
        db = enter(self)
        assert db.execute("PRAGMA synchronous").fetchone()[0] == (2 if self._sync else 1)
        return db

    monkeypatch.setattr(writer._Transaction, "__enter__", entered)

    def fun(x: np.ndarray, i: int) -> float:
        now[0] += 0.01
        return P.fun(x, i)

    run(fun, store=tmp_path / "run.db", budget=2000)
    assert now[0] >= 19.9
    assert max(np.diff(waits)) <= 1.0
    assert len(waits) < 60


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return finished_store(tmp_path_factory.mktemp("finished"))


def refused(path: pathlib.Path, match: str) -> None:
    """Neither writer nor reader takes it, and nothing is changed."""
    before = path.read_bytes()
    with pytest.raises(StoreError, match=match):
        run(store=path)
    with pytest.raises(StoreError, match=match):
        View(path)
    assert path.read_bytes() == before


def test_files_that_are_not_stores_are_refused_and_left_alone(tmp_path: pathlib.Path, finished: pathlib.Path) -> None:
    path = tmp_path / "run.db"
    path.write_bytes(b"")
    refused(path, "is empty, not a store")
    for content in (b"hello", bytes(5000), b"SQLite format 3\x00", os.urandom(9000)):
        path.write_bytes(content)
        refused(path, "is not a store of poem-cma: give another name")
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE mine (a)")
    other.commit()
    other.close()
    refused(path, "a database of another program")
    whole = bytearray(finished.read_bytes())
    whole[60:64] = (99).to_bytes(4, "big")
    path.write_bytes(whole)
    refused(path, "format version 99, this library reads version 2")
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="cannot be read: Is a directory"):
        run(store=path)
    with pytest.raises(StoreError, match="cannot be written: No such file or directory"):
        run(store=tmp_path / "nowhere" / "run.db")


def test_stores_with_triggers_or_views_are_refused(tmp_path: pathlib.Path, finished: pathlib.Path) -> None:
    for addition in (
        "CREATE TRIGGER t AFTER INSERT ON call BEGIN DELETE FROM block; END",
        "CREATE VIEW v AS SELECT * FROM call",
        "CREATE INDEX i ON failure(text)",
        "DROP TABLE failure",
    ):
        path = tmp_path / "run.db"
        shutil.copy(finished, path)
        db = sqlite3.connect(path)
        db.execute(addition)
        db.commit()
        db.close()
        refused(path, "has other tables than a store")
        path.unlink()


def test_truncated_stores_are_refused(tmp_path: pathlib.Path, finished: pathlib.Path) -> None:
    path = tmp_path / "run.db"
    path.write_bytes(finished.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("VACUUM")  # a page that is free may be missing
    whole = path.read_bytes()
    for cut in np.random.default_rng(1).integers(1, len(whole), size=30).tolist():
        path.write_bytes(whole[:cut])
        refused(path, "damaged|not a store")


def test_a_flipped_bit_is_noticed_or_changes_nothing(tmp_path: pathlib.Path, finished: pathlib.Path) -> None:
    """Some bits of an SQLite file mean nothing; all others are under a checksum."""
    with View(finished) as view:
        calls, documents = view.calls().tobytes(), read_documents(view._db)
    whole = finished.read_bytes()
    path = tmp_path / "run.db"
    rng = np.random.default_rng(2)
    noticed = 0
    for position in rng.integers(len(whole), size=300).tolist():
        flipped = bytearray(whole)
        flipped[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        try:
            with View(path) as view:
                assert view.calls().tobytes() == calls
                assert read_documents(view._db) == documents
        except StoreError:
            noticed += 1
        assert path.read_bytes() == flipped
    assert noticed > 100


def test_a_store_holds_no_code(finished: pathlib.Path) -> None:
    assert b"pickle" not in finished.read_bytes()
    assert b"\x80\x04\x95" not in finished.read_bytes()  # how pickles begin


def test_a_lock_file_that_a_killed_run_left_behind_is_no_hindrance(tmp_path: pathlib.Path) -> None:
    (tmp_path / "run.db-lock").write_text("process 1 on nowhere")
    run(store=tmp_path / "run.db")
    assert not (tmp_path / "run.db-lock").exists()


def test_the_file_can_be_copied_while_the_run_goes_on(tmp_path: pathlib.Path) -> None:
    store = tmp_path / "run.db"
    copies: list[tuple[int, pathlib.Path]] = []

    def fun(x: np.ndarray, i: int) -> float:
        fun.calls += 1  # type: ignore[attr-defined]
        if fun.calls % 60 == 0:  # type: ignore[attr-defined]
            copy = tmp_path / f"copy{len(copies)}.db"
            with View(store) as view:
                view.copy(copy)
            copies.append((fun.calls, copy))  # type: ignore[attr-defined]
        return P.fun(x, i)

    fun.calls = 0  # type: ignore[attr-defined]
    expected = bits(run(fun, store=store))
    assert len(copies) == 5
    for calls, copy in copies:
        with View(copy) as view:
            assert calls - 2 <= len(view.calls()) <= calls - 1  # all but the probe in flight
        assert bits(run(store=copy)) == expected
