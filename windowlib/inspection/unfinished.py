"""Unfinished migrations and erasures, in words, with the commands that continue them."""

from __future__ import annotations

from pathlib import Path

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant, time_of
from windowlib.delta.tables import Tables
from windowlib.ledger.erasures import Erasure, erasures, unpublished
from windowlib.ledger.history import decisions_of
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.migration import finished, migrations, switched


def migration_begun(file: Path, ledger: Ledger) -> str | None:
    """Sentence about a migration that is being built or can be undone; None if there is none."""
    kept = finished(ledger)
    begun = [migration for migration in migrations(ledger.store) if migration not in kept]
    undo = to_paste("migrate", file, "--undo", *WHY)
    if not begun:
        return None
    state = ledger.state()
    plan = state.plan if state.prepared else None
    if plan and plan.decision and plan.decision.switches:
        situation = f"batch {plan.batch_id} is prepared ({plan.decision.title})"
        return f"{situation}: the next run publishes it; `{to_paste('abandon', file, *WHY)}` drops it"
    if done := switched(ledger):
        number, migrated = done
        situation = f"the migration of batch {number} ({migrated.changed}) can be undone"
        return f"{situation}: `{undo}`; `{to_paste('migrate', file, '--finish')}` keeps it for good"
    newest = begun[-1]
    situation = f"a migration was begun at {instant(newest.at_ms)} ({newest.changed}) and is not switched"
    return f"{situation}: `{to_paste('migrate', file, *WHY)}` continues it; `{undo}` deletes the new tables"


def unfinished_erasures(tables: Tables) -> list[Erasure]:
    """The newest erasure of each key that the tables still hold, although its events are no longer read."""
    newest = {erasure.digest: erasure for erasure in erasures(tables.store)}
    if not newest:
        return []
    since = min(erasure.batch_id or 0 for erasure in newest.values())
    return unpublished([*newest.values()], decisions_of(tables, since))


def erasure_begun(definition: Definition, ledger: Ledger) -> str | None:
    """Sentence about a killed or overtaken erasure; None if there is none, or if the next run finishes the erasure."""
    plan = ledger.state().plan
    prepared = plan.decision.digest if plan and plan.decision else None
    left = [erasure for erasure in unfinished_erasures(ledger.tables) if erasure.digest != prepared]
    if not left:
        return None
    situation = f"the erasure of a key that {left[0].who} began at {instant(time_of(left[0].at))} ({left[0].reason})"
    return f"{situation} is not finished: run it again, `{to_paste('forget', definition.file, '--key', '…', *WHY)}`"
