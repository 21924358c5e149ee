"""A user's own files: which columns are taken, and what is said when none fits."""

import io
import json
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tests.support.disks import folder_of
from windowlib.definition.definition import load_definition
from windowlib.demo.own_data import OwnData, definition_text, inspect_files
from windowlib.demo.run import Stage, demo_own_data
from windowlib.model.errors import InvalidSpec

SECONDS = 1_772_409_600  # 2026-03-02
ROWS = [
    {"id": 1, "client": "a", "seen_at": "2026-03-02T00:00:00Z", "bytes": 5},
    {"id": 2, "client": None, "seen_at": "2026-03-02T00:01:00.5Z", "bytes": None},
]


def parquet(folder: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), folder / "one.parquet")
    return folder


def test_json_times_are_distinguished_from_texts(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("\n".join(map(json.dumps, ROWS)))
    (tmp_path / "_unfinished.tmp").write_text("not looked at")
    columns = {"id": "bigint", "client": "string", "seen_at": "timestamp", "bytes": "bigint"}
    assert inspect_files(tmp_path) == OwnData(tmp_path, "json", 1, "client", "seen_at", None, columns)


@pytest.mark.parametrize("time", ["2026-03-02 00:00:00", "2026-03-02T00:00:00Z", "2026-03-02T00:00:00.123+02:00"])
def test_csv_times_with_and_without_a_zone(tmp_path: Path, time: str) -> None:
    (tmp_path / "one.csv").write_text(f"when,user_id,kind\n{time},7,view\n{time},8,view\n")
    found = inspect_files(tmp_path)
    assert (found.timestamp, found.key) == ("when", "user_id")
    assert found.columns == {"when": "timestamp", "user_id": "bigint", "kind": "string"}


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1000), ("us", 1_000_000)])
def test_numbers_that_are_times(tmp_path: Path, unit: str, factor: int) -> None:
    found = inspect_files(parquet(tmp_path, device=["d", "d"], event_time=[SECONDS * factor, SECONDS * factor + 1]))
    assert (found.timestamp, found.timestamp_unit, found.key) == ("event_time", unit, "device")


def test_a_clock_that_has_started_again_does_not_hide_the_unit(tmp_path: Path) -> None:
    found = inspect_files(parquet(tmp_path, device=["d"] * 3, ts=[SECONDS, 12, SECONDS + 60]))
    assert (found.timestamp, found.timestamp_unit) == ("ts", "s")


def test_what_is_given_is_taken(tmp_path: Path) -> None:
    time = pa.array([0], pa.timestamp("ms"))
    found = inspect_files(parquet(tmp_path, user_id=[1], first=time, second=time, shop=["s"]), "shop", "second")
    assert (found.key, found.timestamp) == ("shop", "second")


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"user_id": [1]}, {}, r"no column with times among user_id \(int64\); name one with --timestamp"),
        ({"number": [1], "at": pa.array([0], pa.timestamp("ms"))}, {}, "name one with --key"),
        ({"user_id": [1], "ts": [17]}, {}, "no column with times"),
        (
            {"user_id": [1], "ts": [17]},
            {"timestamp": "ts"},
            "--timestamp ts: the column is int64; need timestamps, ISO 8601 strings",
        ),
        (
            {"user_id": [1], "at": ["3/2/2026"]},
            {"timestamp": "at"},
            r"--timestamp at: the column is string; .*timestamp_format",
        ),
        ({"user_id": [1]}, {"timestamp": "time"}, r"--timestamp time: .* has no such column, only user_id"),
        ({"user_id": [1]}, {"key": "user"}, r"--key user: .* has no such column"),
    ],
)
def test_what_does_not_fit_is_said(
    tmp_path: Path, columns: dict[str, Any], options: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidSpec, match=message):
        inspect_files(parquet(tmp_path, **columns), **options)


def test_folders_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="found no files; need files of one format, parquet, json, csv"):
        inspect_files(tmp_path)
    (tmp_path / "a.csv").write_text("x\n")
    (tmp_path / "b.txt").write_text("x\n")
    with pytest.raises(InvalidSpec, match="found csv, txt"):
        inspect_files(tmp_path)
    with pytest.raises(InvalidSpec, match="no such folder"):
        inspect_files(tmp_path / "missing")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Of one column numbers and texts."""
    (tmp_path / "one.json").write_text('{"user": "a", "at": 1}\n{"user": "a", "at": "2"}\n')
    with pytest.raises(InvalidSpec, match=r"one\.json: cannot be read as json: .*changed from number to string"):
        inspect_files(tmp_path)


def test_the_definition_can_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    data = tmp_path / 'some "data"'
    data.mkdir()
    (data / "one.json").write_text("\n".join(map(json.dumps, ROWS)))
    file = tmp_path / "own.toml"
    file.write_text(definition_text(inspect_files(data), "own", 'type = "session"\ngap = "30m"'))
    definition = load_definition(file)
    assert definition.source.path == data
    assert definition.source.key == ("client",)
    assert definition.source.columns["seen_at"] == "timestamp"
    assert folder_of(definition) == tmp_path / "warehouse" / "own"
    assert tomllib.loads(file.read_text())["source"]["max_files_per_run"] == 1


@pytest.mark.parametrize(
    ("form", "text"), [("csv", "at,user\n2026-03-02T00:00:00Z,a\n"), ("json", json.dumps(ROWS[0]))]
)
def test_what_sail_does_not_parse_is_refused_before_anything_is_written(tmp_path: Path, form: str, text: str) -> None:
    (tmp_path / f"one.{form}").write_text(text)
    stage = Stage(tmp_path.parent / f"{tmp_path.name}-demo", Console(file=io.StringIO()), "sail")
    with pytest.raises(InvalidSpec, match=f"has {form} files, but only Spark parses them: leave out --engine sail"):
        demo_own_data(stage, tmp_path)
    assert not stage.folder.exists()
    assert stage.console.file.getvalue() == ""  # type: ignore[attr-defined]
