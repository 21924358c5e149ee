"""The user's own code: classes named "module:Class" in a definition, in modules that lie beside it.

A module is found in the definition's folder first, then wherever Python finds modules. Spark's workers get the code of
such a module with the plan, by value: nothing has to be installed there. State is never stored that way.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from windowlib.errors import InvalidSpec


class StandIn:
    """Stands for an object of the user's while its definition is only looked at, not run."""

    def __init__(self, reference: str, parameters: Mapping[str, Any]) -> None:
        self.reference = reference


def load(reference: str, parameters: Mapping[str, Any], folder: Path) -> Any:
    """An object of the class "module:Class"; raises InvalidSpec, saying what is wrong with the reference."""
    name, _, class_name = reference.partition(":")
    module = _module(name, folder)
    made = getattr(module, class_name, None)
    if not callable(made):
        names = ", ".join(n for n, value in vars(module).items() if isinstance(value, type)) or "no class"
        raise InvalidSpec(f"{reference}: no class {class_name!r} in {module.__file__}; there: {names}")
    try:
        return made(**parameters)
    except Exception as error:
        given = ", ".join(f"{name} = {value!r}" for name, value in parameters.items()) or "no parameters"
        raise InvalidSpec(f"{reference}: cannot be made with {given}: {type(error).__name__}: {error}") from error


def ship(reference: str) -> None:
    """Lets Spark's workers have the code of a loaded class."""
    from pyspark import cloudpickle

    top = reference.partition(":")[0].partition(".")[0]
    cloudpickle.register_pickle_by_value(sys.modules[top])  # type: ignore[no-untyped-call]


def _module(name: str, folder: Path) -> Any:
    top = name.partition(".")[0]
    loaded = sys.modules.get(top)
    beside = any((folder / found).exists() for found in (f"{top}.py", top))
    if beside and loaded is not None and not _lies_in(loaded, folder):
        for other in [module for module in sys.modules if module.partition(".")[0] == top]:
            del sys.modules[other]  # that of another definition's folder
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    except Exception as error:
        raise InvalidSpec(
            f"{name}: cannot be imported: {type(error).__name__}: {error}; modules are looked for in {folder}"
        ) from error
    finally:
        sys.path.remove(str(folder))


def _lies_in(module: Any, folder: Path) -> bool:
    places = [module.__file__] if getattr(module, "__file__", None) else list(getattr(module, "__path__", []))
    return any(Path(place).resolve().is_relative_to(folder.resolve()) for place in places)
