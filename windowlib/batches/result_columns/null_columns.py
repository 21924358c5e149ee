"""Columns that are null in most new results, but were almost never null before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from windowlib.contract.result_tables import FILLED
from windowlib.delta.data_files import DataFile

ENOUGH_ROWS, MOST, HARDLY_EVER = 20, 0.5, 0.1


def gone_null(
    columns: Sequence[str],
    new: Sequence[DataFile],
    before: Callable[[], Sequence[DataFile]],
    added: Collection[str] = (),
) -> list[str]:
    """Columns that are null in most new rows, but were almost never null in `results`, by file statistics.

    Our decision: "most" is half, "almost never" is a tenth, and fewer than `ENOUGH_ROWS` rows prove nothing.

    before: returns the files of all results; called only if a column is null in most new rows
    added:  columns that earlier rows may lack; for these, only files count in which every row has the column

    >>> file = lambda rows, nulls: DataFile("f", 9, rows, nulls={"mean": nulls})
    >>> [gone_null(["mean"], [file(50, 40)], lambda: [file(900, nulls)]) for nulls in (9, 99)]
    [['mean'], []]
    """

    def share(name: str, files: Sequence[DataFile]) -> float | None:
        return _null_share(name, [file for file in files if _is_filled(file, name)] if name in added else files)

    lacking = [name for name in columns if (lacking_share := share(name, new)) is not None and lacking_share >= MOST]
    if not lacking:
        return []
    all_files = before()
    return [
        name
        for name in lacking
        if (lacking_share := share(name, all_files)) is not None and lacking_share <= HARDLY_EVER
    ]


def _is_filled(file: DataFile, name: str) -> bool:
    """Tests if all rows of a file have an added column, by its statistics."""
    names, last = file.low.get(FILLED), file.high.get(FILLED)
    return file.nulls.get(FILLED) == 0 and names == last and name in str(names).split(", ")


def _null_share(column: str, files: Sequence[DataFile]) -> float | None:
    counted = [file for file in files if file.nulls.get(column) is not None]
    rows = sum(file.rows for file in counted)
    return sum(file.nulls[column] for file in counted) / rows if rows >= ENOUGH_ROWS else None
