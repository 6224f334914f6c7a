"""The callbacks for TensorBoard and MLflow: what is written is read back by those libraries themselves."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import poem_cma as pc
from poem_cma.integrations.metrics import metrics


def run(callback: Any, **settings: Any) -> pc.Result:
    return pc.minimize(
        lambda x, xi: float(np.abs(x - 1.0).sum() + xi * x[0]), np.zeros(4), sample=lambda rng: rng.normal(),
        method="poem", budget=400, seed=0, callback=callback, **settings,
    )  # fmt: skip


def seen_by_a_plain_callback() -> dict[int, dict[str, float]]:
    seen: dict[int, dict[str, float]] = {}

    def note(intermediate_result: pc.Result) -> None:
        seen[intermediate_result.nfev] = metrics(intermediate_result)

    run(note)
    return seen


def read_scalars(folder: pathlib.Path) -> dict[str, dict[int, float]]:
    """By TensorBoard's own reader."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="tensorboard, which reads the files, is missing",
    )
    events = accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return {tag: {e.step: e.value for e in events.Scalars(tag)} for tag in events.Tags()["scalars"]}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the protobuf and numpy that the reader uses
def test_tensorboard_has_every_step(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed: pip install 'poem-cma[tensorboard]'")
    with pc.integrations.tensorboard.TensorBoardCallback(tmp_path) as log:
        result = run(log)
        log.finish(result)
    scalars = read_scalars(tmp_path)
    expected = seen_by_a_plain_callback()
    for name in ("value", "distance", "step_size", "effective_dimension"):
        found = scalars[f"poem_cma/{name}"]
        for calls, numbers in expected.items():
            assert found[calls] == pytest.approx(numbers[name], rel=1e-6)
    assert scalars["poem_cma/final_value"][result.nfev] == pytest.approx(result.fun, rel=1e-6)


def test_a_writer_of_ones_own_stays_open_and_every_is_kept() -> None:
    written: list[tuple[str, int]] = []

    class Writer:
        closed = False

        def add_scalar(self, name: str, value: float, step: int) -> None:
            written.append((name, step))

        def flush(self) -> None:
            pass

        def close(self) -> None:
            self.closed = True

    writer = Writer()
    with pc.integrations.tensorboard.TensorBoardCallback(writer, every=100, prefix="") as log:
        run(log)
    assert not writer.closed
    steps = [step for name, step in written if name == "value"]
    assert 3 <= len(steps) <= 4
    assert min(np.diff(steps)) >= 100
    with pytest.raises(ValueError, match="every must be"):
        pc.integrations.tensorboard.TensorBoardCallback(writer, every=0)


@pytest.fixture
def tracking(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    pytest.importorskip("mlflow", reason="MLflow is not installed: pip install 'poem-cma[mlflow]'")
    monkeypatch.chdir(tmp_path)
    return f"sqlite:///{tmp_path}/mlflow.db"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_mlflow(tracking: str) -> None:
    from mlflow.tracking import MlflowClient

    with pc.integrations.mlflow.MLflowCallback(
        tracking, experiment="noisy", run_name="first", every=100, params={"batch": 1}
    ) as log:
        result = run(log)
        log.finish(result)
    client = MlflowClient(tracking)
    kept = client.get_run(log.run_id)
    assert kept.info.status == "FINISHED"
    assert kept.info.run_name == "first"
    assert kept.data.params == {"method": result.method, "seed": "0", "batch": "1"}
    assert kept.data.metrics["final_value"] == result.fun
    expected = seen_by_a_plain_callback()
    values = {m.step: m.value for m in client.get_metric_history(log.run_id, "value")}
    assert len(values) in (3, 4)
    assert values == {calls: expected[calls]["value"] for calls in values}
    assert client.get_experiment_by_name("noisy").experiment_id == kept.info.experiment_id


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_an_active_mlflow_run_is_used_and_stays_open(tracking: str) -> None:
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(tracking)
    try:
        with mlflow.start_run() as active:
            log = pc.integrations.mlflow.MLflowCallback(every=200)
            log.finish(run(log))
            assert log.run_id == active.info.run_id
            assert mlflow.get_run(log.run_id).info.status == "RUNNING"
    finally:
        mlflow.set_tracking_uri(before)


@pytest.mark.parametrize(
    ("room", "missing"),
    [
        ("optuna", ["optuna"]), ("nevergrad", ["nevergrad"]), ("art", ["art"]), ("mlflow", ["mlflow"]),
        ("tensorboard", ["tensorboardX", "torch", "tensorboard"]),
    ],
)  # fmt: skip
def test_a_missing_extra_gives_one_line(room: str, missing: list[str]) -> None:
    code = f"""
import sys
for name in {missing}:
    sys.modules[name] = None
import poem_cma as pc
room = pc.integrations.{room}
room.TensorBoardCallback("logs")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: ")
    assert f"pip install 'poem-cma[{room}]'" in last


def test_the_rooms() -> None:
    assert pc.integrations.scipy.scipy_method is pc.scipy_method
    with pytest.raises(AttributeError, match="no attribute 'sherpa'"):
        _ = pc.integrations.sherpa
