"""What `windowlib run` and `plan` say where they have found nothing to read: that no file is new, or how many wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.cli.display import not_read
from windowlib.definition.toml.durations import format_duration
from windowlib.definition.visible import visible

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition
    from windowlib.definition.toml.source import Source


def nothing_new(definition: Definition) -> str:
    """What a run says that has found nothing to do."""
    from windowlib.inspection.next_batch import files_waiting

    young = files_waiting(definition)
    said = f"nothing new: {wait(definition.source, young) if young else 'there is nothing left to read'}"
    out = _left_out_at_first(definition)
    return "; ".join([said, *map(visible, not_read(out))])


def _left_out_at_first(definition: Definition) -> list[str]:
    """The files that patterns and names leave out, as long as there is no batch: these may be wrong."""
    from windowlib.batches.planning import ledger_of
    from windowlib.source.folder import left_out

    return left_out(definition.source) if ledger_of(definition).state().commit is None else []


def wait(source: Source, files: int) -> str:
    """That files are too young to be read, in words."""
    younger = f"younger than source.min_file_age ({format_duration(source.min_file_age_ms)})"
    return f"1 file is {younger} and waits" if files == 1 else f"{files:,} files are {younger} and wait"
