"""Pages name the installation from a clone or from a wheel, with extras that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])

#: The modules of extras, as the code of a page imports them.
NEEDS = {
    "torch": "torch", "optuna": "optuna", "nevergrad": "nevergrad", "art": "art", "matplotlib": "plot", "cma": "bench",
    "noisyopt": "bench",
}  # fmt: skip


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_is_installed_is_a_clone_or_a_wheel_with_extras_that_exist(page: Path) -> None:
    for what in re.findall(r"pip\s+install\s+\"?([^\s\"`]+)", text(page)):
        place, _, extras = what.partition("[")
        assert place in ("./poem-cma", "WHEEL"), what
        assert set(extras.rstrip("]").split(",")) <= EXTRAS | {"EXTRA", ""}, what


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_names_the_extras_that_its_code_needs(page: Path) -> None:
    code = "\n".join(re.findall(r"^```python.*?^```", text(page), flags=re.S | re.M))
    words = re.sub(r"^```.*?^```", "", text(page), flags=re.S | re.M)
    for module in re.findall(r"^(?:import|from) (\w+)", code, flags=re.M):
        if module in NEEDS:
            assert re.search(rf"[`\[,]{NEEDS[module]}[`\],]", words), f"{module} is in the extra {NEEDS[module]}"
