"""The pipeline of `tests.support.clicks`, run over Spark Connect.

`python -m tests.support.connect_run FOLDER ADDRESS [MOMENT PID]`.

The server, process PID, is ended by SIGKILL at the moment `BATCH:…` (see `tests.support.killed`). Without one, the
events are read once more, as JSON. Prints, as JSON, which batches were done, and which JVMs were children of this
process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.clicks import CLICKS, clicks, clock, events
from tests.support.killed import FILES, at
from windowlib.definition.definition import Definition
from windowlib.runs.run import RunRequest
from windowlib.runs.start import run

SCHEMA = '[source.schema]\nid = "string"\nuser = "string"\nat_ms = "bigint"\nvalue = "bigint"\n[watermark]'


def remote(address: str) -> str:
    """The pipeline's definition with this server."""
    return CLICKS + f'[spark]\nmaster = "{address}"\n'


def in_json(folder: Path, address: str) -> Definition:
    """The pipeline with the same events in files of JSON."""
    text = remote(address).replace('format = "parquet"', 'format = "json"').replace("[watermark]", SCHEMA)
    definition = clicks(folder, 0, text)
    for number in range(1, FILES + 1):
        path = folder / "incoming" / f"{number}.json"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in events(number)))
        os.utime(path, ns=(number, number))
    return definition


def main(folder: Path, address: str, moment: str = "", pid: str = "") -> None:
    """Runs the pipeline in `folder`."""
    if moment:
        batch, _, when = moment.partition(":")
        at(pytest.MonkeyPatch(), when, lambda: os.kill(int(pid), signal.SIGKILL), int(batch))
    reports = run(RunRequest.of(clicks(folder, FILES, remote(address)), clock))
    of_json = [] if moment else run(RunRequest.of(in_json(folder / "text", address), clock))
    outcome = {
        "batches": [report.batch_id for report in reports],
        "batches_of_json": [report.batch_id for report in of_json],
        "java": [child.pid for child in psutil.Process().children(recursive=True) if child.name() == "java"],
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
