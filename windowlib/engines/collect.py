"""The rows of a DataFrame in this process, with times as they are stored.

PySpark's own `collect` gives a TIMESTAMP as the clocks of this machine show it, without a zone, and none after the year
9999.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windowlib.delta.data_files import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def collected(rows: DataFrame) -> list[dict[str, Any]]:
    """All rows, by column, as `rows_of` gives them: TIMESTAMPs in UTC, wherever this machine is."""
    return rows_of(rows.toArrow())
