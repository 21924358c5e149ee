"""Reruns and decisions of operators among the newest batches."""

from __future__ import annotations

from dataclasses import dataclass

from windowlib.definition.definition import Definition
from windowlib.ledger.rows import BY_ITSELF
from windowlib.pages.newest_rows import RecentRun
from windowlib.pages.pipeline_state import ObservedPipeline
from windowlib.reruns.preview_text import HIDDEN, title

LISTED = 20


@dataclass(frozen=True, slots=True)
class OperatorDecision:
    """Request or decision of an operator."""

    at_ms: int
    what: str
    who: str
    reason: str


def decided(observed: ObservedPipeline) -> list[OperatorDecision]:
    """Reruns and decisions, newest first.

    If `[pages]` hides columns, the list also hides reasons that windowlib itself gave, because they may list windows.
    """
    hides = bool(observed.definition.pages.hide)
    actions = [
        OperatorDecision(
            action.at_ms, action.title, action.who, HIDDEN if hides and action.who == BY_ITSELF else action.reason
        )
        for action in observed.tail.actions
    ]
    requests = [
        OperatorDecision(run.at_ms, what, request.who, request.reason)
        for run in observed.tail.runs
        if (request := run.rerun or run.decision) and (what := request_title(observed.definition, run))
    ]
    return sorted([*actions, *requests], key=lambda decision: -decision.at_ms)[:LISTED]


def request_title(definition: Definition, run: RecentRun) -> str | None:
    """Request or decision of an operator in words, without values that `[pages]` hides."""
    if run.rerun:
        return title(run.rerun, definition.source.key, definition.hidden)
    return run.decision.title if run.decision else None
