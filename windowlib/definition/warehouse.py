"""Storage of a pipeline's tables: a folder of the warehouse, which a variable of the environment may replace."""

from __future__ import annotations

import os
from pathlib import Path

from windowlib.definition.mistakes import InvalidDefinition
from windowlib.definition.toml.fields import resolved
from windowlib.model.errors import InvalidSpec
from windowlib.storage.address import is_remote, store_at
from windowlib.storage.store import Store

WAREHOUSE_VARIABLE = "WINDOWLIB_WAREHOUSE"


def tables_of(name: str, warehouse: str, file: Path) -> Store:
    """Storage of the tables of the pipeline `name`. `file` is the definition, `warehouse` its setting.

    Raises `InvalidDefinition` if tables cannot be stored there.
    """
    variable = os.environ.get(WAREHOUSE_VARIABLE)
    setting = f"the variable {WAREHOUSE_VARIABLE}" if variable else f"{file}: warehouse"
    if is_remote(address := variable or warehouse):
        try:
            return store_at(address).below(name)
        except InvalidSpec as error:
            raise InvalidDefinition(f"{setting}: {error}") from error
    root = (Path(variable).absolute() if variable else resolved(file.absolute().parent, warehouse)) / name
    if place := next((path for path in (root, *root.parents) if os.path.isfile(path)), None):
        raise InvalidDefinition(f"{setting}: {place} is a file, but tables need a folder")
    return store_at(root)
