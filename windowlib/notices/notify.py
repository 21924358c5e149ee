"""Sends the notices of a pipeline. Each situation is reported once until it changes, and once when it is over.

    judge the situations -> compare with the notices reported -> claim new notices -> deliver -> record the outcome

The table `notices` records the reported situations. `windowlib.ledger.notices` describes its behaviour after restarts
and in concurrent runs. A failed delivery adds a note and fails no run. The next run or plan repeats the delivery at its
end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import iso_instant, time_of, utc
from windowlib.definition.toml.file import Notify
from windowlib.delta.tables import Tables
from windowlib.ledger.acknowledgements import Acknowledged, acknowledged, acknowledgement_of
from windowlib.ledger.notices import Notice, ReportedNotices, add, reported
from windowlib.notices.situations import Situation, failure, situations
from windowlib.notices.webhook import Undelivered, post
from windowlib.storage.store import Store

HandOver = Callable[[Mapping[str, Any]], None]
TRIES = 5  # attempts to add rows while other processes add rows


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """Outcome of a command. `error` is its error message, or None. With `is_well`, success ends an earlier failure."""

    error: str | None = None
    is_well: bool = False


@dataclass(frozen=True, slots=True)
class PendingNotice:
    """A notice to be sent, and the command that shows or ends its situation."""

    notice: Notice
    command: str | None = None


def notify(
    definition: Definition, ended: CommandOutcome, now_ms: int, hand_over: HandOver | None, note: Callable[[str], None]
) -> bool:
    """Sends notices of situations that began, changed or ended. Returns True if it sent or tried to send a notice.

    Does nothing without `[notify]`. `hand_over` passes a notice to Airflow's notifier, if there is one. Raises
    nothing: an error becomes a note.
    """
    to_airflow = hand_over if definition.notify.airflow else None
    if not (definition.notify.has_webhook or to_airflow):
        return False
    try:
        outcomes = list(_sent(definition, _claimed(definition, ended, now_ms), to_airflow))
        keep(definition.store, outcomes)
    except Exception as error:  # a notice that is not sent must not fail a run
        note(f"{definition.name}: notices could not be judged or stored: {type(error).__name__}: {error}")
        return False
    if failed := [notice for notice in outcomes if notice.error]:
        notices = ", ".join(f"{notice.situation} {notice.what}" for notice in failed)
        note(f"{definition.name}: notices not delivered ({notices}): {failed[0].error}. The next run tries again")
    return bool(outcomes)


def keep(store: Store, outcomes: Sequence[Notice]) -> None:
    """Stores the outcomes of deliveries. Tries again while other processes add notices."""
    for _ in range(TRIES):
        if not outcomes or add(store, reported(store), outcomes):
            return


def message(definition: Definition, step: PendingNotice) -> dict[str, Any]:
    """JSON object of a notice. Chat programs show the value of `text`."""
    notice = step.notice
    about = {"began": "", "changed": " has changed", "over": " is over. It was"}[notice.what]
    return {
        "text": f"{definition.name}: {notice.situation}{about}: {notice.sentence}",
        "pipeline": definition.name,
        "description": definition.description,
        "owner": definition.owner,
        "situation": notice.situation,
        "what": notice.what,
        "sentence": notice.sentence,
        "since": iso_instant(time_of(notice.since)),
        "at": iso_instant(time_of(notice.at)),
        "batch_id": notice.batch_id,
        "command": step.command,
        "acknowledge": to_paste("acknowledge", definition.file, notice.situation, "--until", "1d", *WHY),
    }


def _claimed(definition: Definition, ended: CommandOutcome, now_ms: int) -> list[PendingNotice]:
    """Claims the due notices: adds their rows in one commit, so that no other process sends these notices."""
    store = definition.store
    for _ in range(TRIES):
        before = reported(store)
        steps = list(_steps(definition, before, ended, now_ms))
        if not steps or add(store, before, [step.notice for step in steps]):
            return [step for step in steps if step.notice.delivered is None]
    return []  # other processes were faster each time: they have sent the notices, or the next run sends them


def _steps(
    definition: Definition, before: ReportedNotices, ended: CommandOutcome, now_ms: int
) -> Iterator[PendingNotice]:
    """Yields the due notices. Marks notices that need not be sent as delivered."""
    holding = {situation.key: situation for situation in situations(definition, now_ms)}
    if ended.error is not None:
        holding["failure"] = failure(definition.file, ended.error)
    holding = {key: situation for key, situation in holding.items() if situation.kind in definition.notify.about}
    acknowledgements = acknowledged(Tables(definition.store), now_ms) if holding or before.open else {}
    for key, situation in holding.items():
        if not acknowledgement_of(acknowledgements, key):
            yield from _notice_of_situation(situation, before.open.get(key), now_ms)
    for key, last in before.newest.items():
        unknown = key == "failure" and not ended.is_well and last.what != "over"
        if key not in holding and not unknown:
            yield from _notice_of_end(last, acknowledgements, now_ms)


def _notice_of_situation(situation: Situation, last: Notice | None, now_ms: int) -> Iterator[PendingNotice]:
    at = utc(now_ms)
    if last is None:
        notice = Notice(at, at, situation.key, "began", situation.signature, situation.sentence, situation.batch_id)
    elif last.signature != situation.signature:
        notice = Notice(
            at, last.since, situation.key, "changed", situation.signature, situation.sentence, situation.batch_id
        )
    elif not last.is_settled(now_ms):
        notice = replace(
            last, at=at, sentence=situation.sentence, batch_id=situation.batch_id, delivered=None, error=None
        )
    else:
        return
    yield PendingNotice(notice, situation.command)


def _notice_of_end(last: Notice, acknowledgements: Mapping[str, Acknowledged], now_ms: int) -> Iterator[PendingNotice]:
    if last.what == "over":
        if not last.is_settled(now_ms):
            yield PendingNotice(replace(last, at=utc(now_ms), delivered=None, error=None))
        return
    was_never_reported = last.what == "began" and not last.delivered
    is_settled = True if was_never_reported or acknowledgement_of(acknowledgements, last.situation) else None
    yield PendingNotice(replace(last, at=utc(now_ms), what="over", delivered=is_settled, error=None))


def _sent(definition: Definition, steps: Sequence[PendingNotice], to_airflow: HandOver | None) -> Iterator[Notice]:
    """Delivers notices and yields their outcomes.

    After a failure, marks the remaining notices as failed, so a run waits for one timeout only.
    """
    failed: str | None = None
    for step in steps:
        failed = failed or _undelivered(definition.notify, message(definition, step), to_airflow)
        yield replace(step.notice, delivered=failed is None, error=failed)


def _undelivered(notify: Notify, notice: Mapping[str, Any], to_airflow: HandOver | None) -> str | None:
    """Delivers a notice. Returns None, or the reason why the delivery failed."""
    if to_airflow:
        to_airflow(notice)
    if notify.has_webhook:
        try:
            post(notify, notice)
        except Undelivered as error:
            return str(error)
    return None
