"""What `windowlib` offers by short names: the core at once, the rest at its first use."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import windowlib
from windowlib import _AT_FIRST_USE


def test_importing_windowlib_imports_nothing_that_takes_time() -> None:
    heavy = ("pydantic", "pyarrow", "deltalake", "pyspark", "typer", "rich", "sqlglot", "pandas")
    code = f"import sys, windowlib; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", windowlib.__all__)
def test_every_name_that_is_offered_exists(name: str) -> None:
    assert getattr(windowlib, name) is not None
    assert name in dir(windowlib)


@pytest.mark.parametrize(("name", "place"), _AT_FIRST_USE.items())
def test_a_name_imported_at_its_first_use_is_the_one_that_is_defined_there(name: str, place: tuple[str, str]) -> None:
    assert getattr(windowlib, name) is getattr(import_module(place[0]), place[1])


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'load_definitions'"):
        getattr(windowlib, "load_definitions")  # noqa: B009
