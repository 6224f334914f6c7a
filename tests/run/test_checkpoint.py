"""Saving and loading: bit for bit, at any moment, and nothing but our own undamaged files."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import pickle
import zipfile
from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import hinge

import poem_cma as pc
from poem_cma.history import History
from poem_cma.run.algorithm import mean_value

P = hinge(d=4)
METHODS = {
    "auto": pc.methods.auto(),
    "poem": pc.methods.poem(),
    "poem-cma": pc.methods.poem_cma(samples=6),
    "poem-cma, thin, exact, ridge": pc.methods.poem_cma(samples=3, whitening="exact", ridge=0.1, tol=0.0),
    "tpbco": pc.methods.tpbco(lipschitz=2.0),
    "tpge": pc.methods.tpge(lipschitz=2.0),
    "rsnso": pc.methods.rsnso(lipschitz=2.0),
}
DOMAINS = {
    "ball": pc.Ball(1.0),
    "shifted ball": pc.Ball(1.0, center=np.full(4, 0.1)),
    "box": pc.Box(-1.0, [1.0, 2.0, 1.0, 1.0], outside=True),
    "simplex": pc.Simplex(1.0, outside=True),
    "l1": pc.L1Ball(1.5),
}


def value(x: np.ndarray, n: int) -> float:
    """A function that fails now and then, on the sample's account."""
    return float("nan") if n % 11 == 3 and x[0] > 0.0 else P.fun(x, n % P.n)


def answer(opt: pc.Optimizer, probe: pc.Probe) -> None:
    opt.tell(probe, [value(x, int(n)) for x, n in zip(probe.points, probe.samples, strict=True)])


def finish(opt: pc.Optimizer) -> pc.Result:
    while (probe := opt.ask()) is not None:
        answer(opt, probe)
    return opt.result()


def same(a: pc.Result, b: pc.Result) -> bool:
    vectors = all(getattr(a, n).tobytes() == getattr(b, n).tobytes() for n in ("x", "x_last", "x_average"))
    history = all(a.history[c].tobytes() == b.history[c].tobytes() for c in a.history)
    counts = all(getattr(a, n) == getattr(b, n) for n in ("nfev", "nit", "failures", "seed", "method", "message"))
    return vectors and history and counts


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_saving_and_loading_at_every_moment_changes_no_bit(
    tmp_path: pathlib.Path, method: pc.Method, domain: Any
) -> None:
    def fresh() -> pc.Optimizer:
        return pc.Optimizer(
            np.full(4, 0.25), method=method, domain=domain, budget=60, seed=9, batch=2, scale=[1.0, 2.0, 1.0, 3.0]
        )

    expected = finish(fresh())
    opt = fresh()
    for n in range(1000):
        probe = opt.ask()
        if n % 2:  # between ask and tell, and after tell
            opt.save(tmp_path / "run")
            opt = pc.Optimizer.load(tmp_path / "run")
        if probe is None:
            break
        answer(opt, probe)
        if n % 3 == 0:
            opt.save(tmp_path / "run")
            opt = pc.Optimizer.load(tmp_path / "run")
    assert same(finish(opt), expected)


def test_probes_in_flight_are_asked_again_after_loading(tmp_path: pathlib.Path) -> None:
    opt = pc.Optimizer(np.zeros(4), method="poem", domain=pc.Ball(1.0), batch=3, budget=60, seed=1)
    asked = [opt.ask() for _ in range(3)]
    assert all(p is not None for p in asked)
    answer(opt, asked[1])
    opt.save(tmp_path / "run")
    loaded = pc.Optimizer.load(tmp_path / "run")
    again = [loaded.ask(), loaded.ask()]
    for a, b in zip([asked[0], asked[2]], again, strict=True):
        assert b is not None
        assert (a.points.tobytes(), a.samples.tolist(), a.id) == (b.points.tobytes(), b.samples.tolist(), b.id)
    assert loaded.ask() is None


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.randoms(use_true_random=False), st.sampled_from(sorted(METHODS)), st.integers(1, 4))
def test_any_order_of_asking_telling_saving_and_loading(random: Any, name: str, batch: int) -> None:
    import tempfile

    def fresh() -> pc.Optimizer:
        return pc.Optimizer(
            np.full(4, 0.1), method=METHODS[name], domain=pc.Ball(1.0), budget=80, seed=5, batch=batch, paired=False
        )

    expected = finish(fresh())
    opt, flight = fresh(), []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "run"
        while True:
            action = random.randrange(6)
            if action <= 2 and (probe := opt.ask()) is not None:
                flight.append(probe)
            elif action <= 4 and flight:
                answer(opt, flight.pop(random.randrange(len(flight))))
            elif action == 5:
                opt.save(path)
                opt, flight = pc.Optimizer.load(path), []  # what was in flight is asked again
            elif not flight and opt.ask() is None and opt.done:
                break
    assert same(opt.result(), expected)


def write(path: pathlib.Path, body: bytes, version: int = 18) -> None:
    """A file that looks like ours, with whatever in it."""
    digest = hashlib.sha256(body).hexdigest()
    path.write_bytes(f"poem-cma optimizer, format {version}, sha256 {digest}\n".encode() + body)


def npz(**arrays: Any) -> bytes:
    body = io.BytesIO()
    np.savez(body, **arrays)
    return body.getvalue()


def saved(tmp_path: pathlib.Path) -> pathlib.Path:
    opt = pc.Optimizer(np.zeros(4), method="poem-cma", domain=pc.Ball(1.0), budget=100, seed=1)
    for _ in range(20):
        probe = opt.ask()
        assert probe is not None
        answer(opt, probe)
    opt.save(tmp_path / "run")
    return tmp_path / "run"


def test_files_that_are_not_ours_are_refused_with_one_clear_error(tmp_path: pathlib.Path) -> None:
    bad = tmp_path / "bad"
    for content in (b"", b"hello", pickle.dumps({"a": 1}), b"PK\x03\x04" + bytes(100), bytes(range(256)) * 50):
        bad.write_bytes(content)
        with pytest.raises(ValueError, match="is not a usable poem-cma optimizer file"):
            pc.Optimizer.load(bad)
    for body in (b"", b"PK", npz(a=np.zeros(3)), npz(header=np.frombuffer(b"{}", dtype=np.uint8))):
        write(bad, body)
        with pytest.raises(ValueError, match="is not a usable"):
            pc.Optimizer.load(bad)
        bad.write_bytes(body)
        with pytest.raises(ValueError, match="written by something else"):
            pc.Optimizer.load(bad)
    with pytest.raises(FileNotFoundError):
        pc.Optimizer.load(tmp_path / "missing")


def test_a_file_with_a_pickle_inside_is_not_unpickled(tmp_path: pathlib.Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (pathlib.Path.touch, (tmp_path / "boom",))

    bad = tmp_path / "bad"
    write(bad, npz(header=np.array([Bomb()], dtype=object)))
    with pytest.raises(ValueError, match="is not a usable"):
        pc.Optimizer.load(bad)
    assert not (tmp_path / "boom").exists()


def test_a_file_that_claims_more_than_its_size_is_refused(tmp_path: pathlib.Path) -> None:
    bad = tmp_path / "bad"
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", bytes(10_000_000))
    write(bad, body.getvalue())
    with pytest.raises(ValueError, match="claims to hold more than its size"):
        pc.Optimizer.load(bad)


def test_truncation_and_flipped_bits_are_noticed(tmp_path: pathlib.Path) -> None:
    whole = saved(tmp_path).read_bytes()
    bad = tmp_path / "bad"
    for cut in range(0, len(whole), max(1, len(whole) // 40)):
        bad.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="is not a usable"):
            pc.Optimizer.load(bad)
    rng = np.random.default_rng(0)
    for position in rng.integers(len(whole), size=300):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << int(rng.integers(8))
        bad.write_bytes(flipped)
        with pytest.raises(ValueError, match="is not a usable"):
            pc.Optimizer.load(bad)


def test_parts_that_do_not_fit_together_are_refused(tmp_path: pathlib.Path) -> None:
    """Files with a right checksum and wrong content, as another program might write them."""
    whole = saved(tmp_path).read_bytes()
    with np.load(io.BytesIO(whole[whole.index(b"\n") + 1 :])) as file:
        arrays = dict(file)
    header = json.loads(arrays["header"].tobytes())
    bad = tmp_path / "bad"
    loaded = set()
    for name in [*arrays, *header]:
        other = {k: v for k, v in header.items() if k != name}
        rest = {k: v for k, v in arrays.items() if k != name}
        if "header" in rest:
            rest["header"] = np.frombuffer(json.dumps(other).encode(), dtype=np.uint8)
        write(bad, npz(**rest))
        try:
            pc.Optimizer.load(bad)
            loaded.add(name)
        except ValueError as error:
            assert "is not a usable" in str(error), error  # noqa: PT017
    defaults = {"run.remark", "run.sampled", "sign", "spectrum.floor", "domain.center", "domain.outside"}
    assert {name for name in loaded if not name.startswith("method.settings.")} == defaults
    for vector in ("state.x", "state.weights.weighted_x", "spectrum.eigenvalues", "spectrum.vectors"):
        write(bad, npz(**(arrays | {vector: np.zeros(7)})))
        with pytest.raises(ValueError, match="is not a usable"):
            pc.Optimizer.load(bad)


@pytest.mark.parametrize("method", ["auto", "poem"])
def test_text_in_the_place_of_a_number_is_refused_by_its_name(tmp_path: pathlib.Path, method: str) -> None:
    """In every field of every record of a state, also of steps in flight: a run cannot fail on it later."""
    opt = pc.Optimizer(np.zeros(3), method=method, budget=200, seed=0, ahead=2)
    while opt.nfev < 60:
        probe = opt.ask() or opt.ask()
        assert probe is not None
        opt.tell(probe, [float(np.abs(x - 1.0).sum()) for x in probe.points])
    opt.save(tmp_path / "run")
    whole = (tmp_path / "run").read_bytes()
    with np.load(io.BytesIO(whole[whole.index(b"\n") + 1 :])) as file:
        arrays = dict(file)
    header = json.loads(arrays.pop("header").tobytes())
    numbers = (name for name, v in header.items() if isinstance(v, int | float) and not name.endswith(".version"))
    names = [name for name in numbers if "state." in name or "run." in name]
    assert len(names) > 25
    for name in [*names, *(name for name in arrays if "state." in name)]:
        table: dict[str, Any] = arrays | ({name: np.array(["text"])} if name in arrays else {})
        texts = header | ({name: "text"} if name in header else {})
        write(tmp_path / "bad", npz(**table, header=np.frombuffer(json.dumps(texts).encode(), dtype=np.uint8)))
        with pytest.raises(ValueError, match="is not a usable"):
            pc.Optimizer.load(tmp_path / "bad")


def test_another_version_is_refused(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "run", b"", version=99)
    with pytest.raises(ValueError, match="format version 99, this library reads version 18"):
        pc.Optimizer.load(tmp_path / "run")


def test_a_failed_save_leaves_the_old_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path)
    before = path.read_bytes()
    opt = pc.Optimizer.load(path)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        opt.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


class HalfSpace:
    """A user's own domain."""

    diameter = np.inf

    def project(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(x, [0.0, -np.inf, -np.inf, -np.inf])


def test_what_files_cannot_hold_must_be_passed_again(tmp_path: pathlib.Path) -> None:
    from dataclasses import replace

    mine = replace(pc.methods.poem(), weight=lambda s: s.r_bar**2)
    opt = pc.Optimizer(np.zeros(4), method=mine, domain=HalfSpace(), budget=40, seed=0)
    probe = opt.ask()
    assert probe is not None
    answer(opt, probe)
    opt.save(tmp_path / "run")
    with pytest.raises(ValueError, match="method of your own making; pass it as method="):
        pc.Optimizer.load(tmp_path / "run")
    with pytest.raises(ValueError, match="domain of your own making; pass it as domain="):
        pc.Optimizer.load(tmp_path / "run", method=mine)
    loaded = pc.Optimizer.load(tmp_path / "run", method=mine, domain=HalfSpace())
    assert same(finish(loaded), finish(opt))


def test_history_is_thinned_geometrically_and_keeps_the_last_step(tmp_path: pathlib.Path) -> None:
    opt = pc.Optimizer(np.zeros(1), method="poem", domain=pc.Ball(1.0), seed=0)
    opt.history = History(most=100)
    sizes = []
    for _ in range(3000):
        probe = opt.ask()
        assert probe is not None
        opt.tell(probe, np.abs(probe.points[:, 0] - 0.5))
        sizes.append(len(opt.history))
    nfev = opt.result().history["nfev"]
    assert max(sizes) <= 101
    assert nfev[-1] == 6000
    steps = np.diff(nfev[:-1])
    assert (steps == steps[0]).all()
    assert len(nfev) > 50
    opt.save(tmp_path / "run")
    assert same(pc.Optimizer.load(tmp_path / "run").result(), opt.result())


def test_values_of_any_kind_of_float_have_the_same_mean() -> None:
    """What was saved comes back as Python's floats, whatever was told; `sum` would treat the two differently."""
    F = [0.1] * 10
    assert mean_value(F) == mean_value([np.float64(v) for v in F])
    assert mean_value([nan, *F]) == mean_value([nan, *map(np.float64, F)])
