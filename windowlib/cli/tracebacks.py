"""Tracebacks of unforeseen errors, kept in the folder `logs` next to the tables."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from windowlib.storage.address import store_at
from windowlib.storage.store import Store


def with_traceback(error: Exception, command: str, tables: Store | None) -> str:
    """Sentence about an unforeseen error, with the address of its traceback. Stores the traceback."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    text, name = "".join(traceback.format_exception(error)), f"windowlib-{command}-{moment}-{os.getpid()}.txt"
    for place in _log_places(tables):
        with suppress(OSError):
            place.put(name, text.encode())
            return f"{gist(error)} (full traceback: {place}/{name})"
    return f"{gist(error)} (no folder is writable for the traceback)"


def gist(error: Exception) -> str:
    """One line about an unforeseen error: the last line of a traceback in its message, else the message's first line.

    >>> gist(ValueError("In a worker:\\nTraceback (most recent call last):\\n  File ...\\nOSError: no such page"))
    'ValueError: OSError: no such page'
    >>> gist(RuntimeError("An error occurred while calling o7.save.\\n: java.io.IOException: no\\n\\tat java.base"))
    'RuntimeError: java.io.IOException: no'
    """
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines() if line.strip()]
    traced = any(line.startswith("Traceback (most recent call last)") for line in lines)
    lines = [line for line in lines if not line.startswith(("at ", "An error occurred while calling"))]
    return f"{type(error).__name__}: {(lines or ['no message'])[-1 if traced else 0]}"


def _log_places(tables: Store | None) -> Iterator[Store]:
    """Log folder of a pipeline that has tables, then the temporary folder of this machine."""
    if tables is not None and has_tables(tables):
        yield tables.below("logs")
    yield store_at(tempfile.gettempdir())


def has_tables(store: Store) -> bool:
    """Tests if a pipeline has tables: its ledger has a log. Without the right to list the log, it has none."""
    from windowlib.contract.tables import LEDGER

    with suppress(OSError):
        return any(True for _ in store.list(f"{LEDGER.name}/_delta_log/"))
    return False
