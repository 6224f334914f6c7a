"""The story of a run in ten sentences, each made from its results: what was estimated, who is ahead, and what follows.

A sentence of a part that was not run is left out. No sentence says anything that the numbers of the run do not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from poem_cma.experiments.reproduce.claims import DOES_NOT, HOLDS, IN_PART, NOT_RUN, UNDECIDED, Claim, count
from poem_cma.experiments.reproduce.claims_figure2 import ahead
from poem_cma.experiments.reproduce.fig1 import PAPER
from poem_cma.experiments.reproduce.fits import Fit
from poem_cma.experiments.reproduce.results import Results
from poem_cma.experiments.reproduce.scale import Scale
from poem_cma.experiments.reproduce.summary2 import SetSummary
from poem_cma.experiments.reproduce.synthetic import TRUE_DIMENSION

__all__ = ["sentences"]

#: The verdicts as verbs, of one claim and of several.
_VERBS = {
    HOLDS: ("holds", "hold"), IN_PART: ("holds in part", "hold in part"), DOES_NOT: ("does not hold", "do not hold"),
    UNDECIDED: ("is not decided", "are not decided"), NOT_RUN: ("was not run", "were not run"),
}  # fmt: skip
#: A factor above this is called growth.
GROWS = 1.5


def sentences(results: Results, claims: list[Claim]) -> list[str]:
    """All that can be said."""
    scale = results.request.scale
    told: list[str] = []
    if results.fig1 is not None:
        told += _dimension(results.fig1)
    if results.sets:
        told += _spectra(results.sets)
        told += _runs(results.sets, scale)
    if results.fits is not None:
        told.append(_exponents(results.fits))
    return [*told, _conclusion(results.sets, scale, claims)]


def _dimension(found: dict[str, Any]) -> Iterator[str]:
    near, d = found["families"][found["nearest"]], found["d"]
    plain, filtered = (float(np.median(near[name][-1])) for name in ("theory", "filtered"))
    paper = f" (the paper: {PAPER['theory']:.0f} and {PAPER['filtered']:.0f})" if d[-1] == 500 else ""
    yield (
        f"At d = {d[-1]} the estimated effective dimension d* is {plain:.0f} without a filter and {filtered:.0f} with "
        f"Tol 25%{paper}, on the reading of the synthetic set that is nearest to the paper's numbers."
    )
    growth = filtered / float(np.median(near["filtered"][0]))
    change = f"grows {growth:.1f}-fold, although" if growth > GROWS else f"changes by a factor of {growth:.2g}, and"
    yield (
        f"From d = {d[0]} to {d[-1]} the filtered d* {change} the structure of the set keeps its {TRUE_DIMENSION} "
        "dimensions."
    )


def _spectra(sets: list[SetSummary]) -> Iterator[str]:
    means = [float(s.spectrum["after"].mean()) for s in sets]
    own = not any(s.stands_in for s in sets)
    paper = f" (the paper: {_list(f'{s.paper.d_star:g}' for s in sets)})" if own else ""
    yield f"The mean of d* over seeds is {_on(sets, (f'{v:.1f}' for v in means))}{paper}."
    moments = [s.optimum["moment"] for s in sets]
    limits = [(int(s.optimum["d"]) + 2.0) / (1.0 + 2.0 * m[-1] / m.sum()) for s, m in zip(sets, moments, strict=True)]
    gradients = [m.sum() / m[-1] for m in moments]
    yield (
        f"With many more pairs and no filter the estimate would approach {_list(f'{v:.0f}' for v in limits)}, while "
        f"the gradients themselves have an effective dimension of {_list(f'{v:.1f}' for v in gradients)}."
    )


def _runs(sets: list[SetSummary], scale: Scale) -> Iterator[str]:
    T, far = scale.iterations, scale.iterations * scale.beyond
    uncounted, counted = ([_share(s, T, all_calls) for s in sets] for all_calls in (False, True))
    named = (f"{share} ({s.name})" for s, share in zip(sets, uncounted, strict=True))
    yield (
        f"POEM-CMA is ahead of POEM at {_list(named)} of the recorded moments up to {T:,} iterations when its "
        f"preliminary evaluations are left out, and at {_list(counted)} when they are counted."
    )
    for iterations in (T, far):
        ends = ([f"{_median(s, method, iterations):.3f}" for method in ("poem-cma", "poem")] for s in sets)
        yield (
            f"After {iterations:,} iterations the median f of POEM-CMA and of POEM is "
            f"{'; '.join(f'{_list(pair)} on {s.name}' for s, pair in zip(sets, ends, strict=True))}."
        )
    floors = (float(np.median([float(r["dual"]) for r in s.restricted])) for s in sets)
    least = (float(s.optimum["primal"]) for s in sets)
    yield (
        "POEM-CMA cannot leave the subspace that it chooses at x0: the least f there is "
        f"{_on(sets, (f'{v:.3f}' for v in floors))}, and over the whole ball it is {_list(f'{v:.3f}' for v in least)}."
    )


def _exponents(fits: list[Fit]) -> str:
    ours, theirs = (next(f for f in fits if (f.method, f.against) == (method, "d")) for method in ("poem-cma", "poem"))
    if not (ours.known and theirs.known):
        return "Too few runs reached the accuracy of Table 1 for an exponent of POEM-CMA and of POEM."
    grown, other = (f"d^{f.exponent:.2f} (95%: {f.low:.2f} to {f.high:.2f})" for f in (ours, theirs))
    return (
        f"The evaluations to a given accuracy grow like {grown} for POEM-CMA, where the paper's bound is "
        f"d^{ours.theory:g}, and like {other} for POEM, where it is d^{theirs.theory:g}."
    )


def _conclusion(sets: list[SetSummary] | None, scale: Scale, claims: list[Claim]) -> str:
    verdicts = ", ".join(f"{number} {_VERBS[verdict][number > 1]}" for verdict, number in count(claims).items())
    said = f"Of the paper's {len(claims)} claims that numbers can decide, {verdicts}"
    if not sets:
        return f"{said}."
    far = scale.iterations * scale.beyond
    better = [s for s in sets if _median(s, "poem-cma", far) < _median(s, "poem", far)]
    where = {0: "no set", len(sets): "every set"}.get(len(better), _list(s.name for s in better))
    return f"{said}, and at the end of the long runs POEM-CMA is ahead of POEM on {where}."


def _median(s: SetSummary, method: str, iterations: int) -> float:
    """The median of f at the output, as the paper plots it; infinite without a curve of that length."""
    curve = s.curve(method, iterations)
    return float(np.median(curve.final(iterations, "output_uncounted"))) if curve is not None else np.inf


def _share(s: SetSummary, T: int, counted: bool) -> str:
    return f"{float(ahead(s, 'poem', T, counted)[0].mean()):.0%}"


def _on(sets: list[SetSummary], values: Iterable[str]) -> str:
    """A value for each set: "1 on mushrooms and 2 on w8a"."""
    return _list(f"{value} on {s.name}" for s, value in zip(sets, values, strict=True))


def _list(values: Iterable[str]) -> str:
    return " and ".join(values)
