"""What a rerun would change, summed up: counts of windows, sums before and after, the largest changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from windowlib.batches.inputs import Inputs
from windowlib.definition.instants import in_words, time_of
from windowlib.engines.collected import collected
from windowlib.model.errors import WindowError
from windowlib.plans import names
from windowlib.plans.functions import F, quoted
from windowlib.plans.reruns import ADDED, CHANGED, REMOVED
from windowlib.reruns.findings import DIFFERENCE, Findings, opened, rows_of
from windowlib.reruns.places import of_files
from windowlib.reruns.previews import Summary
from windowlib.source.listing import waiting_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LARGEST = 10
GREATEST = "cast('1.7976931348623157E308' AS double)"  # of all numbers; infinity and NaN are above it


def summary_of(inputs: Inputs, found: Findings) -> Summary:
    """What a rerun would change, summed up."""
    added, changed, removed = (found.differing.get(kind, 0) for kind in (ADDED, CHANGED, REMOVED))
    windows = {"added": added, REMOVED: removed, "changed": changed}
    rows = difference_rows(inputs)
    sums: dict[str, list[Any]] = {}
    largest: list[dict[str, Any]] = []
    if rows is not None:
        if found.closure.by_chains and added and removed:
            windows |= _merged_and_split(rows, inputs.source.key)
        sums = _sums(rows, inputs.definition.aggregates.additive)
        largest = _largest(rows, inputs.source.key, found.step.output_names)
    after = windows_opened(inputs)
    before, late = (0, 0) if found.closure.is_empty else (_in_flight(inputs, found), _late(inputs, found))
    return Summary(
        windows=windows,
        sums=sums,
        in_flight=[before, after],
        late_readmitted=late,
        rows_to_write={
            "results": added + changed,
            "result_changes": sum(found.differing.values()),
            "open_windows": after,
        },
        reaches_ms=[found.closure.windows.from_ms, found.closure.windows.to_ms],
        files_read=sum(file.now is not None for file in found.read.files),
        bytes_read=found.read.bytes_read,
        files_missing=[file.path for file in found.read.files if file.now is None and not file.replaced],
        files_changed=sum(file.changed or file.replaced for file in found.read.files),
        files_waiting=_waiting(inputs),
        largest=largest,
    )


def difference_rows(inputs: Inputs) -> DataFrame | None:
    """The staged difference, with part; None without a row."""
    if not inputs.staged.written(DIFFERENCE):
        return None
    return inputs.spark.read.parquet(str(inputs.staging / DIFFERENCE))


def windows_opened(inputs: Inputs) -> int:
    """How many windows (aligned: slices) the rerun leaves in flight."""
    return sum(rows_of(path) for path, _ in opened(inputs))


def _waiting(inputs: Inputs) -> int | None:
    """How many new files no run has read; None where the source cannot be listed."""
    try:
        return len(waiting_files(inputs.source, inputs.opened, inputs.before, check=False))
    except WindowError:
        return None


def _merged_and_split(rows: DataFrame, keys: Sequence[str]) -> dict[str, int]:
    """New sessions that two or more removed ones went into; removed ones that two or more came out of."""

    def side(kind: str, name: str) -> DataFrame:
        bounds = [F.col("window_start").alias(f"{name}_start"), F.col("window_end").alias(f"{name}_end")]
        return rows.where(f"part = '{kind}'").select(*map(quoted, keys), *bounds)

    overlap = (F.col("new_start") < F.col("old_end")) & (F.col("old_start") < F.col("new_end"))
    new, old = side(ADDED, "new"), side(REMOVED, "old")
    pairs = new.join(old, list(keys)).where(overlap) if keys else new.crossJoin(old).where(overlap)
    keyed = [*map(quoted, keys)]

    def several(name: str) -> int:
        return pairs.groupBy(*keyed, f"{name}_start", f"{name}_end").count().where("count > 1").count()

    return {"merged": several("new"), "split": several("old")}


def _numeric(rows: DataFrame, outputs: Sequence[str]) -> list[str]:
    kinds = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
    types = {field.name: field.dataType.simpleString().partition("(")[0] for field in rows.schema}
    return [name for name in outputs if types[name] in kinds]


def _sums(rows: DataFrame, outputs: Sequence[str]) -> dict[str, list[Any]]:
    """The sums of outputs over the windows that differ: before, after."""
    if not outputs:
        return {}
    before = [F.expr(f"try_sum({names.BEFORE}.{quoted(name)})").alias(f"b{i}") for i, name in enumerate(outputs)]
    now = (f"if(part = '{REMOVED}', null, {quoted(name)})" for name in outputs)
    after = [F.expr(f"try_sum({sql})").alias(f"a{i}") for i, sql in enumerate(now)]
    summed = rows.agg(*before, *after).first()
    assert summed is not None
    return {name: [summed[f"b{i}"] or 0, summed[f"a{i}"] or 0] for i, name in enumerate(outputs)}


def _largest(rows: DataFrame, keys: Sequence[str], outputs: Sequence[str]) -> list[dict[str, Any]]:
    """The windows that change most: their outputs before and after, None where there were none.

    A window's change is the greatest of those of its numeric outputs, each as a share of the greatest change of that
    output in any window; one that is infinite or NaN comes before all others. Equal ones stand by key and time.
    """
    numeric = _numeric(rows, outputs)
    changes = [_change(quoted(name)) for name in numeric]
    finite = [f"max(if({change} <= {GREATEST}, {change}, null)) AS m{i}" for i, change in enumerate(changes)]
    most = rows.selectExpr(*finite).first() if finite else None
    shares = [
        f"if({change} > {GREATEST}, 2, {change} / cast('{(most and most[f'm{i}']) or 1.0!r}' AS double))"
        for i, change in enumerate(changes)
    ]
    share = f"greatest(0, 0, {', '.join(shares)})" if shares else "0"
    chosen = rows.orderBy(F.expr(share).desc(), *map(quoted, keys), "window_start").limit(LARGEST)
    shown = []
    for row in collected(chosen):
        was = row[names.BEFORE]
        shown.append(
            {
                "change": row["part"],
                **{key: row[key] for key in keys},
                "window": in_words((time_of(row["window_start"]), time_of(row["window_end"]))).removesuffix(" UTC"),
                "before": {name: was[name] for name in outputs} if was else None,
                "after": None if row["part"] == REMOVED else {name: row[name] for name in outputs},
            }
        )
    return shown


def _change(column: str) -> str:
    """By how much a numeric output differs, as SQL; not below 0. What is not there counts as 0."""
    after = f"if(part = '{REMOVED}', 0, coalesce(cast({column} AS double), 0))"
    return f"abs({after} - coalesce(cast({names.BEFORE}.{column} AS double), 0))"


def _in_flight(inputs: Inputs, found: Findings) -> int:
    """How many windows in flight the closure has now."""
    rows = inputs.tables.rows("open_windows", found.closure.state_files(inputs.tables))
    return 0 if rows is None else rows.count() - found.closure.others(rows, found.step).count()


def _late(inputs: Inputs, found: Findings) -> int:
    """How many late events would be in a window."""
    rows = of_files(inputs, "late_events", [file.path for file in found.read.files if file.unchanged])
    return 0 if rows is None else found.readmitted(inputs, rows.where("readmitted_by IS NULL")).count()
