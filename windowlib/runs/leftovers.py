"""What attempts that died have left on disk: it belongs to no attempt that can still publish, so it is removed.

An attempt fails by itself without leaving anything; one that is killed leaves the folder that it wrote to, a
publication that no row of the ledger names, and files that it had moved into tables already. What was there *before* a
claim is of earlier claims, and their attempts are over: the ledger takes no row of theirs any more. What the ledger has
fixed (a `prepare` row) is kept, whichever process wrote it, and so is what a table holds.
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
    """What there was before a claim: folders of attempts, and publications that were written down."""

    folders: tuple[Path, ...]
    publications: tuple[Path, ...]

    @classmethod
    def before_a_claim(cls, root: Path) -> Leftovers:
        """Looks; call it before the pipeline is claimed."""
        folders = (path for path in _in(staging_folder(root)) if _FOLDER.fullmatch(path.name))
        return cls(tuple(folders), tuple(_in(root / prepare.FOLDER)))

    def remove(self, ledger: Ledger, claim: Claim, *, also_in_tables: bool) -> None:
        """Removes what belongs to attempts that are over. What the disk does not let go of is left to the next run."""
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
    """The files in the tables' folders of earlier claims' attempts that have not come to a prepared publication."""
    found = list(_of_attempts(ledger, claim))
    if not found:
        return
    table = ledger.tables[LEDGER.name]
    since = min(batch for _, batch, _ in found)
    rows = list(rows_of_kinds(table, table.version(), {"plan", "prepare"}, ("batch_id", "epoch"), since))
    fixed = {(row["batch_id"], row["epoch"]) for row in rows if row["kind"] == "prepare"}
    known = {row["batch_id"] for row in rows if row["kind"] == "plan"}
    for path, batch, epoch in found:
        if batch in known and (batch, epoch) not in fixed:  # else a name by chance
            yield path


def _of_attempts(ledger: Ledger, claim: Claim) -> Iterator[tuple[Path, int, int]]:
    """The files that no table holds and whose name is that of an earlier claim's attempt, with its batch and epoch."""
    for name in COMMIT_ORDER:
        folder = ledger.root / name
        held = {folder / file.path for file in _files(ledger, name)}
        for path in folder.rglob("*-*-*.parquet"):
            found = _ATTEMPT.fullmatch("-".join(path.name.split("-")[:2]))
            if found and path not in held and int(found["epoch"]) < claim.epoch:
                yield path, int(found["batch"]), int(found["epoch"])


def _files(ledger: Ledger, table: str) -> list[data_files.DataFile]:
    opened = ledger.tables[table]
    return opened.files(opened.version())
