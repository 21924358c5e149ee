"""Forms for actions inside Airflow, filled with what the user typed or with the place that the user came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windowlib.batches.planning import ledger_of
from windowlib.definition.definition import Definition
from windowlib.inspection.status import SetAsideFile, set_aside_files
from windowlib.model.errors import WindowError
from windowlib.source.listing import waiting_files

OFFERED = 200  # files


@dataclass(frozen=True, slots=True)
class SetAsideForm:
    """Form that sets a file aside, or takes it back (`is_back`).

    `offered` are files that no batch has read yet. `aside` are the files set aside now.
    """

    fields: Mapping[str, str]
    is_back: bool
    offered: Sequence[str]
    aside: Sequence[SetAsideFile]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class RerunForm:
    """Form that starts a rerun. `zone` is the zone of times that name none, if there is one."""

    fields: Mapping[str, str]
    zone: str | None
    problem: str | None = None


def set_aside_form(definition: Definition, fields: Mapping[str, str], problem: str | None = None) -> SetAsideForm:
    """Form about a file of a pipeline. Offers no files if the source cannot be listed."""
    commit = (ledger := ledger_of(definition)).state().commit
    try:
        waiting = waiting_files(definition.source, definition.uses, ledger.tables, commit)
    except WindowError:
        waiting = []
    offered = [file.path for file in waiting[:OFFERED]]
    return SetAsideForm(fields, bool(fields.get("back")), offered, set_aside_files(definition.store), problem)
