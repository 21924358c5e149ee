"""Export of stored outcomes as a project for Great Expectations' tools: `gx.get_context(project_root_dir=root)`.

The project lies in `<root>/gx`, in the format of Great Expectations' file stores. This module writes the project
without importing Great Expectations. The project has a file per batch and suite, and the last judged version of each
suite.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from windowlib.definition.instants import utc
from windowlib.delta import disk
from windowlib.quality.validations import Validated

FOLDER = "gx"
STORED_BATCHES = 50  # Data Docs are built from all stored batches
CONFIGURATION = "great_expectations.yml"
VALIDATIONS = Path("uncommitted/validations")
RUN_FOLDER = "%Y%m%dT%H%M%S.%fZ"


def store(root: Path, batches: Sequence[Validated]) -> Path:
    """Writes the first `STORED_BATCHES` of `batches`, which are sorted newest first, and deletes older outcomes.

    Returns the folder of the project.
    """
    folder, stored = root / FOLDER, batches[:STORED_BATCHES]
    _write(folder / CONFIGURATION, _configuration())  # JSON is YAML, too
    wanted = set[Path]()
    for batch in stored:
        for suite in batch.suites:
            run_folder = folder / VALIDATIONS / suite["suite_name"] / _name(batch) / _time(batch).strftime(RUN_FOLDER)
            wanted.add(run_folder)
            _write(run_folder / "batch.json", {**suite, "id": None, "meta": _meta(batch, suite)})
    for name, newest in _newest_suites(stored).items():
        _write(folder / "expectations" / f"{name}.json", _suite(name, newest), again=True)
    for old in (folder / VALIDATIONS).glob("*/batch-*/*"):
        if old not in wanted:
            shutil.rmtree(old, ignore_errors=True)
    return folder


def _name(batch: Validated) -> str:
    return f"batch-{batch.batch_id:06}"


def _time(batch: Validated) -> datetime:
    return utc(batch.figures["plan_time_ms"] or 0)


def _meta(batch: Validated, suite: Mapping[str, Any]) -> dict[str, Any]:
    run = {"run_name": _name(batch), "run_time": _time(batch).isoformat()}
    return {"run_id": run, "great_expectations_version": suite["meta"]["great_expectations_version"]}


def _newest_suites(batches: Iterable[Validated]) -> dict[str, Mapping[str, Any]]:
    """Newest outcome of each suite, by the suite's name; `batches` are sorted newest first."""
    newest: dict[str, Mapping[str, Any]] = {}
    for batch in batches:
        for suite in batch.suites:
            newest.setdefault(suite["suite_name"], suite)
    return newest


def _suite(name: str, suite: Mapping[str, Any]) -> dict[str, Any]:
    own = uuid.uuid5(uuid.NAMESPACE_URL, f"windowlib:{name}")
    expectations = [
        {**result["expectation_config"], "id": str(uuid.uuid5(own, str(number)))}
        for number, result in enumerate(suite["results"])
    ]
    meta = {"great_expectations_version": suite["meta"]["great_expectations_version"]}
    return {"name": name, "id": str(own), "expectations": expectations, "meta": meta, "notes": None}


def _configuration() -> dict[str, Any]:
    """Configuration of the project: the part of the output of `gx init` that readers need."""

    def files(kind: str, folder: str) -> dict[str, Any]:
        backend = {"class_name": "TupleFilesystemStoreBackend", "base_directory": folder}
        return {"class_name": kind, "store_backend": {**backend, "suppress_store_backend_id": True}}

    site = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": "uncommitted/data_docs/local_site/",
        },
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
    }
    return {
        "config_version": 4,
        "stores": {
            "expectations_store": files("ExpectationsStore", "expectations/"),
            "validation_results_store": files("ValidationResultsStore", f"{VALIDATIONS}/"),
            "checkpoint_store": files("CheckpointStore", "checkpoints/"),
            "validation_definition_store": files("ValidationDefinitionStore", "validation_definitions/"),
        },
        "expectations_store_name": "expectations_store",
        "validation_results_store_name": "validation_results_store",
        "checkpoint_store_name": "checkpoint_store",
        "data_docs_sites": {"local_site": site},
        "analytics_enabled": False,
    }


def _write(file: Path, contents: Mapping[str, Any], *, again: bool = False) -> None:
    """Writes a file. Leaves an existing file untouched if its contents are equal, or if `again` is false."""
    exists = file.exists()
    if exists and not again:
        return
    text = json.dumps(contents)
    if exists and file.read_text(encoding="utf-8") == text:
        return
    disk.put(file, text)
