"""Which of the ids that were admitted before a batch looks at: those of files that may hold one of its own.

Ids that rise with time (counters, ULIDs) are in few files, by the statistics of the log; random ones may be in any file
of the horizon. A text of more than 32 characters has no largest value in the log, so such files are spared only where
they begin after the batch's ids.
"""

from __future__ import annotations

from windowlib.batches.inputs import Inputs
from windowlib.delta.data_files import DataFile
from windowlib.delta.statistics import holding_texts
from windowlib.source import footers


def seen_files(inputs: Inputs) -> list[DataFile]:
    """The files of `seen_ids` that may hold an id of the batch's files, by the footers of these where they are few."""
    source, files = inputs.source, inputs.tables.files("seen_ids")
    assert source.event_id, "only a source with event ids has some that were seen"
    if source.is_text or len(inputs.plan.files) > len(files):
        return files
    column, spans = source.in_files(source.event_id), list[tuple[str, str]]()
    for file in inputs.plan.files:
        in_folder = column.casefold() in map(str.casefold, file.values)  # which goes before the file's own
        found = None if in_folder else footers.texts(source.path / file.path, column)
        if found is None:
            return files
        spans += found
    return holding_texts(files, "event_id", spans)
