"""What of a definition may change while its stored state goes on: the formulas over its aggregates, and the lateness.

State has a column for each part of an aggregate, by the aggregate's number. So a pipeline keeps the numbers that its
aggregates were given first, in whatever order formulas name them later; and where two definitions differ in nothing
but formulas over the same aggregates, one continues what the other has stored.

What the allowed lateness has made of the past is recorded with each batch (`windowlib.tables.late`), so the next one
may use another. Since which batch it does is stored too; releases that know of no change refuse what they find then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition

PARTIALS = (
    "partials"  # in what a plan and a commit keep of the definition: the aggregates, in the order of their numbers
)
REFORMULATED = "reformulated"  # the columns of `results` whose formula was changed, and the batch that did it last
AGGREGATES, RENAME, WINDOW, LATENESS = "aggregates", "rename", "window", "allowed_lateness_ms"
SINCE = "allowed_lateness_since"  # in `WINDOW`: the first batch with another allowed lateness

Stored = Mapping[str, Any]


def continues(definition: Definition, definition_json: str, fingerprint: str) -> bool:
    """Whether the definition has the same state as a stored one, and the same columns of results."""
    if fingerprint == definition.fingerprint:
        return True
    stored, now = json.loads(definition_json), definition.semantics()
    then = compared(stored, now)
    then[WINDOW], now[WINDOW] = ({**one[WINDOW], LATENESS: None} for one in (then, now))
    others = all(then[name] == now.get(name) for name in then if name != AGGREGATES)
    same_columns = then[AGGREGATES].keys() == now[AGGREGATES].keys()
    return others and same_columns and {*stored.get(PARTIALS, ())} == {*map(str, definition.aggregates.aggregates)}


def compared(stored: Stored, now: Stored) -> dict[str, Any]:
    """What is stored of the keys that are compared with those of a definition now."""
    then = {name: stored.get(name) for name in now.keys() | (stored.keys() & {RENAME})}
    return {**then, WINDOW: {name: value for name, value in stored[WINDOW].items() if name != SINCE}}


def is_of(definition: Definition, definition_json: str, fingerprint: str) -> bool:
    """Whether a batch was planned with exactly this definition."""
    if fingerprint == definition.fingerprint:
        return True
    stored, now = json.loads(definition_json), definition.semantics()
    return SINCE in stored[WINDOW] and compared(stored, now) == now


def semantics(definition: Definition, stored: Stored | None, batch_id: int) -> dict[str, Any]:
    """What a plan keeps of the definition, after a stored one (None: the first)."""
    now = definition.semantics()
    if stored is None:
        return now
    then = stored[WINDOW]
    since = batch_id if then.get(LATENESS) != now[WINDOW].get(LATENESS) else then.get(SINCE)
    return now if since is None else {**now, WINDOW: {**now[WINDOW], SINCE: since}}


def lateness_changed_with(definition_json: str, batch_id: int) -> bool:
    """Whether a batch is the first with another allowed lateness than those before it."""
    found: bool = json.loads(definition_json)[WINDOW].get(SINCE) == batch_id
    return found


def as_stored(definition: Definition, stored: Stored) -> Definition:
    """The definition with its aggregates under the numbers that they have in the state; as it is for another state.

    Earlier releases did not keep the numbers: then they are those of the definition as it is written.
    """
    numbered = tuple(stored.get(PARTIALS, ()))
    if not numbered or {*numbered} != {*map(str, definition.aggregates.aggregates)}:
        return definition
    return definition.with_fields(partials=numbered)


def in_force(definition: Definition, stored: Stored) -> Definition:
    """The definition with the allowed lateness of a stored one: another one comes into force with the next batch."""
    if stored[WINDOW].get("type") != definition.window.type or LATENESS not in type(definition.window).model_fields:
        return definition
    return definition.with_fields(window=definition.window.model_copy(update={LATENESS: stored[WINDOW][LATENESS]}))


def kept(definition: Definition, stored: Stored | None, batch_id: int) -> dict[str, Any]:
    """What a plan keeps of its formulas, after a stored definition (None: the first)."""
    now = definition.semantics()[AGGREGATES]
    changed = dict((stored or {}).get(REFORMULATED, {}))
    changed |= {name: batch_id for name in now if stored and stored[AGGREGATES].get(name) != now[name]}
    partials = {PARTIALS: [*map(str, definition.aggregates.aggregates)]}
    return partials | ({REFORMULATED: changed} if changed else {})
