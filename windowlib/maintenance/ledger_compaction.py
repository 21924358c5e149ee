"""Compaction of a ledger's history: the large files, to which no row is added and which no run reads."""

from __future__ import annotations

from windowlib.contract.tables import LEDGER
from windowlib.delta import commits as delta_commits
from windowlib.delta import small_tables as small
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Tables
from windowlib.ledger.ledger import Ledger
from windowlib.maintenance import compaction


def compact_history(ledger: Ledger, epoch: int, attempt: str) -> None:
    """Merges the files of the ledger's history. Stops if another process appends a row meanwhile. Raises `Superseded`.

    The next maintenance merges the remaining files.
    """
    with ledger.alone():
        table, version = ledger.tables[LEDGER.name], ledger.state().version
        ledger.check(epoch)
        for chosen in groups_of_history(ledger.tables):
            assert version is not None, "there are files"
            merged = compaction.merge_files(table, version, chosen, attempt)
            table.store.sync([merged.path])
            try:
                version = delta_commits.commit(table, version, add=[merged], remove=chosen, of_rows=False)
            except delta_commits.Conflict:
                table.store.delete([merged.path])
                return


def groups_of_history(tables: Tables) -> list[list[DataFile]]:
    """Groups of files of the ledger's history to merge."""
    table = tables[LEDGER.name]
    files = [file for file in table.files(table.version()) if file.size_bytes >= small.SMALL_BYTES]
    return list(compaction.groups(LEDGER.name, files, lambda partition: False, 1))
