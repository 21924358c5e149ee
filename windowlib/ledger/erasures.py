"""Erased keys of a pipeline, each with the number of removed rows. Only `windowlib forget` adds erasures.

`forget` writes the row of an erasure before it removes anything. From then on no batch brings the key back, even if
processes are killed. The row also serves as the certificate of the erasure. It contains a digest instead of the key
(`windowlib.plans.erased`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from windowlib.contract.record_tables import ERASURES
from windowlib.definition.instants import time_of
from windowlib.delta import small_tables as small
from windowlib.ledger.decision import Decision
from windowlib.ledger.ledger import DecidedMeanwhile
from windowlib.ledger.migration import pipeline_of
from windowlib.ledger.rows import SourceFile
from windowlib.plans.erased import ErasedDigests, ErasedKeys
from windowlib.storage.store import Store

SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Erasure:
    """Erasure of a key's events at or before `up_to_ms`, and of its later events at the times `later_ms`.

    `removed` counts removed rows by table. `source` counts the rows of the key that each source file still holds.
    `not_looked_at` has a sentence for each source file that could not be read. `batch_id` is the batch that removed the
    rows from the tables.
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


def keep(store: Store, erasure: Erasure) -> None:
    """Adds an erasure. From then on the key's events are no longer read.

    Raises `DecidedMeanwhile` if another process added the pipeline's first erasure meanwhile. All erasures share the
    secret of the first.
    """

    def check() -> None:
        if (earlier := erasures(store)) and secret_of(earlier) != erasure.secret:
            raise DecidedMeanwhile("another erasure of this pipeline came first: repeat the command")

    small.add_row(store, ERASURES, asdict(erasure), check)


def erasures(store: Store) -> list[Erasure]:
    """Every erasure of a pipeline, oldest first. `store` is the pipeline's folder, or the folder of a migration."""
    return [_erasure(row) for row in small.numbered_rows(pipeline_of(store), ERASURES)]


def unpublished(erasures: Sequence[Erasure], decisions: Mapping[int, Decision | None]) -> list[Erasure]:
    """Erasures whose batch was not committed: runs no longer read the key, but its rows are still in the tables.

    `decisions` maps each committed batch to its decision.
    """
    done = {(number, decision.digest) for number, decision in decisions.items() if decision}
    return [erasure for erasure in erasures if (erasure.batch_id, erasure.digest) not in done]


def secret_of(earlier: Sequence[Erasure]) -> str:
    """Secret of a pipeline's hashes: the secret of its earlier erasures, or a new secret if there are none."""
    return earlier[0].secret if earlier else secrets.token_hex(SECRET_BYTES)


def erased(store: Store, files: Sequence[SourceFile] = ()) -> ErasedKeys | None:
    """Erased keys, whose events no run reads; None if there are no erasures.

    `files` are the source files to read, if known. Lines that cannot be parsed are hidden unless all these files are
    newer than the newest erasure.
    """
    if not (known_erasures := erasures(store)):
        return None
    by_columns: dict[tuple[str, ...], dict[str, int]] = {}
    later: dict[tuple[str, ...], set[tuple[str, int]]] = {}
    for erasure in known_erasures:
        digests = by_columns.setdefault(tuple(erasure.columns), {})
        digests[erasure.digest] = max(digests.get(erasure.digest, erasure.up_to_ms), erasure.up_to_ms)
        later.setdefault(tuple(erasure.columns), set()).update(
            (erasure.digest, time_ms) for time_ms in erasure.later_ms
        )
    newest_ms = max(time_of(erasure.at) for erasure in known_erasures)
    is_new = bool(files) and all(file.modified_ns // 1_000_000 > newest_ms for file in files)
    keys = tuple(
        ErasedDigests(columns, tuple(sorted(digests.items())), tuple(sorted(later[columns])))
        for columns, digests in sorted(by_columns.items())
    )
    return ErasedKeys(secret_of(known_erasures), keys, hides_lines=not is_new)


def _erasure(row: Mapping[str, Any]) -> Erasure:
    return small.of_row(Erasure, {**row, "removed": dict(row["removed"]), "source": dict(row["source"])})
