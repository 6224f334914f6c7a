"""Calls of many runs made together: one call of a function of rows for all, and runs in step advanced as one state.

This is a way to evaluate, beside `loop.alone`; the loop is the same. Every run has the bits that it has alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.run.algorithm import Probe
from poem_cma.run.direct import Direct
from poem_cma.run.joint import JointRuns, can_join, in_step, joint
from poem_cma.run.oracle import Oracle, in_rows, one_for_each
from poem_cma.run.settings import Problem
from poem_cma.run.vectorized import ROWS_AT_ONCE, ask_rows, joined, tell_rows

__all__ = ["SharedCalls"]

Runs = Sequence[Direct]


class SharedCalls:
    """Advances runs of the same problem together, as far as that is possible."""

    def __init__(self, problem: Problem, one_step: bool) -> None:
        self._fun = problem.fun
        self._one_step = one_step  # at a time, so that each run is seen after each of its steps
        self._groups: list[JointRuns] = []
        #: Whether one call of the function may serve several runs.
        self._shared = problem.vectorized == "rows" or (problem.vectorized is True and problem.sample is None)

    def __call__(self, runs: Runs) -> Runs:
        """Take runs some steps on; those that had not ended before.

        First all come to where they can be joined with others, or to their end. Then those that are joined go on to
        their end, or until one of them meets something unusual.
        """
        going = [run for run in runs if not run.opt.done]
        if unable := [run for run in going if not can_join(run.opt)]:
            self._one_round(unable)
        elif going:
            self._in_groups(going)
        return going

    def _in_groups(self, runs: Runs) -> None:
        """Advance runs in step with each other as one; those that are in step with no others take a round."""
        opts = [run.opt for run in runs]
        rest, calls = set(range(len(runs))), sum(opt.nfev for opt in opts)
        before, self._groups = self._groups, []
        for places in in_step(opts):
            evaluate = _Evaluate(self._fun, [runs[i].oracle for i in places], self._shared)
            group = joint([opts[i] for i in places], before)
            group.advance(evaluate, opts[places[0]].nfev + 1 if self._one_step else inf)
            self._groups.append(group)
            rest -= set(places)
        if sum(opt.nfev for opt in opts) == calls:
            rest = set(range(len(runs)))
        if rest:
            self._one_round([runs[i] for i in sorted(rest)])

    def _one_round(self, runs: Runs) -> None:
        """Every run asks what it can ask now; then all are told."""
        if not self._shared:
            for run in runs:
                run.step()
            return
        asked: list[tuple[Direct, list[Probe]]] = []
        numbers = 0
        for run in runs:
            if numbers < ROWS_AT_ONCE and (probes := ask_rows(run.opt)):
                asked.append((run, probes))
                numbers += sum(probe.points.size for probe in probes)
        values = _values(self._fun, [(run.oracle, *joined(probes)) for run, probes in asked])
        for k, (run, probes) in enumerate(asked):
            if values is not None:
                tell_rows(run.opt, probes, values[k])
            elif run.oracle.by_row:  # in one call what is one call of a run alone: if it raises, all of it has failed
                tell_rows(run.opt, probes, run.oracle.evaluate(*joined(probes)))
            else:
                for probe in probes:
                    run.opt.tell(probe, run.oracle.evaluate(probe.points, probe.numbers))


def _values(fun: Callable[..., Any], asked: list[tuple[Oracle, Array, list[int]]]) -> list[list[float]] | None:
    """The values of points of many runs, from one call; None if that does not go well."""
    xi = [one for oracle, _, numbers in asked for one in oracle.draw(numbers)]
    points = np.concatenate([points for _, points, _ in asked])
    values = _in_one_call(fun, points, in_rows(xi)) if xi else _in_one_call(fun, points)
    if values is None:
        return None
    parts = []
    told = values.tolist()
    for oracle, _, numbers in asked:
        oracle.nfev += len(numbers)
        parts.append(told[: len(numbers)])
        told = told[len(numbers) :]
    return parts


def _in_one_call(fun: Callable[..., Any], points: Array, *xi: Any) -> Array | None:
    """The values of rows that belong to many runs; None where one failed: then each run sees to its own failures."""
    try:
        out = fun(points, *xi)
    except Exception:
        return None
    values = one_for_each(points, out)
    finite = np.vdot(values, values) < inf or np.isfinite(values).all()  # the first is quicker; squares may overflow
    return values if finite else None


class _Evaluate:
    """The values of runs in step with each other: points (m of shape (n, d)) to values (m, n, 1)."""

    def __init__(self, fun: Callable[..., Any], oracles: Sequence[Oracle], shared: bool) -> None:
        self._fun = fun
        self._oracles = oracles
        self._shared = shared
        self._calls = 0  # that the oracles have not counted

    def __call__(self, points: list[Array], numbers: list[int]) -> Array:
        m, n = len(points), len(self._oracles)
        if self._shared:
            F = _in_one_call(self._fun, np.concatenate(points), *self._draw(numbers))
            if F is not None:
                self._calls += m
                return F.reshape(m, n, 1)
        for oracle in self._oracles:
            oracle.nfev += self._calls
        self._calls = 0
        each = [oracle.evaluate((P[i] for P in points), numbers) for i, oracle in enumerate(self._oracles)]
        return np.array(each).T.reshape(m, n, 1)

    def _draw(self, numbers: list[int]) -> tuple[Any, ...]:
        """The xi's of all runs for the first point, then for the next; nothing where there is nothing to draw."""
        if not self._oracles[0].samples:
            return ()
        first, *others = numbers
        if any(number != first for number in others):
            return (in_rows([oracle.xi(number) for number in numbers for oracle in self._oracles]),)
        xi = in_rows([oracle.xi(first) for oracle in self._oracles])  # as a rule: the points of a probe share theirs
        return (np.concatenate([xi] * len(numbers)) if isinstance(xi, np.ndarray) else xi * len(numbers),)
