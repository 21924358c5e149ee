"""Errors of Spark that the definition or the source caused, explained as mistakes of the user.

Spark names its errors: `[DIVIDE_BY_ZERO] Division by zero. …`. The errors named here have a cause that a user can
correct: an expression that does not fit the columns, a value that does not fit the expression, or a file that cannot be
read. Other errors of Spark are raised unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from windowlib.definition.commands import WHY, to_paste
from windowlib.engines.connect import EngineLost, is_engine_lost
from windowlib.engines.parquet_files import UnreadableRows
from windowlib.model.errors import InvalidSpec, WindowError
from windowlib.plans.aggregates.bounds import TOO_MANY
from windowlib.source.listed import SourceError

OVERFLOWS = ("ARITHMETIC_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")
VALUES = (
    "CAST_INVALID_INPUT",
    "CAST_OVERFLOW",
    "DIVIDE_BY_ZERO",
    "REMAINDER_BY_ZERO",
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
NOT_UTF8 = "INVALID_UTF8_STRING"
LOST = "ended, dropped the session, or gave an answer that cannot be read"
AGAIN = "nothing was changed: repeat the command"

_TOO_MANY = re.compile(rf"{re.escape(TOO_MANY)}: (.+?)(?:\s*SQLSTATE|\n|$)")
_OURS = re.compile(r"^windowlib\.[\w.]+: (.+)$", re.MULTILINE)
_UNREADABLE = re.compile(rf"\b{UnreadableRows.__name__}: (.+)$", re.MULTILINE)  # also raised in Python workers
_NAMED = re.compile(r"\[([A-Z0-9_]+)(?:\.[A-Z_.]+)?\] (.*?)(?:\s*SQLSTATE|\n|$)")
# Sail does not name these errors.
_SAILS_TWINS = re.compile(r"Schema contains duplicate unqualified field name \\?\"?([^\"\\\n]+)")
_SAILS_OVERFLOW = re.compile(
    r"value of \S+ is out of range \w+|\S+ is too (?:large|small) to store in a Decimal128.*|\w+ overflow on .*"
)
_SAILS_DIVISION = re.compile(r"[Dd]ivi(?:sion|de) by zero")


class WorkerError(WindowError):
    """An element, a window or the user's code was refused while Spark ran the operator."""


@contextmanager
def explained(file: Path, expressions: Mapping[str, str], engine: str, *, of_a_batch: bool = True) -> Iterator[None]:
    """Raises `InvalidSpec`, `SourceError` or `WorkerError` if the user can correct the cause of Spark's error.

    Raises `EngineLost` if the engine was lost. `of_a_batch` is True if the block computes a batch, which then waits for
    the correction, and False if the block only reads. `file`, `expressions` and `engine` are the definition's file,
    aggregates and engine.
    """
    try:
        yield
    except UnreadableRows as error:
        raise _unreadable(file, f"{error}.", of_a_batch) from error
    except WindowError:
        raise
    except Exception as error:
        if is_engine_lost(error):
            again = f"nothing of the batch was committed: run `{to_paste('run', file)}` again" if of_a_batch else AGAIN
            raise EngineLost(f"{engine} {LOST}, in the middle of the work; {again}") from error
        then = _then(file) if of_a_batch else "nothing was changed."
        text = str(error) if _is_sparks(error) else ""
        mistake = _of_a_file(file, text, of_a_batch) or _mistake(file, expressions, text, then)
        if mistake is None:
            raise
        raise mistake from error


@contextmanager
def worker_errors_raised() -> Iterator[None]:
    """Raises `WorkerError` for an error of windowlib that ended a Python worker, with the message of that error."""
    try:
        yield
    except Exception as error:
        messages = _OURS.findall(str(error)) if _is_sparks(error) else []
        if not messages:
            raise
        raise WorkerError(messages[-1]) from error


def _is_sparks(error: Exception) -> bool:
    return type(error).__module__.startswith(("pyspark.", "py4j."))


def _mistake(file: Path, expressions: Mapping[str, str], text: str, then: str) -> WindowError | None:
    name, message = _named(text)
    if name in TYPES:  # before the searches below: Spark's message has the whole plan with our messages
        return InvalidSpec(_aggregates(file, expressions, message, "Make it fit the columns of the source", then))
    if match := _TOO_MANY.search(text):
        return InvalidSpec(
            f"{file}: {match[1]}. Increase storage.max_kept_values, or use an aggregate that keeps none, such as"
            f" approx_count_distinct; {then}"
        )
    if messages := _OURS.findall(text):
        return WorkerError(f"{file}: {messages[-1]}; {then}")
    if duplicate := _SAILS_TWINS.search(text):
        message = f"Sail gives two of these aggregates the same name, {duplicate[1]}."
        return InvalidSpec(
            _aggregates(file, expressions, message, 'Write one of them differently, or set engine = "spark"', then)
        )
    if name in OVERFLOWS:
        message = f"a number grows beyond its type ({message.strip()})."
        return InvalidSpec(
            _aggregates(file, expressions, message, "Use a wider type, as in sum(cast(x as decimal(38, 0)))", then)
        )
    if name in VALUES:
        return InvalidSpec(
            _aggregates(file, expressions, message, "Use try_cast, try_divide and the like, or repair the source", then)
        )
    return None


def _of_a_file(file: Path, text: str, of_a_batch: bool) -> SourceError | None:
    if unreadable := _UNREADABLE.search(text):
        return _unreadable(file, f"{unreadable[1]}.", of_a_batch)
    name, message = _named(text)
    if name == NOT_UTF8:
        return _unreadable(file, f"a file of the source has a string that is not UTF-8: {message.strip()}", of_a_batch)
    return _unreadable(file, f"a file cannot be read: {message}", of_a_batch) if name in FILES else None


def _unreadable(file: Path, problem: str, of_a_batch: bool) -> SourceError:
    """Error about a source file, with its repair. An operator may set aside a new file, but not a file of an earlier
    batch, because windows already hold its events.
    """
    if not of_a_batch:
        return SourceError(f"{problem} Nothing was changed. Restore the file as it was when a batch read it")
    return SourceError(
        f"{problem} Nothing of this batch was committed. Repair the file, or set it aside:"
        f" `{to_paste('set-aside', file, 'FILE', *WHY)}`; the next run plans the batch again"
    )


def _named(text: str) -> tuple[str, str]:
    """Name and message of an error of Spark. An error of Sail gets Spark's name for the same error. Both are empty if
    unknown.
    """
    if match := _NAMED.search(text):
        return match[1], match[2]
    if match := _SAILS_OVERFLOW.search(text):
        return OVERFLOWS[0], match[0]
    return ("DIVIDE_BY_ZERO", "division by zero.") if _SAILS_DIVISION.search(text) else ("", "")


def _aggregates(file: Path, expressions: Mapping[str, str], message: str, advice: str, then: str) -> str:
    listed = ", ".join(f"{name} = {sql!r}" for name, sql in expressions.items())
    return f"{file} does not fit its source: {message} [aggregates] has {listed}. {advice}; {then}"


def _then(file: Path) -> str:
    return (
        f"nothing of this batch was committed: `{to_paste('abandon', file, *WHY)}` drops it, then the"
        " next run makes a new plan."
    )
