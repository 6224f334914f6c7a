"""The LIBSVM parser against hand-written arrays, an independent reader, and files made to hurt it."""

from __future__ import annotations

import bz2
import lzma
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poem_cma.problems import libsvm
from poem_cma.problems.libsvm import DatasetError

TEXT = b"+1 1:0.5 3:-2e-1\n-1\n+1 2:3 4:0\n"
DENSE = np.array([[0.5, 0, -0.2, 0], [0, 0, 0, 0], [0, 3, 0, 0]])
LABELS = np.array([1.0, -1.0, 1.0])
PACK = {"": bytes, ".bz2": bz2.compress, ".xz": lzma.compress}


@contextmanager
def refused(match: str, *, memory: int) -> Iterator[None]:
    """Expect a `DatasetError` for at most `memory` bytes; the decompressors' own are counted too."""
    tracemalloc.start()
    try:
        with pytest.raises(DatasetError, match=match):
            yield
        assert tracemalloc.get_traced_memory()[1] < memory
    finally:
        tracemalloc.stop()


def test_small_file() -> None:
    A, labels = libsvm.parse([TEXT])
    np.testing.assert_array_equal(A, DENSE)
    np.testing.assert_array_equal(labels, LABELS)
    assert A.dtype == labels.dtype == np.float64
    assert A.flags.c_contiguous
    assert A.flags.writeable
    assert labels.flags.writeable


@pytest.mark.parametrize(
    "pieces",
    [
        [TEXT.rstrip(b"\n")],
        [TEXT.replace(b"\n", b"\r\n")],
        [TEXT.replace(b" ", b" \t ")],
        [TEXT[i : i + 1] for i in range(len(TEXT))],
        [b"", TEXT, b""],
    ],
    ids=["no last newline", "CRLF", "tabs", "byte by byte", "empty pieces"],
)
def test_layout_does_not_matter(pieces: list[bytes]) -> None:
    A, labels = libsvm.parse(pieces)
    np.testing.assert_array_equal(A, DENSE)
    np.testing.assert_array_equal(labels, LABELS)


def test_features_widens_and_bounds() -> None:
    assert libsvm.parse([TEXT], features=6)[0].shape == (3, 6)
    with pytest.raises(DatasetError, match="line 3: expected an index from 1 to 3, got '4'"):
        libsvm.parse([TEXT], features=3)


@pytest.mark.parametrize("suffix", PACK)
def test_compressed_files(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"toy{suffix}"
    file.write_bytes(PACK[suffix](TEXT))
    np.testing.assert_array_equal(libsvm.read(file)[0], DENSE)


@pytest.mark.parametrize("suffix", [".bz2", ".xz"])
def test_several_streams_in_one_file(suffix: str) -> None:
    packed = PACK[suffix](TEXT[:20]) + PACK[suffix](b"") + PACK[suffix](TEXT[20:])
    for size in (1, 7, len(packed)):  # a stream may end anywhere in a block
        pieces = [packed[i : i + size] for i in range(0, len(packed), size)]
        np.testing.assert_array_equal(libsvm.parse(libsvm.unpack(pieces, suffix))[0], DENSE)


# Many pieces come out of one block of compressed input.
@pytest.mark.parametrize("suffix", PACK)
def test_text_longer_than_a_block(suffix: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    expected = rng.normal(size=(3000, 10))
    rows = (" ".join(f"{j}:{v!r}" for j, v in enumerate(row, 1)) for row in expected.tolist())
    file = tmp_path / f"long{suffix}"
    file.write_bytes(PACK[suffix]("".join(f"{i} {row}\n" for i, row in enumerate(rows)).encode()))
    A, labels = libsvm.read(file)
    np.testing.assert_array_equal(A, expected)
    np.testing.assert_array_equal(labels, np.arange(3000))


finite = st.floats(allow_nan=False, allow_infinity=False)
rows = st.lists(
    st.tuples(finite, st.dictionaries(st.integers(1, 30), finite, max_size=8)), min_size=1, max_size=12
).filter(lambda rows: any(entries for _, entries in rows))


def _write(rows: list[tuple[float, dict[int, float]]]) -> bytes:
    words = ([repr(label), *(f"{i}:{v!r}" for i, v in sorted(entries.items()))] for label, entries in rows)
    return "".join(" ".join(line) + "\n" for line in words).encode()


@settings(deadline=None, max_examples=100)
@given(rows, st.integers(1, 50))
def test_round_trip(rows: list[tuple[float, dict[int, float]]], size: int) -> None:
    text = _write(rows)
    A, labels = libsvm.parse(text[i : i + size] for i in range(0, len(text), size))
    expected = np.zeros((len(rows), max(max(entries, default=0) for _, entries in rows)))
    for n, (_, entries) in enumerate(rows):
        for index, value in entries.items():
            expected[n, index - 1] = value
    np.testing.assert_array_equal(A, expected)
    np.testing.assert_array_equal(labels, [label for label, _ in rows])


@pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn, the other reader, is not installed")
@settings(deadline=None, max_examples=50)
@given(rows)
def test_agrees_with_scikit_learn(rows: list[tuple[float, dict[int, float]]]) -> None:
    from sklearn.datasets import load_svmlight_file

    text = _write(rows)
    X, labels = load_svmlight_file(BytesIO(text), zero_based=False)
    ours, our_labels = libsvm.parse([text])
    np.testing.assert_array_equal(ours, X.toarray())
    np.testing.assert_array_equal(our_labels, labels)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200) | st.text("+-1234567890.:e _naif\n\t", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    try:
        A, labels = libsvm.parse([text])
    except DatasetError:
        return
    assert np.isfinite(A).all()
    assert np.isfinite(labels).all()
    assert len(A) == len(labels) == len(text.strip(b"\n").split(b"\n"))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"1 3:1 2:1", "index 2 follows index 3; indices must increase"),
        (b"1 2:1 2:1", "index 2 follows index 2; indices must increase"),
        (b"1 0:1", "expected an index from 1 to 1000000, got '0'"),
        (b"1 -3:1", "expected an index from 1 to 1000000, got '-3'"),
        (b"1 1000001:1", "expected an index from 1 to 1000000, got '1000001'"),
        (b"1 1000000000000:1", "expected an index from 1 to 1000000, got '1000000000000'"),
        (b"1 " + b"9" * 100_000 + b":1", r"expected index:value, got '9{40}'\.\.\."),
        (b"1 1:nan", "expected a finite value, got '1:nan'"),
        (b"1 1:-inf", "expected a finite value, got '1:-inf'"),
        (b"1 1:1e999", "expected a finite value, got '1:1e999'"),
        (b"1 1:1_0", "unexpected character '_'"),
        (b"1_0 1:1", "unexpected character '_'"),
        (b"1 1", "expected index:value, got '1'"),
        (b"1 1:", "expected index:value, got '1:'"),
        (b"1 :1", "expected index:value, got ':1'"),
        (b"1 1:2:3", "expected index:value, got '1:2:3'"),
        (b"1 1.5:2", "expected index:value, got '1.5:2'"),
        (b"1 qid:3 1:2", "expected index:value, got 'qid:3'"),
        (b"1 1:2 # note", "expected index:value, got '#'"),
        (b"spam 1:2", "expected a label, a finite number, got 'spam'"),
        (b"nan 1:2", "expected a label, a finite number, got 'nan'"),
        (b"inf 1:2", "expected a label, a finite number, got 'inf'"),
        (b"1:2 2:3", "expected a label, a finite number, got '1:2'"),
        (b"1,2 2:3", "expected a label, a finite number, got '1,2'"),
        (b"\xef\xbb\xbf1 2:3", r"expected a label, a finite number, got '\\xef\\xbb\\xbf1'"),
        (b"\x89PNG\x00\x1a", r"expected a label, a finite number, got '\\x89PNG"),
        (b"  ", "empty; a row starts with its label"),
    ],
)
def test_damaged_line_is_refused_with_its_number(line: bytes, complaint: str) -> None:
    with pytest.raises(DatasetError, match=f"^line 2: {complaint}") as caught:
        libsvm.parse([b"1 1:2\n", line, b"\n1 1:2\n"])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", [b"", b"1\n-1\n"], ids=["no rows", "no features"])
def test_nothing_to_learn_from_is_refused(text: bytes) -> None:
    with pytest.raises(DatasetError, match="no rows or no features"):
        libsvm.parse([text])


def test_long_line_costs_one_line() -> None:
    zeros, taken = bytes(2**16), 0

    def text() -> Iterator[bytes]:
        nonlocal taken
        yield b"1 1:1\n"
        for piece in repeat(zeros, 300):
            taken += len(piece)
            yield piece

    with refused(f"line 2: longer than {libsvm.MAX_LINE} bytes", memory=8 * libsvm.MAX_LINE):
        libsvm.parse(text())
    assert taken <= libsvm.MAX_LINE + 2 * len(zeros)


def test_longest_line() -> None:
    line = b"1 1:2".ljust(libsvm.MAX_LINE)
    assert libsvm.parse([line + b"\n"])[0].shape == (1, 1)
    with pytest.raises(DatasetError, match="line 1: longer"):
        libsvm.parse([line + b" \n"])


def _repeated(text: bytes, suffix: str, times: int) -> bytes:
    return PACK[suffix](text) * times  # one stream after another: quick to make, as bad to read


@pytest.mark.parametrize("suffix", [".bz2", ".xz"])
def test_bomb_of_zeros(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"bomb{suffix}"
    file.write_bytes(_repeated(bytes(2**21), suffix, 100))  # two hundred megabytes of text
    assert file.stat().st_size < 100_000
    with refused("line 1: longer than", memory=2**24):
        libsvm.read(file)


@pytest.mark.parametrize("suffix", [".bz2", ".xz"])
def test_bomb_of_valid_rows(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libsvm, "MIN_BOMB", 2**18)
    bomb = _repeated(b"1 1:1\n" * 2**18, suffix, 2)
    assert libsvm.MAX_RATIO * len(bomb) < 2**19
    with refused(r"line \d+: the file unpacks to more than 250 times its size", memory=2**24):
        libsvm.parse(libsvm.unpack([bomb], suffix))


def test_ratio_is_of_no_concern_in_a_short_text() -> None:
    text = b"1 1:1\n" * 100_000
    packed = lzma.compress(text)
    assert len(text) > libsvm.MAX_RATIO * len(packed)
    assert libsvm.parse(libsvm.unpack([packed], ".xz"))[0].shape == (100_000, 1)


def test_xz_that_claims_gigabytes_for_its_dictionary() -> None:
    packed = bytearray(lzma.compress(TEXT))
    assert packed[14] == 0x21  # the block header begins at byte 12; this is its LZMA2 filter ...
    packed[16] = 39  # ... and this its dictionary: 3 GiB
    packed[20:24] = zlib.crc32(packed[12:20]).to_bytes(4, "little")
    with refused("line 1: the compressed data is damaged: Memory usage limit", memory=2**20):
        libsvm.parse(libsvm.unpack([bytes(packed)], ".xz"))


def test_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libsvm, "MAX_TEXT", 20)
    with pytest.raises(DatasetError, match="line 3: the text is longer than 20 bytes"):
        libsvm.parse(libsvm.unpack(repeat(b"1 1:1 2:3\n", 10), ""))


def test_wide_matrix_is_refused_before_it_is_made() -> None:
    rows = (b"1 1000000:1\n" if n == 1 else b"1 1:1\n" for n in range(300))
    with refused("line 269: 269 rows x 1000000 features take more than", memory=2**20):
        libsvm.parse(rows)


def test_rows_without_features_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libsvm, "MAX_DENSE", 1600)
    with pytest.raises(DatasetError, match="line 101: 101 rows x 0 features"):
        libsvm.parse(repeat(b"1\n", 200))


@pytest.mark.parametrize("suffix", [".bz2", ".xz"])
def test_truncated_compressed_file(suffix: str, tmp_path: Path) -> None:
    packed = PACK[suffix](TEXT)
    file = tmp_path / f"toy{suffix}"
    for size in range(len(packed)):
        file.write_bytes(packed[:size])
        with pytest.raises(DatasetError, match=r"line \d: .*ends early; the file is truncated"):
            libsvm.read(file)


@pytest.mark.parametrize("suffix", [".bz2", ".xz"])
def test_damaged_compressed_file(suffix: str) -> None:
    packed = PACK[suffix](TEXT)
    broken = packed[:20] + bytes([packed[20] ^ 255]) + packed[21:]
    for damaged in (broken, TEXT, packed + b"garbage after the end"):
        with pytest.raises(DatasetError, match=r"line \d: the compressed data (is damaged|ends early)"):
            libsvm.parse(libsvm.unpack([damaged], suffix))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="No such file"):
        libsvm.read(tmp_path / "absent")
