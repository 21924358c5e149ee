"""The page of a preview: one self-contained HTML file next to the preview's rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from windowlib.definition.commands import to_paste
from windowlib.definition.instants import instant
from windowlib.reruns.words import NOTHING, facts, largest, notes, title

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition
    from windowlib.reruns.previews import Preview

TEMPLATE = Path(__file__).with_name("page.html.jinja")
PAGE = "index.html"


def preview_page(definition: Definition, preview: Preview) -> str:
    """The page as text."""
    columns, rows = largest(preview, definition.source.key, definition.hidden)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        name=definition.name,
        title=title(preview.rerun, definition.source.key, definition.hidden),
        apply=to_paste("rerun", definition.file, "--apply", preview.preview_id),
        preview=preview,
        made=instant(preview.at_ms),
        watermark=instant(preview.watermark_ms),
        nothing=f"{NOTHING[0].upper()}{NOTHING[1:]}.",
        facts=list(facts(preview, definition.hidden)),
        notes=notes(preview),
        columns=columns,
        rows=rows,
    )
