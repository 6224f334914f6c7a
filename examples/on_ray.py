"""A run on a Ray cluster: ``python examples/on_ray.py``.

The cluster is four processes on this machine. For one elsewhere, ``ray.init("auto")`` there is the only change.
"""

from __future__ import annotations

import time

import numpy as np
import ray

import poem_cma as pc

DATA = np.random.default_rng(0).normal(size=(2000, 10)) + np.linspace(-1.0, 1.0, 10)  # travels once to each worker


def median_distance(x: np.ndarray, i: int) -> float:
    """The distance to one example, after some work: its mean is least at the geometric median."""
    time.sleep(0.01)
    return float(np.linalg.norm(DATA[i] - x))


def draw(rng: np.random.Generator) -> int:
    return int(rng.integers(len(DATA)))


def main() -> None:
    ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    started = time.perf_counter()
    result = pc.minimize(
        median_distance,
        np.zeros(10),
        sample=draw,
        workers=pc.Workers(ray, timeout=30.0),
        batch="auto",
        budget=1000,
        seed=0,
    )
    seconds = time.perf_counter() - started
    ray.shutdown()
    print(f"{result.nfev} calls of 10 ms in {seconds:.1f} s: mean distance {result.fun:.3f} ± {result.fun_stderr:.3f}")
    print(f"at x = {np.round(result.x, 2)}")


if __name__ == "__main__":
    main()
