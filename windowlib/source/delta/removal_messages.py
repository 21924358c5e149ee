"""Messages about a removal, with commands to continue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.instants import instant, iso_instant
from windowlib.definition.plurals import first_five
from windowlib.ledger.rerun_request import is_too_long

if TYPE_CHECKING:
    from windowlib.definition.toml.source import Source
    from windowlib.model.rerun import TimeRange
    from windowlib.source.delta.removals import Removal


def title(source: Source, removal: Removal) -> str:
    """Phrase that names the version, operation and user of a removal."""
    first = removal.first
    return f"version {first.number} of {source.store} ({first.operation}, by {first.user})"


def happened(source: Source, removal: Removal) -> str:
    """Sentence about the effect of a removal."""
    if removal.removes_rows:
        return f"{title(source, removal)} removes rows"
    return f"{title(source, removal)} has moved already read rows into other files"


def ways_on(source: Source, removal: Removal, span: TimeRange | None, never: str | None) -> str:
    """Message that explains why a run stops at a removal, and how to continue.

    never: the reason why the removal's windows cannot be recomputed; None if they can
    """
    why, otherwise = _why(source, removal), _otherwise(source, removal)
    if removal.aside:
        aside = removal.aside[0]
        back = to_paste("set-aside", source.file, aside, "--back", *WHY)
        return f"{why} Among these are rows of {aside}, a file set aside. Take it back: `{back}`. {otherwise}"
    if removal.has_vectors:
        return (
            f"{why} Its deletion vectors mark rows as deleted, but windowlib does not read them, so it cannot recompute"
            f" the windows. REORG TABLE … APPLY (PURGE) writes the files again without those rows. {otherwise}"
        )
    if never:
        return f"{why} Its windows cannot be rerun: {never}. {otherwise}"
    what = "recompute the windows that it changes" if removal.removes_rows else "read all these rows at once"
    if span is None or is_too_long(span):
        times = "" if span is None else f", {instant(span.from_ms)} to {instant(span.to_ms - 1)}"
        by_itself = f'set source.removals = "rerun" in {source.file}'
        return f"{why} To have a run recompute its windows{times}, {by_itself}. {otherwise}"
    return (
        f"{why} To {what}, run `{command(source, span)}`. With"
        f' source.removals = "rerun", runs do that by themselves. {otherwise}'
    )


def _why(source: Source, removal: Removal) -> str:
    if removal.removes_rows:
        return f"{happened(source, removal)} whose events are in windows: nothing after it is read."
    lost = first_five(removal.lost)
    return (
        f"{happened(source, removal)} together with unread rows, whose own files ({lost}) were deleted: no file holds"
        " the unread rows alone."
    )


def _otherwise(source: Source, removal: Removal) -> str:
    if removal.removes_rows:
        return (
            "To go on without that version and its new rows, set"
            f' source.removals = "skip" in {source.file}. To undo the version, RESTORE the table {source.store}'
        )
    aside = to_paste("set-aside", source.file, removal.lost[0], *WHY)
    until = "until a rerun needs a file that has them"
    return f"Or restore those files from a backup, or go on without their rows, {until}: `{aside}`"


def command(source: Source, span: TimeRange) -> str:
    """Command that recomputes the windows of a removal."""
    bounds = "--from", str(iso_instant(span.from_ms)), "--to", str(iso_instant(span.to_ms))
    return to_paste("rerun", source.file, *bounds)
