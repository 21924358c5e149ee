"""The planted faults stay plantable: each sentence that one spoils is in the core, once."""

import pytest

from tests.support.faults import FAULTS, ROOT, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_spoils_one_place(fault: Fault) -> None:
    assert (ROOT / "windowlib" / fault.file).read_text().count(fault.right) == 1
    assert fault.right != fault.wrong
