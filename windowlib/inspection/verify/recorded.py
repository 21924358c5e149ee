"""Facts from the ledger and the tables that decide the windows of events.

- each batch: the watermark and the lateness bound before it
- each rerun: the range that it recomputed
- each source file: the batch that read it, and the rerun that read it again after a change
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from windowlib.contract.tables import LEDGER, SOURCE_FILES
from windowlib.definition.definition import Definition
from windowlib.definition.terms import is_read_alike
from windowlib.delta.tables import Tables
from windowlib.inspection.lineage.cuts import EVER, Cut
from windowlib.inspection.lineage.recomputed import recomputed
from windowlib.inspection.verify.settled import LatenessBound, Past, PastRerun
from windowlib.ledger.ledger import Ledger, wall_clock_ms
from windowlib.ledger.reading import newest_of_batches
from windowlib.ledger.rows import Commit, SourceFile
from windowlib.model.rerun import TimeRange
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.reruns.events import BY_NUMBER
from windowlib.reruns.source import KnownFile, known_files


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A source file that batch `batch_id` read. `corrected_by` is the rerun that read the changed file again, or 0.

    `numbered` is True if tables identify rows of the file by number. A change of the columns that are read may change
    the numbers.
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
class RecordedPast:
    """Past of a pipeline up to its newest batch. `read_twice` maps files that several batches read to these batches."""

    past: Past
    files: Sequence[ReadFile]
    read_twice: Mapping[str, Sequence[int]] = field(default_factory=dict)


def recorded(definition: Definition, tables: Tables, commit: Commit, cut: Cut) -> RecordedPast:
    """Collects the past as of a cut. `commit` is the commit of the cut."""
    batches = cut.batches
    reruns = _reruns(cut)
    past = Past(
        {number: LatenessBound(batch.watermark_in_ms, batch.late_in_ms) for number, batch in batches.items()},
        LatenessBound(cut.batch.watermark_out_ms, cut.batch.late_out_ms),
        reruns,
    )
    files, read_twice = _files(definition, tables, commit, cut, reruns)
    return RecordedPast(past, files, read_twice)


def newest_windows(cut: Cut, length_ms: int) -> TimeRange:
    """Range that starts `length_ms` before the watermark and has no end. Ignores the declared end of the source."""
    watermarks_ms = [run.watermark_out_ms for run in cut.batches.values() if run.watermark_out_ms < MAX_WATERMARK]
    return TimeRange(max(max(watermarks_ms, default=EVER.from_ms) - length_ms, EVER.from_ms), EVER.to_ms)


def _reruns(cut: Cut) -> list[PastRerun]:
    """Every rerun with the range of windows that it recomputed."""
    reruns = {number: batch.rerun for number, batch in cut.batches.items() if batch.rerun}
    return [PastRerun(number, span, reruns[number].late_only) for number, span in recomputed(cut).items()]


def _files(
    definition: Definition, tables: Tables, commit: Commit, cut: Cut, reruns: Sequence[PastRerun]
) -> tuple[list[ReadFile], dict[str, list[int]]]:
    """Every file that was read, listed once. Also the batches of files that several batches read."""
    read_by: dict[str, list[tuple[int, int]]] = {}
    for row in cut.rows(SOURCE_FILES.name, columns=["path", "sequence", "batch_id"]):
        read_by.setdefault(row["path"], []).append((row["sequence"], row["batch_id"]))
    planned = _planned(tables) if any(not rerun.late_only for rerun in reruns) else {}
    sources, files = known_files(definition.source, definition.uses, tables, commit.versions), []
    numbered = _numbered(cut) if any(file.otherwise for file in sources) else set()
    for file in sources:
        path = file.path
        first_sequence, batch_id = min(read_by[path])
        if file.then.sequence == first_sequence:
            corrected = _is_corrected(file, *planned.get((batch_id, path), (file.then, None)))
            corrected_by = _corrected_by(file, reruns) if corrected else 0
            if cut.batches[batch_id].rerun is not None:  # a rerun read it in place of other files
                corrected_by = max(corrected_by, batch_id)
            files.append(ReadFile(file, batch_id, corrected_by, path in numbered))
    return files, {path: sorted(b for _, b in by) for path, by in read_by.items() if len(by) > 1}


def _numbered(cut: Cut) -> set[str]:
    """Files with rows that stay refused or late. Tables identify such rows by number."""
    late = {row["source_file"] for row in cut.rows("late_events", columns=["source_file"])}
    refused = cut.rows("quarantine", columns=["source_file", "reason"])
    return late | {row["source_file"] for row in refused if row["reason"] in BY_NUMBER}


def _is_corrected(file: KnownFile, planned: SourceFile, terms: str | None) -> bool:
    """Tests if a file changed after its batch planned it, or was later read with other read settings."""
    return file.then != planned or bool(file.read_as and terms and not is_read_alike(file.read_as, terms))


def _corrected_by(file: KnownFile, reruns: Sequence[PastRerun]) -> int:
    """Batch of the last rerun that covers the events of a changed file; 0 if there is none."""
    events = file.events_then
    covering = (r.batch_id for r in reruns if not r.late_only and (events is None or r.span.holds(events)))
    return max(covering, default=0)


def _planned(tables: Tables) -> dict[tuple[int, str], tuple[SourceFile, str | None]]:
    """Files as the plans recorded them, by batch and path. Each file has the terms of its plan."""
    table, version = tables[LEDGER.name], Ledger(tables.store, wall_clock_ms).state().version
    plans = newest_of_batches(table, version, {"plan"}, ("files", "terms"))["plan"]
    files = (
        (number, SourceFile(**fields), row["terms"]) for number, row in plans.items() for fields in row["files"] or ()
    )
    return {(number, file.path): (file, terms) for number, file, terms in files}
