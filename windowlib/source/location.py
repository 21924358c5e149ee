"""Location of a pipeline's source and definition, as its ledger keeps them.

Files are identified by their names below `source.path`, so all files of another folder would be new. A definition that
names another folder is refused, unless `source.moved_from` says that the same files were moved there. If warehouse and
source were moved together, the relative path between them is unchanged, and the definition is accepted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.model.errors import StateMismatch
from windowlib.source.folder import exists
from windowlib.source.listed import SourceError
from windowlib.storage.address import is_remote

if TYPE_CHECKING:
    from windowlib.definition.toml.source import Source
    from windowlib.ledger.rows import Commit
    from windowlib.storage.store import Store

PLACE = "source_place"  # key in the definition's part of a plan and of a commit


def place_of(source: Source, store: Store) -> dict[str, str]:
    """Address of the source, its address relative to the pipeline's tables in `store`, and the definition's file.

    The definition's file distinguishes two pipelines of the same name.
    """
    path, apart = source.store.url, is_remote(source.store.url) != is_remote(store.url)
    from_tables = path if apart else os.path.relpath(path, store.url)
    return {"path": path, "from_tables": from_tables, "definition": str(source.file)}


def other_definition(file: Path, stored: Mapping[str, Any]) -> str | None:
    """File of the stored definition, if it still exists and is not `file`, else None."""
    then = stored.get(PLACE, {}).get("definition")
    with suppress(OSError):  # this user may not be allowed to look there
        return then if then and os.path.exists(then) and not os.path.samefile(then, file) else None
    return None


def check_place(source: Source, store: Store, commit: Commit | None) -> None:
    """Raises `StateMismatch` if the newest batch read another folder, `SourceError` if the folder does not exist.

    store:  storage of the pipeline's tables
    commit: the newest batch; None before the first
    """
    if commit is None:
        return
    then, now = commit.stored[PLACE], place_of(source, store)
    if then["path"] == now["path"] or then["from_tables"] == now["from_tables"]:
        return
    if str(source.moved_from) == then["path"]:
        return
    if not exists(source):
        raise SourceError(
            f"the source folder {now['path']} does not exist; {source.pipeline} has read {then['path']} so far."
            f" Correct source.path in {source.file}"
        )
    raise StateMismatch(
        f"{source.pipeline} has read {then['path']}, but source.path is {now['path']} now: every file there would be"
        f' new to it. If the same files were moved there, set moved_from = "{then["path"]}" in [source] of'
        f" {source.file}. For another source, give the pipeline another name or warehouse"
    )
