"""The same numbers as the NumPy core: POEM with the same directions, and the averages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import poem_cma as pc
from poem_cma.torch import Poem, philox
from poem_cma.torch.state import Point

D, SEED, STEPS = 37, 12, 60


def unit_signs(number: int) -> np.ndarray:
    """Direction `number`, as Poem makes it for one tensor named w."""
    call, word = divmod(number, 4)
    words = philox.words(philox.address_of("w"), 0, D, call, philox.SIGNS, SEED, torch.device("cpu"))
    return (2.0 * philox.bits(words[word], 0, D).numpy() - 1.0) / np.sqrt(D)


@dataclass(frozen=True)
class SignSearch:
    """A search of the core that takes its directions from unit_signs: normal numbers only say which."""

    order: dict[float, int]
    width: int = D
    dimension: float = D
    reach: float = 1.0
    gain: float = D

    def directions(self, Z: np.ndarray) -> np.ndarray:
        V = np.empty_like(Z)
        for place in np.ndindex(Z.shape[:-1]):
            number = self.order.setdefault(float(Z[(*place, 0)]), len(self.order))
            V[place] = unit_signs(4 * number)  # Poem starts each step at a multiple of four
        return V

    def reshaped(self, V: np.ndarray) -> np.ndarray:
        return V


def test_poem_makes_the_steps_of_the_core() -> None:
    rng = np.random.default_rng(0)
    A, x0 = rng.normal(size=(60, D)), rng.normal(size=D)
    b = A @ rng.normal(size=D)

    def value(x: Any) -> Any:
        return abs(A @ x - b).mean()

    search = SignSearch({})
    method = replace(pc.methods.poem(), search=lambda d, domain: search)
    core = pc.minimize(value, x0, method=method, budget=2 * STEPS, seed=0, evaluate=0)

    p = nn.Parameter(torch.tensor(x0))
    At, bt = torch.tensor(A), torch.tensor(b)
    opt = Poem([("w", p)], directions=1, scale="distance", seed=SEED, average="same")
    for _ in range(STEPS):
        opt.step(lambda: (At @ p - bt).abs().mean())
    assert opt.now.forwards == core.nfev == 2 * STEPS
    np.testing.assert_allclose(p.detach().numpy(), core.x_last, rtol=1e-9)
    assert float(np.linalg.norm(core.x_last - x0)) > 0.02
    with opt.averaged():
        np.testing.assert_allclose(p.detach().numpy(), core.x_average, rtol=1e-9)
    assert opt.now.eta == pytest.approx(float(core.history["step_size"][-1]), rel=1e-9)


@pytest.mark.parametrize("shape", [None, (0.5, 1.5)])
def test_forward_differences_are_unbiased_for_a_linear_function(shape: tuple[float, float] | None) -> None:
    """The mean of g is the gradient: also of directions that are shaped by tensor, whatever the shape."""
    rng = np.random.default_rng(1)
    slope = torch.tensor(rng.normal(size=D))
    parts = [
        ("a", nn.Parameter(torch.zeros(20, dtype=torch.float64))),
        ("b", nn.Parameter(torch.zeros(D - 20).double())),
    ]
    total, squares, n = torch.zeros(D, dtype=torch.float64), torch.zeros(D, dtype=torch.float64), 1500
    opt = Poem(parts, directions=8, seed=3, average=None, shaped=shape is not None)
    if shape is not None:
        mean = ((20 * shape[0] ** 2 + (D - 20) * shape[1] ** 2) / D) ** 0.5
        even = opt.now.allocation
        assert even is not None
        opt.now = opt.now._replace(allocation=even._replace(shape=(shape[0] / mean, shape[1] / mean)))

    def work() -> torch.Tensor:
        return torch.cat([b.work for b in opt.layout.blocks])

    begin = opt.now
    for k in range(n):
        s = begin._replace(number=8 * k, r_bar=1.0)

        def evaluate(points: list[Point]) -> list[float]:
            out = []
            for point in points:
                opt._write(point, None)
                out.append(float(work() @ slope))
            return out

        after, move = opt.engine.step(s, evaluate)
        assert move is not None
        opt._write(move, None)
        g = -work() / after.eta
        total += g
        squares += g**2
    z = (total / n - slope) / ((squares / n - (total / n) ** 2) / n).sqrt()
    assert z.abs().max() < 4.5
    assert float((z**2).sum()) < D + 5 * (2 * D) ** 0.5
