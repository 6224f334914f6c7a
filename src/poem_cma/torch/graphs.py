"""A forward pass as one CUDA graph: a single launch, where kernels are shorter than the time to launch them."""

from __future__ import annotations

import torch
from torch import Tensor

from poem_cma.torch.probing import Closure

__all__ = ["captured"]

_WARM = 3  # calls before the capture: libraries choose their kernels and take their memory


def captured(closure: Closure) -> Closure:
    """Record what the closure launches; the closure that comes back launches all of it again.

    It reads and writes the same addresses each time. Random numbers (dropout) follow the generator's state at each
    replay, as they would without a graph.
    """
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), torch.random.fork_rng([torch.cuda.current_device()]), torch.cuda.stream(aside):
        for _ in range(_WARM):
            first = closure()
    torch.cuda.current_stream().wait_stream(aside)
    if not isinstance(first, Tensor) or first.device.type != "cuda":
        raise ValueError(
            "a closure to capture must return the loss as a tensor on the GPU: float(loss) or .item() waits for the "
            f"GPU, which a graph cannot hold; it returned {type(first).__name__}"
        )
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        loss: Tensor = closure()

    def replayed() -> Tensor:
        graph.replay()
        return loss

    return replayed
