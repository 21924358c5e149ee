"""Columns that a file lacks: the message suggests correcting the definition before setting a file aside."""

from __future__ import annotations

import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.source.arriving import source_file
from tests.support.clicks import CLICKS as WITH_IDS
from tests.support.clicks import START_MS, clicks, clock, without
from windowlib.batches.planning import plan
from windowlib.cli.exits import USER, exit_code
from windowlib.definition.definition import Definition
from windowlib.ledger.rows import SourceFile
from windowlib.model.errors import WindowError
from windowlib.source.columns.check import check_readable

CLICKS = without(WITH_IDS, "event_id", "max_files_per_run", "first")
FILE = {"user": pa.array(["u1"]), "at_ms": pa.array([START_MS]), "value": pa.array([1])}
DONE = "; nothing of this batch has been committed"


def pipeline(folder: Path, text: str, *files: dict[str, pa.Array]) -> Definition:
    definition = clicks(folder, 0, text)
    for number, columns in enumerate(files, 1):
        pq.write_table(pa.table(columns), folder / "incoming" / f"{number}.parquet")
    return definition


def said(definition: Definition, number: int = 1, pinned: dict[str, str] | None = None) -> str:
    """Message of a plan about a file, without its path; with `pinned`, after a batch that has read these columns."""
    file = source_file(definition.source.path, f"{number}.parquet")
    with pytest.raises(WindowError) as caught:
        plan(definition, clock) if pinned is None else check(definition, file, pinned)
    assert exit_code(caught.value) == USER
    path = definition.source.path / f"{number}.parquet"
    return str(caught.value).removeprefix(f"{path} ")


def check(definition: Definition, file: SourceFile, pinned: dict[str, str]) -> None:
    check_readable(definition.source, definition.uses, [file], pinned)


@pytest.mark.parametrize(
    ("of", "written", "key", "column", "meant"),
    [
        ('key = ["user"]', 'key = ["usr"]', "source.key", "usr", "user"),
        ('timestamp = "at_ms"', 'timestamp = "at_m"', "source.timestamp", "at_m", "at_ms"),
        ("sum(value)", "sum(valu)", "aggregates.total", "valu", "value"),
        ("[source]", '[source]\nevent_id = "vaule"', "source.event_id", "vaule", "value"),
    ],
)
def test_a_misspelt_column(tmp_path: Path, of: str, written: str, key: str, column: str, meant: str) -> None:
    definition = pipeline(tmp_path, CLICKS.replace(of, written), FILE)
    place = f"{key} in {definition.file}"
    names = f"has no column {column!r}, but {place} names it{DONE}."
    assert said(definition) == f"{names} It has at_ms, user, value; did you mean {meant}? Correct the definition"


def test_a_missing_column_without_similar_names(tmp_path: Path) -> None:
    """Either the definition or the file may be right."""
    definition = pipeline(tmp_path, CLICKS.replace("sum(value)", "sum(q)"), FILE)
    names = f"has no column 'q', but aggregates.total in {definition.file} names it{DONE}."
    has = "It has at_ms, user, value."
    assert said(definition) == f"{names} {has} Correct the definition, or write the file with 'q'"


def test_a_column_that_earlier_batches_have_read(tmp_path: Path) -> None:
    """The message first suggests a similar name, then null, then setting the file aside."""
    lacks = {name: column for name, column in FILE.items() if name != "value"}
    definition = pipeline(tmp_path, CLICKS, lacks, {**lacks, "values": pa.array([1])})
    pinned = {"user": "string", "at_ms": "int64", "value": "int64"}
    file = shlex.quote(str(definition.file))
    sentence = said(definition, 1, pinned)
    null = f'To read it as null, add missing_columns = "null" to [source] in {definition.file}'
    assert f"It has at_ms, user. {null}. Otherwise write the file with 'value', or set it aside: `" in sentence
    assert sentence.endswith(f'set-aside {file} 1.parquet --reason "…"`')
    sentence = said(definition, 2, pinned)
    assert f"It has at_ms, user, values; did you mean values? {null}. Otherwise correct the definition, w" in sentence
    assert sentence.endswith(f"or set it aside: `{sentence.split('`')[1]}`")


def test_a_column_that_the_first_file_of_a_batch_has(tmp_path: Path) -> None:
    definition = pipeline(tmp_path, CLICKS, FILE, {name: of for name, of in FILE.items() if name != "value"})
    assert "Otherwise write the file with 'value', or set it aside: `" in said(definition, 2)


def test_a_reversed_rename(tmp_path: Path) -> None:
    text = CLICKS.replace("[watermark]", '[source.rename]\n"user" = "who"\n[watermark]').replace('["user"]', '["who"]')
    renamed = {"who" if name == "user" else name: column for name, column in FILE.items()}
    definition = pipeline(tmp_path, text, renamed)
    place = f"source.rename in {definition.file}"
    meant = 'did you mean { "who" = "user" }, what the files call it first?'
    names = f"has no column 'user', but {place} names it{DONE}."
    assert said(definition) == f"{names} It has who, at_ms, value; {meant} Correct the definition"
    misspelt = pipeline(tmp_path, text.replace('"user" = ', '"usr" = '), FILE)
    assert "It has user, at_ms, value; did you mean user? Correct the definition" in said(misspelt)
