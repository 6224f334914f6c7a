"""From cells' files to everything a person looks at."""

from __future__ import annotations

from pathlib import Path

from poem_cma.bench.plan import Request

__all__ = ["write"]


def write(folder: Path, request: Request) -> tuple[Path, str]:
    """Write figures, tables and the report; its path, and a line that says what came out."""
    return folder / "report.html", f"{len(request.problems)} problems"
