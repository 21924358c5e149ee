"""From where on a source folder is looked at, when its author says that names sort by time (`source.sorted_by_time`).

Every file whose name comes before the marker was read, or set aside, when a batch was planned; so the next look begins
at the marker, and costs what is new. Names are compared part by part, each folder and then the file, by code points.

    "names"     a file is looked at if its name is the marker's or comes after it
    "folders"   a file is looked at if its folder is the marker's or comes after it, whatever its own name

What a look leaves out is found by a *full listing* at the latest, every `source.full_listing_every`: a file that came
late under an earlier name is read then, one that has changed since it was read stops the run then. The marker is kept
with each batch in the ledger, since it is true of what that batch has read. A full listing that found nothing leaves no
batch, so its time is kept in `_listing.json`: without that file the next look is a full one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.definition.instants import instant
from windowlib.definition.toml.durations import format_duration
from windowlib.source.transfers import complete_names

if TYPE_CHECKING:
    from windowlib.definition.toml.source import Source
    from windowlib.ledger.rows import Commit, Plan

MARKER = "source_marker"  # in what a plan and a commit keep of the definition
FILE = "_listing.json"


@dataclass(frozen=True, slots=True)
class Marker:
    """`name` is that of a file, `by` what was said to sort; `full_at_ms` is when everything was listed last.

    `late` counts the new files that this listing found before the marker of then. `chosen` are the patterns of the
    source then: others may choose files before the marker that no run has read.
    """

    name: str
    by: str
    full_at_ms: int
    late: int = 0
    chosen: str = ""

    @property
    def parts(self) -> list[str]:
        """The parts of a path that nothing which is looked at comes before."""
        return _place(self.name, self.by)

    def reaches(self, name: str) -> bool:
        """Whether a file is looked at.

        >>> by_name, by_folder = Marker("d2/b", "names", 0), Marker("d2/b", "folders", 0)
        >>> [by_name.reaches(name) for name in ("d1/z", "d2/a", "d2/b", "d2/b2", "d3/a", "e")]
        [False, False, True, True, True, True]
        >>> [by_folder.reaches(name) for name in ("d1/z", "d2/a", "d2/sub/a", "d3/a", "e")]
        [False, True, True, True, False]
        """
        return _place(name, self.by) >= self.parts

    def to_json(self) -> dict[str, Any]:
        """Returns the marker as a plan keeps it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FullListing:
    """A look at everything, at `at_ms`; it found `late` new files before the marker of then."""

    at_ms: int
    late: int = 0


def marker_of(source: Source, root: Path, commit: Commit | Plan | None) -> Marker | None:
    """The marker that a batch left, or a planned one leaves; None where everything must be listed."""
    by = source.sorted_by_time
    if by is None or commit is None or (kept := commit.stored.get(MARKER)) is None:
        return None
    marker = Marker(**kept)
    if marker.by != by or marker.chosen != patterns(source):
        return None
    seen = _kept(root)
    if seen.get("batch_id") == commit.batch_id and seen["full_at_ms"] > marker.full_at_ms:
        return replace(marker, full_at_ms=seen["full_at_ms"], late=seen["late"])
    return marker


def due_from(left: Marker | None, full_every_ms: int, now_ms: int) -> Marker | None:
    """Where a look at `now_ms` begins after a batch that left a marker; None: at the beginning, by a full listing."""
    return left if left and 0 <= now_ms - left.full_at_ms < full_every_ms else None


def full_listing(left: Marker | None, fresh: Collection[str], now_ms: int) -> FullListing:
    """A look at everything that found these new files, after a batch that left a marker."""
    return FullListing(now_ms, sum(not left.reaches(name) for name in fresh) if left else 0)


def without(definition: str) -> str:
    """What a batch keeps of the definition, as JSON, without its marker: it is not true of another batch's tables."""
    return json.dumps({name: kept for name, kept in json.loads(definition).items() if name != MARKER}, sort_keys=True)


def patterns(source: Source) -> str:
    """The patterns of a source in one text; empty without any."""
    said = {"include": source.include, "exclude": source.exclude}
    return json.dumps(said) if any(said.values()) else ""


def after(
    source: Source, since: Marker | None, listed: Collection[str], unread: Collection[str], full: FullListing
) -> Marker | None:
    """The marker once a batch has read all that was listed but the `unread`; None where no author has asked for it.

    `since` is where the look began; None for a full listing, which is then `full`.
    """
    by, names = source.sorted_by_time, [*listed, since.name] if since else listed
    if by is None or not names:
        return None
    name = min(unread, key=partial(_place, by=by)) if unread else max(names, key=partial(_place, by=by))
    name = [name, *complete_names(name)][-1]  # sorts before the unfinished one, and may still come
    seen = (since.full_at_ms, since.late) if since else (full.at_ms, full.late)
    return Marker(name, by, *seen, patterns(source))


def words(source: Source, marker: Marker) -> str:
    """From where on the source is listed, and when all of it is, in a sentence."""
    every_ms, place = source.full_listing_every_ms, "/".join(marker.parts) or "the beginning"
    late = f" and found {marker.late:,} new before where it was listed from then" if marker.late else ""
    return (
        f"the source is listed from {place} on, as its {marker.by} sort by time; everything was listed"
        f" {instant(marker.full_at_ms)}{late}, and is again from {instant(marker.full_at_ms + every_ms)} on"
        f" (source.full_listing_every = {format_duration(every_ms)})"
    )


def keep_full_listing(root: Path, commit: Commit, full: FullListing) -> None:
    """Remembers a full listing that left no batch. A shortcut: where it cannot be kept, the next look is a full one."""
    with suppress(OSError):
        text = json.dumps({"batch_id": commit.batch_id, "full_at_ms": full.at_ms, "late": full.late})
        (root / FILE).write_text(text, encoding="utf-8")


def _kept(root: Path) -> Mapping[str, int]:
    with suppress(OSError, ValueError):
        found = json.loads((root / FILE).read_text(encoding="utf-8"))
        if isinstance(found, dict) and {"batch_id", "full_at_ms", "late"} <= found.keys():
            return found
    return {}


def _place(name: str, by: str) -> list[str]:
    """What a name is compared by."""
    parts = name.split("/")
    return parts[:-1] if by == "folders" else parts
