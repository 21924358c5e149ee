"""The same runs on a Spark cluster: a standalone master and two workers, processes of their own on this machine.

The workers' Python has PySpark's and Arrow's packages and not ours, and they run in another folder, so nothing works
by accident of being the same process, the same folder or the same environment.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, clicks, clock, tables
from windowlib.runs.advance import advance

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.long("a cluster of its own; spark-submit and Spark Connect are in make test"),
]

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
SESSION = 'type = "session"\ngap = "10m"\nallowed_lateness = "2h"'
DEFINITIONS = {
    "native": CLICKS,
    "general": CLICKS.replace(SESSION, 'type = "session"\ngap = "10m"\n[window.trigger]\ntype = "count"\nn = 3'),
}
READY_SECONDS = 60
FILES = 2


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(text: str, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while text not in (log.read_text() if log.exists() else ""):
        assert time.monotonic() < deadline, f"no {text!r} in:\n{log.read_text()}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master with two registered workers of one core each."""
    folder = tmp_path_factory.mktemp("cluster")
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    # Their own Python sees the packages, but no links to this project among them.
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON")}
    environment |= {"PYTHONPATH": sysconfig.get_path("purelib"), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_WORKER_DIR": str(folder / "work")}
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> None:
        log = (folder / f"{name}.log").open("wb")
        command = [str(SPARK_CLASS), *arguments]
        started.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log))
        log.close()

    try:
        start("master", MASTER, "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        wait_for("I have been elected leader", folder / "master.log")
        for worker in ("worker-1", "worker-2"):
            start(worker, WORKER, "--cores", "1", "--memory", "1g", "--webui-port", "0", address)
            wait_for("Successfully registered with master", folder / f"{worker}.log")
        yield address
    finally:
        for process in started:
            for child in (*psutil.Process(process.pid).children(recursive=True), process):
                child.kill()
            process.wait()


def test_a_cluster_gives_the_tables_of_a_local_run(spark: SparkSession, master: str, tmp_path: Path) -> None:
    python = Path(sys.base_prefix) / "bin" / "python3"
    on_cluster = f"""
[spark]
master = "{master}"
[spark.conf]
"spark.pyspark.python" = "{python}"
"spark.executor.memory" = "512m"
"spark.cores.max" = "2"
"spark.sql.shuffle.partitions" = "4"
"""
    for name, text in DEFINITIONS.items():
        local = clicks(tmp_path / f"{name}-local", files=FILES, definition=text)
        assert len(advance(local, lambda: spark, clock=clock)) == FILES
        remote = clicks(tmp_path / name, files=FILES, definition=text + on_cluster)
        ran = subprocess.run(
            [sys.executable, "-m", "tests.support.on_cluster", str(tmp_path / name)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert int(ran.stdout.split()[-1]) == 2, "both workers had a part in it"
        ours, theirs = tables(local), tables(remote)
        assert {table: rows for table, rows in ours.items() if rows != theirs[table]} == {}
