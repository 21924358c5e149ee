"""A decision of an operator concerns only the batch that was named."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.clicks import clicks, clock
from windowlib.batches.may_run import check_may_run
from windowlib.batches.planning import ledger_of, plan
from windowlib.cli.main import main
from windowlib.decisions.verdicts import abandon, approve
from windowlib.definition.definition import Definition
from windowlib.ledger.ledger import Ledger, NothingToDecide, Rejected
from windowlib.ledger.prepare import Prepared
from windowlib.ledger.rows import LedgerState, prepare_row


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Definition:
    """Pipeline whose first batch was abandoned, and whose second batch waits because its checks refused it."""
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    definition = clicks(tmp_path, 1)
    plan(definition, clock)
    abandon(definition, "ann", "a wrong file", clock)
    plan(definition, clock)
    ledger_of(definition, clock).write(prepare_row(2, Prepared("_prepared/2.json", "checksum"), "one row a batch"))
    return definition


def state(definition: Definition) -> LedgerState:
    return ledger_of(definition).state()


@pytest.mark.parametrize("decide", [approve, abandon])
@pytest.mark.fault(
    "an operator decides on a batch that no longer waits", "refused; the message names the batch that waits"
)
def test_a_decision_names_the_batch_that_waits(refused: Definition, decide: Callable[..., int]) -> None:
    before = state(refused)
    with pytest.raises(NothingToDecide, match=r"batch 2 .*, not batch 1\. .* give --batch 2 if you mean that batch"):
        decide(refused, "ann", "why", clock, batch_id=1)
    assert state(refused) == before
    assert decide(refused, "ann", "why", clock, batch_id=2) == 2


def test_the_message_names_a_batch_that_is_committed_or_abandoned(refused: Definition) -> None:
    abandon(refused, "ann", "why", clock, batch_id=2)
    with pytest.raises(NothingToDecide, match="batch 2 is already committed or abandoned; no batch waits for approval"):
        approve(refused, "ann", "why", clock, batch_id=2)
    with pytest.raises(NothingToDecide, match="batch 7 was never planned, the newest is 2; no batch is planned"):
        abandon(refused, "ann", "why", clock, batch_id=7)


@pytest.mark.fault("a batch is abandoned while somebody approves it", "the approval is refused")
def test_an_approval_of_an_abandoned_batch_is_refused(refused: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    append, overtaken = Ledger._append, iter([True])

    def faster(ledger: Ledger, seen: LedgerState, *rows: object) -> None:
        if next(overtaken, False):
            abandon(refused, "ben", "first", clock)
        append(ledger, seen, *rows)  # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "_append", faster)
    with pytest.raises(NothingToDecide):
        approve(refused, "ann", "second", clock)
    assert state(refused).plan is None


@pytest.mark.parametrize("decision", ["approve", "abandon"])
def test_the_refusal_prints_commands_that_can_be_typed(refused: Definition, decision: str) -> None:
    with pytest.raises(Rejected) as said:
        check_may_run(refused, state(refused))
    [line] = [line for line in str(said.value).splitlines() if f"windowlib {decision} " in line]
    with pytest.raises(SystemExit) as ended:
        main(*shlex.split(line.partition("windowlib ")[2]))
    assert ended.value.code == 0


@pytest.mark.parametrize(("batch", "code"), [("1", 2), ("2", 0)])
def test_the_command_names_the_batch(
    refused: Definition, capsys: pytest.CaptureFixture[str], batch: str, code: int
) -> None:
    with pytest.raises(SystemExit) as ended:
        main("approve", str(refused.file), "--batch", batch, "--reason", "a busy day")
    assert ended.value.code == code
    assert "batch 2 " in "".join(capsys.readouterr())
    assert bool(state(refused).approved_by) == (code == 0)
