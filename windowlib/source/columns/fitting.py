"""Check of a column's type in a file against the recorded, declared or Delta type that it is read as."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.ledger.rows import SourceFile
from windowlib.model.errors import StateMismatch
from windowlib.source.columns.column_types import (
    declared_type,
    in_nanos,
    is_nested,
    is_wider,
    kind_of,
    misfit,
    values_of,
)
from windowlib.source.columns.missing import aside
from windowlib.source.delta.table_types import by_table, stored_by, table_types, widens

DONE = "nothing of this batch has been committed"


@dataclass(frozen=True, slots=True)
class ReadTypes:
    """Types that the columns in use are read as. Has only types that are known before any file is read.

    types: Arrow names of these types, by column: recorded by earlier batches, declared, or from the Delta table
    table: Arrow names of the types in a Delta table's schema, by column in use
    """

    source: Source
    uses: Uses
    types: Mapping[str, str]
    table: Mapping[str, str]

    @classmethod
    def of(cls, source: Source, uses: Uses, recorded: Mapping[str, str]) -> ReadTypes:
        """Determines the types for a source. Raises `StateMismatch` if a declared and a recorded type differ."""
        table = table_types(source, uses.columns)
        types = {**recorded, **_declared(source, uses.columns, recorded)}
        return cls(source, uses, by_table(source, uses, types, table), table)

    def check(self, file: SourceFile, name: str, types: tuple[str, str], read: Collection[str]) -> None:
        """Raises `StateMismatch` if a column of a file cannot be read as the recorded type.

        types: the recorded type, and the type in the file
        read:  files that were read before
        """
        (recorded, file_type), source = types, self.source
        if file_type == recorded and not in_nanos(file_type):
            return
        path, column = f"{source.store}/{file.path}", source.in_files(name)
        declared, by_schema = source.declared(column) is not None, name in self.table and not is_nested(recorded)
        floored = name.casefold() == source.timestamp.casefold()
        values = values_of(source.store, file, column)
        reason = misfit(values, recorded, file_type, floored=floored, declared=declared or by_schema)
        if reason is None:
            return
        if not declared:
            reason = reason.replace("source.schema declares", "was recorded as")
        problem = f"column {name!r} of {path} {reason}"
        if by_schema and widens(recorded, self.table[name]):
            raise StateMismatch(f"{problem}; {DONE}. {self._since_widened(name, recorded)}")
        raise StateMismatch(
            f"{problem}; {DONE}. Write the file with {recorded.replace('[ns', '[us')}"
            f"{aside(source, file.path, read, ', or set it aside')}"
            f"{'' if declared else ', or start a pipeline under another name for the new type'}."
            f"{_declaring(column, recorded, file_type)}"
        )

    def _since_widened(self, name: str, recorded: str) -> str:
        """Advice for a column that the table has widened, while stored windows depend on its recorded type."""
        now, file = self.table[name], self.source.file
        key = stored_by(self.source, self.uses, {**self.types, name: recorded}, name, now) or f"column {name!r}"
        return (
            f"The table has {now} now, but {key} is stored by the recorded type. Give {key} another name in {file}"
            f" and rebuild the tables, `{to_paste('migrate', file, *WHY)}`, or start a pipeline under another name."
        )


def _declared(source: Source, used: Sequence[str], recorded: Mapping[str, str]) -> dict[str, str]:
    """Types that `[source.schema]` declares for columns in use without a recorded type.

    Raises `StateMismatch` if a declared type differs from the recorded type.
    """
    types: dict[str, str] = {}
    for name in used:
        text = source.declared(source.in_files(name))
        kind = declared_type(text)
        if kind is not None and name in recorded and kind_of(recorded[name]) != kind_of(kind):
            raise StateMismatch(
                f"source.schema in {source.file} declares the column {name!r} as {text}, but it was recorded as"
                f" {recorded[name]}. A column keeps its type: declare it as {kind_of(recorded[name])}, or leave it out"
            )
        if kind is not None and name not in recorded:
            types[name] = str(kind)
    return types


def _declaring(column: str, recorded: str, file_type: str) -> str:
    """Advice to declare the recorded type, for a file with a narrower type; empty for other types."""
    if not is_wider(kind_of(recorded), kind_of(file_type)):
        return ""
    line = f'schema = {{ {json.dumps(column)} = "{kind_of(recorded)}" }}'
    return f" If its writer cut off nothing, declare the type in [source]: {line}."
