"""Make the pictures of pictures.md by running the page's own code: python docs/pictures.py."""

from __future__ import annotations

import os
import re
import runpy
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent


def main() -> None:
    """Run every block in a folder of its own, and keep the pictures."""
    page = (DOCS / "pictures.md").read_text(encoding="utf-8")
    (DOCS / "images").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for code in re.findall(r"```python\n(.*?)```", page, flags=re.S):
            Path("block.py").write_text(code, encoding="utf-8")
            runpy.run_path("block.py")
        for picture in Path(folder).glob("*.png"):
            (DOCS / "images" / picture.name).write_bytes(picture.read_bytes())
        os.chdir(DOCS)


if __name__ == "__main__":
    main()
