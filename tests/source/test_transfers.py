"""Names of unfinished transfers: passed over, and known again under the name of the complete file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.source.arriving import ALWAYS, Arriving, seconds
from tests.support.clicks import clicks
from windowlib.cli.exits import USER, exit_code
from windowlib.cli.main import app
from windowlib.decisions.set_aside import set_aside
from windowlib.inspection.status import status
from windowlib.source.folder import folder_files, is_chosen, left_out
from windowlib.source.listed import SourceError
from windowlib.source.transfers import SUFFIXES

BY_USER = 'key = ["user"]\ntimestamp = "at"\n'
HALF = {"user": ["ann"], "at": seconds(1)}
WHOLE = {"user": ["ann", "ann"], "at": seconds(1, 2)}
WITH_PART = 'include = ["*.parquet", "*.Part"]\n'
SORTED = 'sorted_by_time = "names"\n'


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_unfinished_transfer_is_read_only_where_include_names_its_suffix(tmp_path: Path, suffix: str) -> None:
    source = clicks(tmp_path, 0).source
    for name in (f"a.csv{suffix}", f"d/a.csv{suffix.upper()}"):
        assert not is_chosen(source, name)
        assert not is_chosen(source.model_copy(update={"include": ("*", "a.*", "*.csv*")}), name)
        named = source.model_copy(update={"include": ("*.csv", f"*{suffix}", f"*{suffix.upper()}")})
        assert is_chosen(named, name)
        assert not is_chosen(named.model_copy(update={"exclude": ("*a.*",)}), name)
    complete = ("report.part-0001.parquet", "part-0001.parquet", f"d{suffix}/a.csv", f"a{suffix}.csv", suffix[1:])
    assert [name for name in complete if not is_chosen(source, name)] == []


def test_unfinished_transfers_are_reported(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1)
    unfinished = ["2.parquet.FilePart", "sub/3.parquet.tmp", ".4.parquet", "_5.parquet"]
    for name in [*unfinished, "_sub/6.parquet"]:
        (definition.source.path / name).parent.mkdir(exist_ok=True)
        (definition.source.path / name).touch()
    assert [file.path for file in folder_files(definition.source)] == ["1.parquet"]
    assert left_out(definition.source) == sorted(unfinished) == status(definition, 0).left_out
    said = f"4 files left out, named like unfinished transfers: {', '.join(unfinished)}"
    for command in ("plan", "status"):
        assert said in CliRunner().invoke(app, [command, str(definition.file)], env={"COLUMNS": "200"}).output
    [record] = CliRunner().invoke(app, ["plan", str(definition.file), "--json"]).output.splitlines()
    assert json.loads(record)["left_out"] == sorted(unfinished)


@pytest.mark.spark
@pytest.mark.embedded
def test_a_transfer_is_read_once_when_it_is_finished(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Arriving(tmp_path / "p", BY_USER)
    pipeline.put("a.parquet.filepart", HALF)
    assert pipeline.run(spark) == []
    pipeline.put("a.parquet.filepart", WHOLE)
    pipeline.move("a.parquet.filepart", "a.parquet")
    assert pipeline.results(spark, ["user", "n"]) == [("ann", 2)]


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize(
    ("listing", "include"),
    [("", WITH_PART), (SORTED, WITH_PART), ("", ""), ("", 'include = ["*.Part"]\n')],
    ids=["both", "sorted", "by default", "alone"],
)
def test_a_file_that_was_read_unfinished_stops_the_run_under_its_complete_name(
    spark: SparkSession, tmp_path: Path, listing: str, include: str
) -> None:
    pipeline = Arriving(tmp_path / "p", BY_USER + WITH_PART + listing)
    pipeline.put("a.parquet.Part", HALF)
    pipeline.run(spark)
    pipeline.define(BY_USER + include + listing)
    pipeline.put("a.parquet.Part", WHOLE)
    pipeline.move("a.parquet.Part", "a.parquet")
    with pytest.raises(
        SourceError, match=r"a\.parquet\.Part was read before.*a\.parquet has arrived .*rerun"
    ) as refused:
        pipeline.run(spark)
    assert exit_code(refused.value) == USER
    pipeline.run(spark, ALWAYS)
    assert pipeline.run(spark) == []
    assert pipeline.results(spark, ["user", "n"]) == [("ann", 2)]
    assert pipeline.read() == ["a.parquet.Part"]
    verified = pipeline.verified(spark)
    assert (list(verified.differences), list(verified.not_compared)) == ([], [])


@pytest.mark.spark
@pytest.mark.embedded
def test_a_complete_file_may_be_renamed_to_its_final_name(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Arriving(tmp_path / "p", BY_USER + WITH_PART)
    pipeline.put("a.parquet.Part", WHOLE)
    pipeline.run(spark)
    pipeline.move("a.parquet.Part", "a.parquet")
    assert pipeline.run(spark) == []
    assert pipeline.results(spark, ["user", "n"]) == [("ann", 2)]


@pytest.mark.spark
@pytest.mark.embedded
def test_a_complete_file_next_to_an_unfinished_read_one_is_new(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Arriving(tmp_path / "p", BY_USER + WITH_PART)
    pipeline.put("a.parquet.Part", HALF)
    pipeline.run(spark)
    pipeline.put("a.parquet", WHOLE)
    pipeline.run(spark)
    (pipeline.incoming / "a.parquet.Part").unlink()  # both were read: this one is a removed file
    assert pipeline.run(spark) == []
    assert pipeline.results(spark, ["user", "n"]) == [("ann", 3)]


@pytest.mark.spark
@pytest.mark.embedded
def test_runs_go_on_without_a_complete_file_that_is_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Arriving(tmp_path / "p", BY_USER + WITH_PART)
    pipeline.put("a.parquet.Part", HALF)
    pipeline.run(spark)
    pipeline.put("a.parquet.Part", WHOLE)
    pipeline.move("a.parquet.Part", "a.parquet")
    set_aside(pipeline.definition, "a.parquet", "ann", "the first half is enough")
    assert pipeline.run(spark) == []
    assert pipeline.results(spark, ["user", "n"]) == [("ann", 1)]
