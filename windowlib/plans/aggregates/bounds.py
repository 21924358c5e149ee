"""Limit on the number of values that a window keeps. A window above the limit fails the run, and the message names
the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.plans.aggregates.functions import FUNCTIONS
from windowlib.plans.functions import F, quoted
from windowlib.plans.step import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOO_MANY = "windowlib.bounds"  # prefix of the message


def within_bounds(rows: DataFrame, step: Step, start_ms: str | None) -> DataFrame:
    """Adds checks to rows of merged partials: a row that keeps too many values raises an error in the engine.

    start_ms: SQL of the window's start, or None if windows have no bounds
    """
    most = step.aggregates.most_values
    checked = {}
    for index, aggregate in enumerate(step.aggregates.aggregates):
        for part in FUNCTIONS[aggregate.function].parts:
            if part.bounded:
                name = f"p{index}_{part.name}"
                message = _message(step, str(aggregate), most, start_ms)
                checked[name] = F.expr(f"case when size({name}) > {most} then raise_error({message}) else {name} end")
    return rows.withColumns(checked) if checked else rows


def _message(step: Step, aggregate: str, most: int, start_ms: str | None) -> str:
    key = ", ', ', ".join(f"coalesce(cast({quoted(key)} as string), 'null')" for key in step.keys)
    key_text = f", ' of key ', {key}" if step.keys else ""
    window = f", ' from ', cast(timestamp_millis({start_ms}) as string)" if start_ms else ""
    more = _text(f" keeps more than {most:,} values for {aggregate}")
    return f"concat({_text(f'{TOO_MANY}: a window')}{key_text}{window}, {more})"


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
