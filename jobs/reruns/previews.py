"""Dry runs of reruns: computed, summed up and kept, so that exactly they can be applied later, or refused.

A preview changes no table that a reader sees. Its rows lie in `_previews/<id>/difference`; applying it computes the
rerun again and compares: every row that would be written, withdrawn or changed must be the same.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs import delta, publish
from jobs.definition import Definition
from jobs.instants import instant
from jobs.ledger import Clock
from jobs.planning import check_may_run, ledger_of, rerun_plan
from jobs.reruns.batch import Findings, Rerun
from jobs.reruns.correction import Correction, RerunRefused
from jobs.reruns.page import PAGE, preview_page
from jobs.source import new_files
from jobs.tables import PREVIEWS
from jobs.watermarks import utc
from windowlib.errors import WindowError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLDER = "_previews"
LARGEST = 10
KEPT_DAYS = 30


@dataclass(frozen=True, slots=True)
class Summary:
    """What a rerun would change. `windows` counts by kind, `sums` has (before, after) of each count and sum over the
    windows that differ, `largest` the windows whose first numeric output differs most."""

    windows: dict[str, int]  # added, withdrawn, changed; of sessions also merged, split
    sums: dict[str, list[Any]]
    in_flight: list[int]  # windows (aligned: slices) in flight of the closure: before, after
    late_readmitted: int
    rows_to_write: dict[str, int]  # by table
    reaches_ms: list[int]  # from the start of the first window of the closure to the end of the last
    files_read: int
    bytes_read: int
    files_missing: list[str]
    files_changed: int
    files_waiting: int | None  # new ones that no run has read; None: the source cannot be listed
    largest: list[dict[str, Any]]

    @property
    def is_empty(self) -> bool:
        """Whether no published window would change."""
        return not any(self.windows.values())

    @property
    def changes_nothing(self) -> bool:
        """Whether there is nothing to apply: windows in flight and what is kept of the source stay as they are, too."""
        return self.is_empty and not (self.late_readmitted or self.files_missing or self.files_changed)


@dataclass(frozen=True, slots=True)
class Preview:
    """A dry run as it is kept. `base_batch_id` is the newest batch then, `watermark_ms` its watermark."""

    preview_id: str
    at_ms: int
    correction: Correction
    base_batch_id: int
    watermark_ms: int | None
    summary: Summary = field(repr=False)


def preview(definition: Definition, correction: Correction, spark: SparkSession, clock: Clock) -> Preview:
    """Computes what a rerun would change, and keeps it. Raises `RerunRefused`, and as `plan` does."""
    ledger = ledger_of(definition, clock)
    state = ledger.state()
    check_may_run(definition, state)
    planned = rerun_plan(definition, state, correction, clock)
    preview_id = f"{utc(planned.plan_time_ms):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    place = definition.root / FOLDER / preview_id
    batch = Rerun(definition, planned, state.commit, spark, preview_id, place)
    try:
        found = batch.look()
        summary = _summary(batch, found)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    for part in place.iterdir() if place.is_dir() else ():
        if part.name != "difference":
            shutil.rmtree(part)
    base = state.commit.batch_id if state.commit else 0
    made = Preview(preview_id, planned.plan_time_ms, correction, base, planned.watermark_in_ms, summary)
    place.mkdir(parents=True, exist_ok=True)
    (place / PAGE).write_text(preview_page(definition, made), encoding="utf-8")
    _keep(definition.root, made)
    return made


def load(root: Path, preview_id: str) -> Preview:
    """A preview that was kept; raises `RerunRefused` when there is none of that id."""
    for kept in previews(root):
        if kept.preview_id == preview_id:
            return kept
    raise RerunRefused(f"no preview {preview_id!r} here; `windowlib rerun … --dry-run` makes one and prints its id")


def previews(root: Path) -> list[Preview]:
    """Every preview, newest first."""
    folder = root / PREVIEWS.name
    rows = [
        row
        for file in delta.files(folder, delta.version(folder))
        for row in delta.read_parquet(folder / file.path, PREVIEWS.columns).to_pylist()
    ]
    found = [
        Preview(
            row["preview_id"],
            round(row["at"].timestamp() * 1000),
            Correction.from_json(row["correction"]),
            row["base_batch_id"],
            row["watermark_ms"],
            Summary(**json.loads(row["summary"])),
        )
        for row in rows
    ]
    return sorted(found, key=lambda one: (-one.at_ms, one.preview_id))


def _keep(root: Path, made: Preview) -> None:
    folder = root / PREVIEWS.name
    row = {
        "preview_id": made.preview_id,
        "at": utc(made.at_ms),
        "correction": made.correction.to_json(),
        "base_batch_id": made.base_batch_id,
        "watermark_ms": made.watermark_ms,
        "summary": json.dumps(asdict(made.summary), default=str),
    }
    while True:
        try:
            version = delta.version(folder)
            expected = delta.create(folder, PREVIEWS.schema()) if version is None else version
            delta.append_rows(folder, expected, [row])
        except delta.Conflict:
            continue  # another preview was faster
        break
    oldest_ms = made.at_ms - KEPT_DAYS * 86_400_000
    for old in previews(root):
        if old.at_ms < oldest_ms:
            shutil.rmtree(root / FOLDER / old.preview_id, ignore_errors=True)


# -- the sum of it ----------------------------------------------------------------------------------------------------


def _summary(batch: Rerun, found: Findings) -> Summary:
    entered, changed, withdrawn = (found.differing.get(kind, 0) for kind in ("entered", "changed", "withdrawn"))
    windows = {"added": entered, "withdrawn": withdrawn, "changed": changed}
    rows = difference_rows(batch)
    sums: dict[str, list[Any]] = {}
    largest: list[dict[str, Any]] = []
    if rows is not None:
        if batch.merges and entered and withdrawn:
            windows |= _merged_and_split(rows, batch.definition.source.key)
        sums = _sums(rows, _additive(batch.definition))
        largest = _largest(rows, batch.definition.source.key, found.step.output_names)
    opened = [path for path, p in publish.staged(batch.staging / "rerun") if p["part"] == "open"]
    after = sum(delta.data_file(path.parent, path.name).rows for path in opened)
    before, late = (0, 0) if found.is_empty else (_in_flight(batch, found), _late(batch, found))
    commit = batch.before
    try:
        waiting = new_files(batch.definition, commit.versions.get("source_files") if commit else None, 0, check=False)
    except WindowError:
        waiting = None
    return Summary(
        windows=windows,
        sums=sums,
        in_flight=[before, after],
        late_readmitted=late,
        rows_to_write={
            "results": entered + changed,
            "result_changes": sum(found.differing.values()),
            "open_windows": after,
        },
        reaches_ms=[found.closure.windows.from_ms, found.closure.windows.to_ms],
        files_read=sum(file.now is not None for file in found.files),
        bytes_read=found.bytes_read,
        files_missing=[file.path for file in found.files if file.now is None],
        files_changed=sum(file.changed for file in found.files),
        files_waiting=None if waiting is None else len(waiting),
        largest=largest,
    )


def difference_rows(batch: Rerun) -> DataFrame | None:
    """The staged difference, with part; None without a row."""
    folder = batch.staging / "difference"
    if not any(publish.staged(folder)):
        return None
    return batch.spark.read.parquet(str(folder))


def _merged_and_split(rows: DataFrame, keys: Sequence[str]) -> dict[str, int]:
    """New sessions that two or more withdrawn ones went into; withdrawn ones that two or more came out of."""
    from pyspark.sql import functions as F

    def side(kind: str, name: str) -> DataFrame:
        bounds = [F.col("window_start").alias(f"{name}_start"), F.col("window_end").alias(f"{name}_end")]
        return rows.where(f"part = '{kind}'").select(*(f"`{key}`" for key in keys), *bounds)

    overlap = (F.col("new_start") < F.col("old_end")) & (F.col("old_start") < F.col("new_end"))
    new, old = side("entered", "new"), side("withdrawn", "old")
    pairs = new.join(old, list(keys)).where(overlap) if keys else new.crossJoin(old).where(overlap)
    keyed = [*(f"`{key}`" for key in keys)]

    def several(name: str) -> int:
        return pairs.groupBy(*keyed, f"{name}_start", f"{name}_end").count().where("count > 1").count()

    return {"merged": several("new"), "split": several("old")}


def _numeric(rows: DataFrame, outputs: Sequence[str]) -> list[str]:
    kinds = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
    types = {field.name: field.dataType.simpleString().partition("(")[0] for field in rows.schema}
    return [name for name in outputs if types[name] in kinds]


def _additive(definition: Definition) -> list[str]:
    """The outputs whose sum over windows means something: counts and sums."""
    found = definition.aggregates
    adds = {f"{{{number}}}" for number, one in enumerate(found.aggregates) if one.function in ("count", "sum")}
    return [column.name for column in found.columns if column.sql in adds]


def _sums(rows: DataFrame, names: Sequence[str]) -> dict[str, list[Any]]:
    """The sums of outputs over the windows that differ: before, after."""
    from pyspark.sql import functions as F

    if not names:
        return {}
    before = [F.expr(f"try_sum(before.`{name}`)").alias(f"b{i}") for i, name in enumerate(names)]
    after = [F.expr(f"try_sum(if(part = 'withdrawn', null, `{name}`))").alias(f"a{i}") for i, name in enumerate(names)]
    told = rows.agg(*before, *after).first()
    assert told is not None
    return {name: [told[f"b{i}"] or 0, told[f"a{i}"] or 0] for i, name in enumerate(names)}


def _largest(rows: DataFrame, keys: Sequence[str], outputs: Sequence[str]) -> list[dict[str, Any]]:
    """The windows whose first numeric output changes most: its outputs before and after, None where there were none."""
    from pyspark.sql import functions as F

    names = _numeric(rows, outputs)
    change = "cast(0 AS double)"
    if names:
        change = (
            f"abs(if(part = 'withdrawn', 0, coalesce(cast(`{names[0]}` AS double), 0))"
            f" - coalesce(cast(before.`{names[0]}` AS double), 0))"
        )
    chosen = (
        rows.withColumn("_change", F.expr(change))
        .orderBy(F.desc("_change"), *(f"`{key}`" for key in keys), "window_start")
        .limit(LARGEST)
    )
    shown = []
    for row in chosen.collect():
        was = row["before"]
        shown.append(
            {
                "change": row["part"],
                **{key: row[key] for key in keys},
                "window": f"{row['window_start']:%Y-%m-%d %H:%M:%S} to {row['window_end']:%Y-%m-%d %H:%M:%S}",
                "before": {name: was[name] for name in outputs} if was else None,
                "after": None if row["part"] == "withdrawn" else {name: row[name] for name in outputs},
            }
        )
    return shown


def _in_flight(batch: Rerun, found: Findings) -> int:
    """How many windows in flight the closure has now."""
    rows = batch.table("open_windows", batch.state_files(found.closure.windows))
    return 0 if rows is None else rows.count() - batch.outside(rows, found).count()


def _late(batch: Rerun, found: Findings) -> int:
    """How many late events would be in a window."""
    from pyspark.sql import functions as F

    rows = batch.table("late_events", batch.late_files(found.closure.windows))
    present = [(file.path,) for file in found.files if file.now and not file.changed]
    if rows is None or not present:
        return 0
    named = batch.spark.createDataFrame(present, "source_file string")
    waiting = rows.where("readmitted_by IS NULL").join(F.broadcast(named), "source_file", "left_semi")
    return batch.taken_in(waiting, found).count()


# -- applying it ------------------------------------------------------------------------------------------------------


def check_expected(batch: Rerun, found: Findings) -> None:
    """Raises `RerunRefused` where a rerun would not come out as its preview said."""
    expected = load(batch.definition.root, batch.correction.preview_id or "")
    folder = batch.definition.root / FOLDER / expected.preview_id / "difference"
    said = batch.spark.read.parquet(str(folder)) if any(publish.staged(folder)) else None
    if said is None and any(expected.summary.windows.values()):
        raise RerunRefused(f"the rows of preview {expected.preview_id} are no longer there: make a new one")
    now = difference_rows(batch)
    moved = _moved(said, now, batch, found)
    opened = [path for path, p in publish.staged(batch.staging / "rerun") if p["part"] == "open"]
    in_flight = sum(delta.data_file(path.parent, path.name).rows for path in opened)
    if not moved and in_flight == expected.summary.in_flight[1]:
        return
    told = (
        "\n".join(f"  {one}" for one in moved)
        or f"  {in_flight} windows in flight, not {expected.summary.in_flight[1]}"
    )
    raise RerunRefused(
        f"preview {expected.preview_id} is of {instant(expected.at_ms)}, after batch {expected.base_batch_id};"
        f" since then what it would change has moved:\n{told}\nNothing was changed. Make a new preview"
    )


def _moved(said: DataFrame | None, now: DataFrame | None, batch: Rerun, found: Findings) -> list[str]:
    """Windows, five at most, that do not come out as it was said."""
    from pyspark.sql import functions as F

    from windowlib.plans.corrections import equal

    if said is None or now is None:
        some = said if said is not None else now
        rows = [] if some is None else some.limit(5).collect()
        return [_named(row, batch.definition.source.key) for row in rows]
    identity = [*batch.definition.source.key, "window_start", "window_end"]
    values = ["last_event_time", *found.step.output_names]
    types = {field.name: field.dataType for field in now.schema}

    def side(rows: DataFrame, name: str) -> DataFrame:
        held = [F.col(f"`{value}`") for value in values]
        told = F.struct("part", F.struct(*held).alias("after"), "before").alias(name)
        return rows.select(*(f"`{column}`" for column in identity), told)

    both = side(said, "_said").join(side(now, "_now"), identity, "full_outer")
    same = F.col("_said.part").eqNullSafe(F.col("_now.part"))
    for value in values:
        for when in ("after", "before"):
            one, other = (F.col(f"{of}.{when}.`{value}`") for of in ("_said", "_now"))
            same = same & equal(one, other, types[value])
    return [_named(row, batch.definition.source.key) for row in both.where(~same).limit(5).collect()]


def _named(row: Any, keys: Sequence[str]) -> str:
    key = ", ".join(str(row[name]) for name in keys)
    bounds = f"{row['window_start']:%Y-%m-%d %H:%M:%S} to {row['window_end']:%Y-%m-%d %H:%M:%S}"
    return f"{key + ': ' if key else ''}window {bounds}"
