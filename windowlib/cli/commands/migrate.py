"""The command `windowlib migrate`: the tables built again under a changed definition, switched, kept or undone."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from windowlib.cli.display import console, readable, say, table_of
from windowlib.cli.exits import load_pipeline
from windowlib.cli.options import Decide, Json, OptionalReason, Pipeline, Wait, Who, duration_ms
from windowlib.cli.outcomes import show_note, show_outcome
from windowlib.cli.progress import progress
from windowlib.definition.commands import WHY, from_here, to_paste
from windowlib.definition.plurals import counted
from windowlib.definition.toml.durations import UNITS
from windowlib.model.errors import InvalidSpec

if TYPE_CHECKING:
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
    """Go on under a changed definition: gap, size, slide, key, time column, aggregates and the like.

    The tables are built again from the source under the definition as it is now, while runs by the old one go on; then
    they take the place of the old ones in one batch. For 30 days, or until --finish, --undo goes back. Killed, the same
    command goes on where it was.

    [dim]windowlib migrate clicks.toml --dry-run[/dim]
    [dim]windowlib migrate clicks.toml --reason "sessions were cut too early"[/dim]
    """
    from windowlib.migrations.batch import MigrationRequest

    if sum((dry_run, undo, finish)) > 1 or (dry_run and yes):
        raise InvalidSpec("--dry-run, --undo and --finish exclude one another; so do --yes and --dry-run")
    if not (dry_run or finish or reason):
        raise InvalidSpec('need --reason "…", which the ledger keeps; --dry-run needs none, and switches nothing')
    if not (dry_run or finish or yes or sys.stdin.isatty()):
        raise InvalidSpec("without a terminal nothing can be asked: say --dry-run to see it, or --yes to do it")
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
    """Whether a killed command had prepared a batch: it is published now. What was left lying is removed."""
    from windowlib.migrations.undo import finish_prepared, tidy

    done, file = finish_prepared(definition, note=show_note), from_here(definition.file)
    if done:
        record = {"batch_id": done.batch_id, "who": asked.who, "reason": asked.reason, "finished_a_killed_one": True}
        then = f"`{to_paste('run', file)}` goes on"
        said = f"batch {done.batch_id}, which a killed command had prepared, is published; {then}"
        show_outcome(record, said, as_json)
    tidy(definition)
    return done is not None


def _finish(definition: Definition, asked: MigrationRequest, as_json: bool) -> None:
    from windowlib.migrations.undo import finish

    number = finish(definition, asked)
    record = {"batch_id": number, "finished": True, "who": asked.who, "reason": asked.reason}
    show_outcome(record, f"the migration of batch {number} is kept", as_json)


def _migrate(
    definition: Definition, asked: MigrationRequest, dry_run: bool, yes: bool, wait_ms: int, as_json: bool
) -> None:
    from windowlib.ledger.retained_batches import UNDO_MS
    from windowlib.migrations.switch import switch
    from windowlib.runs.start import waiting, with_spark_for_long

    file = from_here(definition.file)
    shadow, found = _built(definition, asked, as_json)
    folder = str(shadow.definition.root)
    record = {"changed": shadow.migration.changed, "built_in": folder, "difference": _plain(found)}
    show_outcome(record, None, as_json)
    if not as_json:
        _show(console(), definition, shadow, found)
    if dry_run:
        if not as_json:
            typer.echo(
                f"`{to_paste('migrate', file, *WHY)}` goes on from here; `{to_paste('migrate', file, '--undo', *WHY)}`"
                " deletes what was built. Nothing was switched"
            )
        return
    if not yes:
        typer.confirm("Switch to these tables?", abort=True)
    with progress(console(quiet=as_json)) as show:

        def switched(spark: Any) -> MigrationOutcome:
            return waiting(lambda: switch(definition, shadow, lambda: spark, asked), wait_ms, show)

        done = with_spark_for_long(definition, switched, show)
    said = (
        f"batch {done.batch_id} is the new tables; `{to_paste('run', file)}` goes on with them."
        f" `{to_paste('migrate', file, '--undo', *WHY)}` takes it back for"
        f" {UNDO_MS // UNITS['d']} days, or until `{to_paste('migrate', file, '--finish')}` keeps it"
    )
    show_outcome({"batch_id": done.batch_id, **_about(done), "who": asked.who, "reason": asked.reason}, said, as_json)


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

    found, file = switched(ledger_of(definition)), from_here(definition.file)
    what = "delete the tables that were built; none was switched"
    if found:
        what = f"undo the migration of batch {found[0]} ({found[1].changed})"
    if not yes:
        typer.confirm(f"{what}. Do this?", abort=True)
    if found is None:
        undo(definition, _no_spark, asked)
        show_outcome({"deleted": True}, "what was built is deleted; nothing had been switched", as_json)
        return
    with progress(console(quiet=as_json)) as show:

        def undone(spark: Any) -> MigrationOutcome | None:
            return waiting(lambda: undo(definition, lambda: spark, asked), wait_ms, show)

        done = with_spark_for_long(definition, undone, show)
    assert done is not None, "a migration was switched"
    said = (
        f"batch {done.batch_id} has the tables from before the migration again. Put the earlier definition into {file}:"
        " the next run reads what has come since"
    )
    show_outcome({"batch_id": done.batch_id, **_about(done), "who": asked.who, "reason": asked.reason}, said, as_json)


def _no_spark() -> Any:
    raise AssertionError("nothing is computed where nothing was switched")


def _about(done: MigrationOutcome) -> dict[str, Any]:
    return {"difference": _plain(done.difference)} if done.difference else {}


def _plain(found: MigrationDifference) -> dict[str, Any]:
    return dict(asdict(found))


def _show(screen: Console, definition: Definition, shadow: Shadow, found: MigrationDifference) -> None:
    say(screen, f"[bold]{definition.name}[/bold]  {escape(shadow.migration.changed)}")
    before, after = found.results
    say(screen, f"  results   {before:,}, under the new definition {after:,}")
    changed = ", ".join(f"{number:,} {kind}" for kind, number in found.windows.items())
    say(screen, f"  windows   {changed or 'none differs'}")
    for name, (then, now) in found.sums.items():
        said = {side: "not there" if value is None else f"{value:,}" for side, value in (("b", then), ("a", now))}
        say(screen, f"  {escape(name):<9} {said['b']} over all results, under the new definition {said['a']}")
    say(
        screen,
        f"  late      {counted(_late(shadow), 'event')}: all of the past is one batch, in which no event is late",
    )
    if found.examples:
        names = [name for name in found.examples[0] if name not in ("firing", "timing", "window_day", "change")]
        table = table_of(["", *names], title="examples, the newest windows of each kind")
        for row in found.examples:
            table.add_row(row["change"], *(_cell(row, name) for name in names))
        screen.print(table)
    say(screen, f"built in {escape(str(shadow.definition.root))}")


def _late(shadow: Shadow) -> int:
    table = shadow.ledger.tables["late_events"]
    return sum(file.rows for file in table.files(shadow.commit.versions.get("late_events")))


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return "" if value is None else escape(readable(value))
