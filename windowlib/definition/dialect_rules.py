"""Rules across several keys of `[source.dialect]`, checked on the unparsed TOML values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from windowlib.definition.mistakes import Mistake, in_toml
from windowlib.definition.toml.locales import decimal_mark

WITH_DECIMALS = re.compile(r"\b(?:float|real|double|decimal|dec|numeric)\b")


def dialect(form: Any, section: Mapping[str, Any], kinds: Iterable[str], unit: Any) -> Iterator[Mistake]:
    """Yields the mistakes of a dialect, for a file format, column types (`kinds`) and the unit of the event time."""
    if form not in ("json", "csv"):
        yield from (
            Mistake(f"source.dialect.{key}", "has a meaning only for json and csv; leave it out")
            for key in section
            if key != "time_zone"
        )
        if "time_zone" in section and unit is not None:
            yield Mistake("source.dialect.time_zone", "numbers count from 1970 in UTC, without a zone; leave it out")
    if form == "json":
        for key in ("delimiter", "quote", "escape", "header", "skip_lines"):
            if key in section:
                yield Mistake(f"source.dialect.{key}", "has a meaning only for csv; leave it out")
    if section.get("encoding") == "UTF-16" and not section.get("multi_line", form == "csv"):
        yield Mistake("source.dialect.encoding", "UTF-16 can only be read with multi_line = true")
    if any(WITH_DECIMALS.search(kind.casefold()) for kind in kinds):
        yield from _numbers(form, section.get("locale"))


def _numbers(form: Any, locale: Any) -> Iterator[Mistake]:
    """Yields a mistake if the decimal mark of a locale is unknown, or is no point for JSON."""
    if not isinstance(locale, str):
        return
    mark, key = decimal_mark(locale), "source.dialect.locale"
    if form == "json" and mark != ".":
        yield Mistake(key, f"numbers of JSON are written with a point, in {in_toml(locale)} too; leave it out")
    elif mark is None:
        problem = f"how numbers are written in {in_toml(locale)} is not known"
        yield Mistake(key, f"{problem}; declare them as string, or as whole numbers")


def meaningless(source: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yields a mistake for each key of `[source]` that has no effect with the source's format."""
    kind = source.get("format")
    for key in ("include", "exclude") if kind == "delta" else ("missing_columns",) if kind in ("json", "csv") else ():
        if key in source:
            named = "a Delta table, whose log names its files" if kind == "delta" else kind
            yield Mistake(f"source.{key}", f"has no meaning for {named}; leave it out")
