"""Put the tables and pictures of full runs of the examples into docs/gallery.

    python docs/gallery_tables.py results/gallery        # make gallery runs the examples, then this

For every page whose example has a result in the folder: the table goes between the two marks, result and picture beside
the page, and a part of the picture, small, into thumbs for the overview. Everything else on the page is left as it is.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import sys

from PIL import Image

PAGES = pathlib.Path(__file__).with_name("gallery")
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"

#: Which part of a picture is its thumbnail: left and right, as shares of the width.
PARTS = {
    "digits_attack": (0.0, 1.0), "effective_dimension": (0.0, 0.345), "epidemic": (0.0, 0.397),
    "external_program": (0.0, 0.375), "f1_classifier": (0.0, 0.585), "policy_search": (0.0, 0.585),
    "portfolio_cvar": (0.0, 1.0),
}  # fmt: skip
THUMB = (480, 270)


def thumbnail(picture: pathlib.Path) -> Image.Image:
    """A part of the picture in the middle of a white card."""
    whole = Image.open(picture).convert("RGB")
    left, right = (round(share * whole.width) for share in PARTS[picture.stem])
    part = whole.crop((left, 0, right, whole.height))
    part.thumbnail((THUMB[0] - 16, THUMB[1] - 16), Image.Resampling.LANCZOS)
    card = Image.new("RGB", THUMB, "white")
    card.paste(part, ((THUMB[0] - part.width) // 2, (THUMB[1] - part.height) // 2))
    return card


def markdown(kept: dict) -> str:
    """The table of a run, its caption above it."""
    lines = [kept["columns"], ["---"] * len(kept["columns"]), *kept["rows"]]
    return f"{kept['about']}.\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def insert(page: pathlib.Path, folder: pathlib.Path) -> None:
    """Replace what is between the marks of a page."""
    kept = json.loads((folder / f"{page.stem}.json").read_text(encoding="utf-8"))
    if kept["quick"]:
        raise SystemExit(f"{page.stem} was run with --quick: the page needs a full run")
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{markdown(kept)}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    for suffix in ("json", "png"):
        shutil.copyfile(folder / f"{page.stem}.{suffix}", page.with_suffix(f".{suffix}"))
    thumbs = page.parent / "thumbs"
    thumbs.mkdir(exist_ok=True)
    thumbnail(page.with_suffix(".png")).save(thumbs / f"{page.stem}.png", optimize=True)


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    for page in sorted(PAGES.glob("*.md")):
        if (folder / f"{page.stem}.json").exists():
            insert(page, folder)
            sys.stdout.write(f"{page.name}\n")
