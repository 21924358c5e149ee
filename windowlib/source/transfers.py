"""Names of unfinished transfers: a file has such a name while it grows, and is renamed when it is complete.

Most transfer programs append a suffix to the name. Spark and similar writers put `_` or `.` before the name
of a file or folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

SUFFIXES = (".filepart", ".part", ".partial", ".tmp", ".temp", ".crdownload", ".download", ".inprogress", ".swp")
PREFIXES = ("_", ".")  # engines ignore files and folders with such names


def has_prefix(name: str) -> bool:
    """Tests if the name of a file or of a folder above the file starts with `_` or `.`.

    >>> has_prefix("_upload/a.csv"), has_prefix("d/.a.csv"), has_prefix("d_/a_.csv")
    (True, True, False)
    """
    return name.startswith(PREFIXES) or any(f"/{prefix}" in name for prefix in PREFIXES)


def suffix_of(name: str) -> str:
    """Suffix of an unfinished transfer, in lower case; empty for a complete file.

    >>> [suffix_of(name) for name in ("a.csv.FilePart", "in.part/part-0001.parquet", "a.part-1.csv", "part")]
    ['.filepart', '', '', '']
    """
    own = name.lower()
    if not own.endswith(SUFFIXES):
        return ""
    return next(suffix for suffix in SUFFIXES if own.endswith(suffix))


def is_unfinished(name: str) -> bool:
    """Tests if a file has the name of an unfinished transfer."""
    return has_prefix(name) or bool(suffix_of(name))


def complete_names(name: str) -> Iterator[str]:
    """Yields the names that a file may get when its transfer is complete; none if its name has no suffix.

    >>> [*complete_names("d/a.csv.part.TMP")], [*complete_names("d/a.csv")]
    (['d/a.csv.part', 'd/a.csv'], [])
    """
    while suffix := suffix_of(name):
        name = name[: -len(suffix)]
        if not name or name.endswith("/"):
            return
        yield name


def is_named(suffix: str, patterns: Sequence[str]) -> bool:
    """Tests if a pattern ends with `suffix`, regardless of case.

    >>> is_named(".part", ["*.PART"]), is_named(".part", ["*", "*.part-*"])
    (True, False)
    """
    return any(pattern.lower().endswith(suffix) for pattern in patterns)
