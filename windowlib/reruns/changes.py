"""Changes of a rerun, largest first. A change groups old windows with the new windows that replace them.

For windows that do not merge, each row of the difference is a change. For sessions, the overlapping old and new
sessions of a key are one change: a session that grew is `extended`, not removed and added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windowlib.contract.change import ADDED, REMOVED
from windowlib.definition.instants import in_words, time_of
from windowlib.engines.collect import collected
from windowlib.plans import names
from windowlib.plans.functions import F, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from windowlib.plans.dialect import Dialect

OF_ALL = ("added", "removed", "changed")  # kinds of change of all windows
OF_SESSIONS = ("extended", "shortened", "moved", "merged", "split", "regrouped")  # further kinds, of merging windows
LARGEST = 10
GREATEST = "cast('1.7976931348623157E308' AS double)"  # greatest finite double; infinity and NaN are above it
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
NEW, OLD = f"part <> '{REMOVED}'", f"part <> '{ADDED}'"
BOUNDS = ("old_from", "old_to", "new_from", "new_to")  # bounds of a change's old and new windows, in ms
KIND = """case
 when news = 0 then 'removed' when olds = 0 then 'added'
 when olds = 1 and news = 1 then case
  when new_from = old_from and new_to = old_to then 'changed'
  when new_from <= old_from and new_to >= old_to then 'extended'
  when new_from >= old_from and new_to <= old_to then 'shortened'
  else 'moved' end
 when news = 1 then 'merged' when olds = 1 then 'split' else 'regrouped' end"""


@dataclass(frozen=True, slots=True)
class RerunChanges:
    """Number of changes by kind, and the largest changes."""

    counts: dict[str, int]
    largest: list[dict[str, Any]]


def changes_of(
    rows: DataFrame, keys: Sequence[str], outputs: Sequence[str], additive: Sequence[str], merging: Dialect | None
) -> RerunChanges:
    """Changes in the rows of a difference, by two Spark jobs.

    `merging` is the dialect if the windows merge, else None. Changes are ranked by their largest additive
    difference, as a share of the largest difference of that output. Ties are ranked in the same way by the other
    numeric outputs, then by key and time. Infinite and NaN differences come first.
    """
    numeric = _numeric(rows.schema, outputs)
    changes = _grouped(rows, keys, outputs, numeric, additive, merging)
    finite = [F.expr(f"max(if(c{i} <= {GREATEST}, c{i}, null))").alias(f"m{i}") for i in range(len(numeric))]
    by_kind = collected(changes.groupBy("kind").agg(F.count(F.lit(1)).alias("n"), *finite))
    counts = dict.fromkeys((*OF_ALL, *(OF_SESSIONS if merging else ())), 0) | {row["kind"]: row["n"] for row in by_kind}
    most = [max((row[f"m{i}"] or 0.0 for row in by_kind), default=0.0) or 1.0 for i in range(len(numeric))]
    ranked = ([i for i, name in enumerate(numeric) if (name in additive) is adds_up] for adds_up in (True, False))
    shares = (F.expr(_share(numbers, most)).desc() for numbers in ranked if numbers)
    order: list[Any] = [*shares, *map(quoted, keys), "first_ms"]
    shown = changes.orderBy(*order).limit(LARGEST).select(*map(quoted, keys), "kind", "members")
    return RerunChanges(counts, [_entry(row, keys, outputs, additive) for row in collected(shown)])


def _numeric(schema: StructType, outputs: Sequence[str]) -> list[str]:
    types = {field.name: field.dataType.simpleString().partition("(")[0] for field in schema}
    return [name for name in outputs if types[name] in NUMBERS]


def _share(numbers: Sequence[int], most: Sequence[float]) -> str:
    """SQL for the greatest difference among outputs, each as a share of the output's greatest difference (`most`)."""
    shares = [f"if(c{i} > {GREATEST}, 2, c{i} / cast('{most[i]!r}' AS double))" for i in numbers]
    return f"greatest(0, 0, {', '.join(shares)})"


def _grouped(
    rows: DataFrame,
    keys: Sequence[str],
    outputs: Sequence[str],
    numeric: Sequence[str],
    additive: Sequence[str],
    merging: Dialect | None,
) -> DataFrame:
    """One row per change: key, kind, first_ms, c0, c1, … (difference of each numeric output), members."""
    members = _members(rows, keys, outputs, numeric)
    sums = ["olds", "news", *(f"{side}{i}" for i in range(len(numeric)) for side in "ba")]
    shown = [*map(quoted, keys)]
    if merging is None:
        grouped = members.selectExpr(*shown, *sums, *BOUNDS, "window_start_ms AS first_ms", "array(member) AS members")
    else:
        grouped = (
            merging.with_islands(members, keys)
            .groupBy(*shown, "_island")
            .agg(
                *(F.expr(f"sum({name})").alias(name) for name in sums),
                *(F.expr(f"{'min' if name.endswith('_from') else 'max'}({name})").alias(name) for name in BOUNDS),
                F.min("window_start_ms").alias("first_ms"),
                F.collect_list("member").alias("members"),
            )
        )
    alone = "olds <= 1 AND news <= 1"  # values of several windows can be compared only if they add up
    differences = (
        f"if({'true' if name in additive else alone}, abs(a{i} - b{i}), 0D) AS c{i}" for i, name in enumerate(numeric)
    )
    return grouped.selectExpr(*shown, f"{KIND} AS kind", "first_ms", *differences, "members")


def _members(rows: DataFrame, keys: Sequence[str], outputs: Sequence[str], numeric: Sequence[str]) -> DataFrame:
    """One row per window that differs.

    Columns: key, window_start_ms, window_end_ms, olds and news (0 or 1), `BOUNDS`, member, and b0, a0, b1, a1, …

    `b…` and `a…` are the numeric outputs before and after the rerun, 0 if there is no value.
    """
    after = ", ".join(f"{quoted(name)} AS v{i}" for i, name in enumerate(outputs))
    before = ", ".join(f"{names.BEFORE}.{quoted(name)} AS v{i}" for i, name in enumerate(outputs))
    sides = [
        f"if({of_side}, coalesce(cast({value} AS double), 0D), 0D) AS {side}{i}"
        for i, name in enumerate(numeric)
        for side, of_side, value in (("b", OLD, f"{names.BEFORE}.{quoted(name)}"), ("a", NEW, quoted(name)))
    ]
    start, end = "unix_millis(window_start)", "unix_millis(window_end) - 1"  # windows that only touch do not overlap
    of_sides = {"old_from": (OLD, start), "old_to": (OLD, end), "new_from": (NEW, start), "new_to": (NEW, end)}
    return rows.selectExpr(
        *map(quoted, keys),
        f"{start} AS window_start_ms",
        f"{end} AS window_end_ms",
        f"if({OLD}, 1, 0) AS olds",
        f"if({NEW}, 1, 0) AS news",
        *(f"if({of_side}, {bound}, null) AS {name}" for name, (of_side, bound) in of_sides.items()),
        *sides,
        f"struct(part, window_start, window_end, struct({after}) AS after, struct({before}) AS before) AS member",
    )


def _entry(
    row: Mapping[str, Any], keys: Sequence[str], outputs: Sequence[str], additive: Sequence[str]
) -> dict[str, Any]:
    """A change as a preview stores it: old and new bounds, and the values before and after.

    If a side has several windows, its values are the sums of additive outputs.
    """
    members = sorted(row["members"], key=lambda member: (member["window_start"], member["part"]))
    sides: dict[str, Any] = {}
    for side, other in (("before", ADDED), ("after", REMOVED)):
        of_side = [member for member in members if member["part"] != other]
        bounds = [in_words((time_of(m["window_start"]), time_of(m["window_end"]))) for m in of_side]
        values = [{name: member[side][f"v{i}"] for i, name in enumerate(outputs)} for member in of_side]
        sides[f"windows_{side}"] = [text.removesuffix(" UTC") for text in bounds]
        sides[side] = _together(values, additive)
    return {"change": row["kind"], **{key: row[key] for key in keys}, **sides}


def _together(values: Sequence[Mapping[str, Any]], additive: Sequence[str]) -> dict[str, Any] | None:
    """Values of one side of a change, or sums if the side has several windows; None if it has no window.

    >>> _together([{"n": 1, "mean": 2.5}, {"n": 2, "mean": None}], ["n"])
    {'n': 3}
    """
    if len(values) < 2:
        return dict(values[0]) if values else None
    by_name = {name: [value[name] for value in values if value[name] is not None] for name in additive}
    return {name: sum(parts[1:], parts[0]) if parts else None for name, parts in by_name.items()}
