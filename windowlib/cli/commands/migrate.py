"""Command `windowlib migrate`, which rebuilds the tables under a changed definition, and keeps or undoes the switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from windowlib.cli.decided import print_decision
from windowlib.cli.display import console, readable, table_of
from windowlib.cli.exits import command_shown, load_pipeline
from windowlib.cli.options import Decide, Json, OptionalReason, Pipeline, Wait, Who, check_can_ask, duration_ms
from windowlib.cli.outcomes import print_report, show_note
from windowlib.cli.progress import progress
from windowlib.definition.commands import WHY
from windowlib.definition.plurals import counted
from windowlib.model.errors import InvalidSpec

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windowlib.definition.definition import Definition
    from windowlib.migrations.batch import MigrationOutcome, MigrationRequest
    from windowlib.migrations.difference import MigrationDifference
    from windowlib.migrations.shadow import Shadow

Build = Annotated[
    bool, typer.Option("--dry-run", help="Build the new tables and show what would change, without switching to them.")
]
Undo = Annotated[
    bool, typer.Option("--undo", help="Go back to the tables and the definition before the newest migration.")
]
Finish = Annotated[
    bool, typer.Option("--finish", help="Keep the newest migration, which can then no longer be undone.")
]
Approve = Annotated[bool, typer.Option("--approve", help="Build the new tables even if their checks refuse a batch.")]


@dataclass(frozen=True, slots=True)
class MigrationPreview:
    """Tables built under a changed definition, and the difference of their results from the published results.

    `changed` describes the difference of the definitions. `late` is the number of late events in the new tables.
    """

    pipeline: str
    changed: str
    built_in: str
    difference: MigrationDifference
    late: int
    dry_run: bool


def migrate(
    pipeline: Pipeline,
    who: Who,
    reason: OptionalReason = "",
    dry_run: Build = False,
    undo: Undo = False,
    finish: Finish = False,
    approve: Approve = False,
    yes: Decide = False,
    wait: Wait = "10m",
    as_json: Json = False,
) -> None:
    """Continue under a changed definition: gap, size, slide, key, time column, aggregates and the like.

    The command builds new tables from the source under the current definition, while runs under the old definition
    continue. One batch then replaces the old tables. --undo goes back, for 30 days or until --finish. If the command is
    killed, run it again: it continues where it stopped.

    [dim]windowlib migrate clicks.toml --dry-run[/dim]
    [dim]windowlib migrate clicks.toml --reason "sessions were cut too early"[/dim]
    """
    from windowlib.migrations.batch import MigrationRequest

    if sum((dry_run, undo, finish)) > 1:
        raise InvalidSpec("--dry-run, --undo and --finish are mutually exclusive: give only one")
    if not (dry_run or finish or reason):
        raise InvalidSpec('--reason "…" is missing: the ledger records it; --dry-run needs none, and switches nothing')
    if not finish:
        check_can_ask(dry_run, yes)
    definition, wait_ms = load_pipeline(pipeline), duration_ms("--wait", wait)
    request = MigrationRequest(who, reason, approve=approve, note=show_note)
    if _resume_killed(definition, request, as_json):
        return
    if finish:
        _finish(definition, request, as_json)
    elif undo:
        _undo(definition, request, yes, wait_ms, as_json)
    else:
        _migrate(definition, request, dry_run, yes, wait_ms, as_json)


def _resume_killed(definition: Definition, request: MigrationRequest, as_json: bool) -> bool:
    """Publishes the batch that a killed command had prepared, if there is one, and removes leftovers."""
    from windowlib.migrations.undo import finish_prepared, tidy

    if done := finish_prepared(definition, note=show_note):
        about = {"batch_id": done.batch_id, "finished_a_killed_one": True}
        print_decision("migrate resume", request.who, request.reason, as_json, **about)
    tidy(definition)
    return done is not None


def _finish(definition: Definition, request: MigrationRequest, as_json: bool) -> None:
    from windowlib.migrations.undo import finish

    about = {"batch_id": finish(definition, request), "finished": True}
    print_decision("migrate finish", request.who, request.reason, as_json, **about)


def _migrate(
    definition: Definition, request: MigrationRequest, dry_run: bool, yes: bool, wait_ms: int, as_json: bool
) -> None:
    from windowlib.migrations.switch import switch
    from windowlib.runs.start import waiting, with_spark_for_long

    shadow, difference = _build(definition, request, as_json)
    changed, built_in = shadow.migration.changed, str(shadow.definition.store)
    preview = MigrationPreview(definition.name, changed, built_in, difference, _late(shadow), dry_run)
    print_report(preview, preview_text, as_json)
    if dry_run:
        return
    if not yes:
        typer.confirm("Switch to these tables?", abort=True)
    with progress(console(quiet=as_json)) as show:

        def switch_tables(spark: Any) -> MigrationOutcome:
            return waiting(lambda: switch(definition, shadow, lambda: spark, request), wait_ms, show)

        outcome = with_spark_for_long(definition, switch_tables, show)
    print_decision("migrate", request.who, request.reason, as_json, **_report_fields(outcome))


def _build(definition: Definition, request: MigrationRequest, as_json: bool) -> tuple[Shadow, MigrationDifference]:
    """Builds the tables under the new definition, and compares them. First checks that a migration is possible."""
    from windowlib.batches.planning import ledger_of
    from windowlib.migrations.shadow import check_can_migrate
    from windowlib.migrations.switch import build, compare
    from windowlib.runs.start import with_spark_for_long

    ledger = ledger_of(definition)
    with progress(console(quiet=as_json)) as show:
        check_can_migrate(definition, ledger, ledger.state())

        def build_shadow(spark: Any) -> tuple[Shadow, MigrationDifference]:
            shadow = build(definition, lambda: spark, request)
            return shadow, compare(definition, shadow, lambda: spark)

        return with_spark_for_long(definition, build_shadow, show)


def _undo(definition: Definition, request: MigrationRequest, yes: bool, wait_ms: int, as_json: bool) -> None:
    from windowlib.batches.planning import ledger_of
    from windowlib.ledger.migration import switched
    from windowlib.migrations.undo import undo
    from windowlib.runs.start import waiting, with_spark_for_long

    migration = switched(ledger_of(definition))
    action = "delete the new tables; the migration has not switched to them"
    if migration:
        action = f"undo the migration of batch {migration[0]} ({migration[1].changed})"
    if not yes:
        typer.confirm(f"{action}. Do this?", abort=True)
    if migration is None:
        undo(definition, _no_spark, request)
        print_decision("migrate drop", request.who, request.reason, as_json, deleted=True)
        return
    with progress(console(quiet=as_json)) as show:

        def undo_switch(spark: Any) -> MigrationOutcome | None:
            return waiting(lambda: undo(definition, lambda: spark, request), wait_ms, show)

        outcome = with_spark_for_long(definition, undo_switch, show)
    assert outcome is not None, "a migration was switched"
    print_decision("migrate undo", request.who, request.reason, as_json, **_report_fields(outcome))


def _no_spark() -> Any:
    raise AssertionError("without a switch nothing is computed")


def _report_fields(outcome: MigrationOutcome) -> dict[str, Any]:
    return asdict(outcome) if outcome.difference else {"batch_id": outcome.batch_id}


def _late(shadow: Shadow) -> int:
    table = shadow.ledger.tables["late_events"]
    return sum(file.rows for file in table.files(shadow.commit.versions.get("late_events")))


def preview_text(preview: MigrationPreview) -> Iterator[RenderableType]:
    """Text about the new tables; after a dry run also the commands that continue."""
    yield f"[bold]{preview.pipeline}[/bold]  {escape(preview.changed)}"
    difference = preview.difference
    before, after = difference.results
    yield f"  results   {before:,}, under the new definition {after:,}"
    changed = ", ".join(f"{number:,} {kind}" for kind, number in difference.windows.items())
    yield f"  windows   {changed or 'none differs'}"
    for name, sums in difference.sums.items():
        then, now = ("not there" if value is None else f"{value:,}" for value in sums)
        yield f"  {escape(name):<9} {then} over all results, under the new definition {now}"
    late = counted(preview.late, "event")
    yield f"  late      {late}: the whole past is one batch, in which no event is late"
    if difference.examples:
        names = [name for name in difference.examples[0] if name not in ("firing", "timing", "window_day", "change")]
        table = table_of(["", *names], title="examples, the newest windows of each kind")
        for row in difference.examples:
            table.add_row(row["change"], *(_cell(row, name) for name in names))
        yield table
    yield f"built in {escape(preview.built_in)}"
    if preview.dry_run:
        apply, delete = command_shown("migrate", *WHY), command_shown("migrate", "--undo", *WHY)
        yield escape(f"`{apply}` continues from here; `{delete}` deletes the new tables. Nothing was switched")


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return "" if value is None else escape(readable(value))
