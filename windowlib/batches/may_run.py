"""Checks that a batch may run: the definition matches the stored tables, and no batch waits for a decision.

Other functions here describe the changes since a plan or since the newest batch, with the commands to continue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path
from unicodedata import category

from windowlib.contract.result_tables import RESULT_CHANGES
from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import added_with, as_stored, compared, continues, is_of, lateness_changed_with
from windowlib.definition.plurals import first_five
from windowlib.definition.terms import changed, differences, terms_of
from windowlib.definition.toml.source import Source
from windowlib.delta import log
from windowlib.delta.tables import Tables
from windowlib.ledger.late_bound import allowed_lateness_ms
from windowlib.ledger.ledger import ApprovalPending, Clock
from windowlib.ledger.moves import require_stays
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import Commit, LedgerState, Plan
from windowlib.model.errors import InvalidSpec, StateMismatch
from windowlib.publication import publish
from windowlib.publication.moved_edges import check_edges
from windowlib.source.folder import is_chosen
from windowlib.source.location import other_definition
from windowlib.storage.address import path_below
from windowlib.storage.at_once import at_once
from windowlib.storage.store import Store

_PATTERN = {*"*?[]{}%\\"}
_UNREADABLE = ("Cc", "Cs")  # control characters, and bytes that are not text


def check_may_run(definition: Definition, state: LedgerState) -> None:
    """Raises `StateMismatch` if another definition made the newest or prepared batch.

    Raises `Moved` if the tables were moved, and `ApprovalPending` if a batch waits for a decision.
    """
    require_stays(state.moved_to)
    if state.plan and state.plan.decision and state.plan.decision.switches:
        check_fingerprint(definition, state.plan, f"finish it: `{migrate_command(definition.file)}`")
        return
    check_fingerprint(definition, state.commit)
    if state.prepared:
        drop = f"drop what was prepared with it: `{to_paste('abandon', definition.file, *WHY)}`"
        check_fingerprint(definition, state.plan, drop)
    if state.plan and (why := why_it_waits(definition.file, state)):
        raise ApprovalPending(why, state.plan.batch_id)


def why_it_waits(file: Path, state: LedgerState) -> str | None:
    """Message about the batch that waits for a decision, with the commands that decide; None if no batch waits."""
    if state.plan is None or not state.is_refused:
        return None
    return (
        f"batch {state.plan.batch_id} was refused by its checks and waits:\n{state.rejection}\n"
        f"to publish it anyway: {decision_command('approve', file, state.plan)}\n"
        f"to drop it, and plan again: {decision_command('abandon', file, state.plan)}"
    )


def way_on(file: Path, state: LedgerState) -> str:
    """Commands to continue with a batch that is planned and not committed."""
    assert state.plan is not None, "there is such a batch"
    if state.is_refused:
        return (
            f"`{decision_command('approve', file, state.plan)}` lets the next run publish it anyway;"
            f" `{decision_command('abandon', file, state.plan)}` drops it, and the next run plans a new one"
        )
    return f"`{to_paste('run', file)}` finishes it"


def decision_command(command: str, file: Path, waiting: Plan) -> str:
    """Command line with which an operator decides about a waiting batch."""
    return to_paste(command, file, "--batch", str(waiting.batch_id), *WHY)


def check_warehouse(definition: Definition) -> None:
    """Raises `InvalidSpec` if the warehouse is not a usable folder, or the source would list its tables as input."""
    _check_place(definition.file, definition.store)
    _check_apart(definition.source, definition.store)


@lru_cache(maxsize=64)  # a place that was fit stays fit
def _check_place(file: Path, store: Store) -> None:
    """Raises `InvalidSpec` for a warehouse that is not a folder, that lies in a table, or whose path would be misread.

    Engines and Delta logs misread some characters of a path.
    """
    if characters := sorted(
        character for character in set(store.url) if character in _PATTERN or category(character) in _UNREADABLE
    ):
        raise InvalidSpec(
            f"{file}: the warehouse {store.url!r} has {' '.join(map(repr, characters))} in its path."
            " An engine would read this as a pattern or as another character. Give it a path without them"
        )
    if (above := store.no_folder()) is not None:
        raise InvalidSpec(f"{file}: the warehouse {store} cannot be created: {above} is not a folder; move it away")
    places = [*_up(store)]
    logs = at_once(lambda place: next(place.list(f"{log.FOLDER}/"), None), places)
    if table := next((place for place, entry in zip(places, logs, strict=True) if entry), None):
        raise InvalidSpec(
            f"{file}: the warehouse {store} lies in the Delta table {table}. Maintenance of that table may delete"
            " its files. Give `warehouse` a folder elsewhere, or the pipeline another name"
        )


def _up(store: Store) -> Iterator[Store]:
    """A store, and the stores above it."""
    yield store
    while above := store.above():
        store = above[0]
        yield store


def _check_apart(source: Source, store: Store) -> None:
    """Raises `InvalidSpec` if a source would list the tables of its own pipeline, or lies among them."""
    if path_below(source.store.url, store) is not None:
        raise InvalidSpec(
            f"{source.file}: the source {source.store} lies in {store}, the folder of the pipeline's own tables."
            " Maintenance may delete its files. Give `source.path` a folder elsewhere"
        )
    below = path_below(store.url, source.store)
    if source.format == "delta" or below is None:
        return
    if is_chosen(source, f"{below}/results/1.{source.format}"):
        raise InvalidSpec(
            f"{source.file}: the warehouse {store} lies in the source folder {source.store}, so a run would read its"
            f' own tables. Give `warehouse` a folder elsewhere, or leave it out: source.exclude = ["{below}/*"]'
        )


def check_spelling(tables: Tables, commit: Commit, names: Collection[str]) -> None:
    """Raises `ColumnTypeChanged` if a new column differs only in case from a column of `result_changes`.

    Columns of `result_changes` are never removed.
    """
    table = RESULT_CHANGES.name
    if names and table in commit.versions:
        publish.check_spelling((column.name for column in tables[table].schema(commit.versions[table]).fields), names)


def check_fingerprint(definition: Definition, record: Commit | Plan | None, otherwise: str | None = None) -> None:
    """Raises `StateMismatch` unless this definition made the commit or plan.

    otherwise: the alternative to undoing the change, for the message, or None for a migration
    """
    if record is None or continues(definition, record.stored, record.fingerprint):
        return
    file = definition.file
    migrate = f"have the tables built again under the new definition: `{migrate_command(file)}`"
    change = f"the change in {file}, or {otherwise or migrate}"
    mismatch = f"{definition.store} was written by another definition: {edited(definition, record)}."
    if other_pipeline := other_definition(file, record.stored):
        raise StateMismatch(
            f"{mismatch} It has batches of {other_pipeline}: if {file} is another pipeline, give it another name."
            f" If not, undo {change}."
        )
    raise StateMismatch(f"{mismatch} Undo {change}; or, if this is another pipeline, give it another name.")


def check_continues(
    definition: Definition, tables: Tables, state: LedgerState, clock: Clock, rerun: Rerun | None = None
) -> None:
    """Raises `StateMismatch` unless the next batch, or a rerun, can continue from the newest commit."""
    check_fingerprint(definition, state.commit)
    check_edges(definition, tables, state, clock(), rerun)


def migrate_command(file: Path) -> str:
    """Command line that rebuilds the tables under a changed definition."""
    return to_paste("migrate", file, *WHY)


def other_terms(definition: Definition, plan: Plan) -> str | None:
    """Differences from the definition that a plan was made with, in words; None if both compute the same results."""
    if not plan.files or plan.rerun:
        definition = as_stored(definition, plan.stored)  # such a batch adds no column
    if not is_of(definition, plan.stored, plan.fingerprint):
        return edited(definition, plan)
    return changed(plan.terms, terms_of(definition))


def lateness_changed(plan: Plan, commit: Commit | None) -> str | None:
    """Change of the allowed lateness with a plan's batch, in words; None without a change."""
    if commit is None or not lateness_changed_with(plan.stored, plan.batch_id):
        return None
    then_ms, now_ms = (allowed_lateness_ms(record.definition) for record in (commit, plan))
    [difference] = differences(*({"window": {"allowed_lateness_ms": ms}} for ms in (then_ms, now_ms)))
    means = "windows that were cleaned up stay late" if now_ms > then_ms else "windows in flight past it are cleaned up"
    return f"{difference}, from batch {plan.batch_id} on: {means}"


def columns_added(plan: Plan) -> list[str]:
    """Sentence for each column that a plan's batch adds."""
    added = added_with(plan.stored, plan.batch_id)
    return [
        f"aggregates.{name} was added, from batch {plan.batch_id} on: {_lacks(filled_since)}"
        for name, filled_since in added.items()
    ]


def _lacks(filled_since: int) -> str:
    if not filled_since:
        return "published rows stay as they are"
    return f"windows with events from before batch {filled_since} do not have it (filled_columns)"


def columns_to_add(definition: Definition, commit: Commit | None) -> list[str]:
    """Sentence for each column of a definition that the next batch with a file adds."""
    if commit is None or not continues(definition, commit.stored, commit.fingerprint):
        return []
    then = commit.stored["aggregates"]
    return [
        f"aggregates.{name} is new: the next batch that reads files adds it"
        for name in definition.semantics()["aggregates"]
        if name not in then
    ]


def formulas_changed(definition: Definition, commit: Commit | None) -> list[str]:
    """Differences from the formulas of the newest batch, in words. The next batch uses the new formulas."""
    if commit is None:
        return []
    then, now = (settings["aggregates"] for settings in (commit.stored, definition.semantics()))
    return [*differences({"aggregates": then}, {"aggregates": {name: now.get(name) for name in then}})]


def edited(definition: Definition, record: Commit | Plan) -> str:
    """First five of `edits`, as text."""
    return first_five(edits(definition, record), "; ")


def edits(definition: Definition, record: Commit | Plan) -> list[str]:
    """Differences of a definition from the definition of a commit or plan, each in words."""
    then, now = record.stored, definition.semantics()
    return [*differences(compared(then, now), now)]
