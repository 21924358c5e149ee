"""Hostile values of every type, as cases: the values of one key of one column in three batches."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from functools import cache
from typing import Any

import pyarrow as pa

BATCHES = 3
ROWS = 12  # of a key in a batch: what a case does not give is null
NAN, INF = math.nan, math.inf
OTHER_NAN = struct.unpack("<d", bytes.fromhex("000000000000f8ff"))[0]  # as a processor makes it of 0.0 / 0.0
GREATEST = 1.7976931348623157e308
GREATEST_FLOAT = 3.4028234663852886e38
INT64, INT32 = 2**63 - 1, 2**31 - 1
HUGE = "x" * 100_000

Batch = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Case:
    """Values of a key in each batch."""

    name: str
    batches: tuple[Batch, Batch, Batch]

    def values(self, batches: int = BATCHES) -> list[Any]:
        """All values up to a batch, with the nulls that fill it up."""
        return [value for batch in self.batches[:batches] for value in padded(batch)]


def padded(batch: Batch) -> list[Any]:
    """The values of a batch, filled up with nulls."""
    return [*batch, *[None] * (ROWS - len(batch))]


@dataclass(frozen=True, slots=True)
class Type:
    """A column: its name, its type in Arrow, its name in the page, its cases."""

    column: str
    arrow: pa.DataType
    shown: str
    cases: tuple[Case, ...]


def _cases(**cases: tuple[Batch, Batch, Batch]) -> tuple[Case, ...]:
    nothing = Case("nulls only", ((), (), ()))
    return (nothing, *(Case(name.replace("_", " "), batches) for name, batches in cases.items()))


def _floats(greatest: float, tiny: float, cast: Callable[[float], float]) -> tuple[Case, ...]:
    return _cases(
        NaN_first=([NAN], [5.0, 5.0], [5.0]),
        NaN_then_numbers=([5.0], [NAN], [7.0]),
        only_NaN=([NAN], [NAN, NAN], [NAN]),
        late_NaN=([1.0], [2.0], [NAN]),
        NaN_of_the_other_sign=([OTHER_NAN], [5.0], [-7.0]),
        two_NaNs=([OTHER_NAN], [NAN], []),
        infinity=([INF], [1.0], [2.0]),
        minus_infinity=([1.0], [-INF], [2.0]),
        late_infinity=([1.0], [2.0], [INF]),
        only_infinity=([INF], [INF], [INF]),
        only_minus_infinity=([-INF], [-INF], [-INF]),
        both_infinities=([INF], [-INF], [1.0]),
        all_three=([NAN, -INF], [INF], [0.0]),
        minus_zero=([-0.0], [-0.0], [-0.0]),
        zeros=([0.0], [-0.0], [-1.0]),
        greatest=([greatest], [], []),
        least=([], [-greatest], []),
        tiny=([tiny], [tiny], [-tiny]),
        plain=([cast(0.1), cast(0.2)], [cast(0.3), 1e10], [-5.5]),
        halves=([cast(1.005)], [cast(-2.675)], [cast(1.115)]),
        more_halves=([cast(-1.005)], [cast(-2.675)], [cast(0.285)]),
    )


def _float32(value: float) -> float:
    found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return found


def _integers(most: int) -> tuple[Case, ...]:
    return _cases(
        ends=([most], [-most - 1], [0]),
        greatest=([most], [], []),
        least=([], [-most - 1], []),
        to_the_end=([most - 1], [], [1]),
        plain=([1, 2], [3], [-7]),
        zeros=([0], [0], [0]),
    )


def _decimals(precision: int, scale: int) -> tuple[Case, ...]:
    unit = Decimal(1).scaleb(-scale)
    most = Decimal(10**precision - 1).scaleb(-scale, Context(prec=precision))
    return _cases(
        ends=([most], [most.copy_negate()], [unit]),
        greatest=([most], [], []),
        least=([], [most.copy_negate()], []),
        thirds=([1, 1], [], [0]),
        minus_thirds=([-1], [-1], [0]),
        half_a_digit=([unit, *[0] * 11], [0] * 12, [0] * 8),
        minus_half_a_digit=([-unit, *[0] * 11], [0] * 12, [0] * 8),
        plain=([5, 3 * unit], [unit], [-7]),
    )


def _utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


INSTANTS = {
    "before_1970": ([(1969, 12, 31, 23, 59, 59, 999_999)], [(1969, 12, 31, 23, 59, 59, 999_000)], [(1970, 1, 1)]),
    "below_a_millisecond": ([(1970, 1, 1, 0, 0, 0, 1)], [(1970, 1, 1, 0, 0, 0, 999)], [(1970, 1, 1, 0, 0, 0, 2)]),
    "far": ([(1, 1, 3)], [(9999, 12, 30, 23, 59, 59, 999_999)], [(1582, 10, 10)]),
    "end_of_the_calendar": ([(9999, 12, 31, 23, 59, 59, 999_999)], [(9999, 12, 31)], [(1970, 1, 1)]),
    "one": ([(1900, 2, 28, 0, 0, 0, 7)], [], []),
}


def _instants(make: Callable[..., Any]) -> tuple[Case, ...]:
    made = {name: tuple([make(*parts) for parts in batch] for batch in given) for name, given in INSTANTS.items()}
    return _cases(**made)  # type: ignore[arg-type]


FLOATS = _floats(GREATEST, 5e-324, float)
TYPES = (
    Type("flag", pa.bool_(), "boolean", _cases(both=([True], [False], [True]), one=([], [False], []))),
    Type("tiny", pa.int8(), "tinyint", _integers(127)),
    Type("small", pa.int16(), "smallint", _integers(2**15 - 1)),
    Type("num", pa.int32(), "int", _integers(INT32)),
    Type("big", pa.int64(), "bigint", _integers(INT64) + _cases(beyond_53_bits=([2**53 + 1], [2**53 + 3], [1]))[1:]),
    Type("fl", pa.float32(), "float", _floats(GREATEST_FLOAT, _float32(1e-45), _float32)),
    Type("dbl", pa.float64(), "double", FLOATS),
    Type("money", pa.decimal128(10, 2), "decimal(10,2)", _decimals(10, 2)),
    Type("units", pa.decimal128(18, 0), "decimal(18,0)", _decimals(18, 0)),
    Type("fine", pa.decimal128(24, 10), "decimal(24,10)", _decimals(24, 10)),
    Type("broad", pa.decimal128(28, 4), "decimal(28,4)", _decimals(28, 4)),
    Type("wide", pa.decimal128(38, 2), "decimal(38,2)", _decimals(38, 2)),
    Type(
        "text",
        pa.string(),
        "string",
        _cases(
            empty=([""], ["a"], [""]),
            only_empty=([""], [""], [""]),
            huge=([HUGE + "a"], [HUGE], [HUGE + "b"]),
            beyond_16_bits=(["\uff5e"], ["\U0001f600"], ["é", "e\u0301"]),
            control=(["\x00"], ["a\nb", " "], ["\t", "\x7f"]),
            case=(["b"], ["B"], ["a "]),
            words=(["NaN"], ["null"], ["-0.0", "10", "9"]),
        ),
    ),
    Type(
        "bin",
        pa.binary(),
        "binary",
        _cases(
            empty=([b""], [b"\x00"], [b""]),
            above_127=([b"\x7f"], [b"\x80"], [b"\xff"]),
            prefixes=([b"a"], [b"ab"], [b"a\x00"]),
            huge=([HUGE.encode()], [HUGE.encode() + b"y"], [b"y"]),
        ),
    ),
    Type(
        "day",
        pa.date32(),
        "date",
        _cases(
            before_1970=([date(1969, 12, 31)], [date(1970, 1, 1)], [date(1969, 12, 30)]),
            far=([date(1, 1, 3)], [date(9999, 12, 30)], [date(1582, 10, 10)]),
            end_of_the_calendar=([date(9999, 12, 31)], [date(9999, 12, 31)], [date(1970, 1, 1)]),
        ),
    ),
    Type("instant", pa.timestamp("us", tz="UTC"), "timestamp", _instants(_utc)),
    Type("wall", pa.timestamp("us"), "timestamp_ntz", _instants(datetime)),
    Type(
        "pair",
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        "struct",
        _cases(
            ends=([{"a": 1, "b": "x"}], [{"a": 1, "b": ""}], [{"a": -1, "b": "z"}]),
            nulls_inside=([{"a": None, "b": "x"}], [{"a": 1, "b": None}], [{"a": None, "b": None}]),
        ),
    ),
    Type(
        "reading",
        pa.struct([("x", pa.float64()), ("n", pa.int64())]),
        "struct of doubles",
        _cases(
            NaN=([{"x": NAN, "n": 1}], [{"x": 5.0, "n": 2}], [{"x": -7.5, "n": 3}]),
            infinities=([{"x": INF, "n": 1}], [{"x": -INF, "n": INT64}], [{"x": 0.5, "n": -INT64}]),
            nulls_inside=([{"x": None, "n": 1}], [{"x": 0.1, "n": None}], [{"x": None, "n": None}]),
        ),
    ),
    Type(
        "tags",
        pa.map_(pa.string(), pa.int64()),
        "map",
        _cases(
            plain=([{"a": 1, "b": -1}], [{}], [{"": INT64}]),
            nulls_inside=([{"a": None}], [{"é": 0, "a b": None}], [{"a": 7}]),
        ),
    ),
    Type(
        "list",
        pa.list_(pa.int32()),
        "array",
        _cases(plain=([[1, 2]], [[]], [[1]]), nulls_inside=([[None]], [[1, None]], [[0]])),
    ),
)
NESTED = ("struct", "struct of doubles", "map", "array")
BY_COLUMN = {one.column: one for one in TYPES}
CASES = max(len(one.cases) for one in TYPES)
WHOLE = ("tinyint", "smallint", "int", "bigint")


def is_number(one: Type) -> bool:
    """Tests if values can be added."""
    return one.shown in WHOLE or is_float(one) or is_decimal(one)


def has_order(one: Type) -> bool:
    """Tests if values have an order; maps have none."""
    return one.shown != "map"


def is_float(one: Type) -> bool:
    """Tests if the type is float or double."""
    return one.shown in ("float", "double")


def is_decimal(one: Type) -> bool:
    """Tests if the type is a decimal."""
    return one.shown.startswith("decimal")


BASE = datetime(1969, 12, 31, 23, 40, tzinfo=UTC)
LAST = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)  # below a millisecond, in the last window before 1970
BEGIN_MIN = (0, 10, 5)  # of a batch's events: the third comes between the others


@cache
def times() -> tuple[datetime, ...]:
    """The event times of a key's rows, in the order of arrival; some are equal."""
    found = [
        BASE + timedelta(minutes=begin, milliseconds=row // 2, microseconds=17)
        for begin in BEGIN_MIN
        for row in range(ROWS)
    ]
    found[2 * ROWS - 1] = LAST
    return tuple(found)
