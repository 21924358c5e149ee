"""Gauges of pipelines for a monitor, in a text file: the exposition format that Prometheus and OpenMetrics share.

A file `metrics.prom` next to the tables (for example for the textfile collector of node_exporter), replaced as a whole.
Times are seconds since 1970 UTC; what is not known has no sample. The file is as old as the last run that did
something: how far the watermark is behind now is `time() - windowlib_watermark_timestamp_seconds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.delta import disk
from windowlib.delta.tables import Tables
from windowlib.inspection.reported_situations import situations
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.rows import LedgerState
from windowlib.pages.newest_rows import RecentRun, Tail, tail
from windowlib.quality.firings import windows_fired

FILE = "metrics.prom"
FEW = 50  # rows of the ledger, of which a batch has four or five
ASIDE = "reruns, decisions and what was undone aside"
GAUGES = {
    "last_commit_timestamp_seconds": "When the newest batch was committed.",
    "watermark_timestamp_seconds": "The watermark: results are complete up to it.",
    "watermark_lag_seconds": "How far the watermark was behind the time that the newest batch was planned at.",
    "results": "Rows of results.",
    "fired": f"Windows that the newest batch fired, {ASIDE}.",
    "read": f"Rows that the newest batch read, {ASIDE}.",
    "late": f"Late events of the newest batch, {ASIDE}.",
    "quarantined": f"Rows that the newest batch quarantined, {ASIDE}.",
    "run_seconds": f"How long the newest batch took, {ASIDE}.",
    "waiting_for_decision": "1 where a batch was refused by its checks and waits for an operator.",
    "situations": "Situations that notices have reported and that are not over.",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of one gauge, of one pipeline."""

    gauge: str
    pipeline: str
    value: float


def samples(definition: Definition, now_ms: int, ledger: Ledger | None = None) -> list[Sample]:
    """What is known of a pipeline; `ledger` is that of a caller who has its tables open.

    Raises `WindowError` where they cannot be read.
    """
    ledger = ledger or ledger_of(definition, lambda: now_ms)
    state = ledger.state()
    return samples_of(definition, now_ms, ledger.tables, state, _newest(ledger.tables, state.version))


def samples_of(definition: Definition, now_ms: int, tables: Tables, state: LedgerState, newest: Tail) -> list[Sample]:
    """The same, by those who have read the end of the ledger."""
    found: dict[str, float | None] = {
        "waiting_for_decision": int(state.plan is not None and state.is_refused),
        "situations": sum(one.sentence is not None for one in situations(definition.root, tables, now_ms)),
    }
    found |= _of_newest(newest.runs[0]) if newest.runs else {}
    found |= _of_reading(reading) if (reading := next(_reading(newest), None)) else {}
    return [Sample(gauge, definition.name, value) for gauge in GAUGES if (value := found.get(gauge)) is not None]


def _newest(tables: Tables, version: int | None) -> Tail:
    """As much of the ledger as has the newest batch that read something: mostly the last `FEW` rows."""
    found = tail(tables, version, FEW)
    return found if found.is_whole or any(_reading(found)) else tail(tables, version)


def _reading(newest: Tail) -> Iterator[RecentRun]:
    """The batches that are neither reruns nor decisions and were not undone since, the newest first."""
    return (one for one in newest.in_force if one.rerun is None and one.decision is None)


def exposed(found: Iterable[Sample]) -> str:
    r"""Samples as text, those of a gauge together.

    >>> print(exposed([Sample("late", "clicks", 2), Sample("late", 'odd"name', 0.5)]), end="")
    # HELP windowlib_late Late events of the newest batch, reruns, decisions and what was undone aside.
    # TYPE windowlib_late gauge
    windowlib_late{pipeline="clicks"} 2
    windowlib_late{pipeline="odd\"name"} 0.5
    # EOF
    """
    by_gauge: dict[str, list[Sample]] = {}
    for one in found:
        by_gauge.setdefault(one.gauge, []).append(one)
    lines = [line for gauge, of in by_gauge.items() for line in _of_gauge(gauge, of)]
    return "\n".join([*lines, "# EOF\n"])


def write(found: Iterable[Sample], folder: Path) -> Path:
    """Writes the gauges of some pipelines into a folder; gives the file, whose readers see it whole."""
    return disk.put(folder / FILE, exposed(found))


def _of_newest(run: RecentRun) -> dict[str, float | None]:
    """What the newest batch left, whatever it was."""
    return {
        "last_commit_timestamp_seconds": run.at_ms / 1000,
        "watermark_timestamp_seconds": None if run.reached_ms is None else run.reached_ms / 1000,
        "watermark_lag_seconds": None if run.lag_ms is None else run.lag_ms / 1000,
        "results": run.figures.get("results_rows_after"),
    }


def _of_reading(run: RecentRun) -> dict[str, float | None]:
    """What the newest batch did that was neither a rerun nor a decision nor undone since."""
    figures = run.figures
    return {
        "fired": windows_fired(figures),
        "read": figures.get("rows_read"),
        "late": figures.get("rows_late"),
        "quarantined": figures.get("rows_quarantined"),
        "run_seconds": run.seconds,
    }


def _of_gauge(gauge: str, found: Iterable[Sample]) -> Iterator[str]:
    name = f"windowlib_{gauge}"
    yield f"# HELP {name} {GAUGES[gauge]}"
    yield f"# TYPE {name} gauge"
    for one in found:
        pipeline = one.pipeline.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        yield f'{name}{{pipeline="{pipeline}"}} {one.value!r}'
