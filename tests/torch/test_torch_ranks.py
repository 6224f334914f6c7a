"""Data parallel: four processes with gloo against one with the joint batch."""

from __future__ import annotations

import pathlib
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch_helpers import data, loss_of, network, same, weights

from poem_cma.torch import Log, Poem, replay

RANKS, STEPS = 4, 12


def shard(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = data(n=8 * RANKS, seed=step)
    return x[8 * rank : 8 * (rank + 1)], y[8 * rank : 8 * (rank + 1)]


def train(rank: int, folder: str) -> None:
    """One rank: a small and a wide network, counting the bytes on the wire; then first weights that differ."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS, timeout=timedelta(seconds=120)
    )
    sent: list[int] = []
    for name in ("all_reduce", "broadcast"):
        plain = getattr(dist, name)

        def counted(tensor: torch.Tensor, *a: Any, plain: Any = plain, **k: Any) -> Any:
            sent.append(tensor.nbytes)
            return plain(tensor, *a, **k)

        setattr(dist, name, counted)
    for kind in ("small", "wide"):
        model = network()
        if kind == "wide":
            model = torch.nn.Sequential(torch.nn.Linear(6, 4000), torch.nn.Tanh(), torch.nn.Linear(4000, 3))
        sent.clear()
        opt = Poem(model.named_parameters(), seed=rank)  # each has its own seed: the first rank's counts
        agreed = sum(sent)
        sent.clear()
        for step in range(STEPS):
            x, y = shard(step, rank)
            opt.step(loss_of(model, x, y) if (step, rank) != (5, 2) else lambda: torch.tensor(float("nan")))
        opt.log.save(f"{folder}/log-{kind}{rank}")
        out = {"weights": weights(model), "sent": sum(sent), "agreed": agreed, "forwards": opt.now.forwards}
        torch.save(out, f"{folder}/{kind}{rank}")
    try:
        Poem(network(seed=rank).named_parameters())
    except ValueError as error:
        pathlib.Path(f"{folder}/error{rank}").write_text(str(error))
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("ranks")
    mp.spawn(train, args=(str(folder),), nprocs=RANKS)
    return folder, [torch.load(folder / f"small{r}", weights_only=True) for r in range(RANKS)]


def test_weights_are_the_same_bits_on_all_ranks(four: tuple[pathlib.Path, list[dict[str, Any]]]) -> None:
    folder, out = four
    assert all(same(out[0]["weights"], o["weights"]) for o in out[1:])
    logs = [(folder / f"log-small{r}").read_bytes() for r in range(RANKS)]
    assert len(set(logs)) == 1


def test_four_ranks_make_the_steps_of_one_with_the_joint_batch(
    four: tuple[pathlib.Path, list[dict[str, Any]]],
) -> None:
    _, out = four
    model = network()
    opt = Poem(model.named_parameters(), seed=0)
    for step in range(STEPS):
        parts = [shard(step, r) for r in range(RANKS)]

        def joint(parts: Any = parts, bad: bool = step == 5) -> torch.Tensor:
            losses = torch.stack([loss_of(model, x, y)() for x, y in parts]).double()
            return losses.mean() if not bad else torch.tensor(float("nan"))

        opt.step(joint)
    for a, b in zip(out[0]["weights"], weights(model), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)  # sums of four numbers in another order


def test_a_restarted_rank_is_brought_back_by_the_log_alone(
    four: tuple[pathlib.Path, list[dict[str, Any]]],
) -> None:
    folder, out = four
    model = network()
    replay(Poem(model.named_parameters()), Log.load(folder / "log-small3"))
    assert same(out[0]["weights"], weights(model))


def test_bytes_on_the_wire_do_not_grow_with_the_model(four: tuple[pathlib.Path, list[dict[str, Any]]]) -> None:
    folder, small = four
    wide = torch.load(folder / "wide0", weights_only=True)
    for out in (small[0], wide):
        assert out["sent"] == 8 * out["forwards"]  # eight bytes a loss
    assert wide["agreed"] == small[0]["agreed"]  # four tensors each: a number a tensor, once
    assert wide["sent"] < sum(w.nbytes for w in wide["weights"]) / 100


def test_different_first_weights_are_refused(four: tuple[pathlib.Path, list[dict[str, Any]]]) -> None:
    folder, _ = four
    for rank in range(RANKS):
        assert "start from different weights" in (folder / f"error{rank}").read_text()
