"""Suites: loaded and stored by Great Expectations itself, filled in for a pipeline, and their mistakes."""

from __future__ import annotations

import json
import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.check_samples import FIGURES, HISTORY, check, definition, results_file, stored
from windowlib.contract.tables import TABLES
from windowlib.model.errors import InvalidSpec
from windowlib.quality.check import in_words
from windowlib.quality.figures import parameters
from windowlib.quality.judge import judge_batch
from windowlib.quality.pipeline_suites import suites_of
from windowlib.quality.suite_files import OUR_KEYS
from windowlib.quality.terms import Terms
from windowlib.storage.object_file import ObjectFile

SUITES = sorted((Path(__file__).parents[2] / "expectations").glob("*.json"))
NAMES = [file.stem for file in SUITES]
EXPECTATIONS = [one for file in SUITES for one in json.loads(file.read_text(encoding="utf-8"))["expectations"]]


# -- the files ------------------------------------------------------------------------------------------------------


def without_ids(stored: Any) -> Any:
    if isinstance(stored, dict):
        return {name: without_ids(value) for name, value in stored.items() if name != "id"}
    return [without_ids(one) for one in stored] if isinstance(stored, list) else stored


def test_great_expectations_loads_each_file_and_stores_it_as_it_is(tmp_path: Path) -> None:
    import great_expectations as gx

    context = gx.get_context(mode="file", project_root_dir=tmp_path)
    store = tmp_path / "gx" / "expectations"
    for file in SUITES:
        shutil.copy(file, store)
        suite = context.suites.get(file.stem)
        assert len(suite.expectations) == len(json.loads(file.read_text(encoding="utf-8"))["expectations"])
        suite.save()
        stored = json.loads((store / file.name).read_text(encoding="utf-8"))
        as_text = json.dumps(without_ids(stored) | {"id": None}, indent=2, sort_keys=True) + "\n"
        assert as_text == file.read_text(encoding="utf-8")


def test_a_suite_that_great_expectations_stored_is_read(tmp_path: Path) -> None:
    import great_expectations as gx

    context = gx.get_context(mode="file", project_root_dir=tmp_path)
    store = tmp_path / "gx" / "expectations"
    shutil.copy(SUITES[0], store)
    suite = context.suites.get(NAMES[0])
    suite.expectations[-1].max_value = 0.001
    suite.save()
    clicks = definition(tmp_path, checks='suites = "gx/expectations"')
    (failed,) = (one for one in check(clicks, FIGURES, HISTORY) if not one.success)
    assert (failed.suite, failed.expected) == ("events", "0 % to 0.1 %")


def test_the_package_holds_these_files() -> None:
    inside = resources.files("windowlib.quality") / "suites"
    assert sorted(file.name for file in inside.iterdir()) == sorted(["README.md", *(file.name for file in SUITES)])


@pytest.mark.parametrize("one", EXPECTATIONS, ids=lambda one: one["description"])
def test_every_expectation_has_a_sentence_a_severity_and_an_owner(one: dict[str, Any]) -> None:
    assert one["description"].endswith(".")
    assert one["severity"] in ("critical", "warning", "info")
    assert one["meta"]["owner"]
    assert set(one["meta"].get("windowlib", {})) <= set(OUR_KEYS)


def is_stated(sentence: str, invariant: str) -> bool:
    """Tests if an invariant is the sentence, with optional details after a colon."""
    sentence, invariant = sentence.lower().removesuffix("."), invariant.lower()
    return invariant == sentence or invariant.startswith(f"{sentence}: ")


@pytest.mark.parametrize("one", EXPECTATIONS, ids=lambda one: one["description"])
def test_tables_and_suites_have_the_same_sentences(one: dict[str, Any]) -> None:
    stating = {
        name
        for name, table in TABLES.items()
        if any(is_stated(one["description"], invariant) for invariant in table.invariants)
    }
    named = one["meta"].get("windowlib", {}).get("table")
    assert stating == ({named} if named else set())


# -- filled in ------------------------------------------------------------------------------------------------------


def terms(folder: Path, **changed: Any) -> Terms:
    known = Terms.of(definition(folder))
    return Terms(**{name: getattr(known, name) for name in Terms.__slots__} | changed)


UNIQUE = {
    "type": "expect_compound_columns_to_be_unique",
    "kwargs": {"column_list": ["$key", "window_start_ms", "window_end_ms", "$result_number"]},
}


@pytest.mark.parametrize(
    ("changed", "columns"),
    [({}, ["user_id"]), ({"key": ()}, []), ({"key": ("a", "b"), "by_function": True}, ["a", "b", "result_number"])],
)
def test_columns_follow_the_pipeline(tmp_path: Path, changed: dict[str, Any], columns: list[str]) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "rows.json").write_text(json.dumps(suite("rows", UNIQUE, judges="rows of results")))
    of = terms(tmp_path, **changed, suites=tmp_path / "ours")
    rows = next(suite for suite in suites_of(of, parameters(of, FIGURES, HISTORY)) if suite.name == "rows")
    bounds = {"window_start_ms", "window_end_ms"}
    found = rows.expectations[0].config["kwargs"]["column_list"]
    assert [name for name in found if name not in bounds] == columns
    assert bounds <= set(found)


def test_sentences_contain_their_bounds(tmp_path: Path) -> None:
    sentences = [one.sentence for one in check(definition(tmp_path), FIGURES, HISTORY)]
    assert "At most 5 % of the admitted events were late (max_late_share)." in sentences
    assert not [sentence for sentence in sentences if "$" in sentence]


# -- outcomes -------------------------------------------------------------------------------------------------------

RECORDED = json.loads(Path(__file__).with_name("recorded_outcomes.json").read_text(encoding="utf-8"))


def written(rows: list[dict[str, Any]], folder: Path) -> ObjectFile:
    table = pa.Table.from_pylist(rows)
    for bound in ("window_start", "window_end"):
        at = table[bound].cast(pa.int64()).cast(pa.timestamp("ms")).cast(pa.timestamp("us", tz="UTC"))
        table = table.set_column(table.column_names.index(bound), bound, at)
    pq.write_table(table, folder / "rows.parquet")
    return stored(folder / "rows.parquet")


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"case {case['figures']['batch_id']}")
def test_outcomes_equal_those_of_the_replaced_suites(tmp_path: Path, case: dict[str, Any]) -> None:
    """Recorded from the suites as Python code: every check passes in one case and fails in another."""
    of = terms(tmp_path, **case["terms"] | {"key": tuple(case["terms"]["key"])})
    history = [{"windows_fired_on_time": on_time, "windows_fired_late": late} for on_time, late in case["history"]]
    files = [written(case["rows"], tmp_path)] if case["rows"] else []
    if isinstance(case["outcomes"], str):
        with pytest.raises(KeyError) as raised:
            judge_batch((of, case["figures"], history, files))
        assert repr(raised.value) == case["outcomes"]
        return
    results = in_words(judge_batch((of, case["figures"], history, files)), case["figures"])
    outcomes = [[r.suite, r.expectation, r.severity, r.success, r.observed, r.expected] for r in results]
    assert [one for one in case["outcomes"] if one not in outcomes] == []  # others may be added


# -- a team's own folder -------------------------------------------------------------------------------------------

FEW = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "rows_read", "max_value": 10}}


def suite(name: str, *listed: Any, judges: str = "figures of a batch", **keys: Any) -> dict[str, Any]:
    return {"name": name, "expectations": listed, "meta": {"windowlib": {"judges": judges}}, **keys}


def own(folder: Path, **files: Any):
    """The sample pipeline with a folder of its own suites: contents, or text, by name."""
    (folder / "ours").mkdir()
    for name, contents in files.items():
        text = contents if isinstance(contents, str) else json.dumps(contents)
        (folder / "ours" / f"{name}.json").write_text(text, encoding="utf-8")
    return definition(folder, checks='suites = "ours"')


def test_a_file_replaces_the_suite_of_its_name_or_is_added(tmp_path: Path) -> None:
    clicks = own(tmp_path, events=suite("events", FEW), traffic=suite("traffic", FEW), README="not a suite")
    (tmp_path / "ours" / "README.json").rename(tmp_path / "ours" / "README.md")
    results = check(clicks, FIGURES, HISTORY)
    assert [one.expectation for one in results if one.suite in ("events", "traffic")] == [
        "expect_column_max_to_be_between(rows_read)"
    ] * 2
    assert {one.suite for one in results} == {"events", "results", "state", "traffic", "usual"}


def test_bounds_columns_and_conditions_can_be_used_by_anyone(tmp_path: Path) -> None:
    bound = {"$PARAMETER": "round(windows_fired_low / 2)"}
    listed = [
        {"type": "expect_column_max_to_be_between", "kwargs": {"column": "windows_fired", "max_value": bound},
         "description": "At most a quarter of $windows_fired_high."},
        {**FEW, "meta": {"windowlib": {"only_if": "one result per firing"}}},
    ]  # fmt: skip
    (result,) = (one for one in check(own(tmp_path, few=suite("few", *listed)), FIGURES, HISTORY) if one.suite == "few")
    assert (result.sentence, result.expected) == ("At most a quarter of 140.", "at most 10")


MISTAKES: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", r"bad\.json cannot be read \(JSONDecodeError: Expecting property name.*\); need .* as JSON"),
    "no suite": ([], r'bad\.json: got \[\]; need \{"expectations": '),
    "no list": ({"expectations": 3}, r'bad\.json: got \{"expectations": 3\}; need \{"expectations": '),
    "key": (suite("bad", expectation=[]), r'keys of a suite: got "expectation"; need name or .*; did you mean expec'),
    "name": (suite("worse"), r'bad\.json: its name is "worse"; need the name of its file, "name": "bad"'),
    "judges": (suite("bad", judges="rows"), r'meta\.windowlib\.judges: got "rows"; need figures of a batch or '),
    "no type": (suite("bad", {"kwargs": {}}), r'bad\.json: expectation 1: got .*; need \{"type": "expect_…"'),
    "type": (
        suite("bad", FEW, {**FEW, "type": "expect_column_maximum_to_be_between"}),
        r"expectation 2, expect_column_maximum_to_be_between: Great Expectations has no such expectation;"
        r" did you mean expect_column_max_to_be_between\?",
    ),
    "expectation key": (suite("bad", {**FEW, "severty": "info"}), r'got "severty"; need .*; did you mean severity\?'),
    "argument": (
        suite("bad", {**FEW, "kwargs": {"kolumn": "rows_read"}}),
        r"expectation 1, expect_column_max_to_be_between: column: field required; kolumn: extra fields not permitted;"
        r" need arguments among .*column, .*min_value",
    ),
    "severity": (suite("bad", {**FEW, "severity": "bad"}), r'severity: got "bad"; need critical or warning or info'),
    "parameter": (
        suite("bad", {**FEW, "kwargs": {"column": "rows_read", "max_value": {"$PARAMETER": "2 * max_late_shar"}}}),
        r'expectation 1, .*: \$PARAMETER: got "max_late_shar"; need .*; did you mean max_late_share\?',
    ),
    "parameter for a column": (
        suite("bad", {**FEW, "kwargs": {"column": {"$PARAMETER": "max_late_share"}}}),
        r": column: str type expected",
    ),
    "number": (suite("bad", {**FEW, "description": "$lowest"}), r'numbers of the description: got "lowest"; need '),
    "column": (
        suite("bad", {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": ["$keys", "firing"]}}),
        r'column_list: got "\$keys"; need \$key or \$result_number; did you mean \$key\?',
    ),
    "our key": (suite("bad", {**FEW, "meta": {"windowlib": {"if": 1}}}), r'keys of meta\.windowlib: got "if"; need '),
    "our keys": (suite("bad", {**FEW, "meta": "mine"}), r'meta: got "mine"; need "meta": \{"windowlib": \{…\}\}'),
    "condition": (
        suite("bad", {**FEW, "meta": {"windowlib": {"only_if": ["sessions"]}}}),
        r'meta\.windowlib\.only_if: got \["sessions"\]; need one result per window or ',
    ),
    "severity in kwargs": (
        suite("bad", {**FEW, "kwargs": {**FEW["kwargs"], "severity": "info"}}),
        r"expectation 1, .*: severity is inside kwargs; need it next to kwargs",
    ),
    "sentence": (suite("bad", {**FEW, "description": 5}), r"expectation 1, .*: description: got 5; need a string"),
    "no column": (
        suite("bad", {**FEW, "kwargs": {"column": "rows_raed", "max_value": 1}}),
        r'expectation 1, .*: a figure: got "rows_raed"; need .*; did you mean rows_read\?',
    ),
    "no bound": (suite("bad", {**FEW, "kwargs": {"column": "rows_read"}}), r"cannot fail without a bound; need min_"),
    "bound": (
        suite("bad", {**FEW, "kwargs": {"column": "rows_read", "max_value": True}}),
        r"expectation 1, .*: max_value: got true; need a number, or ",
    ),
    "bound by parameter": (
        suite("bad", {**FEW, "kwargs": {"column": "rows_read", "max_value": {"$PARAM": "max_late_share"}}}),
        r'expectation 1, .*: max_value: got \{"\$PARAM": "max_late_share"\}; need a number, or ',
    ),
    "bounds": (
        suite("bad", {**FEW, "kwargs": {"column": "rows_read", "min_value": 5, "max_value": 1}}),
        r"expectation 1, .*: got 5 and 1; need min_value <= max_value",
    ),
    "NaN": (
        suite("bad", {**FEW, "kwargs": {"column": "rows_read", "max_value": float("nan")}}),
        r"cannot be read \(ValueError: NaN is not JSON\); need .* as JSON",
    ),
    "computed": (
        suite("bad", FEW, {**FEW, "kwargs": {"column": "rows_read", "max_value": {"$PARAMETER": "(max_late_share"}}}),
        r"expectation 2, .*: its bounds cannot be computed: Parse Failure",
    ),
    "SQL": (
        suite("bad", {"type": "unexpected_rows_expectation", "kwargs": {"unexpected_rows_query": "select 1"}}),
        r"expectation 1, .*: unexpected_rows_expectation runs SQL; need an expectation that works on a pandas",
    ),
    "figures": (
        suite("bad", {**FEW, "meta": {"windowlib": {"figures": 5}}}),
        r"expectation 1, .*: meta\.windowlib\.figures: got 5; need a list",
    ),
    "figure": (
        suite("bad", {**FEW, "meta": {"windowlib": {"figures": ["rows_raed"]}}}),
        r'meta\.windowlib\.figures: got "rows_raed"; need .*; did you mean rows_read\?',
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence_that_names_file_and_expectation(tmp_path: Path, mistake: str) -> None:
    contents, message = MISTAKES[mistake]
    with pytest.raises(InvalidSpec, match=message) as raised:
        check(own(tmp_path, bad=contents), FIGURES)
    assert str(raised.value).startswith(str(tmp_path / "ours" / "bad.json"))
    assert len(str(raised.value).splitlines()) == 1
    assert not (tmp_path / "warehouse").exists()  # nothing was kept


def test_the_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match=r'checks\.suites: no such folder, given "gone"'):
        definition(tmp_path, checks='suites = "gone"')


def test_a_bound_without_enough_history_bounds_nothing(tmp_path: Path) -> None:
    bound = {"$PARAMETER": "2 * usual_rows_read_high"}
    twice = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "rows_read", "max_value": bound}}
    [result] = (one for one in check(own(tmp_path, few=suite("few", twice)), FIGURES, HISTORY) if one.suite == "few")
    assert (result.success, result.observed) == (True, "1000")


@pytest.mark.parametrize("taken", ["own_figures", "own_results"])
def test_a_suite_has_a_name_of_its_own(tmp_path: Path, taken: str) -> None:
    clicks = own(tmp_path, **{taken: suite(taken, FEW)})
    with pytest.raises(
        InvalidSpec, match=rf"json: {taken} is reserved for the suite of checks\.{taken[4:]}_suite; give it another"
    ):
        check(clicks, FIGURES)


def test_a_suite_follows_its_definition(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(suite("mine", FEW, judges="rows of results")), encoding="utf-8")
    with pytest.raises(InvalidSpec, match=r'judges: got "rows of results"; need figures of a batch'):
        check(definition(tmp_path, checks='figures_suite = "mine.json"'), FIGURES)


def test_a_column_that_results_do_not_have_is_named(tmp_path: Path) -> None:
    unique = {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": ["$key", "window_strt"]}}
    clicks = own(tmp_path, rows=suite("rows", unique, judges="rows of results"))
    with pytest.raises(
        InvalidSpec, match=r'a column of results: got "window_strt"; need .*; did you mean window_start\?'
    ):
        check(clicks, FIGURES, HISTORY, [results_file(tmp_path, [("ann", 0, 10)])])
