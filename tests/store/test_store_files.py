"""Names of stores: links, logs of files that are gone, folders that cannot be written, files that somebody planted."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from runs import P, bits, run

from poem_cma.store import StoreError, View

HERE = pathlib.Path(__file__).parents[1]

HANGS = """
    import sys, time
    from runs import P, run
    calls = 0
    def fun(x, i):
        global calls
        calls += 1
        if calls == {calls}:
            print("here", flush=True)
            time.sleep(600)
        return P.fun(x, i) + {shift}
    run(fun, store={store!r})
"""


def hanging(store: pathlib.Path, *, calls: int = 100, shift: float = 0.0) -> subprocess.Popen[str]:
    """A process that has written some calls to a store, and is about to make the next."""
    code = textwrap.dedent(HANGS).format(store=str(store), calls=calls, shift=shift)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=HERE)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    return process


def killed(store: pathlib.Path, **settings: Any) -> None:
    process = hanging(store, **settings)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_store_that_was_removed_without_its_log_leaves_nothing_to_the_next(tmp_path: pathlib.Path) -> None:
    store = tmp_path / "run.db"
    killed(store, shift=1000.0)
    store.unlink()
    assert store.with_name("run.db-wal").stat().st_size > 0
    calls = 0

    def fun(x: np.ndarray, i: int) -> float:
        nonlocal calls
        calls += 1
        return P.fun(x, i)

    assert bits(run(fun, store=store)) == bits(run())
    assert calls == 300


@pytest.mark.parametrize("log", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("name", ["run.db", "run.db-part"])
def test_no_log_of_another_file_gets_into_a_new_store(tmp_path: pathlib.Path, name: str, log: str) -> None:
    killed(tmp_path / "other.db", shift=1000.0)
    shutil.copy(tmp_path / "other.db-wal", tmp_path / (name + log))
    assert bits(run(store=tmp_path / "run.db")) == bits(run())
    assert bits(run(store=tmp_path / "run.db")) == bits(run())


def test_a_copy_in_the_place_of_a_killed_store_does_not_get_its_log(tmp_path: pathlib.Path) -> None:
    run(store=tmp_path / "good.db")
    killed(tmp_path / "killed.db", shift=1000.0)
    with View(tmp_path / "good.db") as view:
        view.copy(tmp_path / "killed.db")
    assert bits(run(store=tmp_path / "killed.db")) == bits(run())


@pytest.mark.parametrize("names", [("run.db", "run.db-wal"), ("run.db",)], ids=["with its log", "without"])
def test_a_killed_store_can_be_copied_with_its_log(tmp_path: pathlib.Path, names: tuple[str, ...]) -> None:
    killed(tmp_path / "run.db")
    (tmp_path / "elsewhere").mkdir()
    for name in names:
        shutil.copy(tmp_path / name, tmp_path / "elsewhere" / name)
    calls = 0

    def fun(x: np.ndarray, i: int) -> float:
        nonlocal calls
        calls += 1
        return P.fun(x, i)

    assert bits(run(fun, store=tmp_path / "elsewhere" / "run.db")) == bits(run())
    assert calls == 300 - 98 if len(names) == 2 else 202 < calls <= 300


def test_no_copy_takes_the_place_of_a_store_that_is_written(tmp_path: pathlib.Path) -> None:
    run(store=tmp_path / "good.db")
    process = hanging(tmp_path / "run.db")
    try:
        with View(tmp_path / "good.db") as view, pytest.raises(StoreError, match="is being written by process"):
            view.copy(tmp_path / "run.db")
    finally:
        process.kill()
        process.communicate()
    assert bits(run(store=tmp_path / "run.db")) == bits(run())


@pytest.mark.parametrize("kind", ["link to the file", "link to the folder", "dots"])
def test_a_second_writer_is_refused_by_whatever_name_it_comes(tmp_path: pathlib.Path, kind: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    store = folder / "run.db"
    (tmp_path / "alias.db").symlink_to(store)
    (tmp_path / "alias").symlink_to(folder)
    other = {
        "link to the file": tmp_path / "alias.db",
        "link to the folder": tmp_path / "alias" / "run.db",
        "dots": folder / ".." / "folder" / "run.db",
    }[kind]
    process = hanging(store)
    try:
        with pytest.raises(StoreError, match=f"is being written by process {process.pid}"):
            run(store=other)
    finally:
        process.kill()
        process.communicate()
    assert bits(run(store=other)) == bits(run())
    assert sorted(p.name for p in folder.iterdir()) == ["run.db"]
    with View(store) as view:
        assert len(view.calls()) == 300


@pytest.mark.parametrize("kind", ["link", "same"])
def test_a_second_writer_of_the_same_process_is_refused_by_whatever_name_it_comes(
    tmp_path: pathlib.Path, kind: str
) -> None:
    store = tmp_path / "run.db"
    (tmp_path / "alias.db").symlink_to(store)
    other = tmp_path / "alias.db" if kind == "link" else store
    refused = 0

    def fun(x: np.ndarray, i: int) -> float:
        nonlocal refused
        if refused < 2:
            refused += 1
            with pytest.raises(StoreError, match="another run of this process"):
                run(store=other)
        return P.fun(x, i)

    assert bits(run(fun, store=store)) == bits(run())
    assert refused == 2


def test_a_store_with_two_names_is_refused_by_both(tmp_path: pathlib.Path) -> None:
    """SQLite has a log for each name: two writers would not see each other."""
    store, other = tmp_path / "run.db", tmp_path / "other.db"
    process = hanging(store)
    os.link(store, other)
    try:
        with pytest.raises(StoreError, match="has several names"):
            run(store=other)
    finally:
        process.kill()
        process.communicate()
    for name in (store, other):
        before = name.read_bytes()
        with pytest.raises(StoreError, match=r"has several names \(hard links\).*give a copy of it"):
            run(store=name)
        assert name.read_bytes() == before
    other.unlink()
    assert bits(run(store=store)) == bits(run())


@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "pipe", "dangling link"])
def test_a_lock_that_somebody_planted_is_refused_and_what_is_behind_it_is_left_alone(
    tmp_path: pathlib.Path, kind: str
) -> None:
    mine, lock = tmp_path / "mine.txt", tmp_path / "run.db-lock"
    if kind != "dangling link":
        mine.write_text("precious")
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "hard link":
        os.link(mine, lock)
    else:
        lock.symlink_to(mine)
    with pytest.raises(StoreError, match=r"run\.db-lock is in the way.*remove it"):
        run(store=tmp_path / "run.db")
    assert os.path.lexists(lock)
    assert mine.exists() == (kind != "dangling link")
    assert not mine.exists() or mine.read_text() == "precious"


def test_a_new_store_is_not_written_through_a_link(tmp_path: pathlib.Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("precious")
    for name in ("run.db-part", "run.db-new", "run.db-wal"):
        (tmp_path / name).symlink_to(mine)
    assert bits(run(store=tmp_path / "run.db")) == bits(run())
    assert mine.read_text() == "precious"


@pytest.fixture
def public() -> Iterator[pathlib.Path]:
    """A folder that every user can read, in which nobody but its owner can write."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="poem-cma-test-"))
    try:
        yield folder
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


READS = """
    import os
    from poem_cma.store import StoreError, View
    if os.geteuid() == 0:  # to whom nothing is forbidden
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        with View({store!r}) as view:
            print(len(view.calls()))
    except StoreError as error:
        print(error)
"""


def read_by_another(store: pathlib.Path) -> str:
    """What a process finds in a store whose folder it cannot write."""
    store.parent.chmod(0o555)
    code = textwrap.dedent(READS).format(store=str(store))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=HERE)
    assert not done.stderr
    return done.stdout.strip()


def test_a_store_in_a_folder_that_cannot_be_written_can_be_read(public: pathlib.Path) -> None:
    run(store=public / "run.db")
    assert read_by_another(public / "run.db") == "300"


def test_so_can_one_whose_run_was_killed_with_its_log(public: pathlib.Path) -> None:
    killed(public / "run.db", calls=100)
    assert read_by_another(public / "run.db") == "98"


def test_one_whose_log_cannot_be_opened_is_not_called_damaged(public: pathlib.Path) -> None:
    killed(public / "run.db", calls=100)
    (public / "run.db-shm").unlink()
    said = read_by_another(public / "run.db")
    assert "cannot be opened" in said
    assert "copy it, and run.db-wal with it" in said
    assert "damaged" not in said


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to this user")
def test_writing_where_nothing_can_be_written_says_so(public: pathlib.Path) -> None:
    public.chmod(0o555)
    with pytest.raises(StoreError, match="cannot be written: Permission denied"):
        run(store=public / "run.db")
