"""Question of the task `decide` about a batch, in Markdown, and the text before a repeated question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow.sdk import Param

from windowlib.reruns.preview_text import escaped

_BODY = """\
The checks refused batch {batch_id} of **{name}**: nothing of it is published.

{failed}

* **approve**: this run publishes the batch anyway, exactly as it was judged, and goes on.
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
) -> tuple[str, str]:
    """Subject and body (Markdown) of the question about a batch.

    page:     address of the page of the pipeline
    commands: command lines that approve and abandon the batch
    failed:   a sentence for each failed check
    """
    return f"{name}: batch {batch_id} was refused by its checks", _BODY.format(
        name=name,
        page=page,
        batch_id=batch_id,
        failed=_listed(failed),
        approve=_code(commands[0]),  # as paragraphs: Airflow joins the lines of a code block
        abandon=_code(commands[1]),
    )


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
