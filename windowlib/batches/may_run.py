"""Whether a batch may run: the definition is that of the stored tables, and no batch waits for an operator's decision.

What has changed since a plan, or since the newest batch, is put in words here, with the commands that decide.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from unicodedata import category

from windowlib.contract.result_tables import RESULT_CHANGES
from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import added_with, as_stored, compared, continues, is_of, lateness_changed_with
from windowlib.definition.terms import changed, differences, terms_of
from windowlib.definition.toml.source import Source
from windowlib.delta.tables import Tables
from windowlib.ledger.late_bound import allowed_lateness_ms
from windowlib.ledger.ledger import ApprovalPending
from windowlib.ledger.rows import Commit, LedgerState, Plan
from windowlib.model.errors import InvalidSpec, StateMismatch
from windowlib.publication import publish
from windowlib.source.folder import is_chosen
from windowlib.source.location import other_definition

_PATTERN = {*"*?[]{}%\\"}
_UNREADABLE = ("Cc", "Cs")  # control characters, and bytes that are not text


def check_may_run(definition: Definition, state: LedgerState) -> None:
    """Raises `StateMismatch` where the newest batch, or a prepared one, is of another definition; `ApprovalPending`."""
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
    """Which batch waits for a decision, why, and the commands that decide; None where none waits."""
    if state.plan is None or not state.is_refused:
        return None
    return (
        f"batch {state.plan.batch_id} was refused by its checks and waits:\n{state.rejection}\n"
        f"to publish it anyway: {decision_command('approve', file, state.plan)}\n"
        f"to drop it, and plan again: {decision_command('abandon', file, state.plan)}"
    )


def way_on(file: Path, state: LedgerState) -> str:
    """What can be done about a batch that is planned and not committed, in commands."""
    assert state.plan is not None, "there is such a batch"
    if state.is_refused:
        return (
            f"`{decision_command('approve', file, state.plan)}` lets the next run publish it anyway;"
            f" `{decision_command('abandon', file, state.plan)}` drops it, and the next run plans a new one"
        )
    return f"`{to_paste('run', file)}` finishes it"


def decision_command(command: str, file: Path, waiting: Plan) -> str:
    """What an operator types to decide about a batch that waits."""
    return to_paste(command, file, "--batch", str(waiting.batch_id), *WHY)


def check_warehouse(definition: Definition) -> None:
    """Raises `InvalidSpec` where a pipeline's tables cannot be, or would be found among the files of its source."""
    _check_folder(definition.file, definition.root)
    _check_apart(definition.source, definition.root)


def _check_folder(file: Path, root: Path) -> None:
    """Raises `InvalidSpec` for a warehouse that is not a folder, that lies in a table, or whose path engines, or the
    tables' log, would take for another.
    """
    if found := sorted(one for one in set(str(root)) if one in _PATTERN or category(one) in _UNREADABLE):
        raise InvalidSpec(
            f"{file}: the warehouse {str(root)!r} has {' '.join(map(repr, found))} in its path,"
            " which some engine reads as a pattern or as another character; give it a path without"
        )
    for folder in (root, *root.parents):
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise InvalidSpec(f"{file}: the warehouse {root} cannot be made: {folder} is not a folder; move it away")
        if os.path.isdir(folder / "_delta_log"):
            raise InvalidSpec(
                f"{file}: the warehouse {root} lies in a Delta table, {folder}, whose maintenance may delete files"
                " in it. Give `warehouse` a folder elsewhere, or the pipeline another name"
            )


def _check_apart(source: Source, root: Path) -> None:
    """Raises `InvalidSpec` where a source would find the tables of its own pipeline among its files."""
    root, folder = root.resolve(), source.path.resolve()
    if source.format == "delta" or not root.is_relative_to(folder):
        return
    below = root.relative_to(folder).as_posix()
    if is_chosen(source, f"{below}/results/1.{source.format}"):
        raise InvalidSpec(
            f"{source.file}: the warehouse {root} lies in the folder of the source, {folder}, so a run would read its"
            f' own tables. Give `warehouse` a folder elsewhere, or leave it out: source.exclude = ["{below}/*"]'
        )


def check_spelling(tables: Tables, commit: Commit, names: Collection[str]) -> None:
    """Raises `ColumnTypeChanged` where a column differs in case only from one of `result_changes`: those all stay."""
    table = RESULT_CHANGES.name
    if names and table in commit.versions:
        publish.check_spelling((one.name for one in tables[table].schema(commit.versions[table]).fields), names)


def check_fingerprint(definition: Definition, found: Commit | Plan | None, otherwise: str | None = None) -> None:
    """Raises `StateMismatch` unless a commit or plan is of this definition; `otherwise` is what else can be done.

    None stands for a migration.
    """
    if found is None or continues(definition, found.stored, found.fingerprint):
        return
    file = definition.file
    migrate = f"have the tables built again under the new definition: `{migrate_command(file)}`"
    change = f"the change in {file}, or {otherwise or migrate}"
    said = f"{definition.root} was written by another definition: {edited(definition, found)}."
    if other := other_definition(file, found.stored):
        raise StateMismatch(
            f"{said} It has batches of {other}: if {file} is another pipeline, give it another name."
            f" If not, undo {change}."
        )
    raise StateMismatch(f"{said} Undo {change}; or, if this is another pipeline, give it another name.")


def migrate_command(file: Path) -> str:
    """What an operator types after a change of the definition that stored state does not go with."""
    return to_paste("migrate", file, *WHY)


def other_terms(definition: Definition, found: Plan) -> str | None:
    """How the definition differs from that which a plan was made with, in words; None where it computes the same."""
    if not found.files or found.rerun:
        definition = as_stored(definition, found.stored)  # it adds no column
    if not is_of(definition, found.stored, found.fingerprint):
        return edited(definition, found)
    return changed(found.terms, terms_of(definition))


def lateness_changed(plan: Plan, commit: Commit | None) -> str | None:
    """How the allowed lateness of a plan's batch differs from the one before it, in words; None where it does not."""
    if commit is None or not lateness_changed_with(plan.stored, plan.batch_id):
        return None
    then_ms, now_ms = (allowed_lateness_ms(one.definition) for one in (commit, plan))
    [said] = differences(*({"window": {"allowed_lateness_ms": ms}} for ms in (then_ms, now_ms)))
    means = "what has been cleaned up stays late" if now_ms > then_ms else "windows in flight past it are cleaned up"
    return f"{said}, from batch {plan.batch_id} on: {means}"


def columns_added(plan: Plan) -> list[str]:
    """The columns that a plan's batch is the first to have, in words."""
    added = added_with(plan.stored, plan.batch_id)
    return [f"aggregates.{name} was added, from batch {plan.batch_id} on: {_lacks(of)}" for name, of in added.items()]


def _lacks(filled_since: int) -> str:
    if not filled_since:
        return "what is published stays as it is"
    return f"windows with events from before batch {filled_since} have none of it (filled_columns)"


def columns_to_add(definition: Definition, commit: Commit | None) -> list[str]:
    """The columns of a definition that the next batch with a file adds to those of the newest one, in words."""
    if commit is None or not continues(definition, commit.stored, commit.fingerprint):
        return []
    then = commit.stored["aggregates"]
    return [
        f"aggregates.{name} is new: it comes with the next batch that reads files"
        for name in definition.semantics()["aggregates"]
        if name not in then
    ]


def formulas_changed(definition: Definition, commit: Commit | None) -> list[str]:
    """How the formulas differ from those of the newest batch, in words; the next batch publishes by them."""
    if commit is None:
        return []
    then, now = (one["aggregates"] for one in (commit.stored, definition.semantics()))
    return [*differences({"aggregates": then}, {"aggregates": {name: now.get(name) for name in then}})]


def edited(definition: Definition, found: Commit | Plan) -> str:
    """How the definition differs from that of a commit or plan, in words."""
    then, now = found.stored, definition.semantics()
    return "; ".join(differences(compared(then, now), now))
