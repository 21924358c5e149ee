"""Counts of the result columns among the rows that a batch adds or changes: failed tests, and distinct values.

Both engines have the same counts, because Arrow reads the files that they wrote. The rows are read once, together with
the columns of the other figures.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from windowlib.batches.result_columns.column_values import ColumnValues
from windowlib.batches.result_columns.tested_columns import failing, must_fit
from windowlib.definition.definition import Definition
from windowlib.definition.toml.column_tests import MOST_VALUES, ColumnTest, distinct_figure
from windowlib.delta.data_files import DataFile
from windowlib.plans.step import Step


@dataclass(slots=True)
class ColumnCounts:
    """Counts of the result columns, added up part by part.

    visible: columns whose distinct values are a figure
    counted: visible columns that are counted; none if the batch writes too many values
    written: columns of the results. A new output is not among them before a batch reads files; nothing fails its tests.
    """

    tests: Sequence[ColumnTest]
    visible: Sequence[str]
    counted: Collection[str]
    written: Collection[str]
    _failed: dict[str, int] = field(default_factory=dict)
    _values: dict[str, ColumnValues] = field(default_factory=dict)

    @classmethod
    def of(cls, definition: Definition, step: Step, files: Sequence[DataFile]) -> ColumnCounts:
        """Counts of a batch that writes `files` of results. Hidden columns have no figure."""
        columns, written = [*definition.source.key, *definition.outputs], {*step.keys, *step.output_names}
        visible = [name for name in columns if name not in definition.hidden]
        is_small = sum(file.rows for file in files) * len(visible) <= MOST_VALUES
        return cls(definition.checks.column_tests, visible, written.intersection(visible if is_small else []), written)

    @property
    def columns(self) -> list[str]:
        """Columns to read."""
        tested = (test.column for test in self.tests if test.column in self.written)
        return [*dict.fromkeys([*tested, *(name for name in self.visible if name in self.counted)])]

    def add(self, rows: pa.Table, coded: pa.Table) -> None:
        """Counts a part. Raises `InvalidSpec` if a test cannot judge the type of its column.

        rows:  all columns to read
        coded: the same rows, with columns that have a dictionary already
        """
        for test in self.tests:
            if test.column in self.written:
                must_fit(test, rows[test.column].type)
                if test.test != "unique":
                    self._failed[test.figure] = self._failed.get(test.figure, 0) + failing(test, rows[test.column])
        for name in {*self.counted, *(test.column for test in self.tests if test.test == "unique")} & {*self.written}:
            column = (coded if name in coded.column_names else rows)[name]
            self._values.setdefault(name, ColumnValues()).add(column)

    def figures(self) -> dict[str, int | None]:
        """Failed rows and distinct values by figure."""
        nothing = ColumnValues()
        distinct = {
            distinct_figure(name): self._values.get(name, nothing).distinct if name in self.counted else None
            for name in self.visible
        }
        return distinct | {test.figure: self._total(test) for test in self.tests}

    def _total(self, test: ColumnTest) -> int:
        if test.test == "unique":
            return self._values.get(test.column, ColumnValues()).repeating
        return self._failed.get(test.figure, 0)
