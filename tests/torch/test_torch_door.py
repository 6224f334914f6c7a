"""What a user meets first: a module instead of parameters, a line for the log, and clear words."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_helpers import data, loss_of, network, same, weights

from poem_cma.torch import Poem


def test_a_module_is_its_named_parameters_and_its_buffers_are_held() -> None:
    ends = []
    for given in (lambda m: m, lambda m: m.named_parameters()):
        model = network()
        opt = Poem(given(model), seed=3)
        for _ in range(3):
            opt.step(loss_of(model, *data()))
        ends.append(weights(model))
    assert same(*ends)
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    before = [b.clone() for b in model.buffers()]
    opt = Poem(model, seed=0)
    opt.step(loss_of(model, *data()))
    assert all(torch.equal(a, b) for a, b in zip(before, model.buffers(), strict=True))


def test_the_report_is_one_line_that_says_what_happened() -> None:
    model = network()
    opt = Poem(model, seed=0)
    for _ in range(3):
        loss = opt.step(loss_of(model, *data()))
    line = opt.report()
    assert "\n" not in line
    assert line.startswith("step 3: loss ")
    assert float(line.split("loss ")[1].split(",")[0]) == pytest.approx(float(loss), rel=0.2)
    assert f"differences over {opt.now.mu:.3g}," in line
    assert f" {opt.now.forwards} forward passes" in line


@pytest.mark.parametrize(
    "schedule",
    [
        lambda opt: torch.optim.lr_scheduler.LambdaLR(opt, lambda t: 1.0),
        lambda opt: torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10),
        lambda opt: torch.optim.lr_scheduler.StepLR(opt, 10),
        lambda opt: torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, 100),
        lambda opt: torch.optim.lr_scheduler.CyclicLR(opt, 0.1, 0.2),
        lambda opt: torch.optim.lr_scheduler.ReduceLROnPlateau(opt),
    ],
)
def test_a_scheduler_is_refused(schedule: object) -> None:
    opt = Poem(network(), seed=0)
    with pytest.raises(TypeError, match=r"Poem has no learning rate to schedule.* remove the scheduler"):
        schedule(opt)  # type: ignore[operator]
    opt.load_state_dict(opt.state_dict())
    with pytest.raises(TypeError, match="remove the scheduler"):
        schedule(opt)  # type: ignore[operator]
    with pytest.raises(KeyError):
        opt.param_groups[0]["momentum"]


def test_a_closure_that_returns_nothing_is_named() -> None:
    opt = Poem(network(), seed=0)
    with pytest.raises(TypeError, match="the closure returned None; it must return the loss"):
        opt.step(lambda: None)
    assert opt.now.forwards == 0


@pytest.mark.parametrize(("returned", "kind"), [((torch.ones(()),), "tuple"), ("0.5?", "str"), ({}, "dict")])
def test_a_closure_that_returns_no_number_is_named(returned: object, kind: str) -> None:
    opt = Poem(network(), seed=0)
    with pytest.raises(TypeError, match=f"the closure must return the loss, one number; it returned a {kind}"):
        opt.step(lambda: returned)
    assert opt.now.forwards == 0


def test_a_closure_that_calls_backward_is_named() -> None:
    model = network()
    before, loss = weights(model), loss_of(model, *data())
    opt = Poem(model, seed=0)

    def closure() -> torch.Tensor:
        value = loss()
        value.backward()
        return value

    with pytest.raises(RuntimeError, match=r"remove `loss.backward\(\)` and return the loss") as caught:
        opt.step(closure)
    assert "does not require grad" in str(caught.value.__cause__)
    assert same(before, weights(model))

    def switched() -> torch.Tensor:
        with torch.enable_grad():
            return closure()

    for _ in range(2):  # gradients that are new, and gradients that grow
        with pytest.raises(RuntimeError, match=r"remove `loss.backward\(\)` and return the loss"):
            opt.step(switched)
        assert same(before, weights(model))
    opt.step(lambda: (opt.zero_grad(), loss())[1])  # to throw gradients away is no call of backward

    def broken() -> torch.Tensor:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match=r"^mine$"):
        opt.step(broken)
