"""Recorder of cumulate.json: the results of Flink SQL's CUMULATE for the cases in that file.

Needs a JDK, and a folder with these JARs, version 2.2.0, and all that they depend on: flink-table-planner_2.12,
flink-table-runtime, flink-table-api-java-bridge and flink-clients.

    python tests/conformance/flink_sql/record.py JARS

Results are those of Flink's batch mode. Its streaming mode may lose rows if the offset is no multiple of the step. It
flushes its buffer at multiples of the step, and the windows end at other times. `streaming` says if both modes agree.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RECORDING = HERE / "cumulate.json"
OPENED = ("java.lang", "java.util", "java.time")  # to Flink's serializers


def record(jars: str) -> None:
    """Writes the results of both modes into the recording."""
    cases = json.loads(RECORDING.read_text())
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "cases.txt"
        written.write_text("".join(f"{line}\n" for case in cases for line in _lines(case)))
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", folder, HERE / "Cumulate.java"], check=True)
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        java = ["java", *opened, "-cp", f"{folder}:{jars}/*", "Cumulate", written]
        batch, streaming = (_results([*java, mode]) for mode in ("BATCH", "STREAMING"))
    for case in cases:
        case["results"] = batch[case["name"]]
        case["streaming"] = streaming[case["name"]] == batch[case["name"]]
    RECORDING.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


def _lines(case: dict[str, Any]) -> list[str]:
    window = case["assigner"]
    numbers = window["step_ms"], window["max_size_ms"], window["offset_ms"], case["out_of_orderness_ms"] + 1
    events = [" ".join(map(str, event)) for batch in case["batches"] for event in batch]
    return [" ".join(map(str, (case["name"], *numbers))), *events]


def _results(command: list[Any]) -> dict[str, list[list[Any]]]:
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, list[list[Any]]] = {}
    for line in printed.splitlines():
        if line.startswith("RESULT "):
            name, key, *numbers = line.split()[1:]
            found.setdefault(name, []).append([key, *map(int, numbers)])
    return {name: sorted(rows) for name, rows in found.items()}


if __name__ == "__main__":
    record(sys.argv[1])
