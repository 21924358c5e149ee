"""Runs a command next to an empty object store: `python -m tests.support.object_servers s3 windowlib demo …`.

The command reaches the store by its environment. The bucket is `windowlib`. The server ends with the command.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.fault_proxy import fault_proxy
from tests.support.object_servers import NoServer, Server, azurite, s3proxy


@contextmanager
def azurite_that_lists(folder: Path) -> Iterator[Server]:
    """Azurite behind a proxy that lists as Azure does. Raises NoServer."""
    with azurite(folder) as server, fault_proxy(server.port) as proxy:
        yield server.behind(proxy.port)


SERVERS = {"s3": s3proxy, "azure": azurite_that_lists}


def main(cloud: str, *command: str) -> int:
    """Runs a command and returns its exit code; 1 if the server cannot be had."""
    with tempfile.TemporaryDirectory(prefix="object-server-") as folder:
        try:
            with SERVERS[cloud](Path(folder)) as server:
                code = subprocess.run(command, env={**os.environ, **server.variables()}, check=False).returncode
        except NoServer as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    print(f"The {cloud} server on port {server.port} has ended, with everything that it held.")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
