"""Calling the user's closure, so that nothing but the weights differs between the probes of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

__all__ = ["Closure", "Probing"]

Closure = Callable[[], Any]

_NO_GRADIENT = "does not require grad"  # what PyTorch says of backward where gradients are switched off
_BACKWARD = "the closure calls backward, but Poem uses no gradients: remove `loss.backward()` and return the loss"


class Probing:
    """One batch: every call sees the same random state (dropout masks) and the same buffers (batch norm).

    Afterwards the generators stand where one forward pass would have left them, and the buffers are as they were.
    """

    def __init__(
        self, closure: Closure, devices: Iterable[torch.device], buffers: list[Tensor], parameters: list[Tensor]
    ) -> None:
        self.closure, self.parameters = closure, parameters
        self.gradients = self._gradients()
        self.cuda = [d for d in devices if d.type == "cuda"]
        self.start = self._states()
        self.after: list[Tensor] | None = None
        self.buffers = [(b, b.clone()) for b in buffers]

    def __call__(self) -> Tensor:
        self._set(self.start)
        loss = self._called()
        if self.after is None:
            self.after = self._states()
        for b, kept in self.buffers:
            b.copy_(kept)
        if loss is None:
            raise TypeError("the closure returned None; it must return the loss: end it with `return loss`")
        if not isinstance(loss, Tensor):
            loss = torch.as_tensor(_number(loss), dtype=torch.float64)
        if loss.numel() != 1:
            raise ValueError(f"the closure must return the loss, one number; it returned shape {tuple(loss.shape)}")
        return loss.detach().reshape(()).clone()

    def _called(self) -> Any:
        try:
            loss = self.closure()
        except RuntimeError as error:
            if _NO_GRADIENT not in str(error):
                raise
            raise RuntimeError(_BACKWARD) from error
        if self._gradients() - self.gradients:  # it has switched gradients on
            raise RuntimeError(_BACKWARD)
        return loss

    def close(self) -> None:
        for b, kept in self.buffers:
            b.copy_(kept)
        self._set(self.after if self.after is not None else self.start)

    def _gradients(self) -> set[tuple[int, int]]:
        """Which gradients there are, and how often each was written."""
        return {(id(p.grad), p.grad._version) for p in self.parameters if p.grad is not None}

    def _states(self) -> list[Tensor]:
        return [torch.get_rng_state(), *(torch.cuda.get_rng_state(d) for d in self.cuda)]

    def _set(self, states: list[Tensor]) -> None:
        torch.set_rng_state(states[0])
        for d, state in zip(self.cuda, states[1:], strict=True):
            torch.cuda.set_rng_state(state, d)


def _number(loss: Any) -> float:
    try:
        return float(loss)
    except (TypeError, ValueError) as error:
        line = f"the closure must return the loss, one number; it returned a {type(loss).__name__}"
        raise TypeError(line) from error
