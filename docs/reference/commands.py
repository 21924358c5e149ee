"""`commands.md`: every command with its arguments and options, from the command line itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

from docs.reference.markdown import table
from windowlib.cli.main import app

HEAD = """# Commands

`windowlib COMMAND --help` shows the same. Times need a zone: `2026-03-03T00:00Z`, an offset, or a name such as
`2026-03-03 00:00 Europe/Berlin`. Commands end with one of these [exit codes](exit-codes.md).
"""


def page() -> str:
    group: Any = typer.main.get_command(app)
    found = list(commands(group))
    index = table(("command", "does"), ((f"[`{name}`](#{_anchor(name)})", _first(command)) for name, command in found))
    return "\n".join([HEAD, index, *(_command(name, command) for name, command in found)]) + "\n"


def commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each command by its full name; groups stand for their commands."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def _anchor(name: str) -> str:
    return f"windowlib-{name.replace(' ', '-')}"


def _text(command: Any) -> list[str]:
    """The paragraphs of a command's help, without the examples and the marks of the terminal."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return [_plain(" ".join(one.split())) for one in paragraphs if "[dim]" not in one]


def _first(command: Any) -> str:
    return _text(command)[0]


def _plain(text: str) -> str:
    return re.sub(r"\[/?(?:b|bold|dim)\]", "", text)


def _command(name: str, command: Any) -> str:
    with command.make_context(name, ["--help"], resilient_parsing=True) as context:
        records = [one.get_help_record(context) for one in command.get_params(context) if one.name != "help"]
    arguments = [_name(left) for left, _ in records if not left.startswith("-")]
    usage = f"windowlib {name} [OPTIONS] {' '.join(arguments)}".rstrip()
    rows = [(f"`{_name(left)}`", _plain(right).removesuffix("  [required]")) for left, right in records]
    parts = [f"\n## windowlib {name}\n", *(f"{one}\n" for one in _text(command)), f"```text\n{usage}\n```\n"]
    return "\n".join([*parts, table(("argument or option", "meaning"), rows)])


def _name(left: str) -> str:
    """An argument by its name alone, an option with what it takes."""
    return left if left.startswith("-") else left.partition(" <")[0]
