"""Claims about complexity (Table 1) and about the lemmas behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from poem_cma.experiments.reproduce.claims import DOES_NOT, HOLDS, UNDECIDED, Claim, in_how_many
from poem_cma.experiments.reproduce.fig2 import METHODS
from poem_cma.experiments.reproduce.fits import THEORY, Fit, Measured, slope
from poem_cma.experiments.reproduce.table1 import FIXED_D, FIXED_K
from poem_cma.paper.theory import sample_size

__all__ = ["lemmas", "rows"]


def rows(measured: list[Measured] | None, fits: list[Fit] | None) -> Iterator[Claim]:
    """Exponents, the advantage on a low-rank problem, and whether epsilon is reached at all."""
    by_key = {(f.method, f.against): f for f in fits or ()}
    for method, exponents in THEORY.items():
        for against, theory in zip(("d", "k"), exponents, strict=True):
            fixed = f"structure of dimension {FIXED_K} fixed" if against == "d" else f"d = {FIXED_D} fixed"
            what = "d" if against == "d" else "the effective dimension"
            claim = Claim("Table 1", f"{METHODS[method]}: exponent of calls in {what} ({fixed})", f"at most {theory:g}")
            # The other methods' bounds do not speak of the effective dimension.
            if against == "d" or method == "poem-cma":
                yield _exponent(claim, by_key.get((method, against)), measured)
    faster = Claim("Abstract", "POEM-CMA needs fewer calls than POEM on a low-rank problem with d* ≪ d", "fewer")
    reaches = Claim("Theorem 1", "POEM-CMA reaches an ε-solution (share of runs)", "with high probability")
    if measured is None:
        yield from (faster, reaches)
        return
    yield _faster(faster, measured)
    yield _reaches(reaches, measured)


def _exponent(claim: Claim, fit: Fit | None, measured: list[Measured] | None) -> Claim:
    if fit is None or measured is None:
        return claim
    at = f"ε = {fit.fraction:.0%} of f(x0) - f*, dimensions {', '.join(map(str, fit.dimensions)) or 'none'}"
    if not fit.known:
        return claim.found("too few runs reached ε", UNDECIDED, f"{fit.reached:.0%} of the runs did, at {at}.")
    # The table gives upper bounds; an interval that reaches far on both sides decides nothing.
    undecided = fit.low <= fit.theory < fit.high - 0.5
    verdict = DOES_NOT if fit.low > fit.theory else UNDECIDED if undecided else HOLDS
    remark = f"At {at}; {fit.reached:.0%} of runs reached it."
    if (fit.method, fit.against) == ("poem-cma", "d"):
        remark += f" Without the preliminary calls the exponent is {_without_preliminary(fit, measured):.2f}."
    return claim.found(f"{fit.exponent:.2f} [{fit.low:.2f}, {fit.high:.2f}]", verdict, remark)


def _without_preliminary(fit: Fit, measured: list[Measured]) -> float:
    m = _at(measured, fit.method, fit.against, fit.fraction)
    rows = [m.dimensions.index(d) for d in fit.dimensions]
    calls = np.median(m.calls[rows], axis=1) - np.array([2 * sample_size(d) for d in fit.dimensions])
    return slope(np.array(fit.dimensions), calls)  # epsilon does not depend on d


def _at(measured: list[Measured], method: str, against: str, fraction: float) -> Measured:
    return next(m for m in measured if (m.method, m.against, m.fraction) == (method, against, fraction))


def _faster(claim: Claim, measured: list[Measured]) -> Claim:
    fraction = 0.25
    ours, theirs = (_at(measured, method, "d", fraction) for method in ("poem-cma", "poem"))
    a, b = np.median(ours.calls, axis=1), np.median(theirs.calls, axis=1)
    preliminary = np.array([2 * sample_size(d) for d in ours.dimensions])
    with np.errstate(invalid="ignore"):
        counted, uncounted = a / b, (a - preliminary) / b
    d = ours.dimensions
    return claim.found(
        f"{counted[-1]:.1f} times POEM's at d = {d[-1]}, {uncounted[-1]:.1f} times without the preliminary calls",
        in_how_many([*(counted < 1.0), *(uncounted < 1.0)]),
        f"d = {d[0]} to {d[-1]}, structure of dimension {FIXED_K}, ε = {fraction:.0%}: all calls counted "
        f"{_series(counted)}; without the preliminary ones {_series(uncounted)} times POEM's.",
    )


def _series(values: Any) -> str:
    return ", ".join(f"{v:.2g}" if np.isfinite(v) else "never" for v in values)


def _reaches(claim: Claim, measured: list[Measured]) -> Claim:
    """Over the problems that every run of POEM solved within the same number of calls."""
    ours, theirs = (_at(measured, method, "k", 0.25) for method in ("poem-cma", "poem"))
    shares = {
        k: float(np.isfinite(calls).mean())
        for k, calls, other in zip(ours.dimensions, ours.calls, theirs.calls, strict=True)
        if np.isfinite(other).all()
    }
    if not shares:
        return claim.found("POEM did not reach it either", UNDECIDED)
    total = float(np.mean(list(shares.values())))
    by_k = ", ".join(f"{k}: {share:.0%}" for k, share in shares.items())
    return claim.found(
        f"{total:.0%}, where POEM always does", HOLDS if total >= 0.95 else DOES_NOT,
        f"ε = 25% of f(x0) - f*, d = {FIXED_D}. By the structure's dimension: {by_k}.",
    )  # fmt: skip


def lemmas(found: Mapping[str, Mapping[str, Any]] | None) -> Iterator[Claim]:
    """Lemmas 3 and 7 on three spectra."""
    moments = Claim("Lemma 3", "E[v v'] = Σ/tr Σ up to O(1/d*): largest relative error", "small in high dimension")
    bound = Claim("Lemma 7", "E|g|² ≤ 8 d* κ L²", "at most 1 times the bound")
    if found is None:
        yield from (moments, bound)
        return
    errors = {n: float(np.abs(a["approximate"] / a["exact"] - 1.0).max()) for n, a in found.items()}
    yield moments.found(
        "; ".join(f"{name}: {error:.0%}" for name, error in errors.items()),
        in_how_many(e <= 0.05 for e in errors.values()), "Against the exact moments; 5% counts as small.",
    )  # fmt: skip
    ratios = {n: float(a["second_moment"] / a["bound"]) for n, a in found.items()}
    yield bound.found(
        "; ".join(f"{name}: {ratio:.2f}" for name, ratio in ratios.items()),
        in_how_many(r <= 1.0 for r in ratios.values()),
        "Linear F with L = 1, the gradient along the worst axis.",
    )  # fmt: skip
