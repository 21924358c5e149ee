"""Sources and tables without read permission: the message names the place, and nothing counts as damaged or lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from tests.support.clicks import CLICKS, START_MS, clicks, without
from tests.support.disks import folder_of
from windowlib.cli.exits import UNEXPECTED, USER
from windowlib.definition.definition import Definition

PARQUET = without(CLICKS, "event_id", "max_files_per_run")
FILE = pa.table({"user": ["u1"], "at_ms": [START_MS], "value": [1]})
SCHEMA = '[source.schema]\nuser = "string"\nat_ms = "bigint"\nvalue = "bigint"\n'

PLANS = """
import sys
from pathlib import Path
from windowlib.batches.planning import plan
from windowlib.cli.exits import load_pipeline, print_error
from windowlib.source.footers import footer
from windowlib.source.listed import ListedFile
sys.stderr = sys.stdout
for name in sys.argv[1:]:
    try:
        definition = load_pipeline(Path(name))
        if name.endswith("looked_at.toml"):
            footer(definition.source.store, ListedFile("1.parquet", 1_000, 0, (0, "")))
        plan(definition)
        print("planned")
    except Exception as error:
        print(print_error(error, "plan"))
"""


def pipeline(folder: Path, kind: str = "parquet") -> Definition:
    """A pipeline with a file in its folder and one in a folder below."""
    text = PARQUET.replace('"parquet"', f'"{kind}"') + (SCHEMA if kind == "csv" else "")
    definition = clicks(folder, 0, text)
    below = definition.source.path / "sub"
    if kind == "delta":
        write_deltalake(definition.source.path, FILE)
        return definition
    below.mkdir()
    for number, at in enumerate((definition.source.path, below), 1):
        if kind == "csv":
            (at / f"{number}.csv").write_text(f"user,at_ms,value\nu1,{START_MS},1\n", encoding="utf-8")
        else:
            pq.write_table(FILE, at / f"{number}.parquet")
    return definition


def said(files: list[Path], denied: list[tuple[Path, int]], less: list[str]) -> list[tuple[str, int]]:
    """Messages and exit codes of plans while places have these modes."""
    for place, mode in denied:
        place.chmod(mode)
    try:
        command = [*less, sys.executable, "-c", PLANS, *map(str, files)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
    finally:
        for place, _ in denied:
            place.chmod(0o755 if place.is_dir() else 0o644)
    lines = ran.stdout.splitlines()
    assert len(lines) == 2 * len(files), ran.stdout + ran.stderr
    return [(line, int(code)) for line, code in zip(lines[::2], lines[1::2], strict=True)]


@pytest.mark.fault(
    "the user may not read the source: a folder, a file or a Delta log",
    "the run names it and the missing permission; no file counts as damaged",
)
def test_a_source_without_read_permission_is_named(less: list[str], tmp_path: Path) -> None:
    places = [
        ("parquet", ".", 0o000),
        ("parquet", ".", 0o444),  # listed, and no file in it may be looked at
        ("parquet", "sub", 0o000),
        ("parquet", "sub", 0o444),
        ("parquet", "1.parquet", 0o000),
        ("csv", "sub/2.csv", 0o000),
        ("delta", ".", 0o000),
        ("delta", "_delta_log", 0o444),
        ("delta", "_delta_log/00000000000000000000.json", 0o000),
    ]
    definitions = [pipeline(tmp_path / str(number), kind) for number, (kind, _, _) in enumerate(places)]
    denied = [(one.source.path / at, mode) for one, (_, at, mode) in zip(definitions, places, strict=True)]
    for (sentence, code), definition, (place, _) in zip(
        said([one.file for one in definitions], denied, less), definitions, denied, strict=True
    ):
        needed = (
            f"Give the user the right to read {definition.source.path} with everything in it, and run the command again"
        )
        assert sentence == (
            f"error: this user may not read {place}. Nothing is lost, and nothing was changed. {needed}"
        )
        assert code == USER


def test_a_permission_error_names_the_single_file(less: list[str], tmp_path: Path) -> None:
    definition = pipeline(tmp_path)
    looked_at = definition.file.rename(definition.file.with_name("looked_at.toml"))
    [(sentence, code)] = said([looked_at], [(definition.source.path / "1.parquet", 0o000)], less)
    assert sentence.startswith(f"error: this user may not read {definition.source.path / '1.parquet'}. Nothing is lost")
    assert code == USER


def test_a_folder_above_the_source_of_another_user(less: list[str], tmp_path: Path) -> None:
    text = PARQUET.replace('"incoming"', '"above/incoming"')
    definition = clicks(tmp_path, 0, text)
    definition.source.path.mkdir(parents=True)
    [(sentence, code)] = said([definition.file], [(tmp_path / "above", 0o000)], less)
    assert sentence.startswith(f"error: this user may not read {tmp_path / 'above'}. ")
    assert f"Give the user the right to read {definition.source.path} " in sentence
    assert code == USER


@pytest.mark.fault(
    "the user may not read the log of one of the pipeline's tables",
    "the run names it and the missing permission; no table counts as lost",
)
def test_a_log_without_read_permission_is_named(less: list[str], tmp_path: Path) -> None:
    """The folder allows listing only, opening known names only, or neither."""
    modes = (0o444, 0o111, 0o000)
    definitions = [pipeline(tmp_path / str(number)) for number, _ in enumerate(modes)]
    for one in definitions:
        write_deltalake(folder_of(one) / "ledger", FILE)
    denied = [(folder_of(one) / "ledger" / "_delta_log", mode) for one, mode in zip(definitions, modes, strict=True)]
    for (sentence, code), definition, (place, _) in zip(
        said([one.file for one in definitions], denied, less), definitions, denied, strict=True
    ):
        assert sentence.startswith(f"error: this user may not read {place}. Nothing is lost")
        assert f"all of {folder_of(definition)}: grant it" in sentence
        assert code == UNEXPECTED
