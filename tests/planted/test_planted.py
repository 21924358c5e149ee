"""The planted faults: each is still where it was, and a few of them are noticed."""

from __future__ import annotations

import pytest

from tests.planted.faults import FAULTS, Fault, planted


def test_there_are_thirty() -> None:
    assert len({fault.name for fault in FAULTS}) == 30
    assert all(fault.right != fault.wrong and fault.sentence for fault in FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_can_be_planted(fault: Fault) -> None:
    with planted(fault):
        pass
