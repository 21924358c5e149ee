"""What a rerun reads: the files of the source that were read before, found by the event times kept at their admission.

A rerun takes in no new file: what has arrived since is for an ordinary run. A file that is gone, or that is not the
one that was read, is an error that names it, unless the rerun says that it may be missing, or covers all its events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from jobs import delta, source
from jobs.correction import RerunRefused
from jobs.definition import Definition
from jobs.instants import instant
from jobs.ledger import Commit, SourceFile
from jobs.tables import SOURCE_FILES
from windowlib.assigners import DynamicSession
from windowlib.rerun import TimeRange

NAMED = 5  # files that a message names


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file that was read: as it was, and as it is now (None: gone). Times are those of its admitted events."""

    then: SourceFile
    now: SourceFile | None
    rows: int
    min_timestamp_ms: int | None
    max_timestamp_ms: int | None

    @property
    def path(self) -> str:
        return self.then.path

    @property
    def changed(self) -> bool:
        return self.now is not None and self.now != self.then

    def meets(self, span: TimeRange, reach_ms: int = 0) -> bool:
        """Whether it had an admitted event in the span, or up to `reach_ms` before it."""
        low, high = self.min_timestamp_ms, self.max_timestamp_ms
        return low is not None and high is not None and low < span.to_ms and high + reach_ms >= span.from_ms


def known_files(definition: Definition, commit: Commit) -> list[KnownFile]:
    """Every file that was read, in arrival order."""
    folder = definition.root / SOURCE_FILES.name
    there = {found.path: found for found in source.found_files(definition)}
    known = []
    for row in source_rows(folder, delta.files(folder, commit.versions.get(SOURCE_FILES.name))):
        then = SourceFile(row["path"], row["size_bytes"], row["modified_ns"], row["sequence"])
        found = there.get(then.path)
        if found is not None and not (definition.source.path / then.path).is_file():
            found = None  # in the log of a Delta table, but vacuumed
        now = None if found is None else SourceFile(then.path, found.size_bytes, found.modified_ns, then.sequence)
        known.append(KnownFile(then, now, row["rows"], row["min_timestamp_ms"], row["max_timestamp_ms"]))
    return sorted(known, key=lambda file: file.then.sequence)


def source_rows(folder: Path, files: Iterable[delta.DataFile]) -> Iterator[dict[str, Any]]:
    """The rows of files of `source_files`."""
    for file in files:
        yield from delta.read_parquet(folder / file.path, SOURCE_FILES.columns).to_pylist()


def reading(definition: Definition, known: Sequence[KnownFile], span: TimeRange) -> list[KnownFile]:
    """The files that may hold an event of the span, or, with a gap per element, one whose session reaches into it.

    Changed files are always among them: their new events may be anywhere.
    """
    assigner = definition.spec.assigner
    gap_column = assigner.gap_column if isinstance(assigner, DynamicSession) else None
    chosen = []
    for file in known:
        reach_ms = 0
        if gap_column and file.min_timestamp_ms is not None and file.min_timestamp_ms < span.to_ms:
            reach_ms = _longest_gap_ms(definition, file, gap_column, span)
        if file.changed or file.meets(span, reach_ms):
            chosen.append(file)
    return chosen


def check_files(definition: Definition, files: Sequence[KnownFile], covered: TimeRange, accept_gap: bool) -> None:
    """Raises `RerunRefused` where one of the files is gone, or has changed but had events outside of `covered`."""
    gone = [file for file in files if file.now is None]
    if gone and not accept_gap:
        events = sum(file.rows for file in gone)
        raise RerunRefused(
            f"the source has a gap: {_count(gone)} with {events:,} rows, which this rerun needs, can no longer be read"
            f" in {definition.source.path}:\n{_listed(gone)}\nRestore them; or say --accept-gap: then their events are"
            " taken out of the windows, and the ledger records it"
        )
    for file in files:
        if file.changed and not _covers(covered, file.min_timestamp_ms, file.max_timestamp_ms):
            raise outside(definition, file, file.min_timestamp_ms, file.max_timestamp_ms, covered)


def outside(
    definition: Definition, file: KnownFile, low_ms: int | None, high_ms: int | None, covered: TimeRange
) -> RerunRefused:
    """The error about a changed file with events that the rerun does not compute anew."""
    needed = f"--from {_iso(low_ms)} --to {_iso(None if high_ms is None else high_ms + 1)}"
    return RerunRefused(
        f"{definition.source.path / file.path} has changed since it was read, and has or had events from"
        f" {instant(low_ms)} to {instant(high_ms)}, outside of what this rerun computes anew"
        f" ({instant(covered.from_ms)} to {instant(covered.to_ms)}). Rerun all of it: {needed}, or restore the file"
    )


def _covers(covered: TimeRange, low_ms: int | None, high_ms: int | None) -> bool:
    return low_ms is None or high_ms is None or covered.holds(TimeRange(low_ms, high_ms + 1))


def check_new_times(
    definition: Definition, file: KnownFile, low_ms: int | None, high_ms: int | None, covered: TimeRange
) -> None:
    """Raises `RerunRefused` where a changed file now has events outside of `covered`."""
    if not _covers(covered, low_ms, high_ms):
        times = [t for t in (low_ms, high_ms, file.min_timestamp_ms, file.max_timestamp_ms) if t is not None]
        raise outside(definition, file, min(times), max(times), covered)


def _longest_gap_ms(definition: Definition, file: KnownFile, column: str, span: TimeRange) -> int:
    """The longest gap of its elements, by the file's footer; where that does not tell, one that reaches the span."""
    unknown = span.to_ms - (file.min_timestamp_ms or 0)
    path = definition.source.path / file.path
    if definition.source.format not in ("parquet", "delta") or not path.is_file():
        return unknown
    footer = pq.ParquetFile(path).metadata
    longest = 0
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for index in range(row_group.num_columns):
            if row_group.column(index).path_in_schema == column:
                statistics = row_group.column(index).statistics
                if statistics is None or not statistics.has_min_max:
                    return unknown
                longest = max(longest, int(statistics.max))
    return longest


def _count(files: Sequence[KnownFile]) -> str:
    return f"{len(files):,} {'file' if len(files) == 1 else 'files'}"


def _listed(files: Sequence[KnownFile]) -> str:
    shown = [
        f"  {file.path}: {file.rows:,} rows, {instant(file.min_timestamp_ms)} to {instant(file.max_timestamp_ms)}"
        for file in files[:NAMED]
    ]
    more = [f"  and {len(files) - NAMED:,} more"] if len(files) > NAMED else []
    return "\n".join([*shown, *more])


def _iso(time_ms: int | None) -> str:
    from jobs.instants import iso_instant

    return iso_instant(time_ms) or "…"
