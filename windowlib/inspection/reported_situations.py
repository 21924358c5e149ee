"""Situations of a pipeline that notices have reported or that an operator has silenced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windowlib.definition.instants import instant, time_of
from windowlib.delta.tables import Tables
from windowlib.ledger.acknowledgements import acknowledged, acknowledgement_of
from windowlib.ledger.notices import reported
from windowlib.storage.store import Store


@dataclass(frozen=True, slots=True)
class ReportedSituation:
    """A situation that a notice reported or an operator silenced. A silence has operator, reason and end."""

    situation: str
    sentence: str | None
    since_ms: int | None
    quiet_until_ms: int | None
    who: str | None
    reason: str | None

    @property
    def line(self) -> str:
        """The situation, its start, and the operator who silenced it.

        >>> ReportedSituation("silence", None, None, 0, "ann", "closed").line
        'silence: kept quiet by ann until 1970-01-01 00:00:00 UTC (closed)'
        """
        parts = [f"{self.sentence}, since {instant(self.since_ms)}"] if self.sentence else []
        if self.quiet_until_ms is not None:
            parts.append(f"kept quiet by {self.who} until {instant(self.quiet_until_ms)} ({self.reason})")
        return f"{self.situation}: {'; '.join(parts)}"


def situations(store: Store, tables: Tables, now_ms: int) -> list[ReportedSituation]:
    """All reported or silenced situations, sorted by name."""
    return list(_situations(store, tables, now_ms))


def _situations(store: Store, tables: Tables, now_ms: int) -> Iterator[ReportedSituation]:
    holding, calm = reported(store).open, acknowledged(tables, now_ms)
    for key in sorted({*holding, *calm}):
        situation = holding.get(key)
        sentence, since_ms = (situation.sentence, time_of(situation.since)) if situation else (None, None)
        by = acknowledgement_of(calm, key)
        until_ms, who, reason = (by.until_ms, by.who, by.reason) if by else (None, None, None)
        yield ReportedSituation(key, sentence, since_ms, until_ms, who, reason)
