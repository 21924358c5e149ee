"""Reading of the state without a claim, while another process goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from windowlib.delta.log import CutLog
from windowlib.ledger.ledger import Ledger, wall_clock_ms
from windowlib.ledger.prepare import Prepared, Unreadable, read
from windowlib.ledger.rows import LedgerState
from windowlib.storage.disk import Disk


@pytest.mark.fault("a run publishes a prepared batch while a command looks at it", "the command looks again")
def test_a_batch_published_meanwhile_is_read_again(tmp_path: Path) -> None:
    ours, theirs, seen = Ledger(Disk(tmp_path), wall_clock_ms), Ledger(Disk(tmp_path), wall_clock_ms), list[int]()
    theirs.claim()

    def look(state: LedgerState) -> int:
        seen.append(state.sequence)
        if len(seen) == 1:
            theirs.write({"kind": "release"})
            read(Disk(tmp_path), Prepared("_prepared/gone.json", ""))
        return state.sequence

    assert ours.settled(look) == 2
    assert seen == [1, 2]


@pytest.mark.fault("maintenance shortens a log while a command reads it", "the command looks again")
def test_a_log_shortened_meanwhile_is_read_again(tmp_path: Path) -> None:
    ours, theirs, seen = Ledger(Disk(tmp_path), wall_clock_ms), Ledger(Disk(tmp_path), wall_clock_ms), list[int]()
    theirs.claim()

    def look(state: LedgerState) -> int:
        seen.append(state.sequence)
        theirs.write({"kind": "release"})
        raise CutLog(f"after {state.sequence}") if len(seen) < 3 else KeyError

    with pytest.raises(KeyError):
        ours.settled(look)
    assert seen == [1, 2, 3]
    with pytest.raises(CutLog, match="after 4"):
        ours.settled(lambda state: (_ for _ in ()).throw(CutLog(f"after {state.sequence}")))


def test_damage_is_raised(tmp_path: Path) -> None:
    Ledger(Disk(tmp_path), wall_clock_ms).claim()
    with pytest.raises(Unreadable, match="cannot be read"):
        Ledger(Disk(tmp_path), wall_clock_ms).settled(
            lambda _: read(Disk(tmp_path), Prepared("_prepared/gone.json", ""))
        )
