"""Tables under the new definition, built by ordinary runs next to the old tables.

The new tables are a separate pipeline in `_migration/<id>/`, over the same source. Its first batch reads all existing
files at once. None of their events is late, because there is no watermark before this batch. Further batches read the
files that arrive before the switch, by the ordinary rules. So the new tables equal the tables of a fresh pipeline under
the new definition that reads the same files in the same batches.

A killed build is continued, like any pipeline. The id begins with a digest of the definition and the terms, so a build
never mixes two definitions. If a file has changed after the build read it, all tables are built again, because no rerun
corrects tables before the switch.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from windowlib.batches.may_run import check_spelling, check_warehouse, columns_to_add, decision_command, edits
from windowlib.batches.planning import ledger_of
from windowlib.decisions.verdicts import approve
from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import ADDED, continues
from windowlib.definition.plurals import counted
from windowlib.definition.terms import terms_of
from windowlib.definition.toml.source import Source
from windowlib.definition.toml.windows import uses_processing_time
from windowlib.definition.uses import Uses
from windowlib.ledger.ledger import Clock, Ledger, Rejected
from windowlib.ledger.migration import (
    Migration,
    begin,
    drop_tables,
    finished,
    forget,
    is_begun,
    is_there,
    migrations,
    pipeline_of,
    switched,
)
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.model.errors import ExpectationsFailed, WindowError
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.publication.moved_edges import moved_windows
from windowlib.reruns.source import KnownFile, count, known_files, listed
from windowlib.runs.advance import advance
from windowlib.runs.operation import Note
from windowlib.source.folder import is_chosen
from windowlib.source.listed import SourceError
from windowlib.source.location import check_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


GIVEN_UP = (
    "another command dropped this migration: windowlib migrate to another definition or with --undo, or windowlib"
    " forget. Nothing was switched: check windowlib status, then migrate again"
)


FILLS = "added columns are filled in all windows"


class MigrationRefused(WindowError):
    """The tables cannot, or must not, be built again under the new definition. Nothing was changed."""


class NewTablesRefused(ExpectationsFailed):
    """The checks refuse a batch under the new definition. The pipeline keeps the old definition."""


class NothingToMigrate(WindowError):
    """The tables already have this definition, or do not exist."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """The new tables as a pipeline. `definition` is the new definition, with the store of the new tables."""

    migration: Migration
    definition: Definition
    ledger: Ledger

    @property
    def commit(self) -> Commit:
        """The newest batch of the new tables."""
        commit = self.ledger.state().commit
        assert commit is not None, "a pipeline with files has built a batch"
        return commit


def shadow_of(definition: Definition, state: LedgerState, clock: Clock) -> Shadow:
    """Begins or continues the migration to a definition. Deletes the tables of other migrations."""
    assert state.commit is not None, "there is something to migrate"
    text = f"{definition.fingerprint} {terms_of(definition)}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    kept, goes_on = finished(ledger_of(definition, clock)), None
    for begun in migrations(definition.store):
        if goes_on is None and begun not in kept and _can_go_on(definition, begun, digest, clock):
            goes_on = begun
        else:
            forget(definition.store, begun)
    if goes_on is None:
        changed = "; ".join(edits(definition, state.commit)) or FILLS
        goes_on = Migration(f"{digest}-{secrets.token_hex(4)}", changed, clock())
        begin(definition.store, goes_on)
    return built(definition, goes_on, clock)


def _can_go_on(definition: Definition, begun: Migration, digest: str, clock: Clock) -> bool:
    """Tests if a migration has the same definition and terms, and if its tables are there and hold current files."""
    if begun.id.partition("-")[0] != digest or not is_there(definition.store.below(begun.folder)):
        return False
    return _changed(built(definition, begun, clock)) is None


def built(definition: Definition, migration: Migration, clock: Clock) -> Shadow:
    """The new tables of a migration to this definition. They may be incomplete."""
    source = definition.source.model_copy(update={"max_files_per_run": 0})  # history is one batch
    apart = definition.model_copy(update={"store": definition.store.below(migration.folder), "source": source})
    return Shadow(migration, apart, ledger_of(apart, clock))


def _changed(shadow: Shadow) -> KnownFile | None:
    """The first source file that changed after the new tables read it; None if none did."""
    commit, definition = shadow.ledger.state().commit, shadow.definition
    if commit is None or definition.source.format == "delta":
        return None
    files = known_files(definition.source, definition.uses, shadow.ledger.tables, commit.versions)
    return next((file for file in files if file.rewritten), None)


@contextmanager
def still_there(shadow: Shadow) -> Iterator[None]:
    """Raises `MigrationRefused` if another command drops the migration before the block ends."""
    _check_is_there(shadow)
    try:
        yield
    except Exception as error:
        _check_is_there(shadow, error)
        raise
    _check_is_there(shadow)


def _check_is_there(shadow: Shadow, error: Exception | None = None) -> None:
    tables = shadow.definition.store
    if is_there(tables):
        return
    remove = drop_tables if is_begun(tables) else forget
    remove(pipeline_of(tables), shadow.migration)  # files that this build wrote after the drop
    raise MigrationRefused(GIVEN_UP) from error


def catch_up(shadow: Shadow, spark: Callable[[], SparkSession], clock: Clock, *, finish: bool, note: Note) -> int:
    """Runs batches of the new tables up to the newest file, and returns their number.

    With `finish`, declares the end of the source. Raises `NewTablesRefused`, `MigrationRefused`, and as runs do.
    """
    try:
        return len(advance(shadow.definition, spark, clock=clock, finish=finish, on_note=note))
    except Rejected as refused:
        refusal = str(refused).partition("\nto publish it")[0]
        raise NewTablesRefused(
            f"under the new definition: {refusal}\nNothing was switched, and the old definition stays in force. Change"
            " the new definition, or build its tables anyway:"
            f" `{to_paste('migrate', shadow.definition.file, '--approve', *WHY)}`"
        ) from refused
    except SourceError as error:
        if (changed := _changed(shadow)) is None:
            raise
        raise MigrationRefused(
            f"{shadow.definition.source.store}/{changed.place} has changed since it was read under the new definition."
            " Nothing was switched. Migrate again: this builds the new tables from the current files"
        ) from error


def approve_refused(shadow: Shadow, who: str, reason: str, clock: Clock) -> None:
    """Approves a waiting batch of the new tables that the checks have refused, if there is one."""
    if shadow.ledger.state().rejection:
        approve(shadow.definition, who, reason, clock)


def is_finished(state: LedgerState) -> bool:
    """Tests if an operator has declared the end of the source."""
    return state.commit is not None and state.commit.watermark_out_ms == MAX_WATERMARK


def check_can_migrate(definition: Definition, ledger: Ledger, state: LedgerState) -> None:
    """Raises `NothingToMigrate`, `MigrationRefused`, `ColumnTypeChanged` or `Rejected` if a migration cannot begin."""
    commit = state.commit
    if commit is None:
        raise NothingToMigrate(
            "this pipeline has not run yet, so there is nothing to migrate. First run:"
            f" `{to_paste('run', definition.file)}`"
        )
    goes_on = continues(definition, commit.stored, commit.fingerprint)
    same_columns = goes_on and not columns_to_add(definition, commit) and ADDED not in commit.stored
    if same_columns and not moved_windows(definition, ledger.tables, commit):
        raise NothingToMigrate(
            f"{definition.store} needs no migration to this definition:"
            f" `{to_paste('run', definition.file)}` continues with it"
        )
    assert definition.spec, "the user's own code is loaded, or refused"
    if done := switched(ledger):
        number, _ = done
        raise MigrationRefused(
            f"the migration of batch {number} can still be undone. First confirm that migration with"
            f" `{to_paste('migrate', definition.file, '--finish')}`, or undo that migration with"
            f" `{to_paste('migrate', definition.file, '--undo', *WHY)}`"
        )
    check_warehouse(definition)
    check_place(definition.source, definition.store, commit)
    check_spelling(ledger.tables, commit, [*definition.source.key, *definition.outputs])
    if uses_processing_time(definition.window):
        raise MigrationRefused(
            "the windows of the new definition use processing time, the time of the runs. A migration would put all"
            " past events into today's windows. Give the new definition another name or warehouse"
        )
    _check_nothing_waits(definition.file, state)
    _check_all_there(definition.source, definition.uses, ledger, commit)


def _check_nothing_waits(file: Path, state: LedgerState) -> None:
    if state.plan and state.is_refused:
        raise MigrationRefused(
            f"batch {state.plan.batch_id} was refused by its checks and waits: decide about it first."
            f" {decision_command('approve', file, state.plan)} publishes it before the switch;"
            f" {decision_command('abandon', file, state.plan)} drops it, and the new definition reads its files"
        )


def _check_all_there(source: Source, uses: Uses, ledger: Ledger, commit: Commit) -> None:
    """Raises `MigrationRefused` if files that were read are gone, or if the new definition leaves them out.

    Skips Delta sources, because their rows may move to other files.
    """
    if source.format == "delta":
        return
    files = known_files(source, uses, ledger.tables, commit.versions)
    gone = [file for file in files if file.now is None and not file.replaced]
    if gone:
        rows = counted(sum(file.rows for file in gone), "row")
        raise MigrationRefused(
            f"the source no longer holds {count(gone)} with {rows} that are in windows, so these windows cannot be"
            f" built again:\n{listed(gone)}\nRestore the files to {source.path}, undo the change, or give the"
            " new definition another name or warehouse"
        )
    left_out = [file for file in files if file.now and not is_chosen(source, file.place)]
    if left_out:
        raise MigrationRefused(
            f"{count(left_out)} with rows in windows would not be read under the new definition, because source.include"
            f" and source.exclude leave them out:\n{listed(left_out)}\nLet the patterns include them until the switch;"
            " or give the new definition another name or warehouse"
        )


def check_read_all(source: Source, uses: Uses, ledger: Ledger, commit: Commit, shadow: Shadow) -> None:
    """Raises `MigrationRefused` if the old tables have read a file that the new tables have not read."""
    if source.format == "delta":
        return
    read = {file.place for file in known_files(source, uses, shadow.ledger.tables, shadow.commit.versions)}
    files = known_files(source, uses, ledger.tables, commit.versions)
    lacking = [file for file in files if file.now and file.place not in read]
    if lacking:
        raise MigrationRefused(
            f"{count(lacking)} were read under the old definition and cannot be read under the new one yet, because"
            f" they are younger than source.min_file_age or set aside:\n{listed(lacking)}\nNothing was switched:"
            " migrate again"
        )
