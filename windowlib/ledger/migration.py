"""A migration as it is kept: where a pipeline's new tables are built while the old definition goes on.

`_migration/<id>/` in a pipeline's folder has `migration.json` and the tables of a pipeline of its own, with its ledger.
Once they are switched, the tables lie in the pipeline's own folders, and only `migration.json` stays: as long as it
does, and the ledger has no row that keeps the migration for good, it can be undone.

    migrate_finish   `batch_id` of the migration, `decision` is JSON of its id; who and why
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from windowlib.contract.tables import LEDGER
from windowlib.delta import disk
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import DecidedMeanwhile, Ledger
from windowlib.ledger.reading import rows_of_kinds
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.model.errors import WindowError

FOLDER = "_migration"
MIGRATED = "migrated"  # in what a commit keeps of the definition: the batch of the migration that led to it
ABOUT = "migration.json"
TRIES = 10  # to delete what others write into
FINISHED = "migrate_finish"  # the kind of row


class DamagedMigration(WindowError):
    """What is kept of a migration cannot be read. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration that was begun: `changed` says how the definitions differ, `at_ms` when it began."""

    id: str
    changed: str
    at_ms: int

    def folder(self, root: Path) -> Path:
        """Where its tables are built; `root` is the pipeline's folder."""
        return root / FOLDER / self.id


def begin(root: Path, migration: Migration) -> None:
    """Writes down that a migration has begun, once."""
    folder = migration.folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / ABOUT).exists():
        return
    new = folder / f"{ABOUT}.new"
    new.write_text(json.dumps(asdict(migration)), encoding="utf-8")
    os.replace(new, folder / ABOUT)
    disk.sync([folder / ABOUT], root)


def mark(folder: Path) -> tuple[int, int] | None:
    """Distinguishes tables that are built in a folder from those built there once these were dropped; None: there is
    nothing begun.
    """
    try:
        about = (folder / ABOUT).stat()
    except FileNotFoundError:
        return None
    return about.st_ino, about.st_ctime_ns


def _mark_again(folder: Path) -> None:
    """A command that builds there sees that these are no longer the tables that it has begun with."""
    new = folder / f"{ABOUT}.new"
    with suppress(FileNotFoundError):
        new.write_bytes((folder / ABOUT).read_bytes())
        os.replace(new, folder / ABOUT)


def _read(file: Path) -> Migration:
    try:
        return Migration(**json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise DamagedMigration(
            f"{file} is damaged: restore it from a backup of the warehouse. Without one delete {file.parent}: a"
            " migration that is not switched is built again then, and one that is switched cannot be undone any more"
        ) from error


def migrations(root: Path) -> list[Migration]:
    """Those that were begun and neither finished nor undone, oldest first. Raises `DamagedMigration`."""
    found = []
    for file in (root / FOLDER).glob(f"*/{ABOUT}"):
        with suppress(FileNotFoundError):  # another command has given it up since
            found.append(_read(file))
    return sorted(found, key=lambda one: (one.at_ms, one.id))


def given_up(root: Path) -> list[Path]:
    """What commands have written of migrations that were given up meanwhile: folders without `migration.json`."""
    return [folder for folder in (root / FOLDER).glob("*") if folder.is_dir() and mark(folder) is None]


def drop_tables(root: Path, migration: Migration) -> None:
    """Deletes what was built of a migration, or is left of it; that it was begun stays known."""
    folder = migration.folder(root)
    _mark_again(folder)
    with suppress(FileNotFoundError):  # another command has forgotten all of it
        for path in [path for path in folder.iterdir() if path.name != ABOUT]:
            _delete(path)
    _mark_again(folder)  # who has begun between may have lost files


def _delete(path: Path) -> None:
    """Deletes a file or a folder, which another command may delete at the same time, or still write into."""
    for left in reversed(range(TRIES)):
        try:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY) or not left:
                raise
        else:
            return


def forget(root: Path, migration: Migration) -> None:
    """Deletes all of a migration; `migration.json` goes last."""
    drop_tables(root, migration)
    (migration.folder(root) / ABOUT).unlink(missing_ok=True)
    shutil.rmtree(migration.folder(root), ignore_errors=True)
    with suppress(OSError):  # there are others
        (root / FOLDER).rmdir()


def switched(ledger: Ledger) -> tuple[int, Migration] | None:
    """The batch of a migration that is done and can be undone, and the migration; None without one."""
    known = {one.id: one for one in migrations(ledger.root)}
    if not known:
        return None
    for one in finished(ledger):
        del known[one.id]
    found = None
    for commit in commits_of(ledger.tables):
        if commit.decision and commit.decision.kind == "migrate" and commit.decision.migration in known:
            found = commit.batch_id, known[commit.decision.migration]
        elif commit.decision and commit.decision.kind == "migrate_undo":
            found = None
    return found


def finished(ledger: Ledger) -> list[Migration]:
    """Those that were kept for good, of which something still lies in the pipeline's folder."""
    left = migrations(ledger.root)
    if not left:
        return []
    table = ledger.tables[LEDGER.name]
    rows = rows_of_kinds(table, table.version(), {FINISHED}, ("decision",))
    kept = {json.loads(row["decision"])["migration"] for row in rows}
    return [one for one in left if one.id in kept]


def finish(ledger: Ledger, who: str, reason: str) -> int | None:
    """Keeps the newest migration for good, by a row of the ledger; gives its batch, None where none can be undone.

    Then deletes what is left of it. Killed before that, the next call of `finished` finds it. Raises
    `DecidedMeanwhile` where one back is prepared.
    """
    found = list[tuple[int, Migration]]()

    def row(state: LedgerState) -> dict[str, object]:
        if (done := switched(ledger)) is None or (state.plan and state.plan.decision and state.plan.decision.switches):
            raise DecidedMeanwhile("the migration has been undone, or finished, meanwhile: look again")
        found[:] = [done]
        decision = json.dumps({"migration": done[1].id})
        return {"kind": FINISHED, "batch_id": done[0], "decision": decision, "who": who, "reason": reason}

    if switched(ledger) is None:
        return None
    ledger.decide(row)
    number, migration = found[0]
    forget(ledger.root, migration)
    return number


def migrated_by(commit: Commit | None) -> int:
    """The batch of the migration since which a pipeline has the definition of a commit; 0 without one."""
    if commit is None or MIGRATED not in commit.definition:
        return 0
    return int(commit.stored.get(MIGRATED, 0))


def pipeline_of(root: Path) -> Path:
    """The folder of the pipeline that tables in `root` are, or are built for.

    >>> str(pipeline_of(Path("/w/clicks/_migration/1f"))), str(pipeline_of(Path("/w/clicks")))
    ('/w/clicks', '/w/clicks')
    """
    return root.parent.parent if root.parent.name == FOLDER else root
