"""Question of the task `decide` about a batch, in Markdown, and the text before a repeated question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow.sdk import Param

from windowlib.pages.changes.waiting import WaitingChanges
from windowlib.pages.words import signed
from windowlib.reruns.preview_text import escaped

KINDS = ("added", "changed", "extended", "removed")
EXAMPLES = 5

_BODY = """\
The checks refused batch {batch_id} of **{name}**: nothing of it is published.

{failed}

{changes}* **approve**: this run publishes the batch anyway, exactly as it was judged, and goes on.
* **abandon**: the batch is dropped. Remove or repair the wrong file; the next run plans again.
* **leave waiting**: nothing is decided. This run fails, and the next one asks again.

Or decide in a shell; this task notices it within minutes:

{approve}

{abandon}

The **reason** is kept in the ledger, with your login name.

[The page of the pipeline]({page})
"""


def question(
    name: str,
    batch_id: int,
    page: str,
    commands: tuple[str, str],
    failed: Sequence[str],
    changes: WaitingChanges | None = None,
) -> tuple[str, str]:
    """Subject and body (Markdown) of the question about a batch.

    page:     address of the page of the pipeline
    commands: command lines that approve and abandon the batch
    failed:   a sentence for each failed check
    changes:  changes that the batch would make
    """
    return f"{name}: batch {batch_id} was refused by its checks", _BODY.format(
        name=name,
        page=page,
        batch_id=batch_id,
        failed=_listed(failed),
        changes=_changes(changes) if changes else "",
        approve=_code(commands[0]),  # as paragraphs: Airflow joins the lines of a code block
        abandon=_code(commands[1]),
    )


def _changes(changes: WaitingChanges) -> str:
    """Tables of the changes by day, and of some results with the changed values in bold."""
    tables = []
    if changes.days:
        head = ["day", *KINDS, *(f"change of {name}" for name in changes.outputs)]
        days = [
            [
                str(day.day or "–"),
                *(f"{day.windows[kind]:,}" if kind in day.windows else "" for kind in KINDS),
                *map(signed, day.sums),
            ]
            for day in changes.days
        ]
        tables.append(_table(head, [[*map(escaped, cells)] for cells in days]))
    if cells := changes.examples.cells[:EXAMPLES]:
        marked = {*changes.examples.marked}
        rows = [
            [
                f"**{escaped(cell)}**" if (row, column) in marked else escaped(cell)
                for column, cell in enumerate(row_cells)
            ]
            for row, row_cells in enumerate(cells)
        ]
        tables.append(_table(changes.examples.columns, rows))
    return "".join(f"{table}\n\n" for table in tables)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in ([*map(escaped, head)], *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def folded_rows(rows: Mapping[str, Sequence[str]]) -> dict[str, Param]:
    """Fields below the question that show some rows of a batch, one scrolling box for each title in `rows`.

    Airflow shows no HTML in a body, so rows cannot be folded there.
    """
    return {
        f"rows_{number}": Param(
            "\n".join(lines),
            type=["null", "string"],
            format="multiline",
            title=f"Some of its {which}",
            description="Only to look at: text that you write here is not kept.",
        )
        for number, (which, lines) in enumerate(rows.items(), 1)
        if lines
    }


def not_taken(choice: str, who: str | None, why: str) -> str:
    """Paragraph before a repeated question: the reason why the last answer did not count.

    >>> not_taken("approve", "ann", "the reason: there is none")
    '**approve by ann was not taken**: the reason: there is none. Answer again.\\n\\n'
    """
    return f"**{choice} by {escaped(who or 'no user')} was not taken**: {escaped(why)}. Answer again.\n\n"


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)
