"""How far each erasure of a pipeline has come, by the ledger, by maintenance and by what lies on the disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.tables import erasures, maintained
from windowlib.tables.erasures import Erasure
from windowlib.tables.ledger import Clock, Ledger, wall_clock_ms
from windowlib.tables.meaning import FORGET, RESULT_CHANGES


@dataclass(frozen=True, slots=True)
class Certificate:
    """An erasure, and how far it has come by now.

    `is_published`: its rows are out of the tables. `old_files_gone`: no file of before is left, and neither are the
    rows that told followers of it.
    """

    erasure: Erasure
    is_published: bool
    old_files_gone: bool
    cuts_lost: Sequence[int] = ()


def certificates(definition: Definition, clock: Clock = wall_clock_ms) -> list[Certificate]:
    """Every erasure of a pipeline, oldest first, and how far each has come."""
    ledger = ledger_of(definition, clock)
    done = {one.batch_id: one.decision.digest for one in ledger.commits() if one.decision}
    kept_from = made.kept_from if (made := maintained.last(ledger.root)) else 0
    found: dict[tuple[str, int | None], Certificate] = {}
    for one in erasures.erasures(ledger.root):
        given_up = [key for key, earlier in found.items() if key[0] == one.digest and not earlier.is_published]
        for key in given_up:  # it was killed, and the command was given again
            del found[key]
        found[one.digest, one.batch_id] = _certificate(ledger, one, done, kept_from)
    return list(found.values())


def _certificate(ledger: Ledger, erasure: Erasure, done: Mapping[int, str | None], kept_from: int) -> Certificate:
    number = erasure.batch_id
    if number is None:
        return Certificate(erasure, True, True)
    if done.get(number) != erasure.digest:
        return Certificate(erasure, False, False)
    told = (ledger.root / RESULT_CHANGES.name).glob(f"change=*/cause={FORGET}/*/{number}-*.parquet")
    return Certificate(erasure, True, kept_from >= number and not any(told))
