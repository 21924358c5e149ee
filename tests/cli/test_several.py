"""Commands for several pipelines: an error of one pipeline does not stop the others."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.support.clicks import ON_SAIL, clicks
from tests.support.disks import folder_of
from windowlib.cli.main import app
from windowlib.definition.definition import load_definition
from windowlib.ledger.ledger import Ledger
from windowlib.publication.readers import read_table

MISTAKE = 'gap = "10 minutes"'


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Definitions `clicks`, one that cannot be loaded, and `hours`; a file has arrived for all of them."""
    monkeypatch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
    clicks(tmp_path, 1, ON_SAIL)
    (tmp_path / "broken.toml").write_text(ON_SAIL.replace('gap = "10m"', MISTAKE).replace('"clicks"', '"broken"', 1))
    (tmp_path / "hours.toml").write_text(ON_SAIL.replace('"clicks"', '"hours"', 1))
    return [tmp_path / f"{name}.toml" for name in ("clicks", "broken", "hours")]


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.mark.spark
@pytest.mark.embedded
def test_a_mistake_in_one_definition_does_not_stop_the_others(spark: SparkSession, three: list[Path]) -> None:
    ended = call("run", *three, "--json")
    assert ended.exit_code == 2
    [error] = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert "broken.toml" in error
    ends = [one for one in map(json.loads, ended.stdout.splitlines()) if "exit_code" in one]
    assert ends[1:] == [{"pipeline": name, "batches": 1, "exit_code": 0} for name in ("clicks", "hours")]
    assert "window.gap" in (said := ends[0].pop("error"))
    assert said in error
    assert ends[0] == {"pipeline": None, "file": str(three[1]), "batches": 0, "exit_code": 2}
    for name in ("clicks", "hours"):
        assert read_table(load_definition(three[0].parent / f"{name}.toml"), "results").num_rows > 0


def test_each_definition_that_cannot_be_used_has_an_outcome(three: list[Path]) -> None:
    missing = three[0].with_name("missing.toml")
    ended = call("run", three[1], missing, "--json")
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert ended.exit_code == 2
    assert [(one["file"], one["exit_code"]) for one in lines] == [(str(three[1]), 2), (str(missing), 2)]
    assert "no such file" in lines[1]["error"]


@pytest.mark.spark
@pytest.mark.embedded
def test_what_the_engine_cannot_run_does_not_stop_the_others(spark: SparkSession, three: list[Path]) -> None:
    of_text = three[1].read_text().replace(MISTAKE, 'gap = "10m"').replace('format = "parquet"', 'format = "json"')
    three[1].write_text(of_text.replace("max_files_per_run = 1", 'schema = {id = "string", user = "string", '
                                        'at_ms = "bigint", value = "bigint"}'))  # fmt: skip
    ended = call("run", three[1], three[0])
    assert ended.exit_code == 2
    assert 'engine = "sail" cannot run this' in ended.stderr
    assert ended.stdout.startswith("clicks  batch 1  ")


def test_each_unusable_definition_is_reported_if_all_are_unusable(three: list[Path]) -> None:
    three[0].write_text("name = 3")
    for command in (("run",), ("report",), ("report", "--out", three[0].parent / "site")):
        ended = call(*command, *three[:2])
        assert (ended.exit_code, ended.stdout) == (2, "")
        assert [line.startswith("error: ") for line in ended.stderr.splitlines()].count(True) == 2
    assert not (three[0].parent / "site").exists()


def test_a_site_has_a_row_and_a_page_for_each_unusable_pipeline(three: list[Path]) -> None:
    """Without this, one unusable pipeline would stop all pages and metrics."""
    of_hours = load_definition(three[2])
    Ledger(of_hours.store, lambda: 0).write({"kind": "clock", "plan_time_ms": 0, "who": "ann", "reason": ""})
    [entry] = (folder_of(of_hours) / "ledger" / "_delta_log").glob("*1.json")
    entry.write_text(entry.read_text()[:-20])
    site = three[0].parent / "site"
    ended = call("report", *three, "--out", site)
    assert ended.exit_code == 2, ended.output
    assert ended.stdout == f"open {site / 'index.html'}\n"
    [broken, hours] = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert "broken.toml" in broken
    assert hours.startswith("error: hours: ")
    home = (site / "index.html").read_text(encoding="utf-8")
    for name in ("clicks", "broken", "hours"):
        assert f'<a href="{name}/index.html">{name}</a>' in home
        assert (site / name / "index.html").is_file()
    assert "gap" in (site / "broken" / "index.html").read_text(encoding="utf-8")
    assert 'pipeline="clicks"' in (site / "metrics.prom").read_text(encoding="utf-8")


def test_one_unusable_definition_does_not_stop_the_other_pages(three: list[Path]) -> None:
    ended = call("report", *three)
    assert ended.exit_code == 2
    pages = [folder_of(load_definition(three[number])) / "pages" / "index.html" for number in (0, 2)]
    assert ended.stdout.splitlines() == [f"open {page}" for page in pages]


def test_a_broken_definition_with_the_name_of_another_takes_no_page(three: list[Path]) -> None:
    broken = three[1].rename(three[1].with_name("sub.toml"))
    three[0].write_text(three[0].read_text().replace('"clicks"', '"sub"', 1))
    site = three[0].parent / "site"
    assert call("report", three[0], broken, "--out", site).exit_code == 2
    assert "<title>sub: " in (site / "sub" / "index.html").read_text(encoding="utf-8")
    assert (site / "sub.toml" / "index.html").is_file()


def test_each_unusable_file_has_its_own_page(three: list[Path]) -> None:
    folder = three[0].parent
    names = ["index.html.toml", "metrics.prom.toml", "a#b.toml", "100%41.toml", "q?x.toml", "http:.toml", "..toml"]
    broken = [folder / name for name in ("x.toml", "sub/x.toml", *names)]
    for file in broken:
        file.parent.mkdir(exist_ok=True)
        file.write_text("name = 3")
    ended = call("report", three[0], *broken, "--out", folder / "site")
    assert ended.exit_code == 2, ended.output
    home = folder / "site" / "index.html"
    text = home.read_text(encoding="utf-8")
    links = [html.unescape(one) for one in re.findall(r'<th scope="row"[^>]*><a href="([^"]*)"', text)]
    pages = [Path(unquote(urlsplit(urljoin(home.as_uri(), one)).path)) for one in links]
    assert len({*pages}) == 1 + len(broken)
    said = [page.read_text(encoding="utf-8") for page in pages]
    for file in broken:
        assert sum(html.escape(str(file)) in text for text in said) == 1, file
    assert 'pipeline="clicks"' in (folder / "site" / "metrics.prom").read_text(encoding="utf-8")
