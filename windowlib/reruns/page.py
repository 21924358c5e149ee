"""Page of a preview: one self-contained HTML file next to the preview's rows."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from windowlib.definition.commands import to_paste
from windowlib.definition.instants import instant
from windowlib.reruns.preview_text import NOTHING, changed_cells, days, facts, largest, notes, title, totals

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition
    from windowlib.reruns.previews import Preview

TEMPLATE = Path(__file__).with_name("page.html.jinja")
PAGE = "index.html"
UNCHANGED = "Nothing has been changed."
BEGIN, END = "<!-- to apply -->", "<!-- end -->"  # enclose the part of the template that `applied_by` removes


def preview_page(definition: Definition, preview: Preview) -> str:
    """HTML of a preview's page."""
    hidden, keys = definition.hidden, definition.source.key
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        name=definition.name,
        title=title(preview.rerun, keys, hidden),
        apply="" if preview.summary.changes_nothing else _apply(definition.file, preview),
        unchanged=UNCHANGED,
        preview=preview,
        made=instant(preview.at_ms),
        watermark=instant(preview.watermark_ms),
        nothing=f"{NOTHING[0].upper()}{NOTHING[1:]}.",
        totals=totals(preview, hidden),
        facts=list(facts(preview)),
        notes=notes(preview),
        days=days(preview, hidden, len(preview.summary.days)),
        largest=largest(preview, keys, hidden),
        changed=changed_cells(preview, keys),
        first_value=2 + len(keys),
    )


def applied_by(page: str, batch_id: int) -> str:
    """HTML of a preview's page after batch `batch_id` has applied the preview.

    >>> applied_by(f"<p>{UNCHANGED}</p>{BEGIN}how to{END}", 7)
    '<p>Batch 7 has applied it.</p>'
    """
    before, _, rest = page.replace(UNCHANGED, f"Batch {batch_id} has applied it.", 1).partition(BEGIN)
    return before + rest.partition(END)[2]


def page_inside(page: str, pipeline: str, review: str | None = None) -> str:
    """HTML of a preview's page inside Airflow: with a link to the pipeline, and one to the `review` if it is open.

    >>> print(page_inside(f"<body>\\n<p>{UNCHANGED}</p>", "orders", "/dags"))
    <body>
    <p><a href="../">orders</a></p>
    <p>Nothing has been changed.</p>
    <p><a class="button" href="/dags">Open the review</a></p>
    """
    opened = f'\n<p><a class="button" href="{escape(review)}">Open the review</a></p>' if review else ""
    page = page.replace("<body>\n", f'<body>\n<p><a href="../">{escape(pipeline)}</a></p>\n', 1)
    return page.replace(f"{UNCHANGED}</p>", f"{UNCHANGED}</p>{opened}", 1)


def _apply(file: Path, preview: Preview) -> str:
    return to_paste("rerun", file, "--apply", preview.preview_id)
