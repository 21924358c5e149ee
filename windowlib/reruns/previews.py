"""Dry runs of reruns as they are kept, so that exactly they can be applied later, or refused.

The rows of one lie in `_previews/<id>/difference`, its page next to them, its summary in the table `previews`.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from windowlib.definition.instants import time_of, utc
from windowlib.plans.partitions import DAY_MS
from windowlib.tables import small
from windowlib.tables.delta import Table
from windowlib.tables.outside import PREVIEWS
from windowlib.tables.rerun import Rerun, RerunRefused

FOLDER = "_previews"
KEPT_DAYS = 30


@dataclass(frozen=True, slots=True)
class Summary:
    """What a rerun would change. `windows` counts by kind, `sums` has (before, after) of each count and sum over the
    windows that differ, `largest` the windows that differ most (`windowlib.reruns.summary`)."""

    windows: dict[str, int]  # by kind (`plans.reruns.ADDED` …); of sessions also merged, split
    sums: dict[str, list[Any]]
    in_flight: list[int]  # windows (aligned: slices) in flight of the closure: before, after
    late_readmitted: int
    rows_to_write: dict[str, int]  # by table
    reaches_ms: list[int]  # from the start of the first window of the closure to the end of the last
    files_read: int
    bytes_read: int
    files_missing: list[str]
    files_changed: int
    files_waiting: int | None  # new ones that no run has read; None: the source cannot be listed
    largest: list[dict[str, Any]]

    @property
    def is_empty(self) -> bool:
        """Whether no published window would change."""
        return not any(self.windows.values())

    @property
    def changes_nothing(self) -> bool:
        """Whether there is nothing to apply: windows in flight and what is kept of the source stay as they are, too."""
        return self.is_empty and not (self.late_readmitted or self.files_missing or self.files_changed)


@dataclass(frozen=True, slots=True)
class Preview:
    """A dry run as it is kept. `base_batch_id` is the newest batch then, `watermark_ms` its watermark."""

    preview_id: str
    at_ms: int
    rerun: Rerun
    base_batch_id: int
    watermark_ms: int | None
    summary: Summary = field(repr=False)


def load(root: Path, preview_id: str) -> Preview:
    """A preview that was kept; raises `RerunRefused` when there is none of that id."""
    for kept in previews(root):
        if kept.preview_id == preview_id:
            return kept
    raise RerunRefused(f"no preview {preview_id!r} here; `windowlib rerun … --dry-run` makes one and prints its id")


def previews(root: Path) -> list[Preview]:
    """Every preview, newest first."""
    table = Table(root / PREVIEWS.name)
    found = [
        Preview(
            row["preview_id"],
            time_of(row["at"]),
            Rerun.from_json(row["correction"]),
            row["base_batch_id"],
            row["watermark_ms"],
            Summary(**json.loads(row["summary"])),
        )
        for row in table.rows(table.files(table.version()), PREVIEWS.columns)
    ]
    return sorted(found, key=lambda one: (-one.at_ms, one.preview_id))


def keep(root: Path, made: Preview) -> None:
    """Adds a preview to those that are kept, and removes the folders of old ones."""
    row = {
        "preview_id": made.preview_id,
        "at": utc(made.at_ms),
        "correction": made.rerun.to_json(),
        "base_batch_id": made.base_batch_id,
        "watermark_ms": made.watermark_ms,
        "summary": json.dumps(asdict(made.summary), default=str),
    }
    small.add_row(root, PREVIEWS, row)
    oldest_ms = made.at_ms - KEPT_DAYS * DAY_MS
    for old in previews(root):
        if old.at_ms < oldest_ms:
            shutil.rmtree(root / FOLDER / old.preview_id, ignore_errors=True)
