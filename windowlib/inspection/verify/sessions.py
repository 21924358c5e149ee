"""Expected sessions.

1. *Parts*: touching events of one key and batch always form one interval, so they are aggregated first.
2. *Chains*: touching parts of a key. A chain of one part is one session, or late, unless a rerun covers the chain.
3. All other chains are settled batch by batch (`windowlib.inspection.verify.settled`), by parts instead of events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowlib.inspection.verify.events import BATCH, IS_LATE, LATE_IN, READMITTED_BY, CountedRows
from windowlib.inspection.verify.expected import ExpectedWindows, meets_any
from windowlib.inspection.verify.recorded import RecordedPast
from windowlib.inspection.verify.request import VerifyRequest
from windowlib.inspection.verify.settled import LatenessBound, Past, SessionPart, settle
from windowlib.model.rerun import TimeRange
from windowlib.plans import names
from windowlib.plans.functions import F, quoted
from windowlib.plans.geometry import longest_own_window, slice_start
from windowlib.plans.reruns import CHAIN_END_MS, CHAIN_START_MS
from windowlib.plans.step import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windowlib.batches.inputs import Inputs

START, END = "window_start_ms", "window_end_ms"
RESULT, IN_FLIGHT, LATE, IN_WINDOW = "result", "in_flight", "late", "in_window"  # state of a settled row
OF_PART = ("_batch", "_late_in", "_readmitted_by")
PARTS = "array<struct<batch:bigint,readmitted_by:bigint,start:bigint,end:bigint>>"
STATES = "array<struct<batch:bigint,readmitted_by:bigint,start:bigint,state:string,first:bigint,last:bigint>>"


@dataclass(frozen=True, slots=True)
class SessionChains:
    """Touching events of each key, aggregated per batch (`parts`), and touching parts (`chains`)."""

    step: Step
    parts: DataFrame
    chains: DataFrame


def chained(inputs: Inputs, counted: CountedRows) -> SessionChains:
    """The parts and chains of the counted rows."""
    parts = parts_of(inputs, counted)
    return SessionChains(counted.step, parts, chains_of(inputs, parts, counted.step))


def parts_of(inputs: Inputs, counted: CountedRows) -> DataFrame:
    """Aggregates rows to parts: key, START, END, _batch, _late_in, _readmitted_by, partials, _listed."""
    step, time = counted.step, F.col(names.TIMESTAMP_MS)
    listed = F.sum(F.expr(f"if({IS_LATE}, 1L, 0L)")).alias("_listed")
    bounds = [F.min(time).alias(START), (F.max(time) + longest_own_window(step.assigner)).alias(END)]
    of_part = [F.col(name).alias(alias) for name, alias in zip((BATCH, LATE_IN, READMITTED_BY), OF_PART, strict=True)]
    slices = counted.rows.groupBy(*step.key_columns, *of_part, slice_start(step.assigner).alias("_bucket"))
    joined = step.dialect.with_islands(slices.agg(*bounds, *step.partials(), listed), [*step.keys, *OF_PART])
    whole = [F.min(START).alias(START), F.max(END).alias(END), F.sum("_listed").alias("_listed")]
    parts = joined.groupBy(*step.key_columns, *OF_PART, "_island").agg(*whole, *step.merges()).drop("_island")
    return inputs.staged.write_and_read(parts, inputs.staged.unused("parts"))


def chains_of(inputs: Inputs, parts: DataFrame, step: Step) -> DataFrame:
    """Aggregates touching parts, with CHAIN_START_MS, CHAIN_END_MS, _parts (number), and maxima of OF_PART."""
    chained = step.dialect.with_islands(parts, step.keys).groupBy(*step.key_columns, "_island")
    whole = {
        CHAIN_START_MS: F.min(START),
        CHAIN_END_MS: F.max(END),
        "_parts": F.count(F.lit(1)),
        "_listed": F.sum("_listed"),
        **{name: F.max(name) for name in OF_PART},
    }
    summed = chained.agg(*step.merges(), *(column.alias(name) for name, column in whole.items())).drop("_island")
    return inputs.staged.write_and_read(summed, inputs.staged.unused("chains"))


def expected(
    inputs: Inputs, chained: SessionChains, recorded: RecordedPast, request: VerifyRequest, unsure: Sequence[TimeRange]
) -> ExpectedWindows:
    """Sessions that overlap the requested range. Omits sessions of chains that touch an `unsure` span."""
    step, chains, past = chained.step, chained.chains, recorded.past
    spans = [rerun.span for rerun in past.reruns if not rerun.late_only]
    bounds = CHAIN_START_MS, CHAIN_END_MS
    is_unsure = meets_any(unsure, *bounds, touching=True)
    settling = f"(_parts > 1 OR _readmitted_by > 0 OR {meets_any(spans, *bounds)})"
    sure = chains.where(f"NOT {is_unsure}").where(request.meets(*bounds))
    simple = _simple(sure.where(f"NOT {settling}"), step, past.now)
    history = _settled(sure.where(settling), chained.parts, step, past)
    all_rows = step.dialect.union([simple, history])
    chosen = all_rows.where(request.meets(START, END))
    keys = [*map(quoted, step.keys)]
    windows = chosen.where(f"_state IN ('{RESULT}', '{IN_FLIGHT}')")
    summed = windows.groupBy(*keys, "_state", START, END).agg(*step.merges())
    late = chosen.where(f"_state IN ('{LATE}', '{IN_WINDOW}')").selectExpr(
        *keys, START, END, "_batch AS batch_id", f"if(_state = '{LATE}', elements, 0) AS should_be", "_listed AS is"
    )
    summed = inputs.staged.write_and_read(summed, inputs.staged.unused("sessions"))
    return ExpectedWindows(
        step,
        summed.where(f"_state = '{RESULT}'"),
        summed.where(f"_state = '{IN_FLIGHT}'"),
        late,
        chains.where(is_unsure).select(*keys, *bounds) if unsure else None,
    )


def _simple(chains: DataFrame, step: Step, now: LatenessBound) -> DataFrame:
    """States of chains of one part.

    Returns a row per chain with LATE or IN_WINDOW, and further rows with RESULT and IN_FLIGHT as they apply.
    """
    bounded = step.dialect.with_values(chains, {"_watermark": now.watermark_ms, "_late_out": now.late_up_to_ms})
    states = (
        f"filter(array(if({CHAIN_END_MS} - 1 <= _late_in, '{LATE}', '{IN_WINDOW}'),"
        f" if({CHAIN_END_MS} - 1 > _late_in AND {CHAIN_END_MS} - 1 <= _watermark, '{RESULT}', ''),"
        f" if({CHAIN_END_MS} - 1 > _late_in AND {CHAIN_END_MS} - 1 > _late_out, '{IN_FLIGHT}', '')), x -> x != '')"
    )
    each = bounded.selectExpr("*", f"explode({states}) AS _state")
    return each.selectExpr(
        *map(quoted, step.keys), f"{CHAIN_START_MS} AS {START}", f"{CHAIN_END_MS} AS {END}",
        "_state", "_batch", "_listed", *step.partial_names,
    )  # fmt: skip


def _settled(chains: DataFrame, parts: DataFrame, step: Step, past: Past) -> DataFrame:
    """States of the parts of other chains.

    Returns a row for each part and session that contains the part, and a row for each part with LATE or IN_WINDOW.
    """
    from pyspark.sql.types import StructField, StructType

    named = chains.select(*step.other_key_columns, CHAIN_START_MS, CHAIN_END_MS)
    inside = (F.col(START) >= F.col(CHAIN_START_MS)) & (F.col(END) <= F.col(CHAIN_END_MS))
    of_chain = parts.join(named, step.with_same_key(inside))
    member = (
        "named_struct('batch', _batch, 'readmitted_by', _readmitted_by, 'start', window_start_ms, 'end', window_end_ms)"
    )
    members = F.expr(f"collect_list({member})").cast(PARTS).alias("_members")
    gathered = of_chain.groupBy(*step.key_columns, CHAIN_START_MS).agg(members)
    own = [gathered.schema[key] for key in step.keys]
    states_type = parts.sparkSession.createDataFrame([], f"states {STATES}").schema["states"].dataType
    schema = StructType([*own, StructField("_all", states_type)])
    settled = gathered.mapInArrow(SettleChains(tuple(step.keys), past), schema)
    each = settled.select(*step.other_key_columns, F.explode("_all").alias("_settled"))
    same = (F.col("_batch") == F.col("_settled.batch")) & (F.col("_readmitted_by") == F.col("_settled.readmitted_by"))
    same = same & (F.col(START) == F.col("_settled.start"))
    return parts.join(each, step.with_same_key(same)).selectExpr(
        *map(quoted, step.keys), f"_settled.first AS {START}", f"_settled.last AS {END}", "_settled.state AS _state",
        "_batch", "_listed", *step.partial_names,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SettleChains:
    """Settles one chain per row: takes the keys and _members, returns the keys and _all."""

    keys: tuple[str, ...]
    past: Past

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            settled = [self._states(members) for members in batch.column("_members").to_pylist()]
            kept = [batch.column(key) for key in self.keys]
            yield pa.RecordBatch.from_arrays([*kept, pa.array(settled, type=_STATES)], names=[*self.keys, "_all"])

    def _states(self, members: Sequence[dict[str, int]]) -> list[dict[str, Any]]:
        parts = [SessionPart(m["batch"], m["readmitted_by"], m["start"], m["end"]) for m in members]
        settled = settle(parts, self.past)
        states: list[tuple[int, str, int, int]] = []
        for name, sessions in ((RESULT, settled.results), (IN_FLIGHT, settled.in_flight)):
            states += [(n, name, *window) for window, numbers in sessions.items() for n in numbers]
        states += [(n, LATE if n in settled.late else IN_WINDOW, *part.window) for n, part in enumerate(parts)]
        return [
            {
                "batch": parts[n].batch_id,
                "readmitted_by": parts[n].readmitted_by,
                "start": parts[n].start_ms,
                "state": name,
                "first": first,
                "last": last,
            }
            for n, name, first, last in states
        ]


_STATES = pa.list_(
    pa.struct(
        [
            ("batch", pa.int64()),
            ("readmitted_by", pa.int64()),
            ("start", pa.int64()),
            ("state", pa.string()),
            ("first", pa.int64()),
            ("last", pa.int64()),
        ]
    )
)
