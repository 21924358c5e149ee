"""The report of a pipeline: Data Docs and an overview of the newest batches, as pages that need no server.

Both are rebuilt from the outcomes kept in `checks/` (`windowlib.quality.validations`), without Spark and without
reading a table. Data Docs show one batch and suite a page. They cannot show trends, and their own index stays empty
without scripts from the internet; so the overview is the site's `index.html`, and that index is `data_docs.html`.
"""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.definition.definition import Definition
from windowlib.model.errors import WindowError
from windowlib.quality.overview import overview_page
from windowlib.quality.validations import Validated, kept

if TYPE_CHECKING:
    from great_expectations.core import RunIdentifier
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext

FOLDER = "data_docs"
DOCUMENTED_BATCHES = 50  # each has a page per suite, and every page is rebuilt
OVERVIEW, INDEX = "index.html", "data_docs.html"
STYLES = Path(__file__).with_name("data_docs.css")


class NothingChecked(WindowError, LookupError):
    """No batch of the pipeline has been checked yet."""


def report(definition: Definition) -> Path:
    """Builds the pages into `<root>/data_docs` in place of the earlier ones, and gives the overview's path.

    Raises `NothingChecked` before the first batch.
    """
    batches = kept(definition.root)
    if not batches:
        raise NothingChecked(f"no batch in {definition.root} is checked yet; run `windowlib run {definition.file}`")
    with tempfile.TemporaryDirectory(prefix="_report-", dir=definition.root) as work:
        site = Path(work) / "site"
        pages = _data_docs(definition.name, batches[:DOCUMENTED_BATCHES], site, Path(work) / "plugins")
        (site / "index.html").rename(site / INDEX)
        (site / OVERVIEW).write_text(overview_page(definition.name, batches, pages, INDEX), encoding="utf-8")
        _replace(definition.root / FOLDER, site, Path(work) / "earlier")
    return definition.root / FOLDER / OVERVIEW


def _data_docs(name: str, batches: list[Validated], site: Path, plugins: Path) -> dict[tuple[int, str], str]:
    """Builds Data Docs into `site`; gives each page's path in it by batch and suite."""
    from great_expectations.core import ExpectationSuite

    context = _context(name, site, plugins)
    pages = {}
    for batch in batches:
        for suite in batch.suites:
            pages[batch.batch_id, suite["suite_name"]] = _add_outcome(context, batch, suite)
    for name, suite in {suite["suite_name"]: suite for batch in reversed(batches) for suite in batch.suites}.items():
        configurations = [one["expectation_config"] for one in suite["results"]]
        context.suites.add(ExpectationSuite(name=name, expectations=configurations))
    context.build_data_docs()
    return pages


def _context(name: str, site: Path, plugins: Path) -> EphemeralDataContext:
    """A context in memory with one site, which is built into `site` with our styles."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults

    styles = plugins / "custom_data_docs" / "styles"
    styles.mkdir(parents=True)
    shutil.copyfile(STYLES, styles / "data_docs_custom_styles.css")
    docs = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(site)},
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
    }
    config = DataContextConfig(
        data_docs_sites={name: docs},
        plugins_directory=str(plugins),
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
    )
    return gx.get_context(mode="ephemeral", project_config=config)


def _add_outcome(context: EphemeralDataContext, batch: Validated, suite: dict[str, Any]) -> str:
    """Stores the outcome of one suite; gives the path its page will have in the site."""
    from great_expectations.core.expectation_validation_result import expectationSuiteValidationResultSchema
    from great_expectations.data_context.types.resource_identifiers import (
        ExpectationSuiteIdentifier,
        ValidationResultIdentifier,
    )

    run = _run(batch)
    version = suite["meta"]["great_expectations_version"]
    meta = {"run_id": run.to_json_dict(), "great_expectations_version": version}
    outcome = expectationSuiteValidationResultSchema.load({**suite, "meta": meta})
    key = ValidationResultIdentifier(ExpectationSuiteIdentifier(name=suite["suite_name"]), run, "batch")
    context.validation_results_store.set(key, outcome)
    return "/".join(("validations", *key.to_tuple())) + ".html"  # type: ignore[no-untyped-call]


def _run(batch: Validated) -> RunIdentifier:
    from great_expectations.core import RunIdentifier

    plan_time = datetime.fromtimestamp((batch.figures["plan_time_ms"] or 0) / 1000, tz=UTC)
    return RunIdentifier(run_name=f"batch-{batch.batch_id:06}", run_time=plan_time)


def _replace(target: Path, new: Path, earlier: Path) -> None:
    if target.exists():
        target.rename(earlier)
    new.rename(target)
