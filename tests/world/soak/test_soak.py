"""A short soak; `python -m tests.world.soak` goes on for as long as it is asked to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.from_scratch import Window
from tests.world.soak.events import Row
from tests.world.soak.rules import rules_of
from tests.world.soak.soak import Soak
from tests.world.soak.truth import check_all_windows, check_places, overlapping, sessions

SECONDS, SEED = 1, 11


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("schedules of every command are in make test, and real processes that are killed (test_kill) or race")
@pytest.mark.fault(
    "two machines use all commands on one pipeline; processes are killed, files come late, other programs interfere",
    "readers see windows of one definition; each row ends in one place, and erased keys are gone",
)
def test_a_soak_ends_as_computed_from_scratch(tmp_path: Path) -> None:
    soak = Soak(tmp_path / "soak", SEED)
    try:
        soak.play(SECONDS)
        soak.end(rerun=False)
    finally:
        soak.processes.kill_all()
    known = [row for row in soak.kept_rows if row.user]
    with pytest.raises(AssertionError, match="not wanted: "):
        check_all_windows(soak.pipeline, known[1:], soak.gap_ms)
    with pytest.raises(AssertionError, match=r"do not hold|in no place"):
        check_places(soak.pipeline, [*soak.kept_rows, replace(known[0], id="another", number=10_000)], soak.gap_ms)


def test_sessions_from_scratch_touch_at_the_gap() -> None:
    gap_ms = 10 * 60_000
    rows = [Row("f", n, str(n), "ann", at_ms, 1) for n, at_ms in enumerate((0, gap_ms, 2 * gap_ms + 1))]
    assert sessions(rows, gap_ms) == [
        Window("ann", 0, 2 * gap_ms, 2, 2),
        Window("ann", 2 * gap_ms + 1, 3 * gap_ms + 1, 1, 1),
    ]
    assert [len(one) for one in overlapping(sessions(rows, gap_ms))] == [1, 1]


def commit(batch_id: int, gap_ms: int, **decision: Any) -> dict[str, Any]:
    definition, said = json.dumps({"window": {"gap_ms": gap_ms}}), json.dumps(decision) if decision else None
    return {"sequence": batch_id, "kind": "commit", "batch_id": batch_id, "definition": definition, "decision": said}


MIGRATED = [commit(1, 10), commit(2, 25, kind="migrate", migration="m")]
UNDONE = commit(3, 10, kind="migrate_undo", migration="m", to_batch_id=1)


def test_a_migration_and_its_undo_change_the_gap() -> None:
    there, back = rules_of(MIGRATED), rules_of([*MIGRATED, UNDONE, commit(4, 10)])
    assert (there.gap_ms, there.migrated, there.undone, there.migration) == (25, 1, 0, (2, "m"))
    assert (back.gap_ms, back.migrated, back.undone, back.migration) == (10, 1, 1, None)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (commit(3, 10), r"is of gap 10, in force was 25"),
        (commit(3, 25, kind="forget"), "erases a key that old tables hold"),
        (commit(3, 25, kind="rollback", to_batch_id=0), "goes across a migration"),
        (commit(3, 4, kind="migrate", migration="n"), "can be undone"),
        (commit(3, 4, kind="migrate_undo", migration="m", to_batch_id=1), "brings another gap back"),
    ],
)
def test_only_a_migration_changes_the_gap(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        rules_of([*MIGRATED, wrong])
