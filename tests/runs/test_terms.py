"""A batch that was planned but not prepared is computed under the terms of its plan, or planned again."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import CLICKS, START_MS, clicks, clock, tables
from tests.support.disks import folder_of
from tests.support.killed import stopped
from windowlib.batches.may_run import check_fingerprint, other_terms
from windowlib.batches.planning import ledger_of, plan
from windowlib.definition.definition import Definition, load_definition
from windowlib.definition.terms import changed, terms_of
from windowlib.ledger.rows import Plan
from windowlib.model.errors import StateMismatch
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

LATER = CLICKS.replace('out_of_orderness = "5m"', 'out_of_orderness = "5h"')
LONGER = CLICKS.replace('gap = "10m"', 'gap = "20m"')


def killed(folder: Path, spark: SparkSession, definition: str = CLICKS, files: int = 2) -> None:
    """A pipeline whose first batch was planned and computed before its run was killed."""
    made = clicks(folder, files, definition)
    with stopped("write:windows"):
        advance(made, lambda: spark, clock=clock)


def kinds(definition: Definition) -> list[tuple[str, int]]:
    rows = read_table(definition, "ledger").sort_by("sequence").to_pylist()
    return [(row["kind"], row["batch_id"]) for row in rows if row["kind"] in ("plan", "commit", "abandon")]


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize(
    "edited",
    [
        pytest.param(LATER, id="out_of_orderness", marks=pytest.mark.long("another gap is other terms, in make test")),
        pytest.param(LONGER, id="gap"),
    ],
)
@pytest.mark.fault("the definition is edited before anything is prepared", "the plan is replaced, and the run says so")
def test_a_plan_of_an_edited_definition_is_replaced(spark: SparkSession, tmp_path: Path, edited: str) -> None:
    undisturbed = clicks(tmp_path / "undisturbed", 1, edited)
    advance(undisturbed, lambda: spark, clock=clock)
    killed(tmp_path / "edited", spark, files=1)
    definition, notes = clicks(tmp_path / "edited", 0, edited), list[str]()
    advance(definition, lambda: spark, clock=clock, on_note=notes.append)
    assert tables(definition) == tables(undisturbed)
    assert kinds(definition) == [("plan", 1), ("plan", 1), ("commit", 1)]
    [note] = notes
    assert note.startswith("clicks: batch 1 was planned under other terms (")
    assert 'out_of_orderness was "5m", is "5h"' in note or 'window.gap was "10m", is "20m"' in note
    assert note.endswith("it is planned again")


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.fault("a run dies before anything is prepared", "the next run computes the same plan again")
def test_a_plan_of_the_same_definition_is_computed_again(spark: SparkSession, tmp_path: Path) -> None:
    killed(tmp_path, spark)
    definition, notes = clicks(tmp_path, 0), list[str]()
    advance(definition, lambda: spark, clock=clock, on_note=notes.append, max_batches=1)
    assert kinds(definition) == [("plan", 1), ("commit", 1)]
    assert notes == []


@pytest.mark.spark
@pytest.mark.embedded
def test_a_batch_too_large_is_planned_smaller(spark: SparkSession, tmp_path: Path) -> None:
    killed(tmp_path, spark, CLICKS.replace("max_files_per_run = 1\n", ""))
    reports = advance(clicks(tmp_path, 0), lambda: spark, clock=clock)
    assert [report.batch_id for report in reports] == [1, 2]
    assert {row["path"]: row["batch_id"] for row in read_table(clicks(tmp_path, 0), "source_files").to_pylist()} == {
        "1.parquet": 1,
        "2.parquet": 2,
    }


@pytest.mark.spark
@pytest.mark.embedded
def test_a_plan_for_which_nothing_is_left_is_abandoned(spark: SparkSession, tmp_path: Path) -> None:
    idle = CLICKS.replace('out_of_orderness = "5m"', 'out_of_orderness = "5m"\nidle_timeout = "1h"')
    advance(clicks(tmp_path, 1, idle), lambda: spark, clock=lambda: START_MS)
    with stopped("write:windows"):
        advance(clicks(tmp_path, 0, idle), lambda: spark, clock=clock)
    definition, notes = clicks(tmp_path, 0), list[str]()
    assert advance(definition, lambda: spark, clock=clock, on_note=notes.append) == []
    assert kinds(definition) == [("plan", 1), ("commit", 1), ("plan", 2), ("abandon", 2)]
    assert 'watermark.idle_timeout was "1h", is not given' in notes[0]
    assert notes[0].endswith("it is abandoned, as nothing is left to do")


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.fault(
    "the windows of a definition are edited after its first batch", "refused with the old and the new value"
)
def test_edited_windows_are_refused_after_the_first_batch(spark: SparkSession, tmp_path: Path) -> None:
    advance(clicks(tmp_path, 1), lambda: spark, clock=clock)
    plan(clicks(tmp_path, 2), clock)
    before = kinds(clicks(tmp_path, 0))
    with pytest.raises(StateMismatch, match=r'was written by another definition: window.gap was "10m", is "20m"'):
        advance(clicks(tmp_path, 0, LONGER), lambda: spark, clock=clock)
    assert kinds(clicks(tmp_path, 0)) == before


def test_a_definition_that_was_copied_under_the_same_name(tmp_path: Path) -> None:
    """The advice for an edited definition would replace the tables of the other one. So the message names the other
    while it exists.
    """
    original = clicks(tmp_path, 1)
    frozen, copied = plan(original, clock), tmp_path / "copied.toml"
    copied.write_text(LONGER, encoding="utf-8")
    differs = f'{folder_of(original)} was written by another definition: window.gap was "10m", is "20m".'
    named = (
        f"{differs} It has batches of {original.file}: if {copied} is another pipeline, give it another name. If not,"
    )
    assert refusal(copied, frozen).startswith(f"{named} undo the change in {copied}, or have the tables built again ")
    original.file.write_text(LONGER, encoding="utf-8")
    sentence = refusal(original.file, frozen)
    assert sentence.startswith(f"{differs} Undo the change in {original.file}, or have the tables built again ")
    assert sentence.endswith("; or, if this is another pipeline, give it another name.")
    original.file.unlink()
    assert refusal(copied, frozen) == sentence.replace(str(original.file), str(copied))


def refusal(file: Path, found: Plan | None) -> str:
    """Reason why a planned batch is not continued with the definition in a file."""
    definition = load_definition(file)
    with pytest.raises(StateMismatch) as caught:
        check_fingerprint(definition, found)
    return str(caught.value)


def test_a_plan_keeps_the_terms_that_it_was_made_with(tmp_path: Path) -> None:
    frozen = plan(clicks(tmp_path, 1), clock)
    assert frozen is not None
    assert json.loads(frozen.terms)["watermark.out_of_orderness"] == "5m"
    definition = clicks(tmp_path, 0, LATER)
    changed = other_terms(definition, frozen)
    assert changed == 'watermark.out_of_orderness was "5m", is "5h"'
    assert ledger_of(definition).state().plan == frozen


OWN = """
name = "own"
source = { format = "parquet", path = "in", key = ["user"], timestamp = "at" }
watermark = { out_of_orderness = "5m" }
window = { type = "session", gap = "30m", function = "visits:Visits", output = { seen = "bigint" } }
"""
VISITS = """
class Visits:
    def process(self, key, context, elements):
        yield {"seen": len(list(elements))}

    def clear(self, context):
        pass
"""


@pytest.mark.fault("the author's own code is edited after a run died", "the plan is replaced")
def test_an_edit_of_own_code_replaces_the_plan(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    (tmp_path / "visits.py").write_text(VISITS)

    def terms() -> str:
        return terms_of(load_definition(tmp_path / "own.toml"))

    before = terms()
    assert terms() == before
    (tmp_path / "helpers.py").write_text("STEP = 2\n")
    with_helper = terms()
    (tmp_path / "visits.py").write_text(VISITS.replace("len(list(elements))", "0"))
    assert len({before, with_helper, terms()}) == 3


@pytest.mark.parametrize(
    ("then", "now", "differ"),
    [
        ({"engine": "sail", "engine.version": "0.7"}, {"engine": "sail", "engine.version": "0.7"}, None),
        (
            {"engine": "sail", "engine.version": "0.7"},
            {"engine": "sail", "engine.version": "0.8"},
            'engine.version was "0.7", is "0.8"',
        ),
        ({"engine": "sail"}, {"engine": "sail", "engine.version": "0.8"}, None),
        ({"engine": "sail", "engine.version": "0.7"}, {"engine": "sail"}, None),
        ({"engine": "sail"}, {"engine": "spark", "engine.version": "4"}, 'engine was "sail", is "spark"'),
    ],
)
@pytest.mark.fault("the engine is upgraded after a run died", "the plan is replaced")
def test_another_version_of_the_engine_replaces_the_plan(
    then: dict[str, str], now: dict[str, str], differ: str | None
) -> None:
    assert changed(json.dumps(then), json.dumps(now)) == differ


def test_the_terms_name_the_version_of_the_engine(tmp_path: Path) -> None:
    found = {
        engine: json.loads(terms_of(clicks(tmp_path / engine, 0, f'engine = "{engine}"\n{CLICKS}')))["engine.version"]
        for engine in ("spark", "sail")
    }
    assert found == {"spark": metadata.version("pyspark"), "sail": metadata.version("pysail")}
