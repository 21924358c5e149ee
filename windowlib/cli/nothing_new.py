"""Sentences of `windowlib run` and `plan` without new input: no new file, or only files that are too young."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowlib.cli.display import left_out_sentences
from windowlib.definition.toml.durations import format_duration
from windowlib.definition.visible import visible

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition
    from windowlib.definition.toml.source import Source


def nothing_new(definition: Definition) -> str:
    """Sentence of a run that has nothing to do."""
    from windowlib.inspection.next_batch import files_waiting

    young = files_waiting(definition)
    reason = young_files_text(definition.source, young) if young else "there is nothing left to read"
    left_out = _left_out_at_first(definition)
    return "; ".join([f"nothing new: {reason}", *map(visible, left_out_sentences(left_out))])


def _left_out_at_first(definition: Definition) -> list[str]:
    """Files that patterns or names leave out. They are listed until the first batch, as the patterns may be wrong."""
    from windowlib.batches.planning import ledger_of
    from windowlib.source.folder import left_out

    return left_out(definition.source) if ledger_of(definition).state().commit is None else []


def young_files_text(source: Source, files: int) -> str:
    """Clause about a number of files that are too young to be read."""
    younger = f"younger than source.min_file_age ({format_duration(source.min_file_age_ms)})"
    return f"1 file is {younger} and waits" if files == 1 else f"{files:,} files are {younger} and wait"
