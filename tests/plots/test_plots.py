"""Pictures, pages and cards: what they show is what the results hold, and nothing in them can do harm."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import count
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import poem_cma as pc
from poem_cma.plots.panels import COLOURS, GREY, of_comparison, of_result, of_spectrum

W = np.geomspace(10.0, 0.1, 8)


def fun(x: np.ndarray, xi: np.ndarray) -> float:
    return float(np.abs(W * (x - 1.0)).sum() + xi @ x)


def draw(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=8)


def solve(method: str, seed: int = 0, budget: int = 600) -> pc.Result:
    return pc.minimize(fun, np.zeros(8), sample=draw, method=method, seed=seed, budget=budget)


@pytest.fixture(scope="module")
def runs() -> dict[str, list[pc.Result]]:
    return {method: [solve(method, seed) for seed in range(4)] for method in ("poem", "poem-cma", "auto")}


@pytest.fixture(scope="module")
def spectrum() -> pc.Spectrum:
    return pc.effective_dimension(fun, np.zeros(8), sample=draw, samples=100, tol=0.0, seed=0)


def contrast(colour: str, background: str) -> float:
    """As the web's accessibility guidelines define it."""

    def luminance(name: str) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(name)]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    light, dark = sorted((luminance(colour), luminance(background)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("background", ["#ffffff", "#111418"])
def test_colours_read_on_paper_and_on_dark_pages(background: str) -> None:
    assert contrast(GREY, background) > 3.7
    assert min(contrast(colour, background) for colour in COLOURS) > 2.8


def test_figures_have_no_background_and_show_the_history(runs: Any, spectrum: pc.Spectrum) -> None:
    result = runs["poem-cma"][0]
    figure = result.plot()
    assert figure.get_facecolor()[3] == 0.0
    value = figure.axes[0].lines[0]
    np.testing.assert_array_equal(value.get_xdata(), result.history["nfev"])
    np.testing.assert_array_equal(value.get_ydata(), result.history["fun"])
    figure = spectrum.plot()
    heights = [bar.get_height() for bar in figure.axes[0].patches]
    np.testing.assert_allclose(heights, spectrum.eigenvalues / spectrum.eigenvalues[0])
    assert f"d* = {spectrum.effective_dimension:.3g}" in figure.axes[0].get_title()


def test_comparisons_sum_up_runs_with_one_label(runs: Any) -> None:
    _, (value, distance) = of_comparison(runs)
    lines = [curve for curve in value.curves if curve.kind == "line"]
    assert [curve.label for curve in lines] == ["poem (4 runs)", "poem-cma (4 runs)", "auto (4 runs)"]
    at = 200
    calls = lines[0].x[at]
    held = [r.history["fun"][r.history["nfev"] <= calls][-1] for r in runs["poem"]]
    np.testing.assert_allclose(lines[0].y[at], np.median(held))
    np.testing.assert_allclose([lines[0].low[at], lines[0].high[at]], np.quantile(held, [0.25, 0.75]))
    ends = [curve for curve in value.curves if curve.kind == "points"]
    np.testing.assert_array_equal(ends[2].y, [r.fun for r in runs["auto"]])
    assert len(distance.curves) == 3
    by_label = pc.plots.compare([runs["poem"][0], runs["auto"][0]], labels=["one", "other"])
    assert [text.get_text() for text in by_label.axes[0].get_legend().get_texts()] == ["one", "other"]
    flat = pc.plots.compare([r for group in runs.values() for r in group])
    assert len(flat.axes[0].get_legend().get_texts()) == 3
    assert len({line.get_linestyle() for line in flat.axes[1].lines}) >= 2  # told apart without colour
    with pytest.raises(ValueError, match="2 results, but 1 labels"):
        pc.plots.compare(runs["poem"][:2], labels=["a"])
    with pytest.raises(ValueError, match="nothing to compare"):
        pc.plots.compare([])


def test_awkward_runs(tmp_path: pathlib.Path) -> None:
    nothing = pc.Optimizer(np.zeros(3), budget=40).result()
    constant = pc.minimize(lambda x: 1.0, np.zeros(3), budget=40, seed=0)
    huge = pc.minimize(lambda x: 1e300 * float(x @ x), np.ones(3), budget=100, seed=0, method="poem")
    failing = pc.minimize(lambda x: np.nan, np.zeros(3), budget=40, seed=0)
    flat = pc.effective_dimension(lambda x: 1.0, np.zeros(3), seed=0)
    for n, what in enumerate([nothing, constant, huge, failing, flat]):
        what.plot().savefig(tmp_path / f"{n}.png")
        assert "<table" in what._repr_html_()
        assert "Plotly.newPlot" in what.to_html()
    pc.plots.compare([nothing, constant, failing]).savefig(tmp_path / "together.png")
    pc.plots.compare({"none": [nothing, nothing]}).savefig(tmp_path / "none.png")


class _Page(HTMLParser):
    """Tags that are open, what is fetched, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("meta", "link", "polyline", "rect", "br", "img"):
            self.open.append(tag)
        self.sources += [value for name, value in attrs if name in ("src", "href") and value]

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("polyline", "rect"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_pages_are_whole_and_need_no_network(runs: Any, spectrum: pc.Spectrum, tmp_path: pathlib.Path) -> None:
    pages = [runs["auto"][0].to_html(tmp_path / "run.html"), spectrum.to_html(), pc.plots.to_html(runs)]
    assert (tmp_path / "run.html").read_text(encoding="utf-8") == pages[0]
    for page, charts in zip(pages, (5, 2, 2), strict=True):
        parsed = _Page(page)
        assert parsed.open == []
        assert parsed.sources == ["data:,"]  # nothing is fetched
        assert len(re.findall(r'Plotly\.newPlot\(\s*"chart-\d"', page)) == charts
    assert pages[0] == runs["auto"][0].to_html()  # nothing changes from time to time
    last = runs["auto"][0].history["fun"][-1]
    assert re.search(rf"\b{re.escape(str(last))}", pages[0])


def test_cards(runs: Any, spectrum: pc.Spectrum) -> None:
    result = runs["poem"][0]
    text = " ".join(_Page(result._repr_html_()).words)
    for word in (f"{result.fun:.6g}", f"{result.nfev:,}", "value against calls", "ended well", str(result.seed)):
        assert word in text
    assert "polyline" in result._repr_html_()
    text = " ".join(_Page(spectrum._repr_html_()).words)
    assert f"{spectrum.effective_dimension:.4g} of 8" in text
    assert "#fff" not in result._repr_html_()  # the colours are those of the page
    assert "#000" not in result._repr_html_()


def test_ipython_finds_the_cards(runs: Any, spectrum: pc.Spectrum) -> None:
    formatters = pytest.importorskip("IPython.core.formatters", reason="IPython is not installed")
    for shown in (runs["auto"][0], spectrum):
        assert formatters.HTMLFormatter()(shown) == shown._repr_html_()


def test_cards_and_pages_escape_what_users_wrote() -> None:
    nasty = '<script>alert("x")</script>'

    def fails(p: Any) -> float:
        if (calls := next(number)) > 2:
            raise ValueError(nasty)
        return float(calls)

    number = count()
    result = pc.minimize(fails, {nasty: 0.0, "b": np.zeros(2)}, budget=20, seed=0)
    assert nasty in result.message
    card = result._repr_html_()
    assert "<script" not in card
    assert "&lt;script&gt;" in card
    page = pc.plots.to_html({nasty: result, "b": result})
    assert page.count("</script>") == page.count("<script")
    assert nasty not in page


def test_a_nest_in_a_card_and_in_print() -> None:
    result = pc.minimize(lambda p: float(abs(p["w"]).sum()), {"w": np.ones(30)}, budget=50, seed=0)
    assert "&#x27;w&#x27;: array(" in result._repr_html_()
    assert max(map(len, repr(result).splitlines())) < 200


def test_pictures_import_nothing_before_they_are_drawn() -> None:
    code = (
        "import sys, numpy as np, poem_cma as pc; pc.plots.compare; pc.integrations; "
        "r = pc.minimize(lambda x: float(x @ x), np.ones(2), budget=40); r._repr_html_(); "
        "print([m for m in ('matplotlib', 'plotly', 'IPython', 'rich', 'optuna', 'nevergrad') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_page_without_plotly_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['plotly'] = None; import numpy as np, poem_cma as pc; "
        "pc.minimize(lambda x: float(x @ x), np.ones(2), budget=40).to_html()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "poem-cma[html]"' in done.stderr.strip().splitlines()[-1]


def test_titles() -> None:
    title, panels = of_result(solve("poem", budget=100))
    assert title == "poem(): 100 calls"
    assert [panel.title for panel in panels] == ["Value", "Distance and step size", "Smoothing", "Gradient estimates"]
    title, _ = of_spectrum(pc.gradient_spectrum(fun, np.zeros(8), sample=draw, seed=0))
    assert title == "Spectrum of 10 gradient estimates: 90 calls"
