"""A standalone Spark cluster: a master and two workers, processes of their own on this machine.

The workers' Python has PySpark's and Arrow's packages and not ours, and they run in another folder, so nothing works
by accident of being the same process, the same folder or the same environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyspark

from tests.support.connect_server import free_port
from tests.support.object_servers import VARIABLES
from windowlib.storage.bucket import S3

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
READY_SECONDS = 60


def section(address: str) -> str:
    """Section `[spark]` of a definition for the cluster."""
    return f"""
[spark]
master = "{address}"
[spark.conf]
"spark.pyspark.python" = "{Path(sys.base_prefix) / "bin" / "python3"}"
"spark.executor.memory" = "512m"
"spark.cores.max" = "2"
"spark.sql.shuffle.partitions" = "4"
"""


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """The address of a master with two registered workers of one core each.

    The workers find credentials for the tests' S3 server in their environment.
    """
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    # Their own Python sees the packages, but no links to this project among them.
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON")}
    environment |= {"PYTHONPATH": sysconfig.get_path("purelib"), "SPARK_LOCAL_IP": "127.0.0.1", **VARIABLES[S3]}
    environment |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_WORKER_DIR": str(folder / "work")}
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> None:
        log = (folder / f"{name}.log").open("wb")
        command = [str(SPARK_CLASS), *arguments]
        started.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log))
        log.close()

    try:
        start("master", MASTER, "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        _wait_for("I have been elected leader", folder / "master.log")
        for worker in ("worker-1", "worker-2"):
            start(worker, WORKER, "--cores", "1", "--memory", "1g", "--webui-port", "0", address)
            _wait_for("Successfully registered with master", folder / f"{worker}.log")
        yield address
    finally:
        for process in started:
            for child in (*psutil.Process(process.pid).children(recursive=True), process):
                child.kill()
            process.wait()


def _wait_for(text: str, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while text not in (log.read_text() if log.exists() else ""):
        assert time.monotonic() < deadline, f"no {text!r} in:\n{log.read_text()}"
        time.sleep(0.1)
