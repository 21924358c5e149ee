"""Sends the notices of a pipeline: each situation once until it changes, and once when it is over.

    judge what holds -> compare with what was reported -> claim what is to be sent -> deliver -> keep whether it arrived

What was reported is in the table `notices` (`windowlib.ledger.notices`), which says how that survives a restart and
two runs at once. A delivery that fails is a note, fails no run, and is tried again when the next run or plan ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import iso_instant, time_of, utc
from windowlib.definition.toml.file import Notify
from windowlib.delta.tables import Tables
from windowlib.ledger.acknowledgements import Acknowledged, acknowledged, quiet
from windowlib.ledger.notices import Notice, ReportedNotices, add, reported
from windowlib.notices.situations import Situation, failure, situations
from windowlib.notices.webhook import Undelivered, post

HandOver = Callable[[Mapping[str, Any]], None]
TRIES = 5  # to be the process that sends, while others add notices


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """How a command ended: the sentence of its `error`, if any; `is_well` where it did all that there was to do."""

    error: str | None = None
    is_well: bool = False


@dataclass(frozen=True, slots=True)
class PendingNotice:
    """A notice to be sent, and the command that looks at what it is about."""

    notice: Notice
    command: str | None = None


def notify(
    definition: Definition, ended: CommandOutcome, now_ms: int, hand_over: HandOver | None, note: Callable[[str], None]
) -> bool:
    """Sends what has begun, changed or ended since the last notices: whether there was anything.

    Does nothing without `[notify]`. `hand_over` passes a notice on to Airflow's notifier, where there is one. Raises
    nothing: what goes wrong is a note.
    """
    to_airflow = hand_over if definition.notify.airflow else None
    if not (definition.notify.has_webhook or to_airflow):
        return False
    try:
        outcomes = list(_sent(definition, _claimed(definition, ended, now_ms), to_airflow))
        keep(definition.root, outcomes)
    except Exception as error:  # a notice that is not sent must not fail a run
        note(f"{definition.name}: notices could not be judged or kept: {type(error).__name__}: {error}")
        return False
    if failed := [one for one in outcomes if one.error]:
        what = ", ".join(f"{one.situation} {one.what}" for one in failed)
        note(f"{definition.name}: not delivered ({what}): {failed[0].error}; tried again after the next run")
    return bool(outcomes)


def keep(root: Path, outcomes: Sequence[Notice]) -> None:
    """Keeps what became of notices, however often others are faster."""
    for _ in range(TRIES):
        if not outcomes or add(root, reported(root), outcomes):
            return


def message(definition: Definition, step: PendingNotice) -> dict[str, Any]:
    """A notice as it is sent. Its `text` is what a chat shows."""
    one = step.notice
    about = {"began": "", "changed": " has changed", "over": " is over. It was"}[one.what]
    return {
        "text": f"{definition.name}: {one.situation}{about}: {one.sentence}",
        "pipeline": definition.name,
        "description": definition.description,
        "owner": definition.owner,
        "situation": one.situation,
        "what": one.what,
        "sentence": one.sentence,
        "since": iso_instant(time_of(one.since)),
        "at": iso_instant(time_of(one.at)),
        "batch_id": one.batch_id,
        "command": step.command,
        "acknowledge": to_paste("acknowledge", definition.file, one.situation, "--until", "1d", *WHY),
    }


def _claimed(definition: Definition, ended: CommandOutcome, now_ms: int) -> list[PendingNotice]:
    """What this process is to send: no other does, as the rows that say so were written in one commit."""
    for _ in range(TRIES):
        before = reported(definition.root)
        steps = list(_steps(definition, before, ended, now_ms))
        if not steps or add(definition.root, before, [step.notice for step in steps]):
            return [step for step in steps if step.notice.delivered is None]
    return []  # others were faster again and again: they have sent it, or the next run does


def _steps(
    definition: Definition, before: ReportedNotices, ended: CommandOutcome, now_ms: int
) -> Iterator[PendingNotice]:
    """What there is to send, as rows that are not delivered yet; and what need not be sent, as delivered."""
    holding = {one.key: one for one in situations(definition, now_ms)}
    if ended.error is not None:
        holding["failure"] = failure(definition.file, ended.error)
    holding = {key: one for key, one in holding.items() if one.kind in definition.notify.about}
    calm = acknowledged(Tables(definition.root), now_ms) if holding or before.open else {}
    for key, one in holding.items():
        if not quiet(calm, key):
            yield from _of_holding(one, before.open.get(key), now_ms)
    for key, past in before.newest.items():
        unknown = key == "failure" and not ended.is_well and past.what != "over"
        if key not in holding and not unknown:
            yield from _of_gone(past, calm, now_ms)


def _of_holding(one: Situation, past: Notice | None, now_ms: int) -> Iterator[PendingNotice]:
    at = utc(now_ms)
    if past is None:
        made = Notice(at, at, one.key, "began", one.signature, one.sentence, one.batch_id)
    elif past.signature != one.signature:
        made = Notice(at, past.since, one.key, "changed", one.signature, one.sentence, one.batch_id)
    elif not past.is_settled(now_ms):
        made = replace(past, at=at, sentence=one.sentence, batch_id=one.batch_id, delivered=None, error=None)
    else:
        return
    yield PendingNotice(made, one.command)


def _of_gone(past: Notice, calm: Mapping[str, Acknowledged], now_ms: int) -> Iterator[PendingNotice]:
    if past.what == "over":
        if not past.is_settled(now_ms):
            yield PendingNotice(replace(past, at=utc(now_ms), delivered=None, error=None))
        return
    was_never_reported = past.what == "began" and not past.delivered
    need_not = True if was_never_reported or quiet(calm, past.situation) else None
    yield PendingNotice(replace(past, at=utc(now_ms), what="over", delivered=need_not, error=None))


def _sent(definition: Definition, steps: Sequence[PendingNotice], to_airflow: HandOver | None) -> Iterator[Notice]:
    """What became of each; after the first that fails no other is tried, so that a run waits for one timeout only."""
    failed: str | None = None
    for step in steps:
        failed = failed or _undelivered(definition.notify, message(definition, step), to_airflow)
        yield replace(step.notice, delivered=failed is None, error=failed)


def _undelivered(notify: Notify, notice: Mapping[str, Any], to_airflow: HandOver | None) -> str | None:
    """Why a notice was not delivered; None where it was."""
    if to_airflow:
        to_airflow(notice)
    if notify.has_webhook:
        try:
            post(notify, notice)
        except Undelivered as error:
            return str(error)
    return None
