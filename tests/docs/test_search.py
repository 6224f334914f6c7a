"""The site's search finds the words that people type: each of thirty among the first pages that it shows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: How many pages of the answer a reader looks at.
FIRST = 3

#: What is typed, and the page that should be among the first.
WANTED = {
    "integer": "tutorials/noisy_simulator", "uncertainty": "how_result", "confidence interval": "how_result",
    "hyperparameter": "how_do_i", "warm start": "tutorials/noisy_simulator", "log scale": "how_do_i",
    "tutorial": "tutorials/noisy_simulator", "bounds": "how_do_i", "constraints": "how_do_i",
    "common random numbers": "how_do_i", "simulator": "tutorials/noisy_simulator", "optuna": "integrations",
    "scipy": "integrations", "nevergrad": "integrations", "workers": "long_runs", "parallel": "long_runs",
    "crash": "long_runs", "resume": "command_line", "checkpoint": "long_runs", "simplex": "domains",
    "install": "index", "noise": "noise", "maximise": "how_do_i", "sensitivity": "how_do_i",
    "fine-tuning": "tutorials/forward_passes", "benchmark": "benchmarks", "memory": "performance",
    "outliers": "noise", "constants": "constants", "paper": "paper",
}  # fmt: skip

#: Asks the search of the site, as its own pages do, one question after the other.
ASK = """<!doctype html><body><pre id="found"></pre>
<script src="search/search_index.js"></script><script src="assets/iframe-worker.js"></script>
<script>
const questions = QUESTIONS, found = {}, worker = new Worker("WORKER")
const ask = () => questions.length
  ? worker.postMessage({ type: 2, data: questions[0] })
  : document.getElementById("found").textContent = JSON.stringify(found)
worker.addEventListener("message", ({ data }) => {
  if (data.type === 3)
    found[questions.shift()] = data.data.items.map(group => group[0].location)
  ask()
})
worker.postMessage({ type: 0, data: { ...__index, options: { suggest: false } } })
</script>"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The pages that each question finds, best first."""
    pytest.importorskip("mkdocs", reason="the extra docs is not installed: the site was not built")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium here: the search was not tried in a browser")
    home = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(home)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    worker = next((home / "assets" / "javascripts" / "workers").glob("search.*.min.js")).relative_to(home).as_posix()
    page = home / "ask.html"
    page.write_text(ASK.replace("QUESTIONS", json.dumps([*WANTED])).replace("WORKER", worker), encoding="utf-8")
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000",
        f"--user-data-dir={tmp_path_factory.mktemp('browser')}", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    told = re.search(r'<pre id="found">(.+?)</pre>', done.stdout, flags=re.S)
    assert told, "the search has not answered"
    return json.loads(unescape(told[1]))


def test_there_are_thirty_words_and_their_pages_exist() -> None:
    assert len(WANTED) == 30
    assert all((ROOT / "docs" / f"{page}.md").is_file() for page in WANTED.values())


@pytest.mark.parametrize("typed", WANTED)
def test_the_search_finds(typed: str, answers: dict[str, list[str]]) -> None:
    pages = list(dict.fromkeys(place.partition("#")[0].removesuffix(".html") for place in answers[typed]))
    assert WANTED[typed] in pages[:FIRST], pages[:10]
