"""What `windowlib maintain` has done, each time. Before it deletes a file it says from which batch on cuts are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from windowlib.contract.record_tables import MAINTENANCE
from windowlib.delta import small_tables as small


@dataclass(frozen=True, slots=True)
class MaintenanceRecord:
    """One maintenance. `batch_id` is the batch that put small files together, None where there was nothing to put.

    `kept_from` is the oldest batch whose cut stays readable by the rule `cuts`; `compacted` are the files that others
    have taken the place of and `deleted` those that went, by table.
    """

    at: datetime
    who: str
    batch_id: int | None
    kept_from: int
    cuts: str
    compacted: Mapping[str, int]
    deleted: Mapping[str, int]
    bytes_deleted: int


def keep(root: Path, made: MaintenanceRecord) -> None:
    """Adds a maintenance to those that are kept."""
    small.add_row(root, MAINTENANCE, asdict(made))


def last(root: Path) -> MaintenanceRecord | None:
    """The newest maintenance of a pipeline; None without any."""
    row = small.newest_row(root, MAINTENANCE)
    if row is None:
        return None
    return small.of_row(
        MaintenanceRecord, {**row, "compacted": dict(row["compacted"]), "deleted": dict(row["deleted"])}
    )


def kept_from(root: Path) -> int:
    """The oldest batch whose cut stays readable; 0 where nothing was maintained."""
    made = last(root)
    return made.kept_from if made else 0
