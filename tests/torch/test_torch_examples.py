"""The examples run; without PyTorch, one line says what to install."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(("name", "line"), [("torch_training", "accuracy of the averaged"), ("torch_lora", "accuracy")])
def test_example(name: str, line: str, tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        env=os.environ | {"STEPS": "12"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert line in done.stdout.splitlines()[-1]


def test_transformers_example(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("transformers", reason="the recipe for transformers is tested where transformers is installed")
    pytest.importorskip("accelerate", reason="the recipe for transformers needs accelerate")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "torch_transformers.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Poem(" in done.stdout


def test_without_pytorch_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; import poem_cma.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'poem_cma.torch needs PyTorch: pip install "poem-cma[torch]"' in done.stderr.strip().splitlines()[-1]
