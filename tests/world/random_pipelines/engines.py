"""A process for each engine, as one process cannot have both."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from tests.world.random_pipelines.play import Asked


def serve(engine: str, calls: Connection) -> None:
    """Serves requests in the process of an engine until the other side is gone."""
    session: Callable[[], Any]
    if engine == "sail":
        from windowlib.engines.sail import session
    else:
        from windowlib.engines.spark import session
    while True:
        try:
            asked: Asked = calls.recv()
        except EOFError:
            return
        try:
            calls.send(asked.done(session))
        except Exception:  # reported where the case is played
            calls.send(traceback.format_exc())


class Engines:
    """A process for each engine that a case asks for; `only` where one does it all."""

    def __init__(self, only: str | None) -> None:
        self.only = only
        self.started: dict[str, tuple[Connection, Any]] = {}

    def __call__(self, name: str, asked: Asked) -> list[int]:
        name = self.only or name
        if name not in self.started:
            spawn = multiprocessing.get_context("spawn")
            here, there = spawn.Pipe()
            process = spawn.Process(target=serve, args=(name, there), daemon=True)
            process.start()
            there.close()
            self.started[name] = here, process
        here, _ = self.started[name]
        here.send(asked)
        answer = here.recv()
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return list(answer)

    def end(self) -> None:
        """Ends the processes; the next call starts others."""
        for here, process in self.started.values():
            here.close()
            process.join()
        self.started.clear()
