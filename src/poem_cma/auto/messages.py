"""What a user should know at the end of a run."""

from __future__ import annotations

from poem_cma.auto.state import AutoState

__all__ = ["remark"]


def remark(s: AutoState) -> str:
    """Whether a larger budget would help; empty if there is nothing to say."""
    if s.progress.improving and not s.converged:
        return "the run was still improving: a larger budget will find a better point"
    return ""
