"""Where Spark may run, as `spark.master` says it: what a run, `spark-submit` and Spark itself know.

A word that none of them knows is refused when a definition is read; else a JVM would start only to say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from windowlib.definition.mistakes import Mistake, given

ALLOWED = (
    '"local[*]", or "local[4]" for 4 threads; "warm"; or a cluster: "sc://host:15002", "spark://host:7077", "yarn",'
    ' "k8s://https://host:443"'
)
_KNOWN = re.compile(
    r"""
    local | local\[(?:[1-9]\d*|\*)(?:\s*,\s*\d+)?\]         # threads, and how often a task may fail
    | local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]        # workers, cores and MB of each
    | warm | yarn | sc://.+ | spark://.+ | k8s://.+
    """,
    re.VERBOSE,
)
_WORDS = ("local", "local-cluster", "warm", "yarn", "sc", "spark", "k8s")
_PARTS = re.compile(r"([\w-]*)(.*)", re.DOTALL)


def unknown_master(master: Any) -> Iterator[Mistake]:
    """A master that is not known, and which was meant.

    >>> [mistake.problem.partition("; allowed")[0] for mistake in unknown_master("lokal[2]")]
    ['given "lokal[2]"; did you mean local[2]?']
    >>> [*unknown_master("local[2,3]"), *unknown_master("spark://one:7077,two:7077")]
    []
    """
    if not isinstance(master, str) or _KNOWN.fullmatch(master):
        return
    yield Mistake("spark.master", f"given {given(master)}{_meant(master)}; allowed: {ALLOWED}")


def _meant(master: str) -> str:
    parts = _PARTS.fullmatch(master.strip())
    assert parts, "any text matches"
    for word in get_close_matches(parts[1].casefold(), _WORDS, cutoff=0.5):
        for meant in (word + parts[2], word):
            if _KNOWN.fullmatch(meant):
                return f"; did you mean {meant}?"
    return ""
