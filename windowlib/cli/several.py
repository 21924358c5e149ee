"""Loading of several definitions. An error in one definition does not stop the other pipelines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.cli.exits import error_sentence, load_pipeline, print_error, set_pipeline

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition


@dataclass(frozen=True, slots=True)
class UnusableDefinition:
    """File of a definition that cannot be used, the sentence about its error, and the exit code."""

    file: Path
    error: str
    exit_code: int

    def json_fields(self) -> dict[str, Any]:
        """Keys and values of its JSON, including the keys of a `PipelineEnd`."""
        return {"pipeline": None, **asdict(self), "batches": 0}


@dataclass(frozen=True, slots=True)
class PipelineEnd:
    """Outcome of one pipeline of several. `waits` is the batch that waits for a decision."""

    pipeline: str
    batches: int
    exit_code: int
    waits: int | None = None

    def json_fields(self) -> dict[str, Any]:
        """Keys and values of its JSON; `waits` only if a batch waits."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class LoadedDefinitions:
    """Usable definitions, and the errors of unusable definitions."""

    definitions: list[Definition] = field(default_factory=list)
    unusable: list[UnusableDefinition] = field(default_factory=list)

    @property
    def codes(self) -> list[int]:
        """Exit codes of the definitions that cannot be used."""
        return [definition.exit_code for definition in self.unusable]


def load_each(
    pipelines: Sequence[Path],
    command: str,
    adapt: Callable[[Definition], Definition] = lambda definition: definition,
) -> LoadedDefinitions:
    """Loads each definition, and prints the errors of unusable definitions. For a single file, raises its error.

    `adapt` applies the options of the command to a definition, or raises an error.
    """
    from windowlib.definition.definition import load_definition

    if len(pipelines) == 1:
        return LoadedDefinitions([adapt(load_pipeline(pipelines[0]))])
    loaded = LoadedDefinitions()
    for file in pipelines:
        try:
            loaded.definitions.append(adapt(load_definition(file)))
        except Exception as error:  # no error may stop the other pipelines
            loaded.unusable.append(UnusableDefinition(file, error_sentence(error), print_error(error, command)))
    if loaded.definitions:
        set_pipeline(loaded.definitions[-1], loaded.definitions[-1].file)
    return loaded


def print_each(errors: Iterable[tuple[Definition, Exception]], command: str, *, is_named: bool) -> list[int]:
    """Prints the error of each pipeline and returns their exit codes. With `is_named`, prints the pipelines' names."""
    codes = []
    for definition, error in errors:
        if is_named:
            set_pipeline(definition, definition.file)
        codes.append(print_error(error, command, definition.name if is_named else ""))
    return codes
