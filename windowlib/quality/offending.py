"""Key and window of the first rows that a row check rejects.

Great Expectations can collect keys and windows (`unexpected_index_column_names`), but then visits every rejected row,
which takes seconds per 100,000 rows. It returns the positions of the first rejected rows at no cost. This module reads
key and window at these positions from the files, and replaces each position by its key and window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow.parquet as pq

from windowlib.delta import data_files
from windowlib.storage.object_file import ObjectFile

INDEX = "partial_unexpected_index_list"  # Great Expectations' key for the positions of rejected rows
WINDOW = ("window_start", "window_end")


def with_rows(outcome: Mapping[str, Any], files: Sequence[ObjectFile], key: Sequence[str]) -> dict[str, Any]:
    """Replaces the positions of rejected rows in a suite's outcome by key and window, read from `files`."""
    return {**outcome, "results": [_with_rows(result, files, [*key, *WINDOW]) for result in outcome["results"]]}


def rows_of(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rejected rows in the result of an expectation; empty if the expectation does not judge rows."""
    return [*result["result"].get(INDEX, ())]


def _with_rows(result: Mapping[str, Any], files: Sequence[ObjectFile], columns: Sequence[str]) -> dict[str, Any]:
    details = dict(result["result"])
    if places := [place for place in details.pop(INDEX, ()) if isinstance(place, int)]:
        values = details.get("partial_unexpected_list", [])
        about = result["expectation_config"]["kwargs"].get("column")
        rows = rows_at(files, places, columns)
        details[INDEX] = [
            {**row, about: values[number]} if about and len(values) == len(rows) else row
            for number, row in enumerate(rows)
        ]
    return {**result, "result": details}


def rows_at(files: Sequence[ObjectFile], places: Sequence[int], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Reads the rows at the given positions in the concatenation of `files`. Values are converted to JSON types."""
    rows_by_place, before = dict[int, dict[str, Any]](), 0
    for file in files:
        stored = pq.ParquetFile(file)
        here = [place for place in places if before <= place < before + stored.metadata.num_rows]
        if here:
            rows = stored.read(columns=[name for name in columns if name in stored.schema_arrow.names])
            selected = data_files.rows_of(rows.take([place - before for place in here]))
            rows_by_place |= {place: _plain(row) for place, row in zip(here, selected, strict=True)}
        before += stored.metadata.num_rows
    return [rows_by_place[place] for place in places]


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Converts the values of a row to JSON types.

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
