"""Advice for a batch without usable rows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from windowlib.definition.commands import WHY, to_paste
from windowlib.model.watermark import MIN_WATERMARK

if TYPE_CHECKING:
    from windowlib.runs.attempt import BatchReport
    from windowlib.storage.store import Store

UNUSABLE = ("malformed", "null_timestamp", "null_key", "bad_gap")
"""Reasons for quarantine that a wrong definition would give every row."""


def without_usable_rows(report: BatchReport, file: Path, tables: Store) -> str | None:
    """Advice if no row of a batch could be used, mostly because the definition is wrong; otherwise None.

    >>> from windowlib.runs.attempt import BatchReport; from windowlib.storage.address import store_at
    >>> figures = {"rows_read": 9, "rows_admitted": 0, "quarantined_malformed": 9}
    >>> tables = store_at("warehouse/clicks")
    >>> print(without_usable_rows(BatchReport(4, figures, 0, 1.0), Path("clicks.toml"), tables))
    ... # doctest: +ELLIPSIS
    no row of batch 4 could be used; to see the rows: ...windowlib read clicks.toml quarantine
    If the definition was wrong, correct it, then: remove the folder warehouse/clicks
    The next run reads the files again
    >>> figures |= {"rows_admitted": 1, "quarantined_malformed": 8}
    >>> without_usable_rows(BatchReport(4, figures, 0, 1.0), Path("clicks.toml"), tables)
    """
    figures = report.figures
    refused = sum(figures.get(f"quarantined_{reason}") or 0 for reason in UNUSABLE)
    if not refused or refused != figures.get("rows_read"):
        return None
    from windowlib.delta.tables import Tables
    from windowlib.ledger.history import committed_before

    again = f"remove the folder {shlex.quote(str(tables))}"  # no event came before, so there is nothing to keep
    before = committed_before(Tables(tables), report.batch_id)
    if before is not None and report.watermark_out_ms != MIN_WATERMARK:
        again = to_paste("rollback", file, "--to-batch", str(before), *WHY)
    return (
        f"no row of batch {report.batch_id} could be used; to see the rows: {to_paste('read', file, 'quarantine')}\n"
        f"If the definition was wrong, correct it, then: {again}\nThe next run reads the files again"
    )
