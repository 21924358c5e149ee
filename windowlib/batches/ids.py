"""Choice of the files of `seen_ids` that a batch reads: files that may hold an event id of the batch.

Ids that rise with time (counters, ULIDs) are in few files, as the statistics of the log show. Random ids may be in any
file of the horizon. The log has no greatest value for strings of more than 32 characters. A file of such ids is skipped
only if its least id is greater than the ids of the batch.
"""

from __future__ import annotations

from functools import partial

from windowlib.batches.inputs import Inputs
from windowlib.delta.data_files import DataFile
from windowlib.delta.statistics import holding_texts
from windowlib.source import footers
from windowlib.storage.at_once import at_once


def seen_files(inputs: Inputs) -> list[DataFile]:
    """Files of `seen_ids` that may hold an id of the batch, by the footers of the batch's files.

    Returns all files of `seen_ids` if there are no footers, or if the batch has more files than `seen_ids`.
    """
    source, files = inputs.source, inputs.tables.files("seen_ids")
    assert source.event_id, "the source has event ids"
    if source.is_text or len(inputs.plan.files) > len(files):
        return files
    column, spans = source.in_files(source.event_id), list[tuple[str, str]]()
    # A folder value takes precedence over the column of the file.
    if any(column.casefold() in map(str.casefold, file.values) for file in inputs.plan.files):
        return files
    for footer in at_once(partial(footers.footer, source.store), inputs.plan.files):
        if (file_spans := footers.texts(footer, column)) is None:
            return files
        spans += file_spans
    return holding_texts(files, "event_id", spans)
