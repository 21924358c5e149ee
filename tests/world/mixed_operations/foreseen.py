"""Allowed ends of commands: success, refusal by checks, or a refusal message of the command.

One process acts at a time, so no command may meet another that is at work, nor an error that trying again may help.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from click.testing import Result

from windowlib.cli.exits import DONE, REJECTED, USER

NOTHING = ("has not run yet", "no batch")
WAITS = ("is planned, but not finished", "waits for approval", "was refused by its checks and waits", "is not finished")
FOREIGN = "another program changed table"
IN_PART = "cannot be rerun in part"
CHANGED = (
    "has changed since it was read",
    "the source has a gap",
    "the source no longer holds",
    "cannot be read as it was",
)
FORESEEN: dict[str, tuple[str, ...]] = {
    "run": ("is not a readable Parquet file", FOREIGN),
    "plan": ("is not a readable Parquet file",),
    "rerun": (IN_PART, "what it would change is different now"),
    "late readmit": (IN_PART, "there is no such late event"),
    "rollback": ("is the newest", "cannot cross it"),
    "advance-watermark": ("it never falls", "is in the future"),
    "maintain": (),
    "forget": ("can still be undone", "neither the tables nor the source hold"),
    "migrate": (
        "can still be undone",
        "no migration can be undone",
        "no migration can be finished",
        "needs no migration to this definition",
        "use processing time, the time of the runs",
    ),
    "approve": (),
    "abandon": (),
    "set-aside": (),
    "restore": ("nothing to do",),
    "adopt": ("nothing to do",),
    "verify": ("its windows depend on the order and time of arrival", "nothing was compared: no window"),
    "explain": (),
    "status": (),
    "late list": (),
    "late what-if": (),
    "checks": (),
    "report": (),
    "explain-plan": (),
    "read": (),
}


def check_ended(words: str, result: Result, *, changed: Callable[[], bool]) -> None:
    """Raises AssertionError for an end that is not allowed. `changed`: a file that was read has other rows now, or is
    gone.
    """
    said = result.output
    assert isinstance(result.exception, SystemExit | None), repr(result.exception)
    assert "raceback" not in said, said
    if result.exit_code in (DONE, REJECTED):
        return
    assert result.exit_code == USER, f"{words} ended with {result.exit_code}: {said}"
    assert re.search(r"^error: ", said, re.MULTILINE), said
    foreseen = (*NOTHING, *WAITS, *FORESEEN[words], *(CHANGED if changed() else ()))
    assert any(one in said for one in foreseen), f"not foreseen of {words}: {said}"
