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
        "from the next firing on; what is published stays until a late event or a rerun recomputes it. A formula of"
        " another type is refused: cast it, or give it a column of another name",
    ),
    Change(
        ("aggregates (added columns)",),
        How.AT_ONCE,
        "with the next batch that reads files: windows whose events all came since then have them, others null, and"
        " each row says which in `filled_columns`",
    ),
    Change(
        ("watermark.out_of_orderness", "watermark.idle_timeout", "watermark.max_future_skew"),
        How.AT_ONCE,
        "the next batch uses it; the watermark itself never falls, so a longer delay holds it where it is until"
        " newer events come",
    ),
    Change(
        ("window.allowed_lateness",),
        How.AT_ONCE,
        "a longer one keeps windows in flight longer, and what was cleaned up stays late; by a shorter one, windows"
        " that are past it are cleaned up before the next batch's first event",
    ),
    Change(
        ("source.dedup_horizon",),
        How.AT_ONCE,
        "a shorter one forgets ids; a longer one remembers from now on: ids that were forgotten stay so",
    ),
    Change(
        ("source.max_files_per_run", "source.min_file_age", "source.include", "source.exclude", "source.removals"),
        How.AT_ONCE,
        "the next plan uses it; files that were read stay read",
    ),
    Change(
        ("source.sorted_by_time", "source.full_listing_every"),
        How.AT_ONCE,
        "what else sorts by time now: the next run lists all files; how often that is done: from now on",
    ),
    Change(
        ("source.format", "source.schema", "source.nested", "source.dialect"),
        How.AT_ONCE,
        "files are read so from the next batch on; those that were read stay as they were until a rerun of all their"
        " events; a column may not change its type",
    ),
    Change(
        ("checks.*", "engine", "spark.*", "batch_timeout", "lease_timeout"),
        How.AT_ONCE,
        "the next batch uses it; a batch that was planned and not prepared is planned again",
    ),
    Change(
        ("storage.max_kept_values", "retention.*"),
        How.AT_ONCE,
        "windows that fire, and maintenance, use it; what was deleted does not come back",
    ),
    Change(
        ("airflow.*", "notify.*", "pages.*", "description", "owner", "tags"),
        How.AT_ONCE,
        "no table depends on it",
    ),
    Change(
        ("code of your own (the same class)",),
        How.AT_ONCE,
        "the next batch computes by it; what the old code has put into state stays",
    ),
    Change(
        ("window.* (the others)", "aggregates (others in a column's place, or their arguments; removed columns)"),
        How.MIGRATE,
        "gap, size, slide, offset, kind, trigger, evictor, function: state was collected by the old ones",
    ),
    Change(
        ("source.key", "source.timestamp", "source.timestamp_unit", "source.event_id", "source.rename"),
        How.MIGRATE,
        "every event lies elsewhere",
    ),
    Change(("storage.state_partition",), How.MIGRATE, "the state is laid out by it"),
    Change(
        ("source.path",),
        How.REFUSED,
        "other files: give another name; the same files in another place are said by `source.moved_from`",
    ),
    Change(("name", "warehouse"), How.REFUSED, "they name the tables: with other names it starts from scratch"),
)


def markdown() -> str:
    """The table of the guide."""
    rows = [
        f"| {', '.join(f'`{key}`' if ' ' not in key else key for key in one.keys)} | {one.how.value} | {one.then} |"
        for one in CHANGES
    ]
    return "\n".join(("| what changes | comes into force | and then |", "|---|---|---|", *rows))
