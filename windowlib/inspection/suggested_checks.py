"""Bounds of checks, proposed from the figures of at least eight weeks, as TOML for the definition.

Figures are those of all committed batches since the last migration, without reruns. Bounds of result columns come from
the statistics of the files of `results`. A bound is the usual range of a figure (`windowlib.quality.bands`), rounded
outwards to two digits, so that the newest batches pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, log10

from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.definition.instants import utc
from windowlib.definition.plurals import counted
from windowlib.definition.toml.column_tests import ROW_COUNT
from windowlib.delta.data_files import DataFile
from windowlib.delta.statistics import finite_number
from windowlib.quality.bands import usual
from windowlib.quality.baselines import LEAST_DEVIATION, LEAST_LATE_SHARE, WEEK_MS, WEEKS
from windowlib.quality.figures import BY_DESIGN, share
from windowlib.quality.firings import windows_fired
from windowlib.runs.history import whole_history

Figures = Mapping[str, int | None]
DIGITS = 2  # of a bound
PLAN_TIME = "plan_time_ms"


@dataclass(frozen=True, slots=True)
class SuggestedChecks:
    """Proposed bounds as TOML, or the `problem` why there are none. `batches` are the batches behind the bounds."""

    pipeline: str
    batches: int
    toml: str | None = None
    problem: str | None = None


def suggested_checks(definition: Definition) -> SuggestedChecks:
    """Bounds for a pipeline. Fewer than `WEEKS` weeks of figures give a sentence instead."""
    ledger = ledger_of(definition)
    state = ledger.state()
    with_rows = (figures for figures in whole_history(ledger.tables, state) if figures.get("rows_read"))
    past = [figures for figures in with_rows if figures.get(PLAN_TIME) is not None]
    first_ms, last_ms = (past[at][PLAN_TIME] or 0 for at in (0, -1)) if past else (0, 0)
    if last_ms - first_ms < WEEKS * WEEK_MS:
        return SuggestedChecks(definition.name, len(past), problem=_too_short(len(past), first_ms, last_ms))
    of_results = ledger.tables["results"].files(state.pinned("results"))
    head = f"# From {counted(len(past), 'batch')}, {utc(first_ms):%Y-%m-%d} to {utc(last_ms):%Y-%m-%d}."
    lines = [head, "[checks]", *_bounds(definition, past)]
    columns = [line for output in definition.outputs for line in _of_column(output, of_results)]
    toml = "\n".join([*lines, *(["", "[checks.columns]", *columns] if columns else [])])
    return SuggestedChecks(definition.name, len(past), toml)


def _too_short(batches: int, first_ms: int, last_ms: int) -> str:
    weeks = (last_ms - first_ms) // WEEK_MS
    has = f"those of {counted(batches, 'batch')} over {counted(weeks, 'week')}" if batches else "none yet"
    return f"bounds need the figures of at least {WEEKS} weeks, and there are {has}; try again later"


def _bounds(definition: Definition, past: Sequence[Figures]) -> Iterator[str]:
    """Lines of `[checks]`, each with the number of batches that would have failed."""
    shares = {
        "max_late_share": [share(f.get("rows_late") or 0, f.get("rows_admitted") or 0) for f in past],
        "max_unusable_share": [share(_unusable(f), f.get("rows_read") or 0) for f in past],
    }
    if definition.source.event_id:
        repeated = [share(f.get("quarantined_duplicate") or 0, f.get("rows_read") or 0) for f in past]
        shares["max_duplicate_share"] = repeated
    for key, values in shares.items():
        _, high = _band(values)
        bound = min(1.0, max(LEAST_LATE_SHARE, outward(high, up=True)))
        yield f"{key} = {bound}  # {_outside(values, 0, bound)}"
    rows = [f.get(ROW_COUNT, windows_fired(f)) or 0 for f in past]
    low, high = _band(rows)
    least, most = int(outward(low, up=False)), int(outward(high, up=True))
    yield f'row_count = {{ min = {least}, max = {most}, severity = "warning" }}  # {_outside(rows, least, most)}'


def _unusable(figures: Figures) -> int:
    return (figures.get("rows_quarantined") or 0) - sum(figures.get(name) or 0 for name in BY_DESIGN)


def _band(values: Sequence[float]) -> tuple[float, float]:
    band = usual(values, least=LEAST_DEVIATION, enough=1)
    assert band is not None, "there are values"
    return band


def _outside(values: Sequence[float], low: float, high: float) -> str:
    failed = sum(not low <= value <= high for value in values)
    return f"{failed:,} of {len(values):,} batches would have failed"


def _of_column(output: str, files: Sequence[DataFile]) -> Iterator[str]:
    """Line of a result column, if its statistics are known in all files: no null, and the usual range of a number."""
    filled = [file for file in files if file.rows]
    if not filled or any(file.nulls.get(output) is None for file in filled):
        return
    tests = [] if any(file.nulls[output] for file in filled) else ["not_null = true"]
    spans = [(finite_number(file.low.get(output)), finite_number(file.high.get(output))) for file in filled]
    known_spans = [(float(low), float(high)) for low, high in spans if low is not None and high is not None]
    if known_spans and len(known_spans) == len(spans) and min(low for low, _ in known_spans) >= 0:
        _, high = _band([high for _, high in known_spans])
        tests = ["min = 0", f"max = {outward(max(high, known_spans[-1][1]), up=True)}", *tests]
    if tests:
        yield f'{output} = {{ {", ".join(tests)}, severity = "warning" }}'


def outward(bound: float, *, up: bool) -> float:
    """Rounds a bound that is not negative to `DIGITS` digits, away from the usual range.

    >>> outward(1234.5, up=True), outward(1234.5, up=False), outward(0.0312, up=True), outward(0.0, up=True)
    (1300, 1200, 0.032, 0)
    """
    if bound in (0, inf):
        return 0
    places = DIGITS - 1 - floor(log10(bound))
    unit = 10.0**-places
    rounded = round((ceil if up else floor)(round(bound / unit, 9)) * unit, max(places, 0))
    return int(rounded) if rounded == int(rounded) else rounded
