"""Read LIBSVM text, one row ``label index:value index:value ...`` to a line, within stated bounds.

Such files come from the network, so nothing here trusts them: every step works on small pieces, and each
constant below is checked before the memory or the time it stands for is spent.
"""

from __future__ import annotations

import bz2
import lzma
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from math import isfinite
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["DatasetError", "blocks", "parse", "read", "text", "unpack"]

Array: TypeAlias = npt.NDArray[np.float64]

MAX_TEXT = 2**30  # bytes of text in one file, after decompression
MAX_LINE = 2**20  # bytes in one line
MAX_INDEX = 1_000_000  # largest feature index
MAX_DENSE = 2**31  # bytes of the dense matrix and what goes with it
MAX_RATIO = 250  # text bytes for each compressed byte; real sets stay below 60 ...
MIN_BOMB = 2**22  # ... and text this short is no danger at any ratio
MAX_DECODER = 2**27  # bytes an xz file may claim for its dictionary; `xz -9` claims half of it

_BLOCK = 2**16  # bytes handled at once


class DatasetError(ValueError):
    """A data set that cannot be found, fetched, trusted or read; its text says what to do.

    Examples
    --------
    >>> issubclass(DatasetError, ValueError)
    True
    """


def read(path: Path, *, features: int | None = None) -> tuple[Array, Array]:
    """Read a plain, ``.bz2`` or ``.xz`` LIBSVM file.

    Parameters
    ----------
    path : Path
        The file; its suffix says how it is compressed.
    features : int, optional
        Number of columns; by default the largest index in the file.

    Returns
    -------
    A : ndarray of shape (n, features)
    labels : ndarray of shape (n,)
        As written in the file.

    Raises
    ------
    DatasetError
        The file is damaged or breaks a bound of this module; the text names the line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.bz2"
    ...     _ = path.write_bytes(bz2.compress(b"+1 1:0.5 3:2"))
    ...     A, labels = read(path)
    >>> A, labels
    (array([[0.5, 0. , 2. ]]), array([1.]))
    """
    return parse(text(path), features=features)


def text(path: Path) -> Iterator[bytes]:
    """Iterate over the text of a plain, ``.bz2`` or ``.xz`` file, a bounded piece at a time.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "toy").write_bytes(b"+1 1:0.5 3:2")
    ...     list(text(Path(folder, "toy")))
    [b'+1 1:0.5 3:2']
    """
    with path.open("rb") as file:
        yield from unpack(blocks(file), path.suffix)


def blocks(file: BinaryIO) -> Iterator[bytes]:
    """Iterate over the bytes of an open file, a bounded block at a time.

    Examples
    --------
    >>> import io
    >>> list(blocks(io.BytesIO(b"+1 1:2")))
    [b'+1 1:2']
    """
    return iter(lambda: file.read(_BLOCK), b"")


def unpack(packed: Iterable[bytes], suffix: str) -> Iterator[bytes]:
    """Decompress a stream of bytes by a file's suffix: ``.bz2``, ``.xz``, or anything else for plain.

    Examples
    --------
    >>> b"".join(unpack([bz2.compress(b"+1 1:2")], ".bz2"))
    b'+1 1:2'
    """
    decompressor = _DECOMPRESSORS.get(suffix)
    total = 0
    for piece in packed if decompressor is None else _decompress(packed, decompressor):
        total += len(piece)
        if total > MAX_TEXT:
            raise DatasetError(f"the text is longer than {MAX_TEXT} bytes")
        yield piece


def parse(pieces: Iterable[bytes], *, features: int | None = None) -> tuple[Array, Array]:
    """Turn LIBSVM text, cut into pieces anywhere, into a dense matrix and its labels.

    Indices start at 1 and increase along a line; labels and values are finite numbers; no line is empty.

    Examples
    --------
    >>> A, labels = parse([b"1 1:0.5\\n2 2:", b"-3\\n"])
    >>> A
    array([[ 0.5,  0. ],
           [ 0. , -3. ]])
    >>> parse([b"1 1:0.5\\n2 2:1 2:1\\n"])
    Traceback (most recent call last):
    poem_cma.problems.libsvm.DatasetError: line 2: index 2 follows index 2; indices must increase
    """
    labels, values = array("d"), array("d")
    indices, starts = array("i"), array("q", [0])  # row n owns entries starts[n] to starts[n + 1]
    width = features or 0
    lines = _lines(pieces)
    for number in count(1):
        try:
            line = next(lines, None)
            if line is None:
                break
            labels.append(_append_row(line, indices, values, features or MAX_INDEX))
            if len(indices) > starts[-1]:
                width = max(width, indices[-1])
            starts.append(len(indices))
            if 8 * number * (width + 2) > MAX_DENSE:  # the matrix, the labels and `starts`
                raise ValueError(f"{number} rows x {width} features take more than {MAX_DENSE} bytes")
        except (ValueError, OSError) as error:
            raise DatasetError(f"line {number}: {error}") from error
    if not labels or not width:
        raise DatasetError("line 1: the file has no rows or no features")

    from scipy.sparse import csr_array  # slow to import, needed only here

    entries = (np.asarray(values), np.asarray(indices) - 1, np.asarray(starts))
    A = csr_array(entries, shape=(len(labels), width)).toarray()
    return A, np.array(labels)


def _append_row(line: bytes, indices: array[int], values: array[float], largest: int) -> float:
    """Append the pairs of one line to `indices` and `values`, and return its label."""
    if len(line) > MAX_LINE:
        raise ValueError(f"longer than {MAX_LINE} bytes")
    if b"_" in line:  # Python reads 1_0 as ten
        raise ValueError("unexpected character '_'")
    words = line.split()
    if not words:
        raise ValueError("empty; a row starts with its label")
    try:
        label = float(words[0])
    except ValueError:
        label = float("nan")
    if not isfinite(label):
        raise ValueError(f"expected a label, a finite number, got {_quote(words[0])}")
    previous = 0
    for pair in words[1:]:
        index_text, _, value_text = pair.partition(b":")
        try:
            index, value = int(index_text), float(value_text)
        except ValueError:  # Python's own text would quote all of it
            raise ValueError(f"expected index:value, got {_quote(pair)}") from None
        if not 1 <= index <= largest:
            raise ValueError(f"expected an index from 1 to {largest}, got {_quote(index_text)}")
        if index <= previous:
            raise ValueError(f"index {index} follows index {previous}; indices must increase")
        if not isfinite(value):
            raise ValueError(f"expected a finite value, got {_quote(pair)}")
        indices.append(index)
        values.append(value)
        previous = index
    return label


def _quote(word: bytes) -> str:
    """Show a word of the file in an error; it may be a megabyte long."""
    return repr(word[:40])[1:] + ("..." if len(word) > 40 else "")


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        if len(rest) > MAX_LINE:  # hand over what there is: it is refused for its length
            break
    if rest:
        yield rest


_Decompressor: TypeAlias = bz2.BZ2Decompressor | lzma.LZMADecompressor

_DECOMPRESSORS: dict[str, Callable[[], _Decompressor]] = {
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_DECODER),
}


def _decompress(packed: Iterable[bytes], make: Callable[[], _Decompressor]) -> Iterator[bytes]:
    decompressor, complete = make(), False
    taken = given = 0
    for block in packed:
        taken += len(block)
        while block or not decompressor.needs_input:
            try:
                piece = decompressor.decompress(block, _BLOCK)
            except (OSError, lzma.LZMAError) as error:
                raise DatasetError(f"the compressed data is damaged: {error}") from error
            given += len(piece)
            if given > max(MAX_RATIO * taken, MIN_BOMB):
                raise DatasetError(f"the file unpacks to more than {MAX_RATIO} times its size")
            block, complete = b"", decompressor.eof
            if complete:  # parallel compressors write several streams, one after another
                block, decompressor = decompressor.unused_data, make()
            yield piece
    if not complete:
        raise DatasetError("the compressed data ends early; the file is truncated")
