"""What only a GPU can show: kernels, CUDA graphs, NCCL. Needs nothing but PyTorch, Triton and pytest."""

from __future__ import annotations

import itertools
import pathlib
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch_helpers import data, loss_of, network, same, weights

from poem_cma.torch import Poem, average, launches, passes, philox, replay
from poem_cma.torch.layout import Layout

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="kernels, CUDA graphs and NCCL need a GPU, and there is none"
)

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
SIZES = [1, 1000, 4097, philox.TILE + 5, 3 * philox.TILE]
SEED = 2**62 + 12345


def layouts(dtype: torch.dtype) -> tuple[Layout, Layout]:
    """The same tensors, of very different sizes of numbers, on the GPU and on the CPU."""
    rng = torch.Generator().manual_seed(0)
    values = [torch.randn(n, generator=rng) * 10.0**k for n, k in zip(SIZES, (-6, 1, 0, -2, -4), strict=True)]
    made = []
    for device in ("cuda", "cpu"):
        named = [(f"w{i}", nn.Parameter(v.to(device, dtype, copy=True)), 0.7 + i) for i, v in enumerate(values)]
        made.append(Layout(named))
        for b in made[-1].blocks:
            b.work.fill_(float("nan"))
    return made[0], made[1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("q", "first"), [(0, 0), (1, 0), (1, 5), (1, 2**20 + 2), (4, 8), (3, 4), (8, 16)])
def test_the_kernel_that_moves_equals_plain_pytorch(dtype: torch.dtype, q: int, first: int) -> None:
    rng = torch.Generator().manual_seed(q)
    rows = (0.01 * torch.randn(len(SIZES), q, generator=rng)).tolist()
    for chosen, update in itertools.product((rows, rows[:1]), (None, 77)):
        gpu, cpu = layouts(dtype)
        assert launches.uses_kernels(gpu.blocks[0].x.device, dtype)
        for layout in (gpu, cpu):
            passes.apply(layout, chosen, first, SEED, update=update)
        for a, b in zip(gpu.blocks, cpu.blocks, strict=True):
            there, here = (a.work, b.work) if update is None else (a.x, b.x)
            assert not torch.isnan(here).any()
            assert torch.equal(there.cpu(), here), (q, first, update, len(here))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kept", DTYPES)
@pytest.mark.parametrize("share", [1.0, 0.6, 0.3, 1e-3])
def test_the_kernel_that_blends_equals_plain_pytorch(dtype: torch.dtype, kept: torch.dtype, share: float) -> None:
    out = []
    for layout in layouts(dtype):
        means = average.Average(layout, kept, None)
        for t in means.tensors:
            t.mul_(1.25).add_(0.5)
        for number in (3, 4):
            means.add(share, number, SEED)
        out.append([t.cpu() for t in means.tensors])
    for there, here in zip(*out, strict=True):
        assert torch.equal(there, here)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [{}, {"directions": 1}, {"directions": 8, "shaped": True}])
def test_a_log_of_the_cpu_leads_to_the_same_bits_on_the_gpu(dtype: torch.dtype, options: dict[str, Any]) -> None:
    model = network(dtype=dtype)
    opt = Poem(model.named_parameters(), seed=1, **options)
    for k in range(20):
        opt.step(loss_of(model, *data(seed=k, dtype=dtype)))
    other = network(dtype=dtype).cuda()
    there = Poem(other.named_parameters(), **options)
    replay(there, opt.log)
    assert same(weights(model), [w.cpu() for w in weights(other)])
    with opt.averaged(), there.averaged():
        assert same(weights(model), [w.cpu() for w in weights(other)])


def dropping(dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 64), nn.Dropout(0.3), nn.Tanh(), nn.Linear(64, 3)).to("cuda", dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("directions", [1, 8])
def test_a_captured_forward_pass_makes_the_same_steps(dtype: torch.dtype, directions: int) -> None:
    """Also with dropout: the masks differ between steps and agree within one."""
    ends = []
    for capture in (False, True):
        model = dropping(dtype)
        opt = Poem(model.named_parameters(), module=model, directions=directions, seed=3)
        x, y = (t.cuda() for t in data(n=64, seed=0, dtype=dtype))
        closure = loss_of(model, x, y)
        torch.cuda.manual_seed(5)
        before = weights(model)
        if capture:
            closure = opt.captured(closure)
        assert same(before, weights(model))
        for k in range(40):
            new, labels = data(n=64, seed=k, dtype=dtype)
            x.copy_(new)
            y.copy_(labels)
            opt.step(closure)
        ends.append((weights(model), opt.log.to_bytes()))
    assert ends[0][1] == ends[1][1]  # every loss
    assert same(ends[0][0], ends[1][0])


def test_a_closure_that_waits_for_the_gpu_cannot_be_captured() -> None:
    model = dropping(torch.float32)
    opt = Poem(model.named_parameters(), seed=3)
    with pytest.raises(ValueError, match="must return the loss as a tensor on the GPU"):
        opt.captured(lambda: 1.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_passes_can_be_captured_and_replayed(dtype: torch.dtype) -> None:
    gpu, cpu = layouts(dtype)
    for update in (None, 9):  # the kernels are compiled and their tables made outside of the capture
        passes.apply(gpu, [[0.0]], 8, SEED, update=update)
    for a, b in zip(gpu.blocks, cpu.blocks, strict=True):
        a.x.copy_(b.x)  # -0 and 0 may have changed places
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        passes.apply(gpu, [[0.01]], 8, SEED, update=9)
        passes.apply(gpu, [[0.02]], 12, SEED)
    for _ in range(3):
        graph.replay()
        passes.apply(cpu, [[0.01]], 8, SEED, update=9)
        passes.apply(cpu, [[0.02]], 12, SEED)
    for a, b in zip(gpu.blocks, cpu.blocks, strict=True):
        assert torch.equal(a.x.cpu(), b.x)
        assert torch.equal(a.work.cpu(), b.work)


def trained(seed: int) -> tuple[list[Tensor], bytes]:
    model = network().cuda()
    opt = Poem(model.named_parameters(), seed=seed)
    rank = dist.get_rank() if dist.is_initialized() else 0
    for k in range(12):
        opt.step(loss_of(model, *(t.cuda() for t in data(seed=100 * rank + k))))
    return [w.cpu() for w in weights(model)], opt.log.to_bytes()


def as_rank(rank: int, backend: str, ranks: int, folder: str) -> None:
    torch.cuda.set_device(0)
    dist.init_process_group(
        backend, init_method=f"file://{folder}/meet", rank=rank, world_size=ranks, timeout=timedelta(seconds=120)
    )
    torch.save(trained(7 + rank), f"{folder}/{rank}")
    dist.barrier()
    dist.destroy_process_group()


def test_nccl_with_one_rank_makes_the_steps_of_no_group(tmp_path: pathlib.Path) -> None:
    mp.spawn(as_rank, args=("nccl", 1, str(tmp_path)), nprocs=1)
    got, log = torch.load(tmp_path / "0", weights_only=True)
    expected, expected_log = trained(7)
    assert log == expected_log
    assert same(got, expected)


def test_two_ranks_on_one_gpu_agree_over_gloo(tmp_path: pathlib.Path) -> None:
    mp.spawn(as_rank, args=("gloo", 2, str(tmp_path)), nprocs=2)
    (first, log), (second, other) = (torch.load(tmp_path / str(r), weights_only=True) for r in range(2))
    assert log == other
    assert same(first, second)
    assert not same(first, trained(7)[0])  # the second rank's batches count


@pytest.mark.parametrize("kept", [None, "same", "float32", "float32@cpu"])
def test_peak_memory_is_that_of_the_table(kept: str | None) -> None:
    torch.cuda.empty_cache()
    model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(12))).to("cuda", torch.bfloat16)
    x = torch.randn(64, 2048, device="cuda", dtype=torch.bfloat16)

    def closure() -> Tensor:
        return model(x).float().square().mean()

    with torch.no_grad():
        closure()
        torch.cuda.reset_peak_memory_stats()
        closure()
    forward = torch.cuda.max_memory_allocated()
    opt = Poem(model.named_parameters(), average=kept, seed=0)
    stated = {k: n for k, n in opt.memory().items() if not (k == "average" and kept and "@cpu" in kept)}
    opt.step(closure)
    torch.cuda.reset_peak_memory_stats()
    for _ in range(16):
        opt.step(closure)
    assert torch.cuda.max_memory_allocated() == pytest.approx(forward + sum(stated.values()), rel=0.02)
