"""Aggregates added to a live pipeline, and the results that they cover.

The batch that adds aggregates puts a *mark*, ``since_batch(n)``, before them in the pipeline's list of aggregates
(`windowlib.plans.aggregates.mergeable.since`). If all events of a window came since that batch, the added aggregates
cover the whole window. Otherwise the columns computed from them are null.
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
    """Mark that precedes the aggregates added by a batch."""
    return SqlAggregate(NAME, str(batch_id))


def marked_by(text: str) -> int | None:
    """Batch id of a stored mark; None if `text` is an aggregate.

    >>> marked_by(str(mark(7))), marked_by("sum(`value`)")
    (7, None)
    """
    match = _MARK.fullmatch(text)
    return int(match[1]) if match else None


def since(stored: Iterable[str]) -> dict[str, int]:
    """Batch that added each stored aggregate. It is 0 for an aggregate that was present from the start. Omits marks.

    >>> since(["count(*)", "since_batch(7)", "sum(`value`)"])
    {'count(*)': 0, 'sum(`value`)': 7}
    """
    added_by, batch_id = dict[str, int](), 0
    for text in stored:
        marked = marked_by(text)
        if marked is None:
            added_by[text] = batch_id
        batch_id = marked or batch_id
    return added_by


def as_published(aggregates: AggregateSet, added: Collection[str]) -> AggregateSet:
    """Sets the mark of each column, and appends `FILLED`: names of the `added` columns that a row has.

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
    marks = [number for number, aggregate in enumerate(aggregates.aggregates) if aggregate.function == NAME]
    columns = [replace(column, mark=_mark_of(column, marks)) for column in aggregates.columns]
    always = _names(columns, added, [None])
    cases = [(number, _names(columns, added, [None, *marks[: at + 1]])) for at, number in enumerate(marks)]
    return replace(aggregates, columns=(*columns, OutputColumn(FILLED, _sql(always, cases))))


def by_batch(aggregates: AggregateSet, batch: str) -> AggregateSet:
    """Makes each mark count the events since its batch. `batch` is SQL of the batch of an event."""
    return replace(
        aggregates,
        aggregates=tuple(
            replace(aggregate, where_sql=f"{batch} >= {aggregate.argument_sql}")
            if aggregate.function == NAME
            else aggregate
            for aggregate in aggregates.aggregates
        ),
    )


def _mark_of(column: OutputColumn, marks: Iterable[int]) -> int | None:
    """Number of the last mark before the last aggregate of the column; None if there is no such mark."""
    return max((number for number in marks if number < max(column.numbers)), default=None)


def _names(columns: Iterable[OutputColumn], added: Collection[str], marks: Collection[int | None]) -> str | None:
    """SQL string with the names of the added columns that have one of these marks. None if no column has such a mark.

    Column names need no escapes: they are letters and digits.
    """
    names = ", ".join(column.name for column in columns if column.name in added and column.mark in marks)
    return f"'{names}'" if names else None


def _sql(always: str | None, cases: Iterable[tuple[int, str | None]]) -> str:
    """SQL that selects the names of the newest mark that is true; `always` if no mark is true."""
    whens = [f"WHEN {{{number}}} THEN {names}" for number, names in cases if names]
    if not whens:
        return always or "null"
    return " ".join(["CASE", *reversed(whens), *([f"ELSE {always}"] if always else []), "END"])
