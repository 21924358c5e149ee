"""Outcome of each batch's checks, stored as JSON: `checks/<batch_id>.json` in the pipeline's folder.

The report reads these files, because a refused batch commits no rows to a table. `dq_results` and `run_metrics` contain
all committed batches. These files contain only the newest `KEPT_BATCHES` batches.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from windowlib.model.errors import WindowError, reason_of
from windowlib.quality.figures import Figures
from windowlib.storage.at_once import at_once, both
from windowlib.storage.store import ObjectInfo, Store

FOLDER = "checks"
KEPT_BATCHES = 200
PAGES_KEEP = 64  # cached outcomes: the next page that a process builds needs all but one of these outcomes


class UnreadableOutcome(WindowError):
    """The stored outcome of a batch's checks cannot be read."""


@dataclass(frozen=True, slots=True, eq=False)
class Validated:
    """Checked batch: its figures, and the outcome of each suite in Great Expectations' format.

    Pages built in the same process share an object as long as its file is unchanged.
    """

    batch_id: int
    figures: Figures
    suites: list[dict[str, Any]]

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Outcomes of the failed expectations."""
        return [result for suite in self.suites for result in suite["results"] if not result["success"]]


def keep(store: Store, figures: Figures, suites: list[dict[str, Any]]) -> None:
    """Stores the outcome of a batch, in place of an earlier attempt's outcome. Deletes all but the newest outcomes."""
    path, outcome = _path(figures["batch_id"]), json.dumps({"figures": figures, "suites": suites}).encode()
    _, earlier = both(lambda: store.put(path, outcome), lambda: _listed(store))
    store.delete([old.path for old in earlier if old.path != path][KEPT_BATCHES - 1 :])


def stored_outcomes(store: Store, at_most: int = KEPT_BATCHES) -> list[Validated]:
    """At most `at_most` checked batches, newest first."""
    read = at_once(partial(_read_once, store), _listed(store)[:at_most])
    return [outcome for outcome in read if outcome]


def stored_outcome(store: Store, batch_id: int) -> Validated | None:
    """Outcome of a batch; None if the batch was not checked or its outcome is no longer stored."""
    return _read(store, _path(batch_id))


def _path(batch_id: int | None) -> str:
    return f"{FOLDER}/{batch_id}.json"


def _batch_id(path: str) -> str:
    return path.removeprefix(f"{FOLDER}/").removesuffix(".json")


def _listed(store: Store) -> list[ObjectInfo]:
    """Stored outcomes of batches, newest first. Other objects are ignored."""
    listed = (file for file in store.list(f"{FOLDER}/") if file.path.endswith(".json"))
    batches = (file for file in listed if _batch_id(file.path).isdecimal())
    return sorted(batches, key=lambda file: int(_batch_id(file.path)), reverse=True)


@lru_cache(maxsize=PAGES_KEEP)
def _read_once(store: Store, file: ObjectInfo) -> Validated | None:
    return _read(store, file.path)


def _read(store: Store, path: str) -> Validated | None:
    """Reads an outcome; None if it is not stored."""
    if (stored := store.get(path)) is None:
        return None
    batch_id = _batch_id(path)
    try:
        contents = json.loads(stored)
        return Validated(int(batch_id), contents["figures"], contents["suites"])
    except (ValueError, LookupError, TypeError) as error:
        raise UnreadableOutcome(
            f"{store}/{path}, the outcome of the checks of batch {batch_id}, cannot be read ({reason_of(error)})."
            " Restore it or delete it: nothing else depends on it"
        ) from error
