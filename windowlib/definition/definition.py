"""Definition of a pipeline: a TOML file with its source, watermark, windows and aggregates.

`load_definition` reads and checks the whole file and reports every mistake at once. Paths are relative to the file.
Durations are strings such as "1h 30m" in the file and integers of milliseconds in the object.
`windowlib.definition.toml.file` defines the keys; `rules` and `refusals` contain rules across several keys.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import ConfigDict, SkipValidation, ValidationError

from windowlib.definition.mistakes import InvalidDefinition, Mistake, invalid, mistakes_of
from windowlib.definition.refusals import never_verified, refusals
from windowlib.definition.rules import across_keys
from windowlib.definition.spec import known_geometry, parts_of, plan_of, spec_of
from windowlib.definition.sql.aggregates import columns_used, read_aggregates
from windowlib.definition.toml.durations import unquoted
from windowlib.definition.toml.file import DefinitionFile
from windowlib.definition.toml.windows import own_classes
from windowlib.definition.user_classes import Role, StandIn, load
from windowlib.definition.uses import Uses
from windowlib.definition.warehouse import tables_of
from windowlib.model.errors import InvalidSpec
from windowlib.model.spec import WindowSpec
from windowlib.model.windows import MIN_TIME_MS
from windowlib.plans.aggregates.aggregate_set import AggregateSet
from windowlib.plans.kinds.kind import PlanKind
from windowlib.plans.partitions import DAY_MS
from windowlib.storage.store import Store

__all__ = ["Definition", "InvalidDefinition", "load_definition"]

LARGEST_BYTES = 1 << 18  # of a file: Airflow often reads all definitions, and a single file must not delay the others


class Definition(DefinitionFile):
    """A checked definition, with its file and the folder of its tables."""

    model_config = ConfigDict(populate_by_name=True, arbitrary_types_allowed=True)

    file: Path
    store: SkipValidation[Store]  # at <warehouse>/<name>, below which all its tables are
    partials: tuple[str, ...] = ()  # aggregates in the order of their numbers in the state; (): as in the file
    added: tuple[str, ...] = ()  # columns of `results` that were added to existing tables

    @cached_property
    def aggregates(self) -> AggregateSet:
        return replace(read_aggregates(self.expressions, self.partials), most_values=self.storage.max_kept_values)

    @property
    def outputs(self) -> list[str]:
        """Value columns of `results`: the columns of [window.output] for a function, else a column per aggregate."""
        return [*self.window.output] if self.window.function else [*self.expressions]

    @cached_property
    def hidden(self) -> frozenset[str]:
        """Columns whose values no page shows: the columns in `[pages] hide`, and outputs computed from hidden columns.

        Each output of a user's function counts as computed from every column in use.
        """
        hide = {name.casefold() for name in self.pages.hide}
        if not hide:
            return frozenset()
        used = {name: columns_used(sql) for name, sql in self.expressions.items()}
        if self.window.function:
            used = dict.fromkeys(self.outputs, self.uses.columns)
        reading = (name for name, columns in used.items() if any(column.casefold() in hide for column in columns))
        named = (name for name in (*self.uses.columns, *self.outputs) if name.casefold() in hide)
        return frozenset([*self.pages.hide, *named, *reading])

    def with_fields(self, **others: Any) -> Self:
        """Returns a copy with changed fields, such as `partials`. The copy computes cached properties again."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_construct(**{**fields, **others})

    @cached_property
    def plan(self) -> PlanKind:
        """Plan of the windows: native if a native plan gives exactly the operator's results, else the operator."""
        return plan_of(self.window)

    @cached_property
    def spec(self) -> WindowSpec:
        """Windows as a `WindowSpec`. Raises InvalidDefinition if the user's code cannot be used."""
        parts = parts_of(self.window, self._made)
        if mistakes := list(refusals(self.window, self.expressions, parts)):
            raise invalid(self.file, mistakes)
        return spec_of(self.window, self.expressions, parts)

    @property
    def dedup_horizon_ms(self) -> int | None:
        """Time behind the watermark for which event ids are remembered, in ms; None means for ever.

        By default the pipeline keeps an id for at least a day, and until the event's own window is late. So no repeated
        event is counted twice.
        """
        return self.source.dedup_horizon_ms if self.source.dedup_horizon_ms is not None else self.safe_horizon_ms

    @property
    def safe_horizon_ms(self) -> int | None:
        """Shortest horizon in ms with which no repeated event is counted twice. None if no finite horizon is safe.

        No finite horizon is safe if an event time does not determine the end of the event's own window: for global and
        count windows, processing time, the author's code, and a gap per event.
        """
        longest_ms = known_geometry(self.window).longest_ms
        if longest_ms is None or self.window.time == "processing":
            return None
        return max(DAY_MS, longest_ms + self.window.allowed_lateness_ms + self.watermark.out_of_orderness_ms)

    def forgets_ids_up_to(self, watermark_ms: int, first_start_ms: int) -> int:
        """Event time up to which event ids are forgotten when the watermark is `watermark_ms`.

        `first_start_ms` is the start of the first window in flight. An event whose own window is late still counts
        if it touches a session in flight. So the default horizon of sessions starts at the earlier of `watermark_ms`
        and `first_start_ms`.
        """
        if self.dedup_horizon_ms is None:
            return MIN_TIME_MS
        lasts = known_geometry(self.window).merges and self.source.dedup_horizon_ms is None
        return max(MIN_TIME_MS, min(watermark_ms, first_start_ms if lasts else watermark_ms) - self.dedup_horizon_ms)

    @property
    def time_zone(self) -> str | None:
        """Time zone of the windows; None if they are not of a calendar."""
        calendar = known_geometry(self.window).calendar
        return None if calendar is None else calendar.time_zone

    @property
    def furthest_ahead_ms(self) -> int:
        """Greatest distance in ms by which an event may be ahead of the clock, as a rerun must assume.

        It is `max_future_skew`, plus a day if Parquet footers may contain local times of a zone.
        """
        return self.watermark.max_future_skew_ms + (DAY_MS if self.source.dialect.time_zone else 0)

    @property
    def own_classes(self) -> tuple[str, ...]:
        """User's classes as "module:Class", without repetition."""
        return tuple(dict.fromkeys(reference for _, reference in own_classes(self.window)))

    @property
    def reads(self) -> tuple[str, ...]:
        """Source columns that triggers, evictors, gaps and the user's code read, without repetition."""
        window = self.window
        names = [*window.reads, *window.columns]
        for section in (window.own_trigger, window.own_evictor):
            names += section.columns if section else ()
        return tuple(dict.fromkeys(names))

    @property
    def never_rerun(self) -> str | None:
        """Reason that forbids reruns of these windows; None if reruns are possible."""
        return self.plan.rerun if isinstance(self.plan.rerun, str) else None

    @property
    def uses(self) -> Uses:
        """Source columns that the definition needs."""
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
        """Yields the source columns that the definition names, each with a key that names the column."""
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
        """Yields the columns whose values a trigger or an evictor subtracts, each with the key of the section."""
        for key, section in (("window.trigger", self.window.own_trigger), ("window.evictor", self.window.own_evictor)):
            yield from ((name, key) for name in (section.columns if section else ()))

    def semantics(self) -> dict[str, Any]:
        """Settings on which the stored state depends, as JSON values.

        `windowlib.definition.formulas.continues` decides if a changed definition can continue the state.
        """
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
        """Fields of the window that differ from their default, and fields that are always stored."""
        dumped = self.window.model_dump(mode="json", exclude_none=True)
        written = self.window.model_dump(exclude_defaults=True)
        always = ("type", "size_ms", "slide_ms", "offset_ms", "gap_ms", "gap_column", "allowed_lateness_ms")
        return {name: value for name, value in dumped.items() if name in always or name in written}

    def _made(self, role: Role, reference: str, parameters: Mapping[str, Any]) -> Any:
        """Creates an object of a user's class. Raises InvalidDefinition with the key that names the class."""
        try:
            return load(role, reference, parameters, self.file.parent)
        except InvalidSpec as error:
            key = next(key for key, named in own_classes(self.window) if named == reference)
            raise invalid(self.file, [Mistake(key, str(error))]) from error

    def _canonical_sql(self) -> list[str]:
        aggregates = [str(aggregate) for aggregate in self.aggregates.aggregates]
        return [column.sql_over(aggregates) for column in self.aggregates.columns]


def fingerprint_of(meaning: Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits that change with `meaning` (`Definition.semantics`)."""
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_definition(path: Path | str) -> Definition:
    """The definition in a TOML file; raises `InvalidDefinition` with every mistake in it, one line each."""
    try:
        return definition_of(_read(Path(path)), Path(path))
    except RecursionError as error:
        raise InvalidDefinition(f"{path}: tables or lists are nested too deeply to be read") from error


def definition_of(raw: dict[str, Any], file: Path) -> Definition:
    """Builds a definition from the contents of a TOML file; raises `InvalidDefinition` with every mistake."""
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
    store = tables_of(contents.name, contents.warehouse, file)
    return Definition.model_construct(**dict(contents), file=file.absolute(), store=store)


def _read(file: Path) -> dict[str, Any]:
    try:
        status = file.stat()
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise InvalidDefinition(f"{file}: is a pipe or a device; give the path of a pipeline's TOML file")
        if (size := status.st_size) > LARGEST_BYTES:
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
    except ValueError as error:  # also for a number with thousands of digits
        place = re.search(r"\(at line (\d+)", str(error))
        hint = unquoted(text, int(place[1])) if place else ""
        raise InvalidDefinition(f"{file}: is not TOML: {error}{hint}") from error
