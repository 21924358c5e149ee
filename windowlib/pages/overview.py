"""One row per pipeline: its state, the time up to which its results are final, and its newest checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from windowlib.definition.definition import Definition
from windowlib.definition.plurals import counted
from windowlib.ledger.last_error import LastError
from windowlib.ledger.rows import Commit
from windowlib.model.errors import WindowError
from windowlib.model.rerun import TimeRange
from windowlib.model.watermark import MAX_WATERMARK, MIN_WATERMARK
from windowlib.pages.changes.last_change import last_changed_ms
from windowlib.pages.decided import OperatorDecision, decided
from windowlib.pages.failed_checks import FAILED, failed_check_sentences
from windowlib.pages.last_day import LastDay, last_day
from windowlib.pages.pipeline_state import ObservedPipeline, State, observe_pipeline, state_of
from windowlib.publication.data_range import data_range
from windowlib.quality.validations import Validated

STRIP, RECENT = 20, 5  # batches
NO_DAY = LastDay()
BLOCKED = (State.FAILING, State.WAITING)
NOW, DECISION, VERIFIED, CHECKS = "now", "decision", "verified", "checks"  # ids of sections of a pipeline's page


@dataclass(frozen=True, slots=True)
class CheckMark:
    """One batch in a strip of checks. `worst` is its worst outcome: met, warning (or info) or critical."""

    batch_id: int
    worst: str
    failed: int
    critical: int = 0

    @classmethod
    def of(cls, batch_id: int, failed: Sequence[str]) -> CheckMark:
        """Mark of a batch; `failed` has the severity of each failed check.

        >>> [CheckMark.of(7, failed).worst for failed in ([], ["info"], ["warning", "critical"])]
        ['met', 'warning', 'critical']
        """
        critical = failed.count("critical")
        return cls(batch_id, "critical" if critical else "warning" if failed else "met", len(failed), critical)

    @property
    def summary(self) -> str:
        """Failed checks in words.

        >>> CheckMark(7, "critical", 3, 1).summary, CheckMark(8, "warning", 1).summary
        ('1 critical, 2 warnings', '1 warning')
        """
        warnings = self.failed - self.critical
        parts = (f"{self.critical} critical", counted(warnings, "warning"))
        return ", ".join(part for part, some in zip(parts, (self.critical, warnings), strict=True) if some)


@dataclass(frozen=True, slots=True)
class PageWarning:
    """Warning for an operator. `solved_at` is the id of the section of the pipeline's page that helps with it."""

    sentence: str
    solved_at: str


@dataclass(frozen=True, slots=True)
class Overview:
    """Row of a pipeline. Times are in ms.

    * `final_ms` is exclusive: only reruns change windows that end at or before it.
    * `data` is the range of all published results.
    * `day` covers the batches of the last 24 hours, without undone batches.
    * `reason` is the first reason why an operator should look at the pipeline, in one line; empty if there is none.
    * `solved_at` is the id of the section of the pipeline's page that helps with it.
    * `decided` has reruns and decisions of operators, newest first.
    * `changed_ms` is the time of the last change of results.
    * `weight` orders rows with warnings: one per recently failed check, `RECENT` per silent source or watermark far
      behind.
    """

    name: str
    state: State
    why: str
    watermark_ms: int | None = None
    final_ms: int | None = None
    held_by: Sequence[str] = ()
    changed_ms: int | None = None
    run_ms: int | None = None
    data: TimeRange | None = None
    day: LastDay = NO_DAY
    strip: Sequence[CheckMark] = ()
    schedule: str | None = None
    warnings: Sequence[PageWarning] = ()
    decided: Sequence[OperatorDecision] = ()
    description: str = ""
    owner: str | None = None
    tags: Sequence[str] = ()
    weight: int = 0
    reason: str = ""
    solved_at: str = NOW

    @property
    def warns(self) -> bool:
        """Tests if an operator should look at the pipeline although it is not blocked."""
        return bool(self.warnings)

    @property
    def stands(self) -> bool:
        """Tests if the pipeline is blocked until an operator acts. `why` has the reason."""
        return self.state in BLOCKED

    @property
    def order(self) -> tuple[int, int, int, str]:
        """Sort key: blocked pipelines first, the most urgent state first; then warnings, the heaviest first."""
        urgency = list(State).index(self.state)
        group = urgency if self.stands else len(State) if self.warns else len(State) + 1
        return group, -self.weight, urgency, self.name

    @property
    def shown_state(self) -> str:
        """State in a word. A pipeline with warnings that is not blocked has the word `warning`."""
        return "warning" if self.warns and not self.stands else self.state.value


def overview(observed: ObservedPipeline) -> Overview:
    """Row of a pipeline."""
    state, why = state_of(observed)
    commit, time = observed.ledger.commit, observed.status.time
    watermark_ms = commit.watermark_out_ms if commit else None
    strip = [mark(batch) for batch in observed.checked_in_force[:STRIP]]
    warnings = list(_warnings(observed, strip[:RECENT]))
    first_place = warnings[0].solved_at if warnings and state is not State.FAILING else NOW
    return Overview(
        name=observed.definition.name,
        state=state,
        why=why,
        watermark_ms=watermark_ms,
        final_ms=final_up_to(commit),
        held_by=time.explanation if time else [],
        changed_ms=last_changed_ms(observed.tail.runs),
        run_ms=commit.at_ms if commit else None,
        data=data_range(observed.tables, commit),
        day=last_day(observed.tail.in_force, observed.now_ms),
        strip=strip[::-1],
        schedule=observed.definition.airflow.schedule,
        warnings=warnings,
        decided=decided(observed),
        weight=sum(check_mark.failed for check_mark in strip[:RECENT]) + RECENT * len(observed.still),
        description=observed.definition.description,
        owner=observed.definition.owner,
        tags=observed.definition.tags,
        reason=_reason(
            _lines(state, why, [warning.sentence for warning in warnings]),
            observed.status.error,
            f"{observed.definition.source.store}/",
        ),
        solved_at=DECISION if state is State.WAITING else first_place,
    )


def unreadable(definition_name: str, why: str) -> Overview:
    """Row of a pipeline that cannot be read, with the reason."""
    return Overview(definition_name, State.FAILING, why, reason=_reason([why]))


def _lines(state: State, why: str, warnings: Sequence[str]) -> list[str]:
    """Reasons why an operator should look, the most urgent first. A batch that waits has its first failed check.

    >>> _lines(State.WAITING, "batch 4 was refused by its checks", ["Failed, observed 3: No null", "No new file"])
    ['batch 4 was refused by its checks: observed 3: No null', 'No new file']
    >>> _lines(State.CURRENT, "there is nothing left to read", ["No new file"])
    ['No new file']
    """
    if state is State.WAITING and warnings and warnings[0].startswith(FAILED):
        return [f"{why}: {warnings[0].removeprefix(FAILED)}", *warnings[1:]]
    return [*([why] if state in BLOCKED else []), *warnings]


def _reason(lines: Sequence[str], error: LastError | None = None, source: str = "/") -> str:
    r"""First line, and the number of further lines. An error begins with its sentence.

    Files have paths relative to the address `source`, so that a narrow column shows their names.

    >>> _reason(["no access\nGrant it", "no new file for 9h"]), _reason([])
    ('no access (and 1 more)', '')
    >>> error = LastError("run", "no space left", 0, "/pipelines/clicks.toml")
    >>> _reason([error.words], error)
    'run failed: no space left'
    >>> _reason(["/data/in/4.parquet is empty"], None, "/data/in/")
    '4.parquet is empty'
    """
    if not lines:
        return ""
    first = lines[0].replace(error.words, f"{error.command} failed: {error.sentence}") if error else lines[0]
    first = first.replace(source, "") if len(source) > 1 else first
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    return f"{first.partition(chr(10))[0]}{more}"


def overviews(definitions: Iterable[Definition], now_ms: int) -> list[Overview]:
    """A row for each pipeline, trouble first. A pipeline that cannot be read gets a row with the reason."""
    rows = []
    for definition in definitions:
        try:
            rows.append(overview(observe_pipeline(definition, now_ms)))
        except (WindowError, OSError) as error:
            rows.append(unreadable(definition.name, str(error)))
    return in_order(rows)


def in_order(rows: Iterable[Overview]) -> list[Overview]:
    """Sorts rows, trouble first."""
    return sorted(rows, key=lambda row: row.order)


def final_up_to(commit: Commit | None) -> int | None:
    """Time up to which (exclusive) all windows are past their cleanup time; None before the first event.

    `MAX_WATERMARK` if all windows are past their cleanup time.
    """
    if commit is None or commit.watermark_out_ms in (None, MIN_WATERMARK):
        return None
    last_ms = commit.late_out_ms
    return last_ms if last_ms in (MIN_WATERMARK, MAX_WATERMARK) else last_ms + 1


def mark(batch: Validated) -> CheckMark:
    """Mark of a batch in a strip of checks."""
    return CheckMark.of(batch.batch_id, [result["expectation_config"]["severity"] for result in batch.failed])


def _warnings(observed: ObservedPipeline, newest: Sequence[CheckMark]) -> Iterator[PageWarning]:
    """Yields warnings for an operator that do not block the pipeline."""
    if observed.status.error and state_of(observed)[0] is not State.FAILING:
        yield PageWarning(observed.status.error.words, NOW)
    if (last := observed.status.verified) and last.outcome == "different":
        yield PageWarning(f"verify found windows that differ from the source, as of batch {last.batch_id}", VERIFIED)
    if observed.status.removal:
        yield PageWarning(observed.status.removal, NOW)
    if observed.status.migration:
        yield PageWarning(observed.status.migration, NOW)
    yield from (PageWarning(sentence, NOW) for sentence in observed.still)
    times = {run.batch_id: run.at_ms for run in observed.tail.runs}
    checked = observed.checked_in_force
    failed = failed_check_sentences(
        observed.definition, observed.tables, observed.ledger.commit, checked, len(newest), times
    )
    yield from (PageWarning(sentence, CHECKS) for sentence in failed)
