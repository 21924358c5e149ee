"""Record of a command's error, and its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.clicks import ON_SAIL, clicks
from tests.support.disks import folder_of
from windowlib.cli.main import app

NOTIFY = '[notify]\nwebhook = "http://127.0.0.1:9/"\n'


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize("place", ["in a table", "in the source"])
def test_nothing_is_written_to_a_refused_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, place: str
) -> None:
    """The error and its notice were once written into the table of another pipeline, or into the source."""
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    definition = clicks(tmp_path, 1, definition=ON_SAIL + NOTIFY)
    if place == "in a table":
        (folder_of(definition).parent / "_delta_log").mkdir(parents=True)
        (folder_of(definition).parent / "_delta_log" / f"{0:020}.json").write_text("{}")
    else:
        text = definition.file.read_text(encoding="utf-8")
        definition.file.write_text(f'warehouse = "incoming"\n{text}', encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    ended = CliRunner().invoke(app, [command, str(definition.file)])
    assert ended.exit_code == 2, ended.output
    assert "Give `warehouse` a folder elsewhere" in " ".join(ended.output.split())
    assert sorted(tmp_path.rglob("*")) == before
