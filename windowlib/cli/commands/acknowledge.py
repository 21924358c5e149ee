"""Command `windowlib acknowledge`, which mutes the notices of one situation for a while."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from windowlib.cli.decided import print_decision
from windowlib.cli.exits import command_shown, load_pipeline
from windowlib.cli.options import Json, Pipeline, Reason, Who, duration_ms
from windowlib.model.errors import InvalidSpec

if TYPE_CHECKING:
    from windowlib.storage.store import Store


def acknowledge(
    pipeline: Pipeline,
    situation: Annotated[
        str,
        typer.Argument(
            help="failure, decision, silence, freshness, clock, warning, or a check, as in warning.events.late_share.",
            show_default=False,
        ),
    ],
    until: Annotated[
        str, typer.Option("--until", metavar="DURATION", help="Duration from now: 2d, 12h.", show_default=False)
    ],
    reason: Reason,
    who: Who,
    as_json: Json = False,
) -> None:
    """Mute one situation for a while: no notice about it is sent. Runs, checks and tables are unaffected.

    [dim]windowlib acknowledge clicks.toml silence --until 2d --reason "the shop is closed" --who ann[/dim]
    """
    from windowlib.batches.planning import ledger_of
    from windowlib.definition.instants import utc
    from windowlib.ledger.acknowledgements import acknowledge as mute
    from windowlib.ledger.ledger import wall_clock_ms

    definition, for_ms = load_pipeline(pipeline), duration_ms("--until", until)
    _check_situation(definition.store, situation)
    if for_ms <= 0:
        raise InvalidSpec(f'--until "{until}" is not in the future: need a duration greater than 0')
    until_ms = (wall_clock_ms() + for_ms) // 1000 * 1000
    mute(ledger_of(definition), situation, until_ms, who, reason)
    print_decision("acknowledge", who, reason, as_json, situation=situation, until=utc(until_ms))


def _check_situation(store: Store, situation: str) -> None:
    """Raises `InvalidSpec` if the situation does not exist."""
    from windowlib.notices.situations import KINDS, checks_judged

    kind, _, check = situation.partition(".")
    if kind not in KINDS or (check and kind != "warning"):
        raise InvalidSpec(f'"{situation}" is not a situation: need {", ".join(KINDS)}, or warning.CHECK')
    if check and (judged := checks_judged(store)) and check not in judged:
        near = get_close_matches(check, judged, 1, 0.6)
        hint = f": did you mean {near[0]}?" if near else f": `{command_shown('checks')}` lists its checks"
        raise InvalidSpec(f'the newest batch has no check "{check}"{hint}')
