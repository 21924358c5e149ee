"""Test that a rerun gives the outcome of its preview: the same rows added, changed and removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from windowlib.batches.inputs import Inputs
from windowlib.contract.result_tables import UNCOMPARED
from windowlib.definition.instants import in_words, instant, time_of
from windowlib.engines.collect import collected
from windowlib.ledger.rerun_request import RerunRefused
from windowlib.plans import names
from windowlib.plans.functions import F, quoted
from windowlib.plans.reruns import equal
from windowlib.publication.publish import staged
from windowlib.reruns.findings import DIFFERENCE, Findings
from windowlib.reruns.previews import FOLDER, load
from windowlib.reruns.summary import difference_rows, windows_opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_expected(inputs: Inputs, findings: Findings) -> None:
    """Raises `RerunRefused` if a rerun that names a preview would give another outcome."""
    if not inputs.rerun.preview_id:
        return
    store = inputs.definition.store
    expected = load(store, inputs.rerun.preview_id)
    folder = f"{FOLDER}/{expected.preview_id}/{DIFFERENCE}"
    previewed = inputs.spark.read.parquet(f"{store.url}/{folder}") if staged(store, folder) else None
    if previewed is None and any(expected.summary.windows.values()):
        raise RerunRefused(f"the rows of preview {expected.preview_id} no longer exist: make a new preview")
    head = f"preview {expected.preview_id} is of {instant(expected.at_ms)}, after batch {expected.base_batch_id};"
    if previewed is not None and not _has_the_columns(previewed, inputs.source.key, findings):
        raise RerunRefused(
            f"{head} results have another key or other columns now. Nothing was changed. Make a new preview"
        )
    now = difference_rows(inputs)
    moved = _moved(previewed, now, inputs.source.key, findings)
    in_flight = windows_opened(inputs)
    if not moved and in_flight == expected.summary.in_flight[1]:
        return
    differing = (
        "\n".join(f"  {window}" for window in moved)
        or f"  {in_flight} windows in flight, not {expected.summary.in_flight[1]}"
    )
    raise RerunRefused(
        f"{head} what it would change is different now:\n{differing}\nNothing was changed. Make a new preview"
    )


def _has_the_columns(previewed: DataFrame, keys: Sequence[str], findings: Findings) -> bool:
    """Tests if the rows of a preview have the current key columns and value columns of `results`."""
    before: Any = previewed.schema[names.BEFORE].dataType
    return {*keys} <= {*previewed.columns} and {*before.names} == {*findings.step.value_names}


def _moved(previewed: DataFrame | None, now: DataFrame | None, keys: Sequence[str], findings: Findings) -> list[str]:
    """Windows, five at most, whose outcome differs from the preview."""
    identity, values = [*keys, "window_start", "window_end"], findings.step.value_names
    shown = [*map(quoted, identity)]
    if previewed is None or now is None:
        some = previewed if previewed is not None else now
        return [] if some is None else [_named(row, keys) for row in collected(some.select(*shown).limit(5))]
    types, exact = {field.name: field.dataType for field in now.schema}, findings.step.aggregates.exact

    def side(rows: DataFrame, name: str) -> DataFrame:
        held = F.struct(*map(quoted, values))
        described = F.struct("part", held.alias("after"), F.col(names.BEFORE).alias("before")).alias(name)
        return rows.select(*shown, described)

    both = side(previewed, "_said").join(side(now, "_now"), identity, "full_outer")
    same = F.col("_said.part").eqNullSafe(F.col("_now.part"))
    for value in (name for name in values if name not in UNCOMPARED):
        for when in ("after", "before"):
            left, right = (F.col(f"{alias}.{when}.{quoted(value)}") for alias in ("_said", "_now"))
            same = same & equal(left, right, types[value], exact=value in exact)
    return [_named(row, keys) for row in collected(both.where(~same).select(*shown).limit(5))]


def _named(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    key = ", ".join(str(row[name]) for name in keys)
    bounds = in_words((time_of(row["window_start"]), time_of(row["window_end"])))
    return f"{key + ': ' if key else ''}window {bounds}"
