"""Optimisers as files: one line that says what it is, with a checksum, then plain arrays (npz) with a JSON header.

Reading one never runs anything. The arrays are stored as they are, so a file that claims to hold more than its own size
is refused before it is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import tempfile
import zipfile
from collections import deque
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from poem_cma._types import Array
from poem_cma.domains import given as adapters
from poem_cma.domains import sets as domains
from poem_cma.history import History
from poem_cma.methods import by_name
from poem_cma.paper.algorithm_1 import State
from poem_cma.paper.algorithm_2 import Spectrum
from poem_cma.paper.directions import Search, anisotropic
from poem_cma.run.algorithm import Method, Run
from poem_cma.run.flatten import flatten, restore
from poem_cma.run.in_flight import Lane

if TYPE_CHECKING:
    from poem_cma.optimizer import Optimizer

__all__ = ["from_bytes", "load", "save", "to_bytes"]

VERSION = 17

_FIRST_LINE = re.compile(rb"poem-cma optimizer, format (\d{1,9}), sha256 ([0-9a-f]{64})\n")
_CUSTOM = "custom"


def to_bytes(opt: Optimizer) -> bytes:
    """An optimiser as the content of a file."""
    arrays, header = _pack(opt)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    body = io.BytesIO()
    np.savez(body, allow_pickle=False, **arrays)
    digest = hashlib.sha256(body.getbuffer()).hexdigest()
    return f"poem-cma optimizer, format {VERSION}, sha256 {digest}\n".encode() + body.getbuffer()


def save(opt: Optimizer, path: str | os.PathLike[str]) -> None:
    """Write an optimiser next to its final place, then move it there: a crash leaves the old file or the new one."""
    content = to_bytes(opt)
    path = os.fspath(path)
    handle, part = tempfile.mkstemp(prefix=".poem-cma-", dir=os.path.dirname(path) or ".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def load(
    cls: type[Optimizer], path: str | os.PathLike[str], *, method: Method | None = None, domain: Any = None
) -> Optimizer:
    """Read an optimiser, or raise one ValueError that says why the file cannot be used."""
    path = os.fspath(path)
    with open(path, "rb") as file:
        content = file.read()
    return from_bytes(cls, content, path, method=method, domain=domain)


def from_bytes(
    cls: type[Optimizer], content: bytes, path: str, *, method: Method | None = None, domain: Any = None
) -> Optimizer:
    """The optimiser in the content of a file; `path` is for the messages."""
    try:
        arrays = _read(content)
        header = json.loads(arrays.pop("header").tobytes().decode())
        return _unpack(cls, arrays, header, method, domain)
    except _NeededError as needed:
        raise ValueError(f"{path}: {needed}") from None
    except Exception as error:  # whatever a file made by somebody else may lead to
        raise ValueError(f"{path} is not a usable poem-cma optimizer file: {error or type(error).__name__}") from error


def _read(content: bytes) -> dict[str, Array]:
    """The arrays of an undamaged file of the right kind."""
    first = _FIRST_LINE.match(content)
    if first is None:
        raise ValueError("it was written by something else")
    version, digest = int(first[1]), first[2].decode()
    if version != VERSION:
        raise ValueError(f"it has format version {version}, this library reads version {VERSION}")
    body = content[first.end() :]
    if hashlib.sha256(body).hexdigest() != digest:
        raise ValueError("it is damaged: its checksum is wrong")
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        entries = archive.infolist()
        if any(e.compress_type != zipfile.ZIP_STORED for e in entries) or sum(e.file_size for e in entries) > len(body):
            raise ValueError("it claims to hold more than its size")
    with np.load(io.BytesIO(body), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


class _NeededError(Exception):
    """The file is fine, but something that files cannot hold must be passed."""


def _pack(opt: Optimizer) -> tuple[dict[str, Array], dict[str, Any]]:
    s = opt._state
    arrays: dict[str, Array] = {"x0": s.run.x0}
    scalars = _pack_fields("state_", s, None, arrays)
    spectrum: dict[str, Any] | None = None
    if s.spectrum is not None:
        spectrum = {k: v for k, v in vars(s.spectrum).items() if not isinstance(v, np.ndarray)}
        arrays["eigenvalues"], arrays["vectors"] = s.spectrum.eigenvalues, s.spectrum.vectors
    h = opt.history
    arrays["history"] = h.table()
    if isinstance(opt.scale, np.ndarray):
        arrays["scale"] = opt.scale
    header = {
        "method": {"name": opt.method.name, "settings": opt.method.settings} if _standard(opt.method) else _CUSTOM,
        "domain": _pack_domain(opt.domain, arrays),
        "scale": opt.scale if isinstance(opt.scale, float) else None,
        "seed": opt.seed,
        "handed_over": None if s.run.method is opt.method else s.run.method.name,
        "run": {k: v for k, v in s.run._asdict().items() if k not in ("x0", "domain", "method")},
        "state": scalars,
        "spectrum": spectrum,
        "nfev": opt._nfev,
        "issued": opt._issued,
        "flight": [_pack_lane(f"lane{k}_", lane, s, arrays) for k, lane in enumerate(opt._lanes)],
        "failures": opt.failures,
        "barren": [opt._barren, opt._barren_probes],
        "history": {"stride": h.stride, "seen": h.seen, "last": h.last},
    }
    return arrays, header


def _pack_fields(prefix: str, s: Any, other: Any, arrays: dict[str, Array]) -> dict[str, Any]:
    """The leaves of a state, but for the fields it shares with another one: arrays go where arrays go."""
    shared = () if other is None else tuple(n for n in s._fields if getattr(s, n) is getattr(other, n))
    scalars: dict[str, Any] = {}
    for name, value in flatten(s, leave_out=(*_APART.get(type(s), ("run",)), *shared)).items():
        if isinstance(value, np.ndarray):
            arrays[prefix + name] = value
        else:
            scalars[name] = value
    return scalars


#: Fields of a state that are stored in another way.
_APART = {State: ("run", "search")}


def _pack_lane(prefix: str, lane: Lane, s: Any, arrays: dict[str, Array]) -> dict[str, Any]:
    """A step in flight, with what has been told of it."""
    told = [i for i, F in enumerate(lane.values) if F is not None]
    arrays[prefix + "told"] = np.array(told, dtype=np.int64)
    arrays[prefix + "values"] = np.array([f for i in told for f in lane.values[i] or []], dtype=float)
    return {
        "state": _pack_fields(prefix + "state_", lane.state, s, arrays), "sizes": lane.sizes, "first": lane.first,
        "calls": lane.calls, "complete": lane.complete, "repeats": lane.repeats, "bases": sorted(lane.bases),
    }  # fmt: skip


def _unpack_lane(lane: Lane, packed: dict[str, Any], told: list[int], values: list[float]) -> None:
    lane.open(packed["sizes"], packed["first"])
    for i in told:
        lane.values[i], values = values[: lane.sizes[i]], values[lane.sizes[i] :]
    lane.calls, lane.complete, lane.repeats = packed["calls"], packed["complete"], packed["repeats"]
    lane.bases = set(packed["bases"])
    lane.waiting = len(lane.values) - len(told) + len(lane.bases)


def _unpack(
    cls: type[Optimizer], arrays: dict[str, Array], header: dict[str, Any], method: Method | None, domain: Any
) -> Optimizer:
    opt = cls.__new__(cls)
    packed = header["method"]
    if method is None and packed == _CUSTOM:
        raise _NeededError("it was saved with a method of your own making; pass it as method=")
    opt.method = method if method is not None else by_name(packed["name"], **packed["settings"])
    x0 = arrays["x0"]
    if domain is None:
        domain = _unpack_domain(header["domain"], arrays)
    opt.domain = adapters.as_domain(domain, len(x0))
    opt.scale = arrays["scale"] if "scale" in arrays else header["scale"]
    opt.seed = header["seed"]
    search_domain = adapters.searched(opt.domain, opt.scale, x0)
    active = _active(opt.method, header["handed_over"])
    run = Run(method=active, x0=x0, domain=search_domain, **header["run"])
    fields = _unpack_fields("state_", header["state"], arrays, x0)
    if active.algorithm is not None:
        opt._state = active.algorithm.record(run=run, **restore(fields, active.algorithm.kinds))
    else:
        opt._state = State(run=run, search=_search(active, run, arrays, header), **fields)
    opt.failures = header["failures"]
    opt._barren, opt._barren_probes = header["barren"]
    opt.history = History()
    opt.history.stride, opt.history.seen = header["history"]["stride"], header["history"]["seen"]
    last = header["history"]["last"]
    opt.history.last = None if last is None else tuple(last)
    opt.history.rows = [(int(row[0]), *row[1:]) for row in arrays["history"].tolist()]
    opt._follow()
    opt._plain = False
    randoms, opt._again = opt._lanes.pop().randoms, deque()
    opt._nfev, opt._issued = header["nfev"], header["issued"]
    for k, packed_lane in enumerate(header["flight"]):
        own = _unpack_fields(f"lane{k}_state_", packed_lane["state"], arrays, x0)
        lane = Lane(opt._state._replace(**own) if own else opt._state, randoms.another() if k else randoms)
        told, values = arrays[f"lane{k}_told"].tolist(), arrays[f"lane{k}_values"].tolist()
        _unpack_lane(lane, packed_lane, told, values)
        if not lane.complete and lane.sizes != opt._algorithm.stage(opt._active, lane.state, lane.randoms):
            raise ValueError("its probes do not fit the rest")
        opt._lanes.append(lane)
        opt._again.extend((lane, i) for i in sorted(lane.bases))
    opt._to_ask = deque(sorted(((lane, lane.first) for lane in opt._lanes), key=itemgetter(1)))
    return opt


def _unpack_fields(prefix: str, scalars: dict[str, Any], arrays: dict[str, Array], x0: Array) -> dict[str, Any]:
    fields = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
    if any(v.shape != x0.shape or not np.isfinite(v).all() for k, v in fields.items() if k in _VECTORS):
        raise ValueError("its vectors do not fit together")
    return {**scalars, **fields}


def _active(method: Method, handed_over: str | None) -> Method:
    """The method at work: the one asked for, or one that has taken over from it."""
    for active in (method, method.fallback):
        if active is not None and active.name == (handed_over or method.name):
            return active
    raise ValueError("its method does not fit the rest")


_VECTORS = ("x", "weighted_x", "best_average", "search.x", "scan.found", "progress.x")


def _search(method: Method, run: Run, arrays: dict[str, Array], header: dict[str, Any]) -> Search:
    """The distribution of directions, from the spectrum where one was learned."""
    if header["spectrum"] is None:
        return method.search(len(run.x0), run.domain)
    spectrum = Spectrum(eigenvalues=arrays["eigenvalues"], vectors=arrays["vectors"], **header["spectrum"])
    if method.learning is None or spectrum.vectors.shape != (len(run.x0), *spectrum.eigenvalues.shape):
        raise ValueError("its spectrum does not fit the rest")
    return anisotropic(spectrum, run.domain.tangent, method.learning.whitening)


def _standard(method: Method) -> bool:
    """Whether the method is what its name and settings make of it."""
    try:
        return by_name(method.name, **method.settings) == method
    except (TypeError, ValueError):
        return False


_BUILT_IN = {
    "Ball": (domains.Ball, ("radius", "center")),
    "Box": (domains.Box, ("lower", "upper")),
    "Simplex": (domains.Simplex, ("total",)),
    "L1Ball": (domains.L1Ball, ("radius",)),
}


def _pack_domain(domain: Any, arrays: dict[str, Array]) -> Any:
    """A built-in domain by name and arguments, which go where arrays go; a user's own by a mark."""
    if type(domain) is domains.Whole:
        return None
    name = type(domain).__name__
    if name not in _BUILT_IN or type(domain) is not _BUILT_IN[name][0]:
        return _CUSTOM
    for argument in _BUILT_IN[name][1]:
        arrays["domain_" + argument] = np.asarray(getattr(domain, argument), dtype=float)
    return {"name": name, "inside": bool(domain.inside)}


def _unpack_domain(packed: Any, arrays: dict[str, Array]) -> Any:
    if packed is None:
        return None
    if packed == _CUSTOM:
        raise _NeededError("it was saved with a domain of your own making; pass it as domain=")
    make, names = _BUILT_IN[packed["name"]]
    arguments = {n: arrays["domain_" + n] for n in names}
    plain = {n: float(a) if a.ndim == 0 else a for n, a in arguments.items()}
    return make(**plain, inside=packed["inside"])
