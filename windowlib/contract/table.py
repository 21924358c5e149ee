"""Description of a table: its columns, the meaning of a row, and its invariants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import Schema

    from windowlib.contract.types import ArrowType


@dataclass(frozen=True, slots=True)
class Column:
    """Column and its meaning. A name in angle brackets stands for columns that the definition names."""

    name: str
    arrow: ArrowType | None  # None: the definition decides
    holds: str

    @property
    def type(self) -> pa.DataType | None:
        """Arrow type of the column; None if the definition decides."""
        return self.arrow() if self.arrow else None


@dataclass(frozen=True, slots=True)
class TableSpec:
    """Table: its meaning, its invariants, its partition columns, and all its columns."""

    name: str
    holds: str
    invariants: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    may_be_added: tuple[str, ...] = ()  # columns that may be added to a table with rows
    described: tuple[Column, ...] = ()

    @property
    def columns(self) -> pa.Schema | None:
        """Arrow schema; None if some columns depend on the definition. The first commit fixes such columns."""
        import pyarrow as pa

        if any(column.arrow is None for column in self.described):
            return None
        return pa.schema([(column.name, column.type) for column in self.described])

    @property
    def names(self) -> list[str]:
        """Names of the table's columns, without columns that the definition names."""
        return [column.name for column in self.described if "<" not in column.name]

    def has(self, column: str) -> bool:
        """Tests if the table has a column of this name."""
        return any(described.name == column for described in self.described)

    def schema(self) -> Schema:
        """Delta schema of a table whose columns are the same for every pipeline."""
        from deltalake import Schema  # imported late, because Python workers of Spark import the contract

        if self.columns is None:
            raise LookupError(f"the columns of {self.name} depend on the pipeline")
        return Schema.from_arrow(self.columns)

    def empty(self) -> pa.Table:
        """Table without rows; without columns if some columns depend on the definition."""
        import pyarrow as pa

        return pa.table({}) if self.columns is None else self.columns.empty_table()
