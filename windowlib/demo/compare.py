"""Two tables that should be equal, compared in numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many rows were expected and found; missing and extra by key, different in values under the same key."""

    what: str
    expected: int
    found: int
    missing: int
    extra: int
    different: int = 0

    @property
    def differences(self) -> int:
        return self.missing + self.extra + self.different


def compare_tables(
    what: str, expected: pa.Table, found: pa.Table, keys: Sequence[str], values: Sequence[str] = ()
) -> Comparison:
    """Compare rows by ``keys``; a second row with the same key is extra, a null equals a null.

    >>> truth = pa.table({"user": ["a", "b"], "events": [1, 2]})
    >>> seen = pa.table({"user": ["b", "c", "c"], "events": [3, 4, 4]})
    >>> compare_tables("sessions", truth, seen, ["user"], ["events"])
    Comparison(what='sessions', expected=2, found=3, missing=1, extra=2, different=1)
    """
    once = found.group_by(list(keys)).aggregate([(name, "max") for name in values])
    once = once.rename_columns([*keys, *(f"{name}_found" for name in values)])
    once = once.append_column("_found", pa.repeat(True, len(once)))
    truth = expected.select([*keys, *values]).append_column("_expected", pa.repeat(True, len(expected)))
    joined = truth.join(once, list(keys), join_type="full outer")
    both = joined.filter(pc.and_(joined["_found"].is_valid(), joined["_expected"].is_valid()))
    return Comparison(
        what,
        expected=len(expected),
        found=len(found),
        missing=joined["_found"].null_count,
        extra=joined["_expected"].null_count + len(found) - len(once),
        different=pc.sum(_differs(both, values), min_count=0).as_py(),
    )


def compare_counts(expected: Mapping[str, int], found: Mapping[str, int]) -> list[Comparison]:
    """One comparison for each name in either.

    >>> compare_counts({"late": 3}, {"late": 1, "future": 2})
    [Comparison(what='future', expected=0, found=2, missing=0, extra=2, different=0), \
Comparison(what='late', expected=3, found=1, missing=2, extra=0, different=0)]
    """
    pairs = [(name, expected.get(name, 0), found.get(name, 0)) for name in sorted({*expected, *found})]
    return [Comparison(name, want, have, max(0, want - have), max(0, have - want)) for name, want, have in pairs]


def _differs(rows: pa.Table, values: Sequence[str]) -> pa.ChunkedArray | pa.Array:
    differs = pa.repeat(False, len(rows))
    for name in values:
        want, have = rows[name], rows[f"{name}_found"]
        unequal = pc.fill_null(pc.not_equal(want, have), pc.xor(want.is_null(), have.is_null()))
        differs = pc.or_(differs, unequal)
    return differs
