"""`exit-codes.md`: how commands end, from the table in the code."""

from __future__ import annotations

from collections.abc import Iterator

from docs.reference.markdown import table
from windowlib.cli.exits import ENDS

HEAD = """# Exit codes

Every command ends with one sentence on stderr, if anything is wrong, and one of these codes. Of several pipelines in
one command, the code is the one that needs attention first: 1, then 2, 3, 5, 4, 0.
"""
TAIL = """
A command that a signal ended (130 by Ctrl-C, 137 and the like) is treated as 1. So is one whose output goes to a full
disk, which says so, or to a pipe that nothing reads any more, which says nothing: what it had done before stays done.
An error output that is full or not read changes nothing: what it would have said is lost, and the code is the same.

A task of Airflow is *skipped* in three cases only: another run of its pipeline is in progress; there is nothing to do
(nothing was planned, nothing can be reported or verified); or a batch waits for a decision about which a user has been
asked in Required Actions, in this run or in another that is still open. The task says which, or `plan` does. A run
that cannot be seen, on another machine or in another container, counts as in progress once a heartbeat of it has come
in; the task waits for one, at most `lease_timeout`.

In cron, act on all but 0 and 4. With `--json` a run of several pipelines prints one line for each of them that has
`exit_code`, with `pipeline` and `batches`; of a definition that cannot be used `pipeline` is null, and `file` and
`error` say which and why.
"""
COLUMNS = ("exit code", "situation", "state of Airflow's task", "who learns what")


def rows() -> Iterator[tuple[str, ...]]:
    """One row for each end."""
    for end in ENDS:
        retried = f"; of a retry: {end.on_retry.value}" if end.on_retry else ""
        yield f"`{end.code}`", end.situation, f"{end.state.value}{retried}", end.informs


def page() -> str:
    return f"{HEAD}\n{table(COLUMNS, rows())}\n{TAIL}"
