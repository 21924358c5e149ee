"""What of a definition may change while its stored state goes on: the formulas over its aggregates, and the lateness.

State has a column for each part of an aggregate, by the aggregate's number. So a pipeline keeps the numbers that its
aggregates were given first, in whatever order formulas name them later; and where two definitions differ in nothing
but formulas over the same aggregates, one continues what the other has stored.

Columns may be added, too. The first batch that reads files has them; aggregates that are not stored yet get the next
numbers, after a mark by which each window knows whether it holds all of their events
(`windowlib.plans.aggregates.added`).

What the allowed lateness has made of the past is recorded with each batch (`windowlib.ledger.late_bound`), so the next
one may use another. Since which batch it does is stored too, and since which one has added columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from windowlib.definition.sql.aggregates import read_aggregates
from windowlib.plans.aggregates.added import mark, since

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition

PARTIALS = (
    "partials"  # in what a plan and a commit keep of the definition: the aggregates, in the order of their numbers
)
REFORMULATED = "reformulated"  # the columns of `results` whose formula was changed, and the batch that did it last
ADDED = "added"  # the columns of `results` that were added on live tables, and the first batch that had each
AGGREGATES, RENAME, WINDOW, LATENESS = "aggregates", "rename", "window", "allowed_lateness_ms"
SINCE = "allowed_lateness_since"  # in `WINDOW`: the first batch with another allowed lateness
ADDED_SINCE = "aggregates_added_since"  # in `WINDOW`: the last batch that has added columns
OF_BATCHES = (SINCE, ADDED_SINCE)

Stored = Mapping[str, Any]


def continues(definition: Definition, stored: Stored, fingerprint: str) -> bool:
    """Whether the definition has the same state as a stored one, or more, and so with the columns of results."""
    if fingerprint == definition.fingerprint:
        return True
    now = definition.semantics()
    then = compared(stored, now)
    then[WINDOW], now[WINDOW] = ({**one[WINDOW], LATENESS: None} for one in (then, now))
    others = all(then[name] == now.get(name) for name in then if name != AGGREGATES)
    return others and _columns_continue(definition, stored)


def _columns_continue(definition: Definition, stored: Stored) -> bool:
    """Whether all columns are still there, over aggregates that were stored by the time they were added."""
    then, known, added = stored[AGGREGATES], since(stored.get(PARTIALS, ())), stored.get(ADDED, {})
    found = definition.aggregates
    used = {column.name: {str(found.aggregates[number]) for number in column.numbers} for column in found.columns}
    wanted = set[str]().union(*used.values())
    if not then.keys() <= used.keys() or not known.keys() <= wanted:
        return False
    if any(known.get(one, added.get(name, 0) + 1) > added.get(name, 0) for name in then for one in used[name]):
        return False
    return then.keys() == used.keys() or (
        definition.window.function is None and not _needs_elements(definition, stored)
    )


def _needs_elements(definition: Definition, stored: Stored) -> bool:
    """Whether windows keep elements, and those that are stored lack what a new aggregate is computed of."""
    keeps = definition.plan.runs_operator and definition.spec.keeps_elements
    return keeps and bool(_new_aggregates(definition, stored))


def _new_aggregates(definition: Definition, stored: Stored) -> list[str]:
    known = since(stored.get(PARTIALS, ()))
    return [text for one in definition.aggregates.aggregates if (text := str(one)) not in known]


def compared(stored: Stored, now: Stored) -> dict[str, Any]:
    """What is stored of the keys that are compared with those of a definition now."""
    then = {name: stored.get(name) for name in now.keys() | (stored.keys() & {RENAME})}
    return {**then, WINDOW: {name: value for name, value in stored[WINDOW].items() if name not in OF_BATCHES}}


def is_of(definition: Definition, stored: Stored, fingerprint: str) -> bool:
    """Whether a batch was planned with exactly this definition."""
    if fingerprint == definition.fingerprint:
        return True
    now = definition.semantics()
    return any(name in stored[WINDOW] for name in OF_BATCHES) and compared(stored, now) == now


def semantics(definition: Definition, stored: Stored | None, batch_id: int) -> dict[str, Any]:
    """What a plan keeps of the definition, after a stored one (None: the first)."""
    now = definition.semantics()
    if stored is None:
        return now
    then, added = stored[WINDOW], _added(definition, stored, batch_id)
    changed = batch_id if then.get(LATENESS) != now[WINDOW].get(LATENESS) else then.get(SINCE)
    marks = {SINCE: changed, ADDED_SINCE: max(added.values(), default=None)}
    return {**now, WINDOW: {**now[WINDOW], **{name: value for name, value in marks.items() if value is not None}}}


def lateness_changed_with(stored: Stored, batch_id: int) -> bool:
    """Whether a batch is the first with another allowed lateness than those before it."""
    found: bool = stored[WINDOW].get(SINCE) == batch_id
    return found


def added_with(stored: Stored, batch_id: int) -> dict[str, int]:
    """The columns that a batch is the first to have, and for each the batch whose events and later ones fill it.

    That is 0 where it is computed of what was stored already: every window that fires has it.
    """
    added = [name for name, batch in stored.get(ADDED, {}).items() if batch == batch_id]
    return {name: batch for name, batch in filled_since(stored).items() if name in added}


def filled_since(stored: Stored) -> dict[str, int]:
    """The columns that were added, and for each the batch whose events and later ones fill it, or 0: those of all."""
    of = since(stored.get(PARTIALS, ()))
    return {
        name: max(of[str(one)] for one in read_aggregates({name: stored[AGGREGATES][name]}).aggregates)
        for name in stored.get(ADDED, {})
    }


def as_stored(definition: Definition, stored: Stored) -> Definition:
    """The definition with its aggregates under the numbers that they have in the state; as it is for another state.

    Columns that are not stored yet are left out.
    """
    known, numbered = since(stored.get(PARTIALS, ())), tuple(stored.get(PARTIALS, ()))
    expressions = {name: sql for name, sql in definition.expressions.items() if name in stored[AGGREGATES]}
    found = definition.with_fields(expressions=expressions)
    if not known or known.keys() != {*map(str, found.aggregates.aggregates)}:
        return definition
    return found.with_fields(partials=numbered, added=tuple(stored.get(ADDED, ())))


def of_tables(definition: Definition, stored: Stored) -> Definition:
    """The definition with the key and the columns that tables have, though it was edited: what shows them needs these.

    Where it hides any column, those that it no longer names are hidden, too: they may have had another name.
    """
    found, key, expressions = as_stored(definition, stored), stored["key"], stored[AGGREGATES]
    if [*found.source.key] == key and found.expressions.keys() <= expressions.keys():
        return found
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
    """The definition that a batch after a stored one is planned with: one that reads files adds its new columns."""
    of_state = as_stored(definition, stored)
    new = [name for name in definition.expressions if name not in of_state.expressions]
    if not new or not reads:
        return of_state
    fresh = _new_aggregates(definition, stored)
    marks = [str(mark(batch_id))] if fresh else []
    return definition.with_fields(partials=(*stored[PARTIALS], *marks, *fresh), added=(*of_state.added, *new))


def in_force(definition: Definition, stored: Stored) -> Definition:
    """The definition with columns and allowed lateness of a stored one: others come into force with a later batch."""
    definition = as_stored(definition, stored)
    if stored[WINDOW].get("type") != definition.window.type or LATENESS not in type(definition.window).model_fields:
        return definition
    return definition.with_fields(window=definition.window.model_copy(update={LATENESS: stored[WINDOW][LATENESS]}))


def _added(definition: Definition, stored: Stored, batch_id: int) -> dict[str, int]:
    then = stored.get(ADDED, {})
    return {name: then.get(name, batch_id) for name in definition.added}


def kept(definition: Definition, stored: Stored | None, batch_id: int) -> dict[str, Any]:
    """What a plan keeps of its formulas, after a stored definition (None: the first)."""
    now, found = definition.semantics()[AGGREGATES], {PARTIALS: [*map(str, definition.aggregates.aggregates)]}
    if stored is None:
        return found
    then, changed = stored[AGGREGATES], dict(stored.get(REFORMULATED, {}))
    changed |= {name: batch_id for name in now if name in then and then[name] != now[name]}
    about = {REFORMULATED: changed, ADDED: _added(definition, stored, batch_id)}
    return found | {name: value for name, value in about.items() if value}
