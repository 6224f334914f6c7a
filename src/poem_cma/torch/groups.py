"""Parameter groups without a learning rate: who asks for one is told so."""

from __future__ import annotations

from typing import Any

__all__ = ["Group"]


class Group(dict[str, Any]):
    """A parameter group."""

    def __missing__(self, key: str) -> Any:
        if key in ("lr", "initial_lr"):
            raise TypeError("Poem has no learning rate to schedule: it finds its steps itself; remove the scheduler")
        raise KeyError(key)
