"""Uses of private and deep APIs: those that the page lists, and those that the text of each file shows."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from tests.private_apis.uses import private_names, uses, uses_of_settings
from tests.support.private_apis import PAGE, ROOT

NAME = re.compile(r"`([^`]+)`")
DEEP_MODULE = re.compile(r"(pyspark|airflow|great_expectations|deltalake|sqlglot)\.[\w.]+|pydantic_core")


def on_the_page() -> tuple[dict[str, set[str]], set[str]]:
    """The uses of each file, and what counts as public."""
    text, _, public = (ROOT / PAGE).read_text(encoding="utf-8").partition("## Public")
    found = defaultdict(set)
    for line in text.splitlines():
        if line.startswith("| `"):
            files, names, *_ = line.strip("| ").split(" | ")
            for file in NAME.findall(files):
                found[file] |= set(NAME.findall(names))
    return dict(found), set(NAME.findall(public))


def scanned(root: Path, public: set[str]) -> dict[str, set[str]]:
    files = sorted((root / "windowlib").rglob("*.py"))
    own = private_names(files)
    found = {str(file.relative_to(root)): set(uses(file, public, own)) for file in files}
    settings = (root / "windowlib").rglob("*.properties")
    found |= {str(file.relative_to(root)): set(uses_of_settings(file, public)) for file in settings}
    return {file: names for file, names in found.items() if names}
