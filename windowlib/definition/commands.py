"""Shell commands in messages.

`to_paste` builds each command. It quotes arguments with spaces, and uses the program's full path if the program is not
on PATH. `OPEN` marks a value that the reader must fill in.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

PROGRAM = "windowlib"
OPEN = "…"  # a value that the reader fills in
WHY = ("--reason", OPEN)
THIS = "PIPELINE.toml"  # placeholder for a definition file that is not known yet; `naming` replaces it
_SHOWN = re.compile(rf"`[^`\n]+`|(?:(?<=: )|^)(?:'[^'\n]*/{PROGRAM}'|\S*\b{PROGRAM}) [a-z-]+ [^`\n]+$", re.MULTILINE)


def to_paste(name: str, *arguments: Path | str) -> str:
    """Builds the shell command `windowlib NAME ARGUMENTS`.

    >>> to_paste("read", Path("my clicks.toml"), "results").endswith("windowlib read 'my clicks.toml' results")
    True
    >>> to_paste("abandon", "clicks.toml", "--batch", "7", *WHY).endswith('clicks.toml --batch 7 --reason "…"')
    True
    """
    return " ".join([_program(), name, *map(_quoted, map(str, arguments))])


def from_here(file: Path) -> Path:
    """Path of a file relative to the working folder; unchanged if the file lies elsewhere.

    >>> from_here(Path("pipelines/clicks.toml").absolute()).as_posix(), str(from_here(Path("/elsewhere/clicks.toml")))
    ('pipelines/clicks.toml', '/elsewhere/clicks.toml')
    """
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file


def naming(sentence: str, file: Path) -> str:
    """Replaces `PIPELINE.toml` in the commands of a sentence by the definition's file.

    >>> naming("`windowlib run PIPELINE.toml` goes on", Path("my clicks.toml"))
    "`windowlib run 'my clicks.toml'` goes on"
    """
    return sentence.replace(THIS, shlex.quote(str(file)))


def commands_in(text: str) -> list[tuple[int, int]]:
    """Start and end of each command in a text. Outside backticks, a command follows a colon and ends with its line.

    >>> text = "it waits:\\nto drop it: windowlib abandon a.toml --batch 7"
    >>> [text[begin:end] for begin, end in commands_in(text)]
    ['windowlib abandon a.toml --batch 7']
    """
    return [command.span() for command in _SHOWN.finditer(text)]


def _program() -> str:
    installed = Path(sys.executable).with_name(PROGRAM)
    return PROGRAM if shutil.which(PROGRAM) or not installed.is_file() else shlex.quote(str(installed))


def _quoted(argument: str) -> str:
    return f'"{OPEN}"' if argument == OPEN else shlex.quote(argument)
