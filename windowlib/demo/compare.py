"""Comparison of two tables that should be equal, in numbers of rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Comparison:
    """Numbers of rows: expected, actual, missing and extra by key, and different in values under the same key."""

    what: str
    expected: int
    actual: int
    missing: int
    extra: int
    different: int = 0

    @property
    def differences(self) -> int:
        return self.missing + self.extra + self.different


def compare_tables(
    what: str, expected: pa.Table, actual: pa.Table, keys: Sequence[str], values: Sequence[str] = ()
) -> Comparison:
    """Compares rows by ``keys``. A second row with the same key is extra. A null equals a null.

    >>> truth = pa.table({"user": ["a", "b"], "events": [1, 2]})
    >>> actual = pa.table({"user": ["b", "c", "c"], "events": [3, 4, 4]})
    >>> compare_tables("sessions", truth, actual, ["user"], ["events"])
    Comparison(what='sessions', expected=2, actual=3, missing=1, extra=2, different=1)
    """
    distinct = actual.group_by(list(keys)).aggregate([(name, "max") for name in values])
    distinct = distinct.rename_columns([*keys, *(f"{name}_actual" for name in values)])
    distinct = distinct.append_column("_actual", pa.repeat(True, len(distinct)))
    truth = expected.select([*keys, *values]).append_column("_expected", pa.repeat(True, len(expected)))
    joined = truth.join(distinct, list(keys), join_type="full outer")
    both = joined.filter(pc.and_(joined["_actual"].is_valid(), joined["_expected"].is_valid()))
    return Comparison(
        what,
        expected=len(expected),
        actual=len(actual),
        missing=joined["_actual"].null_count,
        extra=joined["_expected"].null_count + len(actual) - len(distinct),
        different=pc.sum(_differs(both, values), min_count=0).as_py(),
    )


def compare_counts(expected: Mapping[str, int], actual: Mapping[str, int]) -> list[Comparison]:
    """One comparison for each name in either mapping.

    >>> compare_counts({"late": 3}, {"late": 1, "future": 2})
    [Comparison(what='future', expected=0, actual=2, missing=0, extra=2, different=0), \
Comparison(what='late', expected=3, actual=1, missing=2, extra=0, different=0)]
    """
    pairs = [(name, expected.get(name, 0), actual.get(name, 0)) for name in sorted({*expected, *actual})]
    return [Comparison(name, want, have, max(0, want - have), max(0, have - want)) for name, want, have in pairs]


def _differs(rows: pa.Table, values: Sequence[str]) -> pa.ChunkedArray | pa.Array:
    differs = pa.repeat(False, len(rows))
    for name in values:
        want, have = rows[name], rows[f"{name}_actual"]
        unequal = pc.fill_null(pc.not_equal(want, have), pc.xor(want.is_null(), have.is_null()))
        differs = pc.or_(differs, unequal)
    return differs
