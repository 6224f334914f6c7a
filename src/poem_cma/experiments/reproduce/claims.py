"""The paper's checkable claims, each with the paper's number, ours, and a verdict worked out from the results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["DOES_NOT", "HOLDS", "IN_PART", "NOT_RUN", "UNDECIDED", "Claim", "count", "in_how_many", "rows", "within"]

HOLDS, IN_PART, DOES_NOT = "holds", "holds in part", "does not hold"
UNDECIDED, NOT_RUN = "not decided", "not run"  # too few runs to tell; another part of the command


@dataclass(frozen=True)
class Claim:
    """One row: where the paper says what, its number, ours, the verdict, and in words where it holds or why not."""

    where: str
    claim: str
    paper: str
    ours: str = ""
    verdict: str = NOT_RUN
    remark: str = ""

    def found(self, ours: str, verdict: str, remark: str = "") -> Claim:
        """The row with our side filled in."""
        return Claim(self.where, self.claim, self.paper, ours, verdict, remark)


def within(value: float, paper: float, tolerance: float) -> bool:
    """Whether a number is the paper's up to a relative tolerance."""
    return abs(value - paper) <= tolerance * abs(paper)


def in_how_many(passed: Iterable[bool]) -> str:
    """Holds everywhere, somewhere, nowhere."""
    marks = list(passed)
    if not marks:
        return NOT_RUN
    return HOLDS if all(marks) else IN_PART if any(marks) else DOES_NOT


def count(claims: Iterable[Claim]) -> dict[str, int]:
    """How many of each verdict."""
    verdicts = [c.verdict for c in claims]
    return {v: verdicts.count(v) for v in (HOLDS, IN_PART, DOES_NOT, UNDECIDED, NOT_RUN) if v in verdicts}


def rows(results: Any) -> list[Claim]:
    """Every claim, in the paper's order of subjects; those of a part that was not run say so."""
    from poem_cma.experiments.reproduce import claims_dimension, claims_figure2, claims_table1

    return [
        *claims_dimension.figure1(results.fig1),
        *claims_dimension.sets(results.sets),
        *claims_figure2.rows(results.sets, results.request.scale),
        *claims_table1.rows(results.measured, results.fits),
        *claims_table1.lemmas(results.lemmas),
    ]


def as_records(claims: Iterable[Claim]) -> list[dict[str, str]]:
    """For a JSON file."""
    return [asdict(c) for c in claims]
