"""Search for a key in all files of a pipeline's folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def places(root: Path, word: str) -> list[str]:
    """The files that hold a word: every Parquet file decoded, checkpoints among them, every log and JSON parsed."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and word in _words(path))


def _words(path: Path) -> set[str]:
    if path.suffix == ".parquet":
        file = pq.ParquetFile(path)
        footer = file.metadata
        groups = (
            footer.row_group(n).column(i) for n in range(footer.num_row_groups) for i in range(footer.num_columns)
        )
        bounds = [
            (one.statistics.min, one.statistics.max) for one in groups if one.statistics and one.statistics.has_min_max
        ]
        return set(_split([file.read().to_pylist(), bounds]))
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".json":
        return set(
            _split([json.loads(line) for line in text.splitlines()] if "_delta_log" in path.parts else json.loads(text))
        )
    return set(_split(text))


def _split(value: Any) -> Iterator[str]:
    """All words in a nested value. JSON inside texts is parsed too."""
    match value:
        case dict():
            for key, one in value.items():
                yield from _split(key)
                yield from _split(one)
        case list() | tuple():
            for one in value:
                yield from _split(one)
        case bytes():
            yield from _split(value.decode(errors="replace"))
        case str():
            yield from "".join(one if one.isalnum() or one in "_" else " " for one in value).split()
        case _:
            yield str(value)
