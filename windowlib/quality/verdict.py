"""Judges a batch by suites: the figures, as a frame with one row, and the results that the batch adds or changes.

Results are read only if a suite judges rows, and only in the columns that the suites name. This takes about 60 bytes
per row and column, and 0.3 s per million rows and expectation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

import great_expectations as gx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from great_expectations.compatibility.pydantic import ValidationError
from great_expectations.core import ExpectationSuite, ExpectationValidationResult
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
from great_expectations.util import convert_to_json_serializable
from great_expectations.validator.v1_validator import Validator

from windowlib.model.errors import InvalidSpec
from windowlib.quality import suite_files
from windowlib.quality.configurations import cached_configurations
from windowlib.quality.figure_words import FIGURES
from windowlib.quality.figures import Figures, is_rerun, judged_figures, parameters
from windowlib.quality.frames import frame_of, in_utc
from windowlib.quality.offending import with_rows
from windowlib.quality.pipeline_suites import suites_of
from windowlib.quality.suite_files import JUDGED, OF_BATCH, OF_RERUN, OF_ROWS, Suite, must_be_known
from windowlib.quality.terms import Terms
from windowlib.storage.object_file import ObjectFile

RESULT_FORMAT = {"result_format": "BASIC", "partial_unexpected_count": 5}  # at most five values of a column are shown
WITH_PLACES = {**RESULT_FORMAT, "result_format": "SUMMARY"}  # also positions of rejected rows
ABOUT_COLUMNS = ("expect_table_column", "expect_column_to_exist")  # prefixes of expectations about the set of columns
OF_SQL = "unexpected_rows"  # prefix of expectations written in SQL
OF_CONFIGURATION = ("type", "kwargs", "meta", "notes", "id", "description", "severity", "rendered_content")
BOUNDS = {"min_value", "max_value", "quantile_ranges"}
# Further names that suites may use, each with the stored column that it shows in ms.
IN_MS = {"window_start_ms": "window_start", "window_end_ms": "window_end"}


@cached_configurations()
def validate(
    terms: Terms, figures: Figures, history: Sequence[Figures], result_files: Sequence[ObjectFile]
) -> list[dict[str, Any]]:
    """Judges a batch. Returns the outcome of each suite as JSON. Without added or changed results, skips row suites.

    Raises `InvalidSpec` for a mistake in a suite, and KeyError if a figure is missing.
    """
    bounds = parameters(terms, figures, history)
    kind = OF_RERUN if is_rerun(figures) else OF_BATCH
    suites = [(suite, built(suite)) for suite in suites_of(terms, bounds, kind)]
    frames = {kind: pd.DataFrame([judged_figures(terms, figures)])}
    of_rows = [expectation for suite, _ in suites if suite.judges == OF_ROWS for expectation in suite.expectations]
    if of_rows and result_files and len(rows := rows_of(result_files, of_rows)):
        frames[OF_ROWS] = rows
    outcomes = list[dict[str, Any]]()
    for judges, frame in frames.items():
        shown = WITH_PLACES if judges == OF_ROWS else RESULT_FORMAT
        # All suites share the validator, so that it reads the frame once.
        validator = Validator(_batches()[judges], shown, {"dataframe": frame})
        for suite, gx_suite in suites:
            if suite.judges == judges:
                if judges != OF_ROWS:
                    _check_figure_names(suite, figures, frame)
                    outcomes.append(_outcome(validator, suite, gx_suite, bounds))
                else:
                    suite = in_utc(suite, frame)
                    outcomes.append(
                        with_rows(_outcome(validator, suite, built(suite), bounds), result_files, terms.key)
                    )
    return outcomes


def _outcome(
    validator: Validator, suite: Suite, gx_suite: ExpectationSuite, bounds: Mapping[str, float | None]
) -> dict[str, Any]:
    """Judges a suite. Returns the outcome as JSON. Raises `InvalidSpec` if a bound cannot be computed."""
    try:
        validation = validator.validate_expectation_suite(gx_suite, {**bounds})
    except GreatExpectationsError:
        for expectation in suite.expectations:
            try:
                validator.validate_expectation(_built(expectation), {**bounds})
            except GreatExpectationsError as error:
                reason = str(error).splitlines()[0]
                raise InvalidSpec(f"{expectation.place}: its bounds cannot be computed: {reason}") from error
        raise
    outcome = {
        "success": validation.success,
        "results": [_result(result) for result in validation.results],
        "suite_name": validation.suite_name,
        "suite_parameters": validation.suite_parameters,
        "statistics": validation.statistics,
        "meta": {**validation.meta, JUDGED: suite.judges},
        "id": validation.id,
    }  # as `validation.to_json_dict`, which would first copy everything in a sixth of the time
    plain: dict[str, Any] = json.loads(json.dumps(outcome, default=_as_json))
    return plain


def _result(result: ExpectationValidationResult) -> dict[str, Any]:
    """Outcome of an expectation, equal to `result.to_json_dict`, which takes a sixth of the judge's time to copy it."""
    config = {name: getattr(result.expectation_config, name) for name in OF_CONFIGURATION}
    outcome = {
        "success": result.success,
        "expectation_config": {name: value for name, value in config.items() if value is not None},
        "result": result.result,
        "meta": result.meta,
        "exception_info": result.exception_info,
    }
    plain: dict[str, Any] = convert_to_json_serializable(outcome)
    return plain


def _as_json(value: Any) -> Any:
    """Converts values that Great Expectations leaves in an outcome: numpy values, and values without a JSON form."""
    return value.item() if isinstance(value, np.generic) else str(value)


def built(suite: Suite) -> ExpectationSuite:
    """Converts a suite to Great Expectations' class. Raises `InvalidSpec` if Great Expectations refuses a value."""
    return ExpectationSuite(name=suite.name, expectations=[_built(expectation) for expectation in suite.expectations])


def rows_of(files: Sequence[ObjectFile], expectations: Sequence[suite_files.Expectation]) -> pd.DataFrame:
    """Reads all rows of result `files`. Reads the columns that expectations name, including the names in `IN_MS`.

    Raises `InvalidSpec` for an unknown column.
    """
    stored = dict.fromkeys(name for file in files for name in pq.read_schema(file).names)
    own = [name for name in stored if name not in IN_MS]
    for expectation in expectations:
        must_be_known(f"{expectation.place}: a column of results", _columns_of(expectation), [*own, *IN_MS])
    wanted = [*own, *IN_MS] if any(map(_needs_all, expectations)) else _named(expectations, [*own, *IN_MS])
    read = list(dict.fromkeys(IN_MS.get(name, name) for name in wanted)) or own[:1]
    table = pa.concat_tables((pq.ParquetFile(file).read(columns=read) for file in files), promote_options="permissive")
    for name in wanted:
        if name in IN_MS:
            milliseconds = table[IN_MS[name]].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())
            table = table.append_column(name, milliseconds)
    return frame_of(table)


def _needs_all(expectation: suite_files.Expectation) -> bool:
    """Tests if an expectation may read columns that its arguments do not name."""
    config = expectation.config
    return bool(config["kwargs"].get("row_condition")) or str(config["type"]).startswith(ABOUT_COLUMNS)


def _named(expectations: Sequence[suite_files.Expectation], columns: Sequence[str]) -> list[str]:
    """Members of `columns` that occur as an argument of an expectation, or in a list argument."""
    arguments = [value for expectation in expectations for value in expectation.config["kwargs"].values()]
    values = [value for argument in arguments for value in (argument if isinstance(argument, list) else [argument])]
    texts = {value for value in values if isinstance(value, str)}
    return [name for name in columns if name in texts]


def _built(expectation: suite_files.Expectation) -> Expectation:
    name = expectation.config["type"]
    if str(name).startswith(OF_SQL):
        raise InvalidSpec(f"{expectation.place}: {name} runs SQL; need an expectation that works on a pandas DataFrame")
    try:
        gx_expectation: Expectation = ExpectationConfiguration(**expectation.config).to_domain_obj()
    except ExpectationNotFoundError as error:
        near = get_close_matches(name, list_registered_expectation_implementations(), 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InvalidSpec(f"{expectation.place}: Great Expectations has no such expectation{hint}") from error
    except ValidationError as error:
        problems = dict.fromkeys(f"{problem['loc'][0]}: {problem['msg']}" for problem in error.errors())
        takes = [field for field in get_expectation_impl(name).__fields__ if field not in Expectation.__fields__]
        raise InvalidSpec(
            f"{expectation.place}: {'; '.join(problems)}; need arguments among {', '.join(takes)}"
        ) from error
    except (TypeError, ValueError, GreatExpectationsError) as error:
        raise InvalidSpec(f"{expectation.place}: Great Expectations refuses the arguments: {error}") from error
    if str(name).endswith("_to_be_between") and not BOUNDS & expectation.config["kwargs"].keys():
        raise InvalidSpec(f"{expectation.place}: it cannot fail without a bound; need min_value or max_value")
    return gx_expectation


def _check_figure_names(suite: Suite, figures: Figures, frame: pd.DataFrame) -> None:
    """Raises `InvalidSpec` if a suite names a figure that does not exist."""
    for expectation in suite.expectations:
        names = dict.fromkeys([*figures, *FIGURES])
        must_be_known(f"{expectation.place}: meta.windowlib.figures", expectation.ours.get("figures", ()), names)
        among = [expectation.ours["among"]] if "among" in expectation.ours else []
        must_be_known(f"{expectation.place}: meta.windowlib.among", among, names)
        must_be_known(
            f"{expectation.place}: a figure", _columns_of(expectation), dict.fromkeys([*frame.columns, *FIGURES])
        )


def _columns_of(expectation: suite_files.Expectation) -> list[str]:
    """Columns that the arguments of an expectation name."""
    if str(expectation.config["type"]).startswith(ABOUT_COLUMNS):
        return []
    arguments = expectation.config["kwargs"]
    single = [arguments[name] for name in ("column", "column_A", "column_B") if name in arguments]
    return [*single, *arguments.get("column_list", ())]


@cache
def _batches() -> Mapping[str, Any]:
    """Great Expectations' batch definitions by judged data. Cached, because each call writes the configuration."""
    source = _quiet_context().data_sources.add_pandas("batch")
    figures, results = (
        source.add_dataframe_asset(name).add_batch_definition_whole_dataframe(name) for name in ("figures", "results")
    )
    return {OF_BATCH: figures, OF_RERUN: figures, OF_ROWS: results}


def _quiet_context() -> EphemeralDataContext:
    """Great Expectations context in memory, without progress bars and Data Docs."""
    config = DataContextConfig(
        progress_bars=ProgressBarsConfig(globally=False),
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
    )
    return gx.get_context(mode="ephemeral", project_config=config)
