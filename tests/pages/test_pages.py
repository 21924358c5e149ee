"""Pages of four small pipelines on Sail: their contents equal the tables, and a browser shows them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support import browser, page_samples
from tests.support.disks import folder_of
from tests.support.page_samples import AS_OF_MS, HOUR_MS, NAMES, NEW, NOW_MS, SCRIPT, TROUBLE, WAITING, WELL
from windowlib.cli.main import app
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import utc
from windowlib.inspection.verify.report import VerifyFinding
from windowlib.ledger import verifications
from windowlib.model.errors import InvalidSpec
from windowlib.pages.changes.since_moment import Moment, known_changes
from windowlib.pages.overview import overviews
from windowlib.pages.pipeline import Pipeline, pipeline
from windowlib.pages.pipeline_state import State, observe_pipeline
from windowlib.pages.rows import EXAMPLES
from windowlib.pages.site import report, site
from windowlib.pages.waiting_batch import lines
from windowlib.publication.readers import read_table
from windowlib.storage.disk import Disk


def definition(folder: Path, name: str) -> Definition:
    return page_samples.definition(folder, name)


def facts(folder: Path, name: str) -> Pipeline:
    return pipeline(observe_pipeline(definition(folder, name), AS_OF_MS))


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    return samples


@pytest.fixture(scope="module")
def trouble(folder: Path) -> Pipeline:
    return facts(folder, TROUBLE)


def rows(folder: Path, table: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = read_table(definition(folder, TROUBLE), table).to_pylist()
    return found


def hour_of(moment: object) -> int:
    assert isinstance(moment, datetime)
    return int(moment.timestamp() * 1000) // HOUR_MS * HOUR_MS


def test_trouble_comes_first(folder: Path) -> None:
    found = overviews([definition(folder, name) for name in NAMES], AS_OF_MS)
    assert [(row.name, row.state) for row in found] == [
        (WAITING, State.WAITING),
        (TROUBLE, State.CURRENT),  # its checks warned
        (WELL, State.CURRENT),
        (NEW, State.NEW),
    ]
    assert [row.warns for row in found] == [True, True, False, False]
    clicks = found[1]
    assert clicks.watermark_ms is not None
    assert clicks.final_ms == clicks.watermark_ms + 1 - 30 * 60_000
    assert "row" in clicks.held_by[0]
    kept = rows(folder, "results")
    assert clicks.data is not None
    assert (utc(clicks.data.from_ms), utc(clicks.data.to_ms)) == (
        min(row["window_start"] for row in kept),  # type: ignore[type-var]
        max(row["window_end"] for row in kept),  # type: ignore[type-var]
    )
    assert found[3].data is None
    assert clicks.changed_ms is not None
    assert NOW_MS < clicks.changed_ms < AS_OF_MS


def test_a_pipeline_that_cannot_be_read_has_its_row(folder: Path, tmp_path: Path) -> None:
    broken = definition(folder, WELL).model_copy(update={"store": Disk(tmp_path)})
    (tmp_path / "ledger" / "_delta_log").mkdir(parents=True)
    (tmp_path / "ledger" / "_delta_log" / f"{0:020}.json").touch()
    [row] = overviews([broken], AS_OF_MS)
    assert row.state is State.FAILING
    assert "is empty" in row.why


def test_every_balance_adds_up_and_equals_the_tables(folder: Path, trouble: Pipeline) -> None:
    read, late, quarantined = 0, 0, Counter[str]()
    for listed in trouble.runs:
        assert [account.difference for account in listed.accounts] == [0] * len(listed.accounts)
        for account in listed.accounts:
            if account.title == "rows read":
                read += account.total
                late += sum(entry.rows for entry in account.went if entry.what == "late")
                quarantined.update({entry.reason: entry.rows for entry in account.went if entry.reason})
    assert read == sum(int(str(row["rows"])) for row in rows(folder, "source_files"))
    assert late == len(rows(folder, "late_events")) > 20
    assert quarantined == Counter(str(row["reason"]) for row in rows(folder, "quarantine"))


def test_a_wrong_balance_is_marked() -> None:
    from windowlib.pages.balance import accounts

    refused = {"rows_quarantined": 1, "quarantined_future": 1}
    [read, _] = accounts({"rows_read": 5, "rows_admitted": 3, "rows_late": 1, **refused})
    assert read.difference == 1


def test_changes_explain_the_difference_of_two_versions(folder: Path) -> None:
    made = definition(folder, TROUBLE)
    observed = observe_pipeline(made, AS_OF_MS)
    shown = pipeline(observed)
    table, known = observed.tables["results"], known_changes(made, observed.tables, observed.tail, shown.days)
    for run in observed.tail.runs:
        before = Counter[date]()
        for row in table.rows(table.files(run.versions["results"]), None):
            before[(row["window_end"] - timedelta(milliseconds=1)).date()] += row["total"]
        changed = known.since(Moment(f"batch {run.batch_id}", run.at_ms))
        assert changed.is_known
        place = changed.outputs.index("total")
        assert {day.day: day.before[place] for day in changed.days} == {
            day.day: before[day.day] for day in changed.days if day.day
        }
    assert {cause.cause for day in shown.changes[1].days for cause in day.causes} == {"firing", "rerun"}


def test_the_command_shows_changes(folder: Path) -> None:
    shown = CliRunner().invoke(app, ["changes", str(definition(folder, TROUBLE).file), "--since", "3"])
    assert shown.exit_code == 0, shown.output
    assert "ann: the phones' queue was stuck" in shown.output
    found = json.loads(
        CliRunner().invoke(app, ["changes", str(definition(folder, TROUBLE).file), "--since", "3", "--json"]).output
    )
    assert found["outputs"] == ["clicks", "total"]


def test_hours_hold_the_events_of_results_and_show_gaps(folder: Path, trouble: Pipeline) -> None:
    events, late = Counter[int](), Counter[int]()
    for row in rows(folder, "results"):
        events[hour_of(row["window_start"])] += int(str(row["clicks"]))
    for row in rows(folder, "late_events"):
        if row["readmitted_by"] is None:
            late[hour_of(row["event_time"])] += 1
    shown = {hour.start_ms: hour for hour in trouble.hours}
    assert {start: hour.events for start, hour in shown.items() if hour.events} == dict(events)
    assert {start: hour.late for start, hour in shown.items() if hour.late} == {
        start: count for start, count in late.items() if start in shown
    }
    # Every event that is in a window is in exactly one place: in results, or in flight and not fired.
    watermark_ms = trouble.overview.watermark_ms
    unfired = [row for row in rows(folder, "open_windows") if int(str(row["window_end_ms"])) > (watermark_ms or 0) + 1]
    assert sum(hour.in_flight for hour in trouble.hours) == sum(int(str(row["elements"])) for row in unfired) > 0
    assert any(hour.is_gap for hour in trouble.hours)


def test_the_trend_of_lateness_equals_the_table(folder: Path, trouble: Pipeline) -> None:
    late = [row for row in rows(folder, "late_events") if row["batch_id"] in range(1, 7)]
    at_most = {
        one["batch_id"]: max(int(str(row["late_by_ms"])) for row in late if row["batch_id"] == one["batch_id"])
        for one in late
    }
    found = {trend.title: {point.batch_id: point.value for point in trend.points} for trend in trouble.trends}
    assert found["How late, at most"] == at_most
    assert found["How late, median"].keys() == found["How late, 95 %"].keys() == at_most.keys()
    for batch_id, most in at_most.items():
        assert 0 <= found["How late, median"][batch_id] <= found["How late, 95 %"][batch_id] <= most


def test_links_lead_to_rows_of_files(folder: Path, trouble: Pipeline) -> None:
    future = next(one for one in trouble.refused if one.reason == "future")
    in_table = {
        (row["source_file"], row["source_row"]) for row in rows(folder, "quarantine") if row["reason"] == "future"
    }
    place = [future.examples.columns.index(name) for name in ("source_file", "source_row")]
    assert {(cells[place[0]], int(cells[place[1]])) for cells in future.examples.cells} == in_table
    [hour, *_] = trouble.late
    of_hour = [row for row in rows(folder, "late_events") if hour_of(row["event_time"]) == hour.start_ms]
    assert hour.count == len(of_hour)
    assert hour.most_late_ms == max(int(str(row["late_by_ms"])) for row in of_hour)
    assert trouble.what_if is not None
    assert trouble.what_if.late == len(rows(folder, "late_events"))


def test_checks_have_their_history(trouble: Pipeline) -> None:
    late = next(one for one in trouble.checks if "max_late_share" in one.sentence)
    assert trouble.checks[0].failures
    assert [one.batch_id for one in late.outcomes] == [1, 2, 3, 4, 5, 6]
    assert late.failures[0].result.expected == "0 % to 5 %"


def test_a_rerun_is_listed_with_who_and_why(trouble: Pipeline) -> None:
    [asked] = trouble.overview.decided
    assert (asked.who, asked.reason) == ("ann", "the phones' queue was stuck")
    run = trouble.runs[0].run
    assert trouble.runs[0].why == "ann: the phones' queue was stuck"
    assert run.files == run.figures["files_read"] > 0


def test_a_waiting_batch_shows_its_late_and_quarantined_rows(folder: Path) -> None:
    waiting = facts(folder, WAITING).waiting
    assert waiting is not None
    [refused] = [rows for rows in waiting.in_no_window if "raw" in rows.columns]
    assert refused.columns == ["why", "source_file", "source_row", "event_time", "raw"]
    assert {cells[0] for cells in refused.cells} == {"null_key"}
    [count] = [entry.rows for entry in waiting.accounts[0].went if entry.reason == "null_key"]
    assert len(refused.cells) == min(EXAMPLES, count) > 0
    assert all(line.startswith("null_key: source_file ") for line in lines(refused))


def test_the_commands_of_a_waiting_batch_run_when_pasted(folder: Path) -> None:
    waiting = facts(folder, WAITING).waiting
    assert waiting is not None
    assert ("Nearly every event has a user.", "critical") in [
        (one.result.sentence, one.result.severity) for one in waiting.failed
    ]
    assert waiting.since_ms is not None
    for command in (waiting.approve, waiting.abandon):
        program, *arguments = shlex.split(command)
        assert Path(program).name == "windowlib"
        assert shutil.which(program)
        assert "--reason" in arguments
    # On a copy: other tests need it to wait.
    copy = folder.parent / "copy of it"
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    moved = shlex.split(waiting.approve.replace(str(folder), str(copy)))[1:]
    done = CliRunner().invoke(app, moved)
    assert done.exit_code == 0, done.output
    assert facts(copy, WAITING).waiting is None
    assert facts(copy, WAITING).overview.decided[0].what == f"approve batch {waiting.batch_id}"


def test_the_command_that_explains_a_result_runs_when_pasted(folder: Path, trouble: Pipeline) -> None:
    shown, commands = trouble.results.cells, trouble.results.commands
    assert len(commands) == len(shown) == 25
    assert len(set(commands)) > 20
    for cells, command in list(zip(shown, commands, strict=True))[:: len(shown) // 2]:
        done = CliRunner().invoke(app, [*shlex.split(command)[1:], "--json"])
        assert done.exit_code == 0, done.output
        found = json.loads(done.output)
        row = dict(zip(trouble.results.columns, cells, strict=True))
        assert found["key"] == {"user": row["user"]}
        at_ms = int(datetime.fromisoformat(f"{row['window_start']}+00:00").timestamp() * 1000)
        assert at_ms in [window["bounds_ms"][0] for window in found["windows"]]


def test_a_page_of_a_pipeline_that_never_ran(folder: Path) -> None:
    new = facts(folder, NEW)
    assert new.overview.state is State.NEW
    assert (new.runs, new.trends, new.hours, new.results.cells) == ([], [], [], [])
    assert "There is no result yet." in Path(report(definition(folder, NEW), AS_OF_MS)).read_text(encoding="utf-8")


def _written(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def test_hidden_columns_are_on_no_page(folder: Path) -> None:
    shown = definition(folder, TROUBLE)
    written = shown.file.read_text(encoding="utf-8").replace("[checks]", '[pages]\nhide = ["user"]\n[checks]')
    hiding = load_definition(_written(folder / "hiding.toml", written))
    hidden = hiding.model_copy(update={"store": shown.store})
    texts = [Path(report(one, AS_OF_MS)).read_text(encoding="utf-8") for one in (shown, hidden)]
    keys = re.compile(r"u\d+&#34;|<td>u\d+</td>|alert\(1\)")
    assert [bool(keys.search(text)) for text in texts] == [True, False]


def test_two_pipelines_of_one_name_have_no_common_site(folder: Path, tmp_path: Path) -> None:
    one = definition(folder, WELL)
    with pytest.raises(InvalidSpec, match=f"two definitions have the name {WELL}"):
        site([one, one], Disk(tmp_path), AS_OF_MS)


def test_the_newest_verification_is_shown(
    request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    assert facts(folder, WELL).verified is None
    copy = folder.parent / "verified"
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    file = copy / f"{WELL}.toml"
    if page_samples.has_sail(request):
        ended = CliRunner().invoke(app, ["verify", str(file)])
        assert ended.exit_code == 0, ended.output
    else:
        subprocess.run([sys.executable, "-P", "-m", "windowlib", "verify", str(file)], check=True)
    found = facts(copy, WELL)
    assert found.verified is not None
    assert (found.verified.outcome, found.overview.warns) == ("equal", False)
    assert len(found.verified.differences.cells) == 0

    row = VerifyFinding("different", "results", {"user": SCRIPT}, {"start": 0, "end": 900_000}, "clicks", 2, 3)
    last = verifications.last(Disk(copy / "warehouse" / WELL))
    assert last is not None
    wrong = replace(last, outcome="different", differing={"results": 1}, differences=[json.dumps(asdict(row))])
    verifications.keep(Disk(copy / "warehouse" / WELL), wrong)
    found = facts(copy, WELL)
    assert found.verified is not None
    assert found.verified.differences.cells[0][2:] == [
        SCRIPT, "1970-01-01 00:00:00 UTC to 1970-01-01 00:15:00 UTC", "clicks", "2", "3",
    ]  # fmt: skip
    assert "verify found windows that differ from the source" in found.overview.warnings[0].sentence
    page = Path(report(definition(copy, WELL), AS_OF_MS)).read_text(encoding="utf-8")
    assert "differs from the source" in page
    assert SCRIPT not in page


# -- as a browser sees them -------------------------------------------------------------------------------------------


REFUSED = "the newest rows refused as future"  # a caption of rows that are to be opened
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(14, 17, 22)"


LOOKS = {  # how a page is looked at: on a screen of which size, in dark colours and with all of its parts opened or not
    "desktop": (browser.DESKTOP, False),
    "desktop, dark and opened": (browser.DESKTOP, True),
    "phone": (browser.PHONE, False),
    "phone, dark and opened": (browser.PHONE, True),
}
ALIKE = pytest.mark.long("make test looks at the home page, the fullest page and one that waits, each as it is hardest")
AT_ONCE = {TROUBLE: ("desktop", "phone, dark and opened"), ".": ("phone, dark and opened",)}
AT_ONCE |= {WAITING: ("phone, dark and opened",)}


def looked_at() -> Iterator[Any]:
    for page in (".", *NAMES):
        for how in LOOKS:
            now = how in AT_ONCE.get(page, ())
            yield pytest.param(page, how, id=f"{page}-{how}", marks=() if now else ALIKE)


@pytest.mark.usefixtures("_has_browser")
@pytest.mark.parametrize(("page", "how"), [*looked_at()])
def test_a_browser_shows_it_from_disk(request: pytest.FixtureRequest, pages: Path, page: str, how: str) -> None:
    address, (size, dark) = (pages / page / "index.html").resolve().as_uri(), LOOKS[how]
    seen = request.getfixturevalue("chromium").look(address, size, dark=dark, opened=dark)
    assert seen.requests == [address]  # nothing is loaded
    assert seen.complaints == []
    assert (seen.width, seen.too_wide) == (size[0], [])  # no sideways scroll
    assert seen.background == (DARK if dark else LIGHT)
    assert "As of 2026-03-05 12:10:00 UTC" in seen.text
    if page == TROUBLE:
        assert (REFUSED in seen.text) == dark  # where all is opened
        assert SCRIPT in seen.text or not dark  # as text


@pytest.mark.usefixtures("_has_browser")
def test_a_link_to_rows_opens_them(request: pytest.FixtureRequest, pages: Path) -> None:
    address = (pages / TROUBLE / "index.html").resolve().as_uri()
    anchors = re.findall(r'href="#(quarantine-[^"]+)"', (pages / TROUBLE / "index.html").read_text(encoding="utf-8"))
    assert set(anchors) == {"quarantine-future"}
    assert REFUSED in request.getfixturevalue("chromium").look(f"{address}#{anchors[0]}").text


@pytest.mark.usefixtures("_has_browser")
def test_the_browser_would_notice(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        '<meta name="viewport" content="width=device-width"><img src="http://127.0.0.1:9/x.png">'
        '<p style="width: 900px">wide</p><script>console.error("no")</script>',
        encoding="utf-8",
    )
    seen = request.getfixturevalue("chromium").look(page.as_uri(), browser.PHONE)
    assert seen.requests[1:] == ["http://127.0.0.1:9/x.png"]
    assert any("no" in one for one in seen.complaints)
    assert (seen.width, seen.too_wide) == (908, ["P.null"])


def test_a_key_is_text_and_links_lead_somewhere(pages: Path) -> None:
    for file in pages.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert re.findall("<script>.*", text) == ['<script>"use strict";']
        assert "://" not in re.sub(r"schedule|data:,", "", text)
        for link in re.findall(r'href="([^"#:]+)"', text):
            assert (file.parent / link).is_file(), f"{file} links to {link}"
        anchors = set(re.findall(r'href="#([^"]+)"', text))
        assert anchors <= set(re.findall(r'id="([^"]+)"', text))
    assert "&lt;script&gt;" in (pages / TROUBLE / "index.html").read_text(encoding="utf-8")


def test_the_time_of_a_page_names_its_zone(pages: Path) -> None:
    said = re.findall(r"As of (\S+ \S+ \S+)\.", (pages / "index.html").read_text(encoding="utf-8"))
    moment = datetime.fromtimestamp(AS_OF_MS / 1000, UTC)
    assert set(said) == {f"{moment:%Y-%m-%d %H:%M:%S} UTC"}


SAMPLE = re.compile(r'(?P<name>[a-zA-Z_]\w*)\{pipeline="(?P<pipeline>(?:[^"\\]|\\.)*)"\} (?P<value>\S+)', re.ASCII)
"""A sample as the grammar of the format specifies; read without the code that writes it."""


def read_metrics(file: Path) -> dict[str, dict[str, float]]:
    """By gauge and pipeline, the samples of a file; each gauge must be described and typed once, before its samples."""
    *lines, end, nothing = file.read_text(encoding="utf-8").split("\n")
    assert (end, nothing) == ("# EOF", "")
    found: dict[str, dict[str, float]] = {}
    described = ""
    for line in lines:
        if line.startswith("# HELP "):
            described = line.split(" ", 3)[2]
            assert described not in found
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {described} gauge"
            found[described] = {}
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert sample["name"] == described
            assert sample["pipeline"] not in found[described]
            found[described][sample["pipeline"]] = float(sample["value"])
    return found


def test_metrics_are_those_of_the_newest_batch(folder: Path, tmp_path: Path, trouble: Pipeline) -> None:
    site([definition(folder, name) for name in NAMES], Disk(tmp_path), AS_OF_MS)
    found = read_metrics(tmp_path / "metrics.prom")
    newest = trouble.runs[0].run
    read = next(listed.run for listed in trouble.runs if listed.run.rerun is None)
    assert {name: of[TROUBLE] for name, of in found.items() if TROUBLE in of} == {
        "windowlib_last_commit_timestamp_seconds": newest.at_ms / 1000,
        "windowlib_watermark_timestamp_seconds": (newest.watermark_out_ms or 0) / 1000,
        "windowlib_watermark_lag_seconds": ((newest.plan_time_ms or 0) - (newest.watermark_out_ms or 0)) / 1000,
        "windowlib_results": float(len(rows(folder, "results"))),
        "windowlib_fired": sum(read.figures[f"windows_fired_{how}"] for how in ("early", "on_time", "late")),
        "windowlib_read": read.figures["rows_read"],
        "windowlib_late": read.figures["rows_late"],
        "windowlib_quarantined": read.figures["rows_quarantined"],
        "windowlib_run_seconds": read.seconds,
        "windowlib_waiting_for_decision": 0,
        "windowlib_situations": 0,
    }
    assert found["windowlib_waiting_for_decision"] == {WELL: 0, TROUBLE: 0, WAITING: 1, NEW: 0}
    assert set(found["windowlib_results"]) == {WELL, TROUBLE, WAITING}
    report(definition(folder, WELL), AS_OF_MS)
    alone = read_metrics(folder_of(definition(folder, WELL)) / "metrics.prom")
    assert alone["windowlib_results"] == {WELL: found["windowlib_results"][WELL]}
