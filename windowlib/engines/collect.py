"""Collection of a DataFrame's rows in this process, with times in UTC.

PySpark's own `collect` returns a TIMESTAMP in the local time of this machine, without a zone. It fails for times after
the year 9999.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windowlib.delta.data_files import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def collected(rows: DataFrame) -> list[dict[str, Any]]:
    """Collects all rows as dictionaries by column, with TIMESTAMPs in UTC. The values are as in `rows_of`."""
    return rows_of(rows.toArrow())
