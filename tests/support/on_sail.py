"""The next batches of the pipeline of clicks in each folder, run by Sail.

`python -m tests.support.on_sail BATCHES FOLDER…`.

A process of its own, since PySpark knows one kind of session in a process.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.clicks import clock
from windowlib.definition.definition import load_definition
from windowlib.runs.advance import advance
from windowlib.runs.spark_sessions import spark_sessions
from windowlib.storage.disk import Disk

if __name__ == "__main__":
    batches, *folders = sys.argv[1:]
    for folder in map(Path, folders):
        definition = load_definition(folder / "clicks.toml")
        definition = definition.model_copy(update={"store": Disk(folder / "warehouse" / "clicks"), "engine": "sail"})
        advance(definition, spark_sessions(definition), clock=clock, max_batches=int(batches))
