"""README and pages do what they say: files are written, commands run, examples executed, in their own order.

What would take minutes or a network is checked for less: `make` says what it would do; `windowlib demo`, `windowlib
setup`, `spark-submit` and `airflow` only read their arguments; `pip` must name this project's wheel and extras.
"""

from __future__ import annotations

import configparser
import doctest
import json
import os
import re
import shlex
import tomllib
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.support.doc_pages import (
    DOCS,
    PROJECT,
    Ended,
    Page,
    Reader,
    follow,
    installable,
    normal,
    pages,
    parsed,
    table,
)
from tests.support.object_servers import Server
from windowlib.contract.tables import TABLES
from windowlib.definition.definition import load_definition
from windowlib.publication.readers import read_table
from windowlib.quality.figure_words import meaning_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGES = pages()
RUNS = {"console", "bash", "python"}
FOLLOWED = [page for page in PAGES if page.name != "docs/windows.md" and RUNS & {one.language for one in page.blocks}]
IN_STORES = {cloud: Page(DOCS / "guides" / f"{cloud}.md") for cloud in ("s3", "azure")}
BASE = """
name = "part"
[source]
format = "csv"
path = "incoming"
schema = { user = "string", at = "timestamp", value = "bigint", page = "string", kind = "string", gap_ms = "bigint" }
key = ["user"]
timestamp = "at"
[watermark]
out_of_orderness = "3m"
"""
WINDOW = '[window]\ntype = "session"\ngap = "30m"\n'
AGGREGATES = '[aggregates]\nevents = "count(*)"\n'
ELSEWHERE = pytest.mark.long("other tests run these commands on tables of their own; make test only reads them here")
COVERED = (  # guides
    *("change", "cluster", "deploy", "erasure", "explain", "operations", "replay", "sharing", "test", "verify"),
    "web-analytics",
)
# What a block of code may be.
KNOWN = {"console", "bash", "toml", "json", "python", "pycon", "ini", "yaml", "text"}


RERUNS = Page(DOCS / "guides" / "reruns.md")
CALENDAR = Page(DOCS / "guides" / "calendar-windows.md")
ON_SAIL = pytest.mark.long("make test follows it on Sail, over the same events in Parquet")


def named(page: Page) -> str:
    return page.name


def followed(page: Page) -> Any:
    is_covered = page.path.parent.name == "guides" and page.path.stem in COVERED
    marks = [ELSEWHERE] if is_covered else [ON_SAIL] if page in (RERUNS, CALENDAR) else []
    return pytest.param(page, marks=marks, id=page.name)


# -- what is run ---------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("page", [followed(page) for page in FOLLOWED if page not in IN_STORES.values()])
def test_every_command_ends_as_printed(page: Page, reader: Reader) -> None:
    end_as_printed(reader.follow(page)[1])


def end_as_printed(ends: list[Ended]) -> None:
    for one in ends:
        refused = any(line.startswith("error: ") for line in one.command.shown)
        assert one.exit_code in ((2, 3, 5) if refused else (0,)), f"{one.command.text}\n{one.output}"
        lines = iter([normal(line) for line in one.output.splitlines()])
        for line in one.command.shown:
            assert normal(line) in lines, f"{one.command.text} does not print: {line}\n{one.output}"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.sail
@pytest.mark.parametrize("cloud", IN_STORES)
def test_the_guide_to_an_object_store_ends_as_printed(
    cloud: str, reader: Reader, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Server = request.getfixturevalue(f"{cloud}_server")
    server.add_bucket("acme-events")
    for name, value in server.variables().items():
        monkeypatch.setenv(name, value)
    folder, ends = reader.follow(IN_STORES[cloud])
    end_as_printed(ends)
    assert {path.name for path in folder.iterdir()} == {"clicks.toml", "docs"}
    definition = load_definition(folder / "clicks.toml")
    rows = sorted((row["user"], row["events"]) for row in read_table(definition, "results").to_pylist())
    assert rows == [("ann", 2), ("bob", 1)]


@pytest.fixture(scope="module")
def reruns(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Ended]]:
    """The guide to reruns, followed over the same events in Parquet."""
    return follow_in_parquet(RERUNS, tmp_path_factory.mktemp("reruns"), request.config.getoption("--engine"))


def follow_in_parquet(page: Page, folder: Path, engine: str) -> tuple[Path, list[Ended]]:
    """Follows a guide over its JSON events in Parquet, which Sail reads too, unlike JSON."""
    schema = 'schema = { shop = "string", at = "timestamp", cents = "bigint" }\n'

    def in_parquet(folder: Path) -> None:
        file = folder / "orders.toml"
        text = file.read_text().replace('format = "json"', 'format = "parquet"').replace(schema, "")
        file.write_text(text if text.startswith("engine") else f'engine = "{engine}"\n{text}')
        for path in (folder / "incoming").glob("*.json"):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            table = pa.Table.from_pylist([{**row, "at": datetime.fromisoformat(row["at"])} for row in rows])
            pq.write_table(table, path.with_suffix(".parquet"))
            os.utime(path.with_suffix(".parquet"), ns=(path.stat().st_mtime_ns,) * 2)
            path.unlink()

    return folder, follow(page, folder, in_parquet)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_the_guide_to_reruns_ends_as_printed_over_parquet(reruns: tuple[Path, list[Ended]]) -> None:
    """But for the bytes of its files."""
    ends = [
        replace(one, command=replace(one.command, shown=[line for line in one.command.shown if " bytes" not in line]))
        for one in reruns[1]
    ]
    assert sum(len(one.command.shown) for one in ends) == sum(len(one.shown) for one in RERUNS.commands) - 1
    end_as_printed(ends)
    assert any(line.startswith("  reads        3 files, ") for one in ends for line in one.output.splitlines())


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_the_guide_to_calendar_windows_ends_as_printed_over_parquet(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    end_as_printed(follow_in_parquet(CALENDAR, tmp_path, request.config.getoption("--engine"))[1])


@pytest.mark.spark
@pytest.mark.slow
def test_the_results_of_the_readme_are_those_of_its_table(reader: Reader) -> None:
    readme = Page(PROJECT / "README.md")
    printed = table(readme.text, "| user |")
    rows = read_table(load_definition(reader.follow(readme)[0] / "clicks.toml"), "results").to_pylist()
    found = [{name: str(row[name]).removesuffix("+00:00") for name in printed[0]} for row in rows]
    assert sorted(found, key=str) == sorted(printed, key=str)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long("tests/replay and tests/inspection hold both in make test, which only reads these guides' commands")
def test_what_replay_and_the_readers_give(reader: Reader) -> None:
    folder, ends = reader.follow(Page(DOCS / "guides" / "replay.md"))
    assert (folder / "sessions.svg").read_text() == (DOCS / "pictures" / "sessions.svg").read_text()
    replayed = [json.loads(one.output) for one in ends if "windowlib replay" in one.command.text]
    assert len(replayed) == 4  # scenarios and batches, each by the reference and by Spark
    assert replayed[0] == replayed[1]
    assert replayed[2] == replayed[3]
    _, ends = reader.follow(Page(DOCS / "guides" / "explain.md"))
    assert "ann" in next(one.output for one in ends if "duckdb_views" in one.command.text)
    assert "window_start" in next(one.output for one in ends if "spark_views" in one.command.text)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_the_late_event_says_which_rerun_readmitted_it(reruns: tuple[Path, list[Ended]]) -> None:
    _, ends = reruns
    assert '"readmitted_by": 5' in ends[-1].output


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "guide",
    [
        pytest.param("quality", marks=pytest.mark.long("most figures are those of the guide to reruns")),
        pytest.param("reruns", marks=pytest.mark.embedded),
    ],
)
def test_every_figure_and_every_column_that_runs_wrote_is_described(guide: str, request: pytest.FixtureRequest) -> None:
    if guide == "reruns":
        folder, _ = request.getfixturevalue("reruns")
    else:
        folder, _ = request.getfixturevalue("reader").follow(Page(DOCS / "guides" / f"{guide}.md"))
    [file] = [one for one in folder.glob("*.toml") if one.stem in ("clicks", "orders")]
    definition = load_definition(file)
    written = set(read_table(definition, "run_metrics")["figure"].to_pylist())
    assert all(map(meaning_of, written)), written
    own = {*definition.source.key, *(column.name for column in definition.aggregates.columns)}
    for name, spec in TABLES.items():
        known = own | {column.name for column in spec.described}
        found = set(read_table(definition, name).column_names)
        assert {one for one in found - known if not re.fullmatch(r"p\d+_\w+", one)} == set(), name


def test_the_page_about_tests_names_the_guides_that_make_test_only_parses() -> None:
    page = " ".join((DOCS / "contributing" / "tests.md").read_text().split())
    [said] = re.findall(r"only parses their commands: (.*?)\(`COVERED`", page)
    assert sorted(re.findall(r"\*([\w-]+)\*", said)) == sorted(COVERED)


# -- what is looked at ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_is_looked_at(page: Page) -> None:
    assert {block.language for block in page.blocks} <= KNOWN
    directives = len(re.findall(r"^```\{", page.text, re.MULTILINE))
    assert page.text.count("```") == 2 * (len(page.blocks) + directives)


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "docs/windows.md"], ids=named)
def test_parts_of_definitions_are_what_a_definition_takes(page: Page, tmp_path: Path) -> None:
    for block in page.blocks:
        if block.language == "python" and block.about.endswith(".py"):
            (tmp_path / block.about).write_text(block.text)
    for block in page.blocks:
        if block.language == "toml" and not block.about:
            whole = BASE if block.text.startswith(("#", "[")) else block.text + BASE
            whole += "" if "[window]" in block.text else WINDOW
            whole += "" if "function" in block.text else AGGREGATES
            whole += block.text if block.text.startswith(("#", "[")) else ""
            (tmp_path / "part.toml").write_text(whole)
            assert load_definition(tmp_path / "part.toml").spec


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_examples_of_the_core_are_doctests(page: Page) -> None:
    for number, block in enumerate(block for block in page.blocks if block.language == "pycon"):
        test = doctest.DocTestParser().get_doctest(block.text, {}, f"{page.name} {number}", None, None)
        assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("page", FOLLOWED, ids=named)
def test_every_command_is_one_that_is_understood(page: Page) -> None:
    for one in page.commands:
        match shlex.split(one.text):
            case ["windowlib", name, *arguments]:
                parsed(name, arguments)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_units_start_commands_that_exist(page: Page) -> None:
    for block in page.blocks:
        if block.language == "ini":
            unit = configparser.ConfigParser()
            unit.optionxform = str  # type: ignore[assignment, method-assign]  # keys as they are written
            unit.read_string(block.text)
            assert {"Service", "Timer"} & {*unit.sections()}
            service = dict(unit["Service"]) if "Service" in unit else {}
            for key in {"ExecStart", "ExecStop"} & {*service}:
                program, name, *arguments = shlex.split(service[key].replace("\\\n", " "))
                if Path(program).name != "spark-submit":  # that unit is started by `tests.engines.test_connect`
                    assert Path(program).name == "windowlib"
                    parsed(name, arguments)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_jobs_of_kubernetes_start_commands_that_exist(page: Page) -> None:
    for block in page.blocks:
        if block.language == "yaml":
            pod = yaml.safe_load(block.text)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
            [[program, name, *arguments]] = [container["command"] for container in pod["containers"]]
            assert program == "windowlib"
            parsed(name, arguments)


def test_the_image_installs_this_wheel() -> None:
    [image] = [one.text for page in PAGES for one in page.blocks if one.about == "Dockerfile"]
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    wheels = re.findall(r"windowlib-\S+?\.whl(?:\[[\w,]+\])?", image)
    assert len(wheels) == 2
    assert wheels[0] == f"windowlib-{version}-py3-none-any.whl"
    installable(wheels[1])
    assert "RUN windowlib setup --archive\n" in image


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Page) -> None:
    bare = re.sub(r"^ *```.*?^ *```$|`[^`\n]*`", "", page.text, flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", bare):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (page.path.parent / file).resolve() if file else page.path
        assert target.exists(), f"{page.name}: {link}"
        if anchor and target.name != "index.md":
            assert anchor in Page(target).anchors, f"{page.name}: {link}"


def test_every_marker_is_explained() -> None:
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    page = (DOCS / "contributing" / "tests.md").read_text()
    assert [one for one in settings["markers"] if f"| `{re.split('[:(]', one)[0]}` |" not in page] == []


def test_every_page_is_in_the_site() -> None:
    index = (DOCS / "index.md").read_text()
    listed = re.findall(r"^[\w/*-]+$", index, re.MULTILINE)
    there = {str(page.path.relative_to(DOCS).with_suffix("")) for page in PAGES if DOCS in page.path.parents}
    missing = {one for one in there if not any(fnmatch(one, pattern) for pattern in listed)}
    assert missing == {"index"}, "name it in docs/index.md"


def test_no_page_names_old_modules() -> None:
    old = re.compile(r"(?:from|import|python -m) jobs\b")
    assert [page.name for page in PAGES if old.search(page.text) and page.path != PROJECT / "CHANGELOG.md"] == []
