"""Which columns a result lacks, because they were added to its pipeline after events of its window had come."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from windowlib.batches.may_run import columns_to_add
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import ADDED, filled_since
from windowlib.plans.added import FILLED
from windowlib.tables.ledger_rows import Commit


def not_filled(definition: Definition, commit: Commit | None, published: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Why columns of a published window are null that would not be, had they been there from the start.

    `commit` is the newest, which knows which columns were added, and when.
    """
    if commit is None or not published:
        return
    stored, row = json.loads(commit.definition), published[-1]
    filled = f", {row.get(FILLED) or ''}, "
    added = filled_since(stored)
    for name in definition.outputs:
        if name in added and f", {name}, " not in filled:
            since = added[name]
            which = f"a window whose events all came from batch {since} on has it" if since else "later results have it"
            yield f"{name} is null: it was added with batch {stored[ADDED][name]}; {which}, and a rerun fills it"
    yield from columns_to_add(definition, commit)
