"""Ask and tell: the run as an object that remembers what is in flight, and can be saved and loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.bounds import domain_of
from poem_cma.domains.given import as_domain, searched
from poem_cma.domains.variables import Variables
from poem_cma.history import History
from poem_cma.methods import by_name
from poem_cma.result import Result, Status, shares
from poem_cma.run import algorithm as core
from poem_cma.run import checkpoint
from poem_cma.run.algorithm import Learned, Method, Probe
from poem_cma.run.checks import (
    check_ahead,
    check_batch,
    check_budget,
    check_scale,
    check_x0,
    inside_domain,
    make_run,
    widths,
)
from poem_cma.run.in_flight import InFlight, StepInFlight, algorithm_of
from poem_cma.run.oracle import matrix
from poem_cma.run.randomness import make_seed
from poem_cma.run.verdict import judge

__all__ = ["Optimizer"]


class Optimizer(InFlight):
    """Minimise by asking for points and telling their values.

    Parameters
    ----------
    x0 : array_like or Result
        The starting point. If it is a Result with the same method and scale, the search uses what that run has learned,
        in its domain unless another one is given.
    method : str or Method
        "auto", "poem-cma", "poem", "tpbco", "tpge", "rsnso", or one made by a constructor in `poem_cma.methods`.
    domain : optional
        A `Ball`, `Box`, `Simplex`, `L1Ball`, `scipy.optimize.Bounds`, or any object with `project(x)` and `diameter`.
    scale : float or array, optional
        The typical size of each variable. The search uses x / scale.
    budget : int, optional
        The largest number of values. Without a budget, the run ends only if F has no noise and `auto` has reached a
        minimum.
    paired : bool
        Whether the points of a probe share their xi.
    seed : int, optional
        The same seed and the same values give the same run.
    batch : int
        The number of independent probes of a step.
    ahead : int
        The number of steps that may be asked before the current one is complete. This is for many workers.

    Examples
    --------
    >>> import numpy as np, poem_cma as pc
    >>> opt = pc.Optimizer(np.ones(5), method="poem", budget=2000, seed=1)
    >>> while (probe := opt.ask()) is not None:
    ...     opt.tell(probe, [np.abs(x - 0.3).sum() for x in probe.points])
    >>> bool(np.abs(opt.result().x - 0.3).max() < 0.05)
    True
    """

    def __init__(
        self,
        x0: Any,
        *,
        method: str | Method = "auto",
        domain: Any = None,
        scale: Any = None,
        budget: int | None = None,
        paired: bool = True,
        seed: int | None = None,
        batch: int = 1,
        ahead: int = 0,
        maximize: bool = False,
        bounds: Any = None,
    ) -> None:
        domain = domain_of(domain, bounds, x0)
        earlier, x0 = (x0.learned, x0.x) if isinstance(x0, Result) else (None, x0)
        x = check_x0(x0)
        self.method = by_name(method)
        self.domain = as_domain(domain, len(x))
        self.scale = check_scale(scale, x)
        if self.scale is None and self.method.box_units:
            self.scale = widths(self.domain, x)
        self.seed = make_seed(seed)
        self.sign = -1.0 if maximize else 1.0
        x = inside_domain(x, self.domain)
        self.variables = Variables(self.domain, self.scale)
        search_domain = searched(self.domain, self.scale, x)
        x = self.variables.to_search(x)
        calls, probes, steps = check_budget(budget), check_batch(batch), check_ahead(ahead)
        run = make_run(self.method, x, search_domain, calls, probes, bool(paired), steps)
        learned = earlier if earlier is not None and earlier.fits(run.method, self.scale) else None
        self._state: Any = algorithm_of(run.method).begin(run.method, run, learned)
        self.history = History()
        self.failures = 0
        self._barren = self._barren_probes = 0
        self._start()

    def ask(self) -> Probe | None:
        """The next probe, or None if values must be told first or the run is over."""
        if self._pointless:
            return None
        if self._plain:  # no longer: somebody else will hold a probe
            self._plain = False
            self._open(self._in_flight[0], self._in_flight[0].sizes)
        if self._again:
            return self._base_probe(*self._again.popleft())
        if (asked := self._unasked()) is None:
            return None
        step, i = asked
        points, numbers = self._algorithm.points(self._active, step.state, i, step.randoms)
        return Probe(self._to_user(matrix(points)), numbers, 2 * (step.first + i))

    def _base_probe(self, step: StepInFlight, i: int) -> Probe:
        points, numbers = self._algorithm.points(self._active, step.state, i, step.randoms)
        b = self._algorithm.base(self._active)
        assert b is not None
        return Probe(self._to_user(matrix(points)[b : b + 1]), [numbers[b]], 2 * (step.first + i) + 1)

    def _to_user(self, points: Array) -> Array:
        if self.variables.unchanged:
            return points
        return np.array([self.variables.to_user(z, held=False) for z in points])

    def tell(self, probe: Probe, values: Any) -> None:
        """Tell the values of a probe's points, in order; NaN or infinity means a failed evaluation."""
        number, again = probe.id >> 1, bool(probe.id & 1)
        step = next((step for step in self._in_flight if step.waits_for(number - step.first, again)), None)
        if step is None or self._plain:
            raise ValueError(f"probe {probe.id} is not waiting for values: it was told already, or is of another run")
        F = self._lower(values if type(values) is list else _numbers(values))
        i = number - step.first
        if len(F) != (m := 1 if again else step.sizes[i]):
            raise ValueError(f"probe {probe.id} has {m} points, but {len(F)} values were told")
        self._take(step, i, F, again)

    def answer(self, oracle: Callable[[Iterable[Array], list[int]], list[float]]) -> bool:
        """Ask, evaluate and tell one probe, its points made one at a time; False if `ask` would return None."""
        if self._plain:
            step = self._in_flight[0]
            points, numbers = self._algorithm.points(self._active, self._state, 0, step.randoms)
            F = oracle(points, numbers)
            if self.sign < 0.0:
                F = self._lower(F)
            if isfinite(sum(F)):
                self._nfev = nfev = self._nfev + len(F)
                self._reached(self._algorithm.advance(self._active, self._state, [F], step.randoms, nfev))
            else:
                self._take_alone(F)
            return True
        if self._pointless:
            return False
        if self._again:
            probe = self._base_probe(*self._again.popleft())
            self.tell(probe, oracle(probe.points, probe.numbers))
            return True
        if (asked := self._unasked()) is None:
            return False
        step, i = asked
        points, numbers = self._algorithm.points(self._active, step.state, i, step.randoms)
        if not self.variables.unchanged:
            points = (self.variables.to_user(z, held=False) for z in points)
        self._take(step, i, self._lower(oracle(points, numbers)), again=False)
        return True

    def _lower(self, F: list[float]) -> list[float]:
        """Values of which lower ones are better."""
        return F if self.sign > 0.0 else [-value for value in F]

    @property
    def done(self) -> bool:
        """Whether the budget is spent, or too many evaluations in a row have failed."""
        return not self._in_flight[0].sizes or self._pointless

    @property
    def one_probe(self) -> bool:
        """Whether all that can be asked now is a single probe."""
        return self._plain

    @property
    def nfev(self) -> int:
        """The number of values told so far."""
        return self._nfev

    @property
    def nit(self) -> int:
        """The number of steps so far."""
        return int(self._state.t)

    @property
    def value(self) -> tuple[float, float]:
        """The smoothed value of recent probes, and its standard error."""
        s = self._state
        n = min(max(s.t, 1), 2 * core.VALUE_MEMORY - 1)  # as many independent values an exponential mean is worth
        return self.sign * s.value, 1.2533 * s.value_spread / n**0.5  # for normal noise, sd = sqrt(pi/2) mean deviation

    @property
    def constant(self) -> bool:
        """Whether no difference of values was seen so far."""
        return bool(self._state.constant)

    @property
    def start(self) -> Array:
        """The point where the run began: x0, or its projection on the domain."""
        return self.variables.to_user(self._state.run.x0)

    def result(self, status: int | None = None, message: str | None = None) -> Result:
        """The result so far."""
        s = self._state
        if status is None:
            status, message = self._status()
        held = [v for v in (s.run.x0, *s) if isinstance(v, np.ndarray)]  # nobody must be able to change them
        result = Result(
            x=self._for_the_user(self._algorithm.output(s), held),
            x_last=self._for_the_user(s.x, held),
            x_average=self._for_the_user(s.average, held),
            nfev=self._nfev,
            nit=s.t,
            status=status,
            message="; ".join(filter(None, (message, s.run.remark))),
            failures=self.failures,
            history=self.history.arrays(self.sign),
            method=repr(self.method),
            seed=self.seed,
            sensitivity=shares(s.sensitivity),
            learned=self._learned(),
        )
        judge(result, self)
        return result

    def _learned(self) -> Learned:
        s = self._state
        distance, search = self._algorithm.learned(self._active, s)
        used = s.asked, s.samples
        return Learned(repr(self._active), self.scale, distance, search, s.spectrum, used, self.domain)

    def _status(self) -> tuple[int, str]:
        if self.failures and self.failures == self._nfev:
            return Status.FAILURES, f"all {self._nfev} calls failed"
        if self._pointless:
            return (
                Status.FAILURES,
                f"stopped: failures left no usable difference in the last {self._barren} calls",
            )
        if getattr(self._state, "converged", False):
            return Status.CONVERGED, "no lower value is left around the result, to the precision of the values"
        if self.done:
            return Status.BUDGET, f"the budget of {self._state.run.budget} calls is spent"
        return Status.RUNNING, "the run is not over"

    def _for_the_user(self, x: Array, held: list[Array]) -> Array:
        """In the user's variables, and in the domain, which rounding may have left; none is a vector that is held."""
        y = self.variables.to_user(x)
        return y.copy() if any(np.may_share_memory(y, v) for v in held) else y

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole run to a file of arrays and a JSON header, which is replaced atomically."""
        checkpoint.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, method: Method | None = None, domain: Any = None) -> Optimizer:
        """Continue a saved run, bit for bit; probes that were asked but not told are asked again.

        A method or a domain of your own cannot be read from a file. Pass it again.
        """
        return checkpoint.load(cls, path, method=method, domain=domain)


def _numbers(values: Any) -> list[float]:
    try:
        return list(map(float, values))
    except (TypeError, ValueError):
        raise ValueError(f"the values of a probe must be one number for each point, not {values!r}") from None
