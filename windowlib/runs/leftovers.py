"""Removal of files that dead attempts left on disk. No attempt can still publish them.

A failed attempt cleans up after itself. A killed attempt leaves its staging folder, a publication that no row of the
ledger names, and files that it has already moved into tables.

Everything that existed *before* a claim belongs to earlier claims. Attempts of earlier claims are over, because the
ledger no longer accepts their rows. Publications with a `prepare` row and files that a table holds are kept.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from windowlib.contract.tables import COMMIT_ORDER, LEDGER
from windowlib.delta import data_files
from windowlib.ledger import prepare
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.reading import rows_of_kinds
from windowlib.ledger.rows import Claim
from windowlib.publication.publish import staging_folder

_ATTEMPT = re.compile(r"(?P<batch>[1-9]\d*)-(?P<epoch>[1-9]\d*)")
_FOLDER = re.compile(rf"{_ATTEMPT.pattern}-[0-9a-f]{{8}}")


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Folders of attempts, and files of publications, that existed before a claim."""

    folders: tuple[Path, ...]
    publications: tuple[Path, ...]

    @classmethod
    def before_a_claim(cls, root: Path) -> Leftovers:
        """Lists the leftovers. Call it before the pipeline is claimed."""
        folders = (path for path in _in(staging_folder(root)) if _FOLDER.fullmatch(path.name))
        return cls(tuple(folders), tuple(_in(root / prepare.FOLDER)))

    def remove(self, ledger: Ledger, claim: Claim, *, also_in_tables: bool) -> None:
        """Removes files of attempts that are over. Files that the disk does not delete stay for the next run."""
        fixed = ledger.state().prepared
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)
        files = [path for path in self.publications if fixed is None or path != ledger.root / fixed.path]
        for path in [*files, *(_in_tables(ledger, claim) if also_in_tables else ())]:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        with suppress(OSError):
            staging_folder(ledger.root).rmdir()  # unless another attempt has files there


def _in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _in_tables(ledger: Ledger, claim: Claim) -> Iterator[Path]:
    """Orphaned files in the tables' folders. Attempts of earlier claims wrote them, but prepared no publication."""
    candidates = list(_of_attempts(ledger, claim))
    if not candidates:
        return
    table = ledger.tables[LEDGER.name]
    since = min(batch for _, batch, _ in candidates)
    rows = list(rows_of_kinds(table, table.version(), {"plan", "prepare"}, ("batch_id", "epoch"), since))
    fixed = {(row["batch_id"], row["epoch"]) for row in rows if row["kind"] == "prepare"}
    planned = {row["batch_id"] for row in rows if row["kind"] == "plan"}
    for path, batch, epoch in candidates:
        if batch in planned and (batch, epoch) not in fixed:  # if no such batch was planned, the name is a coincidence
            yield path


def _of_attempts(ledger: Ledger, claim: Claim) -> Iterator[tuple[Path, int, int]]:
    """Yields the files that no table holds and that are named after an attempt of an earlier claim.

    Yields the batch and the epoch of the attempt with each file.
    """
    for name in COMMIT_ORDER:
        folder = ledger.root / name
        held = {folder / file.path for file in _files(ledger, name)}
        for path in folder.rglob("*-*-*.parquet"):
            match = _ATTEMPT.fullmatch("-".join(path.name.split("-")[:2]))
            if match and path not in held and int(match["epoch"]) < claim.epoch:
                yield path, int(match["batch"]), int(match["epoch"])


def _files(ledger: Ledger, table: str) -> list[data_files.DataFile]:
    opened = ledger.tables[table]
    return opened.files(opened.version())
