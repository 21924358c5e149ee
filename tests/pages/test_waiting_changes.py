"""Changes that a waiting batch would make equal the changes that it makes after its approval."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, FILES, clicks, clock
from windowlib.airflow.question import question
from windowlib.batches.planning import ledger_of
from windowlib.decisions.verdicts import approve
from windowlib.definition.definition import Definition
from windowlib.ledger.ledger import Rejected
from windowlib.pages.changes.by_batch import changes_by_batch
from windowlib.pages.changes.since_moment import together
from windowlib.pages.changes.waiting import WaitingChanges, waiting_changes
from windowlib.pages.counts.row_counts import numeric_outputs
from windowlib.pages.newest_rows import tail
from windowlib.pages.pipeline import pipeline
from windowlib.pages.pipeline_state import observe_pipeline
from windowlib.pages.render import PageLinks, pipeline_page
from windowlib.publication.readers import read_table
from windowlib.reruns.preview_text import ARROW
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

NONE_IS_GOOD = {
    "type": "expect_column_max_to_be_between",
    "kwargs": {"column": "rows_read", "max_value": 0},
    "severity": "critical",
    "description": "No row is read.",
}
Results = Mapping[tuple[str, str, str], Mapping[str, Any]]


@dataclass(frozen=True)
class Asked:
    """A refused batch: the changes that it would make, its page, and the results before it."""

    batch_id: int
    changes: WaitingChanges
    page: str
    results: Results


@pytest.fixture(scope="module")
def definition(tmp_path_factory: pytest.TempPathFactory) -> Definition:
    folder = tmp_path_factory.mktemp("waiting")
    (folder / "refusing.json").write_text(json.dumps({"expectations": [NONE_IS_GOOD]}), encoding="utf-8")
    return clicks(folder, definition=f'{CLICKS}[checks]\nfigures_suite = "refusing.json"\n')


@pytest.fixture(scope="module")
def asked(definition: Definition, spark: SparkSession) -> list[Asked]:
    """All batches, each refused and then approved."""
    batches = []
    for _ in range(FILES):
        with suppress(Rejected):
            advance(definition, lambda: spark, clock=clock)
        ledger = ledger_of(definition)
        state = ledger.state()
        assert state.plan is not None
        changes = waiting_changes(definition, ledger.tables, state)
        assert changes is not None
        page = pipeline_page(
            pipeline(observe_pipeline(definition, clock() + 60_000)), PageLinks(pipeline=str, home=None)
        )
        batches.append(Asked(state.plan.batch_id, changes, page, results(definition)))
        approve(definition, "ann", "as expected")
    advance(definition, lambda: spark, clock=clock)
    return batches


def results(definition: Definition) -> Results:
    """Published results, by key and window as a page shows them."""
    if ledger_of(definition).state().commit is None:
        return {}
    rows = read_table(definition, "results").to_pylist()
    return {
        (row["user"], *(f"{row[name]:%F %T.%f}"[:-3] for name in ("window_start", "window_end"))): row for row in rows
    }


def test_the_changes_by_day_are_those_of_the_published_batch(definition: Definition, asked: list[Asked]) -> None:
    ledger = ledger_of(definition)
    runs = tail(ledger.tables, ledger.state().version).runs
    numbers, in_headline = numeric_outputs(
        definition, ledger.tables, ledger.tables["results"].files(runs[0].versions["results"])
    )
    outputs = [output for output in numbers[:in_headline] if output.combine == "sum"]
    published = changes_by_batch(definition, ledger.tables, runs, outputs, is_whole=True)
    assert sorted(published) == [batch.batch_id for batch in asked]
    kinds = set[str]()
    for batch in asked:
        parts = sorted(published[batch.batch_id], key=lambda part: str(part.day), reverse=True)
        expected = [together(day, [*same]) for day, same in groupby(parts, key=lambda part: part.day)]
        assert batch.changes.days == expected
        kinds.update(kind for day in expected for kind, count in day.windows.items() if count)
    assert kinds >= {"added", "changed", "extended"}


def test_examples_mark_the_values_that_change(definition: Definition, asked: list[Asked]) -> None:
    marked = 0
    for batch, later in zip(asked, [*(one.results for one in asked[1:]), results(definition)], strict=True):
        examples = batch.changes.examples
        assert 0 < len(examples.cells) <= 10
        for place, cells in enumerate(examples.cells):
            row = dict(zip(examples.columns, cells, strict=True))
            if row["change"] != "changed":
                assert not any(where == place for where, _ in examples.marked)
                continue
            window = row["user"], row["window_start"], row["window_end"]
            window = (window[0], *(time if "." in time else f"{time}.000" for time in window[1:]))
            for name in definition.outputs:
                before, after = batch.results[window][name], later[window][name]
                changes = before != after
                assert row[name] == (f"{before}{ARROW}{after}" if changes else f"{after}")
                assert ((place, examples.columns.index(name)) in examples.marked) is changes
                marked += changes
    assert marked > 0


def test_the_page_shows_checks_then_days_then_examples_and_folds_raw_rows(asked: list[Asked]) -> None:
    panel = asked[-1].page.partition('id="decision"')[2].partition("</section>")[0]
    order = ["No row is read.", "by day", "examples; values", "<details", "rows that reach no window"]
    places = [panel.index(part) for part in order]
    assert places == sorted(places)
    assert ("<mark>" in panel) is bool(asked[-1].changes.examples.marked)


def test_the_question_shows_days_and_examples_below_the_checks(asked: list[Asked]) -> None:
    changes = asked[-1].changes
    _, body = question("clicks", 4, "/clicks/", ("approve", "abandon"), ["No row is read."], changes)
    parts = body.split("\n\n")
    assert parts[1] == "- No row is read."
    assert parts[2].startswith("| day | added | changed | extended | removed | change of clicks |")
    assert parts[3].startswith("| change | user | window\\_start |")
    assert parts[3].count("**") == 2 * sum(row < 5 for row, _ in changes.examples.marked)
    assert parts[4].startswith("* **approve**")
