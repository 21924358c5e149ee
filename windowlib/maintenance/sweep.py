"""Search for unneeded files in a pipeline's tables, by the ledger and the tables' logs.

A file is needed in three cases: the oldest kept cut contains it, a later commit added it, or a prepared publication
will add it. So a file of a kept cut or of a waiting batch is never deleted. VACUUM of delta-rs and Spark does not know
waiting batches: with a short retention it deletes their files.

The caller holds the pipeline's claim, so that no attempt of an earlier claim still writes. A file with a foreign name
may belong to another program that is about to commit it. It is deleted once it is `FOREIGN_MS` old, or once the log
has removed it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from windowlib.delta import log
from windowlib.delta.tables import Table
from windowlib.ledger.prepare import Publication
from windowlib.plans.partitions import DAY_MS

FOREIGN_MS = 7 * DAY_MS
OURS = re.compile(r"[1-9]\d*-[1-9]\d*-.+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.parquet")


@dataclass(frozen=True, slots=True)
class UnneededFiles:
    """Unneeded files of one table, and their total size."""

    table: str
    files: tuple[Path, ...]
    size_bytes: int


def unneeded(table: Table, oldest: int | None, waiting: Publication | None, now_ms: int) -> UnneededFiles:
    """Files of a table that no kept cut and no waiting batch needs.

    `oldest` is the table's version in the oldest kept cut. It is None if the table did not exist in that cut.
    """
    return _sized(table, _files(table, _needed(table, oldest, waiting), now_ms))


def outside(table: Table, now_ms: int, *, at_once: bool = False) -> UnneededFiles:
    """Unneeded files of a table that no batch publishes. All are older than a day, because other processes may be
    appending.

    With `at_once`, includes files that the table's log has removed, even if a current reader still needs them.
    """
    newest = table.version()
    needed = {file.path for file in table.files(newest)}
    gone = log.removed(table.store) if at_once else frozenset()
    return _sized(
        table,
        (
            path
            for path in _files(table, needed, now_ms)
            if age_ms(path, now_ms) > DAY_MS or path.relative_to(table.folder).as_posix() in gone
        ),
    )


def delete(unneeded: UnneededFiles) -> None:
    """Deletes the files, and the folders that become empty."""
    for path in unneeded.files:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in unneeded.files if path.parent.name != unneeded.table}:
        with suppress(OSError):  # not empty
            folder.rmdir()


def _needed(table: Table, oldest: int | None, waiting: Publication | None) -> set[str]:
    newest = table.version()
    needed = {file.path for file in table.files(oldest)}
    if newest is not None:
        for entry in log.entries(table.store, -1 if oldest is None else oldest, newest):
            needed |= entry.added
        needed |= {file.path for file in table.files(newest)}
    changes = waiting.changes if waiting else ()
    named = (file for change in changes if change.name == table.folder.name for file in (*change.add, *change.remove))
    return needed | {file.path for file in named}


def _files(table: Table, needed: set[str], now_ms: int) -> Iterator[Path]:
    others = list[Path]()
    for path in sorted(table.folder.rglob("*.parquet")):
        relative = path.relative_to(table.folder)
        if not _is_in_partitions(relative) or relative.as_posix() in needed:
            continue
        if OURS.fullmatch(path.name) or age_ms(path, now_ms) > FOREIGN_MS:
            yield path
        else:
            others.append(path)
    gone = log.removed(table.store) if others else frozenset()
    yield from (path for path in others if path.relative_to(table.folder).as_posix() in gone)


def _is_in_partitions(relative: Path) -> bool:
    """Tests if a file lies in the table's folder or in its partition folders. Other files may belong, for example, to a
    pipeline with its warehouse in this folder.

    >>> [_is_in_partitions(Path(name)) for name in ("1.parquet", "day=2026-03-02/1.parquet", "results/1.parquet")]
    [True, True, False]
    """
    hidden = relative.name.startswith(("_", "."))
    return not hidden and all("=" in part and not part.startswith(("_", ".")) for part in relative.parts[:-1])


def age_ms(path: Path, now_ms: int) -> int:
    """Time in ms since the last write to a file."""
    return now_ms - path.stat().st_mtime_ns // 1_000_000


def _sized(table: Table, files: Iterable[Path]) -> UnneededFiles:
    paths = tuple(files)
    return UnneededFiles(table.folder.name, paths, sum(path.stat().st_size for path in paths))
