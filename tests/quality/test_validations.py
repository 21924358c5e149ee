"""Stored outcomes of a batch's checks that differ from the written ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from windowlib.quality.validations import FOLDER, UnreadableOutcome, keep, stored_outcomes
from windowlib.storage.disk import Disk


@pytest.mark.parametrize("damage", ["", "[1,", "[]", "{}", "null", '{"figures": {}}'])
def test_a_damaged_suite_is_named_with_a_remedy(tmp_path: Path, damage: str) -> None:
    disk = Disk(tmp_path)
    keep(disk, {"batch_id": 1}, [])
    keep(disk, {"batch_id": 2}, [])
    file = tmp_path / FOLDER / "2.json"
    file.write_text(damage)
    with pytest.raises(UnreadableOutcome, match=rf"^{file}, the outcome of the checks of batch 2, .* or delete it"):
        stored_outcomes(disk)
    file.unlink()
    assert [one.batch_id for one in stored_outcomes(disk)] == [1]
