"""Parquet files as a bad disk leaves them."""

from __future__ import annotations

import os
from pathlib import Path


def damage_rows(path: Path) -> bytes:
    """Overwrites the rows of a file, whose footer, size and time stay; returns the old bytes."""
    content, times = path.read_bytes(), path.stat()
    rows_end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:4] + bytes(rows_end - 4) + content[rows_end:])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return content
