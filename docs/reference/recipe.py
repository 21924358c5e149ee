"""`contributing/add-a-trigger.md`: the recipe at the head of the registry."""

from __future__ import annotations

import inspect

from windowlib.definition import registry

HEAD = """# Add a trigger or an evictor

This is the head of [registry.py](../../windowlib/definition/registry.py).
"""


def page() -> str:
    text = inspect.cleandoc(registry.__doc__ or "").replace("``", "`")
    return f"{HEAD}\n{text}\n"
