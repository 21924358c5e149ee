"""Allowed ends and messages of commands of a soak."""

from __future__ import annotations

import re
import signal

from tests.world.soak.processes import Started
from windowlib.cli.exits import DIFFERS, DONE, REJECTED, SUPERSEDED, UNEXPECTED, USER

OTHER_RULE = re.compile(r"was written by another definition: .*window\.gap was .*windowlib migrate ")
FOREIGN = "DELETE by delta-rs"  # `verify` between another program's change and the run that refuses it
CHANGED = "another program changed table"
UNDOABLE = "can still be undone"
MEANWHILE = "another command "
FORESEEN = {
    "run": (CHANGED,),
    "rerun": (CHANGED, "has not run yet", "is different now", "changed since"),
    "advance-watermark": ("has not run yet", "is planned", "already", "has just planned a batch", "another program"),
    "rollback": ("no batch", "is the newest", "another program", "is a migration"),
    "restore": ("nothing to do", "no way back"),
    "approve": ("no batch", "waits"),
    "abandon": ("no batch", "is planned", "is already committed or abandoned", "was never planned", "another program"),
    "verify": (
        "another program",
        "no batch is committed",
        "is not the definition that batch",
        "was written by another",
    ),
    "maintain": ("another program", "no batch is committed"),
    "forget": ("another program", "no batch is committed", "no window", "is not finished", UNDOABLE),
    "migrate": (CHANGED, UNDOABLE, "needs no migration to this", "dropped this migration", "checks and waits"),
    "migrate --undo": (CHANGED, "no migration can be undone"),
    "migrate --finish": ("no migration can be finished",),
}
FORESEEN["migrate --dry-run"] = FORESEEN["migrate"]


def outcome(one: Started) -> str:
    """End of a process, for the count."""
    rule = " (another definition)" if meets_other_rule(one) else ""
    return f"{one.command}: {one.code}{' (killed)' if was_killed(one) else rule}"


def was_killed(one: Started) -> bool:
    return one.killed and one.code == -signal.SIGKILL


def meets_other_rule(one: Started) -> bool:
    """Tests if a command refused a definition with another gap, and said how to bring it into force."""
    return one.code == USER and OTHER_RULE.search(one.said()) is not None


def check_ended(one: Started) -> None:
    """Raises AssertionError where a command has ended as it must not."""
    if was_killed(one):
        return
    said = one.said()
    foreseen = one.code == USER and any(words in said for words in FORESEEN[one.command])
    foreseen = foreseen or meets_other_rule(one)
    foreseen = foreseen or (one.command == "verify" and one.code == DIFFERS and FOREIGN in said)
    foreseen = foreseen or (one.code == UNEXPECTED and MEANWHILE in said)
    assert one.code in (DONE, SUPERSEDED, REJECTED) or foreseen, f"{one.command} ended with {one.code}:\n{said}"
    assert "Traceback" not in said, said
