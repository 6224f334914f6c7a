"""The arena's page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import poem_cma
from poem_cma.experiments.bench.ratios import Ratio, geometric_mean
from poem_cma.experiments.bench.results import Results
from poem_cma.experiments.campaign import page as shell
from poem_cma.experiments.campaign.picture import Picture
from poem_cma.experiments.campaign.table import Table

__all__ = ["headline", "page", "rules"]


def headline(ratios: list[Ratio]) -> str:
    """The outcome in one line."""
    if not ratios:
        return "no ratio: that takes auto and at least one peer on a noisy problem"
    mean, ahead = geometric_mean([r.value for r in ratios]), sum(r.value >= 1.0 for r in ratios)
    return (
        f"calls of the best peer for each of auto's: {mean:.2f} in the geometric mean over {len(ratios)} noisy "
        f"problems, at least 1 on {ahead} of them"
    )


def rules(results: Results) -> list[str]:
    """How it was measured."""
    scale = results.request.scale
    tries = "one seed" if scale.tuning_seeds == 1 else f"{scale.tuning_seeds} seeds"
    return [
        f"Every run has {scale.budget:,} calls of F; a mean over b samples costs b calls. Ours, and peers "
        f"tuned and with their defaults, have {scale.seeds} seeds, or as many as are planned to take "
        f"{scale.patience:g} s.",
        "The gap is (f(x) - f*) / (f(x0) - f*) of the point a method recommends at that moment, with the exact f and "
        "the certified f*. It is written down along one run; `auto`, which plans for its budget, has a run of its own "
        "for every number of calls. Curves are medians over seeds.",
        "Peers are tuned on the very problem they play, one axis of the grid after the other, by the last gap on "
        f"{tries} not reported. The calls this takes are not charged, which favours them. Ours are never tuned.",
        "Steps of ZO-SGD, ZO-AdaMM, SGD with several directions and tuned noisyopt are lengths, divided by the size of "
        "gradient estimates at x0 measured by 100 calls that are not charged either.",
        "Common random numbers: a whole population, or pair, shares one mini-batch of xi. On a problem whose noise "
        "cannot be shared, every call has its own.",
        "Peers without constraints are given F(Proj x), and in tuning also a penalty on the distance outside; iterates "
        "of gradient methods are projected.",
        "DoG sees true stochastic subgradients and is a limit, not a peer; a gradient counts as d + 1 calls, or as "
        "one, as its name says.",
        "pycma and cmaes with a full covariance matrix are left out above d = 500, where a run takes minutes to an "
        "hour. nevergrad is tuned with means of 10 or 30 values only: a single one takes it up to half a millisecond.",
        "Where gaps are divided by each other in a mean, one above 1 counts as 1: one can stay at x0.",
        "The time a call is the processor time of the method beside F, on the machine of the run; it is the one number "
        "here that differs from run to run.",
    ]


def page(results: Results, drawn: Sequence[Picture], shown: Sequence[Table], ratios: list[Ratio]) -> str:
    """The whole document."""
    scale = results.request.scale
    first = [p for p in drawn if not p.name.startswith("problem-")]
    rest = [p for p in drawn if p.name.startswith("problem-")]
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in results.request.notes)
    items = "".join(f"<li>{escape(rule)}</li>" for rule in rules(results))
    head = f"""<header>
<h1>The arena</h1>
<p>poem-cma {poem_cma.__version__} and its peers on {len(results.problems)} problems whose least value is known.
Mode: {escape(scale.name)}, {scale.budget:,} calls, {scale.seeds} seeds.</p>
<p><strong>{escape(headline(ratios))}</strong></p>
{notes}
<nav><a href="#outcome">Outcome</a> <a href="#problems">Problems</a> <a href="#tables">Tables</a>
<a href="#rules">Rules</a></nav>
</header>"""
    parts = [
        head,
        shell.section("outcome", "Outcome", first, shown[:2]),
        shell.section("problems", "Problems", rest, ()),
        shell.section("tables", "Tables", (), shown[2:]),
        f'<section id="rules"><h2>How it was measured</h2><ul>{items}</ul></section>',
    ]
    return shell.page("poem-cma: the arena", "\n".join(parts))
