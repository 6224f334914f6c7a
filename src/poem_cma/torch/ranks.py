"""Data parallel over `torch.distributed`: the ranks agree on the seed once, and exchange losses, nothing else."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["Ranks"]


class Ranks:
    """The ranks that train together; one where no process group was made."""

    def __init__(self, group: dist.ProcessGroup | None, device: torch.device) -> None:
        self.active = dist.is_available() and dist.is_initialized()
        self.group = group
        self.size = dist.get_world_size(group) if self.active else 1
        self.device = device if self.active and dist.get_backend(group) == "nccl" else torch.device("cpu")

    def agree(self, seed: int, sums: list[float]) -> int:
        """The first rank's seed, once it is certain that all ranks start from the same weights."""
        if not self.active:
            return seed
        high, low = seed >> 32, seed & 0xFFFFFFFF
        mine = torch.tensor([high, low, *sums], dtype=torch.float64, device=self.device)
        first = mine.clone()
        dist.broadcast(first, src=dist.get_global_rank(self.group, 0) if self.group else 0, group=self.group)
        differs = (mine[2:] != first[2:]).any().to(torch.int32)
        dist.all_reduce(differs, op=dist.ReduceOp.MAX, group=self.group)
        if differs.item():
            raise ValueError(
                "the ranks start from different weights; seed them alike or load one checkpoint, "
                "or bring a restarted rank up to date with poem_cma.torch.replay"
            )
        return int(first[0]) << 32 | int(first[1])

    def mean(self, losses: list[Tensor]) -> list[float]:
        """The mean over the ranks of each loss: the one exchange of a step, a number for each probe."""
        stacked = torch.stack(losses).double()
        if self.active:
            stacked = stacked.to(self.device)
            dist.all_reduce(stacked, group=self.group)
            stacked /= self.size
        values: list[float] = stacked.tolist()
        return values
