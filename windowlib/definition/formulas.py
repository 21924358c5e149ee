"""The formulas of a definition, and the aggregates under them whose partial results are stored.

State has a column for each part of an aggregate, by the aggregate's number. So a pipeline keeps the numbers that its
aggregates were given first, in whatever order formulas name them later; and where two definitions differ in nothing
but formulas over the same aggregates, one continues what the other has stored.
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
AGGREGATES, RENAME = "aggregates", "rename"

Stored = Mapping[str, Any]


def continues(definition: Definition, definition_json: str, fingerprint: str) -> bool:
    """Whether the definition has the same state as a stored one, and the same columns of results."""
    if fingerprint == definition.fingerprint:
        return True
    stored, now = json.loads(definition_json), definition.semantics()
    then = {name: stored.get(name) for name in now.keys() | (stored.keys() & {RENAME})}
    others = all(then[name] == now.get(name) for name in then if name != AGGREGATES)
    same_columns = then[AGGREGATES].keys() == now[AGGREGATES].keys()
    return others and same_columns and {*stored.get(PARTIALS, ())} == {*map(str, definition.aggregates.aggregates)}


def as_stored(definition: Definition, stored: Stored) -> Definition:
    """The definition with its aggregates under the numbers that they have in the state; as it is for another state.

    Earlier releases did not keep the numbers: then they are those of the definition as it is written.
    """
    numbered = tuple(stored.get(PARTIALS, ()))
    if not numbered or {*numbered} != {*map(str, definition.aggregates.aggregates)}:
        return definition
    return definition.numbered(numbered)


def kept(definition: Definition, stored: Stored | None, batch_id: int) -> dict[str, Any]:
    """What a plan keeps of its formulas, after a stored definition (None: the first)."""
    now = definition.semantics()[AGGREGATES]
    changed = dict((stored or {}).get(REFORMULATED, {}))
    changed |= {name: batch_id for name in now if stored and stored[AGGREGATES].get(name) != now[name]}
    partials = {PARTIALS: [*map(str, definition.aggregates.aggregates)]}
    return partials | ({REFORMULATED: changed} if changed else {})
