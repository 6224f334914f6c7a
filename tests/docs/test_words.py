"""The site is short: words of its pages outside code, formulas, the API reference and the changelog."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"

#: Words that a reader may be asked to read: on the whole site, on a page, and in the cells of a tutorial.
SITE, PAGE, TUTORIAL = 15_000, 1_500, 700
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.name not in ("api.md", "changelog.md"))

_NOT_WORDS = re.compile(
    r"^ *```.*?^ *```$"  # code, and what it prints
    r"|<!--.*?-->"
    r"|\$\$.*?\$\$|\$[^$]*\$"  # formulas
    r"|`(?:[^`\n]|\n(?!\n))*`"
    r"|(?<=\])\([^)]*\)|\{[#.][^}]*\}",  # where links and pictures lead, and anchors
    flags=re.S | re.M,
)
_WORD = re.compile(r"\b(?:[^\W\d_]{2,}(?:[-'’][^\W\d_]+)*|[Aa])\b")


def words(text: str) -> int:
    """Runs of letters, those of one letter but "a" excluded; tables and captions count."""
    return len(_WORD.findall(_NOT_WORDS.sub(" ", without_indented_code(text))))


def without_indented_code(text: str) -> str:
    """Lines that begin with four spaces are code, unless they belong to a list."""
    kept, in_list = [], False
    for line in text.splitlines():
        if line.strip() and not line.startswith(" "):
            in_list = line.startswith(("* ", "- "))
        if in_list or not line.startswith("    "):
            kept.append(line)
    return "\n".join(kept)


def of_page(page: Path) -> int:
    return words(page.read_text(encoding="utf-8"))


def test_what_is_a_word() -> None:
    assert words("A [two-sided](noise.md) test of `x0`, $x$ and 12 f.\n\n```python\nno words\n```\n") == 5
    assert words("| one | 2 |\n|---|---|\n\n![three words here](images/a.png)\n\n$$ \\mathbb{E} $$\n") == 4
    assert words("## Two words {#an-anchor}\n<!-- none -->\n") == 2
    assert words("Code:\n\n    python program.py\n\n* a list\n\n    with more\n") == 5


def test_the_site_has_at_most_15000_words() -> None:
    counted = {page.relative_to(DOCS).as_posix(): of_page(page) for page in PAGES}
    assert 5_000 < sum(counted.values()) <= SITE, (sum(counted.values()), counted)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_is_short(page: Path) -> None:
    """All but the paper's, which has its tables."""
    if page.name != "paper.md":
        assert of_page(page) <= (TUTORIAL if page.parent.name == "tutorials" else PAGE)


def test_the_readme_is_three_screens() -> None:
    """A screen has about 50 lines of 100 characters; a line of the file that is longer counts as several."""
    lines = (DOCS.parent / "README.md").read_text(encoding="utf-8").splitlines()
    assert sum(max(1, -(-len(line) // 100)) for line in lines) <= 150
