"""Removal of files that dead attempts left. No attempt can still publish them.

A failed attempt cleans up after itself. A killed attempt leaves its staging folder, a publication that no row of the
ledger names, and files that it has already copied to tables. Their names begin with the batch and the epoch of the
attempt.

Attempts of earlier claims are over, because the ledger no longer accepts their rows. Publications with a `prepare` row
and files that a table holds are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from windowlib.contract.tables import COMMIT_ORDER, LEDGER
from windowlib.ledger import prepare
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.reading import rows_of_kinds
from windowlib.ledger.rows import Claim
from windowlib.publication.publish import STAGING
from windowlib.storage.at_once import at_once

_ATTEMPT = re.compile(r"(?P<batch>[1-9]\d*)-(?P<epoch>[1-9]\d*)(?=-|$)")


def remove(ledger: Ledger, claim: Claim, *, also_in_tables: bool) -> None:
    """Removes files of attempts of earlier claims. Files that the storage does not delete stay for maintenance."""
    store, fixed = ledger.store, ledger.last_state.prepared
    staged, publications = at_once(partial(_listed, ledger), (STAGING, prepare.FOLDER))
    of_tables = list(_in_tables(ledger, claim)) if also_in_tables else []
    for folder in sorted({path.split("/")[1] for path in staged}):
        if _is_over(folder, claim):
            with suppress(OSError):
                store.below(f"{STAGING}/{folder}").clear()
    over = (path for path in publications if _is_over(path.rpartition("/")[2], claim))
    with suppress(OSError):
        store.delete([*(path for path in over if fixed is None or path != fixed.path), *of_tables])


def _listed(ledger: Ledger, folder: str) -> list[str]:
    return [file.path for file in ledger.store.list(f"{folder}/")]


def _is_over(name: str, claim: Claim) -> bool:
    """Tests if a name begins with an attempt of an earlier claim."""
    attempt = _ATTEMPT.match(name)
    return attempt is not None and int(attempt["epoch"]) < claim.epoch


def _in_tables(ledger: Ledger, claim: Claim) -> Iterator[str]:
    """Orphaned files of the tables. Attempts of earlier claims wrote them, but prepared no publication."""
    looks = at_once(partial(_of_attempts, ledger, claim), COMMIT_ORDER)
    candidates = [file for files in looks for file in files]
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


def _of_attempts(ledger: Ledger, claim: Claim, name: str) -> list[tuple[str, int, int]]:
    """Files of a table's folder that no table holds, named after an attempt of an earlier claim.

    Returns the batch and the epoch of the attempt with each file.
    """
    table = ledger.tables[name]
    held = {f"{name}/{file.path}" for file in table.files(table.version())}
    paths = (path for path in _listed(ledger, name) if path.endswith(".parquet") and path not in held)
    matches = ((path, _ATTEMPT.match(path.rpartition("/")[2])) for path in paths)
    attempts = [(path, int(match["batch"]), int(match["epoch"])) for path, match in matches if match]
    return [attempt for attempt in attempts if attempt[2] < claim.epoch]
