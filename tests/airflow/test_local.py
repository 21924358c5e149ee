"""Local Airflow of `make airflow`: its parts start in order and end together. Test programs replace the parts."""

import os
import sys
from pathlib import Path

import pytest

from docs import local_airflow
from docs.local_airflow import AirflowFailed, environment, free_port, parallelism, running

PARTS = """#!{python}
import json, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

def note(what):
    with Path({notes!r}).open("a") as file:
        file.write(what + "\\n")

class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        note("answered")
        self.send_response(200)
        self.end_headers()
        healthy = {{"status": "healthy"}}
        self.wfile.write(json.dumps({{"scheduler": healthy, "dag_processor": healthy}}).encode())

note(sys.argv[1])
print("I am", sys.argv[1], flush=True)
if sys.argv[1] == "api-server":
    time.sleep(0.5)
    HTTPServer(("127.0.0.1", {port}), Answers).serve_forever()
time.sleep({others_live})
"""


def parts_in(folder: Path, port: int, others_live: float) -> Path:
    """Creates a program `airflow` whose parts note the time of their start. Returns the file of these notes."""
    notes = folder / "notes"
    program = folder / "airflow"
    text = PARTS.format(python=sys.executable, notes=str(notes), port=port, others_live=others_live)
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return notes


def test_airflow_runs_dags_only_once_its_api_server_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the first try of early tasks would fail, because the API server does not answer yet."""
    port = free_port()
    notes = parts_in(tmp_path, port, 60)
    monkeypatch.setattr(local_airflow, "BIN", tmp_path)
    settings = environment(tmp_path, port)
    local_airflow.home(tmp_path).mkdir()
    with running(settings, port) as airflow:
        airflow.wait_until(lambda: len({*notes.read_text(encoding="utf-8").splitlines()}) == 5)
        said = notes.read_text(encoding="utf-8").splitlines()
        assert said[:2] == ["api-server", "answered"]
        assert sorted(set(said[2:])) == ["answered", "dag-processor", "scheduler", "triggerer"]
        assert airflow.is_whole()
    assert not any(part.alive() for part in airflow.parts)
    assert "scheduler     | I am scheduler" in airflow.log.read_text(encoding="utf-8")


def test_an_airflow_that_ends_as_it_starts_says_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    parts_in(tmp_path, port, 0)
    monkeypatch.setattr(local_airflow, "BIN", tmp_path)
    monkeypatch.setattr(local_airflow, "asked", lambda port, what: {} if what == "version" else None)
    local_airflow.home(tmp_path).mkdir()
    with (
        pytest.raises(AirflowFailed, match=r"Airflow did not start; (.|\n)*I am "),
        running(environment(tmp_path, port), port),
    ):
        pass


def test_the_executor_fits_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's default is thirty-two tasks at once, too many for two cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(8)}, raising=False)
    assert parallelism() == 16
    assert environment(tmp_path, 1)["AIRFLOW__CORE__PARALLELISM"] == "16"
