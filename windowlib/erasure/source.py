"""Rows of a key in the source. windowlib does not own the source and never changes it.

Rows are read as a run reads them. Each row is matched twice: by its values, and by the hash that later runs use to
leave out erased events.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from windowlib.definition.definition import Definition
from windowlib.definition.uses import Uses
from windowlib.delta.tables import Tables
from windowlib.ledger.rows import Commit, SourceFile
from windowlib.ledger.set_aside_files import files_set_aside
from windowlib.model.errors import StateMismatch, WindowError
from windowlib.plans import admission, erased, names
from windowlib.plans.duplicates import id_of
from windowlib.plans.functions import F, literal, quoted
from windowlib.publication.key import Key
from windowlib.publication.publish import STAGING
from windowlib.reruns.source import known_files
from windowlib.source import listing
from windowlib.source import rows as source
from windowlib.source.columns.check import check_readable
from windowlib.source.intake import times_of
from windowlib.source.listed import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


OPENS = Uses((), {}, None, runs_operator=False)  # requirement for a file that a batch has read: it can be opened


class HashesDiffer(WindowError):
    """The engine hashes the key's rows differently from this process, so later runs could not leave them out."""


@dataclass(frozen=True, slots=True)
class Target:
    """A key to erase, and the secret of its hash. Its events up to `up_to_ms` (inclusive) are no longer read."""

    key: Key
    secret: str
    up_to_ms: int

    @property
    def digest(self) -> str:
        """The hash by which later runs leave out the key's events."""
        return erased.digest(self.secret, [*self.key.python_values().values()])


@dataclass(frozen=True, slots=True)
class SourceHoldings:
    """Rows of a key in the source: number by file, event ids, and event times after `Target.up_to_ms`.

    `not_looked_at` has a sentence for each file that is set aside or cannot be read.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    ids: frozenset[str] = frozenset()
    later_ms: frozenset[int] = frozenset()
    not_looked_at: Sequence[str] = ()


def source_holdings(
    definition: Definition, tables: Tables, commit: Commit, target: Target, spark: SparkSession
) -> SourceHoldings:
    """Searches read and new source files for rows of a key. Raises `HashesDiffer`."""
    types: Mapping[str, str] | None = commit.stored.get("source_types")
    files, not_looked_at = _files(definition, tables, commit, types)
    if not files:
        return SourceHoldings(not_looked_at=not_looked_at)
    staging = definition.store.below(f"{STAGING}/forget-{secrets.token_hex(4)}")
    try:
        raw = source.rows(spark, definition.source, files, staging, types)
        return _of_files(definition, raw, target, not_looked_at)
    finally:
        with suppress(OSError):  # maintenance deletes it
            staging.clear()


def _files(
    definition: Definition, tables: Tables, commit: Commit, types: Mapping[str, str] | None
) -> tuple[list[SourceFile], list[str]]:
    """The readable files with their sequence numbers, and a sentence for each file set aside or unreadable."""
    known_sources = known_files(definition.source, definition.uses, tables, commit.versions)
    read = {file.now.path: file.now for file in known_sources if file.now}
    changed = [file.now for file in known_sources if file.now and file.rewritten]
    waiting = listing.waiting_files(definition.source, definition.uses, tables, commit, check=False)
    new = listing.numbered([file for file in waiting if file.path not in read], commit.to_sequence)
    not_looked_at = [f"{path} is set aside" for path in sorted(files_set_aside(definition.store))]
    readable = []
    for files, condition, uses, pinned in (
        ([file for file in read.values() if file not in changed], "was read, and cannot be read now", OPENS, None),
        (changed, "has changed since it was read, and cannot be read now", definition.uses, types),
        (new, "has not been read yet, and cannot be read", definition.uses, types),
    ):
        for file in files:
            try:
                check_readable(definition.source, uses, [file], pinned, read)
                readable.append(file)
            except (SourceError, StateMismatch) as error:
                not_looked_at.append(f"{file.path} {condition} ({error})")
    return readable, not_looked_at


def _of_files(
    definition: Definition, raw: source.SourceRows, target: Target, not_looked_at: Sequence[str]
) -> SourceHoldings:
    values, event_id = target.key.python_values(), definition.source.event_id
    equal = (F.col(quoted(name)) == literal(value) for name, value in values.items())
    by_value = F.coalesce(reduce(and_, equal), F.lit(False))
    by_hash = erased.digest_of(raw.frame, [*values], target.secret) == F.lit(target.digest)
    ids = F.collect_set(id_of(event_id)) if event_id else F.lit(None)
    time_ms = admission.timestamp_ms(times_of(definition.source, definition.spec.assigner), raw.frame)
    rows_by_file = (
        raw.frame.where(by_value | by_hash)
        .groupBy(names.SOURCE_FILE)
        .agg(
            F.count_if(by_value).alias("rows"),
            F.count_if(by_value & by_hash).alias("both"),
            F.count(F.lit(1)).alias("either"),
            ids.alias("ids"),
            F.collect_set(F.when(time_ms > target.up_to_ms, time_ms)).alias("later_ms"),
        )
        .collect()
    )
    if any(row["both"] != row["either"] for row in rows_by_file):
        raise HashesDiffer(
            f"the engine and this process hash the key {target.key} differently, so later runs could not leave out its"
            " events. Nothing was changed. Please report this with the types of the key columns"
        )
    return SourceHoldings(
        {raw.paths[row[names.SOURCE_FILE]]: row["rows"] for row in rows_by_file},
        frozenset(id_text for row in rows_by_file for id_text in row["ids"] or ()),
        frozenset(later_ms for row in rows_by_file for later_ms in row["later_ms"]),
        not_looked_at,
    )
