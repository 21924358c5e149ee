"""Process function with state per key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from windowlib.model.functions import ProcessContext


class Visits:
    """Function that counts the firings of a key."""

    def process(self, contents: Any, context: ProcessContext) -> Iterable[Any]:
        context.key_state["visits"] = context.key_state.get("visits", 0) + 1
        yield {"n": context.key_state["visits"]}

    def clear(self, context: ProcessContext) -> None:
        pass
