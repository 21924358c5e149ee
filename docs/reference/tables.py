"""`tables.md`: every table and column, from `windowlib.contract.tables`."""

from __future__ import annotations

import pyarrow as pa

from docs.reference.markdown import sentence, table
from windowlib.contract.table import Column, TableSpec
from windowlib.contract.tables import TABLES

HEAD = """# Tables

All tables of a pipeline lie in `<warehouse>/<name>/<table>/`. They are ordinary Delta tables: read them with Spark,
DuckDB, Polars or anything else that reads Delta. Let only windowlib write to them.

The newest commit row of `ledger` names the versions of the tables that belong together. `windowlib read` and
`windowlib.read_table` read these versions: [How a reader finds them](../how-it-works/protocol.md#reading).

Do not pass `filters=` to deltalake's `to_pyarrow_table` or `to_pandas`, and do not filter its `to_pyarrow_dataset`.
They skip files with matching rows if the log has no bounds of the column, as for doubles, booleans, decimals and
bytes. Filter the rows after reading, or use `windowlib.duckdb_views`.

Columns named `*_ms` are whole milliseconds since 1970-01-01 UTC. Timestamps are in UTC, to the microsecond.
[JSON on disk](json.md) describes columns with JSON, and the files next to the tables.
"""


def page() -> str:
    names = "\n".join(f"* [`{name}`](#{name}): {sentence(spec.holds)}" for name, spec in TABLES.items())
    return "\n".join([HEAD, names, *(_table(spec) for spec in TABLES.values())]) + "\n"


def _table(spec: TableSpec) -> str:
    columns = table(("column", "type", "meaning"), (_column(column) for column in spec.described))
    names = {column.name for column in spec.described}
    invariants = "\n".join(f"* {_rule(text, names)}" for text in spec.invariants)
    partitions = ", ".join(f"`{name}`" for name in spec.partition_by)
    parts = [f"\n({spec.name})=\n## {spec.name}\n", sentence(spec.holds), "", columns]
    parts += ["", "Always:", "", invariants] if invariants else []
    parts += ["", f"Partitioned by {partitions}."] if partitions else []
    return "\n".join(parts)


def _rule(text: str, columns: set[str]) -> str:
    """Sentence of a rule; a column at its start is code.

    >>> _rule("epoch never falls", {"epoch"}), _rule("no row is lost", set())
    ('`epoch` never falls.', 'No row is lost.')
    """
    first, _, rest = text.partition(" ")
    return sentence(f"`{first}` {rest}" if first in columns else text)


def _column(column: Column) -> tuple[str, str, str]:
    return f"`{column.name}`", "" if column.type is None else _short(column.type), column.holds


def _short(kind: pa.DataType) -> str:
    """A type in words.

    >>> _short(pa.list_(pa.struct([("path", pa.string()), ("size_bytes", pa.int64())])))
    'list of (path string, size_bytes int64)'
    """
    if pa.types.is_list(kind):
        return f"list of {_short(kind.value_type)}"
    if pa.types.is_struct(kind):
        return f"({', '.join(f'{field.name} {_short(field.type)}' for field in kind)})"
    if pa.types.is_map(kind):
        return f"map of {_short(kind.key_type)} to {_short(kind.item_type)}"
    return {"timestamp[us, tz=UTC]": "timestamp", "date32[day]": "date"}.get(str(kind), str(kind))
