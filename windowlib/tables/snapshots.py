"""A Delta table on this machine as it was at a version, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import fs


def snapshot(folder: Path, version: int, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of the table in `folder` at `version`.

    Arrow reads the files itself: deltalake's own file system is called from Arrow's threads, which now and then abort
    the process when it ends.
    """
    files = fs.SubTreeFileSystem(str(folder.absolute()), fs.LocalFileSystem())
    table = DeltaTable(str(folder), version=version)
    return table.to_pyarrow_table(columns=list(columns) if columns else None, filesystem=files)
