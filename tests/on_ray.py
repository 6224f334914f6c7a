"""Runs on a real Ray cluster of several nodes: ``python on_ray.py FOLDER``. Prints a line of JSON."""

from __future__ import annotations

import json
import os
import pathlib
import sys
import threading
import time

import numpy as np
import ray
from ray.cluster_utils import Cluster
from runs import Heavy, bits, flaky, moody, mortal, run, slow

import poem_cma as pc
from poem_cma.store import View

MARKS = pathlib.Path(os.environ["POEM_CMA_TEST_FOLDER"])


def marking(x: np.ndarray, i: int) -> float:
    """Says on which node it is, and waits until there are two: a quick node must not do all the work alone.

    A node's first call takes long, so that it is under way when the node is killed for it.
    """
    mark = MARKS / f"node-{ray.get_runtime_context().get_node_id()}"
    first = not mark.exists()
    mark.touch()
    until = time.monotonic() + 30.0
    while len(list(MARKS.glob("node-*"))) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    if first:
        time.sleep(3.0)
    return slow(x, i)


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    report: dict[str, object] = {}
    here = {"num_cpus": 1}
    cluster = Cluster(initialize_head=True, head_node_args={**here, "include_dashboard": False})
    second = cluster.add_node(**here)
    ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
    try:
        report["same"] = bits(run(flaky, batch=4, workers=pc.Workers(ray, retries=0))) == bits(run(flaky, batch=4))

        # Much data travels once to each worker: it is unpacked once in each process.
        report["heavy"] = bits(run(Heavy(), batch=4, workers=ray)) == bits(run(batch=4))
        loads = [path.read_text() for path in MARKS.glob("load-*")]
        report["once"] = 1 <= len(loads) == len(set(loads)) <= 2

        # One node is killed while it is at work, and one is added in mid-run.
        def disturb() -> None:
            while not (MARKS / f"node-{second.node_id}").exists():
                time.sleep(0.05)
            cluster.remove_node(second, allow_graceful=False)
            cluster.add_node(**here)

        thread = threading.Thread(target=disturb, daemon=True)
        thread.start()
        result = run(marking, budget=600, batch=4, workers=pc.Workers(ray, retries=6), store=folder / "killed.db")
        report["killed"] = bits(result) == bits(run(budget=600, batch=4))
        with View(folder / "killed.db") as view:
            report["lost"] = sum("the worker failed" in text for *_, text in view.failures())
        thread.join()

        # Workers that raise, die and hang.
        result = run(moody, budget=40, batch=2, workers=pc.Workers(ray, timeout=6.0, retries=20))
        report["moody"] = bits(result) == bits(run(budget=40, batch=2))

        # Workers that die with other calls at hand.
        result = run(mortal, budget=60, ahead=7, workers=pc.Workers(ray, retries=20))
        report["mortal"] = bits(result) == bits(run(budget=60, ahead=7))
        report["deaths"] = len(list(MARKS.glob("mortal-*")))
    finally:
        ray.shutdown()
        cluster.shutdown()
    print(json.dumps(report))  # noqa: T201


if __name__ == "__main__":
    main()
