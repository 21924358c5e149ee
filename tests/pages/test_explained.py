"""Page of an explained result: events, versions and causes as `windowlib explain` has them, without hidden values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, clicks, clock, events
from windowlib.definition.definition import Definition, load_definition
from windowlib.delta.tables import Tables
from windowlib.pages.rows import RESULTS_FOUND, ResultFilter, TextRows, results
from windowlib.pages.served.explained import WindowFacts, explained_result
from windowlib.pages.served.search import SearchResult
from windowlib.publication.key import CannotLook
from windowlib.runs.advance import advance
from windowlib.storage.disk import Disk

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

CSV = 'format = "csv"\nschema = { id = "string", user = "string", at_ms = "bigint", value = "bigint" }'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """Pipeline after four batches, with changed and merged sessions."""
    made = tmp_path_factory.mktemp("explained")
    advance(clicks(made), lambda: spark, clock=clock)
    return made


def hiding(folder: Path, *names: str) -> Definition:
    file = folder / f"hiding-{'-'.join(names)}.toml"
    file.write_text(f"{CLICKS}[pages]\nhide = {json.dumps(names)}\n", encoding="utf-8")
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / "clicks")})


def shown(definition: Definition) -> TextRows:
    tables = Tables(definition.store)
    return results(definition, tables, {"results": tables["results"].version()}, ResultFilter())


def first(definition: Definition, query: Mapping[str, str]) -> WindowFacts:
    """The window of a result."""
    window = explained_result(definition, query).windows[0]
    assert window.place == ""
    return window


def test_each_result_is_explained_by_its_events(folder: Path) -> None:
    rows = shown(definition := clicks(folder, files=0))
    place = rows.columns.index("clicks")
    for cells, query in zip(rows.cells, rows.queries, strict=True):
        window = first(definition, query)
        assert window.event_count == int(cells[place])
        assert len(window.events.cells) == window.event_count
        [published] = window.published.cells
        assert published[0] == window.versions.cells[-1][3] == cells[place]


def test_changed_values_of_a_version_are_marked(folder: Path) -> None:
    rows = shown(definition := clicks(folder, files=0))
    windows = [first(definition, query).versions for query in rows.queries]
    changed = [versions for versions in windows if versions.marked]
    assert changed
    for versions in changed:
        assert "cause" in versions.columns
        for row, column in versions.marked:
            assert versions.columns[column] in definition.outputs
            assert versions.cells[row][column] != versions.cells[row - 1][column]


def test_hidden_values_are_in_no_explanation(folder: Path) -> None:
    rows = shown(definition := hiding(folder, "value"))
    causes = list[str]()
    for query in rows.queries:
        window = first(definition, query)
        for part, columns in (
            (window.published, ("total", "first")),
            (window.versions, ("total", "first")),
            (window.events, ("value",)),
        ):
            for name in columns:
                assert {cells[part.columns.index(name)] for cells in part.cells} == {"hidden"}
        causes += [cells[window.versions.columns.index("cause")] for cells in window.versions.cells]
    assert any("total hidden" in cause for cause in causes)  # of merged sessions


def test_a_hidden_key_is_not_explained(folder: Path) -> None:
    definition = hiding(folder, "user")
    assert shown(definition).queries == []
    with pytest.raises(CannotLook, match=r"\[pages\] hides the key user"):
        explained_result(definition, {"key.user": "u1", "at": "2026-03-02T00:00Z"})


@pytest.mark.slow
@pytest.mark.classic
def test_events_of_text_files_are_left_to_the_command(tmp_path: Path, spark: SparkSession) -> None:
    """They need an engine, which the web server does not start."""
    definition = clicks(tmp_path, files=0, definition=CLICKS.replace('format = "parquet"', CSV))
    lines = ["id,user,at_ms,value", *(f"{e['id']},{e['user'] or ''},{e['at_ms']},{e['value']}" for e in events(1))]
    (tmp_path / "incoming" / "1.csv").write_text("\n".join(lines), encoding="utf-8")
    advance(definition, lambda: spark, clock=clock)
    window = first(definition, shown(definition).queries[0])
    assert (window.events.cells, window.event_count) == ([], 0)
    assert window.versions
    assert any("`windowlib explain` lists them" in note for note in window.notes)


@pytest.mark.parametrize(
    ("count", "key", "words"),
    [
        (1, "", "1 result among the newest."),
        (2, "u1", "2 results that match among the newest."),
        (RESULTS_FOUND, "u1", f"The newest {RESULTS_FOUND} results that match. There may be more."),
    ],
)
def test_the_search_says_how_many_results_it_found(count: int, key: str, words: str) -> None:
    search = SearchResult({"user": key}, "", "", TextRows(["user"], [["u1"]] * count))
    assert (search.found_words, search.is_filtered) == (words, bool(key))
