"""The command `windowlib migrate`: the tables built again under a changed definition, switched, kept or undone."""

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
    bool, typer.Option("--dry-run", help="Build the new tables and show what would change; switch nothing.")
]
Undo = Annotated[
    bool, typer.Option("--undo", help="Go back to the tables and the definition before the newest migration.")
]
Finish = Annotated[bool, typer.Option("--finish", help="Keep the newest migration: from then on it cannot be undone.")]
Approve = Annotated[bool, typer.Option("--approve", help="Build the new tables although their checks refuse a batch.")]


@dataclass(frozen=True, slots=True)
class MigrationPreview:
    """Tables built under a changed definition, and how their results differ from those that are published.

    `changed`: how the definitions differ, in words. `late`: how many events are late in the new tables.
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
    """Move the pipeline to a changed definition: gap, size, slide, key, time column, aggregates and others.

    The command builds new tables from the source under the new definition, while runs by the old one continue. Then one
    batch replaces the old tables. For 30 days, or until --finish, --undo goes back. After a kill, the same command
    continues.

    [dim]windowlib migrate clicks.toml --dry-run[/dim]
    [dim]windowlib migrate clicks.toml --reason "sessions were cut too early"[/dim]
    """
    from windowlib.migrations.batch import MigrationRequest

    if sum((dry_run, undo, finish)) > 1:
        raise InvalidSpec("--dry-run, --undo and --finish exclude one another")
    if not (dry_run or finish or reason):
        raise InvalidSpec('need --reason "…", which the ledger keeps; --dry-run needs none, and switches nothing')
    if not finish:
        check_can_ask(dry_run, yes)
    definition, wait_ms = load_pipeline(pipeline), duration_ms("--wait", wait)
    asked = MigrationRequest(who, reason, approve=approve, note=show_note)
    if _a_killed_one_is_finished(definition, asked, as_json):
        return
    if finish:
        _finish(definition, asked, as_json)
    elif undo:
        _undo(definition, asked, yes, wait_ms, as_json)
    else:
        _migrate(definition, asked, dry_run, yes, wait_ms, as_json)


def _a_killed_one_is_finished(definition: Definition, asked: MigrationRequest, as_json: bool) -> bool:
    """Publishes a batch that a killed command had prepared, and removes what was left lying. Tells if there was one."""
    from windowlib.migrations.undo import finish_prepared, tidy

    if done := finish_prepared(definition, note=show_note):
        about = {"batch_id": done.batch_id, "finished_a_killed_one": True}
        print_decision("migrate resume", asked.who, asked.reason, as_json, **about)
    tidy(definition)
    return done is not None


def _finish(definition: Definition, asked: MigrationRequest, as_json: bool) -> None:
    from windowlib.migrations.undo import finish

    about = {"batch_id": finish(definition, asked), "finished": True}
    print_decision("migrate finish", asked.who, asked.reason, as_json, **about)


def _migrate(
    definition: Definition, asked: MigrationRequest, dry_run: bool, yes: bool, wait_ms: int, as_json: bool
) -> None:
    from windowlib.migrations.switch import switch
    from windowlib.runs.start import waiting, with_spark_for_long

    shadow, found = _built(definition, asked, as_json)
    changed, built_in = shadow.migration.changed, str(shadow.definition.root)
    preview = MigrationPreview(definition.name, changed, built_in, found, _late(shadow), dry_run)
    print_report(preview, preview_text, as_json)
    if dry_run:
        return
    if not yes:
        typer.confirm("Switch to these tables?", abort=True)
    with progress(console(quiet=as_json)) as show:

        def switched(spark: Any) -> MigrationOutcome:
            return waiting(lambda: switch(definition, shadow, lambda: spark, asked), wait_ms, show)

        done = with_spark_for_long(definition, switched, show)
    print_decision("migrate", asked.who, asked.reason, as_json, **_about(done))


def _built(definition: Definition, asked: MigrationRequest, as_json: bool) -> tuple[Shadow, MigrationDifference]:
    """The tables under the new definition, and what they change. What is refused is refused before an engine starts."""
    from windowlib.batches.planning import ledger_of
    from windowlib.migrations.shadow import check_can_migrate
    from windowlib.migrations.switch import build, compare
    from windowlib.runs.start import with_spark_for_long

    ledger = ledger_of(definition)
    with progress(console(quiet=as_json)) as show:
        check_can_migrate(definition, ledger, ledger.state())

        def built(spark: Any) -> tuple[Shadow, MigrationDifference]:
            shadow = build(definition, lambda: spark, asked)
            return shadow, compare(definition, shadow, lambda: spark)

        return with_spark_for_long(definition, built, show)


def _undo(definition: Definition, asked: MigrationRequest, yes: bool, wait_ms: int, as_json: bool) -> None:
    from windowlib.batches.planning import ledger_of
    from windowlib.ledger.migration import switched
    from windowlib.migrations.undo import undo
    from windowlib.runs.start import waiting, with_spark_for_long

    found = switched(ledger_of(definition))
    what = "delete the tables that were built; none was switched"
    if found:
        what = f"undo the migration of batch {found[0]} ({found[1].changed})"
    if not yes:
        typer.confirm(f"{what}. Do this?", abort=True)
    if found is None:
        undo(definition, _no_spark, asked)
        print_decision("migrate drop", asked.who, asked.reason, as_json, deleted=True)
        return
    with progress(console(quiet=as_json)) as show:

        def undone(spark: Any) -> MigrationOutcome | None:
            return waiting(lambda: undo(definition, lambda: spark, asked), wait_ms, show)

        done = with_spark_for_long(definition, undone, show)
    assert done is not None, "a migration was switched"
    print_decision("migrate undo", asked.who, asked.reason, as_json, **_about(done))


def _no_spark() -> Any:
    raise AssertionError("nothing is computed where nothing was switched")


def _about(done: MigrationOutcome) -> dict[str, Any]:
    return asdict(done) if done.difference else {"batch_id": done.batch_id}


def _late(shadow: Shadow) -> int:
    table = shadow.ledger.tables["late_events"]
    return sum(file.rows for file in table.files(shadow.commit.versions.get("late_events")))


def preview_text(preview: MigrationPreview) -> Iterator[RenderableType]:
    """Text about tables that were built; of a dry run also how to go on."""
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
    yield f"  late      {late}: all of the past is one batch, in which no event is late"
    if difference.examples:
        names = [name for name in difference.examples[0] if name not in ("firing", "timing", "window_day", "change")]
        table = table_of(["", *names], title="examples, the newest windows of each kind")
        for row in difference.examples:
            table.add_row(row["change"], *(_cell(row, name) for name in names))
        yield table
    yield f"built in {escape(preview.built_in)}"
    if preview.dry_run:
        apply, delete = command_shown("migrate", *WHY), command_shown("migrate", "--undo", *WHY)
        yield escape(f"`{apply}` goes on from here; `{delete}` deletes what was built. Nothing was switched")


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return "" if value is None else escape(readable(value))
