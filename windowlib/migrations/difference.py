"""Differences of `results` between two definitions, window by window, for the operator and for consumers.

Windows are matched by key, start and end (and by firing, if each firing is a result). If the definitions have different
keys or kinds of window, no windows match: all old results are removed and all new results are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windowlib.batches.pinned import Pinned
from windowlib.batches.staging import Staging
from windowlib.contract.change import ADDED, CHANGED, REMOVED
from windowlib.contract.result_tables import LOCAL_BOUNDS, UNCOMPARED
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import OF_BATCHES
from windowlib.definition.toml.source import Source
from windowlib.engines.choice import dialect_of
from windowlib.engines.collect import collected
from windowlib.ledger.rows import Commit
from windowlib.model.geometry import geometry_of
from windowlib.model.spec import WindowSpec
from windowlib.plans import names
from windowlib.plans.functions import F, quoted
from windowlib.plans.partitions import PARTITION, window_day
from windowlib.plans.reruns import equal
from windowlib.storage.at_once import at_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

FEED = "feed"  # folder of an attempt for the rows of `result_changes`
EXAMPLES = 5  # per kind of change
_DAY = window_day("coalesce(unix_millis(window_end) - 1, unix_millis(last_event_time))")


@dataclass(frozen=True, slots=True)
class MigrationDifference:
    """Summary of the differences.

    `results` is the number of results before and after. `windows` counts windows by change. `sums` has the sums before
    and after, by column. `examples` has the newest windows of each change.
    """

    results: tuple[int, int]
    windows: Mapping[str, int] = field(default_factory=dict)
    sums: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    examples: Sequence[Mapping[str, Any]] = ()

    @property
    def is_empty(self) -> bool:
        return not any(self.windows.values())


@dataclass(frozen=True, slots=True)
class MigrationSide:
    """The results of one definition: its pinned tables and its commit."""

    tables: Pinned
    commit: Commit

    @property
    def rows(self) -> DataFrame | None:
        return self.tables.rows("results")

    @property
    def stored(self) -> Mapping[str, Any]:
        stored: Mapping[str, Any] = self.commit.stored
        return stored

    @property
    def count(self) -> int:
        return self.tables.count("results")


def difference(
    definition: Definition, before: MigrationSide, after: MigrationSide, staging: Staging, batch_id: int
) -> MigrationDifference:
    """Writes the changes of `results` to the folder `FEED` of the staging area, and summarizes them.

    definition: one of the two definitions
    written: rows of `result_changes` for batch `batch_id`, with change and end_partition (the day)
    """
    dialect_of(staging.spark).size_tasks(staging.spark, before.count + after.count, definition.spark.conf)
    old, new = before.rows, after.rows
    identity, exact = _identity(definition.spec, before, after), definition.aggregates.exact
    parts = [part for part in _parts(old, new, identity, exact) if part is not None]
    if not parts:
        return MigrationDifference((before.count, after.count))
    columns = _columns([frame.schema for frame in (old, new) if frame is not None])
    feed = _union([_as_of(part, kind, columns, batch_id) for kind, part in parts])
    staging.write(feed, FEED, "change", PARTITION)
    windows = dict.fromkeys((ADDED, CHANGED, REMOVED), 0)
    written = staging.written(FEED)
    counts = at_once(staging.count, [file for file, _ in written])
    for (_, partition), count in zip(written, counts, strict=True):
        windows[partition["change"]] += count
    return MigrationDifference(
        (before.count, after.count),
        windows,
        _sums(definition.aggregates.additive, old, new),
        _examples(staging, definition.source) if any(windows.values()) else (),
    )


def _identity(spec: WindowSpec, before: MigrationSide, after: MigrationSide) -> list[str] | None:
    """Columns by which results of both definitions are matched; None if the definitions cannot match."""
    old, new = before.stored, after.stored
    # Windows of one kind can be equal, whatever their lengths.
    kinds = [
        {key: value for key, value in stored["window"].items() if not (key.endswith("_ms") or key in OF_BATCHES)}
        for stored in (old, new)
    ]
    if old["key"] != new["key"] or kinds[0] != kinds[1]:
        return None
    columns = list(old["key"])
    if geometry_of(spec.assigner).ends is not False:
        columns += ["window_start", "window_end"]
    if not spec.updates_results:
        columns.append("firing")
    return columns or None


def _parts(
    old: DataFrame | None, new: DataFrame | None, identity: list[str] | None, exact: frozenset[str]
) -> list[tuple[str, DataFrame] | None]:
    if old is None or new is None or identity is None:
        return [None if new is None else (ADDED, new), None if old is None else (REMOVED, old)]
    if "result_number" in new.columns:
        identity = [*identity, "result_number"]
    shown = [*map(quoted, identity)]
    ids = {"old": old.select(*shown), "new": new.select(*shown)}
    added, removed = new.join(ids["old"], identity, "left_anti"), old.join(ids["new"], identity, "left_anti")
    return [(ADDED, added), (REMOVED, removed), (CHANGED, _changed(old, new, identity, exact))]


def _changed(old: DataFrame, new: DataFrame, identity: Sequence[str], exact: frozenset[str]) -> DataFrame:
    """New rows of windows that both sides have with different values. If the columns differ, all windows count as
    different.
    """
    values = [name for name in new.columns if name not in (*identity, *UNCOMPARED)]
    was = names.internal("was")
    if {*values} != {name for name in old.columns if name not in (*identity, *UNCOMPARED)}:
        return new.join(old.select(*map(quoted, identity)), list(identity), "left_semi")
    types = {field.name: field.dataType for field in new.schema}
    then = old.select(*map(quoted, identity), F.struct(*map(quoted, values)).alias(was))
    both = new.join(then, list(identity))
    differs = F.lit(False)
    for name in values:
        sides = F.col(quoted(name)), F.col(f"{was}.{quoted(name)}")
        differs = differs | ~equal(*sides, types[name], exact=name in exact)
    return both.where(differs).select(*map(quoted, new.columns))


def _columns(schemas: Sequence[StructType]) -> dict[str, DataType]:
    return {field.name: field.dataType for schema in schemas for field in schema}


def _as_of(rows: DataFrame, kind: str, columns: Mapping[str, DataType], batch_id: int) -> DataFrame:
    def column(name: str, kind: DataType) -> Column:
        if name == "batch_id":
            return F.lit(batch_id).cast("long").alias(name)
        return (F.col(quoted(name)) if name in rows.columns else F.lit(None).cast(kind)).alias(name)

    shown = [column(name, type_) for name, type_ in columns.items()]
    return rows.select(*shown, F.lit(kind).alias("change"), F.expr(_DAY).alias(PARTITION))


def _union(parts: Sequence[DataFrame]) -> DataFrame:
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionByName(part)
    return rows


def _sums(wanted: Sequence[str], old: DataFrame | None, new: DataFrame | None) -> dict[str, tuple[Any, Any]]:
    """Sums (before, after) of the wanted columns over all windows; None for a side without the column."""

    def sums(rows: DataFrame | None) -> dict[str, Any]:
        have = [name for name in wanted if rows is not None and name in rows.columns]
        if rows is None or not have:
            return {}
        summed = rows.agg(*(F.expr(f"try_sum({quoted(name)})").alias(f"s{i}") for i, name in enumerate(have))).first()
        assert summed is not None, "an aggregate has a row"
        return {name: summed[f"s{i}"] for i, name in enumerate(have)}

    then, now = sums(old), sums(new)
    return {name: (then.get(name), now.get(name)) for name in wanted if name in then or name in now}


def _examples(staging: Staging, source: Source) -> list[dict[str, Any]]:
    """Newest windows of each change. Removed windows have their old values, other windows their new values."""
    rows = staging.spark.read.parquet(staging.url(FEED))
    shown, hidden = [], {PARTITION, "batch_id", *LOCAL_BOUNDS}
    for kind in (CHANGED, ADDED, REMOVED):
        chosen = rows.where(F.col("change") == kind).orderBy(F.desc("window_end"), *_keys(rows, source))
        for row in collected(chosen.limit(EXAMPLES)):
            shown.append({name: value for name, value in row.items() if name not in hidden})
    return shown


def _keys(rows: DataFrame, source: Source) -> list[str]:
    return [quoted(name) for name in source.key if name in rows.columns]
