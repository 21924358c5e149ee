"""Page of storages: each promise about stored data, and the storages on which a test proves it.

Each test marked `promised(promise, *storages)` gives a row, or joins the row with its promise. With `remote=True`, the
promise is about object stores only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from docs.reference.markdown import sentence, table

TESTS = Path(__file__).parents[2] / "tests"
HEAD = (Path(__file__).parent / "storages-head.txt").read_text(encoding="utf-8")
COLUMNS = {
    "Disk": "disk",
    "NFS": "nfs",
    "S3": "s3",
    "Compatible with S3": "s3",
    "Azure": "azure",
    "Google Cloud": "gcs",
}
PROVED = {"disk": "tested", "s3": "on S3Proxy", "azure": "on Azurite"}
DISKS = ("disk", "nfs")
MARK = "pytest.mark.promised"


def page() -> str:
    """Page in Markdown."""
    by_promise = dict[str, list[Proof]]()
    for proof in proofs():
        by_promise.setdefault(proof.promise, []).append(proof)
    rows = [
        (sentence(promise), *(_cell(storage, found) for storage in COLUMNS.values()), _tests(found))
        for promise, found in by_promise.items()
    ]
    return f"{HEAD.rstrip()}\n\n{table(('Promise', *COLUMNS, 'Tests'), rows)}\n"


@dataclass(frozen=True, slots=True)
class Proof:
    """A test, and the storages on which it proves a promise. A promise that is `remote` is none of disks."""

    test: str
    promise: str
    storages: tuple[str, ...]
    remote: bool


def proofs() -> Iterator[Proof]:
    """Tests that prove a promise, in the order of files."""
    for file in sorted(TESTS.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if MARK not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == MARK:
                    promise, *storages = map(ast.literal_eval, mark.args)
                    assert {*storages} <= {*PROVED}, f"{file}: {storages} are not all in {[*PROVED]}"
                    test = f"{file.relative_to(TESTS).with_suffix('')}::{node.name}"
                    yield Proof(test, promise, tuple(storages), bool(mark.keywords))


def _cell(storage: str, found: Sequence[Proof]) -> str:
    if any(proof.remote for proof in found) and storage in DISKS:
        return "–"
    return PROVED[storage] if any(storage in proof.storages for proof in found) else "not proved"


def _tests(found: Sequence[Proof]) -> str:
    return ", ".join(f"`{proof.test}`" for proof in found)
