"""Text of a decision: the new state, and the command that continues from it."""

from __future__ import annotations

from typing import Any

from windowlib.cli.display import readable
from windowlib.cli.exits import command_shown, pipeline_file
from windowlib.cli.outcomes import print_report
from windowlib.decisions.report import DecisionReport
from windowlib.definition.commands import THIS, WHY
from windowlib.definition.toml.durations import UNITS

SENTENCES = {
    "approve": "batch {batch_id} is approved: `{run}` publishes it",
    "abandon": "batch {batch_id} is abandoned: `{run}` plans a new one",
    "accept-clock": "{clock} is right: `{run}` goes on",
    "restore": "restored: {tables}; `{run}` goes on",
    "adopt": "batch {batch_id} keeps the tables as they are; `{run}` goes on",
    "rollback": "batch {batch_id} restores batch {to_batch_id}; `{run}` reads again what came after it",
    "advance-watermark": "batch {batch_id} is planned; `{run}` runs it",
    "acknowledge": "{situation} is muted until {until}",
    "set aside": "{path} is set aside: runs leave it out until {take_back}",
    "back": "{path} is taken back: the next run reads it",
    "migrate": "batch {batch_id} has the new tables; `{run}` goes on with them. For {undo_days} days `{undo}` takes it"
    " back, unless `{finish}` keeps it",
    "migrate undo": "batch {batch_id} has the tables from before the migration again. Put the earlier definition into"
    " {file}: the next run reads what has arrived since",
    "migrate finish": "the migration of batch {batch_id} is kept",
    "migrate resume": "batch {batch_id}, which a killed command had prepared, is published; `{run}` goes on",
    "migrate drop": "the new tables are deleted; the migration had not switched to them",
}
"""Sentence about each decision, with the fields of its report."""


def print_decision(decision: str, who: str, reason: str, as_json: bool, **about: Any) -> None:
    """Prints the report of a decision about the command's pipeline."""
    print_report(DecisionReport(decision, who, reason, about), decision_text, as_json)


def decision_text(report: DecisionReport) -> str:
    """Sentence about a decision.

    >>> decision_text(DecisionReport("back", "ann", "repaired", {"path": "17.parquet"}))
    '17.parquet is taken back: the next run reads it'
    """
    from windowlib.ledger.retained_batches import UNDO_MS

    about = {name: _words(value) for name, value in report.about.items()}
    return SENTENCES[report.decision].format(
        **about,
        file=pipeline_file.get() or THIS,
        run=command_shown("run"),
        take_back=command_shown("set-aside", about.get("path", ""), "--back", *WHY),
        undo=command_shown("migrate", "--undo", *WHY),
        undo_days=UNDO_MS // UNITS["d"],
        finish=command_shown("migrate", "--finish"),
    )


def _words(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else readable(value)
