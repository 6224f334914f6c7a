"""Many runs at once, as the quality of `poem_cma.torch` is measured on a GPU, make the steps of `Poem`."""

from __future__ import annotations

import pathlib
import sys
from math import sqrt

import pytest
import torch

from poem_cma.torch import Poem, philox

pytest.importorskip("sklearn", reason="the tasks are on scikit-learn's data")
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benchmarks"))
import torch_many
import torch_tasks

SEEDS, STEPS = (5, 8), 6
OPTIONS = [{}, {"directions": 1}, {"directions": 4, "shaped": True}, {"directions": 1, "scale": "distance"}]


def directions_of(opt: Poem, first: int, count: int) -> torch.Tensor:
    """What Poem makes for these numbers, as rows."""
    rows = []
    for number in range(first, first + count):
        call, word = divmod(number, 4)
        parts = []
        for b in opt.layout.blocks:
            words = philox.words(b.address, 0, b.x.numel(), call, philox.SIGNS, opt.seed, torch.device("cpu"))
            parts.append((2.0 * philox.bits(words[word], 0, b.x.numel()) - 1.0) * b.scale)
        rows.append(torch.cat(parts) / sqrt(opt.layout.dimension))
    return torch.stack(rows)


@pytest.mark.parametrize("options", OPTIONS)
def test_with_the_same_directions_the_weights_are_the_same(options: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [torch_tasks.make("wine", s) for s in SEEDS]
    pairs = list(zip(tasks, SEEDS, strict=True))
    alone = [Poem(t.model.named_parameters(), seed=s, average=None, **options) for t, s in pairs]
    many = torch_many.Steps("wine", [(options, s) for s in SEEDS], "cpu")
    drawn = many._make_directions

    def philox_instead(active: list[int]) -> None:
        drawn(active)  # presence by tensor, and the slots
        for r in active:
            first, q = many.now[r].number, 8  # as many as the first step looks at
            slots = [(first + j) % many.slots for j in range(q)]
            here = (many.directions[r, slots] != 0.0) * many.directions[r, slots].abs()  # lengths, and what is left out
            many.directions[r, slots] = here * directions_of(alone[r], first, q).sign()

    monkeypatch.setattr(many, "_make_directions", philox_instead)
    draws = [t.batches(100 + s) for t, s in pairs]
    with torch.no_grad():
        for _ in range(STEPS):
            many.advance([0, 1])
            for opt, draw in zip(alone, draws, strict=True):
                opt.step(draw())
    for r, opt in enumerate(alone):
        assert many.spent(r) == opt.now.forwards
        row = torch.cat([b.x for b in opt.layout.blocks])
        moved = row - torch.cat([b.x for b in many.fleet.optimizers[SEEDS[r]].layout.blocks])
        apart = many.fleet.x[r] - row  # losses are rounded, and slopes divide them by a small radius
        assert apart.norm() < 2e-3 * moved.norm()


def test_an_unrolled_gru_is_a_gru() -> None:
    torch.manual_seed(0)
    gru, x = torch.nn.GRU(8, 5, batch_first=True), torch.randn(3, 8, 8)
    expected = gru(x)[0]
    torch.testing.assert_close(torch_many.Unrolled(gru)(x)[0], expected, rtol=1e-5, atol=1e-6)
