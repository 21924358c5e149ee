"""The situations of a pipeline that notices report, judged from its tables as they are now.

    failure     a run ended with an error, or died
    decision    a batch was refused by its checks and waits for an operator
    warning.C   the check C, of severity warning, failed in the newest batch
    silence     no new file, read or not, for longer than usual (or than notify.silence)
    freshness   the watermark is further behind the clock than notify.freshness
    clock       the watermark is ahead of the clock: events that come on time are late

Usual is one and a half times the second longest time without a new file in the eight weeks up to the newest one: one
outage in them does not count, nights and weekends do. It takes `ENOUGH_GAPS` of such times to know.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from windowlib.batches.may_run import decision_command
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import DQ_RESULTS, SOURCE_FILES
from windowlib.definition.commands import to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant
from windowlib.definition.toml.durations import UNITS, format_duration
from windowlib.delta import row_groups
from windowlib.delta.tables import Tables
from windowlib.inspection.checks import checks
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.rows import LedgerState
from windowlib.ledger.set_aside_files import files_set_aside
from windowlib.model.errors import InvalidSpec, WindowError
from windowlib.model.watermark import MAX_WATERMARK, MIN_WATERMARK
from windowlib.quality.check import CheckResult, column_of, in_words, without_examples
from windowlib.quality.validations import kept, kept_of
from windowlib.source.listing import waiting_files

KINDS = ("failure", "decision", "warning", "silence", "freshness", "clock")
LONGEST = 500  # characters of a sentence
ENOUGH_GAPS = 20
USUAL_FOR_MS, MORE_THAN_USUAL = 56 * UNITS["d"], 1.5
OPENED = 8  # files of `source_files` into which many small ones were folded
MODIFIED = pa.schema([("modified_ns", pa.int64())])
PER_FILE_NS = 1_000_000  # ns in a ms


@dataclass(frozen=True, slots=True)
class Situation:
    """Something that people should know. It has changed where its `signature` has."""

    key: str
    signature: str
    sentence: str
    batch_id: int | None = None
    command: str | None = None  # what looks at it, or ends it

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return self.key.partition(".")[0]


def situations(definition: Definition, now_ms: int) -> list[Situation]:
    """All that holds now, but for the error that a run has just ended with."""
    ledger = ledger_of(definition, lambda: now_ms)
    state = ledger.state()
    return [
        *_decision(definition.file, state),
        *_died(definition.file, ledger, state),
        *_warnings(definition, ledger, state, now_ms),
        *standing_still(definition, ledger, state, now_ms),
    ]


def standing_still(definition: Definition, ledger: Ledger, state: LedgerState, now_ms: int) -> list[Situation]:
    """What time alone shows: a watermark that is too far behind the clock or ahead of it, a source that is silent."""
    return [
        *_freshness(definition, state, now_ms),
        *_ahead(definition, state, now_ms),
        *_silence(definition, ledger, state, now_ms),
    ]


def failure(file: Path, sentence: str) -> Situation:
    """That a run ended with an error. It is the same one as long as its sentence differs in numbers and names alone."""
    first = sentence.splitlines()[0] if sentence else "an error without a message"
    signature = re.sub(r"\(full traceback: .*\)|\d+|/\S+", "#", first)
    return Situation("failure", signature[:LONGEST], first[:LONGEST], command=to_paste("status", file))


def _decision(file: Path, state: LedgerState) -> Iterator[Situation]:
    if state.plan is None or not state.is_refused:
        return
    said = " ".join(without_examples(line) for line in (state.rejection or "").splitlines())  # a line for each check
    sentence = f"batch {state.plan.batch_id} was refused by its checks and waits for a decision: {said}"
    command = decision_command("approve", file, state.plan)
    yield Situation("decision", str(state.plan.batch_id), sentence[:LONGEST], state.plan.batch_id, command)


def _died(file: Path, ledger: Ledger, state: LedgerState) -> Iterator[Situation]:
    """A run that could not say how it ended: its plan is open, its claim not released, and it is at work no more."""
    if state.plan is None or state.rejection or state.claim is None or state.claim.released:
        return
    if ledger.holder(state.claim) is None:
        sentence = f"the run that worked on batch {state.plan.batch_id} ended without a word; the next run finishes it"
        command = to_paste("run", file)
        yield Situation("failure", f"died {state.plan.batch_id}", sentence, state.plan.batch_id, command)


def _warnings(definition: Definition, ledger: Ledger, state: LedgerState, now_ms: int) -> Iterator[Situation]:
    """Of the newest batch in `dq_results`: one that was abandoned was never there, one that was undone is gone."""
    judged = ledger.tables[DQ_RESULTS.name].newest_batch(state.pinned(DQ_RESULTS.name))
    newest = None if judged is None else kept_of(definition.root, judged)
    if newest is None:
        return
    every = dict(_by_name(in_words(newest.suites, newest.figures)))
    failed = {about: one for about, one in every.items() if not one.success and one.severity != "critical"}
    names = _names(definition, newest.batch_id, now_ms) if failed else {}
    for about, one in failed.items():
        observed = without_examples(one.observed)
        sentence = f"batch {newest.batch_id}: {one.sentence} Expected {one.expected}, observed {observed}."
        named = names.get((one.suite, one.observed))
        command = to_paste("checks", definition.file, *(("--explain", named.pop(0)) if named else ()))
        yield Situation(f"warning.{about}", "", sentence[:LONGEST], newest.batch_id, command)


def checks_judged(root: Path) -> list[str]:
    """What can follow `warning.`: the checks of the newest batch that was judged; empty where none was yet."""
    return [about for one in kept(root, 1) for about, _ in _by_name(in_words(one.suites, one.figures))]


def _by_name(results: Sequence[CheckResult]) -> Iterator[tuple[str, CheckResult]]:
    """The checks of a batch by what their situations are called: with a number where that is taken."""
    count = Counter[str]()
    for one in results:
        about = f"{one.suite}.{column_of(one.expectation) or one.expectation}"
        count[about] += 1
        yield about if count[about] == 1 else f"{about}_{count[about]}", one


def _names(definition: Definition, batch_id: int, now_ms: int) -> dict[tuple[str, str], list[str]]:
    """What the checks are called that a batch did not meet, critical ones left out, by suite and what they observed.

    Empty where a suite was changed and can no longer be read.
    """
    try:
        found = checks(definition, now_ms)
    except InvalidSpec:
        return {}
    names: dict[tuple[str, str], list[str]] = {}
    for one in found.checks:
        seen = [seen for seen in one.seen if seen.batch_id == batch_id and not seen.success]
        if seen and one.severity != "critical":
            names.setdefault((one.suite, seen[0].observed), []).append(one.name)
    return names


def _freshness(definition: Definition, state: LedgerState, now_ms: int) -> Iterator[Situation]:
    allowed_ms, commit = definition.notify.freshness_ms, state.commit
    if allowed_ms is None or commit is None:
        return
    by_clock = definition.window.time == "processing"
    reached_ms = commit.at_ms if by_clock else commit.watermark_out_ms
    if reached_ms in (None, MIN_WATERMARK, MAX_WATERMARK) or now_ms - reached_ms <= allowed_ms:
        return
    what = "the newest results are of" if by_clock else "results are complete up to the watermark,"
    behind = format_duration((now_ms - reached_ms) // UNITS["m"] * UNITS["m"])
    sentence = f"{what} {instant(reached_ms)}: {behind} behind the clock, and {format_duration(allowed_ms)} is allowed"
    yield Situation("freshness", "", sentence, commit.batch_id, to_paste("status", definition.file))


def _ahead(definition: Definition, state: LedgerState, now_ms: int) -> Iterator[Situation]:
    reached_ms = state.commit.watermark_out_ms if state.commit else None
    if definition.window.time == "processing" or reached_ms in (None, MAX_WATERMARK) or reached_ms <= now_ms:
        return
    ahead = format_duration(-(-(reached_ms - now_ms) // UNITS["m"]) * UNITS["m"])
    sentence = (
        f"the watermark, {instant(reached_ms)}, is {ahead} ahead of the clock, so events that come on time are late:"
        " the clock of what writes the newest events is wrong, or this one's"
    )
    yield Situation("clock", "", sentence, command=to_paste("status", definition.file))


def _silence(definition: Definition, ledger: Ledger, state: LedgerState, now_ms: int) -> Iterator[Situation]:
    """A source without a new file. The source is listed only if the files that were read came too long ago."""
    if state.commit is None or state.commit.watermark_out_ms == MAX_WATERMARK:
        return
    arrived_ms = _arrivals(ledger, state)
    usual_ms = definition.notify.silence_ms or _usual_silence_ms(arrived_ms)
    if not arrived_ms or usual_ms is None or now_ms - arrived_ms[-1] <= usual_ms:
        return
    try:
        newest_ms = max([arrived_ms[-1], *_unread(definition, ledger.tables, state)])
    except WindowError:
        return  # a source that cannot be listed may hold any file: its error is reported, not a silence
    silent_ms = now_ms - newest_ms
    if silent_ms <= usual_ms:
        return
    longer = "is allowed" if definition.notify.silence_ms else "is usual"
    said = format_duration(silent_ms // UNITS["m"] * UNITS["m"])
    limit = format_duration(usual_ms // UNITS["s"] * UNITS["s"])
    sentence = f"no new file for {said}, and at most {limit} {longer}; the newest came {instant(newest_ms)}"
    yield Situation("silence", "", sentence, command=to_paste("status", definition.file))


def _unread(definition: Definition, tables: Tables, state: LedgerState) -> Iterator[int]:
    """The times, in ms, at which files arrived that no batch has read: planned, waiting or set aside.

    Raises `WindowError` if the source cannot be listed.
    """
    source, planned = definition.source, state.plan.files if state.plan else ()
    waiting = waiting_files(source, definition.uses, tables, state.commit, check=False)
    for modified_ns in (*(file.modified_ns for file in planned), *(file.modified_ns for file in waiting)):
        yield modified_ns // PER_FILE_NS
    for path in files_set_aside(tables.root):
        if (source.path / path).is_file():
            yield (source.path / path).stat().st_mtime_ns // PER_FILE_NS


def _usual_silence_ms(arrived_ms: Sequence[int]) -> int | None:
    """How long no file may come, by what was usual; None where too little is known.

    >>> hours = [hour * 3_600_000 for hour in range(23)]
    >>> format_duration(_usual_silence_ms([*hours, hours[-1] + 50 * 3_600_000]))
    '1h 30m'
    >>> _usual_silence_ms(hours[:5])
    """
    gaps = sorted(later - earlier for earlier, later in pairwise(arrived_ms) if later > earlier)
    return int(MORE_THAN_USUAL * gaps[-2]) if len(gaps) >= ENOUGH_GAPS else None


def _arrivals(ledger: Ledger, state: LedgerState) -> list[int]:
    """When files came that were read, of the eight weeks up to the newest, in order: by statistics, and rows of folded
    files. They do not count back from now: a source that has been silent for longer would have no file at all.

    Where more than `OPENED` files hold those weeks, it is the time of the newest of them.
    """
    table = ledger.tables[SOURCE_FILES.name]
    files = table.files(state.pinned(SOURCE_FILES.name))
    newest_first = sorted(files, key=lambda file: -file.high.get("modified_ns", 0))
    newest_ns = newest_first[0].high.get("modified_ns", 0) if newest_first else 0
    since_ns = newest_ns - USUAL_FOR_MS * PER_FILE_NS
    folded = [file for file in newest_first if file.rows > 1 and file.high.get("modified_ns", 0) >= since_ns]
    if folded[OPENED:]:
        since_ns = folded[OPENED].high["modified_ns"]
    times = {file.high["modified_ns"] for file in files if file.rows == 1 and "modified_ns" in file.high}
    for file in folded[:OPENED]:
        times.update(_modified(table.folder / file.path, since_ns))
    return sorted(time // PER_FILE_NS for time in times if time >= since_ns)


def _modified(path: Path, since_ns: int) -> list[int]:
    """When the source's files that one of ours lists were modified, of those row groups that say so of later ones."""
    rows = row_groups.holding(path, {"modified_ns": lambda low, high: high >= since_ns}, MODIFIED)
    times: list[int] = rows["modified_ns"].drop_null().to_pylist()
    return times
