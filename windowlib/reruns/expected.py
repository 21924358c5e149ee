"""Whether a rerun comes out as its preview said: every row that would be added, changed or removed must be the same."""

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


def check_expected(inputs: Inputs, found: Findings) -> None:
    """Raises `RerunRefused` where a rerun that names a preview would not come out as that said."""
    if not inputs.rerun.preview_id:
        return
    expected = load(inputs.definition.root, inputs.rerun.preview_id)
    folder = inputs.definition.root / FOLDER / expected.preview_id / DIFFERENCE
    said = inputs.spark.read.parquet(str(folder)) if any(staged(folder)) else None
    if said is None and any(expected.summary.windows.values()):
        raise RerunRefused(f"the rows of preview {expected.preview_id} are no longer there: make a new one")
    head = f"preview {expected.preview_id} is of {instant(expected.at_ms)}, after batch {expected.base_batch_id};"
    if said is not None and not _has_the_columns(said, inputs.source.key, found):
        raise RerunRefused(
            f"{head} results have another key or other columns by now. Nothing was changed. Make a new preview"
        )
    now = difference_rows(inputs)
    moved = _moved(said, now, inputs.source.key, found)
    in_flight = windows_opened(inputs)
    if not moved and in_flight == expected.summary.in_flight[1]:
        return
    differing = (
        "\n".join(f"  {one}" for one in moved)
        or f"  {in_flight} windows in flight, not {expected.summary.in_flight[1]}"
    )
    raise RerunRefused(
        f"{head} what it would change is different now:\n{differing}\nNothing was changed. Make a new preview"
    )


def _has_the_columns(said: DataFrame, keys: Sequence[str], found: Findings) -> bool:
    """Whether the rows of a preview have the key and the values that results have now."""
    had: Any = said.schema[names.BEFORE].dataType
    return {*keys} <= {*said.columns} and {*had.names} == {*found.step.value_names}


def _moved(said: DataFrame | None, now: DataFrame | None, keys: Sequence[str], found: Findings) -> list[str]:
    """Windows, five at most, that do not come out as it was said."""
    identity, values = [*keys, "window_start", "window_end"], found.step.value_names
    shown = [*map(quoted, identity)]
    if said is None or now is None:
        some = said if said is not None else now
        return [] if some is None else [_named(row, keys) for row in collected(some.select(*shown).limit(5))]
    types, exact = {field.name: field.dataType for field in now.schema}, found.step.aggregates.exact

    def side(rows: DataFrame, name: str) -> DataFrame:
        held = F.struct(*map(quoted, values))
        described = F.struct("part", held.alias("after"), F.col(names.BEFORE).alias("before")).alias(name)
        return rows.select(*shown, described)

    both = side(said, "_said").join(side(now, "_now"), identity, "full_outer")
    same = F.col("_said.part").eqNullSafe(F.col("_now.part"))
    for value in (name for name in values if name not in UNCOMPARED):
        for when in ("after", "before"):
            one, other = (F.col(f"{of}.{when}.{quoted(value)}") for of in ("_said", "_now"))
            same = same & equal(one, other, types[value], exact=value in exact)
    return [_named(row, keys) for row in collected(both.where(~same).select(*shown).limit(5))]


def _named(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    key = ", ".join(str(row[name]) for name in keys)
    bounds = in_words((time_of(row["window_start"]), time_of(row["window_end"])))
    return f"{key + ': ' if key else ''}window {bounds}"
