"""Record of a migration, which builds a pipeline's new tables while the old definition still runs.

`_migration/<id>/` in the pipeline's store has `migration.json` and the tables of a separate pipeline, with its own
ledger. After the switch the tables lie in the pipeline's own folders, and only `migration.json` stays. The migration
can be undone while `migration.json` exists and the ledger has no `migrate_finish` row for the migration.

    migrate_finish   `batch_id` of the migration, `decision` is JSON with its id; `who` and `reason` are set

An id is used once. Before the tables of a migration are dropped, its folder gets the object `dropped`. So a command
that still builds them notices, and tables that are built again lie in another folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from windowlib.contract.tables import LEDGER
from windowlib.definition.commands import THIS, to_paste
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import DecidedMeanwhile, Ledger
from windowlib.ledger.reading import rows_of_kinds
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.model.errors import WindowError
from windowlib.storage.at_once import at_once
from windowlib.storage.store import Store

FOLDER = "_migration"
MIGRATED = "migrated"  # field of a commit's stored definition: the batch of the migration that introduced it
ABOUT = "migration.json"
DROPPED = "dropped"
FINISHED = "migrate_finish"  # kind of the ledger row that finishes a migration


class DamagedMigration(WindowError):
    """The record of a migration cannot be read. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration in progress. `changed` describes the difference between the definitions, `at_ms` is its start."""

    id: str
    changed: str
    at_ms: int

    @property
    def folder(self) -> str:
        """Folder in which the migration builds its tables, below the pipeline's store."""
        return f"{FOLDER}/{self.id}"


def begin(store: Store, migration: Migration) -> None:
    """Writes the record of a migration. `store` is the pipeline's store, here and below."""
    store.create(f"{migration.folder}/{ABOUT}", json.dumps(asdict(migration)).encode())


def is_begun(tables: Store) -> bool:
    """Tests if a folder of new tables has a record. `tables` is the store of the new tables."""
    return tables.sizes([ABOUT]) != [None]


def is_there(tables: Store) -> bool:
    """Tests if the new tables have a record and were not dropped. `tables` is the store of the new tables."""
    about, dropped = tables.sizes([ABOUT, DROPPED])
    return about is not None and dropped is None


def _read(store: Store, path: str) -> Migration | None:
    """The record of a migration; None if another command has abandoned the migration meanwhile."""
    content = store.get(path)
    try:
        return None if content is None else Migration(**json.loads(content))
    except (ValueError, TypeError) as error:
        folder = path.removesuffix(f"/{ABOUT}")
        raise DamagedMigration(
            f"{store}/{path} is damaged: restore it from a backup of the warehouse. Without a backup, delete"
            f" {store}/{folder}: before its switch, the migration is then built again; after its switch, it can no"
            " longer be undone"
        ) from error


def migrations(store: Store) -> list[Migration]:
    """Migrations that were begun and neither finished nor undone, oldest first. Raises `DamagedMigration`."""
    paths = [file.path for file in store.list(f"{FOLDER}/")]
    records = at_once(lambda path: _read(store, path), filter(_is_record, paths))
    begun = [migration for migration in records if migration is not None]
    return sorted(begun, key=lambda migration: (migration.at_ms, migration.id))


def _is_record(path: str) -> bool:
    folder, name = path.split("/")[:-1], path.rpartition("/")[2]
    return len(folder) == 2 and folder[0] == FOLDER and name == ABOUT


def leftovers(paths: Iterable[str], over: Sequence[Migration]) -> list[str]:
    """Paths of the remaining objects of migrations that are over, and of orphaned objects. `paths` are all objects.

    Objects in a folder without a record are orphaned: a command wrote them while another abandoned the migration.

    >>> paths = ["_migration/1/migration.json", "_migration/1/results/a", "_migration/2/results/b", "results/c"]
    >>> leftovers(paths, []), leftovers(paths[:2], [Migration("1", "", 0)])
    (['_migration/2/results/b'], ['_migration/1/migration.json', '_migration/1/results/a'])
    """
    built = [path for path in paths if path.startswith(f"{FOLDER}/")]
    kept = {path.removesuffix(ABOUT) for path in built if _is_record(path)} - {f"{entry.folder}/" for entry in over}
    return [path for path in built if "/".join(path.split("/")[:2]) + "/" not in kept]


def drop_tables(store: Store, migration: Migration) -> None:
    """Deletes the tables of a migration, or their remains. Does not delete the record of the migration."""
    keep = [f"{migration.folder}/{name}" for name in (ABOUT, DROPPED)]
    store.create(keep[1], b"")
    built = store.list(f"{migration.folder}/")
    store.delete([file.path for file in built if file.path not in keep])


def forget(store: Store, migration: Migration) -> None:
    """Deletes the tables of a migration, then its record."""
    drop_tables(store, migration)
    for name in (ABOUT, DROPPED):  # a record alone would seem to have its tables
        store.delete([f"{migration.folder}/{name}"])


def switched(ledger: Ledger) -> tuple[int, Migration] | None:
    """Migration that has switched the tables and can be undone, with its batch; None if there is none."""
    begun = migrations(ledger.store)
    if not begun:
        return None
    over = _finished(ledger, begun)
    unfinished = {migration.id: migration for migration in begun if migration not in over}
    newest = None
    for commit in commits_of(ledger.tables):
        if commit.decision and commit.decision.kind == "migrate" and commit.decision.migration in unfinished:
            newest = commit.batch_id, unfinished[commit.decision.migration]
        elif commit.decision and commit.decision.kind == "migrate_undo":
            newest = None
    return newest


def finished(ledger: Ledger) -> list[Migration]:
    """Finished migrations that still have files in the pipeline's folder."""
    return _finished(ledger, migrations(ledger.store))


def _finished(ledger: Ledger, begun: Sequence[Migration]) -> list[Migration]:
    if not begun:
        return []
    table = ledger.tables[LEDGER.name]
    rows = rows_of_kinds(table, table.version(), {FINISHED}, ("decision",))
    kept = {json.loads(row["decision"])["migration"] for row in rows}
    return [migration for migration in begun if migration.id in kept]


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
    forget(ledger.store, migration)
    return number


def migrated_by(commit: Commit | None) -> int:
    """Batch of the migration that introduced the definition of a commit; 0 if no migration did."""
    if commit is None or MIGRATED not in commit.definition:
        return 0
    return int(commit.stored.get(MIGRATED, 0))


def pipeline_of(store: Store) -> Store:
    """Store of the pipeline that the tables in `store` belong to, or are built for.

    >>> from pathlib import Path; from windowlib.storage.disk import Disk
    >>> str(pipeline_of(Disk(Path("/w/clicks/_migration/1f")))), str(pipeline_of(Disk(Path("/w/clicks"))))
    ('/w/clicks', '/w/clicks')
    """
    above = store.above()
    if above is None or (pipeline := above[0].above()) is None or pipeline[1] != FOLDER:
        return store
    return pipeline[0]
