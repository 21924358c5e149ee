"""An archive of the classes that a run loads, so that the next JVM need not: `python -m jobs.setup_cds`.

Small pipelines run once in a JVM that writes down, at its end, every class they made it load, parsed and verified
(class data sharing). `jobs.jvm` uses the file where Java and the class path are those it was made with. Without it
everything works, and starts more slowly.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from jobs import jvm, spark
from jobs.advance import advance
from jobs.bench.clickstream import BASE_MS, Clicks
from jobs.bench.query import HOUR_MS, MINUTE_MS, Query, definition
from jobs.definition import load_definition
from jobs.setup_java import find_java
from windowlib.assigners import Session, Sliding
from windowlib.errors import WindowError

EVENTS, FILES = 20_000, 3
QUERIES = (
    Query("sessions", Session(30 * MINUTE_MS)),
    Query("sliding", Sliding(30 * MINUTE_MS, 10 * MINUTE_MS), allowed_lateness_ms=HOUR_MS),
)


class NoArchive(WindowError):
    """The archive could not be made."""


def make(folder: Path = jvm.JARS) -> Path:
    """The archive for this Java and class path in `folder`, made if it is not there; older ones go.

    Raises `NoArchive`, and `UnusableJava`.
    """
    find_java()
    file = folder / jvm.archive(jvm.class_path_of(spark.settings_of("local[*]", {}))).name
    if not file.exists():
        with tempfile.TemporaryDirectory(prefix="windowlib-training-") as training:
            made = Path(training) / file.name
            command = [sys.executable, "-m", "jobs.setup_cds", training, str(made)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode or not made.exists():
                said = (done.stdout + done.stderr).strip().splitlines()
                raise NoArchive(f"no class archive was made: {said[-1] if said else 'Java said nothing'}")
            for old in folder.glob("classes-*.jsa"):
                old.unlink()
            moved = folder / f"{file.name}.part"  # the temporary folder may lie on another disk
            shutil.move(made, moved)
            moved.rename(file)
    return file


def train(folder: Path, archive: Path) -> None:
    """Runs the pipelines in `folder`, in a JVM that writes `archive` when it ends."""
    options = f"{spark.DEFAULTS['spark.driver.extraJavaOptions']} -XX:ArchiveClassesAtExit={archive}"
    for query in QUERIES:
        incoming = folder / query.name / "incoming"
        incoming.mkdir(parents=True)
        for number in range(FILES):
            Clicks().write(incoming / f"{number}.parquet", number, EVENTS, BASE_MS + number * HOUR_MS, HOUR_MS)
        file = folder / query.name / "pipeline.toml"
        file.write_text(definition(query))
        advance(load_definition(file), lambda: spark.session(conf={"spark.driver.extraJavaOptions": options}))
    spark.end_jvm()


def main() -> None:
    """`python -m jobs.setup_cds`; with a folder and a file, the process that trains."""
    match [Path(argument) for argument in sys.argv[1:]]:
        case [folder, archive]:
            train(folder, archive)
        case _:
            try:
                file = make()
            except NoArchive as error:  # nothing depends on it
                print(f"{error}. Runs will start more slowly, that is all.", file=sys.stderr)
            else:
                print(f"{file.stat().st_size >> 20} MB of classes in {file}")


if __name__ == "__main__":
    try:
        main()
    except WindowError as error:
        sys.exit(str(error))
