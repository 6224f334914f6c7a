"""It trains: losses fall without anything being set, scales are found, and shapes are learned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_helpers import data, loss_of, network

from poem_cma.torch import Poem, scale
from poem_cma.torch.allocation import Allocation, presence
from poem_cma.torch.state import Pace, Point, State


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("directions", [4, 8])
def test_the_scale_is_found_whatever_the_units(scale: float, directions: int) -> None:
    """A quadratic whose minimum is a thousandth of |x0|, or a thousand times it, away; F in any unit."""
    torch.manual_seed(0)
    target = torch.randn(50, dtype=torch.float64)
    for unit in (1e-6, 1e6):
        p = nn.Parameter(torch.ones(50, dtype=torch.float64))
        opt = Poem([p], directions=directions, seed=1, average=None)
        goal = 1.0 + scale * target

        def closure(p: nn.Parameter = p, goal: torch.Tensor = goal, unit: float = unit) -> torch.Tensor:
            return unit * ((p - goal) ** 2).sum()

        first = float(opt.step(closure))
        for _ in range(150):
            last = float(opt.step(closure))
        assert last < 1e-2 * first, (scale, unit)


@pytest.mark.parametrize(
    "options", [{}, {"directions": 4}, {"directions": 1}, {"shaped": True}, {"average": "float32"}]
)
def test_a_small_network_learns(options: dict) -> None:
    model = network()
    opt = Poem(model.named_parameters(), seed=0, **options)
    rng = torch.Generator().manual_seed(0)
    X, Y = data(n=400)
    whole = loss_of(model, X, Y)
    with torch.no_grad():
        first = float(whole())
    while opt.now.forwards < 1200:
        i = torch.randint(400, (64,), generator=rng)
        opt.step(loss_of(model, X[i], Y[i]))
    with torch.no_grad():
        assert float(whole()) < 0.7 * first
        if opt.average:
            with opt.averaged():
                assert float(whole()) < 0.7 * first


def test_low_precision_keeps_up_with_float32() -> None:
    ends = []
    for dtype in (torch.float32, torch.bfloat16):
        model = network(dtype=dtype)
        opt = Poem(model.named_parameters(), seed=0)
        X, Y = data(n=256, dtype=dtype)
        for _ in range(120):
            loss = float(opt.step(loss_of(model, X, Y)))
        ends.append(loss)
    assert ends[0] < 0.9
    assert ends[1] < ends[0] + 0.15


def test_a_step_that_leads_up_is_taken_back() -> None:
    p = nn.Parameter(torch.full((30,), 3.0))
    opt = Poem([p], seed=0, average=None)
    for _ in range(30):
        before = float(opt.step(lambda: (p**2).sum()))
    wide = opt.now.pace._replace(way=1e12)
    opt.now = opt.now._replace(r_bar=100 * opt.now.r_bar, pace=wide)  # something went very wrong, and nothing limits it
    for _ in range(60):
        last = opt.step(lambda: (p**2).sum())
    assert opt.now.undone > 0
    assert float(last) < 0.2 * before


def test_one_long_gradient_does_not_throw_the_weights_far() -> None:
    """A batch whose loss is a thousand times as steep as the others moves the weights about twice as far as they do."""
    p = nn.Parameter(torch.full((200,), 3.0))
    opt = Poem([p], seed=0, average=None)
    lengths = []
    for k in range(40):
        before = p.detach().clone()
        opt.step(lambda steep=1000.0 if k == 39 else 1.0: steep * p.sum())
        lengths.append(float((p.detach() - before).norm()))
    assert lengths[39] < 4.0 * max(lengths[29:39])


def test_no_step_is_longer_than_a_third_of_the_weights_and_the_way() -> None:
    p = nn.Parameter(torch.ones(10_000))
    opt = Poem([p], seed=0, average=None)
    opt.step(lambda: p.sum())  # the first step goes as far as the loss was seen to fall
    way = 1e4 + float((p.detach() - 1.0).norm()) ** 2
    for _ in range(60):
        before = p.detach().clone()
        opt.step(lambda: p.sum())  # falls for ever: the scale wants to grow
        length = float((p.detach() - before).norm())
        assert length <= 0.32 * way**0.5  # directions are all but orthogonal
        way += length**2
    assert way > 30 * 1e4  # it does grow


@pytest.mark.parametrize(
    ("change", "least", "most"),
    [
        (lambda r: 0.5 * r**2 - r, 4 / 3, 8 / 3),  # a quadratic: where the loss begins to rise, or twice as far
        (lambda r: np.exp(-r), 2.82, 5.65),  # falls for ever, but slower and slower
        (lambda r: 0.0, 1e-3, 1e-3),  # falls nowhere: the first radius
        (lambda r: float("nan"), 1e-3, 1e-3),
    ],
)
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_first_ray_ends_where_the_loss_stops_to_fall_as_it_did(
    change: Callable[[float], float], least: float, most: float, unit: float
) -> None:
    g = Point(0, (0.6, 0.8))
    s = scale.first(State(mu=1e-3), g, unit * change(0.0), lambda points: [unit * change(points[0].length)])
    assert 0.999 * least <= scale._PROOF * s.r_bar <= 1.001 * most


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.floats(1e-3, 1e3), st.integers(0, 30))
def test_while_it_settles_a_longer_sum_of_gradients_does_not_shrink_the_step(
    r_bar: float, G: float, length: float, t: int
) -> None:
    """R / sqrt(G) stays as the looks left it for ten steps; later it shrinks as in POEM."""
    s = scale.settled(State(t=t, r_bar=r_bar, G=G), Point(0, (length,)))
    after = s.r_bar / (G + length**2) ** 0.5
    if t < 10:
        assert after == pytest.approx(r_bar / G**0.5)
    else:
        assert s.r_bar == r_bar
    assert scale.settled(State(r_bar=r_bar), Point(0, (length,))).r_bar == r_bar  # before the first step


@settings(max_examples=100, deadline=None)
@given(st.floats(0.05, 1.0), st.floats(1e-3, 1e3), st.sampled_from([-1.0, 1.0]), st.integers(1, 9))
def test_while_it_settles_steps_are_kept_up_as_far_as_looks_agree_that_they_lead_down(
    agreed: float, length: float, sign: float, t: int
) -> None:
    """Between the two: the shrinking of POEM, and none. A mean slope up counts as no agreement."""
    s = State(t=t, r_bar=2.0, G=3.0, pace=Pace(looks=4, mean=sign * agreed**0.5, square=1.0))
    grown = 1.0 + length**2 / 3.0
    after = scale.settled(s, Point(0, (length,))).r_bar
    assert after == pytest.approx(2.0 * grown ** (0.5 * agreed) if sign < 0.0 else 2.0)


def test_presence_is_fair_and_addressed() -> None:
    a = presence(0, 4000, 5, seed=3)
    assert np.array_equal(a[17], presence(17, 1, 5, seed=3)[0])
    z = (2.0 * a - 1.0).sum(0) / np.sqrt(len(a))
    assert np.abs(z).max() < 4.5
    c = np.corrcoef(a.T)[np.triu_indices(5, 1)] * np.sqrt(len(a))
    assert np.abs(c).max() < 4.5


def test_energies_by_tensor_are_learned_from_slopes_alone() -> None:
    """Gradient energy 16 to 1 in two tensors of one size: the shape goes to 16^(1/4) = 2 between them."""
    rng = np.random.default_rng(0)
    a = Allocation.even([100, 100], seed=4)
    for first in range(0, 8 * 1500, 8):
        on = presence(first, 8, 2, seed=4)
        energy = 2.0 * on * np.array(a.shape) ** 2 * np.array([16.0, 1.0])  # of a slope, by tensor
        a = a.told(first, (np.sqrt(energy.sum(1)) * rng.normal(size=8)).tolist())
    assert 1.6 < a.shape[1] / a.shape[0] < 2.4
    assert (a.shape[0] ** 2 + a.shape[1] ** 2) / 2 == pytest.approx(1.0)


def test_an_even_allocation_has_even_shares() -> None:
    a = Allocation.even([30, 10], seed=0)
    assert a.shares() == (0.75, 0.25)
    assert a.told(0, [0.0, 0.0]) == a  # flat
