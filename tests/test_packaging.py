"""The package as users get it: built, installed where nothing is, described."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
import yaml

import poem_cma

ROOT = Path(__file__).parent.parent
LARGEST_WHEEL = 2_000_000  # bytes; data or pictures that got in by accident would be more


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return folder


def one(folder: Path, ending: str) -> Path:
    (found,) = folder.glob(f"*{ending}")
    return found


def test_the_wheel_has_the_package_alone(built: Path) -> None:
    wheel = one(built, ".whl")
    assert wheel.name == f"poem_cma-{poem_cma.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < LARGEST_WHEEL
    names = zipfile.ZipFile(wheel).namelist()
    files = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".css", ".js", ".typed")]
    sources = {path.relative_to(ROOT / "src").as_posix() for path in files}
    assert {name for name in names if name.startswith("poem_cma/")} == sources
    assert {name.split("/")[0] for name in names} == {"poem_cma", f"poem_cma-{poem_cma.__version__}.dist-info"}


def test_the_sdist_has_what_developers_need(built: Path) -> None:
    with tarfile.open(one(built, ".tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile", "mkdocs.yml", "tests/reference.py"}
    assert needed <= names
    assert not [name for name in names if name.startswith((".venv", "results", "site/", "dist"))]


def test_the_metadata(built: Path) -> None:
    wheel = one(built, ".whl")
    info = f"poem_cma-{poem_cma.__version__}.dist-info/METADATA"
    metadata = Parser().parsestr(zipfile.ZipFile(wheel).read(info).decode())
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert sorted(re.match(r"[\w-]+", line)[0] for line in needed) == ["numpy", "scipy"]  # type: ignore[index]
    assert metadata["License-Expression"] == "MIT"
    assert {url.split(",")[0] for url in metadata.get_all("Project-URL", [])} >= {"Homepage", "Changelog", "Issues"}
    assert "## Install" in metadata.get_payload()


def test_the_readme_in_an_empty_environment(built: Path, tmp_path: Path) -> None:
    """From nothing to a first result: install, then run the README's first lines as they stand."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, *arguments], cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=500, check=False
        )

    needed = run("-m", "pip", "install", "--quiet", "--no-compile", "--only-binary", ":all:", "numpy", "scipy")
    if needed.returncode:
        pytest.skip(f"pip cannot get numpy and scipy here, so nothing was installed: {needed.stderr.strip()[-300:]}")
    installed = run("-m", "pip", "install", "--quiet", "--no-index", one(built, ".whl"))
    assert installed.returncode == 0, installed.stderr

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"```sh\n(.*?)```", readme, flags=re.S)[0].splitlines()
    lines = re.findall(r"```python\n(.*?)```", readme, flags=re.S)[0]
    shown = re.findall(r"```text title=\"output\"\n(.*?)```", readme, flags=re.S)[0]
    assert len(commands) <= 3
    assert len(lines.splitlines()) <= 15
    (tmp_path / "first.py").write_text(lines, encoding="utf-8")
    first = run("-X", "utf8", "-W", "error", "first.py")
    assert first.returncode == 0, first.stderr
    sys.path.insert(0, str(ROOT / "docs"))
    import blocks

    assert blocks.agree(shown, first.stdout)

    least = run(
        "-c", "from poem_cma import problems; print(problems.load('box-corner').optimum)"
    )  # no experiments needed
    assert least.returncode == 0, least.stderr
    command = run("-c", "from poem_cma.command_line.cli import main; main()")
    assert command.returncode != 0
    assert command.stderr.strip().splitlines()[-1].endswith('pip install "poem-cma[cli]"')


def from_the_wheel(
    built: Path, folder: Path, *arguments: str, without: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run the command of the unpacked wheel, outside the repository, as if some packages were not installed."""
    zipfile.ZipFile(one(built, ".whl")).extractall(folder / "site")
    code = f"""
import sys
sys.path.insert(0, {str(folder / "site")!r})
sys.modules |= dict.fromkeys({without!r})
import poem_cma
assert poem_cma.__file__.startswith({str(folder)!r}), poem_cma.__file__
from poem_cma.command_line.cli import main
main()
"""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder, env=clean, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip


def test_the_wheel_runs_a_benchmark(built: Path, tmp_path: Path) -> None:
    chosen = ("--problems", "wall", "--methods", "poem,random-search", "--seeds", "1", "--budgets", "40")
    done = from_the_wheel(built, tmp_path, "bench", "--suite", "rough", *chosen, "--jobs", "1", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "2 of 2 cells" in done.stderr
    assert "<h1>The field</h1>" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [(("bench",), "bench"), (("bench", "--suite", "all"), "bench"), (("reproduce",), "experiments")],
)
def test_experiments_without_their_packages_say_what_to_install(
    arguments: tuple[str, ...], extra: str, built: Path, tmp_path: Path
) -> None:
    absent = ("matplotlib", "plotly", "sklearn", "cma", "cocoex", "simopt", "jax", "nevergrad", "optuna", "torch")
    done = from_the_wheel(built, tmp_path, *arguments, without=absent)
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("poem-cma: matplotlib, plotly")
    assert line.endswith(f'not installed: pip install "poem-cma[{extra}]"')


def test_the_citation_file_is_of_this_version() -> None:
    """Its form is checked against the schema when the site is built (tests.yml)."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == poem_cma.__version__
    assert citation["authors"]
    assert [len(paper["authors"]) for paper in citation["references"]] == [2, 2]
    assert {author["family-names"] for paper in citation["references"] for author in paper["authors"]} == {
        "Sholokhov", "Rogozin", "Ren", "Luo",
    }  # fmt: skip


def test_one_home_and_one_version_everywhere() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", poem_cma.__version__)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", changelog, flags=re.M)[0] == poem_cma.__version__
    home = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Homepage"]
    for name in ("README.md", "CITATION.cff", "mkdocs.yml", "docs/index.md"):
        assert home in (ROOT / name).read_text(encoding="utf-8"), name


def test_the_workflows() -> None:
    """They are YAML, run what `make test` runs, and on the systems and versions that the package names."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    folder = ROOT / ".github" / "workflows"
    tests = yaml.safe_load((folder / "tests.yml").read_text(encoding="utf-8"))
    matrix = tests["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == versions
    assert [system.split("-")[0] for system in matrix["os"]] == ["ubuntu", "macos", "windows"]
    steps = "\n".join(step.get("run", "") for step in tests["jobs"]["test"]["steps"])
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for tool in ("ruff check .", "ruff format --check .", "mypy", "pytest --quiet --doctest-modules", "torch=="):
        assert tool in steps
        assert tool in makefile
    release = yaml.safe_load((folder / "release.yml").read_text(encoding="utf-8"))
    assert release["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert release["jobs"]["publish"]["needs"] == "build"


def test_no_module_needs_what_some_system_lacks() -> None:
    """Imports at the top of a module: such things are imported where they are used, beside what replaces them."""
    lacking = {
        "curses",
        "fcntl",
        "grp",
        "msvcrt",
        "posix",
        "pty",
        "pwd",
        "resource",
        "syslog",
        "termios",
        "tty",
        "winreg",
    }
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not lacking & {name.partition(".")[0] for name in names}, path


def test_the_library_does_not_import_the_experiments() -> None:
    rooms = ("bench", "campaign", "reproduce")
    for path in (ROOT / "src" / "poem_cma").rglob("*.py"):
        if path.name != "cli.py" and path.relative_to(ROOT / "src" / "poem_cma").parts[0] not in rooms:
            assert not re.search(
                rf"(?:from|import) poem_cma\.(?:{'|'.join(rooms)})\b", path.read_text(encoding="utf-8")
            ), path
