"""The files of a pipeline's tables that nothing needs any more, found by the ledger and the tables' logs.

Needed is what a table held at the version of the oldest kept cut, what any commit since has added, and what a prepared
publication is going to add. So no file of a kept cut, nor of a batch that waits, is ever among the others. delta-rs'
and Spark's VACUUM know nothing of a batch that waits: with a short retention they delete its files.

Call it while holding the pipeline's claim: attempts of earlier claims are over then. A file whose name is none of ours
may be one that another program is about to commit: it goes once it is `FOREIGN_MS` old, or once the log says that it
was removed.
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
    """Files of one table that nothing needs."""

    table: str
    files: tuple[Path, ...]
    size_bytes: int


def unneeded(table: Table, oldest: int | None, waiting: Publication | None, now_ms: int) -> UnneededFiles:
    """What a table's folder holds beyond that which the cuts from version `oldest` on, and a batch that waits, need.

    `oldest` is None where the oldest kept cut has no such table yet.
    """
    return _sized(table, _files(table, _needed(table, oldest, waiting), now_ms))


def outside(table: Table, now_ms: int, *, at_once: bool = False) -> UnneededFiles:
    """The same of a table that no batch publishes, to which anyone may be adding: nothing younger than a day.

    With `at_once` also what its log says is removed: a reader that opened the table a moment ago may miss it.
    """
    newest = table.version()
    needed = {file.path for file in table.files(newest)}
    gone = log.removed(table.folder) if at_once else frozenset()
    return _sized(
        table,
        (
            path
            for path in _files(table, needed, now_ms)
            if age_ms(path, now_ms) > DAY_MS or path.relative_to(table.folder).as_posix() in gone
        ),
    )


def delete(found: UnneededFiles) -> None:
    """Deletes the files, and folders that are empty then."""
    for path in found.files:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in found.files if path.parent.name != found.table}:
        with suppress(OSError):  # not empty
            folder.rmdir()


def _needed(table: Table, oldest: int | None, waiting: Publication | None) -> set[str]:
    newest = table.version()
    found = {file.path for file in table.files(oldest)}
    if newest is not None:
        for one in log.entries(table.folder, -1 if oldest is None else oldest, newest):
            found |= one.added
        found |= {file.path for file in table.files(newest)}
    changes = waiting.changes if waiting else ()
    named = (file for change in changes if change.name == table.folder.name for file in (*change.add, *change.remove))
    return found | {file.path for file in named}


def _files(table: Table, needed: set[str], now_ms: int) -> Iterator[Path]:
    others = list[Path]()
    for path in sorted(table.folder.rglob("*.parquet")):
        relative = path.relative_to(table.folder)
        if not _may_be_a_tables(relative) or relative.as_posix() in needed:
            continue
        if OURS.fullmatch(path.name) or age_ms(path, now_ms) > FOREIGN_MS:
            yield path
        else:
            others.append(path)
    gone = log.removed(table.folder) if others else frozenset()
    yield from (path for path in others if path.relative_to(table.folder).as_posix() in gone)


def _may_be_a_tables(relative: Path) -> bool:
    """Whether a file lies where a table's do: in folders of its partitions. Others are not its own, as those of a
    pipeline whose warehouse is this folder.

    >>> [_may_be_a_tables(Path(name)) for name in ("1.parquet", "day=2026-03-02/1.parquet", "results/1.parquet")]
    [True, True, False]
    """
    hidden = relative.name.startswith(("_", "."))
    return not hidden and all("=" in part and not part.startswith(("_", ".")) for part in relative.parts[:-1])


def age_ms(path: Path, now_ms: int) -> int:
    """For how long nothing was written to a file."""
    return now_ms - path.stat().st_mtime_ns // 1_000_000


def _sized(table: Table, files: Iterable[Path]) -> UnneededFiles:
    found = tuple(files)
    return UnneededFiles(table.folder.name, found, sum(path.stat().st_size for path in found))
