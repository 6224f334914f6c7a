"""The numbers behind the pictures, as tables of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from poem_cma.experiments.campaign.table import Table
from poem_cma.experiments.reproduce.fig2 import METHODS
from poem_cma.experiments.reproduce.fits import Fit, Measured
from poem_cma.experiments.reproduce.scale import Scale
from poem_cma.experiments.reproduce.summary2 import SetSummary

__all__ = ["exponents", "readings", "set_tables", "spectra"]


def readings(found: dict[str, Any]) -> Table:
    """Figure 1's candidates at the largest dimension."""
    columns = {
        "few": "M = d", "theory": "M = d ln d", "filtered": "Tol 25%", "rank": "directions kept",
        "population": "population", "gradients": "ten gradients", "gradients_exact": "gradients' own",
    }  # fmt: skip
    rows = [["the paper", "", "72", "28", "", "", "", ""]]
    for label, curves in found["families"].items():
        marked = f"{label} (nearest)" if label == found["nearest"] else label
        rows.append([marked, *(f"{np.median(curves[name][-1]):.1f}" for name in columns)])
    return Table(f"d* at d = {found['d'][-1]} for every reading of the set", ["features; x0", *columns.values()], rows)


def spectra(sets: list[SetSummary]) -> Table:
    """Algorithm 2 on the real sets."""
    header = [
        "set",
        "Tol",
        "M",
        "ξ",
        "d* before",
        "d* after: mean",
        "sd",
        "least",
        "most",
        "κ",
        "directions kept",
        "the paper",
    ]
    rows = []
    for s in sets:
        for kind, found in (("shared", s.spectrum), ("independent", s.spectrum_independent)):
            after = found["after"]
            paper = "" if s.stands_in else f"d* {s.paper.d_star:g}, κ {s.paper.kappa:g}"
            numbers = [found["before"].mean(), after.mean(), after.std(), after.min(), after.max()]
            rows.append([
                s.title, f"{s.paper.tol:.0%}", f"{int(found['samples'])}", kind, *(f"{v:.1f}" for v in numbers),
                f"{found['kappa'].mean():.2f}", f"{found['rank'].mean():.0f}", paper,
            ])  # fmt: skip
    return Table("Algorithm 2 at x0 = 0", header, rows)


def set_tables(s: SetSummary, scale: Scale) -> Iterator[Table]:
    """The certificate, the values at the horizons, and the variants of one set."""
    o = s.optimum
    best, random = ([float(r[key]) for r in s.restricted] for key in ("dual", "random_dual"))
    yield Table(
        f"{s.title}: the least value",
        ["n", "d", "L", "f(x0)", "f* primal", "f* dual", "difference", "least f in S", "in a random one"],
        [[
            f"{int(o['n'])}", f"{int(o['d'])}", f"{float(o['lipschitz']):.3f}", f"{float(o['start']):.4f}",
            f"{float(o['primal']):.7f}", f"{float(o['dual']):.7f}", f"{float(o['primal'] - o['dual']):.1e}",
            _value(np.array(best)), _value(np.array(random)),
        ]],
    )  # fmt: skip
    T, far = scale.iterations, scale.iterations * scale.beyond
    header = ["method", f"T = {T:,}, as the paper plots", f"T = {T:,}, all calls counted", f"last iterate, T = {T:,}"]
    rows = []
    for method, label in METHODS.items():
        near, long = s.curve(method, T), s.curve(method, far)
        if near is None:
            continue
        points = [near.final(T, p) for p in ("output_uncounted", "output", "last_uncounted")]
        rows.append([label, *map(_value, points), _value(long.final(far)) if long is not None else ""])
    yield Table(f"{s.title}: f, median [quartiles]", [*header, f"T = {far:,}, all calls counted"], rows)
    variants = [
        [
            METHODS[c.method], "" if c.initial_distance is None else f"{c.initial_distance:g}",
            "shared" if c.paired else "independent", f"{c.iterations:,}", f"{len(c.output)}",
            _value(c.final(c.iterations)),
        ]
        for c in s.curves
    ]  # fmt: skip
    yield Table(
        f"{s.title}: every curve, f at its end, all calls counted",
        ["method", "r_ε", "ξ", "iterations", "seeds", "f, median [quartiles]"], variants,
    )  # fmt: skip


def exponents(measured: list[Measured], fits: list[Fit]) -> Iterator[Table]:
    """Table 1 as fitted, and the calls it was fitted to."""
    rows = [
        [
            METHODS[f.method], "d" if f.against == "d" else "structure", f"{f.theory:g}",
            f"{f.exponent:.2f} [{f.low:.2f}, {f.high:.2f}]" if f.known else "too few runs arrived",
            f"{f.fraction:.0%}", ", ".join(map(str, f.dimensions)), f"{f.reached:.0%}",
        ]
        for f in fits
    ]  # fmt: skip
    header = ["method", "against", "theory", "measured [95%]", "ε / (f(x0) − f*)", "fitted at", "runs that arrived"]
    yield Table("Exponents of calls × ε² / (L D)²", header, rows)
    for against, what in (("d", "ambient dimension"), ("k", "dimension of the structure")):
        chosen = [m for m in measured if m.against == against]
        dimensions = chosen[0].dimensions
        yield Table(
            f"Calls to an ε-solution, median over seeds, against the {what}",
            ["method", "ε / (f(x0) − f*)", *map(str, dimensions)],
            [
                [METHODS[m.method], f"{m.fraction:.0%}", *(_calls(v) for v in np.median(m.calls, axis=1))]
                for m in chosen
            ],
        )


def _calls(value: float) -> str:
    return f"{value:,.0f}" if np.isfinite(value) else "not reached"


def _value(values: Any) -> str:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{middle:.4f} [{low:.4f}, {high:.4f}]"
