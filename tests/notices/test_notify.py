"""Situations are reported once per change and at their end, to a real server; a failure stops no run."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from tests.support.check_samples import FIGURES, HISTORY, check, definition, results_file
from tests.support.disks import folder_of
from windowlib.batches.planning import ledger_of, plan
from windowlib.cli.main import app
from windowlib.contract.tables import DQ_RESULTS, SOURCE_FILES
from windowlib.decisions.verdicts import abandon
from windowlib.definition.commands import to_paste
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.instants import instant, utc
from windowlib.delta import commits as delta_commits
from windowlib.delta import data_files, row_groups
from windowlib.delta import small_tables as small
from windowlib.delta.tables import Tables
from windowlib.ledger.acknowledgements import acknowledge, acknowledged
from windowlib.ledger.notices import DYING_MS, add, reported
from windowlib.ledger.prepare import Prepared
from windowlib.ledger.rows import prepare_row
from windowlib.ledger.set_aside_files import SetAsideDecision
from windowlib.ledger.set_aside_files import decide as set_aside
from windowlib.notices.notify import CommandOutcome, notify
from windowlib.notices.situations import situations
from windowlib.pages.overview import overview
from windowlib.pages.pipeline_state import observe_pipeline
from windowlib.runs.advance import advance

NOW_MS, HOUR_MS = 1_763_700_000_000, 3_600_000
WELL, UNKNOWN = CommandOutcome(is_well=True), CommandOutcome()
TOKEN = "not-to-be-written-anywhere"
MANY_LATE = {**FIGURES, "rows_late": 98, "late_rows_written": 98, "events_in_state_after": 782}


@dataclass
class Server:
    """A webhook that records requests and gives prepared answers."""

    url: str = ""
    got: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answer: int = 200
    waits_s: float = 0

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(one["situation"], one["what"]) for one in self.got]


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            time.sleep(found.waits_s)
            if found.answer == 200:
                found.got.append(body)
                found.headers.append(dict(self.headers))
            self.send_response(found.answer)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *about: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        found.url = f"http://127.0.0.1:{listening.server_port}/hook-{TOKEN}"
        yield found
        listening.shutdown()
        thread.join()


@pytest.fixture
def clicks(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Definition:
    monkeypatch.setenv("HOOK", server.url)
    monkeypatch.setenv("HOOK_TOKEN", TOKEN)
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    notify = '[notify]\nwebhook_variable = "HOOK"\ntoken_variable = "HOOK_TOKEN"\nfreshness = "2h"\ntimeout = "2s"\n'
    made = definition(tmp_path, checks=notify)
    folder = tmp_path / "incoming"
    folder.mkdir()
    events = {"user_id": ["a"], "ts": pa.array([NOW_MS * 1000], pa.timestamp("us", tz="UTC"))}
    pq.write_table(pa.table(events), folder / "1.parquet")
    return made


def notes_of(clicks: Definition, ended: CommandOutcome = WELL, now_ms: int = NOW_MS) -> list[str]:
    """Sends due notices and returns the notes."""
    notes = list[str]()
    notify(clicks, ended, now_ms, None, notes.append)
    return notes


def refused(clicks: Definition) -> int:
    """A batch that waits for a decision."""
    frozen = plan(clicks, lambda: NOW_MS)
    assert frozen is not None
    why = "- Every row is usable. Expected 0, observed 1."
    ledger_of(clicks, lambda: NOW_MS).write(prepare_row(frozen.batch_id, Prepared("_prepared/1.json", "checksum"), why))
    return frozen.batch_id


def committed(clicks: Definition, watermark_ms: int, batch_id: int = 1, **versions: int) -> None:
    row = {"kind": "commit", "batch_id": batch_id, "plan_time_ms": NOW_MS, "watermark_out_ms": watermark_ms}
    row |= {"to_sequence": 0, "versions": versions, "counts": {}, "fingerprint": clicks.fingerprint}
    row |= {"late_out_ms": watermark_ms}
    stored = json.dumps(clicks.semantics(), sort_keys=True)
    ledger_of(clicks, lambda: NOW_MS).write({**row, "definition": stored})


def test_a_waiting_batch_is_reported_once_and_at_its_end(clicks, server):
    batch_id = refused(clicks)
    assert notes_of(clicks) == notes_of(clicks) == []
    [notice] = server.got
    assert notice["sentence"] == (
        f"batch {batch_id} was refused by its checks and waits for a decision:"
        " - Every row is usable. Expected 0, observed 1."
    )
    assert notice["text"].startswith("clicks: decision: batch 1 ")
    assert notice["command"] == to_paste("approve", clicks.file, "--batch", str(batch_id), "--reason", "…")
    assert server.headers[0]["Authorization"] == f"Bearer {TOKEN}"
    abandon(clicks, "ann", "a wrong file", lambda: NOW_MS)
    notes_of(clicks)
    notes_of(clicks)
    assert server.said == [("decision", "began"), ("decision", "over")]


def test_an_error_lasts_until_another_error_or_a_success(clicks, server):
    for sentence in ("file 17 is cut off", "file 18 is cut off", "the disk is full"):
        notes_of(clicks, CommandOutcome(sentence))
    notes_of(clicks, UNKNOWN)
    assert server.said == [("failure", "began"), ("failure", "changed")]
    notes_of(clicks)
    assert server.said[2:] == [("failure", "over")]


@pytest.mark.fault(
    "a webhook does not answer, or answers with an error", "a note is printed; the next run sends the notice again"
)
@pytest.mark.parametrize(("answer", "waits_s"), [(500, 0), (302, 0), (200, 5)])
def test_a_failed_delivery_is_kept_and_repeated(clicks, server, answer, waits_s):
    quick = clicks.model_copy(update={"notify": clicks.notify.model_copy(update={"timeout_ms": 300})})
    server.answer, server.waits_s = answer, waits_s
    began = time.monotonic()
    [note] = notes_of(quick, CommandOutcome("the disk is full"))
    assert time.monotonic() - began < 5
    assert "the webhook at 127.0.0.1" in note
    kept = reported(clicks.store).newest["failure"]
    assert (kept.delivered, kept.what) == (False, "began")
    server.answer, server.waits_s, server.got = 200, 0, []
    for _ in range(2):
        assert notes_of(clicks, CommandOutcome("the disk is full")) == []
    assert server.said == [("failure", "began")]


def test_no_secret_is_written_or_said(clicks, server, monkeypatch):
    server.answer = 500
    notes = notes_of(clicks, CommandOutcome("the disk is full"))
    monkeypatch.setenv("HOOK", f"ftp://{TOKEN}")
    notes += notes_of(clicks, CommandOutcome("the disk is full"))
    monkeypatch.delenv("HOOK")
    notes += notes_of(clicks, CommandOutcome("the disk is full"))
    assert "notify.webhook_variable: the environment variable HOOK is not set" in notes[-1]
    assert not any(TOKEN in note for note in notes)
    written = [file for file in folder_of(clicks).rglob("*") if file.is_file()]
    assert written
    assert not any(TOKEN.encode() in file.read_bytes() for file in written)


def test_one_of_several_processes_sends_a_notice(clicks, server):
    refused(clicks)
    together = threading.Barrier(4)

    def one() -> None:
        together.wait()
        assert notes_of(clicks) == []

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.said == [("decision", "began")]
    before = reported(clicks.store)
    assert add(clicks.store, before, list(before.newest.values()))
    assert not add(clicks.store, before, list(before.newest.values()))


@pytest.mark.fault("a process dies while it sends a notice", "the notice is sent again: once, at worst twice")
def test_a_notice_of_a_dead_process_is_sent_again(clicks, server):
    refused(clicks)
    notes_of(clicks)
    before = reported(clicks.store)
    add(clicks.store, before, [replace(before.newest["decision"], delivered=None)])
    notes_of(clicks, now_ms=NOW_MS + DYING_MS - 1)
    assert len(server.got) == 1
    notes_of(clicks, now_ms=NOW_MS + DYING_MS)
    assert server.said == [("decision", "began")] * 2


def test_an_acknowledged_situation_is_quiet_until_its_end(clicks, server):
    refused(clicks)
    ledger = ledger_of(clicks, lambda: NOW_MS)
    before = ledger.state()
    acknowledge(ledger, "decision", NOW_MS + HOUR_MS, "ann", "on it")
    after = ledger.state()
    assert replace(after, version=before.version, sequence=before.sequence) == before
    assert notes_of(clicks, now_ms=NOW_MS + HOUR_MS - 1) == []
    assert server.got == []
    notes_of(clicks, now_ms=NOW_MS + HOUR_MS)
    assert server.said == [("decision", "began")]


def test_an_acknowledgement_is_found_behind_many_rows(clicks):
    ledger = ledger_of(clicks, lambda: NOW_MS)
    acknowledge(ledger, "warning", NOW_MS + 2, "ann", "known")
    acknowledge(ledger, "silence", NOW_MS + 2, "ann", "closed")
    acknowledge(ledger, "silence", NOW_MS + 1, "bob", "open again")
    for _ in range(2 * small.SMALL_FILES):
        ledger.write({"kind": "clock", "plan_time_ms": NOW_MS, "who": "ann", "reason": ""})
    found = acknowledged(Tables(clicks.store), NOW_MS)
    assert {key: (one.who, one.until_ms) for key, one in found.items()} == {
        "warning": ("ann", NOW_MS + 2),
        "silence": ("bob", NOW_MS + 1),
    }
    assert set(acknowledged(Tables(clicks.store), NOW_MS + 1)) == {"warning"}


def test_a_lagging_watermark_is_reported_with_its_end(clicks, server):
    committed(clicks, NOW_MS - 2 * HOUR_MS)
    notes_of(clicks)
    assert server.got == []
    notes_of(clicks, now_ms=NOW_MS + 60_000)
    notes_of(clicks, now_ms=NOW_MS + 120_000)
    assert server.got[0]["sentence"].endswith("UTC: 2h 1m behind the clock, and 2h is allowed")
    committed(clicks, NOW_MS, batch_id=2)
    notes_of(clicks, now_ms=NOW_MS + 180_000)
    assert server.said == [("freshness", "began"), ("freshness", "over")]


def arrivals(clicks: Definition, hours: Iterable[int]) -> int:
    """Records files read this many hours after the plan; returns the version of their table."""
    table = Tables(clicks.store)[SOURCE_FILES.name]
    version = delta_commits.create(table, SOURCE_FILES.schema())
    for hour in hours:
        at_ns = (NOW_MS + hour * HOUR_MS) * 1_000_000
        row = {"path": f"{hour}.parquet", "size_bytes": 1, "modified_ns": at_ns, "sequence": hour, "batch_id": 1}
        version = small.append_rows(table, version, [row])
    return version


def test_a_source_silent_for_longer_than_usual_is_reported(clicks, server):
    version = arrivals(clicks, [*range(30), 90])  # every hour, and once after sixty
    newest_ms = NOW_MS + 90 * HOUR_MS
    committed(clicks, newest_ms, source_files=version)
    patient = clicks.model_copy(update={"notify": clicks.notify.model_copy(update={"freshness_ms": None})})
    notes_of(patient, now_ms=newest_ms + 3 * HOUR_MS // 2)
    assert server.got == []
    notes_of(patient, now_ms=newest_ms + 2 * HOUR_MS)
    assert server.got[0]["sentence"].startswith("no new file for 2h, and at most 1h 30m is usual; the newest came ")
    at_home = observe_pipeline(patient, newest_ms + 2 * HOUR_MS)
    assert at_home.still == [server.got[0]["sentence"]]
    assert overview(at_home).warns
    longer = patient.model_copy(update={"notify": patient.notify.model_copy(update={"silence_ms": 3 * HOUR_MS})})
    assert situations(longer, newest_ms + 2 * HOUR_MS) == []


@pytest.mark.parametrize("silence_ms", [None, 6 * HOUR_MS])
def test_a_silence_lasts_until_a_file_comes(clicks, server, silence_ms):
    """After eight weeks it was over, as no file had come in them."""
    committed(clicks, NOW_MS, source_files=arrivals(clicks, range(30)))
    about = clicks.notify.model_copy(update={"freshness_ms": None, "silence_ms": silence_ms})
    patient = clicks.model_copy(update={"notify": about})
    for days in (2, 55, 57, 60, 400):
        assert notes_of(patient, now_ms=NOW_MS + 24 * days * HOUR_MS) == []
    assert server.said == [("silence", "began")]


def wait(clicks: Definition, path: str, at_ms: int) -> Path:
    """A file of the source that arrives at a time, and that no batch reads."""
    file = clicks.source.path / path
    file.write_bytes(b"no run can read this")
    os.utime(file, ns=(at_ms * 1_000_000, at_ms * 1_000_000))
    return file


@pytest.fixture
def silent(clicks: Definition) -> Definition:
    """A pipeline that read a file each hour until seven hours ago; six hours are allowed."""
    committed(clicks, NOW_MS, source_files=arrivals(clicks, range(-30, 1)))
    about = clicks.notify.model_copy(update={"freshness_ms": None, "silence_ms": 6 * HOUR_MS})
    (clicks.source.path / "1.parquet").unlink()
    return clicks.model_copy(update={"notify": about})


def silences(of: Definition, now_ms: int) -> list[str]:
    """The sentences about a silent source, which notices and pages have alike."""
    reported = [one.sentence for one in situations(of, now_ms) if one.kind == "silence"]
    assert [one for one in observe_pipeline(of, now_ms).still if one.startswith("no new file")] == reported
    return reported


@pytest.mark.parametrize(
    "why", ["no run has read it", "it is planned", "it is too young to be read", "it is set aside"]
)
def test_a_source_with_a_waiting_file_is_not_silent(silent: Definition, why: str) -> None:
    later_ms = NOW_MS + 7 * HOUR_MS
    assert silences(silent, later_ms) != []
    wait(silent, "new.parquet", later_ms - HOUR_MS)
    source = {"max_files_per_run": 1, "min_file_age_ms": 2 * HOUR_MS if why == "it is too young to be read" else 0}
    of = silent.model_copy(update={"source": silent.source.model_copy(update=source)})
    if why == "it is planned":
        row = {"path": "new.parquet", "size_bytes": 20, "modified_ns": (later_ms - HOUR_MS) * 1_000_000, "sequence": 1}
        columns = {"batch_id": 2, "plan_time_ms": later_ms, "from_sequence": 0, "to_sequence": 1, "files": [row]}
        stored = {"definition": json.dumps(of.semantics(), sort_keys=True), "fingerprint": of.fingerprint}
        ledger_of(of, lambda: later_ms).write({"kind": "plan", **columns, **stored})
        (of.source.path / "new.parquet").unlink()  # as if its folder had been moved since
    if why == "it is set aside":
        set_aside(of.store, SetAsideDecision("new.parquet", utc(later_ms), "ann", "no columns"))
    assert silences(of, later_ms) == []


def test_a_silence_begins_with_the_newest_file_that_waits(silent: Definition) -> None:
    for hour in (1, 2, 3):
        wait(silent, f"new-{hour}.parquet", NOW_MS + hour * HOUR_MS)
    assert silences(silent, NOW_MS + 9 * HOUR_MS) == []
    [sentence] = silences(silent, NOW_MS + 10 * HOUR_MS)
    newest = instant(NOW_MS + 3 * HOUR_MS)
    assert sentence == f"no new file for 7h, and at most 6h is allowed; the newest came {newest}"


def test_a_source_that_cannot_be_listed_is_not_called_silent(silent: Definition) -> None:
    shutil.rmtree(silent.source.path)
    assert silences(silent, NOW_MS + 7 * HOUR_MS) == []
    assert "does not exist" in (observe_pipeline(silent, NOW_MS + 7 * HOUR_MS).status.source_problem or "")


@pytest.mark.spark
@pytest.mark.embedded
def test_a_batch_without_files_does_not_end_a_silence(clicks, server, spark):
    """With `idle_timeout` a run of a silent source plans one where a window ends."""
    text = clicks.file.read_text(encoding="utf-8").replace('freshness = "2h"', 'silence = "6h"')
    clicks.file.write_text(text.replace('rness = "5m"', 'rness = "5m"\nidle_timeout = "1h"'), encoding="utf-8")
    silent, arrived = load_definition(clicks.file), clicks.file.parent / "incoming" / "1.parquet"
    os.utime(arrived, (NOW_MS // 1000, NOW_MS // 1000))
    assert len(advance(silent, lambda: spark, clock=lambda: NOW_MS + 120_000)) == 1
    later_ms = NOW_MS + 7 * HOUR_MS
    notes_of(silent, now_ms=later_ms)
    assert server.said == [("silence", "began")]
    frozen = plan(silent, lambda: later_ms)
    assert frozen is not None
    assert frozen.files == ()
    notes_of(silent, now_ms=later_ms)
    assert len(advance(silent, lambda: spark, clock=lambda: later_ms)) == 1
    notes_of(silent, now_ms=later_ms)
    assert server.said == [("silence", "began")]
    os.utime(shutil.copy(arrived, arrived.with_name("2.parquet")), (later_ms // 1000, later_ms // 1000))
    plan(silent, lambda: later_ms + 120_000)  # what is planned has arrived
    notes_of(silent, now_ms=later_ms + 120_000)
    assert server.said[1:] == [("silence", "over")]


def test_a_silence_check_reads_few_files(clicks, monkeypatch: pytest.MonkeyPatch):
    table = Tables(clicks.store)[SOURCE_FILES.name]
    version = delta_commits.create(table, SOURCE_FILES.schema())
    times_ms = [NOW_MS + minutes * 60_000 for minutes in range(0, 400 * 24 * 60, 60)]  # an hour apart, for 400 days
    rows = [
        {"path": f"{n}.parquet", "size_bytes": 1, "modified_ns": at_ms * 1_000_000, "sequence": n, "batch_id": 1}
        for n, at_ms in enumerate(times_ms)
    ]
    version = small.append_rows(table, version, rows)
    committed(clicks, times_ms[-1], source_files=version)
    read: list[tuple[int, list[str]]] = []
    shaped = row_groups.shaped
    monkeypatch.setattr(
        row_groups, "shaped", lambda of, to: read.append((of.num_rows, of.column_names)) or shaped(of, to)
    )
    said = [one.sentence for one in situations(clicks, times_ms[-1] + 2 * HOUR_MS) if one.kind == "silence"]
    assert "at most 1h 30m is usual" in said[0]
    [seen] = [rows for rows, columns in read if columns == ["modified_ns"]]
    assert 56 * 24 <= seen <= 56 * 24 + data_files.ROWS_PER_GROUP < len(rows)


def judged(clicks: Definition, *batches: int) -> int:
    """Records that these batches were judged and are in force; returns the version of `dq_results`."""
    table = Tables(clicks.store)[DQ_RESULTS.name]
    version = delta_commits.create(table, DQ_RESULTS.schema())
    return small.append_rows(table, version, [{"batch_id": number, "success": True} for number in batches])


def test_abandoned_and_undone_batches_do_not_warn(clicks):
    check(clicks, {**FIGURES, "batch_id": 7}, HISTORY)
    check(clicks, {**MANY_LATE, "batch_id": 8}, HISTORY)
    version = judged(clicks, 7)
    committed(clicks, NOW_MS, batch_id=9, dq_results=version)  # a rollback to 7, or what came after 8 was abandoned
    assert situations(clicks, NOW_MS) == []
    version = small.append_rows(Tables(clicks.store)[DQ_RESULTS.name], version, [{"batch_id": 8, "success": False}])
    committed(clicks, NOW_MS, batch_id=10, dq_results=version)
    assert [one.key for one in situations(clicks, NOW_MS)] == ["warning.events.late_share"]


def test_a_warning_names_its_check_and_only_chosen_ones_are_sent(clicks, server):
    committed(clicks, NOW_MS, batch_id=7, dq_results=judged(clicks, 7))
    check(clicks, MANY_LATE, HISTORY)
    fewer = clicks.model_copy(update={"notify": clicks.notify.model_copy(update={"about": ("failure",)})})
    notes_of(fewer)
    assert server.got == []
    notes_of(clicks)
    [notice] = server.got
    assert notice["situation"] == "warning.events.late_share"
    assert notice["command"] == to_paste("checks", clicks.file, "--explain", "events.late_share")
    assert "observed 10 % (98 of 980)." in notice["sentence"]
    quiet = ("--until", "2d", "--reason", "known", "--who", "ann")
    unknown = ran("acknowledge", clicks.file, "warning.events.late_shares", *quiet)
    assert unknown.exit_code == 2
    assert 'no check "events.late_shares": did you mean events.late_share?' in " ".join(unknown.output.split())
    assert ran("acknowledge", clicks.file, "warning.events.late_share", *quiet).exit_code == 0


def test_the_command_of_a_warning_explains_its_check(clicks, server, tmp_path):
    """Checks of rows are named after their expectation, and the command must name an existing check."""
    folder = clicks.file.parent
    between = "expect_column_values_to_be_between"
    rows = [
        {"type": between, "kwargs": {"column": "events", "min_value": 0, "max_value": 9}},
        {"type": between, "kwargs": {"column": "events", "min_value": 5}, "severity": "warning"},
        {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "user_id", "value_set": ["z"]}},
    ]
    rows[2]["severity"] = "warning"
    figures = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "rows_read", "max_value": 4}}
    (folder / "rows.json").write_text(json.dumps({"expectations": rows}), encoding="utf-8")
    (folder / "figures.json").write_text(json.dumps({"expectations": [{**figures, "severity": "warning"}]}))
    text = clicks.file.read_text(encoding="utf-8")
    suites = 'max_duplicate_share = 0.01\nresults_suite = "rows.json"\nfigures_suite = "figures.json"'
    clicks.file.write_text(text.replace("max_duplicate_share = 0.01", suites), encoding="utf-8")
    own = load_definition(clicks.file)
    committed(own, NOW_MS, batch_id=7, dq_results=judged(own, 7))
    check(own, FIGURES, HISTORY, [results_file(tmp_path, [("a", 0, 10), ("b", 0, 10)])])
    notes_of(own)
    commands = {one["sentence"].partition(" Expected ")[0]: one["command"] for one in server.got}
    names = (
        "own_figures.rows_read",
        "own_results.column_values_to_be_between_2",
        "own_results.column_values_to_be_in_set",
    )
    for sentence, name in zip(sorted(commands), names, strict=True):
        assert commands[sentence] == to_paste("checks", own.file, "--explain", name), sentence
        explained = ran("checks", own.file, "--explain", name)
        assert (explained.exit_code, "batch 7  failed" in explained.output) == (0, True), explained.output
    (folder / "rows.json").write_text(json.dumps({"expectations": rows[:1]}), encoding="utf-8")
    gone = [one.command for one in situations(own, NOW_MS) if one.key.startswith("warning.own_results")]
    assert {*gone} == {to_paste("checks", own.file)}  # it lists those that there are


def test_a_run_that_died_is_reported_by_the_next_plan(clicks, server):
    plan(clicks, lambda: NOW_MS)
    ledger = ledger_of(clicks, lambda: NOW_MS)
    owner = {"host": "elsewhere", "boot": 1.0, "pid": 1, "started": 1.0, "boot_id": "x", "namespace": "y"}
    ledger.write({"kind": "claim", "epoch": 1, "owner": json.dumps(owner)})
    notes_of(clicks, UNKNOWN, now_ms=NOW_MS + clicks.lease_timeout_ms - 1)
    assert server.got == []
    notes_of(clicks, UNKNOWN, now_ms=NOW_MS + clicks.lease_timeout_ms)
    assert (
        server.got[0]["sentence"]
        == "the run that worked on batch 1 ended without finishing it; the next run finishes it"
    )


def ran(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def test_commands_notify_and_acknowledge(clicks, server, tmp_path, monkeypatch):
    file = clicks.file
    cut_off = tmp_path / "incoming" / "1.parquet"
    cut_off.write_bytes(cut_off.read_bytes()[:100])
    os.utime(cut_off, (1, 1))
    monkeypatch.setenv("WINDOWLIB_TRIES_LEFT", "1")  # a mistake is not tried again
    assert [ran(command, file).exit_code for command in ("plan", "run", "plan")] == [2, 2, 2]
    assert server.said == [("failure", "began")]
    assert "1.parquet" in server.got[0]["sentence"]
    said = ran("acknowledge", file, "failure", "--until", "2d", "--reason", "asked for it", "--who", "ann")
    assert said.output.startswith("failure is muted until ")
    assert ran("acknowledge", file, "late", "--until", "2d", "--reason", "x").exit_code == 2
    assert ran("acknowledge", file, "failure", "--until", "soon", "--reason", "x").exit_code == 2
    shown = ran("status", file).output
    assert "failure: " in shown
    assert "kept quiet by ann until" in shown


def test_a_rerun_a_verify_and_a_maintenance_that_fail_are_reported(clicks, server):
    """Only runs and plans sent notices; the newest batch here names files that are gone."""
    clicks.file.write_text(f'engine = "sail"\n{clicks.file.read_text(encoding="utf-8")}', encoding="utf-8")
    committed(clicks, NOW_MS, results=7)
    commands = (
        ("maintain", clicks.file),
        ("verify", clicks.file),
        ("rerun", clicks.file, "--from", "2025-11-20T00:00Z", "--to", "2025-11-21T00:00Z", "--yes"),
    )
    for number, command in enumerate(commands, 1):
        ended = ran(*command)
        assert ended.exit_code in (1, 2), ended.output
        said = [one for one in server.got if one["situation"] == "failure"]
        assert len(said) == number, (command, ended.output, server.said)
        notify(clicks, WELL, NOW_MS, None, lambda note: None)  # a run that ends well comes between
        server.got[:] = [one for one in server.got if one["what"] == "began"]


@pytest.mark.spark
@pytest.mark.embedded
def test_a_verify_after_an_edit_is_reported(folder, server, monkeypatch):
    monkeypatch.setenv("HOOK", server.url)
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    file = folder / "clicks.toml"
    edited = file.read_text(encoding="utf-8").replace('gap = "10m"', 'gap = "20m"')
    file.write_text(f'{edited}[notify]\nwebhook_variable = "HOOK"\n', encoding="utf-8")
    assert ran("verify", file).exit_code == 2
    assert server.said == [("failure", "began")]
    assert 'window.gap was "10m", is "20m"' in server.got[0]["sentence"]


def test_a_run_over_its_time_reports_freshness(clicks, server):
    from windowlib.airflow.late_runs import judge

    committed(clicks, NOW_MS)
    for _ in range(2):
        judge(str(clicks.file), {"dag_run": {"run_id": "hangs"}})
    assert server.said == [("freshness", "began")]


def test_without_notify_nothing_is_judged_or_written(tmp_path):
    plain = definition(tmp_path)
    notes_of(plain, CommandOutcome("the disk is full"))
    assert not folder_of(plain).exists()


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ('webhook = "hooks.example/1"', "must be an address that begins with https:// or http://"),
        ('webhook_variable = "$HOOK"', "must be the name of an environment variable"),
        ('airflow = "Notifier"', 'must have the form "package.module.Class"'),
        ('about = ["late"]', "notify.about"),
        ('freshness = "soon"', "notify.freshness"),
    ],
)
def test_mistakes_are_named(tmp_path, line, mistake):
    definition(tmp_path)
    file = tmp_path / "clicks.toml"
    file.write_text(f"{file.read_text()}\n[notify]\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="notify") as error:
        load_definition(file)
    assert mistake in str(error.value)


def test_since_is_the_begin_of_the_situation(clicks, server):
    notes_of(clicks, CommandOutcome("the disk is full"))
    notes_of(clicks, CommandOutcome("no such column"), now_ms=NOW_MS + HOUR_MS)
    assert [one["since"] for one in server.got] == ["2025-11-21T04:40:00Z"] * 2
    assert reported(clicks.store).open["failure"].at == utc(NOW_MS + HOUR_MS)
