"""Commands in messages run when pasted. One function builds them all."""

import ast
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator
from contextvars import copy_context
from functools import cache
from pathlib import Path

import pytest

from tests.support.clicks import clicks
from windowlib.cli import exits
from windowlib.definition.commands import THIS, WHY, naming, to_paste
from windowlib.model.errors import WindowError

PACKAGE = Path(__file__).resolve().parents[2] / "windowlib"
BY_HAND = re.compile(r"windowlib [a-z][a-z-]*(?: [a-z]+)?(?: --?[a-z-]+)* \{\w*\}")  # {} is what an f-string fills in
NEEDS_MORE = re.compile(r"`windowlib (?:abandon|adopt|approve|migrate|restore|rollback)\b[^`]*`")


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Texts of a program without docstrings; values filled into f-strings are {}."""
    nodes = [*ast.walk(tree)]
    inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(str(x.value) if isinstance(x, ast.Constant) else "{}" for x in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (inside | prose):
            yield node.lineno, node.value


@cache
def texts_of_the_package() -> list[tuple[str, str]]:
    """(file and line, text) of each text of the package."""
    return [
        (f"{file.relative_to(PACKAGE)}:{line}", " ".join(text.split()))
        for file in sorted(PACKAGE.rglob("*.py"))
        for line, text in texts(ast.parse(file.read_text(encoding="utf-8")))
    ]


def made_by_hand(pattern: re.Pattern[str]) -> list[str]:
    return [f"{place}: {found[0]}" for place, text in texts_of_the_package() if (found := pattern.search(text))]


def test_one_function_builds_every_command() -> None:
    """Paths with a space were not quoted, and the program was not on the reader's PATH."""
    tree = ast.parse('''f"`windowlib run {file}` again: windowlib migrate {file}"''')
    assert [bool(BY_HAND.search(text)) for _, text in texts(tree)] == [True]  # the test sees what it looks for
    assert made_by_hand(BY_HAND) == []


def test_every_command_has_its_required_arguments() -> None:
    """`abandon` was shown without a file and without the reason that it asks for."""
    allowed = {"cli/exits.py", "definition/changes.py"}  # they say what a command is for, in a table of the reference
    found = [one for one in made_by_hand(NEEDS_MORE) if one.partition(":")[0] not in allowed]
    assert found == []


def test_a_pasted_command_reaches_the_program_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = tmp_path / "it's `my` $HOME; clicks.toml"
    said = shlex.split(to_paste("abandon", hostile, *WHY))
    assert said[1:] == ["abandon", str(hostile), "--reason", "…"]
    monkeypatch.setenv("PATH", str(tmp_path))
    installed = Path(sys.executable).with_name("windowlib")
    if installed.is_file():
        assert said[0] in ("windowlib", str(installed))
        assert shlex.split(to_paste("status", hostile))[0] == str(installed)
    (tmp_path / "windowlib").touch(stat.S_IRWXU)
    assert shutil.which("windowlib") == str(tmp_path / "windowlib")
    assert shlex.split(to_paste("status", hostile))[0] == "windowlib"


def test_a_stored_sentence_names_the_definition() -> None:
    said = naming(f"drop it: {to_paste('abandon', THIS, *WHY)}", Path("/my pipelines/clicks.toml"))
    assert said.endswith("""abandon '/my pipelines/clicks.toml' --reason "…\"""")


def test_errors_name_the_given_path_and_notices_the_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    definition, error = clicks(tmp_path, 0), WindowError(f"drop it: {to_paste('abandon', THIS, *WHY)}")

    def fails() -> str:
        exits.set_pipeline(definition, Path("clicks.toml"))
        exits.print_error(error, "run")
        return exits.error_sentence(error)

    assert f"abandon {definition.file} --reason" in copy_context().run(fails)
    assert "abandon clicks.toml --reason" in capsys.readouterr().err
