"""A pipeline's definition: one TOML file that says what is read, the watermark, the windows and the aggregates.

`load_definition` reads and checks it as a whole and reports every mistake at once. Paths are relative to the file;
durations are texts such as "1h 30m" and become integers of milliseconds. The keys are in
`windowlib.definition.toml.file`; rules that concern several keys in `rules` and `refusals`, next to it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import ConfigDict, ValidationError

from windowlib.definition.mistakes import InvalidDefinition, Mistake, invalid, mistakes_of
from windowlib.definition.refusals import never_verified, refusals
from windowlib.definition.rules import across_keys
from windowlib.definition.spec import parts_of, plan_of, spec_of
from windowlib.definition.sql.aggregates import columns_used, read_aggregates
from windowlib.definition.toml.durations import unquoted
from windowlib.definition.toml.fields import resolved
from windowlib.definition.toml.file import DefinitionFile
from windowlib.definition.toml.windows import own_classes
from windowlib.definition.user_classes import Role, StandIn, load
from windowlib.definition.uses import Uses
from windowlib.model.errors import InvalidSpec
from windowlib.model.spec import WindowSpec
from windowlib.model.windows import MIN_TIME_MS
from windowlib.plans.aggregates.aggregate_set import AggregateSet
from windowlib.plans.kinds.kind import PlanKind
from windowlib.plans.partitions import DAY_MS

__all__ = ["Definition", "InvalidDefinition", "load_definition"]

WAREHOUSE_VARIABLE = "WINDOWLIB_WAREHOUSE"
LARGEST_BYTES = 1 << 18  # of a file: Airflow reads all definitions again and again, and one may not hold the others up


class Definition(DefinitionFile):
    """A definition that was read and checked, with the places it speaks of."""

    model_config = ConfigDict(populate_by_name=True)

    file: Path
    root: Path  # <warehouse>/<name>: the folder of all its tables
    partials: tuple[str, ...] = ()  # aggregates in the order of their numbers in the state; (): as they are written
    added: tuple[str, ...] = ()  # columns of `results` that were added on live tables

    @cached_property
    def aggregates(self) -> AggregateSet:
        return replace(read_aggregates(self.expressions, self.partials), most_values=self.storage.max_kept_values)

    @property
    def outputs(self) -> list[str]:
        """The columns of `results` that hold values: those of [window.output], else one of each aggregate."""
        return [*self.window.output] if self.window.function else [*self.expressions]

    @cached_property
    def hidden(self) -> frozenset[str]:
        """The columns whose values no page shows: those of `[pages] hide`, and the outputs that read one of them.

        Of a function of the author's own each output counts as reading every column in use.
        """
        hide = {name.casefold() for name in self.pages.hide}
        if not hide:
            return frozenset()
        used = {name: columns_used(sql) for name, sql in self.expressions.items()}
        if self.window.function:
            used = dict.fromkeys(self.outputs, self.uses.columns)
        reading = (name for name, columns in used.items() if any(one.casefold() in hide for one in columns))
        named = (name for name in (*self.uses.columns, *self.outputs) if name.casefold() in hide)
        return frozenset([*self.pages.hide, *named, *reading])

    def with_fields(self, **others: Any) -> Self:
        """The same with other fields, such as `partials`; what was computed from them is computed again."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_construct(**{**fields, **others})

    @cached_property
    def plan(self) -> PlanKind:
        """What runs it: native where the answer is exactly the operator's, else the operator."""
        return plan_of(self.window)

    @cached_property
    def spec(self) -> WindowSpec:
        """The windows as the core knows them; raises InvalidDefinition where the user's code cannot be used."""
        parts = parts_of(self.window, self._made)
        if mistakes := list(refusals(self.window, self.expressions, parts)):
            raise invalid(self.file, mistakes)
        return spec_of(self.window, self.expressions, parts)

    @property
    def dedup_horizon_ms(self) -> int | None:
        """How far behind the watermark event ids are remembered; None: for ever.

        Unless the author says it: for as long as an event is not late by itself, so that one which comes again is found
        out, and for at least a day.
        """
        return self.source.dedup_horizon_ms if self.source.dedup_horizon_ms is not None else self.safe_horizon_ms

    @property
    def safe_horizon_ms(self) -> int | None:
        """The least horizon by which no event that comes again is counted twice; None: none is, without an end.

        An event has no end to its own window, or one that only itself knows, where windows are global, count events, go
        by processing time or the author's code, or by a gap of each event's own.
        """
        span_ms: int | None = getattr(self.window, "size_ms", None) or getattr(self.window, "gap_ms", None)
        if span_ms is None or self.window.time == "processing":
            return None
        return max(DAY_MS, span_ms + self.window.allowed_lateness_ms + self.watermark.out_of_orderness_ms)

    def forgets_ids_up_to(self, watermark_ms: int, first_start_ms: int) -> int:
        """The ids of events up to this time are forgotten at a watermark; the first window in flight starts then.

        An event that is late by itself is counted where it touches a session in flight, however long that has lasted:
        unless the author says a horizon, it is behind the start of the first session, too.
        """
        if self.dedup_horizon_ms is None:
            return MIN_TIME_MS
        lasts = getattr(self.window, "gap_ms", None) is not None and self.source.dedup_horizon_ms is None
        return max(MIN_TIME_MS, min(watermark_ms, first_start_ms if lasts else watermark_ms) - self.dedup_horizon_ms)

    @property
    def computed_by(self) -> str:
        """The engine, and where it is, in words."""
        return "Sail" if self.engine == "sail" else f"the Spark engine ({self.spark.master})"

    @property
    def furthest_ahead_ms(self) -> int:
        """How far ahead of the clock a rerun may have to reach: as far as events are admitted, and a day more where
        the footers of Parquet have their times as clocks of a zone show them.
        """
        return self.watermark.max_future_skew_ms + (DAY_MS if self.source.dialect.time_zone else 0)

    @property
    def own_classes(self) -> tuple[str, ...]:
        """The user's own classes, as "module:Class", once each."""
        return tuple(dict.fromkeys(reference for _, reference in own_classes(self.window)))

    @property
    def reads(self) -> tuple[str, ...]:
        """The source columns that triggers, evictors, gaps and the user's code look into, once each."""
        window = self.window
        names = [*window.reads, *window.columns]
        for section in (window.own_trigger, window.own_evictor):
            names += section.columns if section else ()
        return tuple(dict.fromkeys(names))

    @property
    def never_rerun(self) -> str | None:
        """Why no range of its windows can be recomputed; None where one can."""
        return self.plan.rerun if isinstance(self.plan.rerun, str) else None

    @property
    def uses(self) -> Uses:
        """What it needs of the rows of its source."""
        named_by: dict[str, str] = {}
        computed: dict[str, str] = {}
        for column, key in self._named_columns():
            named_by.setdefault(column, key)
            if key not in ("source.key", "source.event_id"):
                computed.setdefault(column, key)
        gap_column = getattr(self.window, "gap_column", None)
        subtracted = tuple(self._subtracted_columns())
        runs_operator = self.plan.runs_operator
        return Uses(tuple(named_by), self.expressions, gap_column, runs_operator, named_by, subtracted, computed)

    def _named_columns(self) -> Iterator[tuple[str, str]]:
        """The columns of the source that it names, each with the key that does."""
        source, window = self.source, self.window
        yield from ((name, "source.key") for name in source.key)
        yield source.timestamp, "source.timestamp"
        if source.event_id:
            yield source.event_id, "source.event_id"
        yield from ((name, "window.reads") for name in window.reads)
        yield from self._subtracted_columns()
        gap_column = getattr(window, "gap_column", None)
        yield from ((name, "window.gap_column" if name == gap_column else "window") for name in self.reads)
        outputs = {
            name: f"aggregates.{output}" for output, sql in self.expressions.items() for name in columns_used(sql)
        }
        yield from ((name, outputs.get(name, "aggregates")) for name in sorted(self.aggregates.columns_used))

    def _subtracted_columns(self) -> Iterator[tuple[str, str]]:
        """The columns that a trigger or an evictor compares, each with the key of that."""
        for key, section in (("window.trigger", self.window.own_trigger), ("window.evictor", self.window.own_evictor)):
            yield from ((name, key) for name in (section.columns if section else ()))

    def semantics(self) -> dict[str, Any]:
        """What the stored state depends on, ready for JSON: a warehouse with another one cannot be continued."""
        source, window = self.source, self._window_semantics()
        return {
            "key": list(source.key),
            "timestamp": source.timestamp,
            "timestamp_unit": source.timestamp_unit,
            "event_id": source.event_id,
            "window": window,
            "aggregates": dict(zip((c.name for c in self.aggregates.columns), self._canonical_sql(), strict=True)),
            "state_partition_ms": self.storage.state_partition_ms,
            **({"rename": source.rename} if source.rename else {}),
        }

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that change with `semantics`."""
        return fingerprint_of(self.semantics())

    def _window_semantics(self) -> dict[str, Any]:
        """The window without what it leaves at its default, except for what was always stored."""
        dumped = self.window.model_dump(mode="json", exclude_none=True)
        written = self.window.model_dump(exclude_defaults=True)
        always = ("type", "size_ms", "slide_ms", "offset_ms", "gap_ms", "gap_column", "allowed_lateness_ms")
        return {name: value for name, value in dumped.items() if name in always or name in written}

    def _made(self, role: Role, reference: str, parameters: Mapping[str, Any]) -> Any:
        """An object of the user's own."""
        try:
            return load(role, reference, parameters, self.file.parent)
        except InvalidSpec as error:
            key = next(key for key, named in own_classes(self.window) if named == reference)
            raise invalid(self.file, [Mistake(key, str(error))]) from error

    def _canonical_sql(self) -> list[str]:
        aggregates = [str(aggregate) for aggregate in self.aggregates.aggregates]
        return [column.sql_over(aggregates) for column in self.aggregates.columns]


def fingerprint_of(meaning: Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits that change with what stored state depends on."""
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_definition(path: Path | str) -> Definition:
    """The definition in a TOML file; raises `InvalidDefinition` with every mistake in it, one line each."""
    try:
        return definition_of(_read(Path(path)), Path(path))
    except RecursionError as error:
        raise InvalidDefinition(f"{path}: tables or lists are nested too deeply to be read") from error


def definition_of(raw: dict[str, Any], file: Path) -> Definition:
    """The definition in the contents of a TOML file; raises as `load_definition` does."""
    folder = file.absolute().parent
    mistakes: list[Mistake] = []
    try:
        context = {"folder": folder, "file": file.absolute(), "name": raw.get("name"), "source": raw.get("source")}
        contents = DefinitionFile.model_validate(raw, context=context)
        mistakes += refusals(contents.window, contents.expressions, parts_of(contents.window, StandIn))
        mistakes += never_verified(contents.window, contents.checks.verify_sample)
    except ValidationError as error:
        mistakes = mistakes_of(error, DefinitionFile)
    mistakes += across_keys(raw)
    if mistakes:
        raise invalid(file, mistakes)
    warehouse = os.environ.get(WAREHOUSE_VARIABLE)
    root = (Path(warehouse).absolute() if warehouse else resolved(folder, contents.warehouse)) / contents.name
    if place := next((one for one in (root, *root.parents) if os.path.isfile(one)), None):
        said_by = f"the variable {WAREHOUSE_VARIABLE}" if warehouse else f"{file}: warehouse"
        raise InvalidDefinition(f"{said_by}: {place} is a file, and tables need a folder")
    return Definition.model_construct(**dict(contents), file=file.absolute(), root=root)


def _read(file: Path) -> dict[str, Any]:
    try:
        found = file.stat()
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise InvalidDefinition(f"{file}: is a pipe or a device; give the path of a pipeline's TOML file")
        if (size := found.st_size) > LARGEST_BYTES:
            raise InvalidDefinition(f"{file}: has {size:,} bytes; a definition has at most {LARGEST_BYTES:,}")
        text = file.read_text(encoding="utf-8-sig")
        return tomllib.loads(text)
    except InvalidDefinition:
        raise
    except FileNotFoundError as error:
        raise InvalidDefinition(f"{file}: no such file; give the path of a pipeline's TOML file") from error
    except IsADirectoryError as error:
        raise InvalidDefinition(f"{file}: is a folder; give the path of a pipeline's TOML file") from error
    except OSError as error:
        raise InvalidDefinition(f"{file}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InvalidDefinition(f"{file}: cannot be read as UTF-8 text ({error})") from error
    except ValueError as error:  # of a number with thousands of digits, too
        place = re.search(r"\(at line (\d+)", str(error))
        hint = unquoted(text, int(place[1])) if place else ""
        raise InvalidDefinition(f"{file}: is not TOML: {error}{hint}") from error
