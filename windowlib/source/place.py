"""Where the source of a pipeline lies, as its ledger keeps it.

Files are known by their names below `source.path`. In another folder they would be new from the first one on, so a
definition that names another folder is refused, unless it says that the same files were moved there. A warehouse and a
source that were moved together are where they were, seen from each other.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from windowlib.model.errors import StateMismatch
from windowlib.source.found import SourceError

if TYPE_CHECKING:
    from windowlib.definition.source import Source
    from windowlib.tables.ledger_rows import Commit

PLACE = "source_place"  # in what a plan and a commit keep of the definition


def place_of(source: Source, root: Path) -> dict[str, str]:
    """The folder of the source: as it is named, and as it is seen from the pipeline's tables in `root`."""
    return {"path": str(source.path), "from_tables": os.path.relpath(source.path, root)}


def check_place(source: Source, root: Path, commit: Commit | None) -> None:
    """Raises `StateMismatch` where the newest batch read another folder, `SourceError` if this one is not there either.

    Earlier releases did not keep which folder was read.
    """
    then = commit.stored.get(PLACE) if commit else None
    now = place_of(source, root)
    if then is None or then["path"] == now["path"] or then["from_tables"] == now["from_tables"]:
        return
    if str(source.moved_from) == then["path"]:
        return
    if not source.path.exists():
        raise SourceError(
            f"the source folder {now['path']} does not exist; {source.pipeline} has read {then['path']} so far:"
            f" correct source.path in {source.file}"
        )
    raise StateMismatch(
        f"{source.pipeline} has read {then['path']}, but source.path is {now['path']} now: every file there would be"
        f' new to it. If the same files were moved there, say so in {source.file}: moved_from = "{then["path"]}"'
        " in [source]; for another source, give the pipeline another name or warehouse"
    )
