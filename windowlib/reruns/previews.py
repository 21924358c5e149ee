"""Stored previews of reruns. Applying a preview later gives exactly its outcome, or is refused.

The rows of a preview lie in `_previews/<id>/difference`, next to its page. Its summary is in the table `previews`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from windowlib.contract.record_tables import PREVIEWS
from windowlib.definition.instants import time_of, utc
from windowlib.delta import small_tables as small
from windowlib.delta.tables import Table
from windowlib.ledger.rerun_request import Rerun, RerunRefused
from windowlib.plans.partitions import DAY_MS
from windowlib.reruns.totals import DayTotals, Total
from windowlib.storage.store import Store

FOLDER = "_previews"
KEPT_DAYS = 30
FORMAT = 2  # format of a summary


@dataclass(frozen=True, slots=True)
class Summary:
    """Changes that a rerun would make. `windows` counts changes by kind, `largest` has the largest changes
    (`reruns.changes`).

    `results`, `totals` and `days` cover all windows of the rerun (`reruns.totals`). They are empty if no result would
    change.
    """

    windows: dict[str, int]  # by kind (`changes.OF_ALL`; for sessions also `changes.OF_SESSIONS`)
    totals: dict[str, Total]
    in_flight: list[int]  # windows (aligned: slices) of the closure in flight: before, after
    late_readmitted: int
    rows_to_write: dict[str, int]  # by table
    reaches_ms: list[int]  # from the start of the first window of the closure to the end of the last
    files_read: int
    bytes_read: int
    files_missing: list[str]
    files_changed: int
    files_waiting: int | None  # new files that no run has read; None: the source cannot be listed
    largest: list[dict[str, Any]]
    results: Total | None = None  # number of results
    days: list[DayTotals] = field(default_factory=list)
    format: int = FORMAT

    @staticmethod
    def of_json(values: Mapping[str, Any]) -> Summary:
        """Reads a summary stored as JSON in the format of this version."""
        return Summary(
            **{
                **values,
                "totals": _totals(values["totals"]),
                "results": values["results"] and Total(**values["results"]),
                "days": [
                    DayTotals(**{**day, "results": Total(**day["results"]), "totals": _totals(day["totals"])})
                    for day in values["days"]
                ],
            }
        )

    @property
    def is_empty(self) -> bool:
        """Tests if no published window would change."""
        return not any(self.windows.values())

    @property
    def changes_nothing(self) -> bool:
        """Tests if there is nothing to apply: no window changes, no late event is readmitted, and no source file is
        missing or changed.
        """
        return self.is_empty and not (self.late_readmitted or self.files_missing or self.files_changed)


@dataclass(frozen=True, slots=True)
class Preview:
    """Result of a dry run. `base_batch_id` was the newest batch when it was planned, `watermark_ms` the watermark."""

    preview_id: str
    at_ms: int
    rerun: Rerun
    base_batch_id: int
    watermark_ms: int | None
    summary: Summary = field(repr=False)


def load(store: Store, preview_id: str) -> Preview:
    """Reads a stored preview. Raises `RerunRefused` if no preview has that id, or if it has another format."""
    for row in _rows(store):
        if row["preview_id"] == preview_id:
            summary = json.loads(row["summary"])
            if summary.get("format") != FORMAT:
                raise RerunRefused(
                    f"preview {preview_id} has format {summary.get('format', 1)}, but this version reads format"
                    f" {FORMAT}; make a new preview with `windowlib rerun … --dry-run`"
                )
            return _preview(row, summary)
    raise RerunRefused(f"no preview {preview_id!r} here; `windowlib rerun … --dry-run` makes one and prints its id")


def previews(store: Store) -> list[Preview]:
    """Every preview in the format of this version, newest first."""
    all_previews = [(row, json.loads(row["summary"])) for row in _rows(store)]
    kept = [_preview(row, summary) for row, summary in all_previews if summary.get("format") == FORMAT]
    return sorted(kept, key=lambda preview: (-preview.at_ms, preview.preview_id))


def _rows(store: Store) -> list[dict[str, Any]]:
    table = Table(store.below(PREVIEWS.name))
    _, files = small.again_if_cut(table, table.files)
    return list(table.rows(files or (), PREVIEWS.columns))


def _preview(row: Mapping[str, Any], summary: Mapping[str, Any]) -> Preview:
    return Preview(
        row["preview_id"],
        time_of(row["at"]),
        Rerun.from_json(row["rerun"]),
        row["base_batch_id"],
        row["watermark_ms"],
        Summary.of_json(summary),
    )


def _totals(values: Mapping[str, Any]) -> dict[str, Total]:
    return {name: Total(**total) for name, total in values.items()}


def keep(store: Store, preview: Preview) -> None:
    """Stores a preview, and deletes the folders of previews older than `KEPT_DAYS`."""
    row = {
        "preview_id": preview.preview_id,
        "at": utc(preview.at_ms),
        "rerun": preview.rerun.to_json(),
        "base_batch_id": preview.base_batch_id,
        "watermark_ms": preview.watermark_ms,
        "summary": json.dumps(asdict(preview.summary), default=str),
    }
    small.add_row(store, PREVIEWS, row)
    oldest_ms = preview.at_ms - KEPT_DAYS * DAY_MS
    for old in _rows(store):
        if time_of(old["at"]) < oldest_ms:
            store.below(f"{FOLDER}/{old['preview_id']}").clear()
