"""The pictures of the pages, drawn by the code that the pages show.

python docs/figures.py [folder]     # docs/assets unless another is given
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import blocks

HERE = Path(__file__).resolve().parent


def page(name: str) -> dict[str, Any]:
    """The names that a page's code leaves behind."""
    names: dict[str, Any] = {"__name__": "__page__"}
    with tempfile.TemporaryDirectory() as folder:
        blocks.run(HERE / name, Path(folder), names)
    return names


def spectra() -> Any:
    """The two spectra of the page on dimension, beside each other."""
    from matplotlib.figure import Figure

    names = page("dimension.md")
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    tools = {"spectrum": "gradient_spectrum, {} gradients", "algorithm2": "effective_dimension, {} pairs"}
    for axes, (name, tool) in zip(figure.subplots(1, 2), tools.items(), strict=True):
        title = tool.format(names[name].size)
        eigenvalues = names[name].all_eigenvalues
        axes.bar(range(1, len(eigenvalues) + 1), eigenvalues / eigenvalues.max(), color="#2f6db3")
        axes.set(xlim=(0.0, 51.0), xlabel="direction, of 50", ylabel="eigenvalue / largest", title=title)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


FIGURES = {"spectra.png": spectra}

#: Pictures that take too long to be drawn here, and the commands that draw them.
BY_COMMAND = {
    **{
        f"field-{suite}.png": "make bench, then python docs/field_tables.py results/bench"
        for suite in ("simulators", "policies", "rough", "noisy-bbob")
    },
    **dict.fromkeys(("first-light.svg", "first-dark.svg"), "python docs/figures_first.py"),
    **dict.fromkeys(("result.png", "spectrum.png", "compare.png"), "python docs/pictures.py"),
    **{f"auto-{name}.png": "python docs/figures_auto.py" for name in ("scan", "gate", "scores", "phases")},
    **{f"how-{name}.png": "python docs/figures_auto.py" for name in ("differences", "walk", "far", "scale", "result")},
    **dict.fromkeys(
        ("paper-repair.png", "paper-figure1.png", "paper-figure2.png"),
        "make run, then python docs/figures_paper.py results/reproduce",
    ),
    "torch-lm.png": "python benchmarks/torch_lm.py --size cpu --passes 4000 --seeds 1 --kinds full",
}


def main(folder: Path = HERE / "assets") -> None:
    """Draw all of them, and say how the others are drawn."""
    for name, draw in FIGURES.items():
        draw().savefig(folder / name, dpi=110)
    for name, command in BY_COMMAND.items():
        print(f"{name}: {command}")


if __name__ == "__main__":
    with contextlib.chdir(HERE):
        main(*map(Path, sys.argv[1:]))
