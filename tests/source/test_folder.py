"""Files of a source folder: patterns, links, and a change of the folder."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.clicks import CLICKS, clicks
from windowlib.batches.may_run import other_terms
from windowlib.batches.planning import ledger_of, plan, rerun_plan
from windowlib.cli.exits import USER, exit_code
from windowlib.cli.main import app
from windowlib.definition.definition import Definition, InvalidDefinition, load_definition
from windowlib.definition.toml.source import Source
from windowlib.inspection.status import status
from windowlib.ledger.rerun_request import Rerun
from windowlib.ledger.rows import Commit
from windowlib.model.errors import InvalidSpec, StateMismatch
from windowlib.source.folder import folder_files, is_chosen, left_out
from windowlib.source.listed import SourceError
from windowlib.source.location import PLACE

PATTERNS = '\ninclude = ["*.parquet"]\nexclude = ["old/*", "*-test.*"]'


def with_lines(lines: str) -> str:
    return CLICKS.replace('path = "incoming"', f'path = "incoming"{lines}')


def names(definition: Definition) -> set[str]:
    return {file.path for file in folder_files(definition.source)}


def touched(folder: Path, *files: str) -> None:
    for file in files:
        (folder / "incoming" / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / "incoming" / file).touch()


# -- patterns -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("include", "exclude", "name", "chosen"),
    [
        ((), (), "a/README.txt", True),
        (("*.parquet",), (), "1.parquet", True),
        (("*.parquet",), (), "day=1/1.parquet", True),
        (("*.parquet",), (), "README.txt", False),
        (("2026/*",), (), "2026/01/1.parquet", True),
        (("2026/*",), (), "2025/01/1.parquet", False),
        ((), ("README*",), "a/README.txt", False),
        ((), ("readme*",), "README.txt", True),
        (("*.parquet",), ("*-test.*",), "1-test.parquet", False),
        ((), ("a[0-9].*",), "a1.csv", False),
    ],
)
def test_patterns(include: tuple[str, ...], exclude: tuple[str, ...], name: str, chosen: bool, tmp_path: Path) -> None:
    source: Source = clicks(tmp_path, 0).source.model_copy(update={"include": include, "exclude": exclude})
    assert is_chosen(source, name) == chosen


@pytest.mark.fault("a file without events is in the source", "a pattern leaves it out, and the run names it")
def test_files_left_out_are_reported(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1, with_lines(PATTERNS))
    touched(tmp_path, "README.txt", "old/1.parquet", "sub/2-test.parquet", "_tmp/x", ".hidden", "sub/_x.parquet")
    assert names(definition) == {"1.parquet"}
    by_patterns = ["README.txt", "old/1.parquet", "sub/2-test.parquet"]
    assert left_out(definition.source) == [".hidden", *by_patterns, "sub/_x.parquet"]
    assert status(definition, 0).left_out == left_out(definition.source)
    said = "3 files left out by source.include and source.exclude: README.txt, old/1.parquet, sub/2-test.parquet"
    for command in ("plan", "status"):
        ended = CliRunner().invoke(app, [command, str(definition.file)], env={"COLUMNS": "200"})
        assert said in ended.output
    [record] = CliRunner().invoke(app, ["plan", str(definition.file), "--json"]).output.splitlines()
    assert json.loads(record)["left_out"] == left_out(definition.source)
    assert left_out(clicks(tmp_path / "all", 1).source) == []


def test_a_plan_is_replaced_after_a_change_of_patterns(tmp_path: Path) -> None:
    frozen = plan(clicks(tmp_path, 2))
    assert frozen is not None
    edited = clicks(tmp_path, 0, with_lines('\nexclude = ["1.*"]'))
    assert other_terms(edited, frozen) == 'source.exclude was not given, is ["1.*"]'


@pytest.mark.parametrize("pattern", ['""', '"/in/*"', '"../*"'])
def test_no_pattern_leaves_the_folder(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition, match=r"source\.exclude.*must be a pattern of names below source\.path"):
        clicks(tmp_path, 0, with_lines(f"\nexclude = [{pattern}]"))


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    """Archives of other systems may contain such names. Storage formats cannot keep them."""
    definition = clicks(tmp_path, 1)
    os.rename(tmp_path / "incoming" / "1.parquet", os.fsencode(tmp_path / "incoming") + b"/caf\xe9.parquet")
    ended = CliRunner().invoke(app, ["plan", str(definition.file)])
    assert ended.exit_code == USER
    assert "caf\\xe9.parquet is not UTF-8, so it cannot be stored. Rename the file" in ended.stderr
    leave_out = 'exclude = ["caf?.parquet"]'
    assert leave_out in ended.stderr
    assert names(clicks(tmp_path, 0, with_lines(f"\n{leave_out}"))) == set()


def test_a_file_instead_of_the_source_folder(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 0, CLICKS.replace('"incoming"', '"clicks.toml"'))
    with pytest.raises(SourceError, match=r"clicks\.toml is a file, not a folder; correct source\.path"):
        plan(definition)


# -- links ----------------------------------------------------------------------------------------------------------


@pytest.mark.fault("a link to a folder is in the source", "refused by name; never skipped, never read twice")
def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1)
    incoming, elsewhere = tmp_path / "incoming", tmp_path / "elsewhere"
    shutil.copytree(incoming, elsewhere)
    (incoming / "linked.parquet").symlink_to(elsewhere / "1.parquet")
    assert names(definition) == {"1.parquet", "linked.parquet"}
    (incoming / "_link").symlink_to(elsewhere)
    assert names(definition) == {"1.parquet", "linked.parquet"}
    (incoming / "more").symlink_to(elsewhere)
    with pytest.raises(
        SourceError, match=r"more is a link to the folder .*elsewhere, but runs do not follow links"
    ) as refused:
        plan(definition)
    assert exit_code(refused.value) == USER
    assert names(clicks(tmp_path, 0, with_lines('\nexclude = ["more"]'))) == {"1.parquet", "linked.parquet"}
    (incoming / "more").unlink()
    (incoming / "gone.parquet").symlink_to(elsewhere / "2.parquet")
    with pytest.raises(SourceError, match=r"gone\.parquet is a broken link: .*2\.parquet does not exist"):
        plan(definition)


# -- another folder -------------------------------------------------------------------------------------------------


def test_a_pipe_is_passed_over(tmp_path: Path) -> None:
    """A link to a pipe is skipped too. Opening either would wait for its writer."""
    definition = clicks(tmp_path, 1)
    os.mkfifo(tmp_path / "incoming" / "2.parquet")
    (tmp_path / "incoming" / "3.parquet").symlink_to("2.parquet")
    assert names(definition) == {"1.parquet"}


def commit_of(definition: Definition) -> Commit:
    """Commit of a batch of this definition, as far as a plan reads it."""
    frozen = plan(definition)
    assert frozen is not None
    assert frozen.stored[PLACE]["path"] == str(definition.source.path)
    return Commit(1, {}, 0, 1, frozen.fingerprint, frozen.definition, {}, 0, plan_time_ms=0, late_out_ms=0)


def planned(definition: Definition, commit: Commit) -> None:
    ledger = ledger_of(definition)
    state = replace(ledger.state(), commit=commit)
    rerun_plan(definition, ledger.tables, state, Rerun(0, 1, "again", "ann"), lambda: 0)


def test_a_file_with_two_names(tmp_path: Path) -> None:
    folder, definition = tmp_path / "incoming", clicks(tmp_path, 2)
    outside = tmp_path / "outside.parquet"
    shutil.copy(folder / "1.parquet", outside)
    (folder / "_now").mkdir()
    shutil.copy(outside, folder / "_now" / "4.parquet")
    (folder / "3.parquet").symlink_to(outside)
    (folder / "4.parquet").symlink_to("_now/4.parquet")
    assert plan(definition)
    for link, to, known in (("5", "3.parquet", "3"), ("latest", "2.parquet", "2"), ("5", outside, "3")):
        (folder / f"{link}.parquet").symlink_to(to)
        with pytest.raises(
            SourceError, match=rf"{link}\.parquet is a link to .* but that file is also read as {known}\.parquet:"
        ):
            folder_files(definition.source)
        (folder / f"{link}.parquet").unlink()
    (folder / "latest.parquet").symlink_to("2.parquet")
    assert len(folder_files(definition.source.model_copy(update={"exclude": ("latest.*",)}))) == 4


def test_a_table_is_no_source_even_with_a_pattern(tmp_path: Path) -> None:
    """Its partitions are no folders of files either. A partition without chosen files may be there."""
    source = clicks(tmp_path, 1).source.model_copy(update={"include": ("1.parquet", "part-*")})
    (source.path / "old/_delta_log").mkdir(parents=True)
    touched(tmp_path, "old/x.parquet", "old/day=1/y.parquet")
    assert [file.path for file in folder_files(source)] == ["1.parquet"]
    touched(tmp_path, "old/day=1/part-0.parquet")
    with pytest.raises(SourceError, match="old is a Delta table"):
        folder_files(source)


@pytest.mark.fault(
    "the warehouse is inside the source folder",
    "refused before the first batch, or left out if `source.exclude` names it",
)
def test_a_source_does_not_read_the_tables_of_its_own_pipeline(tmp_path: Path) -> None:
    file = clicks(tmp_path, 1, with_lines("").replace('path = "incoming"', 'path = "."\ninclude = ["*.parquet"]')).file
    with pytest.raises(InvalidSpec, match=r'source\.exclude = \["warehouse/clicks/\*"\]'):
        plan(load_definition(file))
    file.write_text(file.read_text().replace("include", 'exclude = ["warehouse/clicks/*"]\ninclude'))
    found = plan(load_definition(file))
    assert [one.path for one in found.files] == ["incoming/1.parquet"] if found else False


@pytest.mark.parametrize("log", ["_delta_log", ".hoodie", "_spark_metadata", "metadata/v1.metadata.json"])
@pytest.mark.parametrize("above", ["", "warehouse/clicks/results/"])
@pytest.mark.fault(
    "the source, or a folder in it, is a table whose log decides which files count",
    "refused, because deleted rows would be read; or left out if `source.exclude` names it",
)
def test_a_table_is_not_a_folder_of_files(tmp_path: Path, log: str, above: str) -> None:
    definition = clicks(tmp_path, 1)
    touched(tmp_path, f"{above}{log}" if log.endswith(".json") else f"{above}{log}/0.json", f"{above}2.parquet")
    with pytest.raises(SourceError, match=r"(log|timeline|metadata) says which of its files count") as refused:
        folder_files(definition.source)
    assert str(definition.source.path / above).rstrip("/") in str(refused.value)
    if above:
        assert f'source.exclude = ["{above}*"]' in str(refused.value)
        without = definition.source.model_copy(update={"exclude": (f"{above}*",)})
        assert [file.path for file in folder_files(without)] == ["1.parquet"]


@pytest.mark.parametrize("place", ["", "data", "data/day=2026-03-02"])
@pytest.mark.parametrize("include", [(), ("*.parquet",), ("1.parquet",)])
def test_an_iceberg_table_is_refused_wherever_the_source_begins(
    tmp_path: Path, place: str, include: tuple[str, ...]
) -> None:
    definition = clicks(tmp_path, 0)
    touched(tmp_path, "metadata/00000-aa.metadata.json", "metadata/snap-1.avro", "data/day=2026-03-02/1.parquet")
    path = definition.source.path / place
    source = definition.source.model_copy(update={"path": path, "include": include})
    with pytest.raises(SourceError, match=r"incoming is an Iceberg table, whose metadata .*read another folder"):
        folder_files(source)


def test_a_folder_of_metadata_does_not_make_an_iceberg_table(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1)
    touched(tmp_path, "metadata/schema.json", "v1.metadata.json")
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata/v1.metadata.json").touch()  # `incoming` next to it is not its `data`
    assert names(definition) == {"1.parquet", "metadata/schema.json", "v1.metadata.json"}


def test_the_tables_of_another_pipeline_are_left_out_together(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1)
    for table in ("ledger", "results"):
        (definition.source.path / "warehouse" / "hours" / table / "_delta_log").mkdir(parents=True)
        touched(tmp_path, f"warehouse/hours/{table}/2.parquet")
    with pytest.raises(SourceError, match=r'leave it out: source\.exclude = \["warehouse/hours/\*"\]'):
        folder_files(definition.source)
    without = definition.source.model_copy(update={"exclude": ("warehouse/hours/*",)})
    assert [file.path for file in folder_files(without)] == ["1.parquet"]


@pytest.mark.fault("the definition names another source folder", "refused, unless it states that the files were moved")
def test_another_folder_is_refused_unless_the_files_were_moved(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1)
    commit = commit_of(definition)
    planned(definition, commit)
    shutil.move(tmp_path / "incoming", tmp_path / "landing")
    text = CLICKS.replace('"incoming"', '"landing"')
    with pytest.raises(StateMismatch, match=r'has read .*incoming, but source.path is .*landing.*moved_from = ".*ing"'):
        planned(clicks(tmp_path, 0, text), commit)
    moved = text.replace("[watermark]", 'moved_from = "incoming"\n[watermark]')
    planned(clicks(tmp_path, 0, moved), commit)
    with pytest.raises(SourceError, match=r"lnading does not exist; clicks has read .*incoming so far"):
        planned(clicks(tmp_path, 0, text.replace("landing", "lnading")), commit)
    with pytest.raises(StateMismatch, match="another name or warehouse"):
        planned(clicks(tmp_path, 0, moved.replace('moved_from = "incoming"', 'moved_from = "other"')), commit)


def test_a_pipeline_that_moves_with_its_source_goes_on(tmp_path: Path) -> None:
    commit = commit_of(clicks(tmp_path / "here", 1))
    os.rename(tmp_path / "here", tmp_path / "there")
    planned(load_definition(tmp_path / "there" / "clicks.toml"), commit)
