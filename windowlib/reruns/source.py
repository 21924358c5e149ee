"""Source files that a rerun reads: files that were read before, found by the event times kept at their admission.

New files wait for an ordinary run. A missing file is an error, unless the rerun accepts gaps. A changed file is an
error, unless the rerun covers all events of the file. The error names the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
from windowlib.model.assigners import Assigner
from windowlib.model.geometry import geometry_of
from windowlib.model.rerun import TimeRange
from windowlib.source import footers, listing
from windowlib.source.contents import Contents, FileState
from windowlib.source.folder import is_chosen
from windowlib.source.listed import ListedFile, existing
from windowlib.source.read_before import completed, renamed
from windowlib.source.read_before import known_files as known_paths

NAMED = 5  # most files that a message names


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file that was read. `then` is the file as it was read. `now` is the current file, or None if it is missing.

    The times are times of admitted events.

    A renamed file keeps the `path` under which all tables know it; `now` has its new path. A file is `replaced` if a
    removal deleted it for good and other files replace it. The other files count as files that were empty before.
    """

    then: SourceFile
    now: SourceFile | None
    rows: int
    min_timestamp_ms: int | None
    max_timestamp_ms: int | None
    events_now: TimeRange | None = None  # current events of a changed file; set after the file is read again
    repeats: TimeRange | None = None  # rows refused as duplicates that are judged again
    replaced: bool = False
    read_as: str | None = None  # terms under which its rows were read (`windowlib.definition.terms`); None: unknown
    otherwise: ReadingDifference | None = None  # difference between `read_as` and the current terms

    @property
    def path(self) -> str:
        return self.then.path

    @property
    def place(self) -> str:
        """Current path of the file, or its last path if it is missing."""
        return (self.now or self.then).path

    @property
    def rewritten(self) -> bool:
        """Tests if the file exists but differs from the file that was read. A renamed file does not differ."""
        return self.now is not None and replace(self.now, path=self.path) != self.then

    @property
    def changed(self) -> bool:
        """Tests if the file exists and may now give other rows, or rows with other times."""
        return self.now is not None and (self.rewritten or self.otherwise is not None)

    @property
    def unchanged(self) -> bool:
        """Tests if the file exists and gives the same rows as before."""
        return self.now is not None and not self.changed

    @property
    def how_changed(self) -> str:
        """Description of the change, for a message."""
        if self.rewritten or self.otherwise is None:
            return "has changed since it was read"
        return f"would be read differently than before ({self.otherwise.words})"

    @property
    def events_then(self) -> TimeRange | None:
        """Time range from the first admitted event to the last, as the file was read; None if it had no event."""
        if self.min_timestamp_ms is None or self.max_timestamp_ms is None:
            return None
        return TimeRange(self.min_timestamp_ms, self.max_timestamp_ms + 1)

    @property
    def events(self) -> TimeRange | None:
        """Time range from the first event to the last. Covers the file as it was read and the current file."""
        ranges = [events for events in (self.events_then, self.events_now) if events]
        return TimeRange(min(part.from_ms for part in ranges), max(part.to_ms for part in ranges)) if ranges else None

    def meets(self, span: TimeRange, reach_ms: int = 0) -> bool:
        """Tests if the file has or had an event in the span, or up to `reach_ms` before it. Counts `repeats`, too."""
        ranges = (self.events_then, self.events_now, self.repeats)
        return any(part.from_ms < span.to_ms and part.to_ms - 1 + reach_ms >= span.from_ms for part in ranges if part)


def files_of(source: Source, uses: Uses, tables: Tables, commit: Commit, plan: Plan) -> list[KnownFile]:
    """Files that a rerun may read, in arrival order: files read before, then files that its plan adds."""
    gone = {*plan.replaces}
    files = [
        replace(file, now=None, replaced=True) if file.path in gone else file
        for file in known_files(source, uses, tables, commit.versions)
    ]
    return [
        *files,
        *(KnownFile(replace(file, size_bytes=0, modified_ns=0), file, 0, None, None) for file in plan.files),
    ]


def known_files(source: Source, uses: Uses, tables: Tables, versions: Mapping[str, int]) -> list[KnownFile]:
    """Every file that was read up to these versions of the tables, in arrival order.

    A file that was unpacked again counts as the unpacked file.
    """
    table, at = tables[SOURCE_FILES.name], versions.get(SOURCE_FILES.name)
    before = known_paths(tables, at)
    there = _there(source, before)
    files = []
    with Contents.of(source, uses, tables.store) as contents:
        complete = completed(contents, before, files_set_aside(tables.store))
        unpacked = {file.path for file in complete.values()}
        moved = renamed(contents, [file for file in there if file.path not in unpacked], before.values())
        found_as = {current.path: current for current in there} | moved | complete
        contents.read(
            file.state
            for path, file in found_as.items()
            if path in before and contents.must_compare(file.state, before[path])
        )
        for row in table.rows(table.files(at), SOURCE_FILES.columns):
            current, then = found_as.get(row["path"]), before[row["path"]]
            if current is not None and current.state != then and contents.same(current.state, then):
                then = replace(current.state, path=then.path)
            about = row["sequence"], row["partition_values"]
            was = SourceFile(*then.identity, *about)
            now = None if current is None else SourceFile(*current.state.identity, *about)
            times = row["min_timestamp_ms"], row["max_timestamp_ms"]
            otherwise = read_otherwise(source, row["read_as"])
            files.append(KnownFile(was, now, row["rows"], *times, read_as=row["read_as"], otherwise=otherwise))
    return sorted(files, key=lambda file: file.then.sequence)


def _there(source: Source, states: Mapping[str, FileState]) -> Sequence[ListedFile]:
    """Existing files, including files that were read before a pattern excluded them.

    For a Delta source the files are looked up on disk: they never change, and the log may no longer contain them.
    """
    if source.format == "delta":
        sizes = zip(states.values(), source.store.sizes([*states]), strict=True)
        return [ListedFile(*file.identity, (0, file.path)) for file, size in sizes if size is not None]
    left_out = existing(source.store, [path for path in states if not is_chosen(source, path)])
    return [*listing.found_files(source).files, *left_out.values()]


def reading(source: Source, assigner: Assigner, files: Sequence[KnownFile], span: TimeRange) -> list[KnownFile]:
    """Files that may hold an event of the span. With a gap per element, also files with a session that extends into the
    span.

    A file that would now be read differently is included only if it had an event in the span, or rows but no event.
    """
    named = geometry_of(assigner).gap_column
    gap_column = None if named is None else source.in_files(named)
    chosen = []
    for file in files:
        reach_ms = 0
        if gap_column and file.events and file.events.from_ms < span.to_ms:
            reach_ms = _longest_gap_ms(source, file, file.events, gap_column, span)
        may_have = file.rewritten or file.replaced or (file.otherwise is not None and file.rows > 0)
        if (may_have and file.events is None) or file.meets(span, reach_ms):
            chosen.append(file)
    return chosen


def check_files(source: Source, files: Sequence[KnownFile], covered: TimeRange, rerun: Rerun) -> None:
    """Raises `RerunRefused` if a file is missing, or has changed and had events outside of `covered`."""
    gone = [file for file in files if file.now is None and not file.replaced]
    if gone and not rerun.accept_gap:
        rows = counted(sum(file.rows for file in gone), "row")
        raise RerunRefused(
            f"the source has a gap: {count(gone)} with {rows} can no longer be read in {source.store}, but this rerun"
            f" needs them:\n{listed(gone)}\nRestore them, or {_without_them(source, rerun)}"
        )
    for file in files:
        if file.changed and file.events and not covered.holds(file.events):
            first, last = instant(file.events.from_ms), instant(file.events.to_ms - 1)
            start, end = iso_instant(file.events.from_ms), iso_instant(file.events.to_ms)
            repair = f"Rerun the whole range: --from {start} --to {end}"
            if is_too_long(file.events):
                back = listing.back_before(source, file.events)
                repair = f"{back[0].upper()}{back[1:]}"
            raise RerunRefused(
                f"{source.store}/{file.place} {file.how_changed}. Its events before and after the change extend from"
                f" {first} to {last}, beyond the range that this rerun recomputes ({instant(covered.from_ms)} to"
                f" {instant(covered.to_ms)})."
                f" {repair}, or restore the {'file' if file.otherwise is None else 'definition'}"
            )


def _without_them(source: Source, rerun: Rerun) -> str:
    """Advice to go on without missing files. With `late_only`, it proposes a rerun of the range, because the windows
    would lose events.
    """
    if not rerun.late_only:
        return "add --accept-gap: the rerun removes their events from the windows, and the ledger records the gap"
    span = "--from", iso_instant(rerun.from_ms) or OPEN, "--to", iso_instant(rerun.to_ms) or OPEN
    return (
        f"rerun the time range without them: `{to_paste('rerun', source.file, *span, '--accept-gap', '--dry-run')}`"
        " shows the changes. Such a rerun removes their events from the windows, and readmits all late events of the"
        " range. The ledger records the gap"
    )


def _longest_gap_ms(source: Source, file: KnownFile, events: TimeRange, column: str, span: TimeRange) -> int:
    """Longest gap of a file's elements, from the statistics in its footer. Without statistics, returns a gap that
    extends into the span.

    Partition columns have no statistics.
    """
    unknown = span.to_ms - events.from_ms
    if source.is_text or column in file.then.values or file.now is None:
        return unknown
    footer = footers.footer(source.store, file.now)
    longest = 0
    for group in map(footer.row_group, range(footer.num_row_groups)):
        of_column = (group.column(n) for n in range(group.num_columns) if group.column(n).path_in_schema == column)
        statistics = next((chunk.statistics for chunk in of_column), None)
        if statistics is None or not statistics.has_min_max:
            return unknown
        longest = max(longest, int(statistics.max))
    return longest


def count(files: Sequence[KnownFile]) -> str:
    """Number of files, in words."""
    return counted(len(files), "file")


def listed(files: Sequence[KnownFile]) -> str:
    """Lists the first `NAMED` files, one line each, with their rows and times."""
    shown = [f"  {in_a_line(file.path)}: {counted(file.rows, 'row')}, {_span(file)}" for file in files[:NAMED]]
    more = [f"  and {len(files) - NAMED:,} more"] if len(files) > NAMED else []
    return "\n".join([*shown, *more])


def _span(file: KnownFile) -> str:
    if file.min_timestamp_ms is None:
        return "no event"
    return f"{instant(file.min_timestamp_ms)} to {instant(file.max_timestamp_ms)}"
