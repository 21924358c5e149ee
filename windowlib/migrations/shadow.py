"""The tables under the new definition, built next to those of the old one by ordinary runs.

They are a pipeline of its own in `_migration/<id>/`, over the same source. Its first batch reads every file that is
there, as one set: nothing is in flight before it and no watermark has passed, so no event is late. What arrives until
the switch comes in further batches, by the ordinary rules. So the outcome is, by definition, that of a fresh pipeline
under the new definition that reads the same files in the same batches. A build that was killed is continued: it is a
pipeline. The id follows from the definition and the terms, so that no build is half of one and half of another. Where a
file has changed that was built in, all is built again: no rerun corrects tables that are not switched.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from windowlib.batches.may_run import check_spelling, check_warehouse, columns_to_add, decision_command, edited
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
from windowlib.ledger.migration import Migration, begin, finished, forget, mark, migrations, switched
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.model.errors import ExpectationsFailed, WindowError
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.reruns.source import KnownFile, count, known_files, listed
from windowlib.runs.advance import advance
from windowlib.runs.operation import Note
from windowlib.source.folder import is_chosen
from windowlib.source.listed import SourceError
from windowlib.source.location import check_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


GIVEN_UP = (
    "another windowlib migrate, to another definition or with --undo, or windowlib forget has given this migration up"
    " meanwhile. This one has switched nothing: look what windowlib status shows, then migrate again"
)


FILLS = "columns that were added are filled in all windows"


class MigrationRefused(WindowError):
    """The tables cannot be built again under the new definition, or must not be. Nothing was changed."""


class NewTablesRefused(ExpectationsFailed):
    """The checks refuse a batch under the new definition. The old one goes on."""


class NothingToMigrate(WindowError):
    """The tables are of this definition, or there are none."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """The tables that are being built, as a pipeline: the definition, with its folder, and its ledger.

    `mark` is the folder's when this was made: another one is there once the tables were dropped.
    """

    migration: Migration
    definition: Definition
    ledger: Ledger
    mark: tuple[int, int] | None

    @property
    def commit(self) -> Commit:
        """What was built so far."""
        commit = self.ledger.state().commit
        assert commit is not None, "a pipeline with files has built a batch"
        return commit


def shadow_of(definition: Definition, state: LedgerState, clock: Clock) -> Shadow:
    """The tables that a migration to this definition builds, or goes on building. Removes those of other ones."""
    assert state.commit is not None, "there is something to migrate"
    text = f"{definition.fingerprint} {terms_of(definition)}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    wanted = Migration(f"{digest}-{state.sequence}", edited(definition, state.commit) or FILLS, clock())
    kept = finished(ledger_of(definition, clock))
    for begun in migrations(definition.root):
        goes_on = begun.id.partition("-")[0] == digest and begun not in kept
        if goes_on and _changed(built(definition, begun, clock)) is None:
            wanted = begun
        else:
            forget(definition.root, begun)
    try:
        begin(definition.root, wanted)
    except FileNotFoundError as error:
        raise MigrationRefused(GIVEN_UP) from error
    return built(definition, wanted, clock)


def built(definition: Definition, migration: Migration, clock: Clock) -> Shadow:
    """What was built of a migration to this definition."""
    source = definition.source.model_copy(update={"max_files_per_run": 0})  # history is one batch
    apart = definition.model_copy(update={"root": migration.folder(definition.root), "source": source})
    return Shadow(migration, apart, ledger_of(apart, clock), mark(apart.root))


def _changed(shadow: Shadow) -> KnownFile | None:
    """A file that the tables that are being built have read, and that is another one now."""
    commit, of = shadow.ledger.state().commit, shadow.definition
    if commit is None or of.source.format == "delta":
        return None
    known = known_files(of.source, of.uses, shadow.ledger.tables, commit.versions)
    return next((file for file in known if file.rewritten), None)


@contextmanager
def still_there(shadow: Shadow) -> Iterator[None]:
    """Raises `MigrationRefused` where another command has given the migration up before the block is over."""
    _check_is_there(shadow)
    try:
        yield
    except Exception as error:
        _check_is_there(shadow, error)
        raise
    _check_is_there(shadow)


def _check_is_there(shadow: Shadow, error: Exception | None = None) -> None:
    now = mark(shadow.definition.root)
    if now is None:
        shutil.rmtree(shadow.definition.root, ignore_errors=True)  # written after the rest was deleted
    if now is None or now != shadow.mark:
        raise MigrationRefused(GIVEN_UP) from error


def catch_up(shadow: Shadow, spark: Callable[[], SparkSession], clock: Clock, *, finish: bool, note: Note) -> int:
    """Reads what the tables that are being built have not read; gives the number of batches. Raises as runs do."""
    try:
        return len(advance(shadow.definition, spark, clock=clock, finish=finish, on_note=note))
    except Rejected as refused:
        said = str(refused).partition("\nto publish it")[0]
        raise NewTablesRefused(
            f"under the new definition: {said}\nThe old one goes on, nothing was switched. Change the definition, or"
            f" build them anyway: {to_paste('migrate', shadow.definition.file, '--approve', *WHY)}"
        ) from refused
    except SourceError as error:
        if (changed := _changed(shadow)) is None:
            raise
        raise MigrationRefused(
            f"{shadow.definition.source.path / changed.place} has changed since it was read under the new definition."
            " Nothing was switched: migrate again, which builds the tables again from what is there now"
        ) from error


def approve_refused(shadow: Shadow, who: str, reason: str, clock: Clock) -> None:
    """Lets a batch that the checks refuse be built anyway, if one waits."""
    if shadow.ledger.state().rejection:
        approve(shadow.definition, who, reason, clock)


def is_finished(state: LedgerState) -> bool:
    """Whether an operator has said of the old tables that no more events will come."""
    return state.commit is not None and state.commit.watermark_out_ms == MAX_WATERMARK


def check_can_migrate(definition: Definition, ledger: Ledger, state: LedgerState) -> None:
    """Raises `NothingToMigrate`, `MigrationRefused`, `ColumnTypeChanged`, `Rejected` where a migration cannot begin."""
    commit = state.commit
    if commit is None:
        raise NothingToMigrate(
            f"nothing has been run yet: there is nothing to migrate; `{to_paste('run', definition.file)}`"
        )
    goes_on = continues(definition, commit.stored, commit.fingerprint)
    if goes_on and not columns_to_add(definition, commit) and ADDED not in commit.stored:
        raise NothingToMigrate(
            f"{definition.root} is of this definition already, or goes on with it: `{to_paste('run', definition.file)}`"
        )
    assert definition.spec, "the user's own code is loaded, or refused"
    if done := switched(ledger):
        number, _ = done
        raise MigrationRefused(
            f"the migration of batch {number} can still be undone: first"
            f" `{to_paste('migrate', definition.file, '--finish')}`, which keeps it, or"
            f" `{to_paste('migrate', definition.file, '--undo', *WHY)}`"
        )
    check_warehouse(definition)
    check_place(definition.source, definition.root, commit)
    check_spelling(ledger.tables, commit, [*definition.source.key, *definition.outputs])
    if uses_processing_time(definition.window):
        raise MigrationRefused(
            "the windows of the new definition use processing time, which is that of the runs: built again, all of"
            " the past would be in today's windows. Give the new definition another name or warehouse"
        )
    _check_nothing_waits(definition.file, state)
    _check_all_there(definition.source, definition.uses, ledger, commit)


def _check_nothing_waits(file: Path, state: LedgerState) -> None:
    if state.plan and state.is_refused:
        raise MigrationRefused(
            f"batch {state.plan.batch_id} was refused by its checks and waits: first decide about it."
            f" {decision_command('approve', file, state.plan)} has it published before the switch;"
            f" {decision_command('abandon', file, state.plan)} drops it, and its files are read under the"
            " new definition"
        )


def _check_all_there(source: Source, uses: Uses, ledger: Ledger, commit: Commit) -> None:
    """Raises `MigrationRefused` where files that were read are gone. A Delta table holds its rows, in any files."""
    if source.format == "delta":
        return
    known = known_files(source, uses, ledger.tables, commit.versions)
    gone = [one for one in known if one.now is None and not one.replaced]
    if gone:
        rows = counted(sum(one.rows for one in gone), "row")
        raise MigrationRefused(
            f"the source no longer holds {count(gone)} with {rows} that are in windows, so these cannot be"
            f" built again:\n{listed(gone)}\nRestore them to {source.path}; or undo the change, or give the"
            " new definition another name or warehouse"
        )
    left_out = [one for one in known if one.now and not is_chosen(source, one.place)]
    if left_out:
        raise MigrationRefused(
            f"{count(left_out)} whose rows are in windows would not be read under the new definition, as source.include"
            f" and source.exclude leave them out:\n{listed(left_out)}\nLet the patterns take them in until the switch;"
            " or give the new definition another name or warehouse"
        )


def check_read_all(source: Source, uses: Uses, ledger: Ledger, commit: Commit, shadow: Shadow) -> None:
    """Raises `MigrationRefused` where the old tables have read a file that the new ones have not."""
    if source.format == "delta":
        return
    there = {file.place for file in known_files(source, uses, shadow.ledger.tables, shadow.commit.versions)}
    known = known_files(source, uses, ledger.tables, commit.versions)
    lacking = [one for one in known if one.now and one.place not in there]
    if lacking:
        raise MigrationRefused(
            f"{count(lacking)} were read under the old definition and cannot be read under the new one yet, as they are"
            f" younger than source.min_file_age or set aside:\n{listed(lacking)}\nNothing was switched: migrate again"
        )
