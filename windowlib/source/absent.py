"""What is said of a column that a file does not have: whose mistake it is, the definition's or the file's.

A column that no file has had so far is most likely a misspelt key of the definition; to set files aside for it would
lose their rows. Where earlier files had the column, it may be this file that differs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.mistakes import given, nearest
from windowlib.definition.source import Source
from windowlib.definition.uses import Uses


@dataclass(frozen=True, slots=True)
class Earlier:
    """What came before a file that is looked at.

    read:     the files that were read, maybe this one among them
    columns:  what earlier batches read, by the definition's names
    in_batch: whether a file of the same batch came before, which has all columns in use
    """

    read: Collection[str]
    columns: Collection[str]
    in_batch: bool

    def had(self, column: str) -> bool:
        return self.in_batch or column in self.columns


@dataclass(frozen=True, slots=True)
class Absent:
    """A column that a file does not have; `name` is the definition's for it, and `key` the key that names it.

    has:   the columns of the file
    meant: a question for what was meant, empty where nothing is near
    """

    column: str
    name: str
    key: str
    has: Sequence[str]
    meant: str


def in_use(source: Source, uses: Uses, name: str, has: Collection[str]) -> Absent:
    """A column in use that a file does not have."""
    key = f"{uses.named_by[name]} in {source.file}" if name in uses.named_by else str(source.file)
    return Absent(name, name, key, sorted(has), nearest(name, has))


def renamed(source: Source, column: str, has: Sequence[str]) -> Absent:
    """A column to rename that a file does not have; where it has one of the new name, the two stand the wrong way."""
    name, meant = source.rename[column], nearest(column, has)
    if name in has:
        meant = f"; did you mean {{ {given(name)} = {given(column)} }}, what the files call it first?"
    return Absent(column, name, f"source.rename in {source.file}", has, meant)


def without(source: Source, file: str, absent: Absent, earlier: Earlier) -> str:
    """That a file does not have a column that the definition names, and what to do."""
    column, key, meant = absent.column, absent.key, absent.meant
    said = f"{key} names the column {column!r}, which {source.path / file} does not have{meant or '.'}"
    has = f"It has {', '.join(absent.has)}." if absent.has else "It has no column."
    it = f"the file with {column!r}"
    if not earlier.had(absent.name):
        todo = "Correct the definition" if meant else f"Correct the definition, or write {it}"
    else:
        first = "Correct the definition; or, as earlier files have the column, write" if meant else "Write"
        todo = f"{first} {it}{aside(source, file, earlier.read, ', or set it aside')}"
    return f"{said} {has} {todo}; nothing of this batch has been committed"


def aside(source: Source, file: str, read: Collection[str], words: str) -> str:
    """The command by which runs go on without a file, after some words; nothing for one of those that were read."""
    return "" if file in read else f"{words}: `{to_paste('set-aside', source.file, file, *WHY)}`"
