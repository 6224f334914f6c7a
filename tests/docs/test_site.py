"""The site builds without a warning, works without a network, and its links and pictures are there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

pytest.importorskip("mkdocs", reason="the extra docs is not installed: the site was not built")


class Links(HTMLParser):
    """What a page refers to, and what others can refer to in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []  # what the browser fetches by itself
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.targets += [given[name] for name in ("href", "src") if name in given]
        if "src" in given:
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.append(given.get("href", ""))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; any warning of the builder is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def site(home: Path) -> dict[Path, Links]:
    """The pages of the built site."""
    return {page: Links(page) for page in home.rglob("*.html")}


def test_the_site_has_the_pages_and_no_scripts(home: Path, site: dict[Path, Links]) -> None:
    """The builder itself refuses pages that are not in the navigation."""
    made = {page.relative_to(home).with_suffix("").as_posix() for page in site}
    assert made == {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")} | {"404"}
    assert not [path for ending in ("py", "json") for path in home.rglob(f"*.{ending}") if path.parent.name != "search"]


def test_links_lead_somewhere(site: dict[Path, Links]) -> None:
    wrong = []
    for page, links in site.items():
        if page.name == "404.html":
            continue  # made for a server's root
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            file = (page.parent / unquote(parts.path)).resolve() if parts.path not in ("", ".") else page
            if not file.is_file():
                wrong.append(f"{page.name}: {target}")
            elif parts.fragment and file in site and unquote(parts.fragment) not in site[file].anchors:
                wrong.append(f"{page.name}: {target} (no such place)")
    assert not wrong, wrong


def test_nothing_is_loaded_from_elsewhere(home: Path, site: dict[Path, Links]) -> None:
    for page, links in site.items():
        assert not [source for source in links.loaded if urlsplit(source).netloc], page.name
        text = page.read_text(encoding="utf-8")
        assert "arithmatex" not in text  # a formula that did not become MathML
        assert not re.search(r"@import|url\(['\"]?https?:", text)
    assert (home / "search" / "search_index.js").exists()  # what the search reads from file://


def test_the_search_works_from_a_file(home: Path, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium here: the search was not tried in a browser")
    settings = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path}",
        "--virtual-time-budget=9000",
    ]
    page = f"{(home / 'index.html').as_uri()}?q=simplex"
    done = subprocess.run(
        [browser, *settings, "--dump-dom", page], capture_output=True, text=True, timeout=120, check=True
    )
    assert re.search(r"[1-9]\d* matching documents", done.stdout)
    assert 'href="api.html#poem_cma.Simplex' in done.stdout or "api.html?h=simplex#poem_cma.Simplex" in done.stdout


def test_formulas_are_mathml(home: Path) -> None:
    text = (home / "how_it_works.html").read_text(encoding="utf-8")
    source = (DOCS / "how_it_works.md").read_text(encoding="utf-8")
    assert text.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">') == source.count("$$") // 2
    assert not re.search(r"<m[tio][^>]*>\\", text)  # a command that the converter does not know


def test_numbers_quoted_from_other_pages() -> None:
    """What one page says of another's measurements is what stands there."""

    def words(path: str) -> str:
        return " ".join((ROOT / path).read_text(encoding="utf-8").split())

    arena = words("docs/benchmarks.md")
    shared = arena.split("What common random numbers are worth")[1].split("###")[0]
    rows = re.findall(r"\| [\w -]+ \| (\d+) \| ([\d.]+) \|", shared)
    factors = [float(factor) for _, factor in rows]
    over = sorted(int(number) for number, _ in rows)
    factor, count = f"{min(factors):.0f} to {max(factors):.0f}", f"{over[0]} to {over[-1]}"
    assert f"{factor} times as large (geometric means over {count} problems)" in words("docs/noise.md")


def test_the_table_of_our_losses_is_the_commands() -> None:
    """In small, so that only the names agree; the page says how its numbers were made."""
    command = [sys.executable, str(ROOT / "benchmarks" / "when_not.py"), "--calls", "100", "--seeds", "1"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.replace(
        "after 100", "after 3,000"
    )
    page = (DOCS / "which.md").read_text(encoding="utf-8")
    shown = [line for line in page.splitlines() if line.count("|") == printed.splitlines()[0].count("|")]
    assert [line.split("|")[1] for line in shown] == [line.split("|")[1] for line in printed.splitlines()]
    assert shown[0] == printed.splitlines()[0]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_the_files_outside_the_site(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), f"{name}: {target}"


def test_every_picture_is_drawn_by_a_command(tmp_path: Path) -> None:
    """By docs/figures.py, which is run here; by a command that it names; or by an example of the gallery."""
    import figures

    shown = {
        Path(target)
        for page in [ROOT / "README.md", *DOCS.glob("*.md")]
        for target in re.findall(r"(?:!\[[^\]]*\]\(|src(?:set)?=\")([^)\"#]+)", page.read_text(encoding="utf-8"))
    }
    assert {path.name for path in shown} == {*figures.FIGURES, *figures.BY_COMMAND}
    figures.main(tmp_path)
    for name in figures.FIGURES:
        assert (tmp_path / name).stat().st_size > 5_000
