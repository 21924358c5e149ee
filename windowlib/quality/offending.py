"""Which rows a check of rows has found wrong: key and window of the first few of them.

Great Expectations would say it itself (`unexpected_index_column_names`), of every such row and one at a time, before it
keeps a few: seconds for each hundred thousand. It gives the places of the first few for nothing; their key and window
are read from the files, and stand where it would have put them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from windowlib.delta import data_files

INDEX = "partial_unexpected_index_list"  # Great Expectations' name for it
WINDOW = ("window_start", "window_end")


def with_rows(outcome: Mapping[str, Any], files: Sequence[Path], key: Sequence[str]) -> dict[str, Any]:
    """The outcome of a suite about the rows of some files; wrong rows have key and window instead of their place."""
    return {**outcome, "results": [_with_rows(one, files, [*key, *WINDOW]) for one in outcome["results"]]}


def rows_of(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows that an outcome names; none where it is about no rows."""
    return [*result["result"].get(INDEX, ())]


def _with_rows(result: Mapping[str, Any], files: Sequence[Path], columns: Sequence[str]) -> dict[str, Any]:
    seen = dict(result["result"])
    if places := [place for place in seen.pop(INDEX, ()) if isinstance(place, int)]:
        values = seen.get("partial_unexpected_list", [])
        about = result["expectation_config"]["kwargs"].get("column")
        found = rows_at(files, places, columns)
        seen[INDEX] = [
            {**row, about: values[number]} if about and len(values) == len(found) else row
            for number, row in enumerate(found)
        ]
    return {**result, "result": seen}


def rows_at(files: Sequence[Path], places: Sequence[int], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Rows by their place in all of some files, one after the other, as JSON has them."""
    found, before = dict[int, dict[str, Any]](), 0
    for file in files:
        stored = pq.ParquetFile(file)
        here = [place for place in places if before <= place < before + stored.metadata.num_rows]
        if here:
            rows = stored.read(columns=[name for name in columns if name in stored.schema_arrow.names])
            taken = data_files.rows_of(rows.take([place - before for place in here]))
            found |= {place: _plain(row) for place, row in zip(here, taken, strict=True)}
        before += stored.metadata.num_rows
    return [found[place] for place in places]


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """
    >>> _plain({"user": "ann", "window_start": datetime(2026, 3, 5, tzinfo=UTC), "n": None})
    {'user': 'ann', 'window_start': '2026-03-05T00:00:00+00:00', 'n': None}
    >>> _plain({"local": datetime.min})
    {'local': '0001-01-01T00:00:00'}
    """
    return {name: _as_json(value) for name, value in row.items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
    return value if value is None or isinstance(value, str | int | float) else str(value)
