"""What the next batch will do, and whether it may. Needs no Spark: Airflow's plan task and `windowlib plan` run this.

A plan reads everything new up to a source position (at most `max_files_per_run` files), or, without new files, what
the passing of time makes due. It is frozen in the ledger before any work, with the terms that it was made under.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, replace

from windowlib.batches import taking, watermarks
from windowlib.batches.plan_time import check_clock, plan_time_ms, rerun_time_ms
from windowlib.batches.steps import step_of
from windowlib.definition import formulas
from windowlib.definition.commands import argument
from windowlib.definition.definition import Definition, fingerprint_of
from windowlib.definition.formulas import (
    as_stored,
    compared,
    continues,
    is_of,
    lateness_changed_with,
)
from windowlib.definition.terms import changed, differences, terms_of
from windowlib.engines.choice import check_types
from windowlib.model.errors import InvalidSpec, StateMismatch
from windowlib.model.watermark import MAX_WATERMARK, MIN_WATERMARK, SourceState, SourceWatermark, combine, observe
from windowlib.source import listing as source
from windowlib.source import marker
from windowlib.source.delta_source import CURSOR
from windowlib.source.files import check_readable
from windowlib.source.place import PLACE, check_place, place_of
from windowlib.tables import delta
from windowlib.tables.decision import Decision
from windowlib.tables.late import allowed_lateness_ms
from windowlib.tables.ledger import Clock, Ledger, Waiting, wall_clock_ms
from windowlib.tables.ledger_rows import Commit, LedgerState, Plan
from windowlib.tables.migration import MIGRATED
from windowlib.tables.opened import Tables
from windowlib.tables.rerun import Rerun, RerunRefused, check_can_rerun

_PATTERN = {*"*?[]{}%\\\n"}


def ledger_of(definition: Definition, clock: Clock = wall_clock_ms) -> Ledger:
    """The ledger of a pipeline."""
    return Ledger(definition.root, clock, definition.lease_timeout_ms)


def plan(
    definition: Definition,
    clock: Clock = wall_clock_ms,
    *,
    finish: bool = False,
    look: source.Look = source.found_files,
) -> Plan | None:
    """Freezes the next batch, or finds the frozen one; None when there is nothing to do. Needs no Spark.

    `look` finds the files that are there. With `finish`, once nothing new is left, a last batch says that no more
    events will come: every window fires.

    Raises `Waiting` while a refused batch waits for an operator, `StateMismatch` when the warehouse was written by
    another definition, `SourceError` when the source cannot be read, `ClockRefused` when the clock must be wrong.
    """
    ledger = ledger_of(definition, clock)
    state, found = ledger.freeze(lambda state: next_plan(definition, ledger.tables, state, clock, finish, look))
    check_may_run(definition, state)
    return found


def next_plan(
    definition: Definition,
    tables: Tables,
    state: LedgerState,
    clock: Clock,
    finish: bool,
    look: source.Look = source.found_files,
) -> Plan | None:
    """What the next batch would do, from the state of the ledger. Raises as `plan` does."""
    commit = state.commit
    assert definition.spec, "the user's own code is loaded, or refused, before anything is planned"
    check_fingerprint(definition, commit)
    check_folder(definition)
    check_place(definition, commit)
    sequence = commit.to_sequence if commit else 0
    cursor = source.cursor_of(definition, commit)
    since = None if finish else marker.due_from(definition, commit, clock())
    arrived = source.arrivals(definition, tables, commit, look(definition, cursor or since))
    found, fresh = arrived.files, source.new_files(definition, tables, commit, arrived)
    # With `finish` the input is complete: no file is still being written.
    new = fresh if finish else source.settled_files(definition, fresh, clock())
    if arrived.removal and not fresh:
        assert commit is not None, "files were read"
        bare = _without_files(definition, state, commit, rerun_time_ms(clock(), state))
        removal = taking.with_compacted(definition, tables, commit, arrived.removal)
        plan = taking.by_itself(definition, tables, commit, bare, removal)
        check_clock(definition, clock(), state, plan.files)
        return plan
    files = source.numbered(new, sequence, definition.source.max_files_per_run)
    pinned = json.loads(commit.definition).get("source_types") if commit else None
    types = check_readable(definition, files, pinned)
    cursor = source.next_cursor(tables, commit, found, files, cursor)
    batch_id, then = state.last_batch_id + 1, json.loads(commit.definition) if commit else None
    definition = as_stored(definition, then) if then else definition
    meaning = formulas.semantics(definition, then, batch_id)
    kept: dict[str, object] = {"source_types": types or pinned, PLACE: place_of(definition)}
    kept |= formulas.kept(definition, then, batch_id)
    if then and MIGRATED in then:
        kept[MIGRATED] = then[MIGRATED]
    if cursor:
        kept[CURSOR] = cursor.to_json()
    now_ms = clock()
    left = {file.path for file in fresh} - {file.path for file in files}
    full = marker.full_listing(definition, commit, [file.path for file in fresh], now_ms)
    if left_at := marker.after(definition, since, [file.path for file in found], left, full):
        kept[marker.MARKER] = asdict(left_at)
    check_types(definition, types)
    frozen = Plan(
        batch_id=batch_id,
        plan_time_ms=plan_time_ms(now_ms, state),
        watermark_in_ms=commit.watermark_out_ms if commit else None,
        from_sequence=sequence,
        files=tuple(files),
        fingerprint=fingerprint_of(meaning),
        definition=json.dumps({**meaning, **kept}, sort_keys=True),
        terms=terms_of(definition),
        recorded_late_in_ms=late_in_ms(definition, commit),
    )
    if files or _time_is_due(definition, tables, state, frozen):
        check_clock(definition, now_ms, state, files)
        return frozen
    if finish and commit and commit.watermark_out_ms != MAX_WATERMARK:
        return replace(frozen, finished=True)
    if commit and since is None and left_at and not left:
        marker.keep_full_listing(definition, commit, full)
    return None


def rerun_plan(
    definition: Definition,
    tables: Tables,
    state: LedgerState,
    rerun: Rerun,
    clock: Clock,
    look: source.Look = source.found_files,
) -> Plan:
    """The plan of a rerun, from the state of the ledger. Raises `RerunRefused` where there is nothing to rerun."""
    commit = state.commit
    check_fingerprint(definition, commit)
    if commit is None:
        raise RerunRefused(f"nothing has been run yet: there is nothing to rerun; `windowlib run {definition.file}`")
    check_place(definition, commit)
    check_can_rerun(definition, rerun)
    check_types(definition, json.loads(commit.definition).get("source_types"))
    plan = replace(_without_files(definition, state, commit, rerun_time_ms(clock(), state)), rerun=rerun)
    removal = taking.due(definition, tables, commit, look) if not rerun.late_only else None
    plan = taking.taken(definition, tables, commit, plan, removal) if removal else plan
    return plan if plan.replaces else taking.read_again(definition, tables, commit, plan)


def decided_plan(definition: Definition, state: LedgerState, decision: Decision, clock: Clock) -> Plan:
    """The plan of a batch that moves the watermark because an operator says so. At least one batch is committed."""
    check_fingerprint(definition, state.commit)
    assert state.commit is not None, "there is a watermark to move"
    time_ms = plan_time_ms(clock(), state)
    return replace(_without_files(definition, state, state.commit, time_ms), decision=decision)


def _without_files(definition: Definition, state: LedgerState, commit: Commit, time_ms: int) -> Plan:
    """The plan of a batch that reads no new file."""
    batch_id, then = state.last_batch_id + 1, json.loads(commit.definition)
    definition = as_stored(definition, then)
    meaning = formulas.semantics(definition, then, batch_id)
    now = {**then, **meaning, **formulas.kept(definition, then, batch_id)}
    return Plan(
        batch_id=batch_id,
        plan_time_ms=time_ms,
        watermark_in_ms=commit.watermark_out_ms,
        from_sequence=commit.to_sequence,
        files=(),
        fingerprint=fingerprint_of(meaning),
        definition=json.dumps(now, sort_keys=True),
        terms=terms_of(definition),
        recorded_late_in_ms=late_in_ms(definition, commit),
    )


def late_in_ms(definition: Definition, commit: Commit | None) -> int:
    """The greatest max_timestamp_ms of a window that is late when the batch after a commit begins (None: the first).

    What has been cleaned up stays late, whatever lateness is allowed from now on.
    """
    watermark_ms, before_ms = (commit.watermark_out_ms, commit.late_out_ms) if commit else (None, MIN_WATERMARK)
    watermark_ms = MIN_WATERMARK if watermark_ms is None else watermark_ms
    return definition.spec.late_up_to_ms(watermark_ms, before_ms)


def _time_is_due(definition: Definition, tables: Tables, state: LedgerState, frozen: Plan) -> bool:
    """Whether an idle source lets time move on, or the clock has, far enough to fire or retire a window."""
    policy, timers = watermarks.policy_of(definition), definition.plan.runs_operator  # of processing time
    if policy.idle_timeout_ms is None and not timers:
        return False
    earlier = watermarks.last(tables, state.commit)
    if state.commit is None or earlier is None or earlier["applied_ms"] == MAX_WATERMARK:
        return False  # nothing has begun, or the source has ended: what is left then is due no more
    known = SourceWatermark(earlier["applied_ms"], SourceState.ACTIVE, earlier["active_at_ms"])
    quiet = observe(known, None, frozen.plan_time_ms, policy)
    time_ms = earlier["applied_ms"]
    if quiet.state is SourceState.IDLE:
        time_ms = combine(time_ms, [quiet], frozen.plan_time_ms, policy)
    elif not timers:
        return False
    files = delta.files(tables["open_windows"], state.pinned("open_windows"))
    step = step_of(definition, frozen, frozen.watermark_in_ms or MIN_WATERMARK, time_ms)
    return not definition.plan.reach(files, (), step).is_empty


def other_terms(definition: Definition, found: Plan) -> str | None:
    """How the definition differs from that which a plan was made with, in words; None where it computes the same.

    A plan of an earlier release of windowlib has no terms: only the fingerprint counts.
    """
    if not is_of(definition, found.definition, found.fingerprint):
        return edited(definition, found)
    return None if found.terms is None else changed(found.terms, terms_of(definition))


def plan_again(
    definition: Definition, tables: Tables, state: LedgerState, stale: Plan, clock: Clock, look: source.Look
) -> Plan | None:
    """What the batch of a plan that was made under other terms does now; None where nothing is left to do."""
    if stale.rerun and not taking.is_by_itself(stale):
        return rerun_plan(definition, tables, state, stale.rerun, clock, look)
    if stale.decision:
        return decided_plan(definition, state, stale.decision, clock)
    return next_plan(definition, tables, state, clock, stale.finished, look)


def check_may_run(definition: Definition, state: LedgerState) -> None:
    """Raises `StateMismatch` where the newest batch, or a prepared one, is of another definition; `Waiting`."""
    if state.plan and state.plan.decision and state.plan.decision.switches:
        check_fingerprint(definition, state.plan, f"finish it: `{migrate_command(definition)}`")
        return
    check_fingerprint(definition, state.commit)
    if state.prepared:
        drop = f"drop what was prepared with it: `windowlib abandon {definition.file}`"
        check_fingerprint(definition, state.plan, drop)
    if state.plan and (why := why_it_waits(definition, state)):
        raise Waiting(why, state.plan.batch_id)


def why_it_waits(definition: Definition, state: LedgerState) -> str | None:
    """Which batch waits for a decision, why, and the commands that decide; None where none waits."""
    if state.plan is None or not state.rejection or state.approved_by:
        return None
    return (
        f"batch {state.plan.batch_id} was refused by its checks and waits:\n{state.rejection}\n"
        f"to publish it all the same: {decision_command('approve', definition, state.plan)}\n"
        f"to drop it, and plan again: {decision_command('abandon', definition, state.plan)}"
    )


def decision_command(command: str, definition: Definition, waiting: Plan) -> str:
    """What an operator types to decide about a batch that waits."""
    return f'windowlib {command} {shlex.quote(str(definition.file))} --batch {waiting.batch_id} --reason "…"'


def check_folder(definition: Definition) -> None:
    """Raises `InvalidSpec` for a warehouse whose path engines, or the tables' log, would take for another."""
    if found := sorted(set(_PATTERN & set(str(definition.root)))):
        raise InvalidSpec(
            f"{definition.file}: the warehouse {str(definition.root)!r} has {' '.join(map(repr, found))} in its path,"
            " which some engine reads as a pattern or as another character; give it a path without"
        )


def check_fingerprint(definition: Definition, stored: Commit | Plan | None, otherwise: str | None = None) -> None:
    """Raises `StateMismatch` unless a commit or plan is of this definition; `otherwise` is what else can be done.

    None stands for a migration.
    """
    if stored is None or continues(definition, stored.definition, stored.fingerprint):
        return
    otherwise = otherwise or f"have the tables built again under the new definition: `{migrate_command(definition)}`"
    raise StateMismatch(
        f"{definition.root} was written by another definition: {edited(definition, stored)}."
        f" Undo the change in {definition.file}, or {otherwise}."
    )


def migrate_command(definition: Definition) -> str:
    """What an operator types after a change of the definition that stored state does not go with."""
    return f'windowlib migrate {argument(definition.file)} --reason "…"'


def lateness_changed(plan: Plan, commit: Commit | None) -> str | None:
    """How a plan's batch goes by another allowed lateness than the one before it, in words; None where it does not."""
    if commit is None or not lateness_changed_with(plan.definition, plan.batch_id):
        return None
    then_ms, now_ms = (allowed_lateness_ms(one.definition) for one in (commit, plan))
    [said] = differences(*({"window": {"allowed_lateness_ms": ms}} for ms in (then_ms, now_ms)))
    means = "what has been cleaned up stays late" if now_ms > then_ms else "windows in flight past it are cleaned up"
    return f"{said}, from batch {plan.batch_id} on: {means}"


def formulas_changed(definition: Definition, clock: Clock = wall_clock_ms) -> list[str]:
    """How the formulas differ from those of the newest batch, in words; the next batch publishes by them."""
    commit = ledger_of(definition, clock).state().commit
    if commit is None:
        return []
    then, now = (one["aggregates"] for one in (json.loads(commit.definition), definition.semantics()))
    return [*differences({"aggregates": then}, {"aggregates": now})]


def edited(definition: Definition, stored: Commit | Plan) -> str:
    """How the definition differs from that of a commit or plan, in words."""
    then, now = json.loads(stored.definition), definition.semantics()
    return "; ".join(differences(compared(then, now), now))
