"""Situations of a pipeline that notices report, judged from its current tables.

    failure     a run ended with an error, or died
    decision    a batch was refused by its checks and waits for an operator
    warning.C   the check C, of severity warning, failed in the newest batch
    silence     no new file, read or not, for longer than usual (or than notify.silence)
    freshness   the watermark is further behind the clock than notify.freshness
    clock       the watermark is ahead of the clock: events that come on time are late

The usual silence is one and a half times the second longest gap between files, in the eight weeks up to the newest
file. So a single outage does not count, but nights and weekends do. At least `ENOUGH_GAPS` gaps are needed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windowlib.batches.may_run import decision_command
from windowlib.batches.planning import ledger_of
from windowlib.contract.tables import DQ_RESULTS, SOURCE_FILES
from windowlib.definition.commands import to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant
from windowlib.definition.toml.durations import UNITS, format_duration
from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.delta import row_groups
from windowlib.delta.data_files import parquet_file
from windowlib.delta.tables import Tables
from windowlib.inspection.checks import checks
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.rows import LedgerState
from windowlib.ledger.set_aside_files import files_set_aside
from windowlib.model.errors import InvalidSpec, WindowError
from windowlib.model.watermark import MAX_WATERMARK, MIN_WATERMARK
from windowlib.quality.check import CheckResult, column_of, in_words, without_examples
from windowlib.quality.validations import stored_outcome, stored_outcomes
from windowlib.source.listing import waiting_files
from windowlib.storage.store import Store

KINDS = ("failure", "decision", "warning", "silence", "freshness", "clock")
LONGEST = 500  # characters of a sentence
ENOUGH_GAPS = 20
USUAL_FOR_MS, MORE_THAN_USUAL = 56 * UNITS["d"], 1.5
OPENED = 8  # most compacted files of `source_files` to open
MODIFIED = pa.schema([("modified_ns", pa.int64())])
PER_FILE_NS = 1_000_000  # ns in a ms


@dataclass(frozen=True, slots=True)
class Situation:
    """A state of a pipeline that operators should know. Another `signature` means that the situation has changed."""

    key: str
    signature: str
    sentence: str
    batch_id: int | None = None
    command: str | None = None  # shows or ends the situation

    @property
    def kind(self) -> str:
        """Kind of the situation, from `KINDS`."""
        return self.key.partition(".")[0]


def situations(definition: Definition, now_ms: int) -> list[Situation]:
    """All situations that hold now, except for the error of the run that has just ended."""
    ledger = ledger_of(definition, lambda: now_ms)
    state = ledger.state()
    return [
        *_decision(definition.file, state),
        *_died(definition.file, ledger, state),
        *_warnings(definition, ledger, state, now_ms),
        *standing_still(definition, ledger, state, now_ms),
    ]


def standing_still(definition: Definition, ledger: Ledger, state: LedgerState, now_ms: int) -> list[Situation]:
    """Situations judged by the clock: a watermark too far behind or ahead of the clock, a silent source."""
    return [
        *_freshness(definition, state, now_ms),
        *_ahead(definition, state, now_ms),
        *_silence(definition, ledger, state, now_ms),
    ]


def failure(file: Path, sentence: str) -> Situation:
    """Situation of a run that ended with an error. Errors that differ only in numbers and paths get one signature."""
    first = sentence.splitlines()[0] if sentence else "an error without a message"
    signature = re.sub(r"\(full traceback: .*\)|\d+|/\S+", "#", first)
    return Situation("failure", signature[:LONGEST], first[:LONGEST], command=to_paste("status", file))


def _decision(file: Path, state: LedgerState) -> Iterator[Situation]:
    if state.plan is None or not state.is_refused:
        return
    reasons = " ".join(without_examples(line) for line in (state.rejection or "").splitlines())  # a line for each check
    sentence = f"batch {state.plan.batch_id} was refused by its checks and waits for a decision: {reasons}"
    command = decision_command("approve", file, state.plan)
    yield Situation("decision", str(state.plan.batch_id), sentence[:LONGEST], state.plan.batch_id, command)


def _died(file: Path, ledger: Ledger, state: LedgerState) -> Iterator[Situation]:
    """Situation of a run that died: its plan is open, and no process holds its claim, which is not released."""
    if state.plan is None or state.rejection or state.claim is None or state.claim.released:
        return
    if ledger.holder(state.claim) is None:
        sentence = (
            f"the run that worked on batch {state.plan.batch_id} ended without finishing it; the next run finishes it"
        )
        command = to_paste("run", file)
        yield Situation("failure", f"died {state.plan.batch_id}", sentence, state.plan.batch_id, command)


def _warnings(definition: Definition, ledger: Ledger, state: LedgerState, now_ms: int) -> Iterator[Situation]:
    """Situations of failed warnings in the newest batch of `dq_results`, which omits abandoned and undone batches."""
    judged = ledger.tables[DQ_RESULTS.name].newest_batch(state.pinned(DQ_RESULTS.name))
    newest = None if judged is None else stored_outcome(definition.store, judged)
    if newest is None:
        return
    checks_by_name = dict(_by_name(in_words(newest.suites, newest.figures)))
    failed = {
        about: check for about, check in checks_by_name.items() if not check.success and check.severity != "critical"
    }
    names = _names(definition, newest.batch_id, now_ms) if failed else {}
    for about, check in failed.items():
        observed = without_examples(check.observed)
        sentence = f"batch {newest.batch_id}: {check.sentence} Expected {check.expected}, observed {observed}."
        command_names = names.get((check.suite, check.observed))
        command = to_paste("checks", definition.file, *(("--explain", command_names.pop(0)) if command_names else ()))
        yield Situation(f"warning.{about}", "", sentence[:LONGEST], newest.batch_id, command)


def checks_judged(store: Store) -> list[str]:
    """Names of checks that can follow `warning.`, from the newest judged batch; empty if no batch was judged."""
    return [
        about for batch in stored_outcomes(store, 1) for about, _ in _by_name(in_words(batch.suites, batch.figures))
    ]


def _by_name(results: Sequence[CheckResult]) -> Iterator[tuple[str, CheckResult]]:
    """Yields situation name and check, for each check of a batch. Repeated names get a number, from `_2` on."""
    count = Counter[str]()
    for result in results:
        about = f"{result.suite}.{column_of(result.expectation) or result.expectation}"
        count[about] += 1
        yield about if count[about] == 1 else f"{about}_{count[about]}", result


def _names(definition: Definition, batch_id: int, now_ms: int) -> dict[tuple[str, str], list[str]]:
    """Names of the non-critical checks that failed in a batch, by suite and observed value.

    Empty if a suite cannot be read any more.
    """
    try:
        report = checks(definition, now_ms)
    except InvalidSpec:
        return {}
    names: dict[tuple[str, str], list[str]] = {}
    for check in report.checks:
        failed = [outcome for outcome in check.seen if outcome.batch_id == batch_id and not outcome.success]
        if failed and check.severity != "critical":
            names.setdefault((check.suite, failed[0].observed), []).append(check.name)
    return names


def _freshness(definition: Definition, state: LedgerState, now_ms: int) -> Iterator[Situation]:
    allowed_ms, commit = definition.notify.freshness_ms, state.commit
    if allowed_ms is None or commit is None:
        return
    by_clock = definition.window.time == "processing"
    reached_ms = commit.at_ms if by_clock else commit.watermark_out_ms
    if reached_ms in (None, MIN_WATERMARK, MAX_WATERMARK) or now_ms - reached_ms <= allowed_ms:
        return
    subject = "the newest results are of" if by_clock else "results are complete up to the watermark,"
    behind = format_duration((now_ms - reached_ms) // UNITS["m"] * UNITS["m"])
    sentence = (
        f"{subject} {instant(reached_ms)}: {behind} behind the clock, and {format_duration(allowed_ms)} is allowed"
    )
    yield Situation("freshness", "", sentence, commit.batch_id, to_paste("status", definition.file))


def _ahead(definition: Definition, state: LedgerState, now_ms: int) -> Iterator[Situation]:
    reached_ms = state.commit.watermark_out_ms if state.commit else None
    if definition.window.time == "processing" or reached_ms in (None, MAX_WATERMARK) or reached_ms <= now_ms:
        return
    ahead = format_duration(-(-(reached_ms - now_ms) // UNITS["m"]) * UNITS["m"])
    sentence = (
        f"the watermark, {instant(reached_ms)}, is {ahead} ahead of the clock, so events that come on time are late:"
        " the clock of this machine or of the writer of the newest events is wrong"
    )
    yield Situation("clock", "", sentence, command=to_paste("status", definition.file))


def _silence(definition: Definition, ledger: Ledger, state: LedgerState, now_ms: int) -> Iterator[Situation]:
    """Situation of a silent source. Lists the source only if the newest file read is older than the limit."""
    if state.commit is None or state.commit.watermark_out_ms == MAX_WATERMARK:
        return
    arrived_ms = _arrivals(ledger, state)
    usual_ms = definition.notify.silence_ms or _usual_silence_ms(arrived_ms)
    if not arrived_ms or usual_ms is None or now_ms - arrived_ms[-1] <= usual_ms:
        return
    try:
        newest_ms = max([arrived_ms[-1], *_unread(definition.source, definition.uses, ledger.tables, state)])
    except WindowError:
        return  # a source that cannot be listed may hold new files: its error is reported instead
    silent_ms = now_ms - newest_ms
    if silent_ms <= usual_ms:
        return
    longer = "is allowed" if definition.notify.silence_ms else "is usual"
    silence = format_duration(silent_ms // UNITS["m"] * UNITS["m"])
    limit = format_duration(usual_ms // UNITS["s"] * UNITS["s"])
    sentence = f"no new file for {silence}, and at most {limit} {longer}; the newest came {instant(newest_ms)}"
    yield Situation("silence", "", sentence, command=to_paste("status", definition.file))


def _unread(source: Source, uses: Uses, tables: Tables, state: LedgerState) -> Iterator[int]:
    """Arrival times, in ms, of the files that no batch has read: planned, waiting or set aside.

    Raises `WindowError` if the source cannot be listed.
    """
    planned, set_aside = state.plan.files if state.plan else (), files_set_aside(tables.store)
    waiting = waiting_files(source, uses, tables, state.commit, check=False)
    for modified_ns in (*(file.modified_ns for file in planned), *(file.modified_ns for file in waiting)):
        yield modified_ns // PER_FILE_NS
    for info in source.store.infos([*set_aside]):
        if info is not None:
            yield info.modified_ns // PER_FILE_NS


def _usual_silence_ms(arrived_ms: Sequence[int]) -> int | None:
    """Longest usual time without a new file, in ms; None if there are fewer than `ENOUGH_GAPS` gaps.

    >>> hours = [hour * 3_600_000 for hour in range(23)]
    >>> format_duration(_usual_silence_ms([*hours, hours[-1] + 50 * 3_600_000]))
    '1h 30m'
    >>> _usual_silence_ms(hours[:5])
    """
    gaps = sorted(later - earlier for earlier, later in pairwise(arrived_ms) if later > earlier)
    return int(MORE_THAN_USUAL * gaps[-2]) if len(gaps) >= ENOUGH_GAPS else None


def _arrivals(ledger: Ledger, state: LedgerState) -> list[int]:
    """Sorted arrival times in ms of the files that were read in the eight weeks up to the newest file.

    The range ends at the newest file, not now, because a source that was silent for eight weeks would have no file in
    the range. Times come from the statistics of `source_files`, and from its `OPENED` newest compacted files. If there
    are more compacted files, the range starts at the newest time in the first compacted file that is not opened.
    """
    table = ledger.tables[SOURCE_FILES.name]
    files = table.files(state.pinned(SOURCE_FILES.name))
    newest_first = sorted(files, key=lambda file: -file.high.get("modified_ns", 0))
    newest_ns = newest_first[0].high.get("modified_ns", 0) if newest_first else 0
    since_ns = newest_ns - USUAL_FOR_MS * PER_FILE_NS
    compacted = [file for file in newest_first if file.rows > 1 and file.high.get("modified_ns", 0) >= since_ns]
    if compacted[OPENED:]:
        since_ns = compacted[OPENED].high["modified_ns"]
    times = {file.high["modified_ns"] for file in files if file.rows == 1 and "modified_ns" in file.high}
    for file in compacted[:OPENED]:
        times.update(_modified(parquet_file(table.store, file.path, file.size_bytes), since_ns))
    return sorted(time // PER_FILE_NS for time in times if time >= since_ns)


def _modified(file: pq.ParquetFile, since_ns: int) -> list[int]:
    """Modification times in ns from a file of `source_files`. Skips row groups with only times before `since_ns`."""
    rows = row_groups.holding(file, {"modified_ns": lambda low, high: high >= since_ns}, MODIFIED)
    times: list[int] = rows["modified_ns"].drop_null().to_pylist()
    return times
