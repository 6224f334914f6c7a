"""Objectives that are compiled functions: a pointer is called with the address of the point, and nothing is copied.

A numba-jitted function needs no help: it is called like any other. A function of C is one of

* a function of a `ctypes` library, or a `ctypes` prototype instance,
* a `cffi` function pointer,
* a `scipy.LowLevelCallable`, with its user data,

of the type ``double f(int n, const double *x, void *data)``, as SciPy's integrators have it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from poem_cma._types import Array

__all__ = ["as_callable"]

_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def as_callable(fun: Any) -> Any:
    """A function of C as a function of a point; anything else as it is."""
    address, data = _address(fun)
    if address is None:
        return fun
    call = _PROTOTYPE(address)

    def compiled(x: Array) -> float:
        if x.dtype != np.float64:
            raise TypeError(f"a function of C takes double, but the points are {x.dtype}: give x0 in double precision")
        value: float = call(x.size, x.ctypes.data, data)
        return value

    compiled.__name__ = getattr(fun, "__name__", "compiled")
    return compiled


def _address(fun: Any) -> tuple[int | None, int | None]:
    """Where the function lies, and its user data; None where it is no function of C."""
    if isinstance(fun, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return ctypes.cast(fun, ctypes.c_void_p).value, None
    if type(fun).__module__ == "_cffi_backend":
        import cffi

        ffi = cffi.FFI()
        return int(ffi.cast("intptr_t", fun)), None
    if type(fun).__name__ == "LowLevelCallable" and isinstance(fun, tuple):
        return _of_low_level(fun)
    return None, None


def _of_low_level(fun: Any) -> tuple[int, int | None]:
    function, data = fun.function, fun.user_data
    if isinstance(data, ctypes.c_void_p):
        data = data.value
    address, _ = _address(function)
    if address is None:
        raise TypeError(f"of a LowLevelCallable, ctypes and cffi functions can be called, not {function!r}")
    return address, data
