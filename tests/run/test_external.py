"""Programs as objectives."""

from __future__ import annotations

import math
import pathlib
import pickle
import sys

import numpy as np
import pytest

from poem_cma import external
from poem_cma.external import Program, ProgramError, draw_seed

ECHO = "import json, sys; print(json.dumps([sys.argv[1:], sys.stdin.read()]), file=sys.stderr); print(1.5)"


def program(tmp_path: pathlib.Path, code: str, arguments: str = "") -> Program:
    script = tmp_path / "program.py"
    script.write_text(code)
    return Program(f"'{sys.executable}' '{script}' {arguments}")


def seen(tmp_path: pathlib.Path, arguments: str, x: list[float], seed: int | None = None) -> tuple[list[str], str]:
    """The arguments and standard input that a program gets."""
    import json

    out = tmp_path / "seen.json"
    code = f"import json, sys; open({str(out)!r}, 'w').write(json.dumps([sys.argv[1:], sys.stdin.read()])); print(1)"
    assert program(tmp_path, code, arguments)(np.array(x), seed) == 1.0
    found = json.loads(out.read_text())
    return found[0], found[1]


def test_the_point_as_arguments(tmp_path: pathlib.Path) -> None:
    x = [0.1, -2.5e-300, 1 / 3]
    assert seen(tmp_path, "--at {x} --seed {seed}", x, 7) == (["--at", *map(repr, x), "--seed", "7"], "")
    assert seen(tmp_path, "--at={x}", x) == (["--at=0.1,-2.5e-300,0.3333333333333333"], "")
    assert seen(tmp_path, "{x[2]} a{x[0]}b", x) == (["0.3333333333333333", "a0.1b"], "")
    assert seen(tmp_path, "'{y}' '{x' '$HOME' '`id`' ';' {x[0]}", x)[0] == ["{y}", "{x", "$HOME", "`id`", ";", "0.1"]


def test_the_point_as_json_on_standard_input_or_in_a_file(tmp_path: pathlib.Path) -> None:
    assert seen(tmp_path, "", [1.0, 2.0], 3) == ([], '{"x": [1.0, 2.0], "seed": 3}')
    code = "import json, sys; print(sum(json.load(open(sys.argv[1]))['x']))"
    assert program(tmp_path, code, "{file}")(np.array([1.0, 2.5]), 0) == 3.5


def test_which_commands_take_a_seed() -> None:
    assert Program("a {x} {seed}").takes_seed
    assert Program("a").takes_seed
    assert Program("a {file}").takes_seed
    assert not Program("a {x}").takes_seed
    assert 0 <= draw_seed(np.random.default_rng(0)) < 2**31


@pytest.mark.parametrize(
    ("printed", "value"),
    [("3", 3.0), ("-1.5e3\n\n", -1500.0), ('{"value": 2, "more": []}', 2.0), ("log line\n4.25", 4.25),
     ("nan", math.nan), ("NaN", math.nan), ('{"value": null}', math.nan), ("inf", math.inf), ('"7"', 7.0)],
)  # fmt: skip
def test_answers(tmp_path: pathlib.Path, printed: str, value: float) -> None:
    assert program(tmp_path, f"print({printed!r})", "{x}")([1.0]) == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize("printed", ["", "three", "{}", "[1]", '{"value": []}', "1 2", "\x00", "[" * 100_000])
def test_answers_that_are_none(tmp_path: pathlib.Path, printed: str) -> None:
    code = f"import sys; sys.stdout.write({printed!r}); sys.stderr.write('why')"
    with pytest.raises(ProgramError, match=r"(?s)answered .*expected a number or JSON .*standard error: why"):
        program(tmp_path, code, "{x}")([1.0])


def test_failures_keep_standard_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ProgramError, match=r"(?s)ended with exit code 3: .*the reason$"):
        program(tmp_path, "import sys; sys.stderr.write('x' * 10**6 + 'the reason'); sys.exit(3)")([1.0])
    with pytest.raises(ProgramError, match="ended with signal 9"):
        program(tmp_path, "import os; os.kill(os.getpid(), 9)")([1.0])
    with pytest.raises(ProgramError, match="cannot be run: No such file"):
        Program("./no-such-program {x}")([1.0])
    with pytest.raises(ProgramError, match=r"asks for x\[5\], but x has 2"):
        Program("a {x[5]}")([1.0, 2.0])


def test_much_output_and_input_that_is_not_read_are_no_trouble(tmp_path: pathlib.Path) -> None:
    code = "import sys; sys.stdout.write('noise\\n' * 10**6); print(2.0)"
    assert program(tmp_path, code)(np.zeros(10_000)) == 2.0


@pytest.mark.parametrize(("command", "match"), [("", "empty"), ("a 'b", "cannot be split"), ("a\0b", "zero byte")])
def test_commands_that_are_none(command: str, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Program(command)


def test_programs_travel_to_workers() -> None:
    assert pickle.loads(pickle.dumps(Program("a {x} {seed}"))).takes_seed


def test_a_backslash_is_a_part_of_a_path_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    command = r'C:\tools\simulate.exe --model "C:\my models\a.txt" {x}'
    with monkeypatch.context() as patched:
        patched.setattr("os.name", "nt")
        words = external._words(command)
    assert words == [r"C:\tools\simulate.exe", "--model", r"C:\my models\a.txt", "{x}"]
    assert external._words(r"a\ b c") == ["a b", "c"]
