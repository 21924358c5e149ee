"""A pipeline in one row: its state, how far its results are final, what its newest checks found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from windowlib.definition.definition import Definition
from windowlib.definition.plurals import counted
from windowlib.ledger.rows import Commit
from windowlib.model.errors import WindowError
from windowlib.model.rerun import TimeRange
from windowlib.model.watermark import MAX_WATERMARK, MIN_WATERMARK
from windowlib.pages.changes import last_changed_ms
from windowlib.pages.failed_checks import warned
from windowlib.pages.newest_rows import RUNS_SHOWN
from windowlib.pages.pipeline_state import ObservedPipeline, State, looked, state_of
from windowlib.pages.trends import late_share
from windowlib.publication.data_range import data_range
from windowlib.quality.validations import Validated

STRIP, RECENT = 20, 5  # batches


@dataclass(frozen=True, slots=True)
class CheckMark:
    """One batch in a strip of checks: `worst` is met, warning (or less) or critical, of what its checks found."""

    batch_id: int
    worst: str
    failed: int
    critical: int = 0

    @classmethod
    def of(cls, batch_id: int, failed: Sequence[str]) -> CheckMark:
        """That of a batch; `failed` has the severity of each check that did not hold.

        >>> [CheckMark.of(7, failed).worst for failed in ([], ["info"], ["warning", "critical"])]
        ['met', 'warning', 'critical']
        """
        critical = failed.count("critical")
        return cls(batch_id, "critical" if critical else "warning" if failed else "met", len(failed), critical)

    @property
    def said(self) -> str:
        """What failed.

        >>> CheckMark(7, "critical", 3, 1).said, CheckMark(8, "warning", 1).said
        ('1 critical, 2 warnings', '1 warning')
        """
        warnings = self.failed - self.critical
        parts = (f"{self.critical} critical", counted(warnings, "warning"))
        return ", ".join(part for part, some in zip(parts, (self.critical, warnings), strict=True) if some)


@dataclass(frozen=True, slots=True)
class Overview:
    """The row. Times are ms; `final_ms` is exclusive: windows that end at or before it change by reruns alone.

    `data` is the range of all published results, `late_share` that of the newest batches together (`RUNS_SHOWN` at
    most, none that was undone), `changed_ms` when results last changed. `weight` orders what warns: checks that failed
    lately count one each, a silent source or a watermark far behind `RECENT`.
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
    late_share: float | None = None
    strip: Sequence[CheckMark] = ()
    schedule: str | None = None
    warnings: Sequence[str] = ()
    description: str = ""
    owner: str | None = None
    tags: Sequence[str] = ()
    weight: int = 0

    @property
    def warns(self) -> bool:
        """Whether an operator should look at it, although it does not stand still."""
        return bool(self.warnings)

    @property
    def stands(self) -> bool:
        """Whether nothing goes on before an operator acts, and `why` says on what."""
        return self.state in (State.FAILING, State.WAITING)

    @property
    def order(self) -> tuple[int, bool, int, str]:
        """Trouble first, of what warns the heaviest first."""
        return list(State).index(self.state), not self.warns, -self.weight, self.name


def overview(found: ObservedPipeline) -> Overview:
    """The row of a pipeline."""
    state, why = state_of(found)
    commit, time, runs = found.ledger.commit, found.status.time, found.tail.in_force[:RUNS_SHOWN]
    watermark_ms = commit.watermark_out_ms if commit else None
    strip = [mark(one) for one in found.checked_in_force[:STRIP]]
    warnings = list(_warnings(found, strip[:RECENT]))
    return Overview(
        name=found.definition.name,
        state=state,
        why=why,
        watermark_ms=watermark_ms,
        final_ms=final_up_to(commit),
        held_by=time.explanation if time else [],
        changed_ms=last_changed_ms(found.tail.runs),
        run_ms=commit.at_ms if commit else None,
        data=data_range(found.tables, commit),
        late_share=late_share(runs),
        strip=strip[::-1],
        schedule=found.definition.airflow.schedule,
        warnings=warnings,
        weight=sum(one.failed for one in strip[:RECENT]) + RECENT * len(found.still),
        description=found.definition.description,
        owner=found.definition.owner,
        tags=found.definition.tags,
    )


def unreadable(definition_name: str, why: str) -> Overview:
    """The row of a pipeline that cannot be looked at, with the sentence that says why."""
    return Overview(definition_name, State.FAILING, why)


def overviews(definitions: Iterable[Definition], now_ms: int) -> list[Overview]:
    """A row for each pipeline, trouble first. One that cannot be looked at has a row that says so."""
    rows = []
    for one in definitions:
        try:
            rows.append(overview(looked(one, now_ms)))
        except (WindowError, OSError) as error:
            rows.append(unreadable(one.name, str(error)))
    return in_order(rows)


def in_order(rows: Iterable[Overview]) -> list[Overview]:
    """Trouble first."""
    return sorted(rows, key=lambda row: row.order)


def final_up_to(commit: Commit | None) -> int | None:
    """The end, exclusive, of the time whose windows are past their cleanup time; None before the first event.

    `MAX_WATERMARK` where that is all time.
    """
    if commit is None or commit.watermark_out_ms in (None, MIN_WATERMARK):
        return None
    last_ms = commit.late_out_ms
    return last_ms if last_ms in (MIN_WATERMARK, MAX_WATERMARK) else last_ms + 1


def mark(batch: Validated) -> CheckMark:
    """A batch in a strip."""
    return CheckMark.of(batch.batch_id, [one["expectation_config"]["severity"] for one in batch.failed])


def _warnings(found: ObservedPipeline, newest: Sequence[CheckMark]) -> Iterator[str]:
    """What an operator should look at, although nothing stands still."""
    if found.status.error and state_of(found)[0] is not State.FAILING:
        yield found.status.error.words
    if (last := found.status.verified) and last.outcome == "different":
        yield f"verify found windows that are not what the source says, as of batch {last.batch_id}"
    if found.status.removal:
        yield found.status.removal
    if found.status.migration:
        yield found.status.migration
    yield from found.still
    times = {run.batch_id: run.at_ms for run in found.tail.runs}
    checked = found.checked_in_force
    yield from warned(found.definition, found.tables, found.ledger.commit, checked, len(newest), times)
