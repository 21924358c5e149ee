"""Record of each `windowlib maintain`, written before files are deleted. It names the oldest batch with a kept cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from windowlib.contract.record_tables import MAINTENANCE
from windowlib.delta import small_tables as small
from windowlib.storage.store import Store


@dataclass(frozen=True, slots=True)
class MaintenanceRecord:
    """One maintenance. `batch_id` is the batch that compacted small files, None if there is no such batch.

    `kept_from` is the oldest batch whose cut stays readable by the retention rule `cuts`. `compacted` counts the
    compacted files and `deleted` the deleted files, by table.
    """

    at: datetime
    who: str
    batch_id: int | None
    kept_from: int
    cuts: str
    compacted: Mapping[str, int]
    deleted: Mapping[str, int]
    bytes_deleted: int


def keep(store: Store, maintenance: MaintenanceRecord) -> None:
    """Adds the record of a maintenance."""
    small.add_row(store, MAINTENANCE, asdict(maintenance))


def last(store: Store) -> MaintenanceRecord | None:
    """Newest maintenance of a pipeline; None if there was none."""
    row = small.newest_row(store, MAINTENANCE)
    if row is None:
        return None
    return small.of_row(
        MaintenanceRecord, {**row, "compacted": dict(row["compacted"]), "deleted": dict(row["deleted"])}
    )


def kept_from(store: Store) -> int:
    """Oldest batch whose cut stays readable; 0 if there was no maintenance."""
    maintenance = last(store)
    return maintenance.kept_from if maintenance else 0
