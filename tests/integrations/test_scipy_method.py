"""`scipy.optimize.minimize(method=poem_cma.scipy_method)`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import poem_cma as pc


def distance(x: np.ndarray) -> float:
    return float(np.abs(x - 2.0).sum())


OPTIONS: dict[str, Any] = {"method": "poem", "seed": 0, "maxfev": 4000}


def solve(fun: Any = distance, **settings: Any) -> scipy.optimize.OptimizeResult:
    options = OPTIONS | settings.pop("options", {})
    return scipy.optimize.minimize(fun, np.zeros(3), method=pc.scipy_method, options=options, **settings)


@pytest.mark.parametrize(
    "bounds", [[(0, 1), (None, 1.5), (-1, None)], scipy.optimize.Bounds([0, -np.inf, -1], [1, 1.5, np.inf])]
)
def test_bounds(bounds: Any) -> None:
    result = solve(bounds=bounds)
    assert isinstance(result, scipy.optimize.OptimizeResult)
    np.testing.assert_allclose(result.x, [1.0, 1.5, 2.0], atol=0.1)
    assert result.success
    assert result.nfev == 4000
    assert result.message == "the budget of 4000 calls is spent"
    assert "smoothing" in result.history


def test_args_and_options_and_callback() -> None:
    seen = []

    def fun(x: np.ndarray, xi: float, a: float, b: float) -> float:
        return float(np.abs(x - a).sum() + b * xi * x[0])

    result = solve(
        fun,
        args=(1.0, 0.5),
        options={"sample": lambda rng: rng.normal(), "budget": 600, "maxfev": None},
        callback=lambda intermediate_result: seen.append(intermediate_result.nit),
    )
    assert result.nfev == 600
    assert seen[-1] == result.nit
    assert np.abs(result.x - 1.0).max() < 0.6


def test_what_cannot_be_honoured_is_not_ignored() -> None:
    with pytest.raises(ValueError, match="not constraints="):
        solve(constraints={"type": "eq", "fun": lambda x: x[0]})
    with pytest.raises(ValueError, match="not both"):
        solve(bounds=[(0, 1)] * 3, options={"domain": pc.Ball(1.0)})
    with pytest.warns(RuntimeWarning, match="values only: jac ignored"):
        solve(jac=lambda x: np.sign(x - 2.0))
    with pytest.warns(scipy.optimize.OptimizeWarning, match="Unknown solver options: ftol"):
        solve(options={"ftol": 1e-3})


def test_scipys_options_have_their_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    result = solve(options={"maxiter": 30, "disp": True})
    assert result.nit == 30
    assert result.message == "the largest number of steps, maxiter=30, is reached"
    assert capsys.readouterr().out.splitlines()[0] == result.message
    assert solve(options={"maxfev": None, "maxfun": 200}).nfev == 200


def test_a_run_that_maxiter_ends_is_judged() -> None:
    result = scipy.optimize.minimize(
        lambda x: float(np.abs(x).sum()), np.zeros(3), method=pc.scipy_method,
        options={"maxiter": 3, "method": "poem", "seed": 0},
    )  # fmt: skip
    assert not result.success
    assert "x0" in result.message.split(";")[0]
    assert "maxiter=3, is reached" in result.message


@pytest.mark.parametrize(
    ("options", "says"),
    [({"maxiter": 0}, "maxiter must be"), ({"maxiter": "9"}, "maxiter must be"), ({"xtol": "a"}, "tol must be")],
)
def test_options_of_the_wrong_kind_get_one_clear_line(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        solve(options=options)


def test_tol_ends_the_run_when_the_point_has_settled() -> None:
    loose, tight = (solve(tol=tol, options={"maxfev": 20_000}) for tol in (0.3, 0.02))
    assert "tol=0.3" in loose.message
    assert loose.nfev < tight.nfev < 20_000
    assert np.abs(tight.x - 2.0).max() < 0.1
