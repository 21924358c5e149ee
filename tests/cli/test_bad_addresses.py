"""Addresses of object stores that cannot be used: one sentence each, before an engine starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.object_servers import Server
from windowlib.cli.main import app
from windowlib.storage import address
from windowlib.storage.store import Store

DEFINITION = """
name = "clicks"
engine = "sail"
warehouse = "{warehouse}"
source = {{ format = "parquet", path = "{source}", key = ["user"], timestamp = "at" }}
watermark = {{ out_of_orderness = "5m" }}
window = {{ type = "session", gap = "30m" }}
aggregates = {{ events = "count(*)" }}
"""
CASES = (
    ("ftp://host/in", "{place}/w", 2, "source.path: ftp:// is no known kind of storage: expected a path, `s3://bucket"),
    ("{place}/in", "s4://bucket/w", 2, "warehouse: s4:// is no known kind of storage"),
    ("s3:/bucket/in", "{place}/w", 2, "s3:/ begins no address: expected two slashes"),
    ("s3://Bucket_1/in", "{place}/w", 2, "no bucket can have the name 'Bucket_1': expected 3 to 63"),
    ("s3://key:secret@bucket/in", "{place}/w", 2, "an s3:// address has a `@`: expected a bucket without credentials"),
    ("s3://windowlip/in", "{place}/w", 2, "s3://windowlip does not exist: expected a bucket or container; create it"),
    ("{place}/in", "s3://windowlip/w", 2, "s3://windowlip does not exist: expected a bucket or container; create it"),
    ("{place}/w/clicks/in", "{place}/w", 2, "lies in {place}/w/clicks, the folder of the pipeline's own tables."),
    ("{place}", "{place}/w", 2, "the warehouse {place}/w/clicks lies in the source folder {place}"),
)


@pytest.fixture(autouse=True)
def _no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windowlib.engines.sail.session", lambda *_: pytest.fail("an engine was started"))


@pytest.fixture
def place(s3_server: Server, monkeypatch: pytest.MonkeyPatch) -> Store:
    for name, value in s3_server.variables().items():
        monkeypatch.setenv(name, value)
    return s3_server.store()


def refusal(folder: Path, source: str, warehouse: str) -> tuple[int, str]:
    """Exit code and message of a run."""
    file = folder / "clicks.toml"
    file.write_text(DEFINITION.format(source=source, warehouse=warehouse), encoding="utf-8")
    ended = CliRunner().invoke(app, ["run", str(file)], env={"COLUMNS": "500"})
    assert ended.output.startswith("error: "), ended.output
    assert ended.output.count("\n") == 1
    return ended.exit_code, ended.output


@pytest.mark.parametrize(("source", "warehouse", "code", "sentence"), CASES)
def test_one_sentence_says_what_is_wrong(
    source: str, warehouse: str, code: int, sentence: str, place: Store, tmp_path: Path
) -> None:
    ended = refusal(tmp_path, source.format(place=place), warehouse.format(place=place))
    assert ended[0] == code, ended
    assert sentence.format(place=place) in ended[1]
    assert "secret" not in ended[1]


def test_missing_credentials_are_named(place: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    code, printed = refusal(tmp_path, "s3://other-bucket/in", "s3://other-bucket/w")
    assert (code, "found no credentials: expected credentials of AWS; log in" in printed) == (1, True)


def test_a_missing_extra_is_named(place: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "_is_installed", lambda name: name != "boto3")
    code, printed = refusal(tmp_path, f"{place}/in", str(tmp_path / "w"))
    assert (code, "needs boto3: pip install 'windowlib[s3]'" in printed) == (2, True)
