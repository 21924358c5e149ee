"""What the source holds of a key: nothing of it is changed here, as it is not windowlib's.

Rows are found as a run reads them, once by their values and once by the hash by which they are left out from then on.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping, Sequence
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
from windowlib.publication.publish import staging_folder
from windowlib.reruns.source import known_files
from windowlib.source import listing
from windowlib.source import rows as source
from windowlib.source.columns.check import check_readable
from windowlib.source.intake import times_of
from windowlib.source.listed import SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


OPENS = Uses((), {}, None, runs_operator=False)  # of a file that fitted when it was read: that it can be opened


class HashesDiffer(WindowError):
    """The engine does not hash the key's rows as this process does: they could not be left out."""


@dataclass(frozen=True, slots=True)
class Target:
    """A key to be erased, the secret that its hash is made with, and the last ms of its events that no longer count."""

    key: Key
    secret: str
    up_to_ms: int

    @property
    def digest(self) -> str:
        """The hash of the key, by which its events are left out from then on."""
        return erased.digest(self.secret, [*self.key.python_values().values()])


@dataclass(frozen=True, slots=True)
class SourceHoldings:
    """The rows of a key by file of the source, the ids of its events, and their times after that which was asked for.

    `not_looked_at` are the files that could not be read, in sentences.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    ids: frozenset[str] = frozenset()
    later_ms: frozenset[int] = frozenset()
    not_looked_at: Sequence[str] = ()


def source_holdings(
    definition: Definition, tables: Tables, commit: Commit, target: Target, spark: SparkSession
) -> SourceHoldings:
    """Rows of a key in the source, in files that were read and in new files. Raises `HashesDiffer`."""
    types: Mapping[str, str] | None = commit.stored.get("source_types")
    files, not_looked_at = _files(definition, tables, commit, types)
    if not files:
        return SourceHoldings(not_looked_at=not_looked_at)
    staging = staging_folder(definition.root) / f"forget-{secrets.token_hex(4)}"
    try:
        raw = source.rows(spark, definition.source, files, staging, types)
        return _of_files(definition, raw, target, not_looked_at)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _files(
    definition: Definition, tables: Tables, commit: Commit, types: Mapping[str, str] | None
) -> tuple[list[SourceFile], list[str]]:
    """The files that can be read, numbered, and why others cannot."""
    known = known_files(definition.source, definition.uses, tables, commit.versions)
    read = {file.now.path: file.now for file in known if file.now}
    changed = [file.now for file in known if file.now and file.rewritten]
    waiting = listing.waiting_files(definition.source, definition.uses, tables, commit, check=False)
    new = listing.numbered([file for file in waiting if file.path not in read], commit.to_sequence)
    not_looked_at = [f"{path} is set aside" for path in sorted(files_set_aside(definition.root))]
    fits = []
    for files, said, uses, pinned in (
        ([file for file in read.values() if file not in changed], "was read, and cannot be now", OPENS, None),
        (changed, "has changed since it was read, and cannot be now", definition.uses, types),
        (new, "has not been read yet, and cannot be", definition.uses, types),
    ):
        for file in files:
            try:
                check_readable(definition.source, uses, [file], pinned, read)
                fits.append(file)
            except (SourceError, StateMismatch) as error:
                not_looked_at.append(f"{file.path} {said} ({error})")
    return fits, not_looked_at


def _of_files(
    definition: Definition, raw: source.SourceRows, target: Target, not_looked_at: Sequence[str]
) -> SourceHoldings:
    values, event_id = target.key.python_values(), definition.source.event_id
    equal = (F.col(quoted(name)) == literal(value) for name, value in values.items())
    by_value = F.coalesce(reduce(and_, equal), F.lit(False))
    by_hash = erased.digest_of(raw.frame, [*values], target.secret) == F.lit(target.digest)
    ids = F.collect_set(id_of(event_id)) if event_id else F.lit(None)
    time_ms = admission.timestamp_ms(times_of(definition.source, definition.spec.assigner), raw.frame)
    found = (
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
    if any(row["both"] != row["either"] for row in found):
        raise HashesDiffer(
            f"the engine hashes the key {target.key} otherwise than this process, so its events could not be left out;"
            " nothing was changed. Please report this, with the type of the key's columns"
        )
    return SourceHoldings(
        {raw.paths[row[names.SOURCE_FILE]]: row["rows"] for row in found},
        frozenset(one for row in found for one in row["ids"] or ()),
        frozenset(one for row in found for one in row["later_ms"]),
        not_looked_at,
    )
