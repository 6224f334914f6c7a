"""Pictures of runs: figures (matplotlib), interactive pages (plotly), and cards in notebooks."""

from poem_cma.plots.figures import compare as compare
from poem_cma.plots.figures import plot_result as plot_result
from poem_cma.plots.figures import plot_spectrum as plot_spectrum
from poem_cma.plots.pages import to_html as to_html

__all__ = ["compare", "plot_result", "plot_spectrum", "to_html"]
