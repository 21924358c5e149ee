"""A column's type in a file, compared with the type that it is read as: recorded, declared, or of a Delta table."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.model.errors import StateMismatch
from windowlib.source.columns.column_types import declared_type, in_nanos, is_nested, is_wider, kind_of, misfit
from windowlib.source.columns.missing import aside
from windowlib.source.delta.table_types import by_table, stored_by, table_types, widens

DONE = "nothing of this batch has been committed"


@dataclass(frozen=True, slots=True)
class ReadTypes:
    """The types, as Arrow names them, that columns in use are read as, as far as they are known before a file is seen.

    known: recorded by earlier batches, declared, or of the table
    table: the columns of a Delta table's schema
    """

    source: Source
    uses: Uses
    known: Mapping[str, str]
    table: Mapping[str, str]

    @classmethod
    def of(cls, source: Source, uses: Uses, recorded: Mapping[str, str]) -> ReadTypes:
        """Those of a source. Raises `StateMismatch` where what was recorded and what is declared now do not agree."""
        table = table_types(source, uses.columns)
        known = {**recorded, **_declared(source, uses.columns, recorded)}
        return cls(source, uses, by_table(source, uses, known, table), table)

    def check(self, file: str, name: str, types: tuple[str, str], read: Collection[str]) -> None:
        """Raises `StateMismatch` where a column of a file cannot be read as it was recorded first.

        types: the recorded one, and that of the file; `read` are files that were read before
        """
        (recorded, found), source = types, self.source
        if found == recorded and not in_nanos(found):
            return
        path, column = source.path / file, source.in_files(name)
        declared, by_schema = source.declared(column) is not None, name in self.table and not is_nested(recorded)
        floored = name.casefold() == source.timestamp.casefold()
        why = misfit(path, column, recorded, found, floored=floored, declared=declared or by_schema)
        if why is None:
            return
        said = f"column {name!r} of {path} {why if declared else why.replace('source.schema says', 'was recorded as')}"
        if by_schema and widens(recorded, self.table[name]):
            raise StateMismatch(f"{said}. {self._since_widened(name, recorded)}; {DONE}")
        raise StateMismatch(
            f"{said}. Write the file with {recorded.replace('[ns', '[us')}"
            f"{_declaring(column, recorded, found)}{aside(source, file, read, '; or leave it out')};"
            f"{'' if declared else ' or start a pipeline under another name for the new type;'} {DONE}"
        )

    def _since_widened(self, name: str, recorded: str) -> str:
        """Says what to do where the table was widened, and what is stored was not."""
        now, file = self.table[name], self.source.file
        key = stored_by(self.source, self.uses, {**self.known, name: recorded}, name, now) or f"column {name!r}"
        return (
            f"The table has {now} since, but {key} is stored by the type that was recorded. Give {key} another name"
            f" in {file} and have the tables built again: `{to_paste('migrate', file, *WHY)}`;"
            " or start a pipeline under another name"
        )


def _declared(source: Source, used: Sequence[str], recorded: Mapping[str, str]) -> dict[str, str]:
    """The types that `[source.schema]` names of columns in use; raises `StateMismatch` where another is recorded."""
    found: dict[str, str] = {}
    for name in used:
        text = source.declared(source.in_files(name))
        kind = declared_type(text)
        if kind is not None and name in recorded and kind_of(recorded[name]) != kind_of(kind):
            raise StateMismatch(
                f"source.schema in {source.file} says {text} of column {name!r}, which was recorded as"
                f" {recorded[name]}: a column keeps its type. Say {kind_of(recorded[name])}, or leave it out"
            )
        if kind is not None and name not in recorded:
            found[name] = str(kind)
    return found


def _declaring(column: str, recorded: str, found: str) -> str:
    """What to say where a narrower type is not the file's fault."""
    if not is_wider(kind_of(recorded), kind_of(found)):
        return ""
    said = f'schema = {{ {json.dumps(column)} = "{kind_of(recorded)}" }}'
    return f"; or, where nothing is cut off, say so in [source]: {said}"
