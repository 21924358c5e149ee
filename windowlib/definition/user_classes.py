"""The user's own code: classes that a definition names as "module:Class".

Modules are searched in the definition's folder, then on Python's search path. The plan sends the code of a module, and
of imported modules in the same folder, to Spark's workers by value. So nothing has to be installed on the workers. The
state never contains pickled objects.
"""

from __future__ import annotations

import importlib
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Literal

from windowlib.definition.mistakes import in_toml, nearest
from windowlib.model.aggregates import Aggregate
from windowlib.model.assigners import Assigner
from windowlib.model.errors import InvalidSpec
from windowlib.model.evictors import Evictor
from windowlib.model.functions import ProcessFunction
from windowlib.model.triggers import Trigger
from windowlib.plans.general.user_errors import in_words

Role = Literal["trigger", "evictor", "assigner", "function"]
"""Role of a user's object in a window."""

PLAYS: Mapping[Role, Mapping[str, type]] = {
    "trigger": {"a trigger": Trigger},
    "evictor": {"an evictor": Evictor},
    "assigner": {"an assigner": Assigner},
    "function": {"a process function": ProcessFunction, "an aggregate": Aggregate},
}
NOT_ASKED_FOR = ("order_free",)  # members that user code may lack: the plan that runs it always keeps the order

# Folders of installed packages.
INSTALLED = sorted({Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")})

_found_in: dict[str, Path] = {}  # top-level module → the definition's folder that it was loaded from
_files: dict[tuple[str, Path], Path] = {}  # module, and the folder of a definition that names it → its file


class StandIn:
    """Placeholder that passes every check, for a user's object while its definition is only checked, not run."""

    merges = True
    window_kind = "any"

    def __init__(self, role: Role, reference: str, parameters: Mapping[str, Any]) -> None:
        self.reference = reference


def load(role: Role, reference: str, parameters: Mapping[str, Any], folder: Path) -> Any:
    """Creates an object of the class "module:Class". Raises InvalidSpec with the problem if this fails."""
    name, _, class_name = reference.partition(":")
    module = _module(name, folder)
    factory = getattr(module, class_name, None)
    if not callable(factory):
        classes = [n for n, value in vars(module).items() if isinstance(value, type) and value.__module__ == name]
        there = ", ".join(classes) or "no class"
        raise InvalidSpec(
            f"no class {class_name} in {module.__file__}{nearest(class_name, classes)}; classes there: {there}"
        )
    if module.__file__:
        _files[name, folder] = Path(module.__file__)
    try:
        with redirect_stdout(sys.stderr):  # a command's output on stdout may be JSON
            part = factory(**parameters)
    except (Exception, SystemExit) as error:
        made_with = ", ".join(f"{key} = {in_toml(value)}" for key, value in parameters.items()) or "no parameters"
        raise InvalidSpec(f"{reference} cannot be created with {made_with}: {in_words(error)}") from error
    _require_members(part, role, reference)
    return part


def ship(references: Collection[str], objects: Any) -> None:
    """Lets Spark send its workers the code of loaded classes and of the modules next to these classes.

    `objects` contains the instances of these classes. Raises InvalidSpec if an instance, or a value that its code uses,
    cannot be sent.
    """
    from pyspark import cloudpickle

    for reference in references:
        top = _top(reference.partition(":")[0])
        together = [name for name, folder in _found_in.items() if folder == _found_in.get(top)]
        for name in {top, *together} & sys.modules.keys():
            cloudpickle.register_pickle_by_value(sys.modules[name])  # type: ignore[no-untyped-call]
    try:
        cloudpickle.dumps(objects)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise InvalidSpec(
            f"{', '.join(references)} cannot be sent to Spark's workers: {error}. Create locks, connections and open"
            " files in the method that uses them, not at the import of the module or in the constructor"
        ) from error


def code_files(references: Iterable[str], folder: Path) -> list[Path]:
    """Files with the code of loaded classes; [] if no class is named.

    Includes all modules in the definition's folder and its packages, and the modules of classes in other folders.
    """
    modules = {reference.partition(":")[0] for reference in references}
    if not modules:
        return []
    packages = [file.parent for file in folder.glob("*/__init__.py")]
    nearby = [*folder.glob("*.py"), *(file for package in packages for file in package.rglob("*.py"))]
    return sorted({*nearby, *(_files[name, folder] for name in modules if (name, folder) in _files)})


def _require_members(part: Any, role: Role, reference: str) -> None:
    """Raises InvalidSpec if an object lacks members that its role needs."""
    needs = {what: [name for name in vars(kind) if _is_asked_for(name)] for what, kind in PLAYS[role].items()}
    lacks = {what: [name for name in names if not hasattr(part, name)] for what, names in needs.items()}
    if all(lacks.values()):
        meant = [what for what in lacks if lacks[what] != needs[what]] or list(lacks)
        missing = ", and ".join(f"no {', '.join(lacks[what])} (needed by {what})" for what in meant)
        raise InvalidSpec(f"{reference} has {missing}")


def _is_asked_for(name: str) -> bool:
    return not name.startswith("_") and name not in NOT_ASKED_FOR


def _module(name: str, folder: Path) -> Any:
    _forget_namesakes(folder)
    _require_free(_top(name), folder)
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        with redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise InvalidSpec(f"{name} cannot be imported: {error}") from error
        there = sorted(file.stem for file in folder.glob("*.py"))
        proposal = nearest(name, there)
        raise InvalidSpec(
            f"no module {error.name} in {folder}{proposal}; modules there: {', '.join(there) or 'none'}"
        ) from error
    except (Exception, SystemExit) as error:
        raise InvalidSpec(f"{name} cannot be imported: {in_words(error)}") from error
    finally:
        sys.path.remove(str(folder))
        for new in {_top(module) for module in sys.modules.keys() - before} - {_top(module) for module in before}:
            if _lies_in(sys.modules.get(new), folder):
                _found_in[new] = folder


def _forget_namesakes(folder: Path) -> None:
    """Unloads modules of another definition's folder that have the name of a module in this folder."""
    for top in [top for top, other in _found_in.items() if other != folder and _is_in(top, folder)]:
        for module in [module for module in sys.modules if _top(module) == top]:
            del sys.modules[module]
        del _found_in[top]


def _require_free(top: str, folder: Path) -> None:
    """Raises InvalidSpec if Python would import another module instead of the module in `folder`."""
    if not _is_in(top, folder):
        return
    loaded = sys.modules.get(top)
    if top in sys.stdlib_module_names:
        raise InvalidSpec(f"{top} is the name of one of Python's own modules; rename your module")
    if loaded is not None and not _lies_in(loaded, folder):
        place = next(_places(loaded), "elsewhere")
        raise InvalidSpec(f"{top} is already the name of a module in use ({place}); rename your module")
    if installed := [place for place in INSTALLED if place != folder.resolve() and _is_in(top, place)]:
        raise InvalidSpec(f"{top} is the name of an installed package (in {installed[0]}); rename your module")


def _is_in(top: str, folder: Path) -> bool:
    return (folder / f"{top}.py").exists() or any((folder / top).glob("*.py"))


def _lies_in(module: Any, folder: Path) -> bool:
    """Tests if a top-level module is a file or a package in `folder`."""
    return any(place.parent == folder.resolve() for place in _places(module))


def _places(module: Any) -> Iterator[Path]:
    """Yields the file of a module, or the folders of a package."""
    file = getattr(module, "__file__", None)
    for place in getattr(module, "__path__", [file] if file else []):
        yield Path(place).resolve()


def _top(module: str) -> str:
    return module.partition(".")[0]
