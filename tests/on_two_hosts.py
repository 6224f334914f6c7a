"""Two network namespaces as two hosts: the scheduler and the run here, a worker there. ``python on_two_hosts.py``.

The address of this side is 10.213.0.1, reached from the other side only. Prints a line of JSON.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys

from distributed import Client, LocalCluster
from runs import bits, flaky, run

import poem_cma as pc

THERE = sys.argv[1]


def main() -> None:
    with LocalCluster(n_workers=0, host="10.213.0.1", dashboard_address=None) as cluster, Client(cluster) as client:
        worker = subprocess.Popen(
            ["ip", "netns", "exec", THERE, sys.executable, "-m", "distributed.cli.dask_worker",
             cluster.scheduler_address, "--host", "10.213.0.2", "--nthreads", "2", "--no-dashboard"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            client.wait_for_workers(1, timeout=60)
            hosts = [address.split("//")[1].split(":")[0] for address in client.nthreads()]
            result = run(flaky, batch=4, workers=pc.Workers(client, retries=0))
            print(json.dumps({"hosts": hosts, "same": bits(result) == bits(run(flaky, batch=4))}))  # noqa: T201
        finally:
            worker.terminate()
            worker.wait()


if __name__ == "__main__":
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    main()
