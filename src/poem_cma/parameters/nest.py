"""Parameters as a nest of dictionaries, lists, tuples, named tuples and dataclasses that hold arrays and numbers.

The search knows vectors only. A `Structure` remembers the form of a nest, and turns nests into vectors and back.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.named import Declared
from poem_cma.result import Result

__all__ = ["Structure", "structure_of"]


@dataclass(frozen=True)
class _Leaf:
    """An array (`shape`), or a number (None), at a place in the vector."""

    path: str
    start: int
    stop: int
    shape: tuple[int, ...] | None
    declared: Declared | None = None  # as which variable it was declared
    integer: bool = False  # whether it is an integer to the user

    def leaves(self) -> Iterator[_Leaf]:
        yield self

    def flatten(self, value: Any) -> list[Array]:
        leaf = _as_array(value.start if isinstance(value, Declared) else value, self.path)
        if leaf.shape != (self.shape or ()):
            raise ValueError(f"{self.path} must have shape {self.shape or ()}, not {leaf.shape}")
        return [leaf.ravel()]

    def unflatten(self, x: Array) -> Any:
        if self.shape is None:
            return int(x[self.start]) if self.integer else float(x[self.start])
        return x[self.start : self.stop].reshape(self.shape)

    def unflatten_rows(self, X: Array) -> Any:
        rows = X[:, self.start : self.stop].reshape(len(X), *(self.shape or ()))
        return rows.astype(np.int64) if self.integer else rows

    def pieces(self, given: Any) -> Iterator[tuple[_Leaf | _Branch, Any]]:
        yield self, given

    def with_integers(self, integer: Array) -> _Leaf:
        return dataclasses.replace(self, integer=self.shape is None and bool(integer[self.start]))


@dataclass(frozen=True)
class _Branch:
    """A container: its type, and its parts by name or place."""

    path: str
    start: int
    stop: int
    kind: type
    parts: dict[Any, _Leaf | _Branch]

    def leaves(self) -> Iterator[_Leaf]:
        for part in self.parts.values():
            yield from part.leaves()

    def flatten(self, value: Any) -> list[Array]:
        given = _parts_of(value)
        if given is None or given.keys() != self.parts.keys():
            raise ValueError(f"{self.path} must be a {self.kind.__name__} of {_listed(self.parts)}, not {value!r}")
        return [leaf for name, part in self.parts.items() for leaf in part.flatten(given[name])]

    def unflatten(self, x: Array) -> Any:
        return self._made([part.unflatten(x) for part in self.parts.values()])

    def unflatten_rows(self, X: Array) -> Any:
        return self._made([part.unflatten_rows(X) for part in self.parts.values()])

    def _made(self, parts: list[Any]) -> Any:
        if self.kind in (list, tuple):
            return self.kind(parts)
        if self.kind is dict:
            return dict(zip(self.parts, parts, strict=True))
        return self.kind(**dict(zip(self.parts, parts, strict=True)))

    def pieces(self, given: Any) -> Iterator[tuple[_Leaf | _Branch, Any]]:
        """What is given for the parts, or for a part as a whole; None for those that are left out."""
        values = None if isinstance(given, np.ndarray) else _parts_of(given)
        if values is None:
            yield self, given
            return
        if unknown := values.keys() - self.parts.keys():
            raise ValueError(f"{self.path} has {_listed(self.parts)}, but no {_listed(unknown)}")
        for name, part in self.parts.items():
            yield from part.pieces(values.get(name))

    def with_integers(self, integer: Array) -> _Branch:
        return dataclasses.replace(self, parts={name: p.with_integers(integer) for name, p in self.parts.items()})


class Structure:
    """The form of a nest of arrays and numbers, which turns such nests into vectors and back.

    `minimize`, `replicate` and the dimension tools use one by themselves; `Optimizer` works on vectors, so its users
    hold one in their hands.

    Parameters
    ----------
    example
        A dictionary, list, tuple, named tuple or dataclass, nested at will, with arrays and numbers for leaves. A
        number may also be declared as `poem_cma.Real` or `poem_cma.Integer`.

    Examples
    --------
    >>> import numpy as np
    >>> form = Structure({"w": np.zeros((2, 2)), "b": 0.0})
    >>> form.flatten({"w": np.eye(2), "b": 5.0})
    array([1., 0., 0., 1., 5.])
    >>> form.unflatten(np.arange(5.0))
    {'w': array([[0., 1.],
           [2., 3.]]), 'b': 4.0}
    """

    def __init__(self, example: Any) -> None:
        self._root = _grow(example, "x0", 0)
        self.size = self._root.stop

    def flatten(self, value: Any) -> Array:
        """The leaves one after another, in single precision if all of them are."""
        leaves = self._root.flatten(value)
        single = all(leaf.dtype == np.float32 for leaf in leaves)
        together: Any = np.concatenate([*leaves, np.empty(0, np.float32)])
        flat: Array = together.astype(np.float32 if single else np.float64)
        if not np.isfinite(flat).all():
            where = int(np.flatnonzero(~np.isfinite(flat))[0])
            leaf = next(leaf for leaf in self._root.leaves() if leaf.start <= where < leaf.stop)
            raise ValueError(f"x0 must be finite, but {leaf.path} holds {flat[where]}")
        return flat

    def names(self) -> list[str]:
        """A name for each number, from the keys and places that lead to it.

        >>> Structure({"rate": 1.0, "w": np.zeros(2)}).names()
        ['rate', 'w[0]', 'w[1]']
        """
        found = []
        for leaf in self._root.leaves():
            name = re.sub(r"\['([^']*)'\]", r".\1", leaf.path.removeprefix("x0")).lstrip(".")
            places = [""] if leaf.shape is None else [f"[{', '.join(map(str, i))}]" for i in np.ndindex(leaf.shape)]
            found += [name + place for place in places]
        return found

    def unflatten(self, x: Array) -> Any:
        """A vector as a nest: numbers as floats or ints, arrays as views of the vector."""
        return self._root.unflatten(x)

    def unflatten_rows(self, X: Array) -> Any:
        """The rows of a matrix as one nest, whose leaves have a first axis more."""
        return self._root.unflatten_rows(X)

    def objective(self, fun: Callable[..., Any], vectorized: bool | Literal["rows"] = False) -> Callable[..., Any]:
        """A function of nests as a function of vectors, or of the rows of a matrix."""
        return _OfVectors(fun, self, bool(vectorized))

    def scale(self, given: Any) -> Any:
        """A scale for all, or a nest of scales: numbers, or arrays like their leaves; 1 for those left out."""
        if _parts_of(given) is None or isinstance(given, np.ndarray):
            return given
        flat = np.ones(self.size)
        for node, value in self._root.pieces(given):
            if value is not None:
                flat[node.start : node.stop] = _spread(value, node)
        return flat

    def domain(self, given: Any) -> Any:
        """A domain for the vector, or a nest of domains, one for each part that has one.

        A number that x0 declares as `Real` or `Integer` has its domain from there.
        """
        declared = [leaf for leaf in self._root.leaves() if leaf.declared is not None]
        whole = given is not None and (_parts_of(given) is None or hasattr(given, "project"))
        if not declared and (whole or given is None):
            return given
        pieces = [] if given is None else [(self._root, given)] if whole else list(self._root.pieces(given))
        given_twice = [a.path for a in declared for b, v in pieces if v is not None and b.start <= a.start < b.stop]
        if given_twice:
            raise ValueError(f"{given_twice[0]} has its domain from x0, and another one from domain=: give one of them")
        from poem_cma.domains.product import product

        places = [(node.start, node.stop, value) for node, value in pieces if value is not None]
        return product(_filled(places + [(leaf.start, leaf.stop, leaf.declared) for leaf in declared], self.size))

    def with_integers(self, domain: Any) -> Structure:
        """The same form, where numbers that are integers in a domain for the vector are Python's ints."""
        from poem_cma.domains.given import as_domain

        integer = as_domain(domain, self.size).integer
        return self._typed(np.broadcast_to(integer, self.size)) if np.any(integer) else self

    def with_reals(self) -> Structure:
        """The same form, where all numbers are floats."""
        return self._typed(np.zeros(self.size, dtype=bool))

    def _typed(self, integer: Array) -> Structure:
        form = object.__new__(Structure)
        form.size, form._root = self.size, self._root.with_integers(integer)
        return form


def structure_of(x0: Any) -> Structure | None:
    """The structure of x0, or of the point of a result; None where it is a vector, or what can only be meant as one."""
    x0 = x0.x if isinstance(x0, Result) else x0
    return Structure(x0) if _is_structure(x0) else None


def _is_structure(x0: Any) -> bool:
    if isinstance(x0, Declared):
        return True
    if isinstance(x0, list | tuple) and not hasattr(x0, "_fields"):
        return any((isinstance(v, np.ndarray) and v.ndim > 0) or _is_structure(v) for v in x0)
    return _parts_of(x0) is not None


class _OfVectors:
    """The user's function behind a change of form; workers can be sent it."""

    def __init__(self, fun: Callable[..., Any], structure: Structure, rows: bool) -> None:
        self.__wrapped__ = fun  # for those who look at the signature
        self._structure, self._rows = structure, rows
        self.__name__ = getattr(fun, "__name__", type(fun).__name__)

    def __call__(self, x: Array, *xi: Any) -> Any:
        form = self._structure
        return self.__wrapped__(form.unflatten_rows(x) if self._rows else form.unflatten(x), *xi)


def _grow(value: Any, path: str, start: int) -> _Leaf | _Branch:
    given = None if isinstance(value, np.ndarray) else _parts_of(value)
    if isinstance(value, Declared):
        return _Leaf(path, start, start + 1, None, value)
    if given is None:
        leaf = _as_array(value, path)
        shape = leaf.shape if isinstance(value, np.ndarray) else None
        return _Leaf(path, start, start + leaf.size, shape)
    parts: dict[Any, _Leaf | _Branch] = {}
    stop = start
    by_attribute = hasattr(value, "_fields") or dataclasses.is_dataclass(value)
    for name, part in given.items():
        parts[name] = _grow(part, f"{path}.{name}" if by_attribute else f"{path}[{name!r}]", stop)
        stop = parts[name].stop
    kind = dict if isinstance(value, Mapping) else type(value)
    return _Branch(path, start, stop, kind, parts)


def _filled(places: list[tuple[int, int, Any]], size: int) -> list[tuple[int, int, Any]]:
    """The pieces in their order, with None for what lies between them."""
    filled: list[tuple[int, int, Any]] = []
    for start, stop, value in sorted(places, key=lambda place: place[:2]):
        filled += [(filled[-1][1] if filled else 0, start, None), (start, stop, value)]
    return [*filled, (filled[-1][1] if filled else 0, size, None)]


def _parts_of(value: Any) -> Mapping[Any, Any] | None:
    """The parts of a container by name or place; None where it is no container."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
    return None


def _as_array(value: Any, path: str) -> Array:
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or not isinstance(value, np.ndarray | np.generic | int | float):
        raise TypeError(f"{path} must be an array or a number, not {value!r}: keep what is not searched outside of x0")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _spread(value: Any, node: _Leaf | _Branch) -> Array:
    """A scale for a part: a number for all of it, or an array of its shape."""
    sizes = np.asarray(value, dtype=float)
    shape = node.shape or () if isinstance(node, _Leaf) else (node.stop - node.start,)
    if sizes.ndim and sizes.shape != shape:
        raise ValueError(f"the scale of {node.path} must be a number or have shape {shape}, not {sizes.shape}")
    return np.broadcast_to(sizes, shape).ravel()


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "no parts"
