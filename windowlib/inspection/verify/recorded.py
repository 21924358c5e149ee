"""What a pipeline's ledger and tables record of its past, as far as it decides which events are in which windows.

For each batch the watermark before it, and what was late then; for each rerun what it recomputed; for each file of the
source the batch that read it, and the rerun that read it again after it had changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
class RecordedPast:
    """The past of a pipeline, up to its newest batch. `read_twice`: files that two batches read."""

    past: Past
    files: Sequence[ReadFile]
    read_twice: Mapping[str, Sequence[int]] = field(default_factory=dict)


def recorded(definition: Definition, tables: Tables, commit: Commit, cut: Cut) -> RecordedPast:
    """The past as of a cut, which `commit` made."""
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
    """From so long before the watermark on, that of the newest batch before the end of the source was declared."""
    known = [one.watermark_out_ms for one in cut.batches.values() if one.watermark_out_ms < MAX_WATERMARK]
    return TimeRange(max(max(known, default=EVER.from_ms) - length_ms, EVER.from_ms), EVER.to_ms)


def _reruns(cut: Cut) -> list[PastRerun]:
    """What each rerun recomputed, in the terms of the windows."""
    asked = {number: batch.rerun for number, batch in cut.batches.items() if batch.rerun}
    return [PastRerun(number, span, asked[number].late_only) for number, span in recomputed(cut).items()]


def _files(
    definition: Definition, tables: Tables, commit: Commit, cut: Cut, reruns: Sequence[PastRerun]
) -> tuple[list[ReadFile], dict[str, list[int]]]:
    """Every file that was read, once; and those that were read twice."""
    read_by: dict[str, list[tuple[int, int]]] = {}
    for row in cut.rows(SOURCE_FILES.name, columns=["path", "sequence", "batch_id"]):
        read_by.setdefault(row["path"], []).append((row["sequence"], row["batch_id"]))
    planned = _planned(tables, definition.root) if any(not rerun.late_only for rerun in reruns) else {}
    found, files = known_files(definition.source, definition.uses, tables, commit.versions), []
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
    plans = newest_of_batches(table, version, {"plan"}, ("files", "terms"))["plan"]
    files = ((number, SourceFile(**one), row["terms"]) for number, row in plans.items() for one in row["files"] or ())
    return {(number, file.path): (file, terms) for number, file, terms in files}
