"""A key in free text: examples of checks, malformed lines, reports."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from windowlib.contract.intake_tables import QUARANTINE
from windowlib.contract.record_tables import NOTICES, VERIFICATIONS
from windowlib.contract.tables import DQ_RESULTS, LEDGER
from windowlib.delta.tables import Tables
from windowlib.erasure import records as outside
from windowlib.erasure.tables import ErasureQuery
from windowlib.ledger import last_error, notices, verifications
from windowlib.ledger.ledger import Ledger
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.verifications import Verification
from windowlib.publication.key import Key
from windowlib.storage.disk import Disk

NOW = datetime(2026, 3, 2, tzinfo=UTC)
SHOP_AND_USER = Key(("shop", "user"), ("7", "ann"), (pa.int64(), pa.string()))
USER = Key(("user",), ("ann",), (pa.string(),))


def stays(key: Key, table: str, column: str, texts: list[str | None]) -> list[Any]:
    rule = ErasureQuery(key).rule_of(table)
    assert rule is not None
    return list(rule.remains(pa.table({column: pa.array(texts, pa.string())}))[column].to_pylist())


def test_forget_removes_quarantined_rows_and_malformed_lines_of_the_key() -> None:
    others = ['{"shop":7,"user":"anne"}', '{"shop":71,"user":"ann"}', "7;anna;x", "8;ann;x", None, '{"user":"ann"}']
    mine = ['{"shop":7,"user":"ann","at":"?"}', "7;ann;not a time", '{"shop": 7, "user": "ann", ']
    assert stays(SHOP_AND_USER, QUARANTINE.name, "raw", [*mine, *others]) == others


@pytest.mark.parametrize(
    ("kind", "text", "raw"),
    [
        (pa.bool_(), "true", '{"k": true}'),
        (pa.decimal128(10, 2), "1.5", '{"k": 1.50}'),
        (pa.date32(), "2026-03-02", '{"k": "2026-03-02"}'),
        (pa.timestamp("us", "UTC"), "2026-03-02T10:00:00Z", '{"k": "2026-03-02T10:00:00.000Z"}'),
        (pa.timestamp("us"), "2026-03-02T10:00:00.000005", '{"k": "2026-03-02T10:00:00.000005"}'),
        (pa.decimal128(30, 2), "-12345678901234567890.5", '{"k": -12345678901234567890.50}'),
        (pa.decimal128(10, 10), "0.0000000001", '{"k": 1E-10}'),
        (pa.binary(), "ab", '{"k": "YWI="}'),
        (pa.string(), 'a "b"', '{"k": "a \\"b\\""}'),
    ],
)
def test_quarantined_rows_are_compared_by_the_type_of_the_key(kind: pa.DataType, text: str, raw: str) -> None:
    assert stays(Key(("k",), (text,), (kind,)), QUARANTINE.name, "raw", [raw, '{"k": null}']) == ['{"k": null}']


def test_examples_of_checks_lose_the_key_and_keep_the_rest() -> None:
    said = ["2 unexpected among 9, such as ann, anne", "ann is fine", None]
    assert stays(USER, DQ_RESULTS.name, "observed", said) == ["2 unexpected among 9, such as …, anne", *said[1:]]


@pytest.mark.fault(
    "a key is erased that the ledger names in the reason of an abandoned rerun",
    "the reason no longer names it; text typed by people stays",
)
def test_forget_removes_the_key_from_an_abandoned_reruns_reason(tmp_path: Path) -> None:
    ledger = Ledger(Disk(tmp_path), lambda: 0)
    differs = "what it would change is different now:\n  ann: window 10:00 to 11:00\n  anne: window 9:00 to 9:30"
    by_itself = {"kind": "abandon", "batch_id": 2, "who": "windowlib", "reason": differs}
    typed = {"kind": "clock", "plan_time_ms": 0, "who": "bob", "reason": "ann said so"}
    ledger.write(by_itself)
    ledger.write(typed)
    assert outside.find(ledger.tables, USER, remove=True) == {"ledger": 1}
    assert [row["reason"] for row in rows_of(ledger)] == [differs.replace("ann:", "…:"), "ann said so"]


def test_the_ledger_does_not_name_the_key_of_readmitted_late_events(tmp_path: Path) -> None:
    ledger = Ledger(Disk(tmp_path), lambda: 0)
    readmitted = [Rerun(0, 1, "they called", "bob", late_only=True, key=of) for of in (("ann",), ("anne",), None)]
    for number, rerun in enumerate(readmitted, 1):
        of_batch = {"kind": "commit", "batch_id": number, "versions": {}, "counts": {}, "to_sequence": 0}
        ledger.write({**of_batch, "rerun": rerun.to_json()})
    assert outside.find(ledger.tables, USER, remove=True) == {"ledger": 1}
    kept = [Rerun.from_json(row["rerun"]) for row in rows_of(ledger)]
    assert kept == [replace(readmitted[0], key=()), *readmitted[1:]]
    assert [one.title.partition(", ")[2] for one in kept] == ["key erased since", "key anne", ""]


def rows_of(ledger: Ledger) -> list[dict[str, Any]]:
    table = ledger.tables["ledger"]
    rows = table.rows(table.files(table.version()), LEDGER.columns)
    return sorted(rows, key=lambda row: int(row["sequence"]))


def test_traces_next_to_the_tables_are_found_and_removed(tmp_path: Path) -> None:
    different = [json.dumps({"kind": "missing", "table": "results", "key": {"user": name}}) for name in ("ann", "bob")]
    made = Verification(NOW, 1, "different", None, None, 1.0, 0, 1, 2, {}, {"results": 2}, different, [])
    verifications.keep(Disk(tmp_path), made)
    kept = Verification(NOW, 2, "equal", None, None, 1.0, 0, 1, 2, {}, {}, [], [])
    verifications.keep(Disk(tmp_path), kept)
    notice = notices.Notice(NOW, NOW, "decision", "began", "2", "Observed 2 unexpected among 9, such as ann, anne.", 2)
    refused = "cannot readmit late events of all time, key ann: there is no such late event, or all of them are already"
    failed = notices.Notice(NOW, NOW, "failure", "began", refused, refused)
    notices.add(Disk(tmp_path), notices.reported(Disk(tmp_path)), [notice, failed])
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "1.json").write_text('{"partial_unexpected_list": ["ann"]}')
    (tmp_path / "checks" / "2.json").write_text('{"partial_unexpected_list": ["anne"]}')
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.html").write_text("<td>ann</td>")
    (tmp_path / "pages" / "days.json").write_text(
        '{"files": {"results/1.parquet": {"2026-03-05": [1, [[1, 97]], []]}}}'
    )
    last_error.keep(
        Disk(tmp_path), last_error.LastError("run", "cannot cast 'ann' to a number", 5, "/pipelines/clicks.toml")
    )
    tables = Tables(Disk(tmp_path))
    expected = {VERIFICATIONS.name: 1, NOTICES.name: 2, outside.FILES: 3}
    assert outside.find(tables, USER, remove=False) == expected
    assert (tmp_path / "checks" / "1.json").exists()
    assert outside.find(tables, USER, remove=True) == expected
    assert outside.find(tables, USER, remove=True) == {}
    table = tables[VERIFICATIONS.name]
    rows = list(table.rows(table.files(table.version()), VERIFICATIONS.columns))
    assert [len(json.loads(row["differences"])) for row in sorted(rows, key=lambda row: row["number"])] == [1, 0]
    assert verifications.last(Disk(tmp_path)) == kept
    assert [path.name for path in (tmp_path / "checks").iterdir()] == ["2.json"]
    assert not (tmp_path / "pages").exists()  # sums include the key
