"""Compiled objectives: pointers from ctypes, and what is made of them."""

from __future__ import annotations

import ctypes
import pathlib
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest
from scipy import LowLevelCallable

import poem_cma as pc

SOURCE = """
double squares(int n, const double *x, void *data) {
    double shift = data ? *(double *)data : 0.0, sum = 0.0;
    for (int i = 0; i < n; i++) sum += (x[i] - shift) * (x[i] - shift);
    return sum;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler on this machine")
    folder: pathlib.Path = tmp_path_factory.mktemp("compiled")
    (folder / "f.c").write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", folder / "f.so", folder / "f.c"], check=True)
    return ctypes.CDLL(str(folder / "f.so"))


def plain(x: np.ndarray) -> float:
    total = 0.0
    for v in x.tolist():
        total += v * v
    return total


def run(fun: Any, **options: Any) -> pc.Result:
    return pc.minimize(fun, np.linspace(0.5, 1.0, 6), budget=600, seed=1, **options)


def test_a_ctypes_function_gives_the_run_of_the_python_function(library: ctypes.CDLL) -> None:
    assert run(library.squares).x.tobytes() == run(plain).x.tobytes()


def test_a_low_level_callable_brings_its_data(library: ctypes.CDLL) -> None:
    library.squares.restype = ctypes.c_double
    library.squares.argtypes = (ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p)
    shift = ctypes.c_double(0.25)
    fun = LowLevelCallable(library.squares, ctypes.cast(ctypes.pointer(shift), ctypes.c_void_p))
    assert np.abs(run(fun).x - 0.25).max() < 0.05


def test_a_cffi_pointer(library: ctypes.CDLL) -> None:
    cffi = pytest.importorskip("cffi", reason="cffi is not installed")
    ffi = cffi.FFI()
    address = ctypes.cast(library.squares, ctypes.c_void_p).value
    pointer = ffi.cast("double (*)(int, const double *, void *)", address)
    assert run(pointer).x.tobytes() == run(plain).x.tobytes()


def test_single_precision_is_refused_clearly(library: ctypes.CDLL) -> None:
    with pytest.raises(pc.EvaluationError, match="give x0 in double precision"):
        pc.minimize(library.squares, np.ones(3, np.float32), method="poem", budget=20, on_failure="raise")


def test_a_jitted_function_is_called_as_it_is() -> None:
    numba = pytest.importorskip("numba", reason="numba is not installed")
    assert run(numba.njit(lambda x: np.sum(x * x))).fun < 1e-3
