"""Judges a batch by its suites: a frame of one row with its figures, and, where a suite asks, the results that it
adds or changes.

Of the rows only the columns are read that the suites name, so memory is a matter of these columns: about 60 bytes a row
and column, 0.3 s for each million rows and expectation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import great_expectations as gx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from great_expectations.compatibility.pydantic import ValidationError
from great_expectations.core import ExpectationSuite
from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)
from great_expectations.exceptions.exceptions import ExpectationNotFoundError, GreatExpectationsError
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.expectations.registry import get_expectation_impl, list_registered_expectation_implementations
from great_expectations.validator.v1_validator import Validator

from windowlib.model.errors import InvalidSpec
from windowlib.quality import suite_files
from windowlib.quality.configurations import made_once
from windowlib.quality.figure_words import FIGURES
from windowlib.quality.figures import Figures, is_rerun, judged_figures, parameters
from windowlib.quality.frames import frame_of, in_utc
from windowlib.quality.offending import with_rows
from windowlib.quality.suite_files import JUDGED, OF_BATCH, OF_RERUN, OF_ROWS, Suite, must_be_known, suites_of
from windowlib.quality.terms import Terms

RESULT_FORMAT = {"result_format": "BASIC", "partial_unexpected_count": 5}  # at most five values of a column are shown
WITH_PLACES = {**RESULT_FORMAT, "result_format": "SUMMARY"}  # and where their rows are
ABOUT_COLUMNS = ("expect_table_column", "expect_column_to_exist")  # beginnings: they ask which columns there are
OF_SQL = "unexpected_rows"  # beginning of expectations that are written in SQL
BOUNDS = {"min_value", "max_value", "quantile_ranges"}
# What suites may name in addition to the columns.
IN_MS = {"window_start_ms": "window_start", "window_end_ms": "window_end"}


@made_once()
def validate(
    terms: Terms, figures: Figures, history: Sequence[Figures], result_files: Sequence[Path]
) -> list[dict[str, Any]]:
    """The outcome of every suite, as JSON; those about rows only where it adds or changes results.

    Raises `InvalidSpec` where a suite is mistaken, and KeyError where a figure is missing.
    """
    bounds = parameters(terms, figures, history)
    suites = [(suite, built(suite)) for suite in suites_of(terms, bounds)]
    kind = OF_RERUN if is_rerun(figures) else OF_BATCH
    frames = {kind: pd.DataFrame([judged_figures(terms, figures)])}
    of_rows = [one for suite, _ in suites if suite.judges == OF_ROWS for one in suite.expectations]
    if of_rows and result_files and len(rows := rows_of(result_files, of_rows)):
        frames[OF_ROWS] = rows
    outcomes = list[dict[str, Any]]()
    for judges, frame in frames.items():
        shown = WITH_PLACES if judges == OF_ROWS else RESULT_FORMAT
        validator = Validator(_batches()[judges], shown, {"dataframe": frame})  # one for all suites looks at it once
        for suite, theirs in suites:
            if suite.judges == judges:
                if judges != OF_ROWS:
                    _names_figures(suite, figures, frame)
                    outcomes.append(_outcome(validator, suite, theirs, bounds))
                else:
                    suite = in_utc(suite, frame)
                    outcomes.append(
                        with_rows(_outcome(validator, suite, built(suite), bounds), result_files, terms.key)
                    )
    return outcomes


def _outcome(
    validator: Validator, suite: Suite, theirs: ExpectationSuite, bounds: Mapping[str, float | None]
) -> dict[str, Any]:
    """The outcome of a suite, as JSON; raises `InvalidSpec` where a bound cannot be computed."""
    try:
        given = validator.validate_expectation_suite(theirs, {**bounds})
    except GreatExpectationsError:
        for one in suite.expectations:
            try:
                validator.validate_expectation(_built(one), {**bounds})
            except GreatExpectationsError as error:
                said = str(error).splitlines()[0]
                raise InvalidSpec(f"{one.place}: need bounds that can be computed, got: {said}") from error
        raise
    outcome = {
        "success": given.success,
        "results": [one.to_json_dict() for one in given.results],
        "suite_name": given.suite_name,
        "suite_parameters": given.suite_parameters,
        "statistics": given.statistics,
        "meta": {**given.meta, JUDGED: suite.judges},
        "id": given.id,
    }  # what its own to_json_dict makes, which copies everything first: a sixth of what judging takes
    plain: dict[str, Any] = json.loads(json.dumps(outcome, default=_as_json))
    return plain


def _as_json(value: Any) -> Any:
    """What Great Expectations leaves as it is in an outcome: values of numpy, and those that have no JSON."""
    return value.item() if isinstance(value, np.generic) else str(value)


def built(suite: Suite) -> ExpectationSuite:
    """A suite as Great Expectations' own object; raises `InvalidSpec` where it refuses an expectation."""
    return ExpectationSuite(name=suite.name, expectations=[_built(one) for one in suite.expectations])


def rows_of(files: Sequence[Path], expectations: Sequence[suite_files.Expectation]) -> pd.DataFrame:
    """All rows of some files of results, in the columns that expectations name, `window_start_ms` among these."""
    stored = dict.fromkeys(name for file in files for name in pq.read_schema(file).names)
    own = [name for name in stored if name not in IN_MS]
    for one in expectations:
        must_be_known(f"{one.place}: a column of results", _columns_of(one), [*own, *IN_MS])
    wanted = [*own, *IN_MS] if any(map(_needs_all, expectations)) else _named(expectations, [*own, *IN_MS])
    read = list(dict.fromkeys(IN_MS.get(name, name) for name in wanted)) or own[:1]
    table = pa.concat_tables((pq.ParquetFile(file).read(columns=read) for file in files), promote_options="permissive")
    for name in wanted:
        if name in IN_MS:
            milliseconds = table[IN_MS[name]].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())
            table = table.append_column(name, milliseconds)
    return frame_of(table)


def _needs_all(one: suite_files.Expectation) -> bool:
    """Whether an expectation may look at columns that it does not name one by one."""
    return bool(one.config["kwargs"].get("row_condition")) or str(one.config["type"]).startswith(ABOUT_COLUMNS)


def _named(expectations: Sequence[suite_files.Expectation], columns: Sequence[str]) -> list[str]:
    """Those of the columns that are a value of an argument, or in a list of values."""
    values = [value for one in expectations for value in one.config["kwargs"].values()]
    texts = {one for value in values for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)}
    return [name for name in columns if name in texts]


def _built(one: suite_files.Expectation) -> Expectation:
    name = one.config["type"]
    if str(name).startswith(OF_SQL):
        raise InvalidSpec(f"{one.place}: need an expectation that works on a pandas frame, not one in SQL")
    try:
        made: Expectation = ExpectationConfiguration(**one.config).to_domain_obj()
    except ExpectationNotFoundError as error:
        near = get_close_matches(name, list_registered_expectation_implementations(), 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InvalidSpec(f"{one.place}: need an expectation that Great Expectations has{hint}") from error
    except ValidationError as error:
        problems = dict.fromkeys(f"{problem['loc'][0]}: {problem['msg']}" for problem in error.errors())
        takes = [field for field in get_expectation_impl(name).__fields__ if field not in Expectation.__fields__]
        raise InvalidSpec(f"{one.place}: need arguments among {', '.join(takes)}; got {'; '.join(problems)}") from error
    except (TypeError, ValueError, GreatExpectationsError) as error:
        raise InvalidSpec(f"{one.place}: need what Great Expectations takes; got {error}") from error
    if str(name).endswith("_to_be_between") and not BOUNDS & one.config["kwargs"].keys():
        raise InvalidSpec(f"{one.place}: need min_value or max_value; without them it cannot fail")
    return made


def _names_figures(suite: Suite, figures: Figures, frame: pd.DataFrame) -> None:
    """Raises `InvalidSpec` where a suite judges figures that there are not, or says that a number was made of them."""
    for one in suite.expectations:
        known = dict.fromkeys([*figures, *FIGURES])
        must_be_known(f"{one.place}: meta.windowlib.figures", one.ours.get("figures", ()), known)
        must_be_known(f"{one.place}: a figure", _columns_of(one), dict.fromkeys([*frame.columns, *FIGURES]))


def _columns_of(one: suite_files.Expectation) -> list[str]:
    """The columns that an expectation needs, by its arguments."""
    if str(one.config["type"]).startswith(ABOUT_COLUMNS):
        return []
    given = one.config["kwargs"]
    single = [given[name] for name in ("column", "column_A", "column_B") if name in given]
    return [*single, *given.get("column_list", ())]


@cache
def _batches() -> Mapping[str, Any]:
    """What takes a frame, by what is judged; made once: Great Expectations writes its configuration each time."""
    source = _quiet_context().data_sources.add_pandas("batch")
    figures, results = (
        source.add_dataframe_asset(name).add_batch_definition_whole_dataframe(name) for name in ("figures", "results")
    )
    return {OF_BATCH: figures, OF_RERUN: figures, OF_ROWS: results}


def _quiet_context() -> EphemeralDataContext:
    """A context in memory, without progress bars and without a site."""
    config = DataContextConfig(
        progress_bars=ProgressBarsConfig(globally=False),
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
    )
    return gx.get_context(mode="ephemeral", project_config=config)
