"""Dask, Ray and MPI, on local clusters of real processes: workers raise, hang, die, leave and come."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

HERE = pathlib.Path(__file__).parents[1]


def report(
    script: str, folder: pathlib.Path, *arguments: str, before: tuple[str, ...] = (), options: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What a script says; in a process of its own, for clusters bring threads, warnings and signals along."""
    marks = folder / "marks"
    marks.mkdir()
    environment = os.environ | {"PYTHONPATH": str(HERE), "POEM_CMA_TEST_FOLDER": str(marks)}
    environment |= {"RAY_DEDUP_LOGS": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [*before, sys.executable, *options, str(HERE / script), *arguments], capture_output=True, text=True, cwd=folder,
        env=environment, timeout=300, check=False,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def test_dask(tmp_path: pathlib.Path) -> None:
    found = report("on_dask.py", tmp_path, str(tmp_path))
    assert found["same"]
    assert found["heavy"]
    assert found["once"]
    assert found["killed"]  # bit for bit, though a worker was killed and one was added
    assert found["lost"] > 0
    assert found["workers"] == 3
    assert found["moody"]
    assert found["mortal"]
    assert found["deaths"] > 2
    assert found["paused"]
    assert found["heard"] == ["no", "workers"]  # are left; are back


def test_ray(tmp_path: pathlib.Path) -> None:
    found = report("on_ray.py", tmp_path, str(tmp_path))
    assert found["same"]
    assert found["heavy"]
    assert found["once"]
    assert found["killed"]  # bit for bit, though a node was killed and one was added
    assert found["lost"] > 0
    assert found["moody"]
    assert found["mortal"]
    assert found["deaths"] > 2


def test_mpi(tmp_path: pathlib.Path) -> None:
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed (pip install mpi4py)")
    mpiexec = shutil.which(
        "mpiexec", path=os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    )
    if mpiexec is None:
        pytest.skip("no `mpiexec` here: mpi4py needs an MPI (pip install mpich)")
    found = report("on_mpi.py", tmp_path, before=(mpiexec, "-n", "3"), options=("-m", "mpi4py.futures"))
    assert found == {"same": True, "auto": True, "workers": 2, "processes": 2}


@pytest.fixture
def other_host() -> Iterator[str]:
    """A network namespace with its own address, joined to this one by a virtual cable."""
    if shutil.which("ip") is None:
        pytest.skip("no `ip` command here: two hosts cannot be made (apt-get install iproute2)")
    name, cable = f"poem-{os.getpid()}", f"pc{os.getpid() % 10**6}"
    steps = [
        ["ip", "netns", "add", name],
        ["ip", "link", "add", f"{cable}a", "type", "veth", "peer", "name", f"{cable}b"],
        ["ip", "link", "set", f"{cable}b", "netns", name],
        ["ip", "addr", "add", "10.213.0.1/24", "dev", f"{cable}a"],
        ["ip", "link", "set", f"{cable}a", "up"],
        ["ip", "netns", "exec", name, "ip", "addr", "add", "10.213.0.2/24", "dev", f"{cable}b"],
        ["ip", "netns", "exec", name, "ip", "link", "set", f"{cable}b", "up"],
        ["ip", "netns", "exec", name, "ip", "link", "set", "lo", "up"],
    ]
    try:
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"two hosts cannot be made here: {' '.join(step)}: {done.stderr.strip()}")
        yield name
    finally:
        subprocess.run(["ip", "link", "del", f"{cable}a"], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def test_dask_on_two_hosts(tmp_path: pathlib.Path, other_host: str) -> None:
    found = report("on_two_hosts.py", tmp_path, other_host)
    assert found == {"hosts": ["10.213.0.2"], "same": True}
