"""Aggregates that were added while a pipeline was live, and what of its results they fill.

In the order of a pipeline's aggregates they come after a *mark*, ``since_batch(n)``, which the batch that added them
put before them (`windowlib.plans.aggregates.mergeable.since`). A window whose events all came since then holds all of
them, and so do windows of all later marks. A column over such aggregates is null where a window holds an event from
before.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from windowlib.contract.result_tables import FILLED
from windowlib.plans.aggregates.aggregate_set import AggregateSet, OutputColumn, SqlAggregate
from windowlib.plans.aggregates.mergeable.since import NAME

_MARK = re.compile(rf"{NAME}\((\d+)\)")


def mark(batch_id: int) -> SqlAggregate:
    """What stands before the aggregates that a batch adds."""
    return SqlAggregate(NAME, str(batch_id))


def marked_by(text: str) -> int | None:
    """The batch of a mark, as it is stored; None for an aggregate.

    >>> marked_by(str(mark(7))), marked_by("sum(`value`)")
    (7, None)
    """
    found = _MARK.fullmatch(text)
    return int(found[1]) if found else None


def since(stored: Iterable[str]) -> dict[str, int]:
    """Stored aggregates, marks aside, and the batch that added each (0: they were there from the start).

    >>> since(["count(*)", "since_batch(7)", "sum(`value`)"])
    {'count(*)': 0, 'sum(`value`)': 7}
    """
    found, batch_id = dict[str, int](), 0
    for text in stored:
        marked = marked_by(text)
        if marked is None:
            found[text] = batch_id
        batch_id = marked or batch_id
    return found


def as_published(aggregates: AggregateSet, added: Collection[str]) -> AggregateSet:
    """The same with columns that know their marks, and with `FILLED`, which says which of `added` a row has.

    >>> aggregates = SqlAggregate("count", None), mark(7), SqlAggregate("sum", "v")
    >>> whole = AggregateSet(aggregates, (OutputColumn("s", "{2}"),))
    >>> as_published(whole, ["s"]).columns[0].mark, as_published(whole, ["s"]).columns[1].sql
    (1, "CASE WHEN {1} THEN 's' END")
    >>> made_of_others = AggregateSet((SqlAggregate("count", None),), (OutputColumn("twice", "2 * {0}"),))
    >>> [as_published(made_of_others, [name]).columns[1].sql for name in ("twice", "another")]
    ["'twice'", 'null']
    """
    if not added:
        return aggregates
    marks = [number for number, one in enumerate(aggregates.aggregates) if one.function == NAME]
    columns = [replace(column, mark=_mark_of(column, marks)) for column in aggregates.columns]
    always = _names(columns, added, [None])
    cases = [(number, _names(columns, added, [None, *marks[: at + 1]])) for at, number in enumerate(marks)]
    return replace(aggregates, columns=(*columns, OutputColumn(FILLED, _sql(always, cases))))


def by_batch(aggregates: AggregateSet, batch: str) -> AggregateSet:
    """The same for events of all batches at once; a column says which batch each came with."""
    return replace(
        aggregates,
        aggregates=tuple(
            replace(one, where_sql=f"{batch} >= {one.argument_sql}") if one.function == NAME else one
            for one in aggregates.aggregates
        ),
    )


def _mark_of(column: OutputColumn, marks: Iterable[int]) -> int | None:
    """The last mark before an aggregate of the column; None where all were there from the start."""
    return max((number for number in marks if number < max(column.numbers)), default=None)


def _names(columns: Iterable[OutputColumn], added: Collection[str], marks: Collection[int | None]) -> str | None:
    """The added columns with one of these marks, as a text in SQL; None without any. Names are letters and digits."""
    names = ", ".join(column.name for column in columns if column.name in added and column.mark in marks)
    return f"'{names}'" if names else None


def _sql(always: str | None, cases: Iterable[tuple[int, str | None]]) -> str:
    """The names of the newest mark that is true; `always` where none is."""
    whens = [f"WHEN {{{number}}} THEN {names}" for number, names in cases if names]
    if not whens:
        return always or "null"
    return " ".join(["CASE", *reversed(whens), *([f"ELSE {always}"] if always else []), "END"])
