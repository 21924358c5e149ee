"""How far each erasure of a pipeline has come, by the ledger, by maintenance and by what lies on the disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from windowlib.batches.planning import ledger_of
from windowlib.contract.result_tables import FORGET, RESULT_CHANGES
from windowlib.definition.definition import Definition
from windowlib.delta.tables import Tables
from windowlib.ledger import erasures
from windowlib.ledger import maintenances as maintained
from windowlib.ledger.erasures import Erasure
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import Clock, wall_clock_ms


@dataclass(frozen=True, slots=True)
class Certificate:
    """An erasure, and how far it has come by now.

    `is_published`: its rows are out of the tables, and its values out of what lies next to them. `old_files_gone`: no
    file of an older cut is left, and neither are the rows that informed followers of it.
    """

    erasure: Erasure
    is_published: bool
    old_files_gone: bool
    cuts_lost: Sequence[int] = ()

    def json_fields(self) -> dict[str, Any]:
        """Keys and values of its JSON, without the secret of the hash."""
        fields = asdict(self)
        erasure = {name: value for name, value in fields.pop("erasure").items() if name != "secret"}
        return {**erasure, **fields}


def certificates(definition: Definition, clock: Clock = wall_clock_ms) -> list[Certificate]:
    """Every erasure of a pipeline, oldest first, and how far each has come.

    One that was killed or overtaken is left out where the command was given again.
    """
    tables = ledger_of(definition, clock).tables
    found: list[Certificate] = []
    for one in certified(tables, erasures.erasures(tables.root)):
        found = [earlier for earlier in found if not _is_given_again(earlier, one)]
        found.append(one)
    return found


def certified(tables: Tables, made: Sequence[Erasure]) -> Iterator[Certificate]:
    """How far each of some erasures has come."""
    commits = commits_of(tables)
    unpublished = erasures.unpublished(made, {one.batch_id: one.decision for one in commits})
    kept_from = maintained.kept_from(tables.root)
    for one in made:
        if one in unpublished:
            yield Certificate(one, False, False)
        else:
            of_batch = f"change=*/cause={FORGET}/*/{one.batch_id}-*.parquet"
            announcements = (tables.root / RESULT_CHANGES.name).glob(of_batch)
            yield Certificate(one, True, kept_from >= one.batch_id and not any(announcements))


def _is_given_again(earlier: Certificate, later: Certificate) -> bool:
    """Whether the later one took the place of the earlier: of the same key, which that did not come to erase."""
    before, after = earlier.erasure, later.erasure
    is_overtaken = before.batch_id == after.batch_id
    return before.digest == after.digest and (is_overtaken or not earlier.is_published)
