"""Rules of a definition that concern several keys at once.

The rules read the unparsed TOML and ignore values of the wrong type. So they apply even if other keys are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from windowlib.contract.intake_tables import LATE_EVENTS
from windowlib.contract.result_tables import RESULT_CHANGES, RESULTS
from windowlib.contract.state_tables import OPEN_WINDOWS, PARTIAL_NAMES, STATE_WINDOWS
from windowlib.definition.check_rules import tested_columns
from windowlib.definition.dialect_rules import dialect, meaningless
from windowlib.definition.explosion import too_many
from windowlib.definition.mistakes import Mistake, called_as_another, in_toml, listed, nearest, nesting, renaming
from windowlib.definition.page_rules import headline_outputs, hidden_columns
from windowlib.definition.registry import EVICTORS, TRIGGERS
from windowlib.definition.sql.aggregates import columns_used
from windowlib.definition.sql.expression_types import misfits, type_of
from windowlib.definition.toml import spark_types
from windowlib.definition.toml.masters import mistaken_spark
from windowlib.plans.names import BESIDE_KEYS, BESIDE_RESULTS, EVENT_TIME, RESERVED, is_reserved, same_but_for_case

# Names of columns that windowlib fills. Keys and outputs must not use these names. Spark ignores case: lower case.
RESERVED_OUTPUTS = frozenset({*RESULTS.names, *RESULT_CHANGES.names, *PARTIAL_NAMES, *BESIDE_RESULTS})
RESERVED_KEYS = RESERVED_OUTPUTS.union(LATE_EVENTS.names, OPEN_WINDOWS.names, STATE_WINDOWS.names, BESIDE_KEYS)


def across_keys(raw: dict[str, Any]) -> Iterator[Mistake]:
    """Yields the mistakes that concern several keys."""
    source, window, aggregates = (_table(raw, name) for name in ("source", "window", "aggregates"))
    in_files = {name: kind for name, kind in _table(source, "schema").items() if isinstance(kind, str)}
    rename = {name: to for name, to in _table(source, "rename").items() if isinstance(to, str)}
    nested = {name: path for name, path in _table(source, "nested").items() if isinstance(path, str)}
    schema = {rename.get(name, name): kind for name, kind in in_files.items()}
    schema |= {name: spark_types.field_type(in_files, path) or "" for name, path in nested.items()}
    whole = source.get("format") in ("json", "csv")  # for other formats the schema may name only some columns
    yield from _keys(source)
    yield from _columns(in_files, rename, whole=whole)
    yield from _results(source, window, aggregates)
    yield from _duplicates(source)
    yield from _gap(window)
    yield from too_many(window, _table(raw, "checks"))
    yield from mistaken_spark(_table(raw, "spark"))
    yield from _function(window, aggregates, raw)
    yield from _reads(window)
    columns = {*schema, *aggregates, *_table(window, "output")}
    columns |= {name for _, name in _named(source, window, aggregates)}
    yield from hidden_columns(_texts(_table(raw, "pages").get("hide")), columns, rename, whole=whole and bool(schema))
    yield from headline_outputs(_texts(_table(raw, "pages").get("headline")), _table(window, "output") or aggregates)
    outputs = _types_of_outputs(window, aggregates, schema)
    types = {name: kind for name in _texts(source.get("key")) if (kind := _type_of(name, schema))}
    yield from tested_columns(
        _table(_table(raw, "checks"), "columns"), _texts(source.get("key")), outputs, {**types, **outputs}
    )
    yield from dialect(source.get("format"), _table(source, "dialect"), in_files.values(), source.get("timestamp_unit"))
    yield from _schema(source, in_files)
    yield from _nested(source, in_files, nested)
    if schema:
        if whole:
            yield from _columns_in_schema(source, window, aggregates, schema)
        yield from _types_fit(source, window, schema)
        yield from _types_of_expressions_fit(aggregates, schema, whole=whole)


def _keys(source: dict[str, Any]) -> Iterator[Mistake]:
    keys = [key.casefold() for key in _texts(source.get("key"))]
    for key in _texts(source.get("key")):
        if keys.count(key.casefold()) > 1:
            yield Mistake("source.key", f"names {in_toml(key.casefold())} twice")
        if key.casefold() in RESERVED_KEYS or key.startswith("_") or _is_partial(key.casefold()):
            yield Mistake("source.key", f"{in_toml(key)} is a column that windowlib adds itself; {renaming(key)}")


def _columns(in_files: dict[str, str], rename: dict[str, str], *, whole: bool) -> Iterator[Mistake]:
    """Checks the names of columns in the schema and in `rename`. If `whole`, the schema has all columns."""
    for name in {**in_files, **rename}:
        if whole and in_files and name not in in_files:
            yield Mistake(f"source.rename.{name}", f"there is no such column in source.schema{nearest(name, in_files)}")
    for section, names in (("schema", in_files), ("rename", rename.values())):
        for name in names:
            if is_reserved(name):
                problem = f"{in_toml(name)} begins with {RESERVED}, a prefix that windowlib reserves"
                yield Mistake(f"source.{section}", f"{problem}; choose another name")
    if occupied := [name for name, to in rename.items() if to != name and to in in_files and to not in rename]:
        yield Mistake(f"source.rename.{occupied[0]}", called_as_another(occupied[0], rename[occupied[0]]))
        return
    columns = [rename.get(name, name) for name in in_files] if in_files else [*rename.values()]
    if same := same_but_for_case(columns):
        problem = f"the columns {listed(same)} differ only in case, and Spark ignores case"
        yield Mistake("source.schema" if in_files else "source.rename", f"{problem}; {renaming(same[-1])}")


def _results(source: dict[str, Any], window: dict[str, Any], aggregates: dict[str, Any]) -> Iterator[Mistake]:
    """Checks the names of result columns: the output columns of the function, else the keys of [aggregates]."""
    keys = [key.casefold() for key in _texts(source.get("key"))]
    section, names = ("window.output", _table(window, "output")) if "function" in window else ("aggregates", aggregates)
    by_lower_case: dict[str, str] = {}
    for name in names:
        output, key = name.casefold(), f"{section}.{name}"
        if output in RESERVED_OUTPUTS or _is_partial(output):
            yield Mistake(key, f"{in_toml(name)} is a column that windowlib adds itself; choose another name")
        if output in keys:
            yield Mistake(key, f"{in_toml(name)} is a key column already; choose another name")
        if output in by_lower_case:
            yield Mistake(key, f"differs from {in_toml(by_lower_case[output])} only in case, and Spark ignores case")
        by_lower_case.setdefault(output, name)


def _duplicates(source: dict[str, Any]) -> Iterator[Mistake]:
    if "dedup_horizon" in source and "event_id" not in source:
        yield Mistake("source.dedup_horizon", 'has no meaning without event_id = "column"; add it, or leave this out')


def _gap(window: dict[str, Any]) -> Iterator[Mistake]:
    if window.get("type") == "session" and ("gap" in window) == ("gap_column" in window):
        got = "both" if "gap" in window else "neither"
        allowed = 'gap = "30m", or gap_column = "column"'
        yield Mistake("window.gap", f"given {got}; need either gap or gap_column; allowed: {allowed}")


def _function(window: dict[str, Any], aggregates: dict[str, Any], raw: dict[str, Any]) -> Iterator[Mistake]:
    """Checks that the user's own code declares its output columns and replaces [aggregates]."""
    output = _table(window, "output")
    if "function" in window and not output and isinstance(window.get("output", {}), dict):
        yield Mistake("window.output", 'missing, and needed with function; allowed: column = "spark type"')
    if "function" not in window:
        for key in ("output", "parameters"):
            if key in window:
                of_assigner = key == "parameters" and window.get("type") == "custom"
                instead = "the assigner's are assigner_parameters" if of_assigner else "leave it out"
                yield Mistake(f"window.{key}", f'has no meaning without function = "module:Class"; {instead}')
        if not aggregates and isinstance(raw.get("aggregates", {}), dict):
            yield Mistake("aggregates", 'missing; allowed: [aggregates] with output_column = "expression"')
    yield from _types("window.output", output)


def _reads(window: dict[str, Any]) -> Iterator[Mistake]:
    names = _texts(window.get("reads"))
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            yield Mistake("window.reads", f"names {in_toml(name.casefold())} twice")
    for key, name in [*(("window.reads", name) for name in names), *_compared(window)]:
        if is_reserved(name):
            yield Mistake(key, f"{in_toml(name)} is a name that windowlib uses itself; {renaming(name)}")


def _schema(source: dict[str, Any], schema: dict[str, str]) -> Iterator[Mistake]:
    if source.get("format") in ("json", "csv") and "schema" not in source:
        yield Mistake("source.schema", f'missing, and needed for {source["format"]}; allowed: column = "spark type"')
    yield from meaningless(source)
    yield from _types("source.schema", schema)


def _types(section: str, columns: dict[str, Any]) -> Iterator[Mistake]:
    for name, kind in columns.items():
        if isinstance(kind, str) and not spark_types.is_type(kind):
            meant = spark_types.OTHER_NAMES.get(kind.strip().casefold().partition("(")[0])
            proposal = f"; did you mean {meant}?" if meant else nearest(kind, spark_types.WORDS)
            allowed = f"{proposal}; allowed: {spark_types.ALLOWED}"
            yield Mistake(f"{section}.{name}", f"unknown type, given {in_toml(kind)}{allowed}")


def _nested(source: dict[str, Any], in_files: dict[str, str], nested: dict[str, str]) -> Iterator[Mistake]:
    """Checks `[source.nested]`: columns that are read from inside JSON objects."""
    if nested and source.get("format") != "json":
        yield Mistake("source.nested", "has a meaning only for json; leave it out")
        return
    used = {name.casefold() for name in in_files}
    for name, path in nested.items():
        if name.casefold() in used:
            yield Mistake(f"source.nested.{name}", "is a column of source.schema; give it another name")
        elif is_reserved(name):
            yield Mistake(
                f"source.nested.{name}",
                f"begins with {RESERVED}, a prefix that windowlib reserves; choose another name",
            )
        elif "." not in path or spark_types.field_type(in_files, path) is None:
            problem = f'given {in_toml(path)}; need a path into a struct of source.schema, such as "actor.login"'
            yield Mistake(f"source.nested.{name}", problem)
        used.add(name.casefold())


def _columns_in_schema(
    source: dict[str, Any], window: dict[str, Any], aggregates: dict[str, Any], schema: dict[str, str]
) -> Iterator[Mistake]:
    is_json = source.get("format") == "json"
    for key, name in _named(source, window, aggregates):
        if name not in (*schema, EVENT_TIME):
            instead = f"; {nesting(name)}" if is_json and spark_types.is_field(source, name) else nearest(name, schema)
            yield Mistake(key, f"column {in_toml(name)} is not in source.schema{instead}; columns: {', '.join(schema)}")


def _named(source: dict[str, Any], window: dict[str, Any], aggregates: dict[str, Any]) -> list[tuple[str, str]]:
    """Source columns that the definition names, each with the key that names it."""
    used = [("source.key", name) for name in _texts(source.get("key"))]
    used += [("source.timestamp", name) for name in _texts([source.get("timestamp")])]
    used += [("source.event_id", name) for name in _texts([source.get("event_id")])]
    used += [("window.gap_column", name) for name in _texts([window.get("gap_column")])]
    used += [("window.reads", name) for name in _texts(window.get("reads"))]
    used += _compared(window)
    for output, expression in aggregates.items():
        used += [(f"aggregates.{output}", name) for name in columns_of(columns_used, expression)]
    return used


def _types_fit(source: dict[str, Any], window: dict[str, Any], schema: dict[str, str]) -> Iterator[Mistake]:
    timestamp, unit = _type_of(source.get("timestamp"), schema), source.get("timestamp_unit")
    if timestamp and unit is None and not timestamp.startswith((*spark_types.NUMBERS, "timestamp", "date")):
        yield Mistake(
            "source.timestamp",
            f"column is {timestamp}; need timestamp (for strings with source.dialect.timestamp_format), or a number or"
            " a string that holds one, with timestamp_unit",
        )
    if timestamp.startswith(spark_types.NUMBERS) and unit is None:
        yield Mistake(
            "source.timestamp_unit", f'missing, and needed as the timestamp is {timestamp}; allowed: "s", "ms", "us"'
        )
    if timestamp and not timestamp.startswith((*spark_types.NUMBERS, "string")) and unit is not None:
        yield Mistake(
            "source.timestamp_unit",
            f"given {in_toml(unit)}, but the timestamp is {timestamp}, not a number; leave it out",
        )
    event_id = _type_of(source.get("event_id"), schema)
    if event_id and not event_id.startswith(spark_types.AS_TEXT):
        yield Mistake("source.event_id", f"column is {event_id}; {spark_types.NEED_AS_TEXT}")
    gap = _type_of(window.get("gap_column"), schema)
    if gap and not gap.startswith(spark_types.WHOLE_NUMBERS):
        yield Mistake("window.gap_column", f"column is {gap}; need an integer in ms, such as bigint")
    for key, column in _compared(window):
        kind = _type_of(column, schema)
        if kind and (needed := spark_types.unlike_difference(kind, key)):
            yield Mistake(key, f"column is {kind}; {needed}")


def _types_of_expressions_fit(aggregates: dict[str, Any], schema: dict[str, str], *, whole: bool) -> Iterator[Mistake]:
    types = {name.casefold(): _type_of(name, schema) for name in schema}
    for output, expression in aggregates.items():
        for problem in misfits(expression, types, declared=whole) if isinstance(expression, str) else ():
            yield Mistake(f"aggregates.{output}", problem)


def _types_of_outputs(window: dict[str, Any], aggregates: dict[str, Any], schema: dict[str, str]) -> dict[str, str]:
    """Spark's type of each output in lower case; empty if the type is not certain."""
    if declared := _table(window, "output"):
        return {name: str(kind).strip().casefold() for name, kind in declared.items()}
    types = {name.casefold(): _type_of(name, schema) for name in schema}
    return {name: (type_of(sql, types) if isinstance(sql, str) else None) or "" for name, sql in aggregates.items()}


def _compared(window: dict[str, Any]) -> list[tuple[str, str]]:
    """Columns whose values a trigger or an evictor subtracts, each with the key that names it."""
    compared: list[tuple[str, str]] = []
    for name, registry in (("trigger", TRIGGERS), ("evictor", EVICTORS)):
        section, key = window.get(name), f"window.{name}"
        while isinstance(section, dict):
            kind = registry.get(str(section.get("type")))
            for column in kind.columns if kind else ():
                compared += [(f"{key}.{column}", value) for value in _texts([section.get(column)])]
            section, key = section.get("of"), f"{key}.of"
    return compared


def _table(raw: dict[str, Any], key: str) -> dict[str, Any]:
    table = raw.get(key)
    return table if isinstance(table, dict) else {}


def _texts(values: Any) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _is_partial(name: str) -> bool:
    index, _, part = name.removeprefix("p").partition("_")
    return name.startswith("p") and index.isdecimal() and bool(part)


def _type_of(column: Any, schema: dict[str, str]) -> str:
    types = {name.casefold(): kind.strip().casefold() for name, kind in schema.items()}
    return types.get(column.casefold(), "") if isinstance(column, str) else ""


C = TypeVar("C")


def columns_of(find: Callable[[str], Sequence[C]], expression: Any) -> Sequence[C]:
    """Result of `find` for an expression; empty if the expression cannot be parsed, which is reported elsewhere."""
    try:
        return find(expression) if isinstance(expression, str) else []
    except ValueError:
        return []
