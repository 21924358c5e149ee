"""Start of a folder's listing, if file names sort by time (`source.sorted_by_time`).

When a batch was planned, every file before the marker had been read or set aside. So the next listing begins at the
marker, and its cost depends on the new files only. Names are compared as whole paths, by code points, as a storage
sorts its listings.

    "names"     a file is listed if its name is the marker's or comes after it
    "folders"   a file is listed if its folder is the marker's or comes after it, whatever its own name

At intervals of `source.full_listing_every`, a *full listing* covers all files. It finds files that arrived late under
an earlier name. It stops the run if a file has changed since it was read.

Each batch keeps the marker in the ledger, since the marker depends on the files that the batch has read. A full listing
that finds nothing leads to no batch, so its time is kept in `_listing.json`. Without that file the next listing is
full.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from windowlib.definition.instants import instant
from windowlib.definition.plurals import counted
from windowlib.definition.toml.durations import format_duration
from windowlib.source.transfers import complete_names

if TYPE_CHECKING:
    from windowlib.definition.toml.source import Source
    from windowlib.ledger.rows import Commit, Plan
    from windowlib.storage.store import Store

MARKER = "source_marker"  # key in the definition's part of a plan and of a commit
FILE = "_listing.json"


@dataclass(frozen=True, slots=True)
class Marker:
    """Start of a listing, and the last full listing.

    name:       the name of the file at which the listing starts
    by:         "names" or "folders", as in `source.sorted_by_time`
    full_at_ms: time of the last full listing
    late:       number of new files before the marker that the full listing found
    chosen:     the source's patterns when the marker was set; other patterns may choose unread files before the marker
    """

    name: str
    by: str
    full_at_ms: int
    late: int = 0
    chosen: str = ""

    @property
    def place(self) -> str:
        """Part of the marker's name that is compared with that part of a file's name."""
        return _place(self.name, self.by)

    @property
    def start(self) -> str:
        """Path after which a listing has all files that the marker reaches, and perhaps some others."""
        return self.place[:-1]

    def reaches(self, name: str) -> bool:
        """Tests if a listing from this marker includes a file.

        >>> by_name, by_folder = Marker("d2/b", "names", 0), Marker("d2/b", "folders", 0)
        >>> [by_name.reaches(name) for name in ("d1/z", "d2/a", "d2/b", "d2/b2", "d3/a", "e")]
        [False, False, True, True, True, True]
        >>> [by_folder.reaches(name) for name in ("d1/z", "d2/a", "d2/sub/a", "d3/a", "e")]
        [False, True, True, True, False]
        """
        return _place(name, self.by) >= self.place

    def to_json(self) -> dict[str, Any]:
        """Converts the marker to the values that a plan keeps."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FullListing:
    """Full listing at `at_ms`, with the number of `late` files: new files before the marker that was valid then."""

    at_ms: int
    late: int = 0


def marker_of(source: Source, store: Store, commit: Commit | Plan | None) -> Marker | None:
    """Marker in a commit or plan, with the last full listing; None if the next listing must be full.

    store: storage of the pipeline
    """
    by = source.sorted_by_time
    if by is None or commit is None or (kept := commit.stored.get(MARKER)) is None:
        return None
    marker = Marker(**kept)
    if marker.by != by or marker.chosen != patterns(source):
        return None
    listing = _stored_listing(store)
    if listing.get("batch_id") == commit.batch_id and listing["full_at_ms"] > marker.full_at_ms:
        return replace(marker, full_at_ms=listing["full_at_ms"], late=listing["late"])
    return marker


def due_from(left: Marker | None, full_every_ms: int, now_ms: int) -> Marker | None:
    """Returns the last batch's marker `left` for a listing at `now_ms`, or None if a full listing is due."""
    return left if left and 0 <= now_ms - left.full_at_ms < full_every_ms else None


def full_listing(left: Marker | None, fresh: Collection[str], now_ms: int) -> FullListing:
    """Full listing at `now_ms`, with the number of `fresh` files that lie before the marker `left`.

    The number is 0 without a marker.
    """
    return FullListing(now_ms, sum(not left.reaches(name) for name in fresh) if left else 0)


def without(definition: str) -> str:
    """Removes the marker from a batch's stored definition (JSON), since it does not apply to other tables."""
    return json.dumps({name: kept for name, kept in json.loads(definition).items() if name != MARKER}, sort_keys=True)


def patterns(source: Source) -> str:
    """Patterns `include` and `exclude` of a source as a JSON string; empty without patterns."""
    chosen = {"include": source.include, "exclude": source.exclude}
    return json.dumps(chosen) if any(chosen.values()) else ""


def after(
    source: Source, since: Marker | None, listed: Collection[str], unread: Collection[str], full: FullListing
) -> Marker | None:
    """Marker after a batch that has read all listed files except `unread`; None without `source.sorted_by_time`.

    since: the marker from which the files were listed; None for a full listing
    full:  the full listing, if `since` is None
    """
    by, names = source.sorted_by_time, [*listed, since.name] if since else listed
    if by is None or not names:
        return None
    name = min(unread, key=partial(_place, by=by)) if unread else max(names, key=partial(_place, by=by))
    name = [name, *complete_names(name)][-1]  # the complete name sorts first, and may still arrive
    last_full = (since.full_at_ms, since.late) if since else (full.at_ms, full.late)
    return Marker(name, by, *last_full, patterns(source))


def words(source: Source, marker: Marker) -> str:
    """Sentence about the start of the listing, and about the last and next full listing."""
    every_ms, place = source.full_listing_every_ms, marker.place.rstrip("/") or "the beginning"
    late = f" (which found {counted(marker.late, 'new file')} under earlier names)" if marker.late else ""
    return (
        f"the source is listed from {place} on, as its {marker.by} sort by time; the last full listing was at"
        f" {instant(marker.full_at_ms)}{late}, the next is due at {instant(marker.full_at_ms + every_ms)}"
        f" (source.full_listing_every = {format_duration(every_ms)})"
    )


def keep_full_listing(store: Store, commit: Commit, full: FullListing) -> None:
    """Stores a full listing that led to no batch. If it cannot be stored, the next listing is full again.

    store: storage of the pipeline
    """
    with suppress(OSError):
        text = json.dumps({"batch_id": commit.batch_id, "full_at_ms": full.at_ms, "late": full.late})
        store.put(FILE, text.encode())


def _stored_listing(store: Store) -> Mapping[str, int]:
    with suppress(OSError, ValueError):
        stored = json.loads(store.get(FILE) or b"{}")
        if isinstance(stored, dict) and {"batch_id", "full_at_ms", "late"} <= stored.keys():
            return stored
    return {}


def _place(name: str, by: str) -> str:
    """Part of a name by which it is compared: the name, or its folder with a slash at the end."""
    return name if by == "names" else name[: name.rfind("/") + 1]
