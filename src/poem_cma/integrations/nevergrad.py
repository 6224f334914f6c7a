"""Nevergrad optimisers: importing this module adds "PoemAuto", "POEM" and "PoemCMA" to Nevergrad's registry."""

from __future__ import annotations

from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.integrations._needs import needs
from poem_cma.integrations.nevergrad_space import Space
from poem_cma.integrations.points import Key, Points
from poem_cma.optimizer import Optimizer

with needs("Nevergrad", "nevergrad"):
    from nevergrad.common.errors import TellNotAskedNotSupportedError
    from nevergrad.optimization import base

#: What Nevergrad makes of a loss that is no number.
_FAILED = 5.0e20

__all__ = ["POEM", "ConfiguredPoem", "PoemAuto", "PoemCMA"]


class _Poem(base.Optimizer):  # type: ignore[misc]
    """This library behind Nevergrad's ask and tell, in the standardised space of a parametrisation, integers apart.

    A candidate that is told before the first one is asked is where the run starts, if it is the best so far. Where
    more candidates are asked for than a step has, the one that has been waiting longest is handed out again.
    """

    def __init__(self, parametrization: Any, budget: int | None = None, num_workers: int = 1, *, config: Any) -> None:
        super().__init__(parametrization, budget=budget, num_workers=num_workers)
        self._penalize_cheap_violations = True  # a candidate against the constraints is a failed call
        self._config = config
        self._points: Points | None = None
        self._start: Array = np.zeros(self.dimension)
        self._start_loss = np.inf
        self._keys: dict[str, Key] = {}  # of candidates in flight, by their uid

    def _begin(self) -> Points:
        """Nevergrad's random state is the only source of randomness, and is often seeded after the construction."""
        c, self._space = self._config, Space(self.parametrization)
        paired = c.paired if c.paired is not None else bool(self.parametrization.function.deterministic)
        batch = c.batch if c.batch is not None else max(1, (self.num_workers + 1) // 2)
        settings = {"method": c.method, "paired": paired, "seed": int(self._rng.randint(2**31)), **self._space.settings}
        start = self._space.from_standardised(self._start)
        left = None if self.budget is None else max(self.budget - self.num_ask, 1)
        for budget, probes in ((left, batch), (left, 1)):
            try:
                return Points(Optimizer(start, budget=budget, batch=probes, **settings))
            except ValueError:
                continue  # so few calls make no step
        return Points(Optimizer(start, batch=1, **settings))  # cut off in the middle of a step

    def _internal_ask_candidate(self) -> Any:
        if self._points is None:
            self._points = self._begin()
        key = self._points.fresh() or self._points.again()
        x = self._points.opt.result().x if key is None else self._points.point(key)  # None: the run is over
        candidate = self.parametrization.spawn_child().set_standardized_data(self._space.to_standardised(x))
        if key is not None:
            self._keys[candidate.uid] = key
        return candidate

    def _internal_tell_candidate(self, candidate: Any, loss: float) -> None:
        key = self._keys.pop(candidate.uid, None)
        if key is not None and self._points is not None:
            self._points.tell(key, loss if loss < _FAILED else np.nan)

    def _internal_tell_not_asked(self, candidate: Any, loss: float) -> None:
        if self._points is not None:
            raise TellNotAskedNotSupportedError(f"{self.name} takes candidates of others before its first ask only")
        if loss < self._start_loss:
            self._start = candidate.get_standardized_data(reference=self.parametrization)
            self._start_loss = loss

    def _internal_provide_recommendation(self) -> Any:
        if self._points is None or self._points.opt.nit == 0:
            return None  # Nevergrad's own: the best that was told
        return self._space.to_standardised(self._points.opt.result().x)


class ConfiguredPoem(base.ConfiguredOptimizer):  # type: ignore[misc]
    """An optimiser for Nevergrad, with settings.

    Parameters
    ----------
    method : str or Method
        As in `poem_cma.minimize`.
    paired : bool, optional
        Whether the values of a probe share their noise; by default whether the parametrisation says that the function
        is deterministic (``parametrization.function.deterministic``).
    batch : int, optional
        The number of independent probes of a step; by default as many as keep `num_workers` busy.

    Examples
    --------
    >>> import nevergrad as ng
    >>> import poem_cma.integrations.nevergrad
    >>> optimizer = ng.optimizers.registry["PoemAuto"](parametrization=ng.p.Array(shape=(3,)), budget=300)
    >>> optimizer.parametrization.random_state.seed(0)
    >>> best = optimizer.minimize(lambda x: abs(x - 0.5).sum())
    >>> bool(abs(best.value - 0.5).max() < 0.05)
    True
    """

    def __init__(self, *, method: Any = "auto", paired: bool | None = None, batch: int | None = None) -> None:
        super().__init__(_Poem, {"method": method, "paired": paired, "batch": batch}, as_config=True)
        self.method, self.paired, self.batch = method, paired, batch


PoemAuto = ConfiguredPoem().set_name("PoemAuto", register=True)
POEM = ConfiguredPoem(method="poem").set_name("POEM", register=True)
PoemCMA = ConfiguredPoem(method="poem-cma").set_name("PoemCMA", register=True)
