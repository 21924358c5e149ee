"""Columns that a file does not have: read as null, or said whose mistake they are, the definition's or the file's.

A column that a Delta table's schema has is null in files that lack it, as the table's other readers have it. Of plain
files `source.missing_columns` decides. A column that no file has so far is most likely a misspelt key of the
definition; to set files aside for it would lose their rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.mistakes import in_toml, nearest
from windowlib.definition.toml.source import Source
from windowlib.definition.uses import Uses
from windowlib.plans.names import EVENT_TIME
from windowlib.plans.sql.kinds import NULL


@dataclass(slots=True)
class OtherFiles:
    """Columns of files besides the one that is looked at.

    read:     the paths of files that were read before, maybe this one among them
    recorded: the columns that earlier batches have read, by the definition's names
    table:    the columns of the Delta table's schema, with their types
    files:    the types of the columns of other files, one file after the other, by names in lower case
    """

    read: Collection[str]
    recorded: Collection[str]
    table: Mapping[str, str]
    files: Iterator[Mapping[str, str]]
    _types: dict[str, str] = field(default_factory=dict)

    def type_of(self, column: str) -> str | None:
        """The type that the first of them has that has one, NULL where no other file has; None where no file has it."""
        folded = column.casefold()
        while self._types.get(folded, NULL) == NULL and (types := next(self.files, None)) is not None:
            for name, kind in types.items():
                if self._types.get(name, NULL) == NULL:
                    self._types[name] = kind
        return self._types.get(folded, self.table.get(column))

    def have(self, column: str) -> bool:
        """Tests if a column was read before, or the table or another file has it."""
        return column in self.recorded or column in self.table or self.type_of(column) is not None


@dataclass(frozen=True, slots=True)
class AbsentColumn:
    """A column that a file does not have; `name` is the definition's for it, and `key` the key that names it.

    has:   the columns of the file
    meant: a question for what was meant, empty where nothing is near
    """

    column: str
    name: str
    key: str
    has: Sequence[str]
    meant: str


def in_use(source: Source, uses: Uses, name: str, has: Collection[str]) -> AbsentColumn:
    """A column in use that a file does not have."""
    key = f"{uses.named_by[name]} in {source.file}" if name in uses.named_by else str(source.file)
    return AbsentColumn(name, name, key, sorted(has), nearest(name, has))


def renamed(source: Source, column: str, has: Sequence[str]) -> AbsentColumn:
    """A column to rename that a file does not have; where it has one of the new name, the two stand the wrong way."""
    name, meant = source.rename[column], nearest(column, has)
    if name in has:
        meant = f"; did you mean {{ {in_toml(name)} = {in_toml(column)} }}, what the files call it first?"
    return AbsentColumn(column, name, f"source.rename in {source.file}", has, meant)


def absent(source: Source, uses: Uses, columns: Sequence[str]) -> Iterator[AbsentColumn]:
    """The columns that the definition renames or uses, and a file with these columns does not have."""
    folded, has = {name.casefold() for name in columns}, [source.named(name) for name in columns]
    missing = {name.casefold(): own for own, name in source.rename.items() if own.casefold() not in folded}
    if uses.columns:  # else it only matters that the file can be opened
        yield from (renamed(source, own, columns) for own in missing.values())
    for name in uses.columns:
        if source.in_files(name).casefold() not in folded and name.casefold() not in missing and name != EVENT_TIME:
            yield in_use(source, uses, name, has)


def is_null(source: Source, uses: Uses, gap: AbsentColumn, others: OtherFiles) -> bool:
    """Tests if a column is read as null in files that lack it; one that is renamed and not used is not read at all."""
    if gap.name not in uses.columns:
        return bool(others.recorded) or others.have(gap.name)
    return gap.name in others.table or (source.missing_columns == "null" and gap.name.casefold() not in source.needed)


def without(source: Source, file: str, gap: AbsentColumn, others: OtherFiles) -> str:
    """Says that a file does not have a column that the definition names, and what to do."""
    column, key, meant = gap.column, gap.key, gap.meant
    named = f"{key} names the column {column!r}, which {source.path / file} does not have"
    has = f"It has {', '.join(gap.has)}." if gap.has else "It has no column."
    it, done = f"the file with {column!r}", "nothing of this batch has been committed"
    if not others.have(gap.name):
        certain = meant or source.missing_columns == "null"
        todo = "Correct the definition" if certain else f"Correct the definition, or write {it}"
        nor = ", nor has any file that is listed or was read" if source.missing_columns == "null" else ""
        return f"{named}{nor}{meant or '.'} {has} {todo}; {done}"
    set_aside = aside(source, file, others.read, ", or set it aside")
    if source.missing_columns == "stop" and gap.name.casefold() not in source.needed:
        correct = "correct the definition, " if meant else ""
        first = f'To read it as null, add missing_columns = "null" to [source] in {source.file}'
        todo = f"{first}; or {correct}write {it}{set_aside}"
    else:
        first = "Correct the definition; or, as other files have the column, write" if meant else "Write"
        todo = f"{first} {it}{set_aside}"
    return f"{named}{meant or '.'} {has} {todo}; {done}"


def aside(source: Source, file: str, read: Collection[str], words: str) -> str:
    """The command by which runs go on without a file, after some words; nothing for one of those that were read."""
    return "" if file in read else f"{words}: `{to_paste('set-aside', source.file, file, *WHY)}`"
