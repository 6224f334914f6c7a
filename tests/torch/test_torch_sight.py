"""The distance of differences goes to where the loss can be seen, and losses do not rise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch_helpers import data, loss_of, network

from poem_cma.torch import Poem, sight, watch

D = 400


def regressed(noise: float, curvature: float, mu: float, n: int = 4000) -> sight.Sight:
    """What tests say of slopes N(0, 1), values with independent noise, and curvatures N(0, curvature²)."""
    rng = np.random.default_rng(0)
    s, c = rng.normal(size=n), curvature * rng.normal(size=n)
    base, near, far = noise * rng.normal(size=(3, n))
    k = sight.FAR
    short = s + c * mu + (near - base) / mu
    long = s + c * k * mu + (far - base) / (k * mu)
    return sight.told(sight.Sight(), short.tolist(), long.tolist())


@pytest.mark.parametrize(
    ("noise", "curvature", "wish"), [(0.0, 0.0, 0), (0.0, 0.1, 0), (0.1, 0.0, 0), (1.0, 0.0, 1), (0.0, 3.0, -1)]
)
def test_noise_asks_for_longer_differences_and_curvature_for_shorter_ones(
    noise: float, curvature: float, wish: int
) -> None:
    assert sight.wish(regressed(noise, curvature, 1.0)) == wish


@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_the_share_of_the_signal_is_that_of_the_variances(noise: float) -> None:
    assert sight.share(regressed(noise, 0.0, 1.0)) == pytest.approx(1.0 / (1.0 + 2.0 * noise**2), abs=0.06)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_change_of_the_distance_changes_what_is_known_as_other_tests_would(factor: float) -> None:
    there, moved = regressed(0.5, 0.3, factor), sight.changed(regressed(0.5, 0.3, 1.0), factor)
    for name in ("near", "both", "far"):
        assert getattr(moved, name) == pytest.approx(getattr(there, name), rel=0.15)


def test_slopes_of_nothing_ask_for_longer_differences() -> None:
    assert sight.wish(sight.told(sight.Sight(), [0.0], [0.0])) == 1
    assert sight.share(sight.told(sight.Sight(), [0.0], [0.0])) == 1.0
    assert sight.share(regressed(100.0, 0.0, 1.0)) == 0.0
    assert sight.told(sight.Sight(), [float("nan")], [1.0]) == sight.Sight(tests=1)


def test_one_pass_in_twenty_serves_tests() -> None:
    model = network()
    opt = Poem(model, seed=0, average=None)
    closure = loss_of(model, *data())
    for _ in range(60):
        opt.step(closure)
    tests = opt.now.sight.tests - 1  # the first one is the scan
    assert tests == pytest.approx(opt.now.forwards / 20, abs=2)


@pytest.mark.parametrize("roughness", [1e-6, 1e-3])
def test_a_rounded_quadratic_falls(roughness: float) -> None:
    p = nn.Parameter(torch.full((D,), 1.0, dtype=torch.float64))
    opt = Poem([p], seed=1, average=None)

    def closure() -> torch.Tensor:
        return torch.round(0.5 * ((p - 0.9) ** 2).sum() / roughness) * roughness

    first = float(opt.step(closure))
    for _ in range(300):
        last = float(opt.step(closure))
    assert last < 0.05 * first


@pytest.mark.parametrize("roughness", [1e-9, 1e-3, 0.03, 0.3])
def test_differences_are_as_long_as_it_takes_to_see_the_loss(roughness: float) -> None:
    """A linear loss rounded to steps: a typical difference is at least about one of them, however high they are."""
    p = nn.Parameter(torch.ones(D, dtype=torch.float64))
    w = torch.randn(D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    opt = Poem([p], seed=1, average=None)
    opt.step(lambda: torch.round(w @ p / roughness) * roughness)
    slope = float(w.norm()) / D**0.5
    assert opt.now.mu * slope > 0.4 * roughness
    assert opt.now.mu <= max(0.02, 10.0 * roughness / slope)  # and no longer than that asks for


RNG = np.random.default_rng(5)
ROUGH: dict[str, Callable[[Callable[[], torch.Tensor]], object]] = {
    "noise alone": lambda loss: float(RNG.normal()),
    "loud noise": lambda loss: float(loss()) + float(RNG.normal()),
    "three digits": lambda loss: float(f"{float(loss()):.3g}"),
    "two digits": lambda loss: float(f"{float(loss()):.2g}"),
}


def autocast(loss: Callable[[], torch.Tensor]) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return loss()


ROUGH["autocast"] = autocast


@pytest.mark.parametrize("kind", ROUGH)
@pytest.mark.parametrize("seed", range(3))
def test_no_run_ends_above_its_first_loss(kind: str, seed: int) -> None:
    """From weights that know something already: a run that only drifts would lose it."""
    model = network(seed)
    x, y = data(n=600, seed=seed)
    whole = loss_of(model, x, y)
    adam = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(20):
        adam.zero_grad()
        whole().backward()
        adam.step()
    with torch.no_grad():
        first = float(whole())
    opt = Poem(model, seed=seed, average=None)
    rng = torch.Generator().manual_seed(seed)
    while opt.now.forwards < 1500:
        i = torch.randint(len(x), (64,), generator=rng)
        opt.step(lambda i=i: ROUGH[kind](loss_of(model, x[i], y[i])))
    with torch.no_grad():
        last = float(whole())
    assert last < first + (0.01 if "noise" in kind else -0.1)


@pytest.mark.parametrize("seed", range(5))
def test_a_small_batch_that_can_be_learned_for_ever_leads_nowhere_far(seed: int) -> None:
    """Eight examples of a linear problem: their loss falls as far as one likes to go."""
    torch.manual_seed(seed)
    model, rng = nn.Linear(4, 2), torch.Generator().manual_seed(seed)
    x = torch.randn(60, 4, generator=rng)
    whole = loss_of(model, x, (x[:, 0] + 0.5 * torch.randn(60, generator=rng) > 0.0).long())
    y = (x[:, 0] > 0.0).long()
    with torch.no_grad():
        first = float(whole())
    opt = Poem(model, seed=seed, average=None)
    for _ in range(100):
        i = torch.randint(60, (8,), generator=rng)
        opt.step(loss_of(model, x[i], y[i]))
        with torch.no_grad():
            assert float(whole()) < first + 0.5


@pytest.mark.parametrize(("labels", "size", "most"), [("random", 8, 0.015), ("true", 2, 0.013)])
def test_from_weights_that_cannot_be_improved_the_loss_rises_little(labels: str, size: int, most: float) -> None:
    """Batches that have little in common: each can be fitted by itself, and all of them cannot."""
    highest = []
    for seed in range(10):
        model, rng = network(seed), torch.Generator().manual_seed(seed)
        x, y = data(n=600, seed=seed)

        def uniform(model: nn.Module = model, x: torch.Tensor = x) -> torch.Tensor:
            return -torch.log_softmax(model(x), 1).mean()

        whole = uniform if labels == "random" else loss_of(model, x, y)
        adam = torch.optim.Adam(model.parameters(), 1e-2)
        for _ in range(400):
            adam.zero_grad()
            whole().backward()
            adam.step()
        losses = [float(whole().detach())]
        opt = Poem(model, seed=seed, average=None)
        while opt.now.forwards < 700:
            i = torch.randint(len(x), (size,), generator=rng)
            opt.step(loss_of(model, x[i], y[i] if labels == "true" else torch.randint(3, (size,), generator=rng)))
            losses.append(float(whole().detach()))
        highest.append(max(losses) - losses[0])
    assert sum(highest) / len(highest) < most


def watched(losses: np.ndarray) -> list[int]:
    """How many steps each loss asks to go back."""
    w, asked = watch.Watch(), []
    for loss in losses:
        w = watch.seen(w, float(loss))
        asked.append(watch.rising(w))
    return asked


def test_a_slow_rise_below_the_noise_of_a_batch_is_seen_and_noise_is_not() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(40, 600))
    assert sum(any(watched(row)) for row in noise) <= 1  # some hundred comparisons each
    rises = noise + 0.01 * np.arange(600)
    assert all(any(watched(row)) for row in rises)
    assert max(max(watched(row)) for row in rises) == watch.HELD
    assert not any(any(watched(row)) for row in noise - 0.01 * np.arange(600))


def test_a_run_that_rises_goes_back_to_where_it_was() -> None:
    """Steps away from the minimum, which every batch by itself calls steps down."""
    p = nn.Parameter(torch.zeros(D, dtype=torch.float64))
    opt = Poem([p], seed=0, average=None)
    rng, way = np.random.default_rng(0), []
    for _ in range(400):
        before = p.detach().clone()
        level = float(before.norm()) + 0.1 * rng.normal()
        u = torch.tensor(rng.normal(size=D)) / D**0.5
        opt.step(lambda before=before, level=level, u=u: level + 5.0 * u @ (p - before))
        way.append(float(p.detach().norm()))
        if opt.now.undone >= 16:
            break
    assert opt.now.undone >= 16
    assert way[-1] < max(way)
