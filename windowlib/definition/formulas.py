"""Changes of a definition that keep its stored state: formulas over its aggregates, new columns, allowed lateness.

The state has a column for each part of an aggregate, named by the aggregate's number. An aggregate keeps its first
number, even if the order of the formulas changes. If two definitions differ only in formulas over the same aggregates,
each can continue the state of the other.

A definition may also add columns. A new column exists from the first batch that reads files. New aggregates get the
next numbers, after a mark in the list of aggregates. The mark tells if a window contains all events of a new aggregate
(`windowlib.plans.aggregates.added`).

Each batch records which windows are late (`windowlib.ledger.late_bound`), so the next batch may use another allowed
lateness. The stored definition names the first batch with a new lateness, and the last batch that added columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from windowlib.definition.sql.aggregates import read_aggregates
from windowlib.plans.aggregates.added import mark, since

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition
    from windowlib.plans.aggregates.aggregate_set import AggregateSet

PARTIALS = "partials"  # in a stored definition: the aggregates in the order of their numbers
REFORMULATED = "reformulated"  # columns of `results` with a changed formula, and the batch of the last change
ADDED = "added"  # columns that were added to existing tables, and the first batch with each column
AGGREGATES, RENAME, WINDOW, LATENESS = "aggregates", "rename", "window", "allowed_lateness_ms"
SINCE = "allowed_lateness_since"  # in `WINDOW`: the first batch with another allowed lateness
ADDED_SINCE = "aggregates_added_since"  # in `WINDOW`: the last batch that added columns
OF_BATCHES = (SINCE, ADDED_SINCE)

Stored = Mapping[str, Any]


def continues(definition: Definition, stored: Stored, fingerprint: str) -> bool:
    """Tests if the definition can continue the state and the results of a stored definition."""
    if fingerprint == definition.fingerprint:
        return True
    now = definition.semantics()
    then = compared(stored, now)
    then[WINDOW], now[WINDOW] = ({**semantics[WINDOW], LATENESS: None} for semantics in (then, now))
    others = all(then[name] == now.get(name) for name in then if name != AGGREGATES)
    return others and _columns_continue(definition, stored)


def _columns_continue(definition: Definition, stored: Stored) -> bool:
    """Tests if each stored column still exists and uses only aggregates as old as the column.

    Also tests if new columns are possible. A user's function, or stored elements without their input, forbid them.
    """
    then, stored_since, added = stored[AGGREGATES], since(stored.get(PARTIALS, ())), stored.get(ADDED, {})
    numbered = definition.aggregates.aggregates
    columns = definition.aggregates.columns
    used = {column.name: {str(numbered[number]) for number in column.numbers} for column in columns}
    wanted = set[str]().union(*used.values())
    if not then.keys() <= used.keys() or not stored_since.keys() <= wanted:
        return False
    if any(
        stored_since.get(aggregate, added.get(name, 0) + 1) > added.get(name, 0)
        for name in then
        for aggregate in used[name]
    ):
        return False
    return then.keys() == used.keys() or (
        definition.window.function is None and not _needs_elements(definition, stored)
    )


def _needs_elements(definition: Definition, stored: Stored) -> bool:
    """Tests if a new aggregate needs input that stored elements lack, because the windows keep elements."""
    keeps = definition.plan.runs_operator and definition.spec.keeps_elements
    return keeps and bool(_new_aggregates(definition.aggregates, stored))


def _new_aggregates(aggregates: AggregateSet, stored: Stored) -> list[str]:
    stored_since = since(stored.get(PARTIALS, ()))
    return [text for text in map(str, aggregates.aggregates) if text not in stored_since]


def compared(stored: Stored, now: Stored) -> dict[str, Any]:
    """Stored values in the form of a definition's semantics `now`, for a comparison. Omits `OF_BATCHES`."""
    then = {name: stored.get(name) for name in now.keys() | (stored.keys() & {RENAME})}
    return {**then, WINDOW: {name: value for name, value in stored[WINDOW].items() if name not in OF_BATCHES}}


def is_of(definition: Definition, stored: Stored, fingerprint: str) -> bool:
    """Tests if the stored definition of a batch has exactly the semantics of this definition."""
    if fingerprint == definition.fingerprint:
        return True
    now = definition.semantics()
    return any(name in stored[WINDOW] for name in OF_BATCHES) and compared(stored, now) == now


def semantics(definition: Definition, stored: Stored | None, batch_id: int) -> dict[str, Any]:
    """Semantics that a plan stores. `stored` is the previously stored definition; None for the first plan."""
    now = definition.semantics()
    if stored is None:
        return now
    then, added = stored[WINDOW], _added(definition, stored, batch_id)
    changed = batch_id if then.get(LATENESS) != now[WINDOW].get(LATENESS) else then.get(SINCE)
    marks = {SINCE: changed, ADDED_SINCE: max(added.values(), default=None)}
    return {**now, WINDOW: {**now[WINDOW], **{name: value for name, value in marks.items() if value is not None}}}


def lateness_changed_with(stored: Stored, batch_id: int) -> bool:
    """Tests if a batch is the first with its allowed lateness."""
    return bool(stored[WINDOW].get(SINCE) == batch_id)


def added_with(stored: Stored, batch_id: int) -> dict[str, int]:
    """Columns that a batch adds, each with the first batch whose events fill the column.

    The batch is 0 if the column uses only stored aggregates: then the column has a value in every window that fires.
    """
    added = [name for name, batch in stored.get(ADDED, {}).items() if batch == batch_id]
    return {name: batch for name, batch in filled_since(stored).items() if name in added}


def filled_since(stored: Stored) -> dict[str, int]:
    """Maps added columns to the first batch whose events fill the column. Batch 0 means all batches."""
    stored_since = since(stored.get(PARTIALS, ()))
    return {
        name: max(
            stored_since[str(aggregate)] for aggregate in read_aggregates({name: stored[AGGREGATES][name]}).aggregates
        )
        for name in stored.get(ADDED, {})
    }


def as_stored(definition: Definition, stored: Stored) -> Definition:
    """Returns the definition with the aggregate numbers of the state, and without columns that are not stored yet.

    If the state has other aggregates, the definition is unchanged.
    """
    stored_since, numbered = since(stored.get(PARTIALS, ())), tuple(stored.get(PARTIALS, ()))
    expressions = {name: sql for name, sql in definition.expressions.items() if name in stored[AGGREGATES]}
    of_state = definition.with_fields(expressions=expressions)
    if not stored_since or stored_since.keys() != {*map(str, of_state.aggregates.aggregates)}:
        return definition
    return of_state.with_fields(partials=numbered, added=tuple(stored.get(ADDED, ())))


def of_tables(definition: Definition, stored: Stored) -> Definition:
    """Returns the definition with the key and columns of the tables, for code that shows the tables after an edit.

    If the definition hides columns, table columns that it no longer names are hidden too, because a hidden column may
    have been renamed.
    """
    of_state, key, expressions = as_stored(definition, stored), stored["key"], stored[AGGREGATES]
    if [*of_state.source.key] == key and of_state.expressions.keys() <= expressions.keys():
        return of_state
    gone = {*key, *expressions} - {*definition.source.key, *definition.expressions}
    order = [
        *(name for name in definition.expressions if name in expressions),
        *sorted(expressions.keys() - definition.expressions.keys()),
    ]
    hide = (*definition.pages.hide, *sorted(gone)) if definition.pages.hide else ()
    return definition.with_fields(
        source=definition.source.model_copy(update={"key": tuple(key)}),
        expressions={name: expressions[name] for name in order},
        partials=tuple(stored.get(PARTIALS, ())),
        added=tuple(stored.get(ADDED, ())),
        pages=definition.pages.model_copy(update={"hide": hide}),
    )


def planned(definition: Definition, stored: Stored, batch_id: int, *, reads: bool) -> Definition:
    """Definition for the plan of a batch that follows `stored`. Adds new columns only if the batch reads files."""
    of_state = as_stored(definition, stored)
    new = [name for name in definition.expressions if name not in of_state.expressions]
    if not new or not reads:
        return of_state
    fresh = _new_aggregates(definition.aggregates, stored)
    marks = [str(mark(batch_id))] if fresh else []
    return definition.with_fields(partials=(*stored[PARTIALS], *marks, *fresh), added=(*of_state.added, *new))


def in_force(definition: Definition, stored: Stored) -> Definition:
    """Definition with the stored columns and allowed lateness, because edits take effect with a later batch."""
    definition = as_stored(definition, stored)
    if stored[WINDOW].get("type") != definition.window.type or LATENESS not in type(definition.window).model_fields:
        return definition
    return definition.with_fields(window=definition.window.model_copy(update={LATENESS: stored[WINDOW][LATENESS]}))


def _added(definition: Definition, stored: Stored, batch_id: int) -> dict[str, int]:
    then = stored.get(ADDED, {})
    return {name: then.get(name, batch_id) for name in definition.added}


def kept(definition: Definition, stored: Stored | None, batch_id: int) -> dict[str, Any]:
    """Aggregates by number, changed formulas and added columns, as a plan stores them.

    `stored` is the previously stored definition; None for the first plan.
    """
    now, partials = definition.semantics()[AGGREGATES], {PARTIALS: [*map(str, definition.aggregates.aggregates)]}
    if stored is None:
        return partials
    then, changed = stored[AGGREGATES], dict(stored.get(REFORMULATED, {}))
    changed |= {name: batch_id for name in now if name in then and then[name] != now[name]}
    about = {REFORMULATED: changed, ADDED: _added(definition, stored, batch_id)}
    return partials | {name: value for name, value in about.items() if value}
