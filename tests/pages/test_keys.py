"""Keys on a page have the form in which users search for them; each row has the command that explains it."""

from __future__ import annotations

import shlex
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import Schema

from tests.support.clicks import clicks
from windowlib.definition.definition import Definition
from windowlib.definition.instants import utc
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files
from windowlib.delta.tables import Tables
from windowlib.pages.rows import ResultFilter, results
from windowlib.publication.key import CannotLook

HOUR_MS = 3_600_000


def with_results(made: Definition, kind: pa.DataType, keys: list[Any]) -> tuple[Tables, dict[str, int]]:
    """A row of `results` for each key, an hour apart."""
    tables, stamp = Tables(made.store), pa.timestamp("us", tz="UTC")
    schema = pa.schema([("user", kind), ("window_start", stamp), ("window_end", stamp), ("clicks", pa.int64())])
    rows = [
        {"user": key, "window_start": utc(n * HOUR_MS), "window_end": utc((n + 1) * HOUR_MS), "clicks": 1_234_567}
        for n, key in enumerate(keys)
    ]
    table = tables["results"]
    version = delta_commits.create(table, Schema.from_arrow(schema))
    data = data_files.write(table.store, pa.Table.from_pylist(rows, schema=schema))
    return tables, {"results": delta_commits.commit(table, version, add=[data])}


@pytest.mark.parametrize(
    ("kind", "keys", "text"),
    [
        (pa.int64(), [1_234_567, 12], "1234567"),
        (pa.float64(), [1234567.25, 0.1], "1234567.25"),
        (pa.bool_(), [True, False], "true"),
        (pa.date32(), [date(2026, 3, 5), date(2026, 3, 6)], "2026-03-05"),
        (pa.decimal128(12, 2), [Decimal("1234.50"), Decimal("0.10")], "1234.50"),
        (pa.timestamp("us", tz="UTC"), [datetime(2026, 3, 5, 10, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)],
         "2026-03-05T10:00:00+00:00"),
        (pa.string(), ["it's ann", "1,234"], "it's ann"),
    ],
)  # fmt: skip
def test_a_key_that_is_copied_from_a_page_is_found(tmp_path: Path, kind: pa.DataType, keys: Any, text: str) -> None:
    made = clicks(tmp_path, files=0)
    tables, versions = with_results(made, kind, keys)
    shown = results(made, tables, versions)
    assert [cells[0] for cells in shown.cells][:1] == [text]
    found = results(made, tables, versions, ResultFilter(key={"user": text}))
    assert [(cells[0], cells[3]) for cells in found.cells] == [(text, "1,234,567")]
    [command] = found.commands
    assert shlex.split(command)[1:] == ["explain", str(made.file), "--key", text, "--at", "1970-01-01T00:00:00Z"]


def test_a_text_that_is_no_key_is_refused(tmp_path: Path) -> None:
    made = clicks(tmp_path, files=0)
    tables, versions = with_results(made, pa.int64(), [1])
    with pytest.raises(CannotLook, match="is not a value of column user of type int64"):
        results(made, tables, versions, ResultFilter(key={"user": "ann"}))


def test_no_command_shows_a_hidden_key(tmp_path: Path) -> None:
    made = clicks(tmp_path, files=0)
    tables, versions = with_results(made, pa.int64(), [1])
    hiding = made.model_copy(update={"pages": made.pages.model_copy(update={"hide": ["user"]})})
    found = results(hiding, tables, versions)
    assert (found.cells[0][0], found.commands) == ("hidden", [])
