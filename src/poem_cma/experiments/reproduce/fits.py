"""Exponents of Table 1: slopes on log-log axes with bootstrap intervals over seeds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from poem_cma.experiments.campaign import cells
from poem_cma.experiments.reproduce import table1
from poem_cma.experiments.reproduce.scale import Scale

__all__ = ["THEORY", "Fit", "Measured", "fits", "measured", "slope"]

RESAMPLES = 2000
#: The same epsilon for all methods where that is possible, so that their calls can be compared.
PREFERRED = (0.25, 0.5, 0.1)
#: Exponents of the paper's Table 1: in d at fixed structure; in the structure's dimension at fixed d.
THEORY = {"poem-cma": (0.0, 1.0), "poem": (1.0, 0.0), "tpbco": (1.0, 0.0), "tpge": (1.0, 0.0), "rsnso": (2.0, 0.0)}


@dataclass(frozen=True)
class Measured:
    """Calls of one method, (values of the dimension, seeds), infinite where epsilon was not reached."""

    method: str
    against: str  # "d" or "k"
    dimensions: tuple[int, ...]
    fraction: float
    calls: Any
    normalised: Any  # calls times epsilon^2 / (L D)^2: Table 1 without its common factor
    d_star_kappa: Any

    @property
    def reached(self) -> float:
        """The share of runs that reached epsilon."""
        return float(np.isfinite(self.calls).mean())


@dataclass(frozen=True)
class Fit:
    """An exponent with its 95% interval, over the dimensions at which the median run reached epsilon."""

    method: str
    against: str
    fraction: float
    theory: float
    exponent: float
    low: float
    high: float
    dimensions: tuple[int, ...]
    reached: float

    @property
    def known(self) -> bool:
        """Whether there were enough points."""
        return bool(np.isfinite(self.exponent))


def measured(folder: Path, scale: Scale) -> list[Measured] | None:
    """The calls of every method against d and against k, at every epsilon; None if a cell is missing."""
    table: dict[tuple[str, int, int, int], dict[str, Any]] = {}
    for cell in table1.plan(scale):
        s = cell.settings
        if (arrays := cells.load(folder, cell)) is None:
            return None
        table[s["method"], s["d"], s["k"], s["seed"]] = arrays
    grids = {
        "d": [(d, table1.FIXED_K) for d in scale.ambient],
        "k": [(table1.FIXED_D, k) for k in scale.intrinsic],
    }
    result = []
    for method in table1.METHODS:
        for against, grid in grids.items():
            for j, fraction in enumerate(table1.FRACTIONS):
                arrays_of = [[table[method, d, k, s] for s in range(scale.table_seeds)] for d, k in grid]
                calls = np.array([[float(a["calls"][j]) for a in row] for row in arrays_of])
                unit = np.array(
                    [[(float(a["epsilon"][j]) / (2.0 * table1.LIPSCHITZ)) ** 2 for a in row] for row in arrays_of]
                )
                size = np.array([[float(a["d_star"] * a["kappa"]) for a in row] for row in arrays_of])
                dimensions = tuple(d if against == "d" else k for d, k in grid)
                result.append(Measured(method, against, dimensions, fraction, calls, calls * unit, size))
    return result


def fits(data: list[Measured]) -> list[Fit]:
    """For each method and kind of dimension the fit at the first epsilon that the median run reached three times."""
    result = []
    for method in table1.METHODS:
        for j, against in enumerate(("d", "k")):
            of_method = [m for m in data if (m.method, m.against) == (method, against)]
            usable = [m for m in of_method if len(_finite(m)) >= 3] or of_method
            chosen = min(usable, key=lambda m: PREFERRED.index(m.fraction))
            result.append(_fit(chosen, THEORY[method][j]))
    return result


def _finite(m: Measured) -> list[int]:
    return [i for i in range(len(m.dimensions)) if np.isfinite(np.median(m.normalised[i]))]


def _fit(m: Measured, theory: float) -> Fit:
    rows = _finite(m)
    dimensions = tuple(m.dimensions[i] for i in rows)
    exponent = low = high = float("nan")
    if len(rows) >= 3:
        values = m.normalised[rows]
        exponent = slope(np.array(dimensions), np.median(values, axis=1))
        rng = np.random.default_rng(7)
        picks = rng.integers(values.shape[1], size=(RESAMPLES, *values.shape))
        medians = np.median(np.take_along_axis(values[None], picks, axis=2), axis=2)
        slopes = [slope(np.array(dimensions), row) for row in medians if np.isfinite(row).all()]
        low, high = (float(q) for q in np.quantile(slopes, [0.025, 0.975]))
    return Fit(m.method, m.against, m.fraction, theory, exponent, low, high, dimensions, m.reached)


def slope(x: Any, y: Any) -> float:
    """The exponent b of y ~ x^b by least squares on log-log axes."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
