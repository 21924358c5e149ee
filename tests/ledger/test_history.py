"""The batch that applied a preview, found by the ledger, however its rows are spread over files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from windowlib.delta import small_tables as small
from windowlib.ledger.decision import Decision
from windowlib.ledger.history import batch_of_preview, commits_of
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.rerun_request import Rerun
from windowlib.storage.disk import Disk

SHOWN = Rerun(0, 10, "a wrong file", "ann", preview_id="shown")
OTHER = Rerun(0, 10, "a wrong file", "ann", preview_id="other")


@pytest.fixture(params=["in one file", "each in its own"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    if request.param == "each in its own":
        monkeypatch.setattr(small, "SMALL_BYTES", 1)
    return Ledger(Disk(tmp_path), lambda: 1_000)


def commit(ledger: Ledger, batch_id: int, done: Rerun | Decision | None = None) -> None:
    what: dict[str, Any] = {"versions": {}, "counts": {}, "to_sequence": 0, "fingerprint": "f", "definition": "{}"}
    if done:
        what["rerun" if isinstance(done, Rerun) else "decision"] = done.to_json()
    ledger.write({"kind": "commit", "batch_id": batch_id, "plan_time_ms": batch_id, **what})


def back_to(batch_id: int) -> Decision:
    return Decision("rollback", "ann", "not right", to_batch_id=batch_id)


@pytest.mark.parametrize(
    ("done", "batch_id"),
    [
        ([None, OTHER], None),
        ([SHOWN, OTHER], 1),
        ([None, SHOWN, back_to(1)], None),
        ([None, SHOWN, back_to(2)], 2),
        ([None, None, back_to(1), SHOWN], 4),
        ([None, SHOWN, back_to(1), SHOWN], 4),
        ([None, SHOWN, back_to(1), SHOWN, OTHER, back_to(4)], 4),
        ([None, SHOWN, back_to(1), SHOWN, back_to(3)], None),
        ([None, SHOWN, back_to(1), back_to(2)], 2),
        ([None, SHOWN, None, back_to(1), back_to(3), OTHER], 2),
    ],
)
def test_a_rerun_that_was_rolled_back_and_done_again_is_done(
    ledger: Ledger, done: list[Rerun | Decision | None], batch_id: int | None
) -> None:
    for number, one in enumerate(done, 1):
        commit(ledger, number, one)
    assert batch_of_preview(ledger.tables, "shown") == batch_id
    for since in (0, 2, len(done) + 1):
        assert [one.batch_id for one in commits_of(ledger.tables, since)] == [*range(max(since, 1), len(done) + 1)]
