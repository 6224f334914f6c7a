"""Exceptions and values that are hard to put into words: each is one failed call, and the run goes on."""

from __future__ import annotations

import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from runs import P, bits, run

import poem_cma as pc
from poem_cma.store import View


class MuteError(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError("no text")


class Shy:
    """A value that has no number and no representation."""

    def __float__(self) -> float:
        raise ArithmeticError("not today")

    def __repr__(self) -> str:
        raise ArithmeticError("not tomorrow")


class LeavingError(Exception):
    """Whose text is looked for outside of this process."""

    def __str__(self) -> str:
        sys.exit("no text")

    def __reduce__(self) -> Any:
        sys.exit("no bytes")


class Leaving:
    """A value that ends whoever looks at it."""

    def __float__(self) -> float:
        sys.exit("no number")

    def __repr__(self) -> str:
        raise GeneratorExit


class Own(float):
    """A kind of float that does not like to be one."""

    def __float__(self) -> float:
        raise ArithmeticError("not ever")


def raises(error: Exception) -> Any:
    raise error


ODD = {
    "surrogate": (lambda: raises(RuntimeError("caf\udce9")), r"fun raised RuntimeError: caf\udce9"),
    "mute": (lambda: raises(MuteError()), "fun raised MuteError (whose text cannot be had: its __str__ raised Zero"),
    "leaving": (
        lambda: raises(LeavingError()),
        "fun raised LeavingError (whose text cannot be had: its __str__ raised SystemExit)",
    ),
    "leaving value": (
        lambda: Leaving(),
        "fun must return a number, but returned a value of type Leaving (SystemExit: no number)",
    ),
    "huge integer": (lambda: 10**400, "fun must return a number, but returned 1000000000"),
    "huger integer": (lambda: -(10**5000), "fun must return a number, but returned a value of type int"),
    "masked": (
        lambda: np.ma.masked,
        "fun must return a number, but returned an array of shape () (ValueError: it is m",
    ),
    "shy": (lambda: Shy(), "fun must return a number, but returned a value of type Shy (ArithmeticError: not today)"),
}


@pytest.mark.parametrize("place", ["alone", "store"])
def test_a_kind_of_float_is_its_number(tmp_path: pathlib.Path, place: str) -> None:
    store = {"store": tmp_path / "run.db"} if place == "store" else {}
    assert bits(run(lambda x, i: Own(P.fun(x, i)), **store)) == bits(run())


def odd(what: Any) -> Any:
    """P.fun, but for one sample in five."""

    def fun(x: np.ndarray, i: int) -> Any:
        return what() if i % 5 == 2 else P.fun(x, i)

    return fun


def plainly_failing(x: np.ndarray, i: int) -> float:
    return float("nan") if i % 5 == 2 else P.fun(x, i)


@pytest.mark.parametrize("place", ["alone", "store", "workers"])
@pytest.mark.parametrize("kind", ODD)
def test_one_odd_call_is_a_failure_with_a_reason_and_no_more(tmp_path: pathlib.Path, kind: str, place: str) -> None:
    """The run has the bits of one in which the same calls return NaN."""
    what, reason = ODD[kind]
    store = {"store": tmp_path / "run.db"} if place != "alone" else {}
    with ThreadPoolExecutor(2) as threads:
        workers = {"workers": pc.Workers(threads, retries=0)} if place == "workers" else {}
        result = run(odd(what), **store, **workers)
    plain = run(plainly_failing)
    assert result.failures == plain.failures > 0
    assert result.x.tobytes() == plain.x.tobytes()
    assert reason in result.message
    result.message.encode()  # a file can hold it
    if store:
        with View(tmp_path / "run.db") as view:
            assert all(reason in text for *_, text in view.failures())
        assert bits(run(odd(what), **store)) == bits(result)


@pytest.mark.parametrize("vectorized", [True, "rows"])
def test_an_integer_that_no_float_can_hold_fails_its_row_alone(vectorized: Any) -> None:
    def rows(X: np.ndarray, i: Any) -> list[Any]:
        values = P.rows(X, i).tolist()
        return [10**400, *values[1:]] if np.ravel(i)[0] % 5 == 2 else values

    def nan_rows(X: np.ndarray, i: Any) -> list[float]:
        return [float("nan") if isinstance(v, int) else v for v in rows(X, i)]

    result, plain = (run(fun, vectorized=vectorized) for fun in (rows, nan_rows))
    assert result.failures == plain.failures > 0
    assert result.x.tobytes() == plain.x.tobytes()


@pytest.mark.parametrize("vectorized", [True, "rows"])
def test_a_masked_value_fails_its_row_alone(vectorized: Any) -> None:
    def rows(X: np.ndarray, i: Any) -> Any:
        values = P.rows(X, i)
        masked: Any = np.ma.masked_array(values, mask=(np.arange(len(values)) == 0) & (np.ravel(i)[0] % 5 == 2))
        return masked

    result, plain = (run(fun, vectorized=vectorized) for fun in (rows, lambda X, i: rows(X, i).filled(np.nan)))
    assert result.failures == plain.failures > 0
    assert result.x.tobytes() == plain.x.tobytes()


def test_an_exception_text_of_fifty_megabytes_is_kept_in_short(tmp_path: pathlib.Path) -> None:
    """Its beginning and its end are kept, everywhere."""
    calls = iter(range(60))

    def fun(x: np.ndarray, i: int) -> float:
        if next(calls) == 10:
            raise RuntimeError("begins here" + "x" * 50_000_000 + "ends here")
        return P.fun(x, i)

    result = run(fun, store=tmp_path / "run.db", budget=60)
    assert len(result.message) < 10_000
    assert "RuntimeError: begins here" in result.message
    assert "ends here" in result.message
    assert (tmp_path / "run.db").stat().st_size < 200_000


def test_on_failure_raise_chains_an_exception_without_a_text() -> None:
    with pytest.raises(pc.EvaluationError, match=r"fun raised MuteError \(whose text cannot be had") as caught:
        run(odd(lambda: raises(MuteError())), on_failure="raise")
    assert isinstance(caught.value.__cause__, MuteError)


def test_the_first_exceptions_are_raised_even_if_they_have_no_text() -> None:
    with pytest.raises(LeavingError):
        run(lambda x, i: raises(LeavingError()))


def test_ctrl_c_is_heard_while_an_exception_is_put_into_words() -> None:
    class SlowError(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    assert "interrupted" in run(odd(lambda: raises(SlowError()))).message
