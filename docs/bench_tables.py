"""Put the tables of runs of the arena into docs/benchmarks.md.

    python docs/bench_tables.py results/bench-full results/bench

The text between the two marks is replaced by the report.md of each run; everything else on the page is left as it is.
"""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from paper_tables import insert

if __name__ == "__main__":
    insert(pathlib.Path(__file__).with_name("benchmarks.md"), *sys.argv[1:])
