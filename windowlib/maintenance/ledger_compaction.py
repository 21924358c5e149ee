"""The larger files of a ledger put into one where many have come: they are its history, which no run reads."""

from __future__ import annotations

from windowlib.contract.tables import LEDGER
from windowlib.delta import commits as delta_commits
from windowlib.delta import disk
from windowlib.delta import small_tables as small
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Tables
from windowlib.ledger.ledger import Ledger
from windowlib.maintenance import compaction


def put_together(ledger: Ledger, epoch: int, attempt: str) -> None:
    """Puts them together. Where anyone appends a row meanwhile, it is left to the next time. Raises `Superseded`."""
    with ledger.alone():
        table, version = ledger.tables[LEDGER.name], ledger.state().version
        ledger.check(epoch)
        for chosen in to_put_together(ledger.tables):
            assert version is not None, "there are files"
            made = compaction.together(table, version, chosen, attempt)
            disk.sync([table.folder / made.path], table.folder)
            try:
                version = delta_commits.commit(table, version, add=[made], remove=chosen, of_rows=False)
            except delta_commits.Conflict:
                (table.folder / made.path).unlink()
                return


def to_put_together(tables: Tables) -> list[list[DataFile]]:
    """The files that each become one: those of history, which appended rows leave alone."""
    table = tables[LEDGER.name]
    files = [one for one in table.files(table.version()) if one.size_bytes >= small.SMALL_BYTES]
    return list(compaction.groups(LEDGER.name, files, lambda partition: False, 1))
