"""The command `move` on a pipeline with an engine: its outputs, exit codes, and the batches after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.clicks import COMPARED, ON_SAIL, clock, events, tables
from tests.support.object_servers import Server
from tests.support.stored_pipelines import StoredClicks, reach
from windowlib.cli.main import app
from windowlib.engines import sail
from windowlib.ledger.last_error import FILE
from windowlib.runs.advance import advance
from windowlib.storage.address import store_at

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.embedded, pytest.mark.sail]

FILES_EACH = 2


def windowlib(*arguments: str, ends: int = 0) -> str:
    done = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "200"})
    assert done.exit_code == ends, done.output
    return done.output


@pytest.mark.parametrize("cloud", ["s3", pytest.param("azure", marks=pytest.mark.long("S3 is in make test"))])
def test_batches_after_moves_are_those_of_tables_that_stayed(
    cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, spark: object
) -> None:
    server: Server = request.getfixturevalue(f"{cloud}_server")
    reach(server, monkeypatch)
    folders = [tmp_path / "stays", tmp_path / "moves"]
    for folder in folders:
        folder.mkdir()
    stays, moves = (StoredClicks(folder, str(folder)) for folder in folders)
    places = [f"{moves.place}/warehouse", f"{server.store()}/shop", str(tmp_path / "back")]
    number = 1
    for place, following in zip(places, [*places[1:], None], strict=True):
        for _ in range(FILES_EACH):
            for pipeline in (stays, moves):
                pipeline.arrive(number, events(number))
            number += 1
        moved = moves.definition().model_copy(update={"store": store_at(f"{place}/clicks")})
        advance(moved, sail.session, clock=clock)
        advance(stays.definition(), sail.session, clock=clock)
        names = [name for name in COMPARED if name != "source_files"]  # the files have other times
        assert tables(moved, names) == tables(stays.definition(), names)
        if following:
            file = str(moves.folder / "clicks.toml")
            text = ON_SAIL.replace("[source]", f'warehouse = "{place}"\n[source]', 1)
            Path(file).write_text(text.replace('"incoming"', f'"{moves.place}/incoming"'), encoding="utf-8")
            printed = windowlib("move", file, "--to", following)
            assert f'clicks was moved to {following}/clicks: set warehouse = "{following}" in clicks.toml' in printed
            assert "results" in printed
            assert "the tables were moved" in windowlib("status", file)
            assert f'set warehouse = "{following}" in {file}' in windowlib("run", file, ends=2)
            again = json.loads(windowlib("move", file, "--to", following, "--json"))
            assert (again["done_already"], again["warehouse"], again["tables"]) == (True, following, [])
            assert store_at(f"{following}/clicks").get(FILE) is None
