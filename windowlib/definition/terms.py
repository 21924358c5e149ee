"""Terms of a batch: settings and versions that decide its outcome, besides its plan and the definition's fingerprint.

A plan stores its terms. A run that finds an unfinished plan computes this plan again only if the terms are unchanged.
Otherwise the run plans the batch again, so that no batch mixes two definitions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.definition.plurals import first_five
from windowlib.definition.toml.durations import format_duration
from windowlib.definition.user_classes import code_files
from windowlib.model.geometry import geometry_of
from windowlib.model.time_zones.zones import packed_zone, zone

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition
    from windowlib.definition.toml.source import Source
    from windowlib.model.calendar import Calendar

PACKAGES = {"spark": "pyspark", "sail": "pysail"}
"""Package of each engine; of Spark on a server, the package of its client."""

ENGINE_VERSION = "engine.version"
COLUMNS = "source.schema"
TIME_ZONE = "window.time_zone"
ZONE_FILE = "window.time_zone file"
"""Key of the zone's file (`windowlib.model.time_zones.zones.packed_zone`). Only its transitions count as terms."""


def terms_of(definition: Definition) -> str:
    """Terms of a batch that is planned now, as a JSON object: key of the definition → value.

    Files (the author's own code, suites) count with a digest of their contents. Loads the author's own code, and raises
    the errors of `Definition.spec`.
    """
    assert definition.spec, "the user's own code is loaded, or refused"
    source, watermark, checks = definition.source, definition.watermark, definition.checks
    suites = [path for path in (checks.figures_suite, checks.results_suite) if path]
    terms = {
        "windowlib": _version("windowlib"),
        "engine": definition.engine,
        "spark.conf": definition.spark.conf,
        "source.format": source.format,
        "source.path": str(source.path),
        "source.schema": source.columns,
        "source.max_files_per_run": source.max_files_per_run,
        "source.dedup_horizon": _optional(definition.dedup_horizon_ms),
        "watermark.out_of_orderness": format_duration(watermark.out_of_orderness_ms),
        "watermark.idle_timeout": _optional(watermark.idle_timeout_ms),
        "watermark.max_future_skew": format_duration(watermark.max_future_skew_ms),
        "checks.max_late_share": checks.max_late_share,
        "checks.max_unusable_share": checks.max_unusable_share,
        "checks.max_duplicate_share": checks.max_duplicate_share,
        "suites": _digest([*suites, *(sorted(checks.suites.glob("*.json")) if checks.suites else ())]),
        "own code": _digest(code_files(definition.own_classes, definition.file.parent)),
    }
    for key in ("include", "exclude"):
        if patterns := getattr(source, key):
            terms[f"source.{key}"] = patterns
    terms |= _reading(source)
    if (calendar := geometry_of(definition.spec.assigner).calendar) is not None:
        terms |= {TIME_ZONE: transitions_of(calendar), ZONE_FILE: packed_zone(calendar.time_zone)}
    if version := _version(PACKAGES[definition.engine]):
        terms[ENGINE_VERSION] = version
    return json.dumps(terms, sort_keys=True)


def transitions_of(calendar: Calendar) -> str:
    """Zone of a calendar with a digest of its transitions, which another version of `tzdata` may change."""
    periods = zone(calendar.time_zone)
    return f"{periods.name}, transitions {periods.digest}"


def read_as(source: Source) -> str:
    """Settings that decide the rows that are read from a source file, and their event times, as JSON."""
    settings: dict[str, Any] = _reading(source)
    if source.is_text:
        settings |= {"source.format": source.format, COLUMNS: source.columns}
    if source.format == "csv" and source.dialect.header == "none":  # then the order identifies the columns
        settings[COLUMNS] = [f"{name} {kind}" for name, kind in source.columns.items()]
    return json.dumps(settings, sort_keys=True)


@dataclass(frozen=True, slots=True)
class ReadingDifference:
    """Difference between the settings with which a file was read and the current settings.

    `columns_alone` is true if only the declared columns differ.
    """

    words: str
    columns_alone: bool


def read_otherwise(source: Source, then: str | None) -> ReadingDifference | None:
    """Difference between `then`, the `read_as` of a file, and the source's current `read_as`.

    None if both are equal, or if `then` is unknown (None).
    """
    if then is None:
        return None
    before, now = ({"source.dialect": {}, **json.loads(settings)} for settings in (then, read_as(source)))
    words = first_five([*differences(before, now)], "; ")
    columns = [settings.pop(COLUMNS, None) for settings in (before, now)]
    alone = before == now and all(isinstance(named, dict) for named in columns)
    return ReadingDifference(words, alone) if words else None


def is_read_alike(terms: str, other: str) -> bool:
    """Tests if two terms, or two results of `read_as`, have the same `source.nested` and `source.dialect`."""
    settings, other_settings = json.loads(terms), json.loads(other)
    return all(settings.get(key) == other_settings.get(key) for key in ("source.nested", "source.dialect"))


def _reading(source: Source) -> dict[str, Any]:
    nested: dict[str, Any] = {"source.nested": source.nested} if source.nested else {}
    dialect = source.dialect.model_dump(exclude_defaults=True)
    return nested | ({"source.dialect": dialect} if dialect else {})


def changed(then: str, now: str) -> str | None:
    """First five differences between the terms of a plan and the current terms, as text; None if they are equal.

    The engine's version counts only if both terms have it, because a process that only plans may lack the engine.
    """
    before, after = ({**json.loads(terms), ZONE_FILE: None} for terms in (then, now))
    if ENGINE_VERSION not in before or ENGINE_VERSION not in after:
        before, after = ({**terms, ENGINE_VERSION: None} for terms in (before, after))
    return first_five([*differences(before, after)], "; ") or None


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yields the differences between two sets of terms, or two definitions, as text.

    >>> list(differences({"engine": "spark", "source.path": "/in"}, {"engine": "sail", "source.path": "/in"}))
    ['engine was "spark", is "sail"']
    >>> list(differences({"window": {"type": "session", "gap_ms": 60_000}}, {"window": {"type": "session"}}))
    ['window.gap was "1m", is not given']
    """
    for key in sorted(then.keys() | now.keys()):
        match then.get(key), now.get(key):
            case dict() as before, dict() as after:
                yield from (f"{key}.{difference}" for difference in differences(before, after))
            case before, after if before != after:
                yield f"{key.removesuffix('_ms')} was {_shown(key, before)}, is {_shown(key, after)}"


def _shown(key: str, value: Any) -> str:
    if value is None:
        return "not given"
    return json.dumps(format_duration(value) if key.endswith("_ms") and isinstance(value, int) else value)


def _optional(duration_ms: int | None) -> str | None:
    return None if duration_ms is None else format_duration(duration_ms)


def _digest(files: Iterable[Path]) -> str | None:
    """Twelve hexadecimal digits that change with the files' names and contents; None if there are no files."""
    digest = hashlib.sha256()
    if not (chosen := list(files)):
        return None
    for file in chosen:
        digest.update(f"{file.name}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]


@lru_cache
def _version(package: str) -> str | None:
    """Version of a package; None if the package is not installed. windowlib may run from its sources, uninstalled."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
