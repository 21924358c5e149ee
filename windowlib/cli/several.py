"""Loading of several definitions. A mistake in one definition does not stop the other pipelines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.cli.exits import about, in_a_sentence, load_pipeline, print_error

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition


@dataclass(frozen=True, slots=True)
class UnusableDefinition:
    """File of a definition that cannot be used, the sentence about its error, and the exit code."""

    file: Path
    error: str
    exit_code: int

    def json_fields(self) -> dict[str, Any]:
        """Keys and values of its JSON, with those of a pipeline that has run."""
        return {"pipeline": None, **asdict(self), "batches": 0}


@dataclass(frozen=True, slots=True)
class PipelineEnd:
    """Outcome of one pipeline of several. `waits` is the batch that waits for a decision."""

    pipeline: str
    batches: int
    exit_code: int
    waits: int | None = None

    def json_fields(self) -> dict[str, Any]:
        """Keys and values of its JSON; `waits` only where a batch does."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class LoadedDefinitions:
    """The definitions that can be used, and the others."""

    definitions: list[Definition] = field(default_factory=list)
    unusable: list[UnusableDefinition] = field(default_factory=list)

    @property
    def codes(self) -> list[int]:
        """The exit codes of those that cannot be used."""
        return [definition.exit_code for definition in self.unusable]


def load_each(
    pipelines: Sequence[Path],
    command: str,
    as_asked: Callable[[Definition], Definition] = lambda definition: definition,
) -> LoadedDefinitions:
    """Loads each definition by itself, and prints the error of one that cannot be used; raises that of a single one.

    `as_asked` makes of a definition what the command asks for, or raises what is wrong with it.
    """
    from windowlib.definition.definition import load_definition

    if len(pipelines) == 1:
        return LoadedDefinitions([as_asked(load_pipeline(pipelines[0]))])
    loaded = LoadedDefinitions()
    for file in pipelines:
        try:
            loaded.definitions.append(as_asked(load_definition(file)))
        except Exception as error:  # anything at all: the other pipelines must go on
            loaded.unusable.append(UnusableDefinition(file, in_a_sentence(error), print_error(error, command)))
    if loaded.definitions:
        about(loaded.definitions[-1], loaded.definitions[-1].file)
    return loaded


def print_each(errors: Iterable[tuple[Definition, Exception]], command: str, *, is_named: bool) -> list[int]:
    """Prints the error of each pipeline, with its name where there are several; their exit codes."""
    codes = []
    for definition, error in errors:
        if is_named:
            about(definition, definition.file)
        codes.append(print_error(error, command, definition.name if is_named else ""))
    return codes
