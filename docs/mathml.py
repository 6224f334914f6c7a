"""A hook of the site's builder: formulas between dollars become MathML, which needs no script and no network."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<tex>.*?)\\[)\]]</(?P=tag)>', flags=re.S
)


def on_page_content(html: str, **_: Any) -> str:
    """Called by mkdocs with the HTML of every page."""
    return _FORMULA.sub(_as_mathml, html)


def _as_mathml(match: re.Match[str]) -> str:
    display = "block" if match["open"] == "[" else "inline"
    tex = unescape(match["tex"]).strip().replace("^*", r"^{\ast}")  # a star that is raised once, not twice
    mathml = convert(tex, display=display)
    return f'<div class="formula">{mathml}</div>' if display == "block" else mathml
