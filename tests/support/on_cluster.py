"""Runs all batches of the pipeline of clicks in a folder on the cluster of its definition.

`python -m tests.support.on_cluster FOLDER`.

Prints how many machines have computed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.clicks import clock
from windowlib.definition.definition import load_definition
from windowlib.runs.advance import advance
from windowlib.runs.spark_sessions import spark_sessions
from windowlib.storage.disk import Disk

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    definition = load_definition(folder / "clicks.toml")
    definition = definition.model_copy(update={"store": Disk(folder / "warehouse" / "clicks")})
    advance(definition, spark_sessions(definition), clock=clock)
    spark = SparkSession.active()
    status = spark.sparkContext._jsc.sc().getExecutorMemoryStatus()
    print(status.size() - 1)  # without the driver
