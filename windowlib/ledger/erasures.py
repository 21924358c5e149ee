"""The keys of a pipeline that were erased, each with what was removed of it. Only `windowlib forget` adds to them.

Its row is written before anything is removed: from then on no batch brings the key back, whatever is killed. It
is the certificate, too. The key itself is not in it (`windowlib.plans.erased`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from windowlib.contract.record_tables import ERASURES
from windowlib.definition.instants import time_of
from windowlib.delta import small_tables as small
from windowlib.ledger.decision import Decision
from windowlib.ledger.ledger import DecidedMeanwhile
from windowlib.ledger.migration import pipeline_of
from windowlib.ledger.rows import SourceFile
from windowlib.plans.erased import ErasedDigests, ErasedKeys

SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Erasure:
    """One erasure: of events up to `up_to_ms`, and of those at `later_ms`.

    `removed` are rows by table; `source` the rows of the key that each file of the source still holds. `batch_id` is
    the batch that took the rows out of the tables.
    """

    at: datetime
    who: str
    reason: str
    columns: Sequence[str]
    secret: str
    digest: str
    up_to_ms: int
    later_ms: Sequence[int]
    batch_id: int
    removed: Mapping[str, int]
    source: Mapping[str, int]
    not_looked_at: Sequence[str]


def keep(root: Path, made: Erasure) -> None:
    """Adds an erasure: from then on the key's events are read no more.

    Raises `DecidedMeanwhile` where the first of a pipeline came meanwhile: its secret is another, and holds for all.
    """

    def check() -> None:
        if (known := erasures(root)) and secret_of(known) != made.secret:
            raise DecidedMeanwhile("another erasure of this pipeline came first: give the command again")

    small.add_row(root, ERASURES, asdict(made), check)


def erasures(root: Path) -> list[Erasure]:
    """Every erasure of the pipeline whose tables are in a folder, or are built for, oldest first."""
    return [_erasure(row) for row in small.numbered_rows(pipeline_of(root), ERASURES)]


def unpublished(made: Sequence[Erasure], decisions: Mapping[int, Decision | None]) -> list[Erasure]:
    """Erasures whose batch was not committed: the key is read no more, but still there.

    `decisions` are those of the committed batches, by batch.
    """
    done = {(number, decision.digest) for number, decision in decisions.items() if decision}
    return [one for one in made if (one.batch_id, one.digest) not in done]


def secret_of(known: Sequence[Erasure]) -> str:
    """The secret of a pipeline's hashes: that of the erasures before, or a new one."""
    return known[0].secret if known else secrets.token_hex(SECRET_BYTES)


def erased(root: Path, files: Sequence[SourceFile] = ()) -> ErasedKeys | None:
    """Which events are not read; None without any.

    `files` are those that are read, where they are known: where all of them came after the newest erasure, lines that
    cannot be parsed keep their text.
    """
    if not (known := erasures(root)):
        return None
    by_columns: dict[tuple[str, ...], dict[str, int]] = {}
    later: dict[tuple[str, ...], set[tuple[str, int]]] = {}
    for one in known:
        of = by_columns.setdefault(tuple(one.columns), {})
        of[one.digest] = max(of.get(one.digest, one.up_to_ms), one.up_to_ms)
        later.setdefault(tuple(one.columns), set()).update((one.digest, time_ms) for time_ms in one.later_ms)
    newest_ms = max(time_of(one.at) for one in known)
    is_new = bool(files) and all(file.modified_ns // 1_000_000 > newest_ms for file in files)
    keys = tuple(
        ErasedDigests(columns, tuple(sorted(of.items())), tuple(sorted(later[columns])))
        for columns, of in sorted(by_columns.items())
    )
    return ErasedKeys(secret_of(known), keys, hides_lines=not is_new)


def _erasure(row: Mapping[str, Any]) -> Erasure:
    return small.of_row(Erasure, {**row, "removed": dict(row["removed"]), "source": dict(row["source"])})
