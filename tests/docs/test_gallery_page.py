"""The page of the gallery: its TOML is what a definition takes, its Python names exist, its links lead somewhere."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import windowlib
from docs.gallery.__main__ import DOCS
from docs.gallery.entries import PLATES, Plate, Row, inline, scenario
from windowlib import Count, Element, Firing, OperatorState, Session, WindowSpec, sliding_count, tumbling_count
from windowlib.definition.definition import InvalidDefinition, load_definition
from windowlib.definition.registry import EVICTORS, TRIGGERS
from windowlib.definition.toml.file import DefinitionFile
from windowlib.model.functions import ProcessFunction
from windowlib.model.operator import run
from windowlib.replay.scenarios import replay, spec_of

PAGE = (DOCS / "windows.md").read_text(encoding="utf-8")
ROWS = [(plate, row) for plate in PLATES for row in plate.rows]
SPAN = r"`([^`]+)`"
DEFINITION = """
name = "gallery"
aggregates = { events = "count(*)" }
watermark = { out_of_orderness = "3m" }

[source]
format = "csv"
path = "incoming"
schema = { user = "string", at = "timestamp", value = "bigint", gap_ms = "bigint", page = "string", kind = "string" }
key = ["user"]
timestamp = "at"

"""


# -- TOML and Python -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("plate", "row"), ROWS, ids=lambda one: one.name)
def test_the_toml_of_an_entry_is_the_spec_that_was_replayed(plate: Plate, row: Row, tmp_path: Path) -> None:
    keys = [f"{key} = {inline(value)}" for key, value in row.window.items()]
    (tmp_path / "gallery.toml").write_text(DEFINITION + "\n".join(["[window]", *keys]))
    if replay(scenario(row)).get("error"):
        with pytest.raises(InvalidDefinition, match=r": window\.trigger: "):
            load_definition(tmp_path / "gallery.toml")
    else:
        spec = load_definition(tmp_path / "gallery.toml").spec
        assert windows_of(spec) == windows_of(spec_of(scenario(row)))


def windows_of(spec: WindowSpec) -> tuple[Any, ...]:
    return spec.assigner, spec.trigger, spec.evictor, spec.allowed_lateness_ms, spec.time


def test_the_triggers_of_the_page_are_those_that_a_definition_takes() -> None:
    kinds = words_of_a_definition()
    ours = PAGE.split("\n## Coming from Flink\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| `type = ", ours, re.MULTILINE)
    assert rows == [*TRIGGERS, *EVICTORS]
    assert set(rows) <= kinds


def test_count_windows_are_built_as_the_core_builds_them() -> None:
    [plate] = [plate for plate in PLATES if plate.name == "counts"]
    specs = [windows_of(spec_of(scenario(row))) for row in plate.rows]
    assert specs == [windows_of(tumbling_count(3, Count())), windows_of(sliding_count(4, 2, Count()))]


@pytest.mark.parametrize("block", re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
def test_every_toml_block_is_a_definition(block: str, tmp_path: Path) -> None:
    (tmp_path / "gallery.toml").write_text(DEFINITION + block)
    assert load_definition(tmp_path / "gallery.toml").window


def test_the_code_of_one_s_own_runs() -> None:
    [code] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    own: dict[str, Any] = {}
    exec(compile(code, "own.py", "exec"), own)
    pages: ProcessFunction = own["Pages"]()
    spec = WindowSpec(Session(gap_ms=30), process=pages, trigger=own["Purchase"]("order"))
    visits = [("home", "view"), ("shop", "view"), ("shop", "order")]
    elements = [Element("ann", time_ms, {"page": page, "kind": kind}) for time_ms, (page, kind) in enumerate(visits)]
    firings = [one for one in run(spec, OperatorState(), elements) if isinstance(one, Firing)]
    assert [one.result for one in firings] == [{"pages": 2}]


# -- coming from Flink ---------------------------------------------------------------------------------------------


def flink_rows() -> list[list[str]]:
    tables = PAGE.split("\n## Coming from Flink\n")[1]
    rows = [line.strip("|").split(" | ") for line in tables.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows if "in TOML" not in row]


def test_every_row_has_its_three_cells() -> None:
    rows = flink_rows()
    assert len(rows) > 90
    assert [row for row in rows if len(row) != 3 or not all(row)] == []
    assert [row for row in rows if row[1] == row[2] == "-"] == []  # what is not here says so


def test_every_python_name_exists() -> None:
    """`Name`, `Name.member`, `.member` of the name before it, or `Name(parameter, ...)`."""
    known = python_names()
    for row in flink_rows():
        before = ""
        for code in re.findall(SPAN, row[2]):
            before = code if not code.startswith(".") else before.split(".")[0] + code
            parsed = ast.parse(before, mode="eval").body
            name, *members = ast.unparse(parsed.func if isinstance(parsed, ast.Call) else parsed).split(".")
            found = known[name]
            for member in members:
                found = getattr(found, member)
            if isinstance(parsed, ast.Call):
                given = {ast.unparse(argument) for argument in parsed.args}
                assert given <= set(inspect.signature(found).parameters), before


def python_names() -> dict[str, Any]:
    """What the page says is in `windowlib` and its modules."""
    found = {name: getattr(windowlib, name) for name in windowlib.__all__}
    [listed] = re.findall(r"or\sof\sthe\smodules\sof\s`windowlib\.model`:\s(.*?)\. `\.name`", PAGE, re.DOTALL)
    for module, names in re.findall(r"`(\w+)`\s\((.*?)\)", listed, re.DOTALL):
        within = importlib.import_module(f"windowlib.model.{module}")
        found |= {name: getattr(within, name) for name in re.findall(SPAN, names)}
    return found


def test_every_toml_word_is_one_of_a_definition() -> None:
    known = words_of_a_definition() | {"true", "false"} | {"user", "module"}  # a column and a module of the user's
    for row in flink_rows():
        toml = re.sub(r"\*.+\*", "", row[1])  # without the note
        words = {word for code in re.findall(SPAN, toml) for word in re.findall(r"\b[a-z_]+\b", code)}
        assert words <= known, row


def words_of_a_definition() -> set[str]:
    """Every key of a definition, and every value that stands for a kind of something."""
    found: set[str] = set()

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            found.update(part.get("properties", {}))
            found.update(word for word in [part.get("const"), *part.get("enum", [])] if isinstance(word, str))
            for inner in part.values():
                walk(inner)
        elif isinstance(part, list):
            for inner in part:
                walk(inner)

    walk(DefinitionFile.model_json_schema(by_alias=True))
    return found


def test_links_lead_somewhere() -> None:
    headings = {line.strip("# ").lower().replace(" ", "-") for line in PAGE.splitlines() if line.startswith("#")}
    for link in re.findall(r"\]\(([^)]+)\)", PAGE):
        assert link[1:] in headings if link.startswith("#") else (DOCS / link).exists(), link
