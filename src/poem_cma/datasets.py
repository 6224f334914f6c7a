"""The data sets of the paper and its neighbours: find, download, verify.

A set is looked for in `path`, in the folder that ``$POEM_CMA_DATA`` names and in the user's cache; it is
downloaded when none of them has it. Wherever it comes from, a known set must have the known checksum.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias
from urllib import request
from urllib.error import HTTPError

import numpy as np

from poem_cma.problems import libsvm
from poem_cma.problems.libsvm import Array, DatasetError

__all__ = ["DatasetError", "available", "download", "load"]

Progress: TypeAlias = Callable[[int, int | None], None]

MAX_DOWNLOAD = 2**26  # bytes accepted from a server, far more than a known set has


class _Known(NamedTuple):
    shape: tuple[int, int]
    sha256: str  # of the uncompressed file
    packing: str  # the remote file is called name + packing


_PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"  # or $POEM_CMA_MIRROR
_KNOWN = {
    "mushrooms": _Known((8124, 112), "f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538", ""),
    "phishing": _Known((11055, 68), "0cf66ef36604c393da9359b2e5d894a2df8aee31fd184633cefa138add2ef08a", ""),
    "w8a": _Known((49749, 300), "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2", ".bz2"),
    "w8a.t": _Known((14951, 300), "618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde", ".bz2"),
    "a9a": _Known((32561, 123), "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906", ""),
    "a9a.t": _Known((16281, 123), "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9", ""),
}
_SKLEARN = ("breast_cancer", "digits")


def load(name: str, *, path: str | os.PathLike[str] | None = None) -> tuple[Array, Array]:
    """Load a binary classification set.

    Parameters
    ----------
    name : str
        ``mushrooms``, ``phishing``, ``w8a``, ``w8a.t``, ``a9a`` or ``a9a.t`` from the LIBSVM data page;
        ``breast_cancer`` or ``digits`` (odd against even) from scikit-learn; or any other name, for a
        LIBSVM file of your own.
    path : path-like, optional
        A folder that holds the file (plain, ``.bz2`` or ``.xz``), or the file itself.

    Returns
    -------
    A : ndarray of shape (n, d)
        Dense and C-contiguous.
    y : ndarray of shape (n,)
        The larger of the two labels in the file is ``+1.0``, the smaller ``-1.0``.

    Raises
    ------
    DatasetError
        The set cannot be found or fetched, is not the published one, or is damaged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from poem_cma import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "toy").write_text("2 1:0.5 3:1\\n1 2:4\\n2 3:-1\\n")
    ...     A, y = datasets.load("toy", path=folder)
    >>> A
    array([[ 0.5,  0. ,  1. ],
           [ 0. ,  4. ,  0. ],
           [ 0. ,  0. , -1. ]])
    >>> y
    array([ 1., -1.,  1.])
    """
    if name in _SKLEARN:
        if path is not None:
            raise DatasetError(f"{name} comes from scikit-learn; leave out path")
        return _with_signs(name, *_from_sklearn(name))
    known = _KNOWN.get(name)
    found = _find(name, path)
    file = found or download(name)
    try:
        if found and known and (sha256 := _sha256(file)) != known.sha256:
            raise DatasetError(f"not the published {name} (its sha256 is {sha256}); remove or rename it")
        return _with_signs(name, *libsvm.read(file, features=known.shape[1] if known else None))
    except (DatasetError, OSError) as error:
        raise DatasetError(f"cannot use {file}: {error}") from error


def available() -> list[str]:
    """List what `load` can serve without the network; a file is verified when loaded, not here.

    Examples
    --------
    >>> from poem_cma import datasets
    >>> "iris" in datasets.available()
    False
    """
    here = [name for name in _KNOWN if _find(name, None) or _in_folder(_cache(), name)]
    return here + (list(_SKLEARN) if find_spec("sklearn") else [])


def download(name: str, *, progress: Progress | None = None, timeout: float = 30.0) -> Path:
    """Put a set of the LIBSVM data page into the user's cache, unless it is there, and return its file.

    Parameters
    ----------
    name : str
        A set of the LIBSVM data page that `load` knows.
    progress : callable, optional
        Called as ``progress(received, total)`` in bytes, `total` None when the server does not say; the
        last call has ``received == total``. By default a line on the terminal, if there is one.
    timeout : float
        Seconds to wait for the server whenever it is silent.

    Raises
    ------
    DatasetError
        Nothing was fetched, or not the published set; the cache holds no part of it.

    Examples
    --------
    >>> from poem_cma import datasets
    >>> datasets.download("iris")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    poem_cma.problems.libsvm.DatasetError: no data set 'iris'; known are mushrooms, ...
    """
    if (known := _KNOWN.get(name)) is None:
        names = ", ".join((*_KNOWN, *_SKLEARN))
        raise DatasetError(f"no data set {name!r}; known are {names}; path= reads a file of your own")
    cache = _cache()
    if (cached := _in_folder(cache, name)) is not None:
        with suppress(DatasetError, OSError):  # the cache is ours: what is damaged in it is fetched again
            if _sha256(cached) == known.sha256:
                return cached
    url = f"{(os.environ.get('POEM_CMA_MIRROR') or _PAGE).rstrip('/')}/{name}{known.packing}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # The unfinished file has a folder of its own, which is removed however this block is left.
        with tempfile.TemporaryDirectory(prefix=".part-", dir=cache) as folder:
            part = Path(folder, name)
            _fetch(url, known, part, progress or _terminal(name), timeout)
            os.replace(part, cache / name)
    except (ValueError, OSError, http.client.HTTPException) as error:
        reason = " ".join(str(error).split())  # urllib's may have several lines
        advice = "get the file by other means and set POEM_CMA_DATA to its folder"
        raise DatasetError(f"cannot download {url}: {reason}; {advice}") from error
    return cache / name


def _fetch(url: str, known: _Known, part: Path, progress: Progress, timeout: float) -> None:
    """Write the uncompressed set to `part`; raise unless it arrived whole and is what it should be."""
    opener = request.OpenerDirector()
    for handler in _WEB:
        opener.add_handler(handler())
    digest = hashlib.sha256()
    try:
        with opener.open(url, timeout=timeout) as response, part.open("wb") as file:
            for piece in libsvm.unpack(_received(response, progress), known.packing):
                digest.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())  # the name must not reach the disk before the content
    except HTTPError as error:
        error.close()  # it holds the connection
        raise
    if digest.hexdigest() != known.sha256:
        raise DatasetError(f"its sha256 is {digest.hexdigest()}, not {known.sha256}")


class _Redirect(request.HTTPRedirectHandler):
    def redirect_request(self, req: request.Request, fp: IO[bytes], *args: Any) -> request.Request | None:
        fp.close()  # urllib would read its body, however long
        return super().redirect_request(req, fp, *args)


# Without urllib's handlers of file:, ftp: and data:, no redirect leads there.
_WEB = (
    *(request.ProxyHandler, request.HTTPHandler, request.HTTPSHandler, request.UnknownHandler),
    *(request.HTTPErrorProcessor, request.HTTPDefaultErrorHandler, _Redirect),
)


def _received(response: http.client.HTTPResponse, progress: Progress) -> Iterator[bytes]:
    received, total = 0, response.length
    for block in libsvm.blocks(response):
        received += len(block)
        if received > MAX_DOWNLOAD:
            raise DatasetError(f"the server sends more than {MAX_DOWNLOAD} bytes")
        progress(received, total)
        yield block
    if total is None:
        progress(received, received)
    elif received < total:  # http.client does not mind
        raise DatasetError(f"the connection ended after {received} of {total} bytes")


def _terminal(name: str) -> Progress:
    def show(received: int, total: int | None) -> None:
        of = "" if total is None else f" of {total / 1e6:.1f}"
        # Each time back to the start of the line, so that an error message is not appended to it.
        sys.stderr.write(f"{name}: {received / 1e6:.1f}{of} MB" + ("\n" if received == total else "\r"))
        sys.stderr.flush()

    return show if sys.stderr is not None and sys.stderr.isatty() else lambda *_: None


def _find(name: str, path: str | os.PathLike[str] | None) -> Path | None:
    """Return the file of that name in the places that the user has named, or None."""
    if Path(name).name != name:
        raise DatasetError(f"{name!r} is not a name; give the file as path=")
    for origin, place in (("path", path), ("POEM_CMA_DATA", os.environ.get("POEM_CMA_DATA"))):
        if place:
            folder = Path(place).expanduser()
            if folder.is_file() and origin == "path":
                return folder
            if not folder.is_dir():  # a slip of the pen must not end in a download
                raise DatasetError(f"{origin} is {folder}, which is not a folder")
            if (file := _in_folder(folder, name)) is not None:
                return file
    return None


def _in_folder(folder: Path, name: str) -> Path | None:
    candidates = (folder / (name + suffix) for suffix in ("", ".bz2", ".xz"))
    return next((file for file in candidates if file.is_file()), None)


def _cache() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "poem-cma")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    for piece in libsvm.text(path):
        digest.update(piece)
    return digest.hexdigest()


def _from_sklearn(name: str) -> tuple[Array, Array]:
    try:
        sklearn_datasets = import_module("sklearn.datasets")
    except ImportError:
        advice = 'pip install "poem-cma[experiments]"'
        raise DatasetError(f"{name} comes from scikit-learn, which is not installed: {advice}") from None
    A, labels = getattr(sklearn_datasets, f"load_{name}")(return_X_y=True)
    return A, labels % 2 if name == "digits" else labels


def _with_signs(name: str, A: Array, labels: Array) -> tuple[Array, Array]:
    values = np.unique(labels)
    if len(values) != 2:
        raise DatasetError(f"{name} has {len(values)} distinct labels; exactly two are required")
    return np.ascontiguousarray(A, dtype=np.float64), np.where(labels == values[1], 1.0, -1.0)
