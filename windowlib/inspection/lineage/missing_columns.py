"""Columns missing from a result because they were added later, or from the tables because the definition was edited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from windowlib.batches.may_run import columns_to_add, edited, migrate_command
from windowlib.contract.result_tables import FILLED
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import ADDED, continues, filled_since
from windowlib.ledger.rows import Commit
from windowlib.publication.key import CannotLook


def check_key_columns(definition: Definition, commit: Commit | None) -> None:
    """Raises `CannotLook` if an edited definition has other key columns than the tables."""
    if commit is None or continues(definition, commit.stored, commit.fingerprint):
        return
    if {*definition.source.key} != {*commit.stored["key"]}:
        raise CannotLook(
            f"the key in {definition.file} has changed since batch {commit.batch_id}, so it does not match the tables:"
            f" {edited(definition, commit)}. Undo the change, or build the tables again under the new definition:"
            f" `{migrate_command(definition.file)}`"
        )


def not_filled(definition: Definition, commit: Commit | None, published: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields a sentence for each column that a published window lacks because it was added later.

    Also yields a sentence for each column that the next batch adds. `commit` is the newest commit, which records the
    added columns and their batches.
    """
    if commit is None or not published:
        return
    stored, row = commit.stored, published[-1]
    filled = f", {row.get(FILLED) or ''}, "
    added = filled_since(stored)
    for name in definition.outputs:
        if name in added and f", {name}, " not in filled:
            since = added[name]
            holders = (
                f"windows whose events all came from batch {since} on have it" if since else "later results have it"
            )
            yield f"{name} is null: it was added with batch {stored[ADDED][name]}; {holders}, and a rerun fills it"
    yield from columns_to_add(definition, commit)
