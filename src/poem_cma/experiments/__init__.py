"""The experiments: the campaign machinery, the benchmarks and the reproduction of the paper."""
