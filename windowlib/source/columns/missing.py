"""Columns that a file lacks: read as null, or reported as an error in the definition or the file.

If a Delta table's schema has the column, it is null in files that lack it, as for other readers of the table. For plain
files `source.missing_columns` decides. A column that no file has so far is most likely misspelt in the definition. The
message about such a column does not propose to set files aside, since their rows would be lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.mistakes import in_toml, nearest
from windowlib.definition.plurals import first_five
from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.plans.names import EVENT_TIME
from windowlib.plans.sql.kinds import NULL


@dataclass(slots=True)
class OtherFiles:
    """Columns that are known from the other files of a source, while one file is checked.

    read:     the paths of files that were read before; the checked file may be among them
    recorded: the columns that earlier batches have read, by the definition's names
    table:    the columns of the Delta table's schema, with their types
    files:    the column types of each other file, by names in lower case
    """

    read: Collection[str]
    recorded: Collection[str]
    table: Mapping[str, str]
    files: Iterator[Mapping[str, str]]
    _types: dict[str, str] = field(default_factory=dict)

    def type_of(self, column: str) -> str | None:
        """Type of a column in the first file in which it has a type.

        NULL if the column is null in all files. If no file has the column: its type in the Delta table, or None.
        """
        folded = column.casefold()
        while self._types.get(folded, NULL) == NULL and (types := next(self.files, None)) is not None:
            for name, kind in types.items():
                if self._types.get(name, NULL) == NULL:
                    self._types[name] = kind
        return self._types.get(folded, self.table.get(column))

    def have(self, column: str) -> bool:
        """Tests if an earlier batch read a column, or if the Delta table or another file has it."""
        return column in self.recorded or column in self.table or self.type_of(column) is not None


@dataclass(frozen=True, slots=True)
class AbsentColumn:
    """A column that a file does not have.

    column: its name in the files
    name:   its name in the definition
    key:    the key of the definition that names it
    has:    the columns of the file
    meant:  a hint with the most similar name; empty if no column has a similar name
    """

    column: str
    name: str
    key: str
    has: Sequence[str]
    meant: str


def in_use(source: Source, uses: Uses, name: str, has: Collection[str]) -> AbsentColumn:
    """Describes a column in use that a file does not have."""
    key = f"{uses.named_by[name]} in {source.file}" if name in uses.named_by else str(source.file)
    return AbsentColumn(name, name, key, sorted(has), nearest(name, has))


def renamed(source: Source, column: str, has: Sequence[str]) -> AbsentColumn:
    """Describes a column in `source.rename` that a file does not have.

    If the file has the new name, `meant` proposes to swap the two names.
    """
    name, meant = source.rename[column], nearest(column, has)
    if name in has:
        meant = f"; did you mean {{ {in_toml(name)} = {in_toml(column)} }}, what the files call it first?"
    return AbsentColumn(column, name, f"source.rename in {source.file}", has, meant)


def absent(source: Source, uses: Uses, columns: Sequence[str]) -> Iterator[AbsentColumn]:
    """Yields the columns that the definition renames or uses and that a file with these `columns` lacks."""
    folded, has = {name.casefold() for name in columns}, [source.named(name) for name in columns]
    missing = {name.casefold(): own for own, name in source.rename.items() if own.casefold() not in folded}
    if uses.columns:  # without columns in use, the file only has to open
        yield from (renamed(source, own, columns) for own in missing.values())
    for name in uses.columns:
        if source.in_files(name).casefold() not in folded and name.casefold() not in missing and name != EVENT_TIME:
            yield in_use(source, uses, name, has)


def is_null(source: Source, uses: Uses, gap: AbsentColumn, others: OtherFiles) -> bool:
    """Tests if a missing column is read as null instead of being reported as an error.

    A renamed column that is not in use is never read, so files may lack it. Before the first batch, some file must have
    it.
    """
    if gap.name not in uses.columns:
        return bool(others.recorded) or others.have(gap.name)
    return gap.name in others.table or (source.missing_columns == "null" and gap.name.casefold() not in source.needed)


def without(source: Source, file: str, gap: AbsentColumn, others: OtherFiles) -> str:
    """Error message for a file that lacks a column that the definition names."""
    column, key, meant = gap.column, gap.key, gap.meant
    named = f"{source.store}/{file} has no column {column!r}, but {key} names it"
    has = f"It has {first_five(gap.has)}" if gap.has else "It has no column"
    it, done = f"the file with {column!r}", "nothing of this batch has been committed"
    if not others.have(gap.name):
        certain = meant or source.missing_columns == "null"
        todo = "Correct the definition" if certain else f"Correct the definition, or write {it}"
        nor = "; no listed or read file has it" if source.missing_columns == "null" else ""
        return f"{named}{nor}; {done}. {has}{meant or '.'} {todo}"
    set_aside = aside(source, file, others.read, ", or set it aside")
    if source.missing_columns == "stop" and gap.name.casefold() not in source.needed:
        correct = "correct the definition, " if meant else ""
        first = f'To read it as null, add missing_columns = "null" to [source] in {source.file}'
        todo = f"{first}. Otherwise {correct}write {it}{set_aside}"
    else:
        first = "Other files have the column: correct the definition, or write" if meant else "Write"
        todo = f"{first} {it}{set_aside}"
    return f"{named}; {done}. {has}{meant or '.'} {todo}"


def aside(source: Source, file: str, read: Collection[str], words: str) -> str:
    """Advice to set a file aside: `words`, then the command. Empty for a file that was read before."""
    return "" if file in read else f"{words}: `{to_paste('set-aside', source.file, file, *WHY)}`"
