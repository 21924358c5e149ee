"""What a pipeline's ledger and tables record of its past, as far as it decides which events are in which windows.

For each batch the watermark before it, and what was late then; for each rerun what it recomputed; for each file of the
source the batch that read it, and the rerun that read it again after it had changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windowlib.definition.definition import Definition
from windowlib.definition.instants import time_of
from windowlib.definition.terms import is_read_alike
from windowlib.inspection.late.events import late_rows
from windowlib.inspection.lineage.batch_runs import BatchRun
from windowlib.inspection.lineage.cuts import EVER, Cut
from windowlib.inspection.verify.settled import Past, PastRerun, Time
from windowlib.model.assigners import Sliding, Tumbling
from windowlib.model.rerun import TimeRange, readmitted
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.reruns.events import BY_NUMBER
from windowlib.reruns.source import KnownFile, known_files
from windowlib.tables.delta import Tables
from windowlib.tables.ledger import Ledger, wall_clock_ms
from windowlib.tables.ledger_read import rows_of_kinds
from windowlib.tables.ledger_rows import Commit, SourceFile
from windowlib.tables.meaning import LEDGER, SOURCE_FILES


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file of the source that batch `batch_id` read; `corrected_by`: the rerun that read it again, changed, or 0.

    `numbered`: whether rows of it are known by their numbers, which other columns may change.
    """

    known: KnownFile
    batch_id: int
    corrected_by: int = 0
    numbered: bool = False

    @property
    def is_as_read(self) -> bool:
        otherwise = self.known.otherwise
        is_read_alike = otherwise is None or (otherwise.columns_alone and not self.numbered)
        return self.known.now is not None and not self.known.rewritten and is_read_alike


@dataclass(frozen=True, slots=True)
class Recorded:
    """The past of a pipeline, up to its newest batch. `read_twice`: files that two batches read."""

    past: Past
    files: Sequence[ReadFile]
    read_twice: Mapping[str, Sequence[int]] = field(default_factory=dict)


def recorded(definition: Definition, tables: Tables, commit: Commit, cut: Cut) -> Recorded:
    """The past as of a cut, which `commit` made."""
    batches = cut.batches
    reruns = [one for batch in batches.values() if (one := _rerun(cut, batch))]
    past = Past(
        {number: Time(batch.watermark_in_ms, batch.late_in_ms) for number, batch in batches.items()},
        Time(cut.batch.watermark_out_ms, cut.batch.late_out_ms),
        reruns,
    )
    files, read_twice = _files(definition, tables, commit, cut, reruns)
    return Recorded(past, files, read_twice)


def newest_windows(cut: Cut, length_ms: int) -> TimeRange:
    """From so long before the watermark on, that of the newest batch before the end of the source was declared."""
    known = [one.watermark_out_ms for one in cut.batches.values() if one.watermark_out_ms < MAX_WATERMARK]
    return TimeRange(max(max(known, default=EVER.from_ms) - length_ms, EVER.from_ms), EVER.to_ms)


def _rerun(cut: Cut, batch: BatchRun) -> PastRerun | None:
    """What a rerun recomputed, in the terms of the windows; None for another batch, or where it found nothing to do."""
    if batch.rerun is None:
        return None
    span, late_only = batch.rerun.range, batch.rerun.late_only
    assigner = cut.definition.spec.assigner
    if not isinstance(assigner, Tumbling | Sliding):
        return PastRerun(batch.batch_id, span, late_only)
    if late_only:
        times = [time_of(row["event_time"]) for row in _chosen(cut, batch)]
        if not times:
            return None
        span = TimeRange(min(times), max(times) + 1)
    return PastRerun(batch.batch_id, readmitted(assigner, span), late_only)


def _chosen(cut: Cut, batch: BatchRun) -> Iterator[Mapping[str, Any]]:
    """The late events that a rerun of late events was asked for: those that were without a window then."""
    assert batch.rerun is not None
    keys = cut.definition.source.key
    for row in late_rows(cut, batch.rerun.range, readmitted=True):
        waited = row["batch_id"] < batch.batch_id and (row["readmitted_by"] or batch.batch_id) >= batch.batch_id
        if waited and (batch.rerun.key is None or tuple(str(row[key]) for key in keys) == batch.rerun.key):
            yield row


def _files(
    definition: Definition, tables: Tables, commit: Commit, cut: Cut, reruns: Sequence[PastRerun]
) -> tuple[list[ReadFile], dict[str, list[int]]]:
    """Every file that was read, once; and those that were read twice."""
    read_by: dict[str, list[tuple[int, int]]] = {}
    for row in cut.rows(SOURCE_FILES.name, columns=["path", "sequence", "batch_id"]):
        read_by.setdefault(row["path"], []).append((row["sequence"], row["batch_id"]))
    planned = _planned(tables, definition.root) if any(not rerun.late_only for rerun in reruns) else {}
    found, files = known_files(definition.source, tables, commit.versions), []
    numbered = _numbered(cut) if any(known.otherwise for known in found) else set()
    for known in found:
        path = known.path
        first_sequence, batch_id = min(read_by[path])
        if known.then.sequence == first_sequence:
            corrected = _is_corrected(known, *planned.get((batch_id, path), (known.then, None)))
            corrected_by = _corrected_by(known, reruns) if corrected else 0
            if cut.batches[batch_id].rerun is not None:  # which took it in the place of others
                corrected_by = max(corrected_by, batch_id)
            files.append(ReadFile(known, batch_id, corrected_by, path in numbered))
    return files, {path: sorted(b for _, b in by) for path, by in read_by.items() if len(by) > 1}


def _numbered(cut: Cut) -> set[str]:
    """The files of which rows stay refused or late."""
    late = {row["source_file"] for row in cut.rows("late_events", columns=["source_file"])}
    refused = cut.rows("quarantine", columns=["source_file", "reason"])
    return late | {row["source_file"] for row in refused if row["reason"] in BY_NUMBER}


def _is_corrected(known: KnownFile, planned: SourceFile, terms: str | None) -> bool:
    """Whether a file is not the one that its batch had planned to read, or was read otherwise since."""
    return known.then != planned or bool(known.read_as and terms and not is_read_alike(known.read_as, terms))


def _corrected_by(known: KnownFile, reruns: Sequence[PastRerun]) -> int:
    """The last rerun that covers a file which is not the one that its batch had planned to read."""
    events = known.events_then
    covering = (r.batch_id for r in reruns if not r.late_only and (events is None or r.span.holds(events)))
    return max(covering, default=0)


def _planned(tables: Tables, root: Path) -> dict[tuple[int, str], tuple[SourceFile, str | None]]:
    """The files of each plan as they were when it was made, and its terms."""
    table, version = tables[LEDGER.name], Ledger(root, wall_clock_ms).state().version
    found: dict[tuple[int, str], tuple[SourceFile, str | None]] = {}
    for row in rows_of_kinds(table, version, {"plan"}, ("batch_id", "files", "terms")):
        files = (SourceFile(**one) for one in row["files"] or ())
        found |= {(row["batch_id"], file.path): (file, row["terms"]) for file in files}
    return found
