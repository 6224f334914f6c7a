"""`Poem`: train a network with forward passes alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import sqrt
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from poem_cma.run.randomness import make_seed
from poem_cma.torch import passes
from poem_cma.torch.allocation import Allocation, presence
from poem_cma.torch.average import EVERY, Average, decayed
from poem_cma.torch.distance import Distance
from poem_cma.torch.engine import Engine
from poem_cma.torch.graphs import captured
from poem_cma.torch.groups import Defaults, Group
from poem_cma.torch.layout import Layout, named, norm
from poem_cma.torch.log import Log
from poem_cma.torch.probing import Closure, Probing
from poem_cma.torch.ranks import Ranks
from poem_cma.torch.saving import fitting, put_back, taken
from poem_cma.torch.state import Point, State

__all__ = ["Poem"]

_APART = 1 << 24  # moves that are taken back at once are rounded by random bits of their own
_VECTORS = 0.5  # how far biases and norms move, compared with matrices: their gradients have more energy


class Poem(Optimizer):
    """Train with forward passes: no backward pass, no learning rate, no perturbation size.

    One step, on one batch: the losses at x and at x + mu v_j along q random directions of signs give slopes, and
    g = d/q sum_j slope_j v_j. One more loss, half of the last step back, says on a batch that step has not seen whether
    it was too short or too long, and the scale R follows. Then x moves by -R / sqrt(G) g, where G is the sum of all
    squared gradients; a g far longer than usual is shortened first. A step that turns out to have led up is taken back.

    The weights are never perturbed: probes are made in a second buffer, which the module's parameters point to while
    the closure runs. Directions are never stored: they are made again from their numbers.

    Parameters
    ----------
    params : torch.nn.Module or iterable
        A module, whose parameters are searched and whose buffers are held (see `module`). Or, as for every optimizer,
        parameters, pairs of name and parameter (preferred: directions then depend on names, not on the order), or
        groups of either. A group's ``scale`` says how far its tensors move compared with the others. Parameters with
        ``requires_grad=False`` are left alone.
    directions : int
        From 1 to 8. More than one use forward differences from one base: q slopes for q + 1 passes, and one more that
        looks at the scale. One takes a central pair (two passes a step and the least memory traffic), and sees little.
    scale : "values" or "distance"
        Whether the scale follows the losses, or the distance from the first weights as in POEM.
    shaped : bool
        Learn each tensor's share of the gradient's energy, and let directions reach further where there is little.
    average : str or None
        Where the running average of the weights is kept: "float32", "bfloat16", "float16" or "same" (the weights' own
        dtype); with "@cpu" behind it, in the computer's memory. None keeps none.
    module : torch.nn.Module, optional
        Its buffers (batch norm's statistics) are held as they are while the closure runs.
    seed : int, optional
        Two runs with one seed make the same steps.
    group : torch.distributed.ProcessGroup, optional
        The ranks that train together, each on its own batches; by default all, where torch.distributed is initialised.

    Examples
    --------
    >>> import torch
    >>> from poem_cma.torch import Poem
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.Linear(3, 1)
    >>> inputs = torch.randn(64, 3)
    >>> targets = inputs.sum(1, keepdim=True)
    >>> opt = Poem(model, seed=0)
    >>> def closure():
    ...     return torch.nn.functional.mse_loss(model(inputs), targets)
    >>> first = opt.step(closure)
    >>> for _ in range(60):
    ...     last = opt.step(closure)
    >>> bool(last < 0.01 * first)
    True
    """

    def __init__(
        self,
        params: nn.Module | Iterable[Any],
        *,
        directions: int = 8,
        scale: Literal["values", "distance"] = "values",
        shaped: bool = False,
        average: str | None = "same",
        module: nn.Module | None = None,
        seed: int | None = None,
        group: Any = None,
    ) -> None:
        if isinstance(directions, bool) or directions not in range(1, 9):
            raise ValueError(f"directions must be a whole number from 1 to 8, not {directions!r}")
        if scale not in ("values", "distance"):
            raise ValueError(f'scale must be "values" or "distance", not {scale!r}')
        if isinstance(params, nn.Module):
            module = params if module is None else module
            params = params.named_parameters()
        super().__init__(params, {"scale": 1.0})
        self.defaults = Defaults(self.defaults)
        self.param_groups = [Group(group) for group in self.param_groups]
        self.layout = layout = Layout(named(self.param_groups))
        layout.weigh(vectors=_VECTORS if scale == "values" else 1.0)
        self.module = module
        device = layout.blocks[0].x.device
        squares = [norm(b.x) ** 2 for b in layout.blocks]
        epsilon = max(torch.finfo(b.x.dtype).eps for b in layout.blocks)
        self.ranks = Ranks(group, device)
        self.seed = self.ranks.agree(make_seed(seed) & (1 << 63) - 1, squares)
        size = sqrt(sum(squares))
        if scale == "values":
            size = float(f"{size:.6g}")  # sums differ in their last digits from device to device; a log fits all
        self.engine = Engine(layout.dimension, size, directions, scale == "values", epsilon)
        allocation = Allocation.even([b.x.numel() for b in layout.blocks], self.seed) if shaped else None
        self.now: State = self.engine.begin(allocation)
        self.log = Log(self.seed, layout.dimension)
        self.average = Average.kept(average, layout)
        self.distance = Distance(layout) if scale == "distance" else None

    # The step

    @torch.no_grad()
    def step(self, closure: Closure | None = None) -> Tensor:  # type: ignore[override]
        """One step on one batch. `closure` runs a forward pass and returns the loss; it is called several times.

        Returns the loss at the weights before the step. Where it is NaN or infinite the step is skipped and counted
        (`opt.now.skipped`); an exception in the closure leaves weights and state as they were.
        """
        if closure is None:
            raise ValueError("step needs a closure that runs a forward pass and returns the loss: opt.step(closure)")
        self.layout.check()
        buffers = list(self.module.buffers()) if self.module is not None else []
        blocks = self.layout.blocks
        probing = Probing(closure, {b.x.device for b in blocks}, buffers, [p for b in blocks for p in b.parameters])
        asked: list[float] = []

        def evaluate(points: Sequence[Point]) -> list[float]:
            losses = []
            self._write(points[0], None)  # the device is at work while the parameters are swapped
            with self.layout.elsewhere():
                for i, point in enumerate(points):
                    if i > 0:
                        self._write(point, None)
                    losses.append(probing())
            values = self.ranks.mean(losses)
            asked.extend(values)
            return values

        try:
            state, move = self.engine.step(self.now, evaluate)
        finally:
            probing.close()
        self._make(state, move)
        self.log.steps.append(asked)
        pair = self.engine.q == 1
        return torch.tensor(0.5 * (asked[0] + asked[1]) if pair else asked[0])

    def _make(self, state: State, move: Point | None) -> None:
        """Move the weights; after this the step is made."""
        number = len(self.log.steps)
        for i, last in enumerate(reversed(self.now.moves[len(self.now.moves) - (state.undone - self.now.undone) :])):
            self._write(last.point.times(-1.0), number + i * _APART)
        if move is not None and self.distance is not None:  # POEM: x̄_{t+1} weighs x_t by r̄_t
            share = self.distance.share(self.engine.weight(self.now))
            if self.average is not None:
                self.average.add(share, number, self.seed)
            self._write(move, number)
            state = self.engine.arrived(state, self.distance.now())
        elif move is not None:
            self._write(move, number)
        if self.average is not None and self.distance is None and (number + 1) % EVERY == 0:
            self.average.add(decayed((number + 1) // EVERY, self.average.low), number, self.seed)
        self.now = state

    def _write(self, point: Point, update: int | None) -> None:
        """x + sum_j c_j v_j, to the buffer or (as update number ...) to x itself."""
        unit = 1.0 / sqrt(self.layout.dimension)  # v = z / √d
        blocks, c = self.layout.blocks, point.coefficients
        rows = [[unit * cj for cj in c]]  # one for all tensors
        if self.now.allocation is not None and c:
            present = presence(point.first, len(c), len(blocks), self.seed)
            rows = [
                [sqrt(2.0) * sigma * cj * float(on) for cj, on in zip(rows[0], present[:, k], strict=True)]
                for k, sigma in enumerate(point.shape)
            ]
        passes.apply(self.layout, rows, point.first, self.seed, update=update)

    # What to use, keep and restore

    @torch.no_grad()
    def captured(self, closure: Closure) -> Closure:
        """The same closure as one CUDA graph, to give to `step`: for networks whose kernels are too short to launch.

        The graph reads the tensors that the closure reads now, wherever they are: copy each new batch into the same
        tensors. What the closure does on the host (printing, counting) happens only here. On the CPU the closure
        itself comes back.
        """
        self.layout.check()
        if self.layout.blocks[0].x.device.type != "cuda":
            return closure
        buffers = [(b, b.clone()) for b in (self.module.buffers() if self.module is not None else ())]
        self._write(Point(0, ()), None)
        with self.layout.elsewhere():  # where every probe runs
            graph = captured(closure)
        for b, kept in buffers:
            b.copy_(kept)
        return graph

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Within this context the model has the averaged weights; afterwards, bit for bit its own."""
        if self.average is None:
            raise RuntimeError('there is no average to show: make the optimizer with average="same", for example')
        self.layout.check()
        self.average.show()
        with self.layout.elsewhere():
            yield

    def state_dict(self) -> dict[str, Any]:
        """All that a run needs to go on as if it had not been stopped, beside the model's own state_dict."""
        return super().state_dict() | {"poem": taken(self)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, in an optimizer made with the same arguments."""
        saved = fitting(self, state_dict.get("poem"))
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "poem"})
        self.param_groups = [Group(group) for group in self.param_groups]
        put_back(self, saved)

    def memory(self) -> dict[str, int]:
        """Bytes held beyond the model itself, by what they are for."""
        return {
            "probes": self.layout.bytes,
            "average": 0 if self.average is None else self.average.bytes,
            "x0": 0 if self.distance is None else self.distance.bytes,
        }

    def report(self) -> str:
        """One line for a log: steps, the smoothed loss, the last step's length, the distance of differences, passes.

        Examples
        --------
        >>> import torch
        >>> from poem_cma.torch import Poem
        >>> Poem([torch.nn.Parameter(torch.ones(4))], seed=0).report()
        'step 0: loss nan, step length 0, differences over 0.002, 0 forward passes, 0 steps undone, 0 skipped'
        """
        s = self.now
        length = s.moves[-1].point.length if s.moves else 0.0
        return (
            f"step {s.t}: loss {s.watch.value:.4g}, step length {length:.3g}, differences over {s.mu:.3g}, "
            f"{s.forwards} forward passes, {s.undone} steps undone, {s.skipped} skipped"
        )

    def __repr__(self) -> str:
        s = self.now
        return (
            f"Poem({self.layout.dimension} parameters, {self.engine.q} directions, step {s.t}, "
            f"{s.forwards} forward passes, loss {s.watch.value:.4g}, {s.undone} undone, {s.skipped} skipped)"
        )
