"""The paper's experiments, re-run: cells of results first, then figures, claims and a report drawn from their files.

Nothing here is needed to minimise a function, and nothing outside imports it but the command line.
"""
