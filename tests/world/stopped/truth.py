"""Expected outcome of a rerun of a stopped pipeline: plain Python over the folder's files, by
`tests.support.rerun_oracle`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow.parquet as pq

from tests.support import rerun_oracle as oracle
from tests.support.clicks import SCHEMA
from tests.support.rerun_oracle import Pipeline, Row, Standing
from tests.world.stopped.stage import Case
from tests.world.stopped.stories import ERASED
from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.ledger.rerun_request import Rerun
from windowlib.publication.readers import read_table


def rerun_of(case: Case) -> Rerun:
    """The rerun of a case's range; without one that of some hours with late events."""
    begin, end = case.rerun or ("02:00", "06:00")
    from_ms, to_ms = (_ms(datetime.fromisoformat(f"2026-03-02T{time}Z")) for time in (begin, end))
    return Rerun(from_ms, to_ms, "a test", "ann")


def standing(definition: Definition) -> Standing:
    """Contents of a pipeline's tables; its first aggregates are count(*) and sum(value)."""
    kind = "window" if definition.spec.assigner.merges else "state_window"
    results, in_flight, late = (
        read_table(definition, name).to_pylist() for name in ("results", "open_windows", "late_events")
    )
    return Standing(
        {(_key(r), _ms(r["window_start"]), _ms(r["window_end"])): (r["clicks"], r["total"]) for r in results},
        {(_key(r), r[f"{kind}_start_ms"], r[f"{kind}_end_ms"]): (r["p0_count"], r["p1_sum"]) for r in in_flight},
        {(r["source_file"], r["source_row"]) for r in late if r["readmitted_by"] is None},
    )


def rerun(definition: Definition, case: Case) -> Standing:
    """Expected tables after the rerun of a case."""
    commit, asked = ledger_of(definition).state().commit, rerun_of(case)
    assert commit
    assert commit.watermark_out_ms is not None
    # Less than the definition says where it was raised on the way.
    lateness_ms = commit.watermark_out_ms - commit.late_out_ms
    pipeline = Pipeline(definition.spec.assigner, lateness_ms, commit.watermark_out_ms)
    return oracle.rerun(
        pipeline, standing(definition), _rows(definition, case), oracle.Asked(asked.from_ms, asked.to_ms)
    )


def _rows(definition: Definition, case: Case) -> list[Row]:
    """The events that count of the files that were read: the first with an id, those with a key that is not erased."""
    found, seen = list[Row](), set[str]()
    files = read_table(definition, "source_files").to_pylist()
    for path in [row["path"] for row in sorted(files, key=lambda row: row["sequence"])]:
        rows = pq.read_table(definition.source.path / path, schema=SCHEMA).to_pylist()
        for number, row in enumerate(rows):
            is_lost = definition.source.key and (row["user"] is None or (case.erases and row["user"] == ERASED))
            if is_lost or (definition.source.event_id and row["id"] in seen):
                continue
            seen.add(row["id"])
            key = row["user"] if definition.source.key else ""
            found.append(Row(key, row["at_ms"], row["value"], 0, (path, number)))
    return found


def _key(row: dict[str, Any]) -> str:
    return str(row.get("user", ""))


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
