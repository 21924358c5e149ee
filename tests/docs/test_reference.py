"""The reference is what the code says: its pages are up to date, and nothing is missing from them."""

from __future__ import annotations

import re
from typing import Any

import typer

from docs.reference import exit_codes, keys
from docs.reference.__main__ import files
from docs.reference.commands import commands
from tests.support.doc_pages import DOCS, table
from windowlib.cli import exits
from windowlib.cli.main import app
from windowlib.contract.tables import TABLES
from windowlib.definition.instants import instant
from windowlib.definition.toml.fields import Section
from windowlib.definition.toml.file import DefinitionFile
from windowlib.definition.toml.masters import TOKEN_VARIABLE
from windowlib.model.aggregates import Count
from windowlib.model.assigners import Tumbling
from windowlib.model.batch import advance
from windowlib.model.elements import Element, Late
from windowlib.model.spec import WindowSpec
from windowlib.model.state import OperatorState
from windowlib.model.watermark import WatermarkPolicy
from windowlib.plans.admission import REASONS
from windowlib.plans.aggregates.functions import ALIASES, CALLABLE

HOUR_MS = 3_600_000
REFERENCE = DOCS / "reference"


def text(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


def test_the_pages_are_up_to_date() -> None:
    stale = [path.name for path, made in files().items() if path.read_text(encoding="utf-8") != made]
    assert stale == [], "run: python -m docs.reference"


def test_every_key_of_a_definition_is_there_with_a_meaning() -> None:
    page = text("definition")
    models = [DefinitionFile, *(model for _, model in keys.sections(DefinitionFile))]
    models += [kind for union in (keys.WINDOWS, keys.TRIGGERS, keys.EVICTORS) for kind in keys.models(union)]
    for model in models:
        for key, _, meaning in keys.keys(model):
            assert meaning, f"{model.__name__}.{key} has no description"
            assert f"| `{key}` |" in page, key
    fields = {keys.key_of(name, one) for model in models for name, one in model.model_fields.items()}
    named = {name.rpartition(".")[2] for name in re.findall(r"`\[?([\w.]+)\]?`", page)}
    assert fields - named == set()
    assert issubclass(models[-1], Section)


def test_every_function_of_aggregates_is_there() -> None:
    page = text("definition").partition("\n## Functions of aggregates\n")[2]
    assert [name for name in CALLABLE if f"`{name}(x" not in page] == []
    assert [name for name in ALIASES if f"`{name}`" not in page and f"`{name}(x)`" not in page] == []


def test_every_table_and_column_is_there() -> None:
    page = text("tables")
    for name, spec in TABLES.items():
        part = page.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
        assert [column.name for column in spec.described if f"| `{column.name}` |" not in part] == []
        assert all(column.holds for column in spec.described)


def test_every_command_is_there() -> None:
    group: Any = typer.main.get_command(app)
    page = text("commands")
    for name, command in commands(group):
        part = page.split(f"\n## windowlib {name}\n", 1)[1].split("\n## ", 1)[0]
        assert [one.opts[-1] for one in command.params if one.opts[-1].startswith("-") and one.name != "help"] == (
            re.findall(r"^\| `(--[\w-]+)", part, re.MULTILINE)
        )


def test_every_exit_code_is_there() -> None:
    codes = [exits.DONE, exits.UNEXPECTED, exits.USER, exits.REJECTED, exits.SUPERSEDED, exits.DIFFERS]
    assert sorted({end.code for end in exits.ENDS}) == codes == list(range(6))
    assert all(cell for row in exit_codes.rows() for cell in row)
    assert re.findall(r"^\| `(\d)` \|", text("exit-codes"), re.MULTILINE) == ["0", "1", "2", "3", "3", "4", "5"]


def test_every_environment_variable_is_there() -> None:
    code = [*(DOCS.parent / "windowlib").rglob("*.py"), *(DOCS.parent / "dags").glob("*.py")]
    used = {name for file in code for name in re.findall(r"\bWINDOWLIB_[A-Z_]+\b", file.read_text())}
    used.add(TOKEN_VARIABLE)  # PySpark's name
    assert set(re.findall(r"^\| `(\w+)`", text("environment"), re.MULTILINE)) == used


def test_every_reason_of_a_refusal_is_explained() -> None:
    rows = table((DOCS / "guides" / "quality.md").read_text(), "| reason |")
    assert [row["reason"].strip("`") for row in rows] == list(REASONS)


def test_what_stands_next_to_flink_s_names_exists() -> None:
    every = set(re.findall(r"\| `(\w+)` \|", text("definition"))) | set(re.findall(r'"(\w+)"', text("definition")))
    known = every | set(TABLES) | {"rows_late", "type", "window", "aggregates"}
    for row in table((DOCS / "coming-from" / "flink.md").read_text(), "| Flink |"):
        named = {word for code in re.findall("`([^`]+)`", row["here"]) for word in re.findall("[a-z_]+", code)}
        assert named <= known, row


def test_the_event_that_is_one_millisecond_too_late() -> None:
    """The table of late data, by the reference: window 09:00 to 10:00, lateness 1 h, out of order by 5 min."""
    spec = WindowSpec(Tumbling(HOUR_MS), Count(), allowed_lateness_ms=HOUR_MS)
    found = []
    for row in table((DOCS / "guides" / "late-data.md").read_text(), "| newest event"):
        watermark_ms = WatermarkPolicy(5 * 60_000).candidate_ms(at(row["newest event of the batches before"]))
        assert instant(watermark_ms).split()[1] == row["watermark (UTC)"]
        state = OperatorState()
        advance(spec, state, [Element("a", 9 * HOUR_MS, None, 0)], watermark_ms)
        firings, late = advance(spec, state, [Element("a", 9 * HOUR_MS + HOUR_MS // 2, None, 1)], watermark_ms)
        assert [isinstance(one, Late) for one in late] == [True] * len(late)
        found.append(([firing.timing.value for firing in firings], len(late)))
    assert found == [([], 0), (["late"], 0), (["late"], 0), ([], 1)]


def at(time: str) -> int:
    hours, minutes, seconds = time.split(":")
    return int(hours) * HOUR_MS + int(minutes) * 60_000 + round(float(seconds) * 1000)
