"""`exit-codes.md`: how commands end, from the definition of the codes."""

from __future__ import annotations

import re

from docs.reference.markdown import table
from windowlib.runs import exits

HEAD = """# Exit codes

Every command ends with one sentence on stderr, if anything is wrong, and one of these codes. Of several pipelines in
one command, the code is the one that needs attention first: 1, then 2, 3, 5, 4, 0.
"""
TAIL = """
In Airflow, 4 is *skipped*; 2, 3 and 5 are not tried again. In cron, act on all but 0 and 4. With `--json` the last line
names the code of each pipeline where several ran.
"""


def codes() -> dict[int, str]:
    """What each exit code means, by the table at the head of `windowlib.runs.exits`."""
    rows: dict[int, str] = {int(code): text for code, text in re.findall(r"^(\d) +(.*)$", exits.__doc__ or "", re.M)}
    return dict(sorted(rows.items()))


def page() -> str:
    return f"{HEAD}\n{table(('exit code', 'means'), ((f'`{c}`', t) for c, t in codes().items()))}\n{TAIL}"
