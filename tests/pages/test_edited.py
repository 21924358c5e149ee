"""Page of a pipeline with an edited, unmigrated definition: it shows the columns of the tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from windowlib.definition.definition import Definition, load_definition
from windowlib.ledger.ledger import wall_clock_ms
from windowlib.pages.pipeline import Pipeline, pipeline
from windowlib.pages.pipeline_state import observe_pipeline
from windowlib.pages.site import report, site
from windowlib.storage.disk import Disk

pytestmark = [pytest.mark.spark, pytest.mark.embedded]
KEY = 'key = ["user"]', 'key = ["account"]'
COUNT = 'clicks = "count(*)"', 'n = "count(*)"'
ALONE = 'clicks = "count(*)"\ntotal = "sum(value)"\nfirst = "first(value)"', 'n = "count(*)"'
EDITED = "the definition was edited: it no longer matches the tables, and no run starts"


def edited(folder: Path, old: str, new: str, more: str = "") -> Definition:
    file = folder / "clicks.toml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new) + more, encoding="utf-8")
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / "clicks")})


def facts(definition: Definition) -> Pipeline:
    return pipeline(observe_pipeline(definition, wall_clock_ms()))


@pytest.mark.parametrize(("old", "new"), [KEY, COUNT, ALONE], ids=["key", "count", "count alone"])
def test_the_page_has_the_columns_of_the_tables(folder: Path, tmp_path: Path, old: str, new: str) -> None:
    definition = edited(folder, old, new)
    found = facts(definition)
    assert (found.overview.state.value, found.overview.why) == ("failing", EDITED)
    assert found.results.columns[:3] == ["user", "window_start", "window_end"]
    assert {*found.results.columns[3:6]} == {"clicks", "total", "first"}
    assert found.late[0].examples.columns[0] == found.in_flight.columns[0] == "user"
    assert sum(hour.events or 0 for hour in found.hours) > 0
    built = site([definition], Disk(tmp_path / "site"), wall_clock_ms())
    for page in (report(definition, wall_clock_ms()), *built.pages):
        assert EDITED in Path(page).read_text(encoding="utf-8")


def test_no_shown_command_would_be_refused(folder: Path) -> None:
    assert facts(edited(folder, "", "")).results.commands
    found = facts(edited(folder, *KEY))
    assert found.results.cells
    assert not found.results.commands


@pytest.mark.parametrize(("old", "new", "hide"), [(*KEY, "account"), (*COUNT, "n")], ids=["key", "count"])
def test_a_renamed_hidden_column_stays_hidden(folder: Path, old: str, new: str, hide: str) -> None:
    found = facts(edited(folder, old, new, f'[pages]\nhide = ["{hide}"]\n'))
    column = found.results.columns.index("user" if hide == "account" else "clicks")
    assert {row[column] for row in found.results.cells} == {"hidden"}
    if hide == "account":
        page = Path(report(load_definition(folder / "clicks.toml"), wall_clock_ms())).read_text(encoding="utf-8")
        assert not re.search(r"<td>u\d</td>", page)
