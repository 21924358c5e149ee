"""Text of a dry run, and the source files that a rerun needs. No engine runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.clicks import CLICKS, clicks
from windowlib.definition.definition import Definition, load_definition
from windowlib.ledger.rerun_request import Rerun, RerunRefused
from windowlib.ledger.rows import SourceFile
from windowlib.model.rerun import TimeRange
from windowlib.reruns import preview_text as words
from windowlib.reruns import previews, source
from windowlib.reruns.page import preview_page
from windowlib.reruns.previews import Preview, Summary
from windowlib.reruns.source import KnownFile
from windowlib.reruns.totals import DayTotals, Total
from windowlib.storage.disk import Disk

DAY_MS = 86_400_000
ASKED = Rerun(0, 1500, "why", "ann")
NOTHING = Summary(
    windows={"added": 0, "changed": 0, "removed": 0, "extended": 0},
    totals={},
    in_flight=[0, 0],
    late_readmitted=0,
    rows_to_write={"results": 0},
    reaches_ms=[0, 60_000],
    files_read=1,
    bytes_read=999,
    files_missing=[],
    files_changed=0,
    files_waiting=0,
    largest=[],
)


def preview(**changes: Any) -> Preview:
    asked = Rerun(0, 60_000, "a wrong file", "ann")
    return Preview("p1", 120_000, asked, 4, 60_000, replace(NOTHING, **changes))


# -- words -----------------------------------------------------------------------------------------------------------


def test_facts_describe_the_changes() -> None:
    much = preview(
        windows={"added": 1_000, "changed": 2, "removed": 3, "extended": 4, "moved": 0},
        in_flight=[0, 4],
        late_readmitted=2,
        rows_to_write={"results": 1_003, "late_events": 0, "result_changes": 7},
        files_read=2,
        bytes_read=10_292,
        files_missing=["a.parquet"],
    )
    assert dict(words.facts(much)) == {
        "reaches": "1970-01-01 00:00:00 UTC to 1970-01-01 00:01:00 UTC",
        "reads": "2 files, 10.3 kB; 1 file missing, whose events are left out",
        "windows": "1,000 added, 2 changed, 3 removed, 4 extended",
        "late events": "2 late events join a window",
        "in flight": "0 before, 4 after",
        "rows": "1,003 into results, 7 into result_changes",
    }


def test_facts_leave_out_unchanged_parts() -> None:
    said = dict(words.facts(preview()))
    assert {*said} == {"reaches", "reads", "windows", "rows"}
    assert (said["reads"], said["rows"]) == ("1 file, 999 bytes", "none")
    assert dict(words.facts(preview(late_readmitted=1)))["late events"] == "1 late event joins a window"
    assert dict(words.facts(preview(in_flight=[3, 0])))["in flight"] == "3 before, 0 after"


TOTALS = {
    "events": Total(10, 12, 2, 20.0),
    "cost": Total("1234.50", "0.25", "-1234.25", -99.9797),
    "rate": Total(0.5, 1.5, 1.0, 200.0),
    "new": Total(0, 5, 5, None),
    "broken": Total(None, 2.0, None, None),
}


def test_totals_are_labelled_with_difference_and_percent() -> None:
    changed = preview(windows={"changed": 1}, results=Total(4_000, 3_000, -1_000, -25.0), totals=TOTALS)
    assert words.totals(changed) == (
        ["total of the range", "before", "after", "difference", "percent"],
        [
            ["results", "4,000", "3,000", "-1,000", "-25.0 %"],
            ["sum of events", "10", "12", "+2", "+20.0 %"],
            ["sum of cost", "1,234.50", "0.25", "-1,234.25", "-100.0 %"],
            ["sum of rate", "0.5", "1.50", "+1.00", "+200.0 %"],
            ["sum of new", "0", "5", "+5", ""],
            ["sum of broken", "no total", "2.00", "no total", ""],
        ],
    )
    assert words.notes(changed) == ['"no total": a value is NaN or infinite, or the total is too large']
    assert words.totals(preview())[1] == []


def test_totals_of_a_hidden_column_are_not_shown() -> None:
    day = DayTotals("2026-03-02", 1, Total(1, 1, 0, 0.0), TOTALS)
    made = preview(windows={"changed": 1}, totals=TOTALS, days=[day])
    assert words.totals(made, ["cost"])[1][1] == ["sum of cost", *["hidden"] * 4]
    assert words.days(made, ["cost"])[1][0][4] == "hidden"
    assert "1,234" not in words.markdown(made, ["user"], ["cost"])


def test_differences_by_day_are_in_order_and_the_busiest_are_kept() -> None:
    days = [
        DayTotals(f"2026-03-{n:02}", n % 4, Total(4, 5, 1, 25.0), {"n": Total(0, -3, -3, None)}) for n in range(1, 6)
    ]
    made = preview(windows={"changed": 1}, totals={"n": Total(0, -15, -15, None)}, days=days)
    names, rows = words.days(made)
    assert names == ["day (UTC)", "results that differ", "results", "sum of n"]
    assert rows[0] == ["2026-03-01", "1", "+1 (+25.0 %)", "-3"]
    assert len(rows) == 5
    assert words.left_out(made) == ""
    assert [row[0] for row in words.days(made, most=2)[1]] == ["2026-03-02", "2026-03-03"]
    assert words.left_out(made, most=2).startswith("3 days with fewer")


@pytest.mark.parametrize(
    ("waiting", "begins"),
    [
        (0, []),
        (1, ["1 new file is waiting for an ordinary run; this rerun does not read it"]),
        (2_000, ["2,000 new files are waiting for an ordinary run; this rerun does not read them"]),
        (None, ["the source could not be listed"]),
    ],
)
def test_new_files_that_a_rerun_does_not_read_are_noted(waiting: int | None, begins: list[str]) -> None:
    notes = words.notes(preview(files_waiting=waiting))
    assert [one.startswith(begin) for one, begin in zip(notes, begins, strict=True)] == [True] * len(begins)


def change(kind: str, user: str, windows: tuple[list[str], list[str]], before: Any, after: Any) -> dict[str, Any]:
    bounds = {"windows_before": windows[0], "windows_after": windows[1]}
    return {"change": kind, "user": user, **bounds, "before": before, "after": after}


LARGEST = [
    change("changed", "a|b", (["w1"], ["w1"]), {"n": 1, "s": 2}, {"n": 3_000, "s": 2}),
    change("added", "ann", ([], ["w2"]), None, {"n": 5, "s": 6}),
    change("removed", "bob", (["w3"], []), {"n": 7, "s": 8}, None),
    change("extended", "cy", (["w4"], ["w5"]), {"n": 7, "s": 8}, {"n": 9, "s": 9}),
    change("merged", "di", (["w6", "w7", "w8", "w9"], ["w10"]), {"n": 7}, {"n": 7, "s": 8}),
]
COUNTED = {"n": Total(0, 0, 0, None)}  # has a total


def test_the_largest_changes_show_what_was_and_what_is() -> None:
    made = preview(largest=LARGEST, totals=COUNTED)
    assert words.largest(made, ["user"], hide=["s"]) == (
        ["change", "user", "window (UTC)", "n", "s"],
        [
            ["changed", "a|b", "w1", "1 → 3,000 (+2,999)", "hidden"],
            ["added", "ann", "w2", "5", "hidden"],
            ["removed", "bob", "w3", "7 → gone", "hidden"],
            ["extended", "cy", "w4 → w5", "7 → 9 (+2)", "hidden"],
            ["merged", "di", "w6; w7; w8; and 1 more → w10", "7", "hidden"],
        ],
    )
    assert [row[-1] for row in words.largest(made, ["user"])[1]] == ["2", "6", "8 → gone", "8 → 9", ""]
    assert words.largest(preview(), ["user"]) == (["change", "user", "window (UTC)"], [])


def test_only_values_that_change_are_marked(tmp_path: Path) -> None:
    """Added and removed windows have no value to compare with."""
    made = preview(windows={"changed": 1}, largest=LARGEST, totals=COUNTED)
    assert words.changed_cells(made, ["user"]) == {(0, 3), (3, 3), (3, 4)}
    page = preview_page(clicks(tmp_path, files=0), made)
    assert re.findall(r"<mark>(.*?)</mark>", page) == ["1 → 3,000 (+2,999)", "7 → 9 (+2)", "8 → 9"]


def test_a_page_shows_the_difference_then_days_then_examples_and_folds_the_rest(tmp_path: Path) -> None:
    day = DayTotals("2026-03-02", 1, Total(1, 1, 0, 0.0), COUNTED)
    made = preview(windows={"changed": 1}, largest=LARGEST, totals=COUNTED, days=[day])
    page = preview_page(clicks(tmp_path, files=0), made)
    order = ["total of the range", "Differences by day", "Largest differences", "<details>", "To apply exactly this"]
    places = [page.index(part) for part in order]
    assert places == sorted(places)
    assert page.index("<details>") < page.index(">reads<") < page.index("</details>")


def test_a_page_says_that_nothing_changes_or_what_changes_most() -> None:
    empty = words.markdown(preview(), ["user"])
    assert "**No published window would change" in empty
    assert "Largest differences" not in empty
    full = words.markdown(preview(windows={"changed": 1}, largest=LARGEST), ["user"])
    assert "**No published window" not in full
    table = "| change | user | window (UTC) | n | s |\n|---|---|---|---|---|\n| changed | a\\|b | w1 |"
    assert f"### Largest differences\n\n{table}" in full
    assert "Reason: a wrong file  \nPreview `p1` of 1970-01-01 00:02:00 UTC, after batch 4" in full


@pytest.mark.parametrize("hide", [(), ("user",), ("total",)])
def test_a_key_that_is_hidden_is_in_no_title(tmp_path: Path, hide: tuple[str, ...]) -> None:
    asked = Rerun(0, 60_000, "slow", "bob", late_only=True, key=("u42",))
    made = replace(preview(), rerun=asked)
    definition = clicks(tmp_path, files=0, definition=f"{CLICKS}[pages]\nhide = {list(hide)}\n")
    texts = [words.markdown(made, ["user"], hide), preview_page(definition, made), words.title(asked, ["user"], hide)]
    for text in texts:
        assert ("u42" in text) is ("user" not in hide)
        assert ("key hidden" in text) is ("user" in hide)
    assert words.title(replace(asked, key=()), ["user"], hide).endswith(", key erased since")
    assert words.title(replace(asked, key=None), ["user"], hide).endswith("00:01:00 UTC")


def test_a_preview_changes_nothing_only_if_all_records_stay() -> None:
    assert preview().summary.changes_nothing
    for change in ({"late_readmitted": 1}, {"files_missing": ["a"]}, {"files_changed": 1}):
        assert not preview(**change).summary.changes_nothing
        assert preview(**change).summary.is_empty
    assert not preview(windows={"changed": 1}).summary.is_empty


# -- dry runs that are kept -------------------------------------------------------------------------------------------


def test_dry_runs_are_found_by_their_id_and_old_ones_lose_their_rows(tmp_path: Path) -> None:
    first_ms = 100 * DAY_MS
    for name, at_ms in (("old", first_ms), ("kept", first_ms + 1), ("new", first_ms + previews.KEPT_DAYS * DAY_MS + 1)):
        (tmp_path / previews.FOLDER / name).mkdir(parents=True)
        previews.keep(Disk(tmp_path), replace(preview(), preview_id=name, at_ms=at_ms))
    later = replace(preview(), preview_id="later", at_ms=first_ms + previews.KEPT_DAYS * DAY_MS + 1)
    previews.keep(Disk(tmp_path), later)  # the rows of the old one are gone already
    assert sorted(path.name for path in (tmp_path / previews.FOLDER).iterdir()) == ["kept", "new"]
    assert [one.preview_id for one in previews.previews(Disk(tmp_path))] == ["later", "new", "kept", "old"]
    assert previews.load(Disk(tmp_path), "kept") == replace(preview(), preview_id="kept", at_ms=first_ms + 1)
    with pytest.raises(RerunRefused, match="no preview 'other' here"):
        previews.load(Disk(tmp_path), "other")


def test_a_dry_run_is_read_back_as_it_was_and_one_of_an_earlier_format_is_refused(tmp_path: Path) -> None:
    day = DayTotals("2026-03-02", 1, Total(1, 1, 0, 0.0), TOTALS)
    made = preview(windows={"changed": 1}, results=Total(1, 1, 0, 0.0), totals=TOTALS, days=[day], largest=LARGEST)
    previews.keep(Disk(tmp_path), made)
    assert previews.load(Disk(tmp_path), "p1") == made
    previews.keep(Disk(tmp_path), replace(preview(format=1), preview_id="p0"))
    with pytest.raises(
        RerunRefused, match="preview p0 has format 1, but this version reads format 2; make a new preview"
    ):
        previews.load(Disk(tmp_path), "p0")
    assert [kept.preview_id for kept in previews.previews(Disk(tmp_path))] == ["p1"]


# -- files of the source ----------------------------------------------------------------------------------------------


def known(name: str = "a.parquet", low: int | None = 10, high: int | None = 19, **more: Any) -> KnownFile:
    then = SourceFile(name, 5, 6, 1)
    return KnownFile(then, more.pop("now", then), 3, low, high, **more)


def known_in(folder: Path, name: str = "a.parquet") -> KnownFile:
    """The file with its size, which tells where its footer is."""
    file = folder / "incoming" / name
    return known(name, now=SourceFile(name, file.stat().st_size, 6, 1) if file.exists() else None)


def test_the_events_of_a_file_are_those_that_it_had_and_has() -> None:
    assert known().events == TimeRange(10, 20)
    assert known(low=None, high=None).events is None
    assert known(events_now=TimeRange(5, 12)).events == TimeRange(5, 20)
    assert known(low=None, high=None, events_now=TimeRange(5, 12)).events == TimeRange(5, 12)


@pytest.mark.parametrize(
    ("span", "reach_ms", "meets"),
    [((19, 30), 0, True), ((20, 30), 0, False), ((20, 30), 1, True), ((0, 10), 0, False), ((0, 11), 0, True)],
)
def test_a_file_meets_a_span_with_its_first_and_its_last_event(
    span: tuple[int, int], reach_ms: int, meets: bool
) -> None:
    assert known().meets(TimeRange(*span), reach_ms) == meets
    assert not known(low=None, high=None).meets(TimeRange(*span), reach_ms)
    assert known(low=None, high=None, events_now=TimeRange(10, 20)).meets(TimeRange(*span), reach_ms) == meets


def definition(folder: Path, window: str = 'type = "session"\ngap = "10ms"') -> Definition:
    text = f"""
name = "clicks"
[source]
path = "incoming"
format = "parquet"
key = ["user"]
timestamp = "at"
timestamp_unit = "ms"
[watermark]
out_of_orderness = "0s"
[window]
{window}
[aggregates]
n = "count(*)"
"""
    (folder / "incoming").mkdir(exist_ok=True)
    (folder / "clicks.toml").write_text(text, encoding="utf-8")
    return load_definition(folder / "clicks.toml")


def reading(of: Definition, files: Sequence[KnownFile], span: TimeRange) -> list[KnownFile]:
    return source.reading(of.source, of.spec.assigner, files, span)


def test_files_without_events_are_read_where_they_may_have_some_now(tmp_path: Path) -> None:
    changed = SourceFile("a.parquet", 9, 9, 1)
    empty = {"low": None, "high": None}
    files = [
        known("outside.parquet", 100, 110),
        known("inside.parquet"),
        known("never.parquet", **empty),
        known("changed.parquet", **empty, now=changed),
        known("replaced.parquet", **empty, now=None, replaced=True),
    ]
    found = reading(definition(tmp_path), files, TimeRange(15, 30))
    assert [file.path for file in found] == ["inside.parquet", "changed.parquet", "replaced.parquet"]


@pytest.mark.parametrize(("longest_ms", "is_read"), [(30, False), (31, True)])
def test_an_element_whose_own_gap_reaches_into_the_span_is_read(tmp_path: Path, longest_ms: int, is_read: bool) -> None:
    dynamic = definition(tmp_path, 'type = "session"\ngap_column = "gap"')
    gaps = pa.table({"at": [10, 19], "gap": [longest_ms, 1], "other": [500, 500]})
    pq.write_table(gaps, tmp_path / "incoming" / "a.parquet", row_group_size=1)
    assert bool(reading(dynamic, [known_in(tmp_path)], TimeRange(50, 60))) == is_read


def test_a_file_without_gap_statistics_is_read(tmp_path: Path) -> None:
    dynamic = definition(tmp_path, 'type = "session"\ngap_column = "gap"')
    pq.write_table(pa.table({"at": [10], "gap": [1]}), tmp_path / "incoming" / "a.parquet", write_statistics=["at"])
    (tmp_path / "incoming" / "gap=45").mkdir()
    pq.write_table(pa.table({"at": [10]}), tmp_path / "incoming" / "gap=45" / "a.parquet")
    for name in ("a.parquet", "gap=45/a.parquet", "gone.parquet"):
        file = known_in(tmp_path, name)
        assert reading(dynamic, [file], TimeRange(50, 60))
        assert not reading(dynamic, [file], TimeRange(0, 10)), "it is before the file"


def test_a_file_that_is_gone_is_named_unless_that_is_accepted(tmp_path: Path) -> None:
    of, covered = definition(tmp_path).source, TimeRange(10, 20)
    gone = [known(f"{number}.parquet", now=None) for number in range(6)]
    with pytest.raises(RerunRefused) as said:
        source.check_files(of, gone, covered, ASKED)
    assert "6 files with 18 rows" in str(said.value)
    assert "  4.parquet: 3 rows, 1970-01-01 00:00:00.010 UTC" in str(said.value)
    assert "\n  and 1 more\nRestore them, or add --accept-gap: the rerun removes their events" in str(said.value)
    source.check_files(of, gone, covered, replace(ASKED, accept_gap=True))
    source.check_files(of, [known(now=None, replaced=True)], covered, ASKED)
    with pytest.raises(RerunRefused, match="1 file with 3 rows") as said:
        source.check_files(of, gone[:1], covered, ASKED)
    assert "more\n" not in str(said.value)
    assert source.listed(gone[:5]).count("\n") == 4


def test_late_events_are_readmitted_without_a_file_that_is_gone_by_a_rerun(tmp_path: Path) -> None:
    """Readmission has no such option, because it may not remove events from windows."""
    of, gone = definition(tmp_path).source, [known(now=None)]
    with pytest.raises(RerunRefused) as said:
        source.check_files(of, gone, TimeRange(10, 20), replace(ASKED, late_only=True))
    span = "--from 1970-01-01T00:00:00Z --to 1970-01-01T00:00:01.500Z"
    command = f"rerun {of.file} {span} --accept-gap --dry-run` shows the changes."
    assert command in str(said.value)
    assert "add --accept-gap" not in str(said.value)


def test_a_file_that_has_changed_must_lie_in_what_is_recomputed(tmp_path: Path) -> None:
    of, changed = definition(tmp_path).source, known(now=SourceFile("a.parquet", 9, 9, 1))
    source.check_files(of, [changed], TimeRange(10, 20), ASKED)
    with pytest.raises(RerunRefused, match=r"--from 1970-01-01T00:00:00\.010Z --to 1970-01-01T00:00:00\.020Z"):
        source.check_files(of, [changed], TimeRange(10, 19), ASKED)
    source.check_files(of, [known()], TimeRange(0, 1), ASKED)


def test_a_missing_file_takes_one_line_whatever_its_name() -> None:
    gone = KnownFile(SourceFile("part\n9\x1b.parquet", 1, 1, 1), None, 5_020, None, None)
    assert source.listed([gone]) == "  part\\x0a9\\x1b.parquet: 5,020 rows, no event"
