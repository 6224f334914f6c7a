"""Going on after a stop, and following a run from its log of losses alone."""

from __future__ import annotations

import io
import pathlib

import pytest
import torch
from torch_helpers import data, loss_of, network, same, weights

from poem_cma.torch import Log, Poem, replay

OPTIONS = [
    {},
    {"directions": 1},
    {"directions": 8, "shaped": True},
    {"directions": 1, "scale": "distance"},
]


def batches(dtype: torch.dtype) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [data(n=8, seed=k, dtype=dtype) for k in range(24)]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_resumed_run_is_the_same_run(options: dict, dtype: torch.dtype) -> None:
    straight = network(dtype=dtype)
    opt = Poem(straight.named_parameters(), seed=2, **options)
    for x, y in batches(dtype):
        opt.step(loss_of(straight, x, y))

    first = network(dtype=dtype)
    half = Poem(first.named_parameters(), seed=2, **options)
    for x, y in batches(dtype)[:11]:
        half.step(loss_of(first, x, y))
    file = io.BytesIO()
    torch.save({"model": first.state_dict(), "opt": half.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)  # numbers, bytes and tensors: nothing that runs code

    second = network(seed=99, dtype=dtype)
    second.load_state_dict(saved["model"])
    again = Poem(second.named_parameters(), seed=77, **options)
    again.load_state_dict(saved["opt"])
    for x, y in batches(dtype)[11:]:
        again.step(loss_of(second, x, y))
    assert same(weights(straight), weights(second))
    assert repr(again.now) == repr(opt.now)  # every digit; NaN equals NaN
    with opt.averaged(), again.averaged():
        assert same(weights(straight), weights(second))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_replay_leads_to_the_same_weights_without_a_forward_pass(
    options: dict, dtype: torch.dtype, tmp_path: pathlib.Path
) -> None:
    model = network(dtype=dtype)
    opt = Poem(model.named_parameters(), seed=5, **options)
    for k, (x, y) in enumerate(batches(dtype)):
        opt.step(loss_of(model, x, y) if k != 3 else lambda: torch.tensor(float("nan")))
    opt.log.save(tmp_path / "run.log")
    assert (tmp_path / "run.log").stat().st_size < 26 + 24 * (2 + 8 * 80)

    follower = network(dtype=dtype)
    other = Poem(follower.named_parameters(), seed=123, **options)
    seen: list[tuple[int, int]] = []
    replay(other, Log.load(tmp_path / "run.log"), progress=lambda *n: seen.append(n))
    assert same(weights(model), weights(follower))
    assert seen[-1] == (24, 24)
    with opt.averaged(), other.averaged():
        assert same(weights(model), weights(follower))
    x, y = batches(dtype)[0]  # and both go on together
    opt.step(loss_of(model, x, y))
    other.step(loss_of(follower, x, y))
    assert same(weights(model), weights(follower))


def test_a_rank_that_is_behind_catches_up() -> None:
    ahead, behind = network(), network()
    a, b = (Poem(m.named_parameters(), seed=1) for m in (ahead, behind))
    for k, (x, y) in enumerate(batches(torch.float32)):
        a.step(loss_of(ahead, x, y))
        if k < 10:
            b.step(loss_of(behind, x, y))
    replay(b, a.log)
    assert same(weights(ahead), weights(behind))


def test_a_log_that_is_cut_short_loses_its_last_step_only() -> None:
    log = Log(seed=2**62, dimension=5, steps=[[1.0, 2.0], [3.0], [float("nan"), 4.0]])
    whole = log.to_bytes()
    for cut in range(1, 8):
        assert Log.from_bytes(whole[:-cut]).steps == log.steps[:2]
    with pytest.raises(ValueError, match="not a log"):
        Log.from_bytes(b"something else entirely, and longer")
    with pytest.raises(ValueError, match="version 9"):
        Log.from_bytes(whole[:8] + b"\x09\x00" + whole[10:])


def test_what_does_not_fit_is_refused() -> None:
    model = network()
    opt = Poem(model.named_parameters(), seed=1)
    opt.step(loss_of(model, *data()))
    with pytest.raises(ValueError, match="does not fit"):
        replay(Poem(network().named_parameters(), directions=1), opt.log)
    small = torch.nn.Linear(2, 2)
    with pytest.raises(ValueError, match="the log is of 83 parameters, but there are 6"):
        replay(Poem(small.named_parameters()), opt.log)
    with pytest.raises(ValueError, match="saved with 83 parameters, but there are 6"):
        Poem(small.named_parameters()).load_state_dict(opt.state_dict())
    with pytest.raises(ValueError, match="other settings of average"):
        Poem(network().named_parameters(), average=None).load_state_dict(opt.state_dict())
    with pytest.raises(ValueError, match="not made by Poem"):
        opt.load_state_dict(torch.optim.SGD(small.parameters(), 0.1).state_dict())
    ran = Poem(network().named_parameters(), seed=9)
    twin = network()
    ran = Poem(twin.named_parameters(), seed=9)
    ran.step(loss_of(twin, *data()))
    with pytest.raises(ValueError, match="another run"):
        replay(ran, opt.log)
