"""Columns in `[pages] hide` are on no page: neither keys of reruns nor values of verify."""

from __future__ import annotations

import html
import json
import re
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, PLAN_TIME_MS, START_MS, clicks, clock
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.mistakes import InvalidDefinition
from windowlib.inspection.verify.report import VerifyFinding
from windowlib.ledger.rerun_request import Rerun, RerunRefused
from windowlib.ledger.verifications import Verification
from windowlib.pages.last_verification import last_verification
from windowlib.pages.pipeline import pipeline
from windowlib.pages.pipeline_state import observe_pipeline
from windowlib.pages.site import report
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

NOW_MS, DAY_MS = PLAN_TIME_MS + 60_000, 24 * 3_600_000


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("usr", 'there is no column "usr"; did you mean user?'),
        ("Totals", 'there is no column "Totals"; did you mean total?'),
        ("the user", 'column "the user" is called "user" here, by source.rename'),
    ],
)
def test_a_misspelt_hidden_column_is_named(tmp_path: Path, name: str, said: str) -> None:
    clicks(tmp_path, 0, CLICKS.replace('key = ["user"]', 'key = ["user"]\nrename = { "the user" = "user" }'))
    with pytest.raises(InvalidDefinition, match=re.escape(f"pages.hide: {said}")):
        hiding(tmp_path, name)


def test_an_unnamed_column_may_be_hidden_unless_all_are_known(
    tmp_path: Path,
) -> None:
    clicks(tmp_path, 0)
    assert hiding(tmp_path, "email").hidden == {"email"}
    text = 'format = "csv"\nschema = { id = "string", user = "string", at_ms = "bigint", value = "bigint" }'
    clicks(tmp_path, 0, CLICKS.replace('format = "parquet"', text))
    with pytest.raises(InvalidDefinition, match=r'pages\.hide: there is no column "email"'):
        hiding(tmp_path, "email")


def hiding(folder: Path, *names: str) -> Definition:
    file = folder / "clicks.toml"
    text = file.read_text(encoding="utf-8").partition("[pages]")[0]
    file.write_text(f"{text}[pages]\nhide = {json.dumps(names)}\n", encoding="utf-8")
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / "clicks")})


@pytest.mark.spark
@pytest.mark.embedded
def test_a_key_is_in_no_title(folder: Path, spark: SparkSession) -> None:
    rerun = Rerun(START_MS, START_MS + DAY_MS, "slow", "ann", late_only=True, key=("u1",))
    advance(hiding(folder), lambda: spark, clock=clock, rerun=rerun)
    said = "readmit late events of 2026-03-02 00:00:00 UTC to 2026-03-03 00:00:00 UTC, key"
    for hidden, key in (((), "u1"), (("total",), "u1"), (("USER",), "hidden"), (("user",), "hidden")):
        definition = hiding(folder, *hidden)
        found = pipeline(observe_pipeline(definition, NOW_MS))
        assert found.runs[0].title == f"{said} {key}"
        assert found.overview.decided[0].what == f"{said} {key}"
    assert not re.search(r"\bu\d\b", html.unescape(Path(report(definition, NOW_MS)).read_text(encoding="utf-8")))


@pytest.mark.spark
@pytest.mark.embedded
def test_a_hidden_key_is_not_in_the_reason_of_an_abandoned_rerun(folder: Path, spark: SparkSession) -> None:
    rerun = Rerun(START_MS, START_MS + DAY_MS, "slow", "ann", late_only=True, key=("u99",))
    with pytest.raises(RerunRefused, match="key u99: there is no such late event"):
        advance(hiding(folder), lambda: spark, clock=clock, rerun=rerun)
    for names, is_shown in (((), True), (("user",), False)):
        definition = hiding(folder, *names)
        [given_up] = pipeline(observe_pipeline(definition, NOW_MS)).overview.decided
        assert given_up.what == "abandon batch 4"
        assert ("key u99" in given_up.reason) is is_shown
        assert ("u99" in Path(report(definition, NOW_MS)).read_text(encoding="utf-8")) is is_shown


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize("name", ["value", "VALUE"])
def test_aggregates_of_a_hidden_column_are_in_no_result(name: str, folder: Path) -> None:
    found = pipeline(observe_pipeline(hiding(folder, name), NOW_MS)).results
    columns = {column: {cells[place] for cells in found.cells} for place, column in enumerate(found.columns)}
    assert columns["total"] == columns["first"] == {"hidden"}
    assert "hidden" not in columns["clicks"] | columns["user"]


@pytest.mark.parametrize(
    ("hide", "expected"), [("value", ["value", "top"]), ("other", ["other"]), ("user", ["user", "top"])]
)
def test_results_of_user_code_are_hidden_with_any_column_it_reads(
    tmp_path: Path, hide: str, expected: list[str]
) -> None:
    (tmp_path / "own.py").write_text("class Top:\n    def process(self, key, window, elements):\n        yield ()\n")
    function = 'function = "own:Top"\nreads = ["value"]\noutput = { top = "double" }\n'
    text = CLICKS.partition("[aggregates]")[0].replace("[window]", f"[window]\n{function}")
    definition = clicks(tmp_path, files=0, definition=f'{text}[pages]\nhide = ["{hide}"]\n')
    assert definition.hidden == {*expected}


def test_a_difference_has_no_value_of_a_hidden_column(tmp_path: Path) -> None:
    clicks(tmp_path, files=0)
    rows = [
        VerifyFinding("different", "results", {"user": "ann"}, {"window_start_ms": 0}, "total", 4711, None),
        VerifyFinding("different", "results", {"user": "ann"}, {"window_start_ms": 0}, "clicks", 2, 3),
        VerifyFinding("missing", "open_windows", {"user": "ann"}, {"s": 0}, None, {"clicks": 5, "total": 4711}, None),
    ]
    differences = [json.dumps(asdict(one)) for one in rows]
    at = datetime(2026, 3, 5, tzinfo=UTC)
    last = Verification(at, 1, "different", None, None, 1, 0, 1, 9, {"results": 2}, {"results": 1}, differences, [])
    found = last_verification(hiding(tmp_path, "total"), last)
    assert found is not None
    assert [cells[-3:] for cells in found.differences.cells] == [
        ["total", "hidden", "hidden"],
        ["clicks", "2", "3"],
        ["", "{'clicks': 5, 'total': 'hidden'}", ""],
    ]
    shown = last_verification(hiding(tmp_path), last)
    assert shown is not None
    assert [cells[-2:] for cells in shown.differences.cells] == [
        ["4711", ""],
        ["2", "3"],
        ["{'clicks': 5, 'total': 4711}", ""],
    ]
