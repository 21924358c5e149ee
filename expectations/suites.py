"""Runs the suites of a definition on one batch: a frame of one row with its figures, and a sample of its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import great_expectations as gx
import pandas as pd
from great_expectations.core import ExpectationSuite, ExpectationSuiteValidationResult
from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)

from expectations import events, rerun, results, state
from expectations.bounds import Figures
from expectations.own import own_suite
from expectations.terms import Terms

RESULT_FORMAT = {"result_format": "BASIC", "partial_unexpected_count": 5}  # at most five values of a column are shown


def frame(terms: Terms, figures: Figures) -> pd.DataFrame:
    """One row: the figures, and the differences and shares that the suites judge. Raises KeyError where one lacks."""
    known = {name: value for name, value in figures.items() if value is not None}
    if rerun.is_rerun(figures):
        return pd.DataFrame([{**figures, **rerun.columns(known)}])
    derived = events.columns(known) | state.columns(terms, known) | results.columns(known)
    return pd.DataFrame([{**figures, **derived}])


def parameters(figures: Figures, history: Sequence[Figures]) -> dict[str, float | None]:
    """The bounds that differ from batch to batch."""
    watermark_ms = figures["watermark_out_ms"]
    latest = None if watermark_ms is None else watermark_ms + 1
    return {**results.usual(history), "latest_window_end_ms": latest}


def over_figures(terms: Terms, figures: Figures) -> list[ExpectationSuite]:
    """The suites about the figures of a batch; those of a rerun are others, which the author's own do not know."""
    if rerun.is_rerun(figures):
        return [rerun.suite(terms)]
    own = terms.figures_suite
    derived = [module.suite(terms) for module in (events, state, results)]
    return derived + ([own_suite("own_figures", own)] if own else [])


def over_rows(terms: Terms) -> list[ExpectationSuite]:
    """The suites about the result rows of a batch."""
    own = terms.results_suite
    return [results.rows_suite(terms)] + ([own_suite("own_results", own)] if own else [])


def validate(
    terms: Terms, figures: Figures, history: Sequence[Figures], result_files: Sequence[Path]
) -> list[dict[str, Any]]:
    """The outcome of every suite, as JSON; those about rows only where the batch wrote results."""
    bounds = parameters(figures, history)
    outcomes = list(_run("figures", frame(terms, figures), over_figures(terms, figures), bounds))
    if result_files and len(rows := results.sample(result_files)):
        outcomes += _run("results", rows, over_rows(terms), bounds)
    return [outcome.to_json_dict() for outcome in outcomes]  # type: ignore[no-untyped-call]


@cache
def _frames() -> Mapping[str, Any]:
    """What takes a frame to be judged, by name; made once, since Great Expectations writes its configuration anew."""
    pandas = _quiet_context().data_sources.add_pandas("batch")
    return {
        name: pandas.add_dataframe_asset(name).add_batch_definition_whole_dataframe(name)
        for name in ("figures", "results")
    }


def _quiet_context() -> EphemeralDataContext:
    """A context in memory, without progress bars and without a site."""
    config = DataContextConfig(
        progress_bars=ProgressBarsConfig(globally=False),
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
    )
    return gx.get_context(mode="ephemeral", project_config=config)


def _run(
    name: str, rows: pd.DataFrame, suites: Sequence[ExpectationSuite], bounds: Mapping[str, float | None]
) -> Iterator[ExpectationSuiteValidationResult]:
    batch = _frames()[name].get_batch(batch_parameters={"dataframe": rows})
    for suite in suites:
        yield batch.validate(suite, result_format=RESULT_FORMAT, expectation_parameters=dict(bounds))
