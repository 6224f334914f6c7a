"""An optimiser as a flat table of numbers, strings and arrays under dotted names, and back.

method, domain, scale, seed   what it was made with
run, active                   what does not change during the run, and the name of the method at work
state, spectrum               where it is, and what Algorithm 2 found
flight                        the steps in flight
counts, history               numbers of calls, and the rows that are kept
"""

from __future__ import annotations

from collections import deque
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from poem_cma._types import IntArray, Partial, Value
from poem_cma.domains import given
from poem_cma.domains import sets as domains
from poem_cma.domains.variables import Variables
from poem_cma.history import COLUMNS, History
from poem_cma.methods import by_name
from poem_cma.paper.algorithm_2 import Spectrum
from poem_cma.paper.directions import Search, anisotropic
from poem_cma.paper.state import State
from poem_cma.run.algorithm import Method, Run
from poem_cma.run.checks import check_scale, check_x0
from poem_cma.run.fields import check
from poem_cma.run.flatten import fields_of, flatten, restore, tree, version_of
from poem_cma.run.in_flight import StepInFlight, algorithm_of
from poem_cma.run.randomness import make_seed

if TYPE_CHECKING:
    from poem_cma.optimizer import Optimizer

__all__ = ["CUSTOM", "NeededError", "described", "pack", "unpack"]

#: What stands for a method or a domain of the user's own making.
CUSTOM = "custom"

#: Fields of a state that are packed in another way.
_APART = {State: ("run", "search")}


class NeededError(Exception):
    """The table is fine, but something that it cannot hold must be passed."""


class Step(NamedTuple):
    """A step in flight; the fields in which its state is not that of the run stand beside it."""

    sizes: IntArray
    first: int
    calls: int
    complete: bool
    repeats: int
    bases: IntArray
    told: IntArray  # the probes that were told
    values: Partial  # and their values in a row


class Counts(NamedTuple):
    """Numbers of calls."""

    nfev: int
    issued: int
    failures: int
    barren: int
    barren_probes: int


class Rows(NamedTuple):
    """The history."""

    table: Partial
    stride: int
    seen: int
    last: tuple[Value, ...] | None


_KINDS: dict[str, type] = {kind.__name__: kind for kind in (Step, Counts, Rows)}


def pack(opt: Optimizer) -> dict[str, Any]:
    """The table of an optimiser."""
    s, h = opt._state, opt.history
    leaves: dict[str, Any] = {"method.name": opt.method.name if _standard(opt.method) else CUSTOM}
    leaves |= {f"method.settings.{name}": value for name, value in opt.method.settings.items()}
    domain = described(opt.domain)
    leaves |= {f"domain.{k}": v for k, v in domain.items()} if isinstance(domain, dict) else {"domain": domain}
    leaves |= {"scale": opt.scale, "seed": opt.seed, "sign": opt.sign, "active": s.run.method.name}
    leaves |= flatten("run", s.run, leave_out=("method", "domain"))
    leaves |= flatten("state", s, leave_out=_APART.get(type(s), ("run",)))
    if s.spectrum is not None:
        leaves |= _versioned("spectrum", vars(s.spectrum))
    leaves["flight.length"] = len(opt._in_flight)
    for k, step in enumerate(opt._in_flight):
        leaves |= _pack_step(f"flight.{k}", step, s)
    leaves |= flatten("counts", Counts(opt._nfev, opt._issued, opt.failures, opt._barren, opt._barren_probes))
    return leaves | flatten("history", Rows(h.table(), h.stride, h.seen, h.last))


def _versioned(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """A record that is not a named tuple."""
    kind = name.capitalize()
    return {f"{name}.kind": kind, f"{name}.version": version_of(kind)} | {f"{name}.{k}": v for k, v in fields.items()}


def _pack_step(name: str, step: StepInFlight, s: Any) -> dict[str, Any]:
    """A step in flight, with what has been told of it."""
    told = [i for i, F in enumerate(step.values) if F is not None]
    values = np.array([f for i in told for f in step.values[i] or []], dtype=float)
    sizes, bases, done = (np.array(numbers, dtype=np.int64) for numbers in (step.sizes, sorted(step.bases), told))
    record = Step(sizes, step.first, step.calls, step.complete, step.repeats, bases, done, values)
    own = step.state
    shared = tuple(n for n in own._fields if getattr(own, n) is getattr(s, n))
    return flatten(name, record) | flatten(f"{name}.state", own, leave_out=(*_APART.get(type(own), ("run",)), *shared))


def unpack(cls: type[Optimizer], leaves: dict[str, Any], method: Method | None, domain: Any) -> Optimizer:
    """The optimiser of a table; a method or a domain of the user's own making must be passed."""
    nodes = tree(leaves)
    opt = cls.__new__(cls)
    fields = fields_of(nodes["run"], "Run", Run._fields, {})
    x0 = fields["x0"]
    opt.method, opt.seed, opt.sign = _method(nodes["method"], method), make_seed(nodes["seed"]), nodes.get("sign", 1.0)
    opt.scale = check_scale(nodes["scale"], check_x0(x0))
    opt.domain = given.as_domain(_domain(nodes["domain"]) if domain is None else domain, len(x0))
    opt.variables = Variables(opt.domain, opt.scale)
    active = _active(opt.method, nodes["active"])
    run = Run(method=active, domain=given.searched(opt.domain, opt.scale, x0), **fields)
    check("run", run, "Run", {"Run": Run}, len(x0))
    opt._state = _state(nodes, active, run)
    counts = check("counts", restore(nodes["counts"], _KINDS), "Counts", _KINDS, len(x0))
    opt._nfev, opt._issued, opt.failures, opt._barren, opt._barren_probes = counts
    opt.history = _history(check("history", restore(nodes["history"], _KINDS), "Rows", _KINDS, len(x0)))
    _unpack_flight(opt, nodes["flight"], nodes["state"])
    if opt.sign not in (1.0, -1.0):
        raise ValueError(f"sign must be 1 or -1, not {opt.sign!r}")
    if opt._nfev < opt._state.nfev:
        raise ValueError(f"counts.nfev is {opt._nfev}, and the state was told {opt._state.nfev} values")
    return opt


def _history(rows: Rows) -> History:
    """The rows that are kept, with at least the columns of every method."""
    table = rows.table.tolist()
    steps = table if rows.last is None else [*table, rows.last]
    if rows.stride < 1 or rows.table.ndim != 2 or any(len(step) < len(COLUMNS) for step in steps):
        raise ValueError("its history does not fit together")
    history = History()
    history.stride, history.seen, history.last = rows.stride, rows.seen, rows.last
    history.rows = [(int(row[0]), *row[1:]) for row in table]
    return history


def _state(nodes: dict[str, Any], active: Method, run: Run) -> Any:
    """The state of the run."""
    fields = _fields_of_state(nodes["state"], active)
    if active.algorithm is None:
        fields["search"] = _search(active, run, nodes.get("spectrum"))
    return _checked("state", algorithm_of(active).record(run=run, **fields))


def _fields_of_state(node: dict[str, Any], active: Method) -> dict[str, Any]:
    """The fields of a state that are there."""
    algorithm = algorithm_of(active)
    return fields_of(node, algorithm.record.__name__, algorithm.record._fields, algorithm.kinds)


def _checked(path: str, s: Any) -> Any:
    """The state, if its fields make sense."""
    kinds = algorithm_of(s.run.method).kinds
    return check(path, s, type(s).__name__, {**kinds, type(s).__name__: type(s)}, len(s.run.x0))


def _unpack_flight(opt: Optimizer, flight: dict[str, Any], state: dict[str, Any]) -> None:
    """The steps in flight; probes that were asked but not told are asked again."""
    opt._follow()
    opt._plain = False
    randoms, opt._again = opt._in_flight.pop().randoms, deque()
    s = opt._state
    for k in range(flight["length"]):
        node = flight[str(k)]
        own = _state_in_flight(f"flight.{k}.state", node.pop("state"), state, s)
        step = StepInFlight(own, randoms.another() if k else randoms)
        _unpack_step(step, check(f"flight.{k}", restore(node, _KINDS), "Step", _KINDS, len(s.run.x0)))
        if not step.complete and not _can_be_asked(opt, step):
            raise ValueError("its probes do not fit the rest")
        opt._in_flight.append(step)
        opt._again.extend((step, i) for i in sorted(step.bases))
    opt._to_ask = deque(sorted(((step, step.first) for step in opt._in_flight), key=itemgetter(1)))


def _can_be_asked(opt: Optimizer, step: StepInFlight) -> bool:
    """Whether a step has the probes of its state, and the points of the first are numbers."""
    sizes = opt._algorithm.stage(opt._active, step.state, step.randoms)
    if sizes != step.sizes or not sizes:
        return sizes == step.sizes
    points, numbers = opt._algorithm.points(opt._active, step.state, 0, step.randoms)
    x = next(iter(points))
    return x.shape == step.state.run.x0.shape and bool(np.isfinite(x).all()) and len(numbers) == sizes[0]


def _state_in_flight(path: str, own: dict[str, Any], state: dict[str, Any], s: Any) -> Any:
    """The state that a step was asked from; the file has the fields in which it is not that of the run."""
    if set(own) == {"kind", "version"}:
        return s
    if own["version"] < version_of(own["kind"]):  # it takes all fields to bring them up to date
        own = state | own
    return _checked(path, s._replace(**_fields_of_state(own, s.run.method)))


def _unpack_step(step: StepInFlight, record: Step) -> None:
    step.open(record.sizes.tolist(), record.first)
    values, told = record.values.tolist(), record.told.tolist()
    if len(values) != sum(step.sizes[i] for i in told):
        raise ValueError("its probes do not fit the values that were told")
    for i in told:
        step.values[i], values = values[: step.sizes[i]], values[step.sizes[i] :]
    step.calls, step.complete, step.repeats = record.calls, record.complete, record.repeats
    step.bases = set(record.bases.tolist())
    step.waiting = len(step.values) - len(told) + len(step.bases)


def _method(node: dict[str, Any], method: Method | None) -> Method:
    """The method that was passed, or the one in the table."""
    if method is not None:
        return method
    if node["name"] == CUSTOM:
        raise NeededError("it was saved with a method of your own making; pass it as method=")
    return by_name(node["name"], **node.get("settings", {}))


def _active(method: Method, name: str) -> Method:
    """The method at work: the one asked for, or the one that takes its place where the budget is small."""
    for active in (method, method.fallback):
        if active is not None and active.name == name:
            return active
    raise ValueError("its method does not fit the rest")


def _search(method: Method, run: Run, node: dict[str, Any] | None) -> Search:
    """The distribution of directions, from the spectrum where one was learned."""
    if node is None:
        return method.search(len(run.x0), run.domain)
    spectrum = Spectrum(**fields_of(node, "Spectrum", Spectrum.__dataclass_fields__, {}))
    check("spectrum", spectrum, "Spectrum", {"Spectrum": Spectrum}, len(run.x0))
    if method.learning is None or spectrum.vectors.shape != (len(run.x0), *spectrum.eigenvalues.shape):
        raise ValueError("its spectrum does not fit the rest")
    return anisotropic(spectrum, run.domain.tangent, method.learning.whitening)


def _standard(method: Method) -> bool:
    """Whether the method is what its name and settings make of it."""
    try:
        return by_name(method.name, **method.settings) == method
    except (TypeError, ValueError):
        return False


_BUILT_IN: dict[str, tuple[Any, tuple[str, ...]]] = {
    "Ball": (domains.Ball, ("radius", "center")),
    "Box": (domains.Box, ("lower", "upper", "integer", "log")),
    "Simplex": (domains.Simplex, ("total",)),
    "L1Ball": (domains.L1Ball, ("radius",)),
}


def described(domain: Any) -> dict[str, Any] | str | None:
    """A built-in domain by name and arguments; a user's own by a mark."""
    if type(domain) is domains.Whole:
        return None
    kind = type(domain).__name__
    if kind not in _BUILT_IN or type(domain) is not _BUILT_IN[kind][0]:
        return CUSTOM
    arguments = {name: np.asarray(getattr(domain, name), dtype=float) for name in _BUILT_IN[kind][1]}
    return {"kind": kind, "version": version_of(kind), "outside": bool(domain.outside), **arguments}


def _domain(node: Any) -> Any:
    """The domain from its description."""
    if node is None:
        return None
    if node == CUSTOM:
        raise NeededError("it was saved with a domain of your own making; pass it as domain=")
    make, names = _BUILT_IN[node["kind"]]
    arguments = fields_of(node, node["kind"], ("outside", *names), {})
    return make(**{n: float(a) if isinstance(a, np.ndarray) and a.ndim == 0 else a for n, a in arguments.items()})
