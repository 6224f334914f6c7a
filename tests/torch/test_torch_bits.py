"""The random bits behind directions and rounding: known answers, statistics, and independence of how they are asked."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from poem_cma.torch import passes, philox
from poem_cma.torch.layout import Layout

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [  # the published test vectors of Philox4x32-10
        ([0, 0, 0, 0], 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, 2**64 - 1, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            0x299F31D0A4093822,
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_published_answers(counter: list[int], key: int, answer: list[int]) -> None:
    c0 = torch.tensor([counter[0]])
    assert [int(w[0]) for w in philox.philox(c0, *counter[1:], key)] == answer


def signs(address: int, n: int, number: int, seed: int = 5) -> np.ndarray:
    call, word = divmod(number, 4)
    words = philox.words(address, 0, n, call, philox.SIGNS, seed, CPU)
    return 2.0 * philox.bits(words[word], 0, n).numpy() - 1.0


def test_signs_are_balanced_and_uncorrelated() -> None:
    n = 3 * philox.TILE + 777
    rows = [signs(a, n, j) for a in (1, 2) for j in range(8)]  # two tensors, eight directions
    rows += [signs(1, n, 0, seed=6), np.roll(rows[0], 1), np.roll(rows[0], philox.LANES), np.roll(rows[0], 32)]
    Z = np.array(rows) @ np.array(rows).T / np.sqrt(n)
    z = Z[np.triu_indices(len(rows), 1)]
    assert np.abs(z).max() < 4.5  # of 190 standard normal numbers
    assert abs((z**2).mean() - 1.0) < 5.0 * np.sqrt(2.0 / len(z))
    assert np.abs([r.sum() / np.sqrt(n) for r in rows]).max() < 4.5


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3 * philox.TILE), st.data())
def test_a_part_of_a_tensor_has_the_signs_of_the_whole(n: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, n - 1))
    stop = data.draw(st.integers(start + 1, n))
    whole = philox.bits(philox.words(9, 0, n, 3, philox.SIGNS, 1, CPU)[2], 0, n)
    part = philox.bits(philox.words(9, start, stop, 3, philox.SIGNS, 1, CPU)[2], start, stop)
    assert torch.equal(part, whole[start:stop])
    assert torch.equal(philox.rounding(9, start, stop, 3, 1, CPU), philox.rounding(9, 0, n, 3, 1, CPU)[start:stop])


def test_rounding_bits_are_uniform_and_differ_by_row() -> None:
    n = 2 * philox.TILE
    u = philox.rounding(1, 0, n, 0, 7, CPU).double().numpy() / 2**16
    assert abs(u.mean() - 0.5 + 0.5 / 2**16) < 4.5 * np.sqrt(1 / 12 / n)
    rows = u.reshape(-1, philox.LANES)
    assert len({tuple(r[:8]) for r in rows}) == len(rows)
    c = np.corrcoef(rows[:32])[np.triu_indices(32, 1)] * np.sqrt(philox.LANES)
    assert np.abs(c).max() < 5.0


@pytest.mark.parametrize("part", [0.5, 0.1, 0.02])
def test_elements_that_share_a_word_are_rounded_up_as_if_they_did_not(part: float) -> None:
    """Row r and the seven others that use word r % 4: how often two of them are rounded up at once."""
    n = 64 * philox.TILE
    u = philox.rounding(1, 0, n, 0, 7, CPU).numpy().reshape(-1, philox.ROWS, philox.LANES)
    up = u < round(part * 2**16)
    p, lanes = round(part * 2**16) / 2**16, u.shape[0] * philox.LANES
    for word in range(4):
        rows = up[:, word::4].astype(float)
        both = np.einsum("til,tjl->ij", rows, rows)[np.triu_indices(8, 1)]
        z = (both - lanes * p * p) / np.sqrt(lanes * p * p * (1 - p * p))
        assert np.abs(z).max() < 4.5  # of 28 numbers


def test_directions_do_not_depend_on_the_order_or_the_company_of_tensors() -> None:
    shapes = {"a": 5, "b": 40_000, "c": 1024}

    def perturbed(names: str) -> dict[str, torch.Tensor]:
        layout = Layout((k, nn.Parameter(torch.zeros(shapes[k])), 1.0) for k in names)
        passes.apply(layout, [[1.0, 0.5, 0.25]], 8, 11)
        return {b.name: b.work.clone() for b in layout.blocks}

    first, second, alone = perturbed("abc"), perturbed("cab"), perturbed("b")
    assert all(torch.equal(first[k], second[k]) for k in "abc")
    assert torch.equal(first["b"], alone["b"])
    assert not torch.equal(first["b"][:5], first["a"])


def test_small_tensors_together_or_one_by_one_give_the_same() -> None:
    sizes = [3, 1023, 1024, 40_000]
    together = philox.SmallWords([1, 2, 3, 4], sizes, CPU)
    assert together.useful
    for k, (a, n) in enumerate(zip([1, 2, 3, 4], sizes, strict=True)):
        assert torch.equal(together(6, 13)[k], philox.words(a, 0, n, 6, philox.SIGNS, 13, CPU))
    assert not philox.SmallWords([1], [10**8], CPU).useful


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_stochastic_rounding_goes_to_a_neighbour_and_has_the_right_mean(dtype: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    y = torch.tensor(rng.normal(size=200) * 10.0 ** rng.uniform(-7, 2, size=200), dtype=torch.float32)
    n = 4000
    made = torch.stack(
        [passes.stochastic(y, philox.rounding(1, 0, len(y), k, 3, CPU), dtype).double() for k in range(n)]
    )
    low, high = made.min(0).values, made.max(0).values
    assert ((low <= y.double()) & (y.double() <= high)).all()
    step = (high - low).clamp(min=1e-300)
    spread = torch.where(high > low, step / 2, torch.full_like(step, 1e-300))
    z = (made.mean(0) - y.double()) / (spread / n**0.5)
    assert z[high > low].abs().max() < 4.8
    for k in (0, 1):  # a number that the dtype holds stays
        exact = made[k].to(dtype)
        assert torch.equal(passes.stochastic(exact.float(), philox.rounding(1, 0, len(y), k, 5, CPU), dtype), exact)
    near = y.to(dtype).double()
    assert ((near == low) | (near == high)).all()  # the two neighbours, not others


def test_the_plain_pass_is_the_formula() -> None:
    layout = Layout([("w", nn.Parameter(torch.randn(5000, dtype=torch.float64)), 0.5)])
    b = layout.blocks[0]
    passes.apply(layout, [[0.3, -0.2]], 4, 21)
    expected = b.x.numpy() + 0.5 * (0.3 * signs(b.address, 5000, 4, 21) - 0.2 * signs(b.address, 5000, 5, 21))
    np.testing.assert_allclose(b.work.numpy(), expected, rtol=0, atol=1e-15)
