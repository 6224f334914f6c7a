"""The package as a whole: what importing it brings in, what it offers, and its pictures."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import pytest
from problems import hinge

import poem_cma as pc

OPTIONAL = [
    "matplotlib", "rich", "typer", "sklearn", "torch", "pandas", "scipy.optimize", "scipy.linalg", "sqlite3",
    "multiprocessing", "distributed", "ray", "cloudpickle", "pyarrow",
]  # fmt: skip


def test_importing_it_imports_nothing_optional() -> None:
    code = f"import sys, poem_cma; print([m for m in {OPTIONAL} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_completion_shows_the_public_names_and_nothing_else() -> None:
    """What follows `pc.` and a tab; all of it is there without another import."""
    code = "import poem_cma as pc; print(*[name for name in dir(pc) if getattr(pc, name) is not None])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "Ball", "Box", "EvaluationError", "Integer", "L1Ball", "Method", "Optimizer", "Probe", "Real", "Result",
        "Simplex", "Spectrum", "Workers", "__version__", "datasets", "effective_dimension", "gradient_spectrum",
        "integrations", "methods", "minimize", "plots", "problems", "replicate", "scipy_method", "theory",
    ]  # fmt: skip


def test_a_missing_extra_says_what_to_install() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
import numpy as np, poem_cma as pc
result = pc.minimize(lambda x: float(x @ x), np.ones(2), budget=20)
result.plot()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'pip install "poem-cma[plot]"' in done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("method", ["poem", "poem-cma"])
def test_plot_has_four_panels(method: str, tmp_path: pathlib.Path) -> None:
    P = hinge(d=10)
    result = pc.minimize(P.fun, np.zeros(10), sample=P.sample, domain=pc.Ball(1.0), method=method, budget=2000, seed=0)
    figure = result.plot()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:3] == ["Value", "Distance and step size", "Smoothing"]
    assert titles[3].startswith("Spectrum: d* =" if method == "poem-cma" else "Gradient estimates")
    assert all(axes.lines or axes.patches for axes in figure.axes)
    figure.savefig(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_plot_of_a_run_without_steps_or_slopes(tmp_path: pathlib.Path) -> None:
    constant = pc.minimize(lambda x: 1.0, np.zeros(3), budget=40, seed=0)
    constant.plot().savefig(tmp_path / "constant.png")
    pc.Optimizer(np.zeros(3), budget=40).result().plot().savefig(tmp_path / "nothing.png")
    assert (tmp_path / "nothing.png").exists()


def test_history_names_its_columns() -> None:
    history = pc.minimize(lambda x: float(x @ x), np.ones(2), budget=40, seed=0, method="poem").history
    assert list(history) == [
        "nfev", "fun", "step_size", "smoothing", "distance", "gradient_norm", "effective_dimension",
    ]  # fmt: skip
    assert len({len(column) for column in history.values()}) == 1
    with pytest.raises(KeyError, match="no column 'loss'; it has nfev, fun"):
        history["loss"]
