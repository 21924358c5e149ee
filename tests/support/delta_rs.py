"""Tables whose log is too long for windowlib's own reader, so that delta-rs reads them."""

from __future__ import annotations

import pytest

from windowlib.delta import table_state, tables


def read_by_delta_rs(patch: pytest.MonkeyPatch) -> None:
    """Lets delta-rs read every table."""
    for module in (table_state, tables):
        patch.setattr(module, "AT_MOST", 0)
