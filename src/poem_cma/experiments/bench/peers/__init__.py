"""The players: one file for each package, and the baselines written here."""
