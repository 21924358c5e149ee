"""What a rerun reads: the files of the source that were read before, found by the event times kept at their admission.

A rerun reads no new file: what has arrived since is for an ordinary run. A file that is gone, or that is not the
one that was read, is an error that names it, unless the rerun says that it may be missing, or covers all its events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow.parquet as pq

from windowlib.contract.tables import SOURCE_FILES
from windowlib.definition.commands import OPEN, to_paste
from windowlib.definition.instants import instant, iso_instant
from windowlib.definition.plurals import counted
from windowlib.definition.terms import ReadingDifference, read_otherwise
from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.definition.visible import in_a_line
from windowlib.delta.tables import Tables
from windowlib.ledger.rerun_request import Rerun, RerunRefused, is_too_long
from windowlib.ledger.rows import Commit, Plan, SourceFile
from windowlib.ledger.set_aside_files import files_set_aside
from windowlib.model.assigners import Assigner, DynamicSession
from windowlib.model.rerun import TimeRange
from windowlib.source import listing as source
from windowlib.source.contents import Contents, FileState
from windowlib.source.folder import is_chosen
from windowlib.source.listed import ListedFile
from windowlib.source.read_before import completed, renamed
from windowlib.source.read_before import known_files as known_paths

NAMED = 5  # files that a message names


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file that was read: as it was, and as it is now (None: gone). Times are those of its admitted events.

    Renamed, it keeps the `path` under which all tables know it; `now` has the other. A removal `replaced` it: it is
    gone for good, and others are in its place. Those were empty before.
    """

    then: SourceFile
    now: SourceFile | None
    rows: int
    min_timestamp_ms: int | None
    max_timestamp_ms: int | None
    events_now: TimeRange | None = None  # of a changed file, once it has been looked at
    repeats: TimeRange | None = None  # of rows that were refused as duplicates, where these are judged again
    replaced: bool = False
    read_as: str | None = None  # how its rows were read (`windowlib.definition.terms`); None: not known
    otherwise: ReadingDifference | None = None  # how they are read now, where that is another way

    @property
    def path(self) -> str:
        return self.then.path

    @property
    def place(self) -> str:
        """Where it is now; of one that is gone, where it was."""
        return (self.now or self.then).path

    @property
    def rewritten(self) -> bool:
        """Whether it is there, and not the one that was read; renamed, it is the same."""
        return self.now is not None and replace(self.now, path=self.path) != self.then

    @property
    def changed(self) -> bool:
        """Whether it may hold other rows now, or with other times."""
        return self.now is not None and (self.rewritten or self.otherwise is not None)

    @property
    def unchanged(self) -> bool:
        """Whether it is there, and has the rows that it had."""
        return self.now is not None and not self.changed

    @property
    def how_changed(self) -> str:
        """What to say of one that has changed."""
        if self.rewritten or self.otherwise is None:
            return "has changed since it was read"
        return f"would be read otherwise than it was ({self.otherwise.words})"

    @property
    def events_then(self) -> TimeRange | None:
        """From its first admitted event to its last, as it was read; None without any."""
        if self.min_timestamp_ms is None or self.max_timestamp_ms is None:
            return None
        return TimeRange(self.min_timestamp_ms, self.max_timestamp_ms + 1)

    @property
    def events(self) -> TimeRange | None:
        """From its first event to its last, as it was and as it is."""
        known = [events for events in (self.events_then, self.events_now) if events]
        return TimeRange(min(e.from_ms for e in known), max(e.to_ms for e in known)) if known else None

    def meets(self, span: TimeRange, reach_ms: int = 0) -> bool:
        """Whether it has or had an event in the span, or up to `reach_ms` before it; or may have one by now."""
        known = (self.events_then, self.events_now, self.repeats)
        return any(e.from_ms < span.to_ms and e.to_ms - 1 + reach_ms >= span.from_ms for e in known if e)


def files_of(of: Source, uses: Uses, tables: Tables, commit: Commit, plan: Plan) -> list[KnownFile]:
    """The files that a rerun may read, in arrival order: those that were read, and those that its plan adds."""
    gone = {*plan.replaces}
    known = [
        replace(file, now=None, replaced=True) if file.path in gone else file
        for file in known_files(of, uses, tables, commit.versions)
    ]
    return [
        *known,
        *(KnownFile(replace(file, size_bytes=0, modified_ns=0), file, 0, None, None) for file in plan.files),
    ]


def known_files(of: Source, uses: Uses, tables: Tables, versions: Mapping[str, int]) -> list[KnownFile]:
    """Every file that was read up to these versions of the tables, in arrival order.

    One that was unpacked again is as it is there now.
    """
    table, at = tables[SOURCE_FILES.name], versions.get(SOURCE_FILES.name)
    before = known_paths(tables, at)
    there = _there(of, before)
    known = []
    with Contents.of(of, uses, tables.root) as contents:
        complete = completed(contents, before, files_set_aside(tables.root))
        taken = {file.path for file in complete.values()}
        moved = renamed(contents, [file for file in there if file.path not in taken], before.values())
        found_as = {found.path: found for found in there} | moved | complete
        for row in table.rows(table.files(at), SOURCE_FILES.columns):
            found, then = found_as.get(row["path"]), before[row["path"]]
            if found is not None and found.state != then and contents.same(found.state, then):
                then = replace(found.state, path=then.path)
            about = row["sequence"], row["partition_values"]
            was = SourceFile(*then.identity, *about)
            now = None if found is None else SourceFile(*found.state.identity, *about)
            times = row["min_timestamp_ms"], row["max_timestamp_ms"]
            otherwise = read_otherwise(of, row["read_as"])
            known.append(KnownFile(was, now, row["rows"], *times, read_as=row["read_as"], otherwise=otherwise))
    return sorted(known, key=lambda file: file.then.sequence)


def _there(of: Source, known: Mapping[str, FileState]) -> Sequence[ListedFile]:
    """The files that are there now, with those that were read before a pattern left them out.

    A Delta table's never change, and its log need not reach back to those read.
    """
    if of.format == "delta":
        there = (file for file in known.values() if (of.path / file.path).is_file())
        return [ListedFile(*file.identity, (0, file.path)) for file in there]
    left_out = [path for path in known if not is_chosen(of, path) and (of.path / path).is_file()]
    return [*source.found_files(of).files, *(ListedFile.there(of.path, path) for path in left_out)]


def reading(of: Source, assigner: Assigner, known: Sequence[KnownFile], span: TimeRange) -> list[KnownFile]:
    """The files that may hold an event of the span, or, with a gap per element, one whose session reaches into it.

    One that would be read otherwise now stays as it was read, unless it had an event there, or rows but no event.
    """
    gap_column = of.in_files(assigner.gap_column) if isinstance(assigner, DynamicSession) else None
    chosen = []
    for file in known:
        reach_ms = 0
        if gap_column and file.events and file.events.from_ms < span.to_ms:
            reach_ms = _longest_gap_ms(of, file, file.events, gap_column, span)
        may_have = file.rewritten or file.replaced or (file.otherwise is not None and file.rows > 0)
        if (may_have and file.events is None) or file.meets(span, reach_ms):
            chosen.append(file)
    return chosen


def check_files(of: Source, files: Sequence[KnownFile], covered: TimeRange, rerun: Rerun) -> None:
    """Raises `RerunRefused` where one of the files is gone, or has changed but had events outside of `covered`."""
    gone = [file for file in files if file.now is None and not file.replaced]
    if gone and not rerun.accept_gap:
        rows = counted(sum(file.rows for file in gone), "row")
        raise RerunRefused(
            f"the source has a gap: {count(gone)} with {rows}, which this rerun needs, can no longer be read"
            f" in {of.path}:\n{listed(gone)}\nRestore them; or {_without_them(of, rerun)}, and the ledger records it"
        )
    for file in files:
        if file.changed and file.events and not covered.holds(file.events):
            first, last = instant(file.events.from_ms), instant(file.events.to_ms - 1)
            enough = f"Rerun all of it: --from {iso_instant(file.events.from_ms)} --to {iso_instant(file.events.to_ms)}"
            if is_too_long(file.events):
                back = source.back_before(of, file.events)
                enough = f"{back[0].upper()}{back[1:]}"
            raise RerunRefused(
                f"{of.path / file.place} {file.how_changed}, and has or had events from"
                f" {first} to {last}, outside of what this rerun recomputes ({instant(covered.from_ms)} to"
                f" {instant(covered.to_ms)}). {enough}, or restore the"
                f" {'file' if file.otherwise is None else 'definition'}"
            )


def _without_them(of: Source, rerun: Rerun) -> str:
    """How to go on without files that are gone; late events alone are not readmitted into windows that lose others."""
    if not rerun.late_only:
        return "say --accept-gap: then their events are taken out of the windows"
    span = "--from", iso_instant(rerun.from_ms) or OPEN, "--to", iso_instant(rerun.to_ms) or OPEN
    return (
        f"rerun the time range without them: `{to_paste('rerun', of.file, *span, '--accept-gap', '--dry-run')}` shows"
        " what that would change. Then their events are taken out of the windows, all late events of the range are"
        " readmitted"
    )


def _longest_gap_ms(of: Source, file: KnownFile, events: TimeRange, column: str, span: TimeRange) -> int:
    """The longest gap of its elements, by the file's footer; where that has none, one that reaches the span.

    None has that of a partition column.
    """
    unknown = span.to_ms - events.from_ms
    path = of.path / file.place
    if of.is_text or column in file.then.values or not path.is_file():
        return unknown
    footer = pq.ParquetFile(path).metadata
    longest = 0
    for group in map(footer.row_group, range(footer.num_row_groups)):
        of_column = (group.column(n) for n in range(group.num_columns) if group.column(n).path_in_schema == column)
        statistics = next((chunk.statistics for chunk in of_column), None)
        if statistics is None or not statistics.has_min_max:
            return unknown
        longest = max(longest, int(statistics.max))
    return longest


def count(files: Sequence[KnownFile]) -> str:
    """How many files, in words."""
    return counted(len(files), "file")


def listed(files: Sequence[KnownFile]) -> str:
    """The first files, one line each, with their rows and times."""
    shown = [f"  {in_a_line(file.path)}: {counted(file.rows, 'row')}, {_span(file)}" for file in files[:NAMED]]
    more = [f"  and {len(files) - NAMED:,} more"] if len(files) > NAMED else []
    return "\n".join([*shown, *more])


def _span(file: KnownFile) -> str:
    if file.min_timestamp_ms is None:
        return "no event"
    return f"{instant(file.min_timestamp_ms)} to {instant(file.max_timestamp_ms)}"
