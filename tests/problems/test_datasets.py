"""Finding, downloading and verifying data sets, against a server on this machine that can misbehave."""

from __future__ import annotations

import bz2
import hashlib
import http.server
import io
import lzma
import os
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from poem_cma import datasets
from poem_cma.datasets import DatasetError

TEXT = b"2 1:0.5 3:1\n1 2:4\n2 3:-1\n"
A = np.array([[0.5, 0, 1, 0], [0, 4, 0, 0], [0, 0, -1, 0]])  # the set is known to have four features
Y = np.array([1.0, -1.0, 1.0])
PACKED = bz2.compress(TEXT)

# Where the published sets are looked for when POEM_CMA_DATA is not set.
SHARED = Path(__file__).parents[3] / "shared" / "data"


class Server(http.server.ThreadingHTTPServer):
    """Serves `PACKED` as /toy.bz2 and counts; `behaviour` names how it goes wrong."""

    daemon_threads = True
    behaviour = "good"
    requests = 0
    chatter = 0  # blocks of 64 KiB in the body of a redirect
    heard_out = False  # whether a client has taken all of them

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.gone = threading.Event()  # lets a silent answer end with the test

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is what the tests are about."""


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests += 1
        behaviour = self.server.behaviour
        if behaviour.startswith("redirect ") and not self.path.endswith("/moved"):
            self.send_response(302)
            self.send_header("Location", behaviour.removeprefix("redirect "))
            self.end_headers()
            for _ in range(self.server.chatter):
                self.wfile.write(bytes(2**16))
            self.server.heard_out = True
        elif behaviour == "missing" or not self.path.endswith(("/toy.bz2", "/moved")):
            self.send_error(404)
        else:
            self._send(behaviour)

    def _send(self, behaviour: str) -> None:
        body = {"altered": bz2.compress(TEXT.replace(b"4", b"5")), "not bz2": TEXT}.get(behaviour, PACKED)
        self.send_response(200)
        if behaviour != "unmeasured":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if behaviour in ("truncated", "silent"):
            self.wfile.write(body[:-5])
            if behaviour == "silent":
                self.server.gone.wait(10)
            return
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no other data, and one known set, "toy"."""
    monkeypatch.setattr(datasets, "_cache", lambda: tmp_path / "cache")
    monkeypatch.delenv("POEM_CMA_DATA", raising=False)
    monkeypatch.setenv("POEM_CMA_MIRROR", "http://127.0.0.1:9/nobody-listens")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    toy = datasets._Known((3, 4), hashlib.sha256(TEXT).hexdigest(), ".bz2")
    monkeypatch.setitem(datasets._KNOWN, "toy", toy)
    return tmp_path / "cache"


@pytest.fixture
def server(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as server:
        monkeypatch.setenv("POEM_CMA_MIRROR", f"http://127.0.0.1:{server.server_port}/data/")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.gone.set()
        server.shutdown()
        thread.join()


def assert_toy(loaded: tuple[np.ndarray, np.ndarray]) -> None:
    np.testing.assert_array_equal(loaded[0], A)
    np.testing.assert_array_equal(loaded[1], Y)
    assert loaded[0].dtype == loaded[1].dtype == np.float64
    assert loaded[0].flags.c_contiguous


def contents(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.rglob("*"))


# Download


def test_downloads_once(server: Server, cache: Path) -> None:
    assert_toy(datasets.load("toy"))
    assert_toy(datasets.load("toy"))
    assert server.requests == 1
    assert contents(cache) == ["toy"]
    assert (cache / "toy").read_bytes() == TEXT


@pytest.mark.usefixtures("server")
def test_content_reaches_the_disk_before_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def record(name: str, real: Callable[..., None]) -> None:
        monkeypatch.setattr(os, name, lambda *args: (calls.append(name), real(*args)))

    record("fsync", os.fsync)
    record("replace", os.replace)
    datasets.download("toy")
    assert calls == ["fsync", "replace"]


@pytest.mark.parametrize("behaviour", ["good", "unmeasured"])
def test_progress(server: Server, behaviour: str) -> None:
    server.behaviour = behaviour
    calls: list[tuple[int, int | None]] = []
    datasets.download("toy", progress=lambda *call: calls.append(call))
    size = len(PACKED)
    assert calls == ([(size, size)] if behaviour == "good" else [(size, None), (size, size)])


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_goes_to_a_terminal_only(server: Server, terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    stderr.isatty = lambda: terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stderr)
    datasets.download("toy")
    assert server.requests == 1
    assert stderr.getvalue() == ("toy: 0.0 of 0.0 MB\n" if terminal else "")


def test_redirect_is_followed(server: Server) -> None:
    server.behaviour = "redirect /elsewhere/moved"
    assert_toy(datasets.load("toy"))
    assert server.requests == 2


def test_body_of_a_redirect_is_not_read(server: Server) -> None:
    server.behaviour, server.chatter = "redirect /elsewhere/moved", 1000
    assert_toy(datasets.load("toy"))
    assert not server.heard_out


@pytest.mark.parametrize(
    ("behaviour", "complaint"),
    [
        ("missing", "404"),
        ("truncated", f"the connection ended after {len(PACKED) - 5} of {len(PACKED)} bytes"),
        ("altered", "its sha256 is [0-9a-f]{64}, not [0-9a-f]{64}"),
        ("not bz2", "the compressed data is damaged"),
        ("silent", "timed out"),
        ("redirect ftp://127.0.0.1/moved", "unknown url type: ftp"),
        ("redirect file:///etc/moved", "not allowed"),
        ("redirect data:,moved", "not allowed"),
        ("redirect /again", "infinite loop"),
    ],
)
def test_failed_download_leaves_nothing(server: Server, cache: Path, behaviour: str, complaint: str) -> None:
    server.behaviour = behaviour
    with pytest.raises(DatasetError, match=complaint) as caught:
        datasets.download("toy", timeout=0.2 if behaviour == "silent" else 10)
    message = str(caught.value)
    assert message.startswith("cannot download http://127.0.0.1:")
    assert "\n" not in message
    assert message.endswith("get the file by other means and set POEM_CMA_DATA to its folder")
    assert contents(cache) == []

    server.behaviour = "good"
    assert_toy(datasets.load("toy"))


def test_oversized_download(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "MAX_DOWNLOAD", len(PACKED) - 1)
    with pytest.raises(DatasetError, match=f"the server sends more than {len(PACKED) - 1} bytes"):
        datasets.load("toy")
    assert server.requests == 1
    assert contents(cache) == []
    monkeypatch.setattr(datasets, "MAX_DOWNLOAD", len(PACKED))
    assert_toy(datasets.load("toy"))


@pytest.mark.usefixtures("server")
def test_interrupted_download_leaves_nothing(cache: Path) -> None:
    seen: list[list[str]] = []

    def interrupt(*_: object) -> None:
        seen.append(contents(cache))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        datasets.download("toy", progress=interrupt)
    assert seen[0][-1] == "toy"  # there was something to clean up
    assert contents(cache) == []


@pytest.mark.parametrize("mirror", ["http://127.0.0.1:9", "nonsense", "file:///tmp", "http://[", "http://a b"])
def test_bad_mirror(cache: Path, mirror: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POEM_CMA_MIRROR", mirror)
    with pytest.raises(DatasetError, match=r"^cannot download .*set POEM_CMA_DATA"):
        datasets.download("toy", timeout=2)
    assert contents(cache) == []


@pytest.mark.usefixtures("server")
def test_cache_that_cannot_be_made(cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(DatasetError, match=r"^cannot download .*set POEM_CMA_DATA"):
        datasets.load("toy")


@pytest.mark.parametrize(("file", "content"), [("toy", TEXT[:-1]), ("toy.xz", b"junk")])
def test_damaged_cache_is_fetched_again(server: Server, cache: Path, file: str, content: bytes) -> None:
    cache.mkdir()
    (cache / file).write_bytes(content)
    assert_toy(datasets.load("toy"))
    assert_toy(datasets.load("toy"))
    assert server.requests == 1


def test_cache_folder_of_each_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("LOCALAPPDATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    places = {"win32": ("AppData", "Local"), "darwin": ("Library", "Caches"), "linux": (".cache",)}
    for system, place in places.items():
        monkeypatch.setattr(sys, "platform", system)
        assert datasets._cache() == tmp_path.joinpath(*place, "poem-cma")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert datasets._cache() == tmp_path / "xdg" / "poem-cma"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert datasets._cache() == tmp_path / "local" / "poem-cma"


# Files of the user's own


@pytest.mark.parametrize(("file", "content"), [("toy", TEXT), ("toy.bz2", PACKED), ("toy.xz", lzma.compress(TEXT))])
def test_finds_a_known_set(
    file: str, content: bytes, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).write_bytes(content)
    assert_toy(datasets.load("toy", path=tmp_path))
    assert_toy(datasets.load("toy", path=str(tmp_path / file)))
    monkeypatch.setenv("POEM_CMA_DATA", str(tmp_path))
    assert_toy(datasets.load("toy"))
    assert "toy" in datasets.available()
    assert not cache.exists()


def test_order_of_places(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`path`, then POEM_CMA_DATA, then (for a known set) the cache."""
    for number, place in enumerate(["path", "data"], 1):
        (tmp_path / place).mkdir()
        (tmp_path / place / "mine").write_text(f"1 1:{number}\n2 1:0\n")
    monkeypatch.setenv("POEM_CMA_DATA", str(tmp_path / "data"))
    assert datasets.load("mine", path=tmp_path / "path")[0][0, 0] == 1
    assert datasets.load("mine")[0][0, 0] == 2
    assert datasets.load("mine", path=tmp_path)[0][0, 0] == 2
    cache.mkdir()
    (cache / "toy").write_bytes(TEXT)
    assert_toy(datasets.load("toy", path=tmp_path))
    assert "toy" in datasets.available()


@pytest.mark.parametrize("place", ["path", "file", "POEM_CMA_DATA"])
def test_altered_known_set_is_refused(
    server: Server, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy").write_bytes(TEXT.replace(b"4", b"5"))
    if place == "POEM_CMA_DATA":
        monkeypatch.setenv(place, str(tmp_path))
    path = {"path": tmp_path, "file": tmp_path / "toy"}.get(place)
    with pytest.raises(DatasetError, match=r"toy: not the published toy .*; remove or rename it"):
        datasets.load("toy", path=path)
    assert server.requests == 0
    assert contents(tmp_path) == ["toy"]


@pytest.mark.usefixtures("cache")
def test_damaged_file_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("1 1:2\n1 0:3\n")
    with pytest.raises(DatasetError, match=r"^cannot use .*mine: line 2: expected an index"):
        datasets.load("mine", path=tmp_path)
    (tmp_path / "toy.xz").write_bytes(b"junk")
    with pytest.raises(DatasetError, match=r"^cannot use .*toy\.xz: the compressed data ends early"):
        datasets.load("toy", path=tmp_path)


@pytest.mark.parametrize(("labels", "count"), [("000", 1), ("012", 3)])
def test_two_labels_are_required(labels: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("".join(f"{label} 1:2\n" for label in labels))
    with pytest.raises(DatasetError, match=f"mine has {count} distinct labels; exactly two are required"):
        datasets.load("mine", path=tmp_path)


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (1, 2), (-3.5, -3)])
def test_larger_label_is_plus_one(labels: tuple[float, float], tmp_path: Path) -> None:
    low, high = labels
    (tmp_path / "mine").write_text(f"{low} 1:2\n{high} 1:2\n{low} 1:2\n")
    np.testing.assert_array_equal(datasets.load("mine", path=tmp_path)[1], [-1, 1, -1])


@pytest.mark.usefixtures("cache")
def test_name_that_nobody_knows(tmp_path: Path) -> None:
    for path in (None, tmp_path):
        with pytest.raises(DatasetError, match=r"no data set 'iris'; known are mushrooms, .*digits"):
            datasets.load("iris", path=path)
    with pytest.raises(DatasetError, match=r"'\.\./toy' is not a name; give the file as path="):
        datasets.load("../toy", path=tmp_path)


def test_place_that_does_not_exist(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DatasetError, match=r"path is .*absent, which is not a folder"):
        datasets.load("toy", path=tmp_path / "absent")
    monkeypatch.setenv("POEM_CMA_DATA", str(tmp_path / "absent"))
    with pytest.raises(DatasetError, match=r"POEM_CMA_DATA is .*absent, which is not a folder"):
        datasets.load("toy")
    monkeypatch.setenv("POEM_CMA_DATA", __file__)  # a folder is wanted: a file would answer to every name
    with pytest.raises(DatasetError, match=r"POEM_CMA_DATA is .*, which is not a folder"):
        datasets.load("mine")
    assert server.requests == 0


# scikit-learn

needs_sklearn = pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")


@needs_sklearn
def test_breast_cancer() -> None:
    A, y = datasets.load("breast_cancer")
    assert A.shape == (569, 30)
    assert (np.sum(y == 1), np.sum(y == -1)) == (357, 212)


@needs_sklearn
def test_digits_odd_against_even() -> None:
    from sklearn.datasets import load_digits

    A, y = datasets.load("digits")
    X, digit = load_digits(return_X_y=True)
    np.testing.assert_array_equal(A, X)
    np.testing.assert_array_equal(y == 1, digit % 2 == 1)
    assert set(y) == {-1.0, 1.0}


@pytest.mark.usefixtures("cache")
def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(DatasetError, match=r'not installed: pip install "poem-cma\[experiments\]"$'):
        datasets.load("digits")
    monkeypatch.setattr(datasets, "find_spec", lambda _: None)
    assert datasets.available() == []


def test_path_means_nothing_to_scikit_learn(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="digits comes from scikit-learn; leave out path"):
        datasets.load("digits", path=tmp_path)


# The published sets


@pytest.mark.parametrize(
    ("name", "shape", "positive", "nonzeros"),
    [
        ("mushrooms", (8124, 112), 4208, 170604),
        ("w8a", (49749, 300), 1479, 579586),
        ("w8a.t", (14951, 300), 454, 174276),
        ("a9a", (32561, 123), 7841, 451592),
        ("a9a.t", (16281, 123), 3846, 225731),
        ("phishing", (11055, 68), None, None),
    ],
)
def test_published_set(
    name: str,
    shape: tuple[int, int],
    positive: int | None,
    nonzeros: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if "POEM_CMA_DATA" not in os.environ and SHARED.is_dir():
        monkeypatch.setenv("POEM_CMA_DATA", str(SHARED))
    if name not in datasets.available():
        pytest.skip(f"no {name} on this machine: set POEM_CMA_DATA to a folder that has it")
    A, y = datasets.load(name)
    assert A.shape == datasets._KNOWN[name].shape == shape
    assert A.flags.c_contiguous
    assert y.shape == shape[:1]
    assert set(y) == {-1.0, 1.0}
    if positive is not None:
        assert np.sum(y == 1) == positive
        assert np.count_nonzero(A) == nonzeros


def test_table_of_known_sets() -> None:
    for known in datasets._KNOWN.values():
        assert len(bytes.fromhex(known.sha256)) == 32
