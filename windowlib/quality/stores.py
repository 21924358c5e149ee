"""Export of stored outcomes as a project for Great Expectations' tools: `gx.get_context(project_root_dir=root)`.

The project lies in `gx` next to the tables, in the format of Great Expectations' file stores. This module writes the
project without importing Great Expectations. The project has a file per batch and suite, and the last judged version of
each suite.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from windowlib.definition.instants import utc
from windowlib.quality.validations import Validated
from windowlib.storage.at_once import at_once
from windowlib.storage.store import Store

FOLDER = "gx"
STORED_BATCHES = 50  # Data Docs are built from all stored batches
CONFIGURATION = "great_expectations.yml"
VALIDATIONS = "uncommitted/validations"
RUN_FOLDER = "%Y%m%dT%H%M%S.%fZ"
OUTCOME = "batch.json"  # the outcome of a suite for a batch


def store(pipeline: Store, batches: Sequence[Validated]) -> None:
    """Writes the first `STORED_BATCHES` of `batches`, which are sorted newest first, and deletes older outcomes."""
    project, stored = pipeline.below(FOLDER), batches[:STORED_BATCHES]
    outcomes = {_place(batch, suite): (batch, suite) for batch in stored for suite in batch.suites}
    listed = {file.path for file in project.list(f"{VALIDATIONS}/")}
    new = {
        path: {**suite, "id": None, "meta": _meta(batch, suite)}
        for path, (batch, suite) in outcomes.items()
        if path not in listed
    }
    suites = {f"expectations/{name}.json": _suite(name, newest) for name, newest in _newest_suites(stored).items()}
    if project.sizes([CONFIGURATION]) == [None]:  # users may edit it
        new[CONFIGURATION] = _configuration()  # JSON is YAML, too
    at_once(lambda path: project.put(path, json.dumps(new[path]).encode()), new)
    at_once(lambda path: _replace(project, path, json.dumps(suites[path]).encode()), suites)
    project.delete(sorted(path for path in listed - outcomes.keys() if "/batch-" in path))


def _place(batch: Validated, suite: Mapping[str, Any]) -> str:
    return f"{VALIDATIONS}/{suite['suite_name']}/{_name(batch)}/{_time(batch).strftime(RUN_FOLDER)}/{OUTCOME}"


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


def _replace(project: Store, path: str, content: bytes) -> None:
    """Writes an object unless it has this content."""
    if project.get(path) != content:
        project.put(path, content)
