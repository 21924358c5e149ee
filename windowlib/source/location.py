"""Where the source of a pipeline lies, and its definition, as its ledger keeps them.

Files are known by their names below `source.path`. In another folder they would be new from the first one on, so a
definition that names another folder is refused, unless it says that the same files were moved there. A warehouse and a
source that were moved together are where they were, seen from each other.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.model.errors import StateMismatch
from windowlib.source.listed import SourceError

if TYPE_CHECKING:
    from windowlib.definition.toml.source import Source
    from windowlib.ledger.rows import Commit

PLACE = "source_place"  # in what a plan and a commit keep of the definition


def place_of(source: Source, root: Path) -> dict[str, str]:
    """The folder of the source, as it is named and as it is seen from the pipeline's tables in `root`, and the file of
    the definition, by which another pipeline of the same name can be recognized.
    """
    from_tables = os.path.relpath(source.path, root)
    return {"path": str(source.path), "from_tables": from_tables, "definition": str(source.file)}


def other_definition(file: Path, stored: Mapping[str, Any]) -> str | None:
    """Another file than `file` that is still there, whose definition was stored; None where none is known."""
    then = stored.get(PLACE, {}).get("definition")
    with suppress(OSError):  # it may lie where this user has no business
        return then if then and os.path.exists(then) and not os.path.samefile(then, file) else None
    return None


def check_place(source: Source, root: Path, commit: Commit | None) -> None:
    """Raises `StateMismatch` where the newest batch read another folder, `SourceError` if this one is not there either.

    commit: the newest batch; None before the first
    """
    if commit is None:
        return
    then, now = commit.stored[PLACE], place_of(source, root)
    if then["path"] == now["path"] or then["from_tables"] == now["from_tables"]:
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
