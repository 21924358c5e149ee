"""One row per pipeline: its state, the time up to which its results are final, and its newest checks."""

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
from windowlib.pages.failed_checks import failed_check_sentences
from windowlib.pages.newest_rows import RUNS_SHOWN
from windowlib.pages.pipeline_state import ObservedPipeline, State, observe_pipeline, state_of
from windowlib.pages.trends import late_share
from windowlib.publication.data_range import data_range
from windowlib.quality.validations import Validated

STRIP, RECENT = 20, 5  # batches


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
class Overview:
    """Row of a pipeline. Times are in ms.

    * `final_ms` is exclusive: only reruns change windows that end at or before it.
    * `data` is the range of all published results.
    * `late_share` covers the newest batches together: at most `RUNS_SHOWN`, without undone batches.
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
        """Tests if an operator should look at the pipeline although it is not blocked."""
        return bool(self.warnings)

    @property
    def stands(self) -> bool:
        """Tests if the pipeline is blocked until an operator acts. `why` has the reason."""
        return self.state in (State.FAILING, State.WAITING)

    @property
    def order(self) -> tuple[int, bool, int, str]:
        """Sort key: trouble first; among warnings, the heaviest first."""
        return list(State).index(self.state), not self.warns, -self.weight, self.name


def overview(observed: ObservedPipeline) -> Overview:
    """Row of a pipeline."""
    state, why = state_of(observed)
    commit, time, runs = observed.ledger.commit, observed.status.time, observed.tail.in_force[:RUNS_SHOWN]
    watermark_ms = commit.watermark_out_ms if commit else None
    strip = [mark(batch) for batch in observed.checked_in_force[:STRIP]]
    warnings = list(_warnings(observed, strip[:RECENT]))
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
        late_share=late_share(runs),
        strip=strip[::-1],
        schedule=observed.definition.airflow.schedule,
        warnings=warnings,
        weight=sum(check_mark.failed for check_mark in strip[:RECENT]) + RECENT * len(observed.still),
        description=observed.definition.description,
        owner=observed.definition.owner,
        tags=observed.definition.tags,
    )


def unreadable(definition_name: str, why: str) -> Overview:
    """Row of a pipeline that cannot be read, with the reason."""
    return Overview(definition_name, State.FAILING, why)


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


def _warnings(observed: ObservedPipeline, newest: Sequence[CheckMark]) -> Iterator[str]:
    """Yields warnings for an operator that do not block the pipeline."""
    if observed.status.error and state_of(observed)[0] is not State.FAILING:
        yield observed.status.error.words
    if (last := observed.status.verified) and last.outcome == "different":
        yield f"verify found windows that differ from the source, as of batch {last.batch_id}"
    if observed.status.removal:
        yield observed.status.removal
    if observed.status.migration:
        yield observed.status.migration
    yield from observed.still
    times = {run.batch_id: run.at_ms for run in observed.tail.runs}
    checked = observed.checked_in_force
    yield from failed_check_sentences(
        observed.definition, observed.tables, observed.ledger.commit, checked, len(newest), times
    )
