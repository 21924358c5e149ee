"""Search for unneeded files in a pipeline's tables, by the ledger and the tables' logs.

A file is needed in three cases: the oldest kept cut contains it, a later commit added it, or a prepared publication
will add it. So a file of a kept cut or of a waiting batch is never deleted. VACUUM of delta-rs and Spark does not know
waiting batches: with a short retention it deletes their files.

The caller holds the pipeline's claim, so that no attempt of an earlier claim still writes. A file with a foreign name
may belong to another program that is about to commit it. It is deleted once it is `FOREIGN_MS` old, or once the log
has removed it.

The age of a file compares the clock of this machine with the clock of the storage. An object store refuses requests
whose clock differs by a quarter of an hour, so limits of an hour and more are safe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from windowlib.delta import log
from windowlib.delta.tables import Table
from windowlib.ledger.prepare import Publication
from windowlib.plans.partitions import DAY_MS
from windowlib.storage.store import ObjectInfo

FOREIGN_MS = 7 * DAY_MS
OURS = re.compile(r"[1-9]\d*-[1-9]\d*-.+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.parquet")


@dataclass(frozen=True, slots=True)
class UnneededFiles:
    """Unneeded files of one table, and their total size. The paths are relative to the table."""

    table: str
    files: tuple[str, ...]
    size_bytes: int


def unneeded(
    table: Table, listed: Sequence[ObjectInfo], oldest: int | None, waiting: Publication | None, now_ms: int
) -> UnneededFiles:
    """Files of a table that no kept cut and no waiting batch needs. `listed` are the objects of the table.

    `oldest` is the table's version in the oldest kept cut. It is None if the table did not exist in that cut.
    """
    return _sized(table, _files(table, listed, _needed(table, oldest, waiting), now_ms))


def outside(table: Table, listed: Sequence[ObjectInfo], now_ms: int, *, only_newest: bool = False) -> UnneededFiles:
    """Unneeded files of a table that no batch publishes. All are older than a day, because other processes may be
    appending. `listed` are the objects of the table.

    With `only_newest`, includes files that the table's log has removed, even if a current reader still needs them.
    """
    needed = {file.path for file in table.files(table.version())}
    gone = log.removed(table.store) if only_newest else frozenset()
    files = _files(table, listed, needed, now_ms)
    return _sized(table, (file for file in files if age_ms(file, now_ms) > DAY_MS or file.path in gone))


def _needed(table: Table, oldest: int | None, waiting: Publication | None) -> set[str]:
    newest = table.version()
    needed = {file.path for file in table.files(oldest)}
    if newest is not None:
        for entry in log.entries(table.store, -1 if oldest is None else oldest, newest):
            needed |= entry.added
        needed |= {file.path for file in table.files(newest)}
    changes = waiting.changes if waiting else ()
    named = (file for change in changes if change.name == table.name for file in (*change.add, *change.remove))
    return needed | {file.path for file in named}


def _files(table: Table, listed: Sequence[ObjectInfo], needed: set[str], now_ms: int) -> Iterator[ObjectInfo]:
    others = list[ObjectInfo]()
    for file in listed:
        if not _is_in_partitions(file.path) or file.path in needed:
            continue
        if OURS.fullmatch(file.path.rpartition("/")[2]) or age_ms(file, now_ms) > FOREIGN_MS:
            yield file
        else:
            others.append(file)
    gone = log.removed(table.store) if others else frozenset()
    yield from (file for file in others if file.path in gone)


def _is_in_partitions(path: str) -> bool:
    """Tests if a path names a data file in the table's folder or in its partition folders. Other files may belong, for
    example, to a pipeline with its warehouse in this folder.

    >>> [_is_in_partitions(path) for path in ("1.parquet", "day=2026-03-02/1.parquet", "results/1.parquet")]
    [True, True, False]
    """
    *folders, name = path.split("/")
    hidden = name.startswith(("_", ".")) or not name.endswith(".parquet")
    return not hidden and all("=" in part and not part.startswith(("_", ".")) for part in folders)


def age_ms(file: ObjectInfo, now_ms: int) -> int:
    """Time in ms since the last write to a file."""
    return now_ms - file.modified_ns // 1_000_000


def _sized(table: Table, files: Iterator[ObjectInfo]) -> UnneededFiles:
    chosen = tuple(files)
    return UnneededFiles(table.name, tuple(file.path for file in chosen), sum(file.size_bytes for file in chosen))
