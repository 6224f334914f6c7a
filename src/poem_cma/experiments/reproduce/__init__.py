"""The paper's experiments, re-run: cells of results first, then figures, claims and a report drawn from their files.

Nothing here is needed to minimise a function; outside, only the command line and `poem_cma.problems` (for its certified
optima) import it.
"""
