"""`exit-codes.md`: how commands end, from the table in the code."""

from __future__ import annotations

from collections.abc import Iterator

from docs.reference.markdown import table
from windowlib.cli.exits import ENDS

HEAD = """# Exit codes

Every command ends with one of these codes. If anything is wrong, it also prints one sentence on stderr. A command for
several pipelines ends with the code that needs attention first: 1, then 2, 3, 5, 4, 0.
"""
TAIL = """
A command that a signal ended (130 by Ctrl-C, 137 and the like) counts as 1. A command whose output goes to a full disk
ends with 1 and says so. With a closed pipe it ends with 1 silently. In both cases its finished work is kept. If the
error output is full or closed, its messages are lost, but the exit code is the same.

A task of Airflow is *skipped* in three cases only:

- Another run of its pipeline is in progress.
- There is nothing to do: nothing was planned, no batch was refused, or nothing can be reported or verified.
- A batch waits for a decision, and a user has been asked in Required Actions, in this run or in another open run.

The task says which case applies, or `plan` does. A run on another machine or in another container cannot be seen. A
command that finds its claim waits at most `lease_timeout` for a heartbeat. If one arrives, the command ends with 4.
Otherwise it takes the pipeline over.

In cron, act on all codes except 0 and 4. With `--json`, a run of several pipelines prints one line per pipeline, with
`pipeline`, `batches` and `exit_code`. For a definition that cannot be used, `pipeline` is null, and `file` and `error`
name the definition and its error.
"""
COLUMNS = ("exit code", "situation", "state of Airflow's task", "who learns what")


def rows() -> Iterator[tuple[str, ...]]:
    """One row for each end."""
    for end in ENDS:
        retried = f"; of a retry: {end.on_retry.value}" if end.on_retry else ""
        yield f"`{end.code}`", end.situation, f"{end.state.value}{retried}", end.informs


def page() -> str:
    return f"{HEAD}\n{table(COLUMNS, rows())}\n{TAIL}"
