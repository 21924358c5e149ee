"""README and pages as a reader follows them: blocks of code, commands with the output they show, links, headings.

What a block is for stands behind its language: `toml clicks.toml` (a file), `toml >> clicks.toml` (appended to one),
`python process` (run by itself). A page that begins with `<!-- continues: PAGE -->` goes on in the folder of that one.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from windowlib.cli.main import app

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
PREVIEW_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")  # it differs each time
SECONDS = re.compile(r"  \d+\.\d s$")
# Minutes, or a network: the arguments are read, and other tests run the command itself.
ONLY_PARSED = ("demo", "setup")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code: language, arguments behind it, and text."""

    language: str
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command and the lines that the page shows of its output."""

    text: str
    shown: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Ended:
    """End of a command."""

    command: Command
    exit_code: int
    output: str


@dataclass(frozen=True)
class Page:
    """A Markdown file of the documentation."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(PROJECT))

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> list[Block]:
        found = re.findall(r"^( *)```(\w+)(?: ([^\n]*))?\n(.*?)^ *```$", self.text, re.MULTILINE | re.DOTALL)
        return [Block(language, about, _outdented(text, len(indent))) for indent, language, about, text in found]

    @property
    def continues(self) -> Page | None:
        found = re.match(r"<!-- continues: (\S+) -->", self.text)
        return Page((self.path.parent / found[1]).resolve()) if found else None

    @property
    def commands(self) -> list[Command]:
        return [one for block in self.blocks if block.language == "console" for one in commands(block.text)]

    @cached_property
    def anchors(self) -> set[str]:
        """Targets for links in this page: its headings, and its own targets."""
        bare = re.sub(r"^ *```.*?^ *```$", "", self.text, flags=re.MULTILINE | re.DOTALL)
        headings = re.findall(r"^#+ (.*)$", bare, re.MULTILINE)
        return {_slug(one) for one in headings} | set(re.findall(r"^\((\S+)\)=$", self.text, re.MULTILINE))


def pages() -> list[Page]:
    """README, changelog and every page of the site."""
    found = [one for one in sorted(DOCS.rglob("*.md")) if "_site" not in one.parts]
    return [Page(PROJECT / "README.md"), Page(PROJECT / "CHANGELOG.md"), *map(Page, found)]


def commands(block: str) -> list[Command]:
    """Commands of a block: `$` begins a command, `>` continues it, other lines are output."""
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        elif line.startswith("> "):
            found[-1] = Command(f"{found[-1].text}\n{line[2:]}")
        else:
            found[-1].shown.append(line)
    return found


def table(text: str, heading: str) -> list[dict[str, str]]:
    """The rows of the Markdown table whose first line begins with `heading`, by column."""
    lines = text.split(f"\n{heading}", 1)[1].split("\n\n", 1)[0].splitlines()
    cells = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in (heading + lines[0], *lines[2:])
    ]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[1:]]


def normal(line: str) -> str:
    """Line of output without values that differ between runs."""
    return PREVIEW_ID.sub("ID", SECONDS.sub("", line.rstrip()))


def _outdented(text: str, spaces: int) -> str:
    return re.sub(rf"^ {{{spaces}}}", "", text, flags=re.MULTILINE)


def _slug(heading: str) -> str:
    """The anchor of a heading, as code hosts and MyST make it."""
    return re.sub(r"[^\w -]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")


# -- following a page ----------------------------------------------------------------------------------------------


def follow(page: Page, folder: Path, after_each: Callable[[Path], None] | None = None) -> list[Ended]:
    """Follows the page in `folder` from its first line to its last; `after_each` follows each block."""
    outcomes: list[Ended] = []
    namespace: dict[str, Any] = {}
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
        for block in page.blocks:
            outcomes += _follow(block, outcomes, namespace)
            if after_each:
                after_each(folder)
    return outcomes


def _follow(block: Block, before: list[Ended], namespace: dict[str, Any]) -> list[Ended]:
    match block.language, block.about.split():
        case "console", _:
            ends: list[Ended] = []
            for one in commands(block.text):
                ends.append(run(_with_newest_id(one, before + ends)))
            return ends
        case "bash", _:
            return [_ended(Command(block.text), ["bash", "-ec", block.text])]
        case _, [">>", name]:
            with Path(name).open("a") as file:
                file.write(block.text)
        case "python", ["process"]:
            return [_ended(Command(block.text), [sys.executable, "-c", block.text])]
        case "toml" | "json" | "python", [name]:
            Path(name).write_text(block.text)
        case "python", []:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block.text, "page", "exec"), namespace)
            return [Ended(Command(block.text), 0, printed.getvalue())]
    return []  # parts of definitions, examples of the core, units: other tests look at them


def _with_newest_id(command: Command, before: list[Ended]) -> Command:
    """A command that names a preview, with the id that was printed last."""
    ids = [found for one in before for found in PREVIEW_ID.findall(one.output)]
    return Command(PREVIEW_ID.sub(ids[-1], command.text), command.shown) if ids else command


def run(command: Command) -> Ended:
    """Runs a command, or its stand-in, in the current folder."""
    match shlex.split(command.text):
        case ["make", *arguments]:
            return _ended(command, ["make", "-C", str(PROJECT), "-n", *arguments])
        case [".", script]:
            return Ended(command, int(f"BIN := {Path(script).parent}\n" not in (PROJECT / "Makefile").read_text()), "")
        case ["windowlib", name, *arguments] if name in ONLY_PARSED:
            return Ended(command, 0, parsed(name, arguments))
        case ["windowlib", "test", *arguments]:  # on Sail, for which this process's Spark leaves no room
            return _ended(command, [sys.executable, "-m", "windowlib", "test", *arguments])
        case ["windowlib", *arguments]:
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # as for a reader who can run it
            result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "PATH": path})
            return Ended(command, result.exit_code, result.output)
        case ["python", "-m", "venv", *_]:
            return Ended(command, 0, "")  # no network here to fill it from
        case ["python", *_]:
            line = f"{shlex.quote(sys.executable)} {command.text.removeprefix('python')}"
            return _ended(command, ["bash", "-c", line])
        case [".venv/bin/python", "-m", module, *arguments]:  # minutes, or an hour: other tests do a little of it
            return _helped(command, module, arguments)
        case ["pip", "install", what]:
            return Ended(command, 0, installable(what))
        case ["airflow", *arguments]:
            return _ended(command, [sys.executable, "-c", PARSED_BY_AIRFLOW, *arguments])
        case ["spark-submit", "--master", _, script, *arguments]:  # a cluster: other tests have one
            return Ended(command, int(not (PROJECT / script).is_file()), parsed(Path(script).stem, arguments))
        case [("cut" | "mkdir" | "echo" | "printf" | "rm" | "sed" | "tar"), *_]:
            return _ended(command, ["bash", "-c", command.text])
    raise AssertionError(f"a page has a command that no test knows: {command.text}")


PARSED_BY_AIRFLOW = """
import os, sys, tempfile
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp()
from airflow.cli.cli_parser import get_parser
get_parser().parse_args(sys.argv[1:])
"""


def parsed(name: str, arguments: list[str]) -> str:
    """Parsed arguments; raises click's error for wrong ones."""
    group: Any = typer.main.get_command(app)
    command, left = group.commands[name], list(arguments)
    while hasattr(command, "commands"):  # `windowlib late list`
        command = command.commands[left.pop(0)]
    return str(command.make_context(name, left).params)


def installable(what: str) -> str:
    """Checks that `pip install` names this project's wheel and extras, or else one plain package."""
    import tomllib

    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    if found := re.fullmatch(r"windowlib-([\d.]+)-py3-none-any\.whl\[([\w,]+)\]", what):
        assert found[1] == project["version"], what
        assert set(found[2].split(",")) <= set(project["optional-dependencies"]), what
    else:
        assert re.fullmatch(r"\w+", what), f"no test knows what pip makes of {what}"
    return ""


def _helped(command: Command, module: str, arguments: list[str]) -> Ended:
    """Help of a program of the project that is not installed; code 2 if it lacks an option."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), contextlib.redirect_stdout(printed):
        warnings.simplefilter("ignore", RuntimeWarning)  # a test may have imported it
        patch.setattr(sys, "argv", [module, "--help"])
        with pytest.raises(SystemExit) as ended:  # in this process, which has imported what it needs
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    lacks = [one for one in arguments if one.startswith("-") and one not in printed.getvalue()]
    return Ended(command, 2 if lacks else int(ended.value.code or 0), printed.getvalue())


def _ended(command: Command, arguments: list[str]) -> Ended:
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    return Ended(command, done.returncode, done.stdout + done.stderr)


class Reader:
    """Follows each page once, after the one that it continues; keeps the folders and how the commands ended."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self._followed: dict[str, tuple[Path, list[Ended]]] = {}

    def follow(self, page: Page) -> tuple[Path, list[Ended]]:
        """The folder after the last line of the page, and how each command ended."""
        if page.name not in self._followed:
            folder = self.base / page.name.replace("/", "-")
            if page.continues:
                shutil.copytree(self.follow(page.continues)[0], folder, symlinks=True)
            else:
                folder.mkdir()
                (folder / "docs").symlink_to(DOCS)
            self._followed[page.name] = folder, follow(page, folder)
        return self._followed[page.name]
