"""A file of the source as it is found, before any batch has read it."""

from __future__ import annotations

from dataclasses import dataclass

from windowlib.model.errors import WindowError
from windowlib.source.contents import FileState


class SourceError(WindowError):
    """The source cannot be read as the definition says."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file of the source, not yet numbered. `order` sorts by arrival: time or version, then name."""

    path: str
    size_bytes: int
    modified_ns: int
    order: tuple[int, str]

    @property
    def state(self) -> FileState:
        """What tells it from a changed one at first sight."""
        return FileState(self.path, self.size_bytes, self.modified_ns)
