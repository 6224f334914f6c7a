"""Runs of `torch_quality.py --device cuda`: many at once, as one batch of networks.

`Poem`'s engine makes every step of every run. Only the directions come from another generator, and the weights of all
runs are the rows of one tensor; no averages are kept.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np
import torch
import torch_tasks
from torch import Tensor, nn
from torch.func import functional_call, vmap

from poem_cma.torch import Poem, engine, optimizer, scale, sight, watch
from poem_cma.torch.allocation import presence
from poem_cma.torch.state import Point, State

_CHUNK = {"cpu": 32, "cuda": 2048}  # networks evaluated together
_EXAMPLES = 64 * 2048  # and examples
_PRETRAINED = "finetune", "lora", "inverted"  # dear to prepare: few seeds to a process
EVERY = 100  # forward passes between two looks at the loss


class Runs(NamedTuple):
    """Some runs of one task."""

    kind: str  # poem or mezo
    task: str
    each: list[tuple[dict[str, Any], int]]  # options and seed
    target: float
    longest: int
    device: str


def split(jobs: Iterable[tuple[str, str, dict[str, Any], int]]) -> dict[tuple[str, ...], list[Any]]:
    """Jobs (kind, task, options, seed) in portions for one process each: by task, by number of directions, by seed."""
    portions: dict[tuple[str, ...], list[Any]] = {}
    for kind, task, options, seed in jobs:
        part = seed // 2 if task in _PRETRAINED else seed % 2
        portions.setdefault((kind, task, f"{options.get('directions')} {part}"), []).append((options, seed))
    return portions


@contextmanager
def changed(constants: dict[str, Any]) -> Iterator[None]:
    """While this lasts, constants of the step have other values."""
    of = {k: next(room for room in (scale, sight, watch, engine, optimizer) if hasattr(room, k)) for k in constants}
    usual = {k: getattr(of[k], k) for k in constants}
    for k, v in constants.items():
        setattr(of[k], k, v)
    try:
        yield
    finally:
        for k, v in usual.items():
            setattr(of[k], k, v)


class Unrolled(nn.Module):
    """What nn.GRU does, in operations that a batch of networks can share."""

    def __init__(self, gru: nn.GRU) -> None:
        super().__init__()
        for name, p in gru.named_parameters():
            setattr(self, name, p)

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        state = torch.zeros_like(x[:, 0] @ self.weight_ih_l0.T[:, : self.weight_hh_l0.shape[1]])
        states = []
        for row in x.unbind(1):
            given = nn.functional.linear(row, self.weight_ih_l0, self.bias_ih_l0).chunk(3, 1)
            kept = nn.functional.linear(state, self.weight_hh_l0, self.bias_hh_l0).chunk(3, 1)
            reset, update = (torch.sigmoid(a + b) for a, b in zip(given[:2], kept[:2], strict=True))
            state = (1 - update) * torch.tanh(given[2] + reset * kept[2]) + update * state
            states.append(state)
        return torch.stack(states, 1), None


class Fleet:
    """Networks of one task, one for each run; the weights that are searched are the rows of `x`."""

    def __init__(self, name: str, seeds: Sequence[int], device: str) -> None:
        self.device = device
        tasks = {s: torch_tasks.make(name, s) for s in sorted(set(seeds))}
        for task in tasks.values():
            if name == "gru":
                task.model.gru = Unrolled(task.model.gru)  # type: ignore[assignment, arg-type]
        self.optimizers = {s: Poem(task.model.named_parameters(), seed=s) for s, task in tasks.items()}
        self.model = copy.deepcopy(tasks[seeds[0]].model).to(device)
        blocks = self.optimizers[seeds[0]].layout.blocks
        self.shapes = [(b.name, b.home.shape) for b in blocks]
        rows = {s: torch.cat([b.home.flatten() for b in o.layout.blocks]) for s, o in self.optimizers.items()}
        self.x = torch.stack([rows[s] for s in seeds]).to(device)
        self.d = self.x.shape[1]
        self.block = torch.repeat_interleave(torch.tensor([s.numel() for _, s in self.shapes])).to(device)
        searched = {n for n, _ in self.shapes}
        others = {s: dict(t.model.named_parameters()) for s, t in tasks.items()}
        self.frozen = {
            n: torch.stack([others[s][n].detach() for s in seeds]).to(device)
            for n in others[seeds[0]] if n not in searched
        }  # fmt: skip
        self.inputs, self.labels = tasks[seeds[0]].inputs.to(device), tasks[seeds[0]].labels.to(device)
        self.generators = [torch.Generator().manual_seed(100 + s) for s in seeds]

    def draw(self, runs: Sequence[int]) -> Tensor:
        """The next batch of each run: the numbers of its examples."""
        n = len(self.inputs)
        return torch.stack([torch.randint(n, (torch_tasks.BATCH,), generator=self.generators[r]) for r in runs])

    def losses(self, w: Tensor, runs: Tensor, examples: Tensor | None) -> Tensor:
        """Of networks `w` on the given examples of each, or on all."""
        size = len(self.inputs) if examples is None else examples.shape[1]
        chunk = max(1, min(_CHUNK[self.device], _EXAMPLES // size))
        parts = []
        for start in range(0, len(w), chunk):
            some = slice(start, start + chunk)
            weights, at = {}, 0
            for name, shape in self.shapes:
                weights[name] = w[some, at : at + shape.numel()].view(-1, *shape)
                at += shape.numel()
            weights |= {n: p[runs[some]] for n, p in self.frozen.items()}
            x = self.inputs if examples is None else self.inputs[examples[some]]
            y = self.labels if examples is None else self.labels[examples[some]]
            along = None if examples is None else 0
            parts.append(vmap(self.loss, in_dims=(0, along, along))(weights, x, y))
        return torch.cat(parts)

    def loss(self, weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return torch_tasks.fit(functional_call(self.model, weights, (x,)), y)


class Asked(Exception):  # noqa: N818
    """Values that a step needs and has not got."""

    def __init__(self, points: Sequence[Point]) -> None:
        self.points = points


class Steps:
    """All runs of Poem, in step."""

    def __init__(self, name: str, jobs: Sequence[tuple[dict[str, Any], int]], device: str) -> None:
        self.fleet = fleet = Fleet(name, [seed for _, seed in jobs], device)
        self.constants, self.dual, self.engines, self.now, scales = [], [], [], [], []
        for options, seed in jobs:
            options = dict(options)
            self.constants.append(options.pop("constants", {}))
            self.dual.append(options.pop("dual", False))
            parameters = [(b.name, b.parameters[0]) for b in fleet.optimizers[seed].layout.blocks]
            with changed(self.constants[-1]):
                opt = Poem(parameters, seed=seed, average=None, **options)
            self.engines.append(opt.engine)
            self.now.append(opt.now)
            scales.append([b.scale / sqrt(fleet.d) for b in opt.layout.blocks])
        self.scale = torch.tensor(scales, device=device)[:, fleet.block]
        self.x0 = fleet.x.clone() if any(self.dual) or any(not e.by_values for e in self.engines) else None
        self.shaped = any(s.allocation for s in self.now)
        self.slots = engine._SCAN * 3  # the last step's directions, and those of this one
        self.passed: list[list[Tensor]] = [[] for _ in jobs]  # where the runs were before their last steps
        self.rng = torch.Generator(device).manual_seed(min(s for _, s in jobs))
        self.directions = torch.zeros(len(jobs), self.slots, fleet.d, device=device)

    def spent(self, r: int) -> int:
        """Forward passes."""
        return self.now[r].forwards

    def advance(self, active: list[int]) -> None:
        """One step of each active run."""
        fleet, device = self.fleet, self.fleet.device
        examples = fleet.draw(active).to(device)
        self._make_directions(active)
        known: dict[int, list[float]] = {r: [] for r in active}
        before = {r: self.now[r] for r in active}
        done: dict[int, Point | None] = {}
        place = {r: k for k, r in enumerate(active)}
        while len(done) < len(active):
            asked: dict[int, Sequence[Point]] = {}
            for r in active:
                if r not in done:
                    try:
                        self.now[r], done[r] = self._step(r, known[r])
                    except Asked as more:
                        asked[r] = more.points
            if asked:
                runs = [r for r, points in asked.items() for _ in points]
                which = torch.tensor(runs, device=device)
                w = fleet.x[which] + self._moves([p for points in asked.values() for p in points], runs, which)
                values = fleet.losses(w, which, examples[torch.tensor([place[r] for r in runs], device=device)])
                for r, value in zip(runs, values.tolist(), strict=True):
                    known[r].append(value)
        for r in active:
            if back := self.now[r].undone - before[r].undone:
                fleet.x[r] = self.passed[r][-back]
                del self.passed[r][-back:]
        moving = [r for r in active if done[r] is not None]
        for r in moving:
            if self.engines[r].by_values:
                self.passed[r].append(fleet.x[r].clone())
                del self.passed[r][: -watch.HELD]
        for r in moving:
            if self.dual[r] and (eta := before[r].eta) and self.now[r].undone == before[r].undone:
                # dual averaging: every gradient counts with the latest step size
                fleet.x[r] = self.x0[r] + self.now[r].eta / eta * (fleet.x[r] - self.x0[r])  # type: ignore[index]
        if moving:
            which = torch.tensor(moving, device=device)
            points = [p for r in moving if (p := done[r]) is not None]
            fleet.x[which] += self._moves(points, moving, which)
            if self.x0 is not None:
                far = torch.linalg.vector_norm(fleet.x - self.x0, dim=1).tolist()
                for r in moving:
                    if not self.engines[r].by_values:
                        self.now[r] = self.engines[r].arrived(self.now[r], far[r])

    def _step(self, r: int, known: list[float]) -> tuple[State, Point | None]:
        """A step is a function of the state and of values: it is made again when there are more of them."""
        left = list(known)

        def evaluate(points: Sequence[Point]) -> list[float]:
            if len(left) < len(points):
                raise Asked(points)
            taken, left[:] = left[: len(points)], left[len(points) :]
            return taken

        with changed(self.constants[r]):
            return self.engines[r].step(self.now[r], evaluate)

    def _make_directions(self, active: list[int]) -> None:
        q = max(engine._SCAN, *(self.engines[r].q for r in active))  # a scan may take more than a step
        fleet, device = self.fleet, self.fleet.device
        signs = torch.randint(0, 2, (len(active), q, fleet.d), generator=self.rng, device=device, dtype=torch.int8)
        v = (2.0 * signs - 1.0) * self.scale[active, None]
        if self.shaped:
            for k, r in enumerate(active):
                if (a := self.now[r].allocation) is not None:
                    present = torch.from_numpy(presence(self.now[r].number, q, len(a.sizes), a.seed)).to(device)
                    v[k] *= sqrt(2.0) * present[:, fleet.block]
        slots = torch.tensor([[(self.now[r].number + j) % self.slots for j in range(q)] for r in active], device=device)
        self.directions[torch.tensor(active, device=device)[:, None], slots] = v

    def _moves(self, points: Sequence[Point], runs: Sequence[int], which: Tensor) -> Tensor:
        """sum_j c_j v_j of each point."""
        some = sorted(set(runs))
        back = {r: k for k, r in enumerate(some)}
        count = [0] * len(some)
        rows = np.empty((len(runs), 2), dtype=np.int64)
        for i, r in enumerate(runs):
            k = back[r]
            rows[i] = k, count[k]
            count[k] += 1
        c = np.zeros((len(some), max(count), self.slots), dtype=np.float32)
        for p, (k, n) in zip(points, rows, strict=True):
            for j, coefficient in enumerate(p.coefficients):
                c[k, n, (p.first + j) % self.slots] = coefficient
        directions = self.directions if len(some) == len(self.now) else self.directions[some]
        total = torch.bmm(torch.from_numpy(c).to(which.device), directions)
        moves = total[tuple(torch.from_numpy(rows).to(which.device).T)]
        if self.shaped and any(p.shape for p in points):
            even = (1.0,) * len(self.fleet.shapes)
            shapes = torch.tensor([p.shape or even for p in points], device=which.device)
            moves *= shapes[:, self.fleet.block]
        return moves


class Pairs:
    """All runs of MeZO, in step."""

    def __init__(self, name: str, jobs: Sequence[tuple[dict[str, Any], int]], device: str) -> None:
        self.fleet = Fleet(name, [seed for _, seed in jobs], device)
        self.rng = torch.Generator(device).manual_seed(min(s for _, s in jobs))
        self.rate = torch.tensor([o["rate"] for o, _ in jobs], device=device)[:, None]
        self.epsilon = torch.tensor([o["epsilon"] for o, _ in jobs], device=device)[:, None]
        self.steps = [0] * len(jobs)

    def spent(self, r: int) -> int:
        """Forward passes."""
        return 2 * self.steps[r]

    def advance(self, active: list[int]) -> None:
        """One step of each active run."""
        for r in active:
            self.steps[r] += 1
        fleet, device = self.fleet, self.fleet.device
        which = torch.tensor(active, device=device)
        examples = fleet.draw(active).to(device)
        z = torch.randn(len(active), fleet.d, generator=self.rng, device=device)
        x, e = fleet.x[which], self.epsilon[which]
        plus, minus = (fleet.losses(x + sign * e * z, which, examples) for sign in (1.0, -1.0))
        fleet.x[which] = x - self.rate[which] * ((plus - minus)[:, None] / (2.0 * e)) * z


def run(runs: Runs) -> list[dict[str, Any]]:
    """The curves (forward passes, loss), with what `torch_quality.run` says of a run."""
    torch.set_num_threads(1)
    all_ = (Steps if runs.kind == "poem" else Pairs)(runs.task, runs.each, runs.device)
    fleet, curves = all_.fleet, [[] for _ in runs.each]  # type: ignore[var-annotated]
    look = [EVERY] * len(curves)
    active = list(range(len(curves)))
    while active:
        with torch.no_grad():
            all_.advance(active)
            due = [r for r in active if all_.spent(r) >= look[r]]
            which = torch.tensor(due, dtype=torch.int64, device=runs.device)
            losses = fleet.losses(fleet.x[which], which, None).tolist() if due else []
        for r, loss in zip(due, losses, strict=True):
            look[r] += EVERY
            curves[r].append((all_.spent(r), loss))
            if not isfinite(loss) or loss > 1e4 or loss <= runs.target or all_.spent(r) >= runs.longest:
                active.remove(r)
    return [
        {"kind": runs.kind, "task": runs.task, "options": options, "seed": seed, "curve": curve}
        for (options, seed), curve in zip(runs.each, curves, strict=True)
    ]
