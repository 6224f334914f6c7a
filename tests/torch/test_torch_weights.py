"""The weights are never perturbed, small updates are not lost, and every kind of parameter is handled."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn
from torch_helpers import data, loss_of, network, same, weights

from poem_cma.torch import Poem

DTYPES = [torch.float32, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("directions", [1, 4, 8])
def test_a_thousand_probes_change_no_weight(dtype: torch.dtype, directions: int) -> None:
    model = network(dtype=dtype)
    opt = Poem(model.named_parameters(), directions=directions, seed=0)
    before = weights(model)
    probes: list[float] = []

    def closure() -> torch.Tensor:
        probes.append(float(sum(float(p.detach().float().sum()) for p in model.parameters())))
        return torch.tensor(1.0)  # flat: nothing moves

    while len(probes) < 1000:
        opt.step(closure)
        changed = sum(int((a != b).sum()) for a, b in zip(before, weights(model), strict=True))
        assert changed == 0
    assert len(set(probes)) > 50  # the closure did see perturbed weights
    assert same(before, weights(model))


@pytest.mark.parametrize("dtype", DTYPES)
def test_after_a_step_the_weights_are_the_moved_ones_in_their_own_memory(dtype: torch.dtype) -> None:
    model = network(dtype=dtype)
    places = [p.data_ptr() for p in model.parameters()]
    opt = Poem(model.named_parameters(), seed=0)
    closure = loss_of(model, *data(dtype=dtype))
    for _ in range(5):
        before = weights(model)
        opt.step(closure)
        assert not same(before, weights(model))
        assert [p.data_ptr() for p in model.parameters()] == places


def test_small_updates_are_not_lost_in_low_precision() -> None:
    """A thousand updates, each a fiftieth of the spacing of the numbers, go as far as in float32."""
    far = []
    for dtype in (torch.float32, torch.bfloat16):
        p = nn.Parameter(torch.ones(4096, dtype=dtype))
        opt = Poem([("w", p)], seed=3, average=None)
        from poem_cma.torch.state import Point

        for k in range(1000):
            opt._write(Point(0, (64 * 1.5e-4,)), k)  # |z| / sqrt(d) = 1/64 each
        far.append(float((p.detach().float() - 1.0).abs().mean()))
    assert far[0] == pytest.approx(0.15, rel=0.01)
    assert far[1] == pytest.approx(far[0], rel=0.02)


def test_an_exception_in_the_closure_leaves_everything_as_it_was() -> None:
    model = network()
    x, y = data()
    opt = Poem(model.named_parameters(), seed=0)
    good = loss_of(model, x, y)
    opt.step(good)
    before, state, places = weights(model), opt.now, [p.data_ptr() for p in model.parameters()]
    calls = 0

    def bad() -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise RuntimeError("out of memory, say")
        return good()

    with pytest.raises(RuntimeError, match="out of memory"):
        opt.step(bad)
    assert same(before, weights(model))
    assert opt.now == state
    assert [p.data_ptr() for p in model.parameters()] == places
    twin = network()
    other = Poem(twin.named_parameters(), seed=0)
    for _ in range(2):
        other.step(loss_of(twin, x, y))
    opt.step(good)  # the step is made again as if nothing had happened
    assert same(weights(model), weights(twin))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("directions", [1, 8])
def test_a_loss_that_is_no_number_skips_the_step(bad: float, directions: int) -> None:
    model = network()
    opt = Poem(model.named_parameters(), directions=directions, seed=0)
    good = loss_of(model, *data())
    for k in range(4):
        before = weights(model)
        opt.step(lambda: torch.tensor(bad))
        assert same(before, weights(model))
        assert opt.now.skipped == k + 1
        opt.step(good)
    assert opt.now.t == 4


def test_one_bad_probe_among_many_is_left_out() -> None:
    model = network()
    good = loss_of(model, *data())
    opt = Poem(model.named_parameters(), seed=0)
    opt.step(good)
    calls = 0

    def closure() -> torch.Tensor:
        nonlocal calls
        calls += 1
        return torch.tensor(float("nan")) if calls == 3 else good()

    before = weights(model)
    opt.step(closure)
    assert opt.now.skipped == 0
    assert not same(before, weights(model))
    assert all(torch.isfinite(p).all() for p in model.parameters())


def test_tied_weights_move_once_and_together() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(7, 4)
            self.head = nn.Linear(4, 7, bias=False)
            self.head.weight = self.embed.weight
            self.twin = nn.Parameter(self.embed.weight.data)  # another parameter on the same memory

        def forward(self, i: torch.Tensor) -> torch.Tensor:
            assert self.twin.data_ptr() == self.embed.weight.data_ptr()
            return self.head(self.embed(i))

    model = Tied()
    opt = Poem(list(model.named_parameters()), seed=0)
    assert opt.layout.dimension == 28
    i = torch.arange(7)
    opt.step(lambda: nn.functional.cross_entropy(model(i), i))
    assert torch.equal(model.twin, model.embed.weight)
    assert model.head.weight is model.embed.weight


def test_frozen_parameters_are_left_alone_and_cost_nothing() -> None:
    model = network()
    for p in model[0].parameters():
        p.requires_grad_(False)
    frozen = weights(model[0])
    opt = Poem(model.named_parameters(), seed=0)
    assert opt.layout.dimension == 8 * 3 + 3
    assert opt.memory()["probes"] <= 4 * (8 * 3 + 3 + 16)
    places = [p.data_ptr() for p in model[0].parameters()]

    def closure() -> torch.Tensor:
        assert [p.data_ptr() for p in model[0].parameters()] == places
        return loss_of(model, *data())()

    for _ in range(3):
        opt.step(closure)
    assert same(frozen, weights(model[0]))


def test_groups_say_how_far_tensors_move() -> None:
    model = network()
    groups = [{"params": [model[0].weight]}, {"params": [model[2].weight], "scale": 0.01}]
    opt = Poem(groups, seed=0)
    before = weights(model)
    opt.step(loss_of(model, *data()))
    moved = [float((a - b).abs().mean()) for a, b in zip(before, weights(model), strict=True)]
    assert moved[1] == moved[3] == 0.0
    assert moved[2] / moved[0] == pytest.approx(0.01, rel=0.2)
    with pytest.raises(ValueError, match="scale must be a positive number"):
        Poem([{"params": [model[0].weight], "scale": 0.0}])


def test_transposed_weights_are_handled_and_gaps_are_refused() -> None:
    p = nn.Parameter(torch.randn(4, 6).t())
    opt = Poem([p], seed=0)
    shape, stride = p.shape, p.stride()
    opt.step(lambda: (p**2).sum())
    assert (p.shape, p.stride()) == (shape, stride)
    with pytest.raises(ValueError, match="not dense in memory"):
        Poem([nn.Parameter(torch.randn(4, 6)[:, ::2])])
    whole = torch.randn(10)
    with pytest.raises(ValueError, match="share part of their memory"):
        Poem([nn.Parameter(whole[:6]), nn.Parameter(whole[4:])])


def test_every_probe_of_a_batch_has_the_same_dropout_mask() -> None:
    drop = nn.Dropout(0.5)
    p = nn.Parameter(torch.ones(3))
    masks: list[torch.Tensor] = []

    def closure() -> torch.Tensor:
        masks.append(drop(torch.ones(50)))
        return (masks[-1].sum() * p).sum()

    opt = Poem([p], seed=0)
    torch.manual_seed(4)
    opt.step(closure)
    first = len(masks)
    assert all(torch.equal(m, masks[0]) for m in masks)
    opt.step(closure)
    assert all(torch.equal(m, masks[first]) for m in masks[first:])
    assert not torch.equal(masks[0], masks[first])
    torch.manual_seed(4)  # the generator advances as for one forward pass
    assert torch.equal(masks[0], drop(torch.ones(50)))
    assert torch.equal(masks[first], drop(torch.ones(50)))


def test_batch_norm_stays_as_it_was() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    opt = Poem(model.named_parameters(), module=model, seed=0)
    kept = [b.clone() for b in model.buffers()]
    closure = loss_of(model, *data())
    for _ in range(3):
        opt.step(closure)
    assert all(torch.equal(a, b) for a, b in zip(kept, model.buffers(), strict=True))


def test_no_graph_is_built_and_no_gradient_is_left() -> None:
    model = network()
    opt = Poem(model.named_parameters(), seed=0)

    def closure() -> torch.Tensor:
        assert not torch.is_grad_enabled()
        loss = loss_of(model, *data())()
        assert loss.grad_fn is None
        return loss

    opt.step(closure)
    assert all(p.grad is None for p in model.parameters())
    assert torch.is_grad_enabled()


def test_memory_is_as_stated_and_does_not_grow() -> None:
    model = network()
    opt = Poem(model.named_parameters(), seed=0)
    closure = loss_of(model, *data(n=4))
    size = sum(p.nbytes for p in model.parameters())
    assert size <= opt.memory()["probes"] <= size + 32 * 4 * 2
    assert opt.memory()["average"] == size

    def tensors() -> int:
        gc.collect()
        return sum(o.numel() * o.element_size() for o in gc.get_objects() if issubclass(type(o), torch.Tensor))

    for _ in range(50):
        opt.step(closure)
    early = tensors()
    for _ in range(950):
        opt.step(closure)
    assert tensors() <= early * 1.02


@pytest.mark.parametrize(
    ("average", "item", "device"),
    [("same", 2, "cpu"), ("float32", 4, "cpu"), ("bfloat16@cpu", 2, "cpu"), (None, 0, "cpu")],
)
def test_the_average_takes_what_it_says(average: str | None, item: int, device: str) -> None:
    model = network(dtype=torch.bfloat16)
    opt = Poem(model.named_parameters(), average=average, seed=0)
    assert opt.memory()["average"] == item * opt.layout.dimension
    if average is None:
        with pytest.raises(RuntimeError, match="no average"), opt.averaged():
            pass


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_averaged_swaps_in_the_average_and_back(dtype: torch.dtype) -> None:
    model = network(dtype=dtype)
    opt = Poem(model.named_parameters(), average="float32", seed=0)
    closure = loss_of(model, *data(dtype=dtype))
    seen = []
    for k in range(1, 25):
        opt.step(closure)
        if k % 8 == 0:
            seen.append([w.double() for w in weights(model)])
    mean = seen[0]
    for looks, x in enumerate(seen[1:], start=2):  # Shamir and Zhang's average, written out
        share = 9.0 / (looks + 8.0)
        mean = [(1 - share) * m + share * w for m, w in zip(mean, x, strict=True)]
    before = weights(model)
    with opt.averaged():
        inside = weights(model)
        with pytest.raises(RuntimeError, match="moved or converted"):
            opt.step(closure)
    assert same(before, weights(model))
    for a, b in zip(inside, mean, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=2e-5 if dtype is torch.float32 else 8e-3, atol=1e-6)


def test_errors_say_what_to_do() -> None:
    model = network()
    with pytest.raises(ValueError, match="directions must be a whole number from 1 to 8, not 9"):
        Poem(model.parameters(), directions=9)
    with pytest.raises(ValueError, match="average must be"):
        Poem(model.parameters(), average="float8")
    with pytest.raises(ValueError, match="scale must be"):
        Poem(model.parameters(), scale="auto")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="all are frozen"):
        Poem([nn.Parameter(torch.ones(3), requires_grad=False)])
    with pytest.raises(TypeError, match="dtype"):
        Poem([nn.Parameter(torch.ones(3, dtype=torch.complex64))])
    opt = Poem(model.parameters())
    with pytest.raises(ValueError, match="needs a closure"):
        opt.step()
    with pytest.raises(ValueError, match="one number"):
        opt.step(lambda: torch.ones(2))
    model.double()
    with pytest.raises(RuntimeError, match="make the optimizer after"):
        opt.step(lambda: torch.tensor(0.0))
