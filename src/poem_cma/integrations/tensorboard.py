"""A run in TensorBoard: ``minimize(..., callback=TensorBoardCallback("logs"))``."""

from __future__ import annotations

import os
from typing import Any

from poem_cma.integrations._needs import needs
from poem_cma.integrations.metrics import Logger
from poem_cma.result import Result

__all__ = ["TensorBoardCallback"]


class TensorBoardCallback(Logger):
    """Log value, its error, distance, step size and more as scalars, against the number of evaluations.

    Parameters
    ----------
    logdir : path, or a SummaryWriter
        The folder of TensorBoard, or a writer of torch or tensorboardX, which stays open.
    every : int
        Log after at least this number of evaluations.
    prefix : str
        A prefix for the names of the scalars.

    Examples
    --------
    >>> import tempfile, numpy as np, poem_cma as pc
    >>> with tempfile.TemporaryDirectory() as logs, TensorBoardCallback(logs) as log:
    ...     result = pc.minimize(lambda x: float(abs(x).sum()), np.ones(3), budget=200, seed=0, callback=log)
    ...     log.finish(result)
    """

    def __init__(self, logdir: str | os.PathLike[str] | Any, *, every: int = 1, prefix: str = "poem_cma") -> None:
        super().__init__(every)
        self._own = isinstance(logdir, str | os.PathLike)
        self._writer: Any = _writer(os.fspath(logdir)) if self._own else logdir
        self._prefix = prefix + "/" if prefix else ""

    def _log(self, result: Result, numbers: dict[str, float]) -> None:
        for name, number in numbers.items():
            self._writer.add_scalar(self._prefix + name, number, result.nfev)

    def close(self) -> None:
        """Write what is left, and close the writer that was made here."""
        self._writer.flush()
        if self._own:
            self._writer.close()


def _writer(logdir: str) -> Any:
    """tensorboardX is small; where it is missing, torch's own will do."""
    try:
        from tensorboardX import SummaryWriter
    except ModuleNotFoundError:
        with needs("TensorBoard's event files", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter(logdir)
