"""A local Airflow with the pipelines of `dags/pipelines/`, until Ctrl-C: `python -m docs.local_airflow`.

All of it is in the working folder: `dags/`, and Airflow's home `.airflow` with database (SQLite), settings and logs. It
listens on this machine only. The first start also makes sample input for the example pipelines in `local/`.

    API server -> it answers -> DAG processor, triggerer, scheduler -> they are at work

A task talks to the API server, so one that starts before it answers fails its first try; `airflow standalone` starts
all at once.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from windowlib.airflow.pools import as_json
from windowlib.airflow.processes import ProcessGroup
from windowlib.engines.setup_java import find_java
from windowlib.model.errors import WindowError

BIN = Path(sys.executable).parent  # not resolved: a virtual environment's Python is a link
USER = PASSWORD = "admin"
READY_SECONDS = 180
API_SERVER, OTHERS = "api-server", ("dag-processor", "triggerer", "scheduler")
LOG = "airflow.log"

FILES, WAITING = 10, 2  # sample files, and how many of them are left for the reader to add


class AirflowFailed(WindowError):
    """Airflow did not start, or ended by itself."""


def main() -> None:
    """Starts Airflow, says where it is, and ends all of it on Ctrl-C."""
    find_java()
    folder = Path.cwd()
    make_sample(folder / "local")
    port = free_port()
    settings = environment(folder, port)
    print("Airflow is starting (a minute, the first time) ...", flush=True)
    prepare(settings)
    with _until_signalled(), running(settings, port) as airflow:
        print(greeting(folder, port), flush=True)
        while airflow.is_whole():
            time.sleep(0.5)
        raise AirflowFailed(f"Airflow ended by itself; the end of its log:\n{_last_words(airflow.log)}")


def home(folder: Path) -> Path:
    """Airflow's home for the DAGs of a folder."""
    return folder / ".airflow"


def environment(folder: Path, port: int) -> dict[str, str]:
    """Airflow's settings: all of it in the folder, on this port of this machine, no usage data reported."""
    address = f"http://127.0.0.1:{port}"
    return {
        "AIRFLOW_HOME": str(home(folder)),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": str(parallelism()),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home(folder) / "passwords.json"),
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": address,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",  # a restart soon retries what Ctrl-C stopped
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }


def parallelism() -> int:
    """How many tasks this machine's Airflow runs at once: one that computes for each core, and as many that do not."""
    return 2 * max(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def prepare(settings: Mapping[str, str]) -> None:
    """Makes the home folder, the database, the login and the pools; what is there already stays."""
    Path(settings["AIRFLOW_HOME"]).mkdir(exist_ok=True)
    passwords = Path(settings["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    passwords.write_text(json.dumps({USER: PASSWORD}), encoding="utf-8")
    _airflow(settings, "db", "migrate")
    pools = Path(settings["AIRFLOW_HOME"]) / "pools.json"
    pools.write_text(json.dumps(as_json()), encoding="utf-8")
    _airflow(settings, "pools", "import", str(pools))


@dataclass(frozen=True, slots=True)
class Airflow:
    """The started parts of an Airflow, and the file that all of them log to."""

    log: Path
    parts: list[ProcessGroup] = field(default_factory=list)
    keepers: list[threading.Thread] = field(default_factory=list)  # of what the parts say

    def is_whole(self) -> bool:
        """Whether no part has ended."""
        return all(part.alive() for part in self.parts)

    def start(self, name: str, settings: Mapping[str, str]) -> None:
        """Starts a part, whose lines go to the log under its name."""
        part = ProcessGroup([str(BIN / "airflow"), name], settings, grace_seconds=10)
        self.parts.append(part)
        self.keepers.append(threading.Thread(target=_keep_log, args=(name, part.lines(), self.log), daemon=True))
        self.keepers[-1].start()

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Raises `AirflowFailed` when it is not ready in time, or a part has ended."""
        deadline = time.monotonic() + READY_SECONDS
        while not ready():
            if time.monotonic() > deadline or not self.is_whole():
                raise AirflowFailed(f"Airflow did not start; the end of its log:\n{_last_words(self.log)}")
            time.sleep(0.2)

    def end(self) -> None:
        """Ends all parts, at once."""
        ends = [threading.Thread(target=part.end) for part in self.parts]
        for one in ends:
            one.start()
        for one in [*ends, *self.keepers]:
            one.join()
        for part in self.parts:
            part.__exit__(None, None, None)


@contextmanager
def running(settings: Mapping[str, str], port: int) -> Iterator[Airflow]:
    """All of Airflow, at work while the block runs. Raises `AirflowFailed`."""
    airflow = Airflow(Path(settings["AIRFLOW_HOME"]) / LOG)
    airflow.log.write_text("", encoding="utf-8")
    try:
        airflow.start(API_SERVER, settings)
        airflow.wait_until(lambda: asked(port, "version") is not None)
        for name in OTHERS:
            airflow.start(name, settings)
        airflow.wait_until(lambda: _healthy(port))
        yield airflow
    finally:
        airflow.end()


def greeting(folder: Path, port: int) -> str:
    names = sorted(file.stem for file in (folder / "dags" / "pipelines").glob("*.toml"))
    return f"""
Airflow is ready:  http://127.0.0.1:{port}    user {USER}, password {PASSWORD}

  Pipelines {", ".join(names)} look for new files now and every ten minutes.
  More input:     mv local/waiting/* local/incoming/    (then trigger a run, or wait for the next)
  Results:        {_shown(BIN, folder)}/windowlib read dags/pipelines/clicks.toml results
  Airflow's log:  .airflow/{LOG}

Ctrl-C stops it.
"""


def make_sample(folder: Path) -> None:
    """Clicks of the last hours in `folder/incoming`, their last files in `folder/waiting`; nothing if there are any."""
    incoming, waiting = folder / "incoming", folder / "waiting"
    if incoming.exists():
        return
    from windowlib.demo.clicks import BASE_MS, HOUR_MS, ClickSettings
    from windowlib.demo.files import move_files
    from windowlib.demo.truth import make_demo_data

    made = folder / "made"
    make_demo_data(ClickSettings(events=200_000, users=5_000, files=FILES), made)
    this_hour_ms = int(time.time()) * 1000 // HOUR_MS * HOUR_MS
    move_files(made, this_hour_ms - FILES * HOUR_MS - BASE_MS)
    waiting.mkdir(exist_ok=True)
    for file in sorted(made.iterdir())[FILES - WAITING :]:
        file.rename(waiting / file.name)
    made.rename(incoming)


def free_port(preferred: int = 8080) -> int:
    """The preferred port of this machine, or, when it is taken, any free one."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise AirflowFailed("need a free port on 127.0.0.1, found none")


def _airflow(settings: Mapping[str, str], *arguments: str) -> None:
    done = subprocess.run(
        [str(BIN / "airflow"), *arguments], env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise AirflowFailed(f"`airflow {' '.join(arguments)}` failed:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")


def asked(port: int, what: str) -> Any:
    """What the API server says of something that needs no login; None where it does not answer."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/api/v2/{what}", timeout=5) as answer:
            return json.load(answer)
    except (URLError, OSError, ValueError):
        return None


def _healthy(port: int) -> bool:
    health = asked(port, "monitor/health")
    return bool(health) and all(health[part]["status"] == "healthy" for part in ("scheduler", "dag_processor"))


def _shown(path: Path, folder: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def _keep_log(name: str, lines: Iterator[str], log: Path) -> None:
    with log.open("a", encoding="utf-8") as file:
        for line in lines:
            print(f"{name:13} | {line}", file=file, flush=True)


def _last_words(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8").splitlines()[-15:]) if log.exists() else "(none)"


@contextmanager
def _until_signalled() -> Iterator[None]:
    """A plain end for Ctrl-C, a closed terminal and `kill`; the block inside gets to end what it started."""

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end(number: int, frame: FrameType | None) -> None:
        for again in signals:
            signal.signal(again, signal.SIG_IGN)
        print("\nAirflow is stopping ...", flush=True)
        raise KeyboardInterrupt

    for number in signals:
        signal.signal(number, end)
    try:
        yield
    except KeyboardInterrupt:
        print("Airflow has stopped; `make airflow` continues where it left off.")


if __name__ == "__main__":
    try:
        main()
    except WindowError as error:
        sys.exit(str(error))
