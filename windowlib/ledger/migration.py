"""Record of a migration, which builds a pipeline's new tables while the old definition still runs.

`_migration/<id>/` in the pipeline's folder has `migration.json` and the tables of a separate pipeline, with its own
ledger. After the switch the tables lie in the pipeline's own folders, and only `migration.json` stays. The migration
can be undone while `migration.json` exists and the ledger has no `migrate_finish` row for the migration.

    migrate_finish   `batch_id` of the migration, `decision` is JSON with its id; `who` and `reason` are set
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
from windowlib.definition.commands import THIS, to_paste
from windowlib.delta import disk
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import DecidedMeanwhile, Ledger
from windowlib.ledger.reading import rows_of_kinds
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.model.errors import WindowError

FOLDER = "_migration"
MIGRATED = "migrated"  # field of a commit's stored definition: the batch of the migration that introduced it
ABOUT = "migration.json"
TRIES = 10  # attempts to delete a folder that other commands write into
FINISHED = "migrate_finish"  # kind of the ledger row that finishes a migration


class DamagedMigration(WindowError):
    """The record of a migration cannot be read. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration in progress. `changed` describes the difference between the definitions, `at_ms` is its start."""

    id: str
    changed: str
    at_ms: int

    def folder(self, root: Path) -> Path:
        """Folder in which the migration builds its tables; `root` is the pipeline's folder."""
        return root / FOLDER / self.id


def begin(root: Path, migration: Migration) -> None:
    """Writes the record of a migration, unless it exists."""
    folder = migration.folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / ABOUT).exists():
        return
    new = folder / f"{ABOUT}.new"
    new.write_text(json.dumps(asdict(migration)), encoding="utf-8")
    os.replace(new, folder / ABOUT)
    disk.sync([folder / ABOUT], root)


def mark(folder: Path) -> tuple[int, int] | None:
    """Identity of the tables being built in a folder; None if no migration has begun there.

    Tables that are built again after a drop get another identity.
    """
    try:
        about = (folder / ABOUT).stat()
    except FileNotFoundError:
        return None
    return about.st_ino, about.st_ctime_ns


def _mark_again(folder: Path) -> None:
    """Changes the identity of the tables in a folder, so that a command that is building them notices."""
    new = folder / f"{ABOUT}.new"
    with suppress(FileNotFoundError):
        new.write_bytes((folder / ABOUT).read_bytes())
        os.replace(new, folder / ABOUT)


def _read(file: Path) -> Migration:
    try:
        return Migration(**json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise DamagedMigration(
            f"{file} is damaged: restore it from a backup of the warehouse. Without a backup, delete {file.parent}:"
            " before its switch, the migration is then built again; after its switch, it can no longer be undone"
        ) from error


def migrations(root: Path) -> list[Migration]:
    """Migrations that were begun and neither finished nor undone, oldest first. Raises `DamagedMigration`."""
    begun = []
    for file in (root / FOLDER).glob(f"*/{ABOUT}"):
        with suppress(FileNotFoundError):  # another command has abandoned it meanwhile
            begun.append(_read(file))
    return sorted(begun, key=lambda migration: (migration.at_ms, migration.id))


def given_up(root: Path) -> list[Path]:
    """Orphaned folders without `migration.json`. A command wrote them while another command abandoned the migration."""
    return [folder for folder in (root / FOLDER).glob("*") if folder.is_dir() and mark(folder) is None]


def drop_tables(root: Path, migration: Migration) -> None:
    """Deletes the tables of a migration, or their remains. Does not delete the record of the migration."""
    folder = migration.folder(root)
    _mark_again(folder)
    with suppress(FileNotFoundError):  # another command has deleted the whole folder
        for path in [path for path in folder.iterdir() if path.name != ABOUT]:
            _delete(path)
    _mark_again(folder)  # a command that began meanwhile may have lost files


def _delete(path: Path) -> None:
    """Deletes a file or a folder. Tries again if another command deletes it too, or still writes into it."""
    for tries_left in reversed(range(TRIES)):
        try:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY) or not tries_left:
                raise
        else:
            return


def forget(root: Path, migration: Migration) -> None:
    """Deletes the tables of a migration, then its record."""
    drop_tables(root, migration)
    (migration.folder(root) / ABOUT).unlink(missing_ok=True)
    shutil.rmtree(migration.folder(root), ignore_errors=True)
    with suppress(OSError):  # the folder holds other migrations
        (root / FOLDER).rmdir()


def switched(ledger: Ledger) -> tuple[int, Migration] | None:
    """Migration that has switched the tables and can be undone, with its batch; None if there is none."""
    unfinished = {migration.id: migration for migration in migrations(ledger.root)}
    if not unfinished:
        return None
    for migration in finished(ledger):
        del unfinished[migration.id]
    newest = None
    for commit in commits_of(ledger.tables):
        if commit.decision and commit.decision.kind == "migrate" and commit.decision.migration in unfinished:
            newest = commit.batch_id, unfinished[commit.decision.migration]
        elif commit.decision and commit.decision.kind == "migrate_undo":
            newest = None
    return newest


def finished(ledger: Ledger) -> list[Migration]:
    """Finished migrations that still have files in the pipeline's folder."""
    remaining = migrations(ledger.root)
    if not remaining:
        return []
    table = ledger.tables[LEDGER.name]
    rows = rows_of_kinds(table, table.version(), {FINISHED}, ("decision",))
    kept = {json.loads(row["decision"])["migration"] for row in rows}
    return [migration for migration in remaining if migration.id in kept]


def finish(ledger: Ledger, who: str, reason: str) -> int | None:
    """Finishes the newest migration by a row of the ledger, so that it can no longer be undone. Returns its batch.

    Returns None if no migration can be undone. After the row, deletes the remaining files of the migration. If the
    process is killed between the two steps, `finished` lists the migration. Raises `DecidedMeanwhile` if an undo of the
    migration is planned or done.
    """
    targets = list[tuple[int, Migration]]()

    def row(state: LedgerState) -> dict[str, object]:
        if (target := switched(ledger)) is None or (
            state.plan and state.plan.decision and state.plan.decision.switches
        ):
            raise DecidedMeanwhile(
                "another command has already undone or finished the migration. Check its state:"
                f" `{to_paste('status', THIS)}`"
            )
        targets[:] = [target]
        decision = json.dumps({"migration": target[1].id})
        return {"kind": FINISHED, "batch_id": target[0], "decision": decision, "who": who, "reason": reason}

    if switched(ledger) is None:
        return None
    ledger.decide(row)
    number, migration = targets[0]
    forget(ledger.root, migration)
    return number


def migrated_by(commit: Commit | None) -> int:
    """Batch of the migration that introduced the definition of a commit; 0 if no migration did."""
    if commit is None or MIGRATED not in commit.definition:
        return 0
    return int(commit.stored.get(MIGRATED, 0))


def pipeline_of(root: Path) -> Path:
    """Folder of the pipeline that the tables in `root` belong to, or are built for.

    >>> str(pipeline_of(Path("/w/clicks/_migration/1f"))), str(pipeline_of(Path("/w/clicks")))
    ('/w/clicks', '/w/clicks')
    """
    return root.parent.parent if root.parent.name == FOLDER else root
