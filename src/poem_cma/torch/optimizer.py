"""`Poem`: train a network with forward passes alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import sqrt
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from poem_cma.randomness import make_seed
from poem_cma.torch import passes
from poem_cma.torch.allocation import Allocation, presence
from poem_cma.torch.average import EVERY, Average, decayed
from poem_cma.torch.engine import Engine, Move, Point, State
from poem_cma.torch.layout import Layout
from poem_cma.torch.log import Log
from poem_cma.torch.probing import Closure, Probing
from poem_cma.torch.ranks import Ranks

__all__ = ["Poem", "replay"]

_VECTORS = 0.5
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Poem(Optimizer):
    """Train with forward passes: no backward pass, no learning rate, no perturbation size.

    One step, on one batch: the losses at x and at x + mu v_j along q random directions of signs give slopes, and
    g = d/q sum_j slope_j v_j. One more loss, a little beyond the last step, says on a batch that step has not seen
    whether it was too short or too long, and the scale R follows. Then x moves by -R / sqrt(G) g, where G is the sum of
    all squared gradients. A step that turns out to have led up is taken back.

    The weights are never perturbed: probes are made in a second buffer, which the module's parameters point to while
    the closure runs. Directions are never stored: they are made again from their numbers.

    Parameters
    ----------
    params : iterable
        As for every optimizer: parameters, pairs of name and parameter (preferred: directions then depend on names, not
        on the order), or groups of either. A group's ``scale`` says how far its tensors move compared with the others.
        Parameters with ``requires_grad=False`` are left alone.
    directions : int
        From 1 to 8. One takes a central pair (two passes a step and the least memory traffic); more use forward
        differences from one base: q slopes for q + 1 passes.
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
    >>> opt = Poem(model.named_parameters(), seed=0)
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
        params: Iterable[Any],
        *,
        directions: int = 4,
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
        super().__init__(params, {"scale": 1.0})
        self.layout = layout = Layout(_named(self.param_groups))
        _shape(layout, scale == "values")
        self.module = module
        device = layout.blocks[0].x.device
        squares = [_norm(b.x) ** 2 for b in layout.blocks]
        epsilon = max(torch.finfo(b.x.dtype).eps for b in layout.blocks)
        self.ranks = Ranks(group, device)
        self.seed = self.ranks.agree(make_seed(seed) & (1 << 63) - 1, squares)
        self.engine = Engine(layout.dimension, sqrt(sum(squares)), directions, scale == "values", epsilon)
        allocation = Allocation.even([b.x.numel() for b in layout.blocks], self.seed) if shaped else None
        self.now: State = self.engine.begin(allocation)
        self.log = Log(self.seed, layout.dimension)
        self.average = _average(average, layout)
        self.x0 = [b.x.clone() for b in layout.blocks] if scale == "distance" else None
        self.weights = 0.0  # of the averaged iterates, with scale="distance"

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
        probing = Probing(closure, {b.x.device for b in self.layout.blocks}, buffers)
        asked: list[float] = []

        def evaluate(points: Sequence[Point]) -> list[float]:
            losses = []
            with self.layout.elsewhere():
                for point in points:
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
        if move is not None:
            if self.x0 is not None:
                self._average_by_distance()
            self._write(move, number)
            if self.x0 is not None:
                state = self.engine.arrived(state, self._distance())
        if self.average is not None and self.x0 is None and (number + 1) % EVERY == 0:
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

    # POEM: the distance from the first weights

    def _distance(self) -> float:
        assert self.x0 is not None
        return sqrt(sum(_norm(b.x - x0) ** 2 for b, x0 in zip(self.layout.blocks, self.x0, strict=True)))

    def _average_by_distance(self) -> None:
        """x̄_{t+1} weighs x_t by r̄_t."""
        weight = self.engine.weight(self.now)
        self.weights += weight
        if self.average is not None:
            self.average.add(weight / self.weights, len(self.log.steps), self.seed)

    # What to use, keep and restore

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
        return super().state_dict() | {
            "poem": {
                "seed": self.seed,
                "size": self.engine.size,
                "now": _plain(self.now),
                "log": self.log.to_bytes(),
                "weights": self.weights,
                "average": None if self.average is None else self.average.tensors,
                "x0": self.x0,
            }
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, in an optimizer made with the same arguments."""
        saved = state_dict.get("poem")
        if saved is None:
            raise ValueError("this state_dict was not made by Poem")
        log = Log.from_bytes(saved["log"])
        if log.dimension != self.layout.dimension:
            raise ValueError(f"saved with {log.dimension} parameters, but there are {self.layout.dimension}")
        if (saved["average"] is None) != (self.average is None) or (saved["x0"] is None) != (self.x0 is None):
            raise ValueError("saved with other settings of average or scale; make the optimizer as it was made then")
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "poem"})
        self.seed, self.log, self.weights = int(saved["seed"]), log, float(saved["weights"])
        self.engine = self.engine.restored(float(saved["size"]))
        self.now = _state(saved["now"])
        if self.average is not None:
            self.average.load(saved["average"])
        if self.x0 is not None:
            for mine, kept in zip(self.x0, saved["x0"], strict=True):
                mine.copy_(kept)

    def memory(self) -> dict[str, int]:
        """Bytes held beyond the model itself, by what they are for."""
        return {
            "probes": self.layout.bytes,
            "average": 0 if self.average is None else self.average.bytes,
            "x0": 0 if self.x0 is None else sum(t.nbytes for t in self.x0),
        }

    def __repr__(self) -> str:
        s = self.now
        return (
            f"Poem({self.layout.dimension} parameters, {self.engine.q} directions, step {s.t}, "
            f"{s.forwards} forward passes, loss {s.value:.4g}, {s.undone} undone, {s.skipped} skipped)"
        )


@torch.no_grad()
def replay(opt: Poem, log: Log, progress: Callable[[int, int], None] | None = None) -> None:
    """Bring a fresh optimizer, at the first weights, to where the log ends, without a forward pass.

    Parameters
    ----------
    opt : Poem
        Made with the same arguments, over the weights that the run began with; or behind the log on the same run.
    log : Log
        `opt.log` of the run to follow.
    progress : callable, optional
        Called with the number of steps done and their total.
    """
    if log.dimension != opt.layout.dimension:
        raise ValueError(f"the log is of {log.dimension} parameters, but there are {opt.layout.dimension}")
    done = len(opt.log.steps)
    if done and opt.seed != log.seed:
        raise ValueError("the log is of another run: its seed differs")
    if done == 0:
        opt.seed = opt.log.seed = log.seed
        if opt.now.allocation is not None:
            opt.now = opt.now._replace(allocation=opt.now.allocation._replace(seed=log.seed))
    for number, values in enumerate(log.steps[done:], start=done):
        left = list(values)

        def told(points: Sequence[Point], left: list[float] = left, number: int = number) -> list[float]:
            if len(points) > len(left):
                raise ValueError(f"step {number} of the log does not fit: was the optimizer made with other arguments?")
            taken, left[:] = left[: len(points)], left[len(points) :]
            return taken

        state, move = opt.engine.step(opt.now, told)
        if left:
            raise ValueError(f"step {number} of the log does not fit: was the optimizer made with other arguments?")
        opt._make(state, move)
        opt.log.steps.append(list(values))
        if progress is not None:
            progress(number + 1, len(log.steps))


def _named(groups: list[dict[str, Any]]) -> Iterator[tuple[str, nn.Parameter, float]]:
    """Names as given, or the parameters' numbers."""
    number = 0
    for group in groups:
        scale = group["scale"]
        if not isinstance(scale, int | float) or not 0.0 < scale < float("inf"):
            raise ValueError(f"a group's scale must be a positive number, not {scale!r}")
        names = group.get("param_names")
        for i, p in enumerate(group["params"]):
            yield (names[i] if names else f"#{number}"), p, float(scale)
            number += 1


def _norm(x: Tensor) -> float:
    """In float32 at least."""
    wide = torch.float64 if x.dtype is torch.float64 else torch.float32
    return float(torch.linalg.vector_norm(x, dtype=wide))


def _shape(layout: Layout, prior: bool) -> None:
    """How far each tensor moves: as its group says, and biases and norms half as far as matrices."""
    matrices = any(b.home.dim() > 1 for b in layout.blocks)
    for b in layout.blocks:
        b.scale *= _VECTORS if prior and matrices and b.home.dim() <= 1 else 1.0
    mean = sqrt(sum(b.scale**2 * b.x.numel() for b in layout.blocks) / layout.dimension)
    for b in layout.blocks:
        b.scale /= mean  # directions keep their length


def _average(where: str | None, layout: Layout) -> Average | None:
    if where is None:
        return None
    kind, at, place = where.partition("@")
    if (at and place != "cpu") or (kind != "same" and kind not in _DTYPES):
        raise ValueError(
            f'average must be None, "same", "float32", "bfloat16" or "float16", or one with "@cpu"; not {where!r}'
        )
    return Average(layout, _DTYPES.get(kind), torch.device("cpu") if at else None)


def _plain(s: State) -> dict[str, Any]:
    """The state in numbers, lists and dictionaries."""
    kept = s._asdict()
    kept["moves"] = [[m.point.first, list(m.point.coefficients), list(m.point.shape), m.fall] for m in s.moves]
    a = s.allocation
    kept["allocation"] = (
        None if a is None else {k: list(v) if isinstance(v, tuple) else v for k, v in a._asdict().items()}
    )
    return kept


def _state(kept: dict[str, Any]) -> State:
    moves = tuple(Move(Point(first, tuple(c), tuple(shape)), fall) for first, c, shape, fall in kept["moves"])
    a = kept["allocation"]
    known: dict[str, Any] = {} if a is None else {k: tuple(v) if isinstance(v, list) else v for k, v in a.items()}
    allocation = Allocation(**known) if known else None
    return State(**{**kept, "moves": moves, "allocation": allocation})
