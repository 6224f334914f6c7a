"""`poem-cma minimize`, `resume`, `show`, `export`, `dimension`: as a user types them."""

from __future__ import annotations

import csv
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from runs import gone
from typer.testing import CliRunner

from poem_cma.command_line.cli import app
from poem_cma.command_line.settings import KEYS, combined, read_file
from poem_cma.command_line.show import chart
from poem_cma.command_line.target import CommandError

#: `make fuzz` sets it: so many times the examples.
FUZZ = int(os.environ.get("POEM_CMA_FUZZ", "1"))

FUNCTION = """
import time
def distance(x):
    return float(abs(x - 0.3).sum())
def noisy(x, xi):
    return float(abs(x - 0.3).sum() + 0.1 * xi @ x)
def draw(rng):
    return rng.normal(size=2)
def slow(x):
    time.sleep(0.05)
    return float(abs(x - 0.3).sum())
number = 3
def typo(x):
    return x.summ()
def beyond(x):
    raise ValueError("math domain error")
def text(x):
    return "3.2"
def day(p):
    return 1.0 - (p["rate"] - 0.1) ** 2 - (p["servers"] - 7) ** 2
def line(p):
    return float(abs(p["w"] - 0.3).sum() + abs(p["inner"]["b"] - 1.0))
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    (tmp_path / "mine.py").write_text(FUNCTION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def command(*words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_minimize_resume_show_and_export(folder: pathlib.Path) -> None:
    words = ["minimize", "mine.py:noisy", "--sample", "mine.py:draw", "--x0", "0*2", "--ball", "2"]
    words += ["--store", "run.db", "--seed", "1", "--json"]
    code, out, _ = command(*words, "--budget", "400")
    assert code == 0
    first = json.loads(out)
    assert 390 < first["nfev"] <= 400  # a step that does not fit any more is not begun
    assert np.abs(np.array(first["x"]) - 0.3).max() < 0.1
    assert json.loads(command(*words, "--budget", "400")[1]) == first
    code, out, err = command("resume", "run.db", "--budget", "800", "--json")
    assert code == 0
    assert json.loads(out)["nfev"] > first["nfev"]
    assert "going on with" in err
    code, out, _ = command("show", "run.db", "--plot", "run.png")
    assert code == 0
    assert "of 800" in out
    assert "the budget of 800 calls is spent" in out
    assert "█" in out
    assert (folder / "run.png").stat().st_size > 10_000
    for kind in ("csv", "json", "parquet"):
        assert command("export", "run.db", "--format", kind)[0] == 0
    with open("run.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    calls = json.loads((folder / "run.json").read_text())["calls"]
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(folder / "run.parquet").to_pylist()
    assert len(rows) == len(calls) == len(table) == json.loads(command("resume", "run.db", "--json")[1])["nfev"]
    assert table == calls
    assert [float(row["value"]) for row in rows] == [row["value"] for row in calls]
    assert command("export", "run.db", "--format", "db", "--out", "copy.db")[0] == 0
    assert command("show", "copy.db")[0] == 0
    assert command("export", "run.db", "--out", "-")[1].startswith("probe,point,value")
    for words in (["--format", "db"], ["--format", "parquet", "--out", "-"]):
        code, _, err = command("export", "run.db", *words)
        assert code == 1
        assert "give --out" in err


def test_a_function_without_noise_is_solved_closely(folder: pathlib.Path) -> None:
    code, out, _ = command("minimize", "mine.py:distance", "--x0", "0*2", "--seed", "1", "--budget", "4000", "--json")
    assert code == 0
    result = json.loads(out)
    assert result["nfev"] <= 4000
    assert np.abs(np.array(result["x"]) - 0.3).max() < 1e-9


def test_a_function_with_samples_and_its_dimension(folder: pathlib.Path) -> None:
    place = ["mine.py:noisy", "--sample", "mine:draw", "--x0", "0,0", "--seed", "0"]
    code, out, _ = command("minimize", *place, "--budget", "400", "--workers", "2", "--batch", "auto")
    assert code == 0
    assert 370 < int(out.split("calls: ")[1].split()[0]) <= 400  # a generation is not asked by half
    code, out, _ = command("dimension", *place, "--samples", "50", "--json")
    assert code == 0
    assert json.loads(out)["calls"] == 100


def test_a_program_with_failures_and_a_settings_file(folder: pathlib.Path) -> None:
    (folder / "simulate.py").write_text(
        "import sys\n"
        "x, seed = [float(v) for v in sys.argv[1:3]], int(sys.argv[3])\n"
        "if seed % 5 == 0: sys.exit('out of luck with seed %d' % seed)\n"
        "print('a log line'); print(abs(x[0] - 1) + abs(x[1]) + (seed % 7) * 0.01)\n"
    )
    (folder / "run.toml").write_text(
        f"""
        command = "'{sys.executable}' simulate.py {{x}} {{seed}}"
        x0 = [0.0, 0.5]
        bounds = [-2, [3, 3]]
        outside = true
        budget = 120
        workers = 2
        retries = 1
        timeout = 30.0
        store = "run.db"
        seed = 2
        """
    )
    code, out, _ = command("minimize", "--settings", "run.toml", "--budget", "100", "--json")
    assert code == 0
    result = json.loads(out)
    assert 90 <= result["nfev"] <= 100
    assert result["failures"] > 3
    assert "out of luck with seed" in result["message"]
    assert command("export", "run.db", "--format", "json")[0] == 0
    failed = [c for c in json.loads((folder / "run.json").read_text())["calls"] if c["value"] is None]
    assert len(failed) == result["failures"]
    assert all("out of luck" in c["failure"] and c["attempts"] == 2 for c in failed)


BAD = {
    "nothing": ([], "Give TARGET or --command, one of them; neither is given"),
    "both": (["mine.py:distance", "--command", "a {x}"], "both are given"),
    "no colon": (["mine.py", "--x0", "0", "--budget", "9"], "must be package.module:function"),
    "no file": (["nowhere.py:f", "--x0", "0", "--budget", "9"], "there is no file"),
    "no module": (["no.such.module:f", "--x0", "0", "--budget", "9"], "ModuleNotFoundError"),
    "no function": (["mine.py:f", "--x0", "0", "--budget", "9"], "AttributeError"),
    "not a function": (["mine.py:number", "--x0", "0", "--budget", "9"], "is not a function but int"),
    "no x0": (["mine.py:distance", "--budget", "9"], "x0 is missing"),
    "no budget": (["mine.py:distance", "--x0", "0"], "budget is missing"),
    "x0": (["mine.py:distance", "--x0", "a", "--budget", "9"], "--x0 must be finite numbers"),
    "huge x0": (["mine.py:distance", "--x0", "0*99999999999", "--budget", "9"], "--x0 must be finite numbers"),
    "budget": (["mine.py:distance", "--x0", "0", "--budget", "many"], "--budget must be a whole number of calls"),
    "domains": (["mine.py:distance", "--x0", "0", "--budget", "99", "--ball", "1", "--bounds", "0:1"], "one domain"),
    "bounds": (["mine.py:distance", "--x0", "0", "--budget", "99", "--bounds", "1:0"], "bounds: "),
    "outside": (["mine.py:distance", "--x0", "0", "--budget", "99", "--outside"], "outside needs a domain"),
    "sample": (["--command", "a", "--sample", "mine:draw", "--x0", "0", "--budget", "9"], "gets its sample as {seed}"),
    "signature": (["mine.py:noisy", "--x0", "0", "--budget", "99"], "no sample= is given"),
    "table": (["mine.py:line", "--x0", '{"w": ["a"]}', "--budget", "9"], "--x0 must be finite numbers"),
    "rows": (["mine.py:line", "--x0", '{"w": [[1], [1, 2]]}', "--budget", "9"], "rows of the same length"),
    "table for a command": (["--command", "a", "--x0", '{"w": 0}', "--budget", "9"], "x0 as a table is for functions"),
    "short": (["mine.py:distance", "--x0", "0", "--budget", "1"], "budget is 1 calls, but poem needs at least 2"),
    "quotes": (["--command", "a 'b", "--x0", "0", "--budget", "9"], "command: the command"),
    "settings": (["--settings", "nowhere.toml"], "nowhere.toml cannot be read"),
    "store": (["mine.py:distance", "--x0", "0", "--budget", "99", "--store", "no/where.db"], "cannot be written"),
    "option": (["--nonsense"], "No such option"),
}


@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_clear_line(folder: pathlib.Path, words: list[str], message: str) -> None:
    code, out, err = command("minimize", *words)
    assert code in (1, 2)
    assert out == ""
    assert message in err
    if code == 1:
        assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "says", "where"),
    [
        ("typo", "the function raised AttributeError: ", "return x.summ()"),
        ("beyond", "the function raised ValueError: math domain error", "in beyond"),
    ],
)
def test_a_function_that_fails_shows_its_own_traceback(folder: pathlib.Path, name: str, says: str, where: str) -> None:
    code, out, err = command("minimize", f"mine.py:{name}", "--x0", "0,0", "--budget", "100")
    assert (code, out) == (1, "")
    assert err.startswith(f"poem-cma: {says}")
    assert where in err
    assert "command_line/run.py" not in err  # no frames of the process that waits for the answers


def test_a_function_that_returns_text_gets_one_line(folder: pathlib.Path) -> None:
    code, _, err = command("minimize", "mine.py:text", "--x0", "0,0", "--budget", "100")
    assert code == 1
    assert err.strip() == "poem-cma: fun must return a number, but returned '3.2' (TypeError: text is no number)"


def test_a_program_that_fails_shows_what_it_wrote(folder: pathlib.Path) -> None:
    program = f"'{sys.executable}' -c 'raise ValueError(3)' {{x}}"
    code, out, err = command("minimize", "--command", program, "--x0", "0,0", "--budget", "100")
    assert (code, out) == (1, "")
    assert "ended with exit code 1" in err.splitlines()[0]
    assert err.splitlines()[-1] == "ValueError: 3"


def test_names_without_x0(folder: pathlib.Path) -> None:
    """A store of a run that was started with names has them, for functions and for programs."""
    names = ["--bounds", "rate=1e-3:1:log,servers=1:20:int", "--budget", "100", "--seed", "0", "--store"]
    code, out, err = command("minimize", "mine.py:day", *names, "run.db", "--maximize", "--json")
    assert code == 0, err
    assert json.loads(out)["x"]["servers"] == 7
    assert json.loads(out)["gain"]["mean"] > 0.0
    program = f"'{sys.executable}' -c 'import sys; print(abs(float(sys.argv[1]) - 0.1))' {{x}}"
    assert command("minimize", "--command", program, *names, "other.db")[0] == 0
    for store in ("run.db", "other.db"):
        code, out, err = command("show", store, "--plot", "run.png")
        assert code == 0, err
        assert re.search(r"\n +rate +0\.\d+ +\S+%", out)
        assert re.search(r"\n +servers +\d+ +", out)


@pytest.mark.parametrize("verb", ["show", "export", "resume"])
def test_files_that_are_not_stores(folder: pathlib.Path, verb: str) -> None:
    code, _, err = command(verb, "nowhere.db")
    assert (code, "cannot be read" in err) == (1, True)
    code, _, err = command(verb, "mine.py")
    assert (code, "is not a store of poem-cma" in err) == (1, True)
    db = sqlite3.connect("other.db")
    db.execute("CREATE TABLE a (b)")
    db.close()
    code, _, err = command(verb, "other.db")
    assert (code, "a database of another program" in err) == (1, True)
    code, out, err = command(verb, ".")
    assert (code, "a folder" in err or "cannot be read" in err, "Traceback" in out + err) == (1, True, False)


def test_a_store_from_python_cannot_be_resumed_here(folder: pathlib.Path) -> None:
    import poem_cma as pc

    pc.minimize(lambda x: float(x @ x), np.ones(2), budget=50, store="run.db")
    code, _, err = command("resume", "run.db")
    assert code == 1
    assert "was started from Python: call minimize(..., store='run.db') again" in err
    assert command("show", "run.db")[0] == 0


def test_interrupted_shown_while_it_runs_and_resumed(folder: pathlib.Path) -> None:
    words = [str(pathlib.Path(sys.executable).with_name("poem-cma"))]
    start = ["minimize", "mine.py:slow", "--x0", "0,0", "--budget", "100", "--store", "run.db", "--seed", "1", "--json"]
    process = subprocess.Popen(
        [*words, *start], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"POEM_CMA_TEST_MARK": str(folder)},
    )  # fmt: skip
    done = 0
    while done < 5:
        time.sleep(0.1)
        assert process.poll() is None
        if (folder / "run.db").exists():
            code, out, err = command("show", "run.db")
            assert code == 0, err
            done = int(out.split("calls")[1].split("of")[0])
    assert "1 of 1 busy" in out or "0 of 1 busy" in out
    assert "time left" in out
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in json.loads(out)["message"]
    assert "poem-cma resume run.db" in err
    assert gone(str(folder))
    watching = subprocess.Popen([*words, "show", "run.db", "--watch"], stdout=subprocess.PIPE, text=True)
    resumed = subprocess.run([*words, "resume", "run.db", "--json"], capture_output=True, text=True, check=True)
    whole = subprocess.run([*words, *start[:-5], "--seed", "1", "--json"], capture_output=True, text=True, check=True)
    assert json.loads(resumed.stdout) == json.loads(whole.stdout)
    assert "the budget of 100 calls is spent" in watching.communicate(timeout=60)[0]


def test_every_setting_can_be_an_option(folder: pathlib.Path) -> None:
    import inspect

    from poem_cma.command_line import commands

    options = set(inspect.signature(commands.minimize).parameters) | set(
        inspect.signature(commands.dimension).parameters
    )
    assert options - {"settings", "json"} == set(KEYS)


def test_unknown_keys_are_named_with_the_nearest_one(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.toml"
    for text, message in {
        "bugdet = 3": "there is no setting 'bugdet'; did you mean budget?",
        "qqq = 3": "there is no setting 'qqq'; there are target,",
        "budget = 'many'": "budget must be a whole number of calls from 1 up, not 'many'",
        "x0 = [1, 'a']": "x0 must be finite numbers",
        "[x0]\na='1'": "x0 must be finite numbers",
        "outside = 1": "outside must be true or false, not 1",
        "method = 'best'": "method must be auto, poem-cma or poem, not 'best'",
        "a = ": "is not a TOML file",
    }.items():
        path.write_text(text)
        with pytest.raises(CommandError, match=r"run\.toml") as caught:
            read_file(path)
        assert message in str(caught.value)


TOML_VALUES: Any = st.recursive(
    st.one_of(
        st.booleans(), st.integers(), st.floats().map(lambda v: v if np.isfinite(v) else 0.0), st.text(max_size=20)
    ),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=6,
)


def complaint(work: Any) -> str:
    """The message of a CommandError, the only error that may come; nothing if none does."""
    try:
        work()
    except CommandError as error:
        return str(error)
    return ""


def as_toml(value: Any) -> str:
    return json.dumps(value)


@settings(max_examples=100 * FUZZ, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(sorted(KEYS)), TOML_VALUES, max_size=5))
@example({"bounds": [[1], 2]})
@example({"x0": 10**400})
def test_any_values_in_a_settings_file_are_read_or_refused_by_key(tmp_path: pathlib.Path, values: Any) -> None:
    path = tmp_path / "run.toml"
    path.write_text("\n".join(f"{key} = {as_toml(value)}" for key, value in values.items()), encoding="utf-8")
    message = complaint(lambda: read_file(path))
    assert not message or any(key in message for key in values) or "TOML" in message


@settings(max_examples=100 * FUZZ, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
@example(b"a = " + b"[" * 5000)
def test_any_bytes_as_a_settings_file_give_one_line(tmp_path: pathlib.Path, content: bytes) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    code, _, err = command("minimize", "--settings", str(path))
    assert code in (1, 2)
    assert "Traceback" not in err


WORDS = st.one_of(
    st.sampled_from(
        [f"--{key.replace('_', '-')}" for key in KEYS] + ["mine.py:distance", "json:dumps", "--json", "--"]
    ),
    st.sampled_from(["0", "1,2", "-1", "nan", "1e400", "0:1", "1:0", "auto", "poem", "a {x[9]}", "''", "0*3", "0*"]),
    st.text(max_size=10),
    st.floats().map(str),
    st.integers().map(str),
)


@settings(max_examples=100 * FUZZ, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["minimize", "dimension", "show", "export", "resume"]),
    st.lists(WORDS, max_size=7).filter(lambda words: "--budget" not in words),
)
def test_any_command_line_ends_with_a_code_and_no_traceback(folder: pathlib.Path, verb: str, words: Any) -> None:
    """Without a budget nothing is run; `test_any_run...` gives one."""
    code, _, err = command(verb, *words)
    assert code in (0, 1, 2)
    assert "Traceback" not in err


@settings(max_examples=60 * FUZZ, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from(
            sorted(set(KEYS) - {"target", "command", "sample", "store", "budget", "workers", "time_limit"})
        ),
        WORDS,
        max_size=3,
    )
)
def test_any_options_of_a_real_run_end_with_a_code_and_no_traceback(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, options: Any
) -> None:
    """In this process, to be quick: the settings go all the way to the optimiser."""
    from poem_cma.command_line import run
    from poem_cma.workers import workers as module

    monkeypatch.setattr(run, "Workers", lambda *_, **policy: module.Workers(1, **policy) and None)

    def whole() -> None:
        given_ = combined(None, {"target": "mine.py:distance", "x0": "0.1,0.2", "budget": "30"} | options)
        run._run(given_ | {"folder": str(folder)}, as_json=False)

    assert "\n" not in complaint(whole)


def test_the_chart_shows_a_falling_curve() -> None:
    rows = chart(np.arange(1, 101), np.linspace(5.0, 1.0, 100), 60).splitlines()
    assert len(rows) == 9
    assert rows[0].split()[0] == "4.98"  # the mean of the first column
    assert rows[-2].split()[0] == "1.04"
    assert rows[-1].endswith("100 calls")
    heights = [sum(row.partition("▏")[2][column : column + 1] == "█" for row in rows[:-1]) for column in (0, 20, 40)]
    assert heights[0] == 8 > heights[1] > heights[2]
    assert chart(np.array([1, 2]), np.array([np.nan, np.nan]), 60) == ""


def test_parameters_by_name(folder: pathlib.Path) -> None:
    """A table in TOML, or JSON on the command line; the result has the same form, also of a run that goes on."""
    start = '{"w": [[0, 0], [0, 0]], "inner": {"b": 0}}'
    words = ["mine.py:line", "--seed", "0", "--store", "run.db", "--json"]
    code, out, err = command("minimize", *words, "--x0", start, "--budget", "400")
    assert code == 0, err
    code, out, err = command("resume", "run.db", "--budget", "800", "--json")
    assert code == 0, err
    x = json.loads(out)["x"]
    np.testing.assert_allclose(x["w"], np.full((2, 2), 0.3), atol=0.02)
    assert x["inner"]["b"] == pytest.approx(1.0, abs=0.02)
    (folder / "run.toml").write_text(
        'target = "mine.py:line"\nbudget = 400\nseed = 0\n[x0]\nw = [[0, 0], [0, 0]]\ninner = {b = 0}\n'
    )
    code, out, err = command("minimize", "--settings", "run.toml")
    assert code == 0, err
    assert '{"w": [[0.' in out
    code, out, err = command("dimension", "mine.py:line", "--x0", start, "--seed", "0", "--json")
    assert code == 0, err
    assert json.loads(out)["rank"] >= 1
