"""What may change in a definition while its pipeline lives, and what then happens: the one table of it.

Keys are either part of what stored state means (`Definition.semantics`): then the tables are built again under the new
definition, by a migration. Or the next batch uses them, and keeps them (`windowlib.definition.terms`). A test holds
that each key of both is in one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class How(Enum):
    """How a change comes into force."""

    AT_ONCE = "at once"
    MIGRATE = "`windowlib migrate`"
    REFUSED = "another pipeline"


@dataclass(frozen=True, slots=True)
class Change:
    """Keys of a definition (`window.*`: all of a section), how a change of them comes into force, and what it means."""

    keys: tuple[str, ...]
    how: How
    then: str


CHANGES = (
    Change(
        ("aggregates (formulas over the same aggregates)",),
        How.AT_ONCE,
        "applies to later firings. Published rows stay until a late event or a rerun recomputes them. A formula of"
        " another type is refused: cast it, or choose another column name",
    ),
    Change(
        ("aggregates (added columns)",),
        How.AT_ONCE,
        "from the next batch that reads files: see [Another column](#another-column)",
    ),
    Change(
        ("watermark.out_of_orderness", "watermark.idle_timeout", "watermark.max_future_skew"),
        How.AT_ONCE,
        "the next batch uses it. The watermark never falls: a longer delay stops it until newer events come",
    ),
    Change(
        ("window.allowed_lateness",),
        How.AT_ONCE,
        "see [Another allowed lateness](#another-allowed-lateness)",
    ),
    Change(
        ("source.dedup_horizon",),
        How.AT_ONCE,
        "a longer horizon does not bring forgotten ids back",
    ),
    Change(
        ("source.max_files_per_run", "source.min_file_age", "source.include", "source.exclude", "source.removals"),
        How.AT_ONCE,
        "the next plan uses it. Files that were read stay read",
    ),
    Change(
        ("source.sorted_by_time", "source.full_listing_every"),
        How.AT_ONCE,
        "the next plan uses it. If `sorted_by_time` changed, it lists all files",
    ),
    Change(
        ("source.format", "source.schema", "source.nested", "source.dialect"),
        How.AT_ONCE,
        "the next batch uses it. Files that were read stay as they were until a rerun of all their events. A column may"
        " not change its type",
    ),
    Change(
        ("checks.*", "engine", "spark.*", "batch_timeout", "lease_timeout"),
        How.AT_ONCE,
        "the next batch uses it. A batch that is not prepared yet is planned again",
    ),
    Change(
        ("storage.max_kept_values", "retention.*"),
        How.AT_ONCE,
        "applies to later firings and maintenance. Deleted data does not come back",
    ),
    Change(
        ("airflow.*", "notify.*", "pages.*", "description", "owner", "tags"),
        How.AT_ONCE,
        "no table depends on it",
    ),
    Change(
        ("code of your own (the same class)",),
        How.AT_ONCE,
        "the next batch uses it. State written by the old code stays",
    ),
    Change(
        ("window.* (the others)", "aggregates (others in a column's place, or their arguments; removed columns)"),
        How.MIGRATE,
        "state was collected by the old windows, triggers and functions",
    ),
    Change(
        ("source.key", "source.timestamp", "source.timestamp_unit", "source.event_id", "source.rename"),
        How.MIGRATE,
        "the meaning of every event changes",
    ),
    Change(("storage.state_partition",), How.MIGRATE, "it partitions the state"),
    Change(
        ("source.path",),
        How.REFUSED,
        "other files need another `name`. For moved files, set `source.moved_from`",
    ),
    Change(("name", "warehouse"), How.REFUSED, "they name the tables: a new pipeline starts from scratch"),
)


def markdown() -> str:
    """The table of the guide."""
    rows = [
        f"| {', '.join(f'`{key}`' if ' ' not in key else key for key in one.keys)} | {one.how.value} | {one.then} |"
        for one in CHANGES
    ]
    return "\n".join(("| change | applies | effect |", "|---|---|---|", *rows))
