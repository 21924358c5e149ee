"""A short soak; `python -m tests.soak` goes on for as long as it is asked to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.soak.events import Row
from tests.soak.soak import Soak
from tests.soak.truth import Window, check_all_windows, check_places, overlapping, sessions

SECONDS, SEED = 1, 11


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.fault(
    "two machines run, rerun, roll back, migrate, maintain and verify one pipeline, and erase a key; processes are"
    " killed, stopped and woken, files come late, the author edits, another program compacts and deletes",
    "readers see windows of one definition; in the end every row is in one place, a migration or a rerun of all time"
    " gives the sessions of plain Python by the gap in force, and no file names the erased key",
)
def test_a_soak_ends_as_from_scratch(tmp_path: Path) -> None:
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
