"""Progress of each erasure of a pipeline, read from the ledger, the maintenance records and the storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from windowlib.batches.planning import ledger_of
from windowlib.contract.change import REMOVED
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
    """An erasure and its progress.

    `is_published` is True if the tables and the files next to them no longer hold the key. `old_files_gone` is True if
    the files of older cuts are deleted, and the rows that told consumers about the erasure too.
    """

    erasure: Erasure
    is_published: bool
    old_files_gone: bool
    cuts_lost: Sequence[int] = ()

    def json_fields(self) -> dict[str, Any]:
        """Fields of the certificate's JSON, without the secret of the hash."""
        fields = asdict(self)
        erasure = {name: value for name, value in fields.pop("erasure").items() if name != "secret"}
        return {**erasure, **fields}


def certificates(definition: Definition, clock: Clock = wall_clock_ms) -> list[Certificate]:
    """Every erasure of a pipeline, oldest first, with its progress.

    Leaves out a killed or overtaken erasure if the command was run again for the same key.
    """
    tables = ledger_of(definition, clock).tables
    newest: list[Certificate] = []
    for certificate in certified(tables, erasures.erasures(tables.store)):
        newest = [earlier for earlier in newest if not _is_given_again(earlier, certificate)]
        newest.append(certificate)
    return newest


def certified(tables: Tables, requested: Sequence[Erasure]) -> Iterator[Certificate]:
    """Yields the certificates of `requested`, in the same order."""
    commits = commits_of(tables)
    unpublished = erasures.unpublished(requested, {commit.batch_id: commit.decision for commit in commits})
    kept_from = maintained.kept_from(tables.store)
    announcements = tables[RESULT_CHANGES.name].store.list(f"change={REMOVED}/cause={FORGET}/") if requested else ()
    announced = {file.path.rpartition("/")[2].partition("-")[0] for file in announcements}
    for erasure in requested:
        if erasure in unpublished:
            yield Certificate(erasure, False, False)
        else:
            is_announced = str(erasure.batch_id) in announced
            yield Certificate(erasure, True, kept_from >= erasure.batch_id and not is_announced)


def _is_given_again(earlier: Certificate, later: Certificate) -> bool:
    """Tests if `later` repeats `earlier`. Both must have the same key, and `earlier` was overtaken or not published."""
    before, after = earlier.erasure, later.erasure
    is_overtaken = before.batch_id == after.batch_id
    return before.digest == after.digest and (is_overtaken or not earlier.is_published)
