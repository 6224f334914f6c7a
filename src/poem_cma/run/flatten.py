"""Nested records (named tuples) as flat tables of numbers, strings and arrays under dotted names, and back.

Every record is written with its kind and its version. A field that a file does not have takes its default, so a new
field with a default changes nothing for the files that were written before. Any other change of a record adds a
function to `UPGRADES`, which makes the fields of one version those of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

__all__ = ["UPGRADES", "fields_of", "flatten", "restore", "tree", "version_of"]

#: Under these names stand the kind and the version of a record, and the length of a tuple.
_KIND, _VERSION, _LENGTH = "kind", "version", "length"


def _in_records(fields: dict[str, Any]) -> dict[str, Any]:
    """The state of a paper's method, version 2: 27 fields have become 15, three of which are records."""
    records = {
        "gradients": ("Gradients", {"G": "G", "late": "late", "unit": "unit", "flat": "flat"}),
        "weights": (
            "Weights",
            {"unit": "weight_unit", "weight": "weight", "weight_sum": "weight_sum", "weighted_x": "weighted_x",
             "best_score": "best_score", "best_average": "best_average"},
        ),
        "last": ("LastStep", {"eta": "eta", "g_norm": "g_norm", "value": "value", "spread": "value_spread"}),
    }  # fmt: skip
    made = {
        field: {_KIND: kind, _VERSION: 1} | {name: fields.pop(former) for name, former in names.items()}
        for field, (kind, names) in records.items()
    }
    del fields["dimension"]  # that of the search
    return fields | made


def _by_size(fields: dict[str, Any]) -> dict[str, Any]:
    """What repeated pairs say of noise, version 2: in units of the size of values, so the former sums are dropped."""
    return {"clean": fields["clean"], "wait": fields["wait"]}


def _on_one_sample(fields: dict[str, Any]) -> dict[str, Any]:
    """A scan, version 2: on one sample for each direction, and not on means over several."""
    return {name: value for name, value in fields.items() if name != "samples"}


#: By the kind of a record, the changes that it has seen: from fields of version 1 to fields of version 2, and so on.
#: Fields are as the file has them: a record within is a tree with its own kind and version.
UPGRADES: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], ...]] = {
    "State": (_in_records,),
    "Noise": (_by_size,),
    "Scan": (_on_one_sample,),
}


def flatten(name: str, value: Any, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """The leaves of a value by dotted names; of a record, but for some of its fields.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Point(NamedTuple):
    ...     x: float
    ...     y: float
    >>> flatten("at", Point(1.0, 2.0))
    {'at.kind': 'Point', 'at.version': 1, 'at.x': 1.0, 'at.y': 2.0}
    >>> flatten("marks", (3, 4))
    {'marks.length': 2, 'marks.0': 3, 'marks.1': 4}
    """
    if not isinstance(value, tuple):
        return {name: value}
    parts: Mapping[str, Any]
    if hasattr(value, "_asdict"):
        kind, parts = type(value).__name__, value._asdict()
        leaves: dict[str, Any] = {f"{name}.{_KIND}": kind, f"{name}.{_VERSION}": version_of(kind)}
    else:
        parts, leaves = {str(i): one for i, one in enumerate(value)}, {f"{name}.{_LENGTH}": len(value)}
    for part, inner in parts.items():
        if part not in leave_out:
            leaves |= flatten(f"{name}.{part}", inner)
    return leaves


def tree(leaves: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves by dotted names as dictionaries in dictionaries.

    Examples
    --------
    >>> tree({"at.x": 1.0, "at.y": 2.0, "seed": 3})
    {'at': {'x': 1.0, 'y': 2.0}, 'seed': 3}
    """
    root: dict[str, Any] = {}
    for name, value in leaves.items():
        *path, last = name.split(".")
        node = root
        for part in path:
            node = node.setdefault(part, {})
        if last in node:
            raise ValueError(f"it has {name} twice")
        node[last] = value
    return root


def restore(node: Any, kinds: Mapping[str, type]) -> Any:
    """The value from its tree; `kinds` are the records that may occur, by name.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Point(NamedTuple):
    ...     x: float
    ...     y: float = 0.0
    >>> restore(tree({"kind": "Point", "version": 1, "x": 1.0}), {"Point": Point})
    Point(x=1.0, y=0.0)
    """
    if not isinstance(node, dict):
        return node
    if _KIND not in node:
        return tuple(restore(node[str(i)], kinds) for i in range(node[_LENGTH]))
    if node[_KIND] not in kinds:
        raise ValueError(f"it holds a record of an unknown kind, {node[_KIND]!r}")
    kind: Any = kinds[node[_KIND]]
    return kind(**fields_of(node, kind.__name__, kind._fields, kinds))


def fields_of(node: Mapping[str, Any], name: str, names: Collection[str], kinds: Mapping[str, type]) -> dict[str, Any]:
    """The fields of a record of the kind `name` from its tree, brought up to the present version."""
    version, newest = node[_VERSION], version_of(name)
    if node[_KIND] != name or not 1 <= version <= newest:
        raise ValueError(f"it holds {node[_KIND]} in version {version}, and {name} is read up to version {newest}")
    fields = {part: inner for part, inner in node.items() if part not in (_KIND, _VERSION)}
    for upgrade in UPGRADES.get(name, ())[version - 1 :]:
        fields = upgrade(fields)
    if unknown := set(fields) - set(names):
        raise ValueError(f"its {name} has fields that are not known here: {', '.join(sorted(unknown))}")
    return {part: restore(inner, kinds) for part, inner in fields.items()}


def version_of(kind: str) -> int:
    """The present version of a record."""
    return 1 + len(UPGRADES.get(kind, ()))
