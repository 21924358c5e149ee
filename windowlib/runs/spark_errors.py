"""Errors of Spark that the definition or the source caused, said as mistakes of the user.

Spark names its errors: `[DIVIDE_BY_ZERO] Division by zero. …`. Those named here come from what a user wrote: an
expression that does not fit the columns, a value that does not fit the expression, a file that cannot be read.
Whatever else Spark fails at is raised as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from windowlib.definition.definition import Definition
from windowlib.engines.connect import EngineLost, lost
from windowlib.model.errors import InvalidSpec, WindowError
from windowlib.source.listing import SourceError

OVERFLOWS = ("ARITHMETIC_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW")
VALUES = (
    "CAST_INVALID_INPUT",
    "CAST_OVERFLOW",
    "DIVIDE_BY_ZERO",
    "REMAINDER_BY_ZERO",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "INVALID_ARRAY_INDEX",
    "CANNOT_PARSE_TIMESTAMP",
    "DATETIME_OVERFLOW",
)
TYPES = (
    "AMBIGUOUS_REFERENCE",
    "COLUMN_ALREADY_EXISTS",
    "DATATYPE_MISMATCH",
    "EXPRESSION_TYPE_IS_NOT_ORDERABLE",
    "FIELD_NOT_FOUND",
    "GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE",
    "INVALID_AGGREGATE_FILTER",
    "INVALID_EXTRACT_BASE_FIELD_TYPE",
    "INVALID_EXTRACT_FIELD",
    "PARSE_SYNTAX_ERROR",
    "UNRESOLVED_COLUMN",
    "UNRESOLVED_ROUTINE",
    "WRONG_NUM_ARGS",
)
FILES = ("CANNOT_READ_FILE_FOOTER", "FAILED_READ_FILE", "PARQUET_TYPE_ILLEGAL")

_OURS = re.compile(r"^windowlib\.[\w.]+: (.+)$", re.MULTILINE)
_NAMED = re.compile(r"\[([A-Z_]+)(?:\.[A-Z_.]+)?\] (.*?)(?:\s*SQLSTATE|\n|$)")


class WorkerError(WindowError):
    """An element, a window or a user's code was refused while Spark ran the operator."""


@contextmanager
def explained(definition: Definition) -> Iterator[None]:
    """Raises `InvalidSpec` or `SourceError` where the user can correct what Spark fails at, or `EngineLost`."""
    try:
        yield
    except WindowError:
        raise
    except Exception as error:
        if lost(error):
            raise EngineLost(
                f"the Spark engine ({definition.spark.master}) ended, or dropped this run's session, in the middle of a"
                f" batch; nothing of it was committed: run `windowlib run {definition.file}` again"
            ) from error
        mistake = _mistake(definition, str(error)) if _is_sparks(error) else None
        if mistake is None:
            raise
        raise mistake from error


@contextmanager
def worker_errors_raised() -> Iterator[None]:
    """Raises `WorkerError` for an error of ours that ended a Python worker, in the words it had there."""
    try:
        yield
    except Exception as error:
        said = _OURS.findall(str(error)) if _is_sparks(error) else []
        if not said:
            raise
        raise WorkerError(said[-1]) from error


def _is_sparks(error: Exception) -> bool:
    return type(error).__module__.startswith(("pyspark.", "py4j."))


def _mistake(definition: Definition, text: str) -> WindowError | None:
    if ours := _OURS.findall(text):
        return WorkerError(f"{definition.file}: {ours[-1]}; {_then(definition)}")
    if (found := _NAMED.search(text)) is None:
        return None
    name, message = found[1], found[2]
    if name in OVERFLOWS:
        message = f"a number grows beyond its type ({message})"
        return InvalidSpec(_aggregates(definition, message, "Use a wider type, as in sum(cast(x as decimal(38, 0)))"))
    if name in VALUES:
        return InvalidSpec(
            _aggregates(definition, message, "Use try_cast, try_divide and the like, or repair the source")
        )
    if name in TYPES:
        return InvalidSpec(_aggregates(definition, message, "Make it fit the columns of the source"))
    if name in FILES:
        return SourceError(
            f"a file cannot be read: {message} Nothing of this batch was committed. Repair the file, or set it aside:"
            f' `windowlib set-aside {definition.file} FILE --reason "…"`; the next run plans the batch again'
        )
    return None


def _aggregates(definition: Definition, message: str, advice: str) -> str:
    expressions = ", ".join(f"{name} = {sql!r}" for name, sql in definition.expressions.items())
    return (
        f"{definition.file} does not fit its source: {message} [aggregates] has {expressions}. {advice};"
        f" {_then(definition)}"
    )


def _then(definition: Definition) -> str:
    return (
        f"nothing of this batch was committed: `windowlib abandon {definition.file}` drops it, then the next run"
        " makes a new plan."
    )
