"""Parameter groups without a learning rate: who asks for one is told so."""

from __future__ import annotations

from typing import Any

__all__ = ["Defaults", "Group"]

_NO_RATE = "Poem has no learning rate to schedule: it finds its steps itself; remove the scheduler"


class Group(dict[str, Any]):
    """A parameter group."""

    def __missing__(self, key: str) -> Any:
        if key in ("lr", "initial_lr"):
            raise TypeError(_NO_RATE)
        raise KeyError(key)


class Defaults(dict[str, Any]):
    """The settings of a new group; `OneCycleLR` asks them for a momentum before it asks a group for a rate."""

    def __contains__(self, key: object) -> bool:
        if key in ("momentum", "betas"):
            raise TypeError(_NO_RATE)
        return super().__contains__(key)
