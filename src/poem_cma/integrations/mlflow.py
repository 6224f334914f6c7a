"""A run in MLflow: ``minimize(..., callback=MLflowCallback())``."""

from __future__ import annotations

import time
from typing import Any

from poem_cma.integrations._needs import needs
from poem_cma.integrations.metrics import Logger
from poem_cma.result import Result

with needs("MLflow", "mlflow"):
    import mlflow
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

__all__ = ["MLflowCallback"]


class MLflowCallback(Logger):
    """Log value, its error, distance, step size and more as metrics, against the number of evaluations.

    Method and seed are logged as parameters. If an MLflow run is active, it is used and stays open. Otherwise a run
    begins at the first step, and is ended by `finish`, `close` or the `with` block.

    Parameters
    ----------
    tracking_uri : str, optional
        By default MLflow's own.
    experiment : str, optional
        The name of the experiment, which is created if it does not exist.
    run_name : str, optional
    every : int
        Log after at least this number of evaluations.
    params : dict, optional
        Further parameters to log.

    Examples
    --------
    With a database beside the script (its first use takes some seconds)::

        with MLflowCallback("sqlite:///mlflow.db", experiment="noisy") as log:
            result = poem_cma.minimize(fun, x0, callback=log)
            log.finish(result)
    """

    def __init__(
        self,
        tracking_uri: str | None = None,
        *,
        experiment: str | None = None,
        run_name: str | None = None,
        every: int = 100,
        params: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(every)
        self._client = MlflowClient(tracking_uri)
        self._experiment, self._run_name, self._params = experiment, run_name, dict(params or {})
        self._own = False
        self.run_id: str | None = None

    def _log(self, result: Result, numbers: dict[str, float]) -> None:
        now = int(1000 * time.time())
        params = []
        if self.run_id is None:
            self.run_id = self._begin()
            given = {"method": result.method, "seed": result.seed} | self._params
            params = [Param(name, str(value)) for name, value in given.items()]
        found = [Metric(name, number, now, result.nfev) for name, number in numbers.items()]
        self._client.log_batch(self.run_id, metrics=found, params=params)

    def _begin(self) -> str:
        active = mlflow.active_run()
        if active is not None:
            return str(active.info.run_id)
        self._own = True
        run = self._client.create_run(self._experiment_id(), run_name=self._run_name)
        return str(run.info.run_id)

    def _experiment_id(self) -> str:
        if self._experiment is None:
            return "0"
        found = self._client.get_experiment_by_name(self._experiment)
        return str(found.experiment_id if found else self._client.create_experiment(self._experiment))

    def close(self) -> None:
        """End the run, if it was begun here."""
        if self._own and self.run_id is not None:
            self._client.set_terminated(self.run_id)
            self._own = False
