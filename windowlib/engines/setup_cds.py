"""Training of the class archive, which `windowlib setup --archive` makes for later JVMs.

The training executes `windowlib run` for two small pipelines in one JVM. When this JVM ends, it writes all classes that
it has loaded, parsed and verified (class data sharing). `windowlib.engines` lists the saving. Without the archive, runs
work but start more slowly.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.engines import jvm, spark
from windowlib.engines.cache import cache_folder, writable_cache_folder
from windowlib.engines.setup_java import find_java
from windowlib.model.errors import WindowError

FILES, EVENTS, USERS = 3, 20_000, 2_000
TRAINING = ".training-"
LEFT_BEHIND_S = 3_600  # a training folder of this age was left by a killed setup
BASE_MS, HOUR_MS = 1_772_409_600_000, 3_600_000
WINDOWS = {
    "sessions": 'type = "session"\ngap = "30m"\nallowed_lateness = "0s"',
    "sliding": 'type = "sliding"\nsize = "30m"\nslide = "10m"\nallowed_lateness = "1h"',
}
PIPELINE = """
name = "{name}"
warehouse = "warehouse"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at"
max_files_per_run = 1
[watermark]
out_of_orderness = "10m"
[window]
{window}
[aggregates]
events = "count(*)"
total = "sum(value)"
[spark.conf]
"spark.driver.extraJavaOptions" = '{options}'
"""


class NoArchive(WindowError):
    """The archive could not be made."""


def make() -> Path:
    """Makes the class archive of this Java and PySpark in the cache folder, unless Java can use the existing archive.

    Takes about half a minute, or a second if the existing archive is usable. Raises `NoArchive` and `UnusableJava`.
    """
    find_java()
    file = jvm.archive()
    if not jvm.archive_fits(spark.settings_of("local[*]", {})):
        _remove_left_behind(writable_cache_folder())
        file.unlink(missing_ok=True)  # Java cannot write an archive while it uses an archive
        with tempfile.TemporaryDirectory(prefix=TRAINING, dir=cache_folder()) as folder:  # on the disk of the cache
            _train(Path(folder), archive := Path(folder) / file.name)
            archive.rename(file)
    return file


def _remove_left_behind(cache: Path) -> None:
    """Removes the training folders that killed setups left behind."""
    for folder in cache.glob(f"{TRAINING}*"):
        if time.time() - folder.stat().st_mtime > LEFT_BEHIND_S:
            shutil.rmtree(folder)


def _train(folder: Path, archive: Path) -> None:
    """Runs the pipelines in `folder`, in a JVM that writes `archive` at its end."""
    (folder / "incoming").mkdir()
    for number in range(FILES):
        pq.write_table(_events(number), folder / "incoming" / f"{number}.parquet")
    options = f"{spark.DEFAULTS['spark.driver.extraJavaOptions']} -XX:ArchiveClassesAtExit={archive}"
    for name, window in WINDOWS.items():
        (folder / f"{name}.toml").write_text(PIPELINE.format(name=name, window=window, options=options))
    command = [sys.executable, "-P", "-m", "windowlib", "run", *(f"{name}.toml" for name in WINDOWS)]
    # The JVM shares the output of the run, so `subprocess.run` waits for the end of both.
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or not archive.exists():
        lines = (done.stdout + done.stderr).strip().splitlines() or ["Java gave no reason"]
        causes = [line for line in lines if line.startswith("Caused by: ")]
        raise NoArchive(f"no class archive was made: {'; '.join([*causes[-1:], lines[-1]])}")


def _events(number: int) -> pa.Table:
    """Generates the events of one hour, in bursts per user."""
    events = range(number * EVENTS, (number + 1) * EVENTS)
    times = [1000 * (BASE_MS + number * HOUR_MS + event * 7_919 % HOUR_MS) for event in events]
    columns = {
        "user": pa.array([event * 31 % USERS for event in events]),
        "at": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
        "value": pa.array([event % 1000 for event in events]),
    }
    return pa.table(columns)
