"""A damaged log of `erasures`: no run reads an erased key again, and no message advises a step that would cause it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.log_files import file_of
from windowlib.contract.record_tables import ERASURES, SET_ASIDE
from windowlib.delta import log
from windowlib.delta.log_checks import check
from windowlib.ledger import erasures
from windowlib.ledger.erasures import Erasure
from windowlib.storage.disk import Disk


@pytest.mark.parametrize("damage", ["", "{"], ids=["empty", "cut off"])
def test_a_damaged_log_of_erasures_advises_to_repeat_forget(tmp_path: Path, damage: str) -> None:
    about = {"columns": ["user"], "secret": "00", "digest": "7044044b", "up_to_ms": 0, "later_ms": [], "batch_id": 3}
    left = {"removed": {"results": 1}, "source": {}, "not_looked_at": []}
    erasures.keep(Disk(tmp_path), Erasure(datetime(2026, 3, 2, tzinfo=UTC), "ann", "request 1", **about, **left))
    newest = max((tmp_path / ERASURES.name / "_delta_log").glob("*.json"))
    newest.write_text(damage)
    with pytest.raises(log.DamagedLog, match=r"repeat the newest `windowlib forget` before any run"):
        check(Disk(tmp_path / ERASURES.name))


def test_no_run_rewrites_a_damaged_log_of_erasures(tmp_path: Path) -> None:
    (tmp_path / SET_ASIDE.name / "_delta_log").mkdir(parents=True)
    file_of(tmp_path / SET_ASIDE.name, 0).write_text("")
    with pytest.raises(log.DamagedLog, match="repeat the command that wrote it"):
        check(Disk(tmp_path / SET_ASIDE.name))
