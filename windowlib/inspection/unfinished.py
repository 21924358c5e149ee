"""What an operator has begun and not finished, in words, with the commands that go on: a migration, an erasure."""

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


def migration_begun(root: Path, file: Path, ledger: Ledger) -> str | None:
    """A migration that is being built, or can be undone; None without one."""
    kept = finished(ledger)
    begun = [one for one in migrations(root) if one not in kept]
    undo = to_paste("migrate", file, "--undo", *WHY)
    if not begun:
        return None
    state = ledger.state()
    plan = state.plan if state.prepared else None
    if plan and plan.decision and plan.decision.switches:
        what = f"batch {plan.batch_id} is prepared ({plan.decision.title})"
        return f"{what}: the next run publishes it; `{to_paste('abandon', file, *WHY)}` drops it"
    if done := switched(ledger):
        number, migration = done
        what = f"the migration of batch {number} ({migration.changed}) can be undone"
        return f"{what}: `{undo}`; `{to_paste('migrate', file, '--finish')}` keeps it for good"
    newest = begun[-1]
    what = f"a migration was begun {instant(newest.at_ms)} ({newest.changed}) and is not switched"
    return f"{what}: `{to_paste('migrate', file, *WHY)}` goes on; `{undo}` deletes what was built"


def unfinished_erasures(root: Path, tables: Tables) -> list[Erasure]:
    """The newest erasure of each key that the tables still hold: events of it are read no more."""
    newest = {one.digest: one for one in erasures(root)}
    if not newest:
        return []
    since = min(one.batch_id or 0 for one in newest.values())
    return unpublished([*newest.values()], decisions_of(tables, since))


def erasure_begun(definition: Definition, ledger: Ledger) -> str | None:
    """An erasure that was killed or overtaken and not given again; None without one, and where a run finishes it."""
    plan = ledger.state().plan
    prepared = plan.decision.digest if plan and plan.decision else None
    left = [one for one in unfinished_erasures(definition.root, ledger.tables) if one.digest != prepared]
    if not left:
        return None
    what = f"the erasure of a key that {left[0].who} began {instant(time_of(left[0].at))} ({left[0].reason})"
    return f"{what} is not finished: give it again, `{to_paste('forget', definition.file, '--key', '…', *WHY)}`"
