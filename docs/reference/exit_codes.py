"""`exit-codes.md`: how commands end, from the table in the code."""

from __future__ import annotations

from collections.abc import Iterator

from docs.reference.markdown import table
from windowlib.cli.exits import ENDS

HEAD = """# Exit codes

Every command ends with one of these codes, and with one sentence on stderr if something is wrong. A command for several
pipelines returns the code that needs attention first: 1, then 2, 3, 5, 4, 0.
"""
TAIL = """
* In cron, act on all codes but 0 and 4.
* Treat the end by a signal (130 for Ctrl-C, 137 and others) like 1.
* Treat output to a full disk or a closed pipe like 1, too. Work done before stays done.
* A full or closed error output loses messages but does not change the code.

Airflow skips a task in three cases only:

* Another run of its pipeline is in progress.
* Nothing is to do: nothing was planned, or nothing can be reported or verified.
* A batch waits for a decision, and a question about it is open in Required Actions, in this run or in another.

The task or `plan` names the case. A run on another machine or in another container counts as in progress once its
heartbeat arrives. The task waits at most `lease_timeout` for it.

With `--json`, a run of several pipelines prints one line for each of them, with `pipeline`, `batches` and `exit_code`.
For an unusable definition `pipeline` is null; `file` and `error` name the file and the reason."""
COLUMNS = ("exit code", "situation", "state of Airflow's task", "informed")


def rows() -> Iterator[tuple[str, ...]]:
    """One row for each end."""
    for end in ENDS:
        retried = f"; of a retry: {end.on_retry.value}" if end.on_retry else ""
        yield f"`{end.code}`", end.situation, f"{end.state.value}{retried}", end.informs


def page() -> str:
    return f"{HEAD}\n{table(COLUMNS, rows())}\n{TAIL}"
