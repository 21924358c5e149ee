"""Reach of a batch: every state file has exactly one verdict, and the commit removes the right files."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.plans.state_file import File
from windowlib.plans.reach import Reach, Verdict, reached

REMOVED = {Verdict.REWRITTEN, Verdict.DROPPED}


@given(st.lists(st.sampled_from(Verdict), max_size=6))
def test_every_file_is_in_the_group_of_its_verdict(verdicts: list[Verdict]) -> None:
    files = [File({"number": number}, {}) for number in range(len(verdicts))]
    found = reached(files, lambda file: verdicts[file.low["number"]])
    of_verdict = {one: [file for file, its in zip(files, verdicts, strict=True) if its is one] for one in Verdict}
    assert found.rewritten == of_verdict[Verdict.REWRITTEN]
    assert found.read == of_verdict[Verdict.READ]
    assert found.dropped == of_verdict[Verdict.DROPPED]
    assert sorted(found.replaced, key=files.index) == [f for f, v in zip(files, verdicts, strict=True) if v in REMOVED]
    assert found.is_empty == (set(verdicts) <= {Verdict.LEFT})


def test_a_batch_that_reaches_no_file_is_empty() -> None:
    nothing: Reach[File] = Reach()
    assert nothing.is_empty
    assert nothing.replaced == []
