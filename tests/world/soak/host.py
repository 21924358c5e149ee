"""`python -m tests.world.soak.host NAME …`: the command `windowlib …` on a simulated other machine.

Its processes see one another, and no process of this machine; only heartbeats are known of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

from windowlib.cli.main import main
from windowlib.ledger import owner
from windowlib.ledger.owner import Owner


def elsewhere(name: str, here: Callable[[], Owner] = owner.this_process) -> Callable[[], Owner]:
    """Name of this process on the other machine."""
    return lambda: replace(here(), host=name, boot_id=f"boot of {name}")


if __name__ == "__main__":
    owner.this_process = elsewhere(sys.argv.pop(1))
    main()
