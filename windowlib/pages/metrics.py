"""Gauges of pipelines for a monitor, in the text format that Prometheus and OpenMetrics share.

The file `metrics.prom` next to the tables is replaced as a whole, for example for the textfile collector of
node_exporter. Times are seconds since 1970 UTC. An unknown value has no sample. The file is only as new as the last run
that changed something. The current lag of the watermark is `time() - windowlib_watermark_timestamp_seconds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.delta.tables import Tables
from windowlib.inspection.reported_situations import situations
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.rows import LedgerState
from windowlib.pages.newest_rows import RecentRun, Tail, tail
from windowlib.quality.firings import windows_fired
from windowlib.storage.store import Store

FILE = "metrics.prom"
FEW = 50  # rows of the ledger; a batch has four or five
ASIDE = "not counting reruns, decisions and undone batches"
GAUGES = {
    "last_commit_timestamp_seconds": "Time of the newest commit.",
    "watermark_timestamp_seconds": "Watermark: results are complete up to it.",
    "watermark_lag_seconds": "Distance of the watermark behind the plan time of the newest batch.",
    "results": "Rows of results.",
    "fired": f"Windows that the newest batch fired, {ASIDE}.",
    "read": f"Rows that the newest batch read, {ASIDE}.",
    "late": f"Late events of the newest batch, {ASIDE}.",
    "quarantined": f"Rows that the newest batch quarantined, {ASIDE}.",
    "run_seconds": f"Duration of the newest batch, {ASIDE}.",
    "waiting_for_decision": "1 if a batch was refused by its checks and waits for an operator.",
    "situations": "Reported situations that are not over.",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """Value of one gauge of one pipeline."""

    gauge: str
    pipeline: str
    value: float


def samples(definition: Definition, now_ms: int, ledger: Ledger | None = None) -> list[Sample]:
    """Samples of a pipeline. For `ledger`, see `observe_pipeline`.

    Raises `WindowError` if the tables cannot be read.
    """
    ledger = ledger or ledger_of(definition, lambda: now_ms)
    state = ledger.state()
    return samples_of(definition, now_ms, ledger.tables, state, _newest(ledger.tables, state.version))


def samples_of(definition: Definition, now_ms: int, tables: Tables, state: LedgerState, newest: Tail) -> list[Sample]:
    """Samples of a pipeline. `newest` is the end of its ledger, which the caller has read."""
    values: dict[str, float | None] = {
        "waiting_for_decision": int(state.plan is not None and state.is_refused),
        "situations": sum(situation.sentence is not None for situation in situations(definition.store, tables, now_ms)),
    }
    values |= _newest_values(newest.runs[0]) if newest.runs else {}
    values |= _reading_values(reading) if (reading := next(_reading(newest), None)) else {}
    return [Sample(gauge, definition.name, value) for gauge in GAUGES if (value := values.get(gauge)) is not None]


def _newest(tables: Tables, version: int | None) -> Tail:
    """End of the ledger that includes the newest batch that read rows: mostly the last `FEW` rows."""
    newest = tail(tables, version, FEW)
    return newest if newest.is_whole or any(_reading(newest)) else tail(tables, version)


def _reading(newest: Tail) -> Iterator[RecentRun]:
    """Batches that are no reruns, no decisions and not undone, newest first."""
    return (run for run in newest.in_force if run.rerun is None and run.decision is None)


def exposed(gauge_samples: Iterable[Sample]) -> str:
    r"""Samples as text, grouped by gauge.

    >>> print(exposed([Sample("late", "clicks", 2), Sample("late", 'odd"name', 0.5)]), end="")
    # HELP windowlib_late Late events of the newest batch, not counting reruns, decisions and undone batches.
    # TYPE windowlib_late gauge
    windowlib_late{pipeline="clicks"} 2
    windowlib_late{pipeline="odd\"name"} 0.5
    # EOF
    """
    by_gauge: dict[str, list[Sample]] = {}
    for sample in gauge_samples:
        by_gauge.setdefault(sample.gauge, []).append(sample)
    lines = [line for gauge, group in by_gauge.items() for line in _gauge_lines(gauge, group)]
    return "\n".join([*lines, "# EOF\n"])


def write(gauge_samples: Iterable[Sample], store: Store) -> None:
    """Writes the gauges of some pipelines. Readers never see a part of them."""
    store.put(FILE, exposed(gauge_samples).encode())


def _newest_values(run: RecentRun) -> dict[str, float | None]:
    """Values after the newest batch of any kind."""
    return {
        "last_commit_timestamp_seconds": run.at_ms / 1000,
        "watermark_timestamp_seconds": None if run.reached_ms is None else run.reached_ms / 1000,
        "watermark_lag_seconds": None if run.lag_ms is None else run.lag_ms / 1000,
        "results": run.figures.get("results_rows_after"),
    }


def _reading_values(run: RecentRun) -> dict[str, float | None]:
    """Values of the newest batch that is no rerun, no decision and not undone."""
    figures = run.figures
    return {
        "fired": windows_fired(figures),
        "read": figures.get("rows_read"),
        "late": figures.get("rows_late"),
        "quarantined": figures.get("rows_quarantined"),
        "run_seconds": run.seconds,
    }


def _gauge_lines(gauge: str, group: Iterable[Sample]) -> Iterator[str]:
    name = f"windowlib_{gauge}"
    yield f"# HELP {name} {GAUGES[gauge]}"
    yield f"# TYPE {name} gauge"
    for sample in group:
        pipeline = sample.pipeline.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        yield f'{name}{{pipeline="{pipeline}"}} {sample.value!r}'
