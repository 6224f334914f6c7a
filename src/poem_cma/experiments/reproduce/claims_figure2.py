"""Claims about convergence on the real sets: section 6.3, the abstract, and Theorem 1's consequences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from poem_cma.experiments.reproduce.claims import DOES_NOT, HOLDS, IN_PART, Claim, in_how_many
from poem_cma.experiments.reproduce.fig2 import DISTANCES, METHODS
from poem_cma.experiments.reproduce.scale import Scale
from poem_cma.experiments.reproduce.summary2 import Curve, SetSummary
from poem_cma.paper.theory import log_plus

__all__ = ["ahead", "rows"]


def rows(sets: list[SetSummary] | None, scale: Scale) -> Iterator[Claim]:
    """All of them; sets that stand in for the paper's are named in the answers."""
    T, far = scale.iterations, scale.iterations * scale.beyond
    for baseline in ("poem", "tpbco"):
        name = METHODS[baseline]
        for counted in (False, True):
            axis = "all calls counted" if counted else "per iteration, as the paper plots"
            claim = Claim("6.3, Figure 2", f"POEM-CMA is ahead of {name} all the way to T = {T:,} ({axis})", "ahead")
            yield claim if sets is None else _trajectory(claim, sets, baseline, T, counted)
    for iterations, words in ((T, f"at T = {T:,}"), (far, f"{scale.beyond} times later, at T = {far:,}")):
        for baseline in ("poem", "tpbco"):
            claim = Claim(
                "6.3; abstract", f"POEM-CMA ends with a better solution than {METHODS[baseline]}, {words}", "better"
            )
            yield claim if sets is None else _final(claim, sets, baseline, iterations, "output_uncounted")
    last = Claim("6.3", f"The same against POEM at the last iterates, at T = {T:,}", "better")
    yield last if sets is None else _final(last, sets, "poem", T, "last_uncounted")
    proportional = Claim("6.3", "Calls are strictly proportional to iterations", "2 t")
    free = Claim(
        "Abstract", "POEM-CMA is parameter-free: f - f* over r_ε from 0.001 to 0.1, worst / best", "log factor"
    )
    contained = Claim("Theorem 1, its proof", "x* - x0 lies in the subspace S", "in S")
    informative = Claim("Abstract", "Sampling concentrates on the most informative directions", "informative")
    rate = Claim("Theorem 1", f"The gap of POEM-CMA falls like T^(-1/2) beyond T = {T:,}", "exponent -0.5")
    if sets is None:
        yield from (proportional, free, contained, informative, rate)
        return
    yield _proportional(proportional, sets, T)
    yield _everywhere(Claim("6.3", "POEM-CMA ends ahead of POEM whatever r_ε and ξ", "consistently"), sets, T)
    yield _parameter_free(free, sets, T)
    yield _contained(contained, sets)
    yield _informative(informative, sets)
    yield _rate(rate, sets, T, far)


def _curves(s: SetSummary, baseline: str, iterations: int) -> tuple[Curve, Curve]:
    ours, theirs = s.curve("poem-cma", iterations), s.curve(baseline, iterations)
    assert ours is not None
    assert theirs is not None
    return ours, theirs


def ahead(s: SetSummary, baseline: str, T: int, counted: bool) -> tuple[Any, list[int]]:
    """At which numbers of calls POEM-CMA is ahead of a baseline, in the median over seeds."""
    ours, theirs = _curves(s, baseline, T)
    calls = [int(c) for c in ours.calls if c <= 2 * T and c in theirs.calls]
    at = np.searchsorted(ours.calls, calls)
    values = (ours.output if counted else ours.output_uncounted)[:, at]
    other = theirs.output[:, np.searchsorted(theirs.calls, calls)]
    found = np.median(values - other, axis=0) < 0.0
    if counted:
        found &= np.array(calls) > ours.preliminary  # before that it has not moved
    return found, calls


def _trajectory(claim: Claim, sets: list[SetSummary], baseline: str, T: int, counted: bool) -> Claim:
    answers, remarks, passed = [], [], []
    for s in sets:
        found, calls = ahead(s, baseline, T, counted)
        share = float(found.mean())
        passed.append(HOLDS if share >= 0.95 else DOES_NOT if share <= 0.05 else IN_PART)
        answers.append(f"{s.title}: ahead {_where(found, calls)}")
        remarks.append(f"{share:.0%} on {s.name}")
    verdict = passed[0] if len(set(passed)) == 1 else IN_PART
    seeds = len(_curves(sets[-1], "poem-cma", T)[0].output)
    return claim.found(
        "; ".join(answers),
        verdict,
        f"Ahead at {' and '.join(remarks)} of the moments, evenly spaced on a log axis; {seeds} seeds.",
    )


def _where(ahead: Any, calls: list[int]) -> str:
    """The stretches of calls in which the marks are set."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], ahead.astype(int), [0]])))
    stretches = [(calls[a], calls[b - 1]) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    shown = ", ".join(f"{a:,} to {b:,}" if a != b else f"{a:,}" for a, b in stretches[:4])
    return "nowhere" if not stretches else f"at {shown}{' and further' if len(stretches) > 4 else ''} calls"


def _final(claim: Claim, sets: list[SetSummary], baseline: str, iterations: int, point: str) -> Claim:
    answers, passed = [], []
    for s in sets:
        ours, theirs = _curves(s, baseline, iterations)
        a, b = ours.final(iterations, point), theirs.final(iterations, point)
        passed.append(bool(np.median(a) < np.median(b)))
        answers.append(f"{s.title}: {_value(a)} against {_value(b)}")
    return claim.found("; ".join(answers), in_how_many(passed), _certificates(sets))


def _value(values: Any) -> str:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"{middle:.4f} [{low:.4f}, {high:.4f}]"


def _certificates(sets: list[SetSummary]) -> str:
    return (
        "Median [quartiles] of f. " + "; ".join(f"{s.name}: f* = {float(s.optimum['primal']):.5f}" for s in sets) + "."
    )


def _proportional(claim: Claim, sets: list[SetSummary], T: int) -> Claim:
    costs = [_curves(s, "poem", T)[0].preliminary for s in sets]
    ours = "; ".join(f"{s.title}: 2 t + {c:,}" for s, c in zip(sets, costs, strict=True))
    shares = ", ".join(f"{c / (2 * T):.0%}" for c in costs)
    return claim.found(
        ours, DOES_NOT if any(costs) else HOLDS, f"The preliminary calls are {shares} of those of T = {T:,} iterations."
    )


def _everywhere(claim: Claim, sets: list[SetSummary], T: int) -> Claim:
    passed, where = [], []
    for s in sets:
        for paired, r in [(True, r) for r in DISTANCES] + [(False, DISTANCES[0])]:
            ours = s.curve("poem-cma", T, paired=paired, initial_distance=r)
            theirs = s.curve("poem", T, paired=paired, initial_distance=r)
            if ours is None or theirs is None:
                continue
            better = bool(np.median(ours.final(T, "output_uncounted")) < np.median(theirs.final(T)))
            passed.append(better)
            if better:
                where.append(f"{s.name}, r_ε = {r:g}, {'shared' if paired else 'independent'} ξ")
    return claim.found(f"in {sum(passed)} of {len(passed)} settings", in_how_many(passed), "; ".join(where))


def _parameter_free(claim: Claim, sets: list[SetSummary], T: int) -> Claim:
    allowed = log_plus(2.0 / min(DISTANCES)) / log_plus(2.0 / max(DISTANCES))
    answers, passed = [], []
    for s in sets:
        spread = {}
        for method in ("poem-cma", "poem"):
            found = [s.curve(method, T, initial_distance=r) for r in DISTANCES]
            gaps = [float(np.median(c.final(T, "output_uncounted"))) - s.f_star for c in found if c is not None]
            spread[method] = max(gaps) / min(gaps)
        passed.append(spread["poem-cma"] <= allowed)
        answers.append(f"{s.title}: {spread['poem-cma']:.1f} (POEM {spread['poem']:.1f})")
    return claim.found(
        "; ".join(answers), in_how_many(passed), f"Theorem 1 allows a factor of {allowed:.2f} at T = {T:,}."
    )


def _contained(claim: Claim, sets: list[SetSummary]) -> Claim:
    answers, passed = [], []
    for s in sets:
        star = s.optimum["x"]
        inside = [float(((r["basis"].T @ star) ** 2).sum() / (star @ star)) for r in s.restricted]
        best = [float(r["dual"]) for r in s.restricted]
        passed.append(float(np.median(best)) - float(s.optimum["primal"]) < 1e-3)
        answers.append(
            f"{s.title}: {np.median(inside):.0%} of |x*|² is; the best value in S is at least {np.median(best):.4f}, "
            f"f* = {float(s.optimum['primal']):.4f}"
        )
    return claim.found(
        "; ".join(answers),
        in_how_many(passed),
        "Both values are certified by a dual bound; POEM-CMA cannot go below the first.",
    )


def _informative(claim: Claim, sets: list[SetSummary]) -> Claim:
    answers, passed = [], []
    for s in sets:
        learned, random = (float(np.median([float(r[k]) for r in s.restricted])) for k in ("primal", "random_primal"))
        passed.append(learned < random)
        answers.append(f"{s.title}: least f in S {learned:.4f}, in a random subspace of that dimension {random:.4f}")
    return claim.found(
        "; ".join(answers),
        in_how_many(passed),
        "Medians over seeds; the lower, the more of the solution the subspace holds.",
    )


def _rate(claim: Claim, sets: list[SetSummary], T: int, far: int) -> Claim:
    answers, passed = [], []
    for s in sets:
        exponents = {}
        for method in ("poem-cma", "poem"):
            curve = s.curve(method, far)
            assert curve is not None
            early, late = (float(np.median(curve.final(t, "output_uncounted"))) - s.f_star for t in (T, far))
            exponents[method] = float(np.log(late / early) / np.log(far / T))
        passed.append(exponents["poem-cma"] <= -0.4)
        answers.append(f"{s.title}: {exponents['poem-cma']:.2f} (POEM {exponents['poem']:.2f})")
    return claim.found("; ".join(answers), in_how_many(passed), f"From T = {T:,} to {far:,}, median f - f*.")
