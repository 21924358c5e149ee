"""Places where an engine computes, derived from `engine` and `spark.master`.

An unknown master is refused when a definition is read, before a JVM starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from windowlib.definition.mistakes import Mistake, in_toml

ALLOWED = (
    '"local[*]", or "local[4]" for 4 threads; or a server or cluster: "sc://host:15002", "spark://host:7077", "yarn",'
    ' "k8s://https://host:443"'
)
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The environment variable with the token of a Spark Connect server, which PySpark reads too."""
TOKEN_SETTING = "spark.connect.authenticate.token"
_TOKEN = re.compile(r";\s*token\s*=", re.IGNORECASE)
_KNOWN = re.compile(
    r"""
    local | local\[(?:[1-9]\d*|\*)(?:\s*,\s*\d+)?\]         # threads, and allowed failures of a task
    | local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]        # workers, cores and MB of each
    | yarn | sc://.+ | spark://.+ | k8s://.+
    """,
    re.VERBOSE,
)
_WORDS = ("local", "local-cluster", "yarn", "sc", "spark", "k8s")
_PARTS = re.compile(r"([\w-]*)(.*)", re.DOTALL)


class EnginePlace(StrEnum):
    """Place where an engine computes."""

    PROCESS = "process"  # Sail, in the process of the run
    LOCAL = "local"  # a JVM that the process of the run starts
    LOCAL_CLUSTER = "local-cluster"  # a cluster of processes on this machine
    SERVER = "server"  # a Spark Connect server
    CLUSTER = "cluster"

    @property
    def is_here(self) -> bool:
        """Tests if only this machine computes."""
        return self in (EnginePlace.PROCESS, EnginePlace.LOCAL, EnginePlace.LOCAL_CLUSTER)

    @property
    def is_submitted(self) -> bool:
        """Tests if `spark-submit` starts the run."""
        return self in (EnginePlace.LOCAL_CLUSTER, EnginePlace.CLUSTER)


def engine_place(engine: str, master: str) -> EnginePlace:
    """Place where an engine computes. For Spark it follows from `master`, which must be valid.

    >>> [engine_place("spark", master).value for master in ("local[2]", "local-cluster[1,1,1024]", "sc://host", "yarn")]
    ['local', 'local-cluster', 'server', 'cluster']
    >>> engine_place("sail", "yarn").value
    'process'
    """
    if engine == "sail":
        return EnginePlace.PROCESS
    if master.startswith("local-cluster"):
        return EnginePlace.LOCAL_CLUSTER
    if master.startswith("local"):
        return EnginePlace.LOCAL
    return EnginePlace.SERVER if master.startswith("sc://") else EnginePlace.CLUSTER


def mistaken_spark(section: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yields the mistakes in `[spark]`: an unknown master, and a token, which the message does not repeat.

    >>> [mistake.key for mistake in mistaken_spark({"master": "sc://host/;token=abc", "conf": {TOKEN_SETTING: "abc"}})]
    ['spark.master', 'spark.conf']
    """
    master, conf = section.get("master", "local"), section.get("conf", {})
    secret = (
        f"holds a token, and a definition is stored and shown; leave it out and set {TOKEN_VARIABLE} where runs start"
    )
    if isinstance(master, str) and _TOKEN.search(master):
        yield Mistake("spark.master", secret)
    else:
        yield from unknown_master(master)
    if isinstance(conf, Mapping) and TOKEN_SETTING in conf:
        yield Mistake("spark.conf", f'"{TOKEN_SETTING}" {secret}')


def unknown_master(master: Any) -> Iterator[Mistake]:
    """Yields a mistake with a proposal if a master is unknown.

    >>> [mistake.problem.partition("; allowed")[0] for mistake in unknown_master("lokal[2]")]
    ['given "lokal[2]"; did you mean local[2]?']
    >>> [*unknown_master("local[2,3]"), *unknown_master("spark://one:7077,two:7077")]
    []
    """
    if not isinstance(master, str) or _KNOWN.fullmatch(master):
        return
    yield Mistake("spark.master", f"given {in_toml(master)}{_meant(master)}; allowed: {ALLOWED}")


def _meant(master: str) -> str:
    parts = _PARTS.fullmatch(master.strip())
    assert parts, "any text matches"
    for word in get_close_matches(parts[1].casefold(), _WORDS, cutoff=0.5):
        for meant in (word + parts[2], word):
            if _KNOWN.fullmatch(meant):
                return f"; did you mean {meant}?"
    return ""
