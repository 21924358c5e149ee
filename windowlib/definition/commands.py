"""What a command that is shown to be copied looks like: it runs when it is pasted into a shell.

Every such command is made by `to_paste`, which quotes what may hold a space and names the program by its full path
where PATH has it not. What the reader has to fill in is `OPEN`.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

PROGRAM = "windowlib"
OPEN = "…"  # what the reader fills in
WHY = ("--reason", OPEN)
THIS = "PIPELINE.toml"  # stands for the definition where only its tables are known: `naming` puts the file there
_SHOWN = re.compile(rf"`[^`\n]+`|(?:(?<=: )|^)(?:'[^'\n]*/{PROGRAM}'|\S*\b{PROGRAM}) [a-z-]+ [^`\n]+$", re.MULTILINE)


def to_paste(name: str, *arguments: Path | str) -> str:
    """The command `windowlib NAME ARGUMENTS`.

    >>> to_paste("read", Path("my clicks.toml"), "results").endswith("windowlib read 'my clicks.toml' results")
    True
    >>> to_paste("abandon", "clicks.toml", "--batch", "7", *WHY).endswith('clicks.toml --batch 7 --reason "…"')
    True
    """
    return " ".join([_program(), name, *map(_quoted, map(str, arguments))])


def from_here(file: Path) -> Path:
    """A file as who stands in the working folder names it: from there on where it lies in there.

    >>> from_here(Path("pipelines/clicks.toml").absolute()).as_posix(), str(from_here(Path("/elsewhere/clicks.toml")))
    ('pipelines/clicks.toml', '/elsewhere/clicks.toml')
    """
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file


def naming(sentence: str, file: Path) -> str:
    """A sentence about a pipeline whose commands name its definition.

    >>> naming("`windowlib run PIPELINE.toml` goes on", Path("my clicks.toml"))
    "`windowlib run 'my clicks.toml'` goes on"
    """
    return sentence.replace(THIS, shlex.quote(str(file)))


def commands_in(text: str) -> list[tuple[int, int]]:
    """Where the commands of a text begin and end: what stands in backticks, or after a colon up to the
    end of the line.


    >>> text = "it waits:\\nto drop it: windowlib abandon a.toml --batch 7"
    >>> [text[begin:end] for begin, end in commands_in(text)]
    ['windowlib abandon a.toml --batch 7']
    """
    return [found.span() for found in _SHOWN.finditer(text)]


def _program() -> str:
    installed = Path(sys.executable).with_name(PROGRAM)
    return PROGRAM if shutil.which(PROGRAM) or not installed.is_file() else shlex.quote(str(installed))


def _quoted(argument: str) -> str:
    return f'"{OPEN}"' if argument == OPEN else shlex.quote(argument)
