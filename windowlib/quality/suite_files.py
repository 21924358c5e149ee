"""Suites of a pipeline: JSON files in Great Expectations' format, completed with the values of the pipeline.

The built-in suites lie in `suites` (in the repository: `expectations/`, whose README explains how to change suites). A
file in the pipeline's own folder (`checks.suites`) replaces the built-in file of the same name, or is added. A mistake
in a file raises `InvalidSpec` with the file, the expectation, and the expected form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from windowlib.model.errors import InvalidSpec
from windowlib.quality.number_words import SHARE, number_in_words
from windowlib.quality.terms import Terms

OF_BATCH, OF_RERUN, OF_ROWS = JUDGES = ("figures of a batch", "figures of a rerun", "rows of results")
# Names of the suites in `figures_suite` and `results_suite`, and of the suite of the short tests in the definition.
OWN_FIGURES, OWN_RESULTS, OWN_TESTS = "own_figures", "own_results", "own_tests"
JUDGED = "judged"  # in `meta` of the outcome of a suite: one of `JUDGES`
SUITE_KEYS = ("name", "expectations", "meta", "notes", "id", "suite_parameters")
KEYS = ("type", "kwargs", "description", "severity", "meta", "notes", "id", "rendered_content", "success_on_last_run")
SEVERITIES = ("critical", "warning", "info")
OUR_KEYS = ("figures", "among", "only_if", "table")  # in `meta.windowlib` of an expectation
LISTED = 20  # most names that a message lists if it also suggests a name
IN_SENTENCE = re.compile(r"\$([a-z]\w*)")
IN_BOUND = re.compile(r"\b[A-Za-z]\w*\b(?!\s*[(=])")  # a bound may be computed: "round(windows_fired_low / 2)"
NEED = '{"expectations": [{"type": "expect_…", "kwargs": {…}}, …]}'


@dataclass(frozen=True, slots=True)
class Expectation:
    """Expectation in Great Expectations' format. `place` identifies the expectation in messages."""

    place: str
    config: dict[str, Any]
    ours: Mapping[str, Any]  # contents of `meta.windowlib`


@dataclass(frozen=True, slots=True)
class Suite:
    """Expectations of a file that apply to a pipeline. `judges` names the judged data, one of `JUDGES`."""

    name: str
    judges: str
    expectations: tuple[Expectation, ...]


@dataclass(frozen=True, slots=True)
class SuitePlaceholders:
    """Values for the placeholders in suite files: conditions of `only_if`, columns, and bounds by parameter."""

    conditions: Mapping[str, bool]
    columns: Mapping[str, tuple[str, ...]]
    parameters: Mapping[str, float | None]

    @classmethod
    def of(cls, terms: Terms, parameters: Mapping[str, float | None]) -> SuitePlaceholders:
        """Values for a pipeline and a batch."""
        return cls(
            conditions={
                "one result per window": not terms.fires_often,
                "one result per firing": terms.fires_often,
                "windows fire at their end": terms.fires_at_the_end,
            },
            columns={"$key": terms.key, "$result_number": ("result_number",) if terms.by_function else ()},
            parameters=parameters,
        )


def suites_in_files(terms: Terms, parameters: Mapping[str, float | None]) -> list[Suite]:
    """Suites in the files of a pipeline, by file name; the suites of `figures_suite` and `results_suite` come last."""
    blanks = SuitePlaceholders.of(terms, parameters)
    files = _in_folder(_built_in()) | (_in_folder(terms.suites) if terms.suites else {})
    reserved_by = {OWN_FIGURES: "figures_suite", OWN_RESULTS: "results_suite", OWN_TESTS: "columns"}
    for reserved, key in reserved_by.items():
        if file := files.get(f"{reserved}.json"):
            raise InvalidSpec(f"{file}: {reserved} is reserved for the suite of checks.{key}; give it another name")
    suites = [_suite(file, blanks) for _, file in sorted(files.items())]
    if terms.figures_suite:
        suites.append(_suite(terms.figures_suite, blanks, (OWN_FIGURES, OF_BATCH)))
    if terms.results_suite:
        suites.append(_suite(terms.results_suite, blanks, (OWN_RESULTS, OF_ROWS)))
    return suites


# -- reading ------------------------------------------------------------------------------------------------------


@cache
def built_in_names() -> frozenset[str]:
    """Names of the suites of windowlib. All others are suites of the author."""
    return frozenset(name.removesuffix(".json") for name in _in_folder(_built_in()))


def _built_in() -> Traversable:
    return resources.files("windowlib.quality") / "suites"


def _in_folder(folder: Traversable) -> dict[str, Traversable]:
    return {file.name: file for file in folder.iterdir() if file.name.endswith(".json")}


def _suite(file: Traversable, blanks: SuitePlaceholders, header: tuple[str, str] | None = None) -> Suite:
    """Reads the suite in a file. Name and judged data come from `header` if it is set, otherwise from the file."""
    contents = _contents(file)
    name, judges = _header_of_definition(file, contents, *header) if header else _header(file, contents)
    listed = [_expectation(file, number, config) for number, config in enumerate(contents["expectations"], start=1)]
    return Suite(
        name, judges, tuple(_filled(expectation, blanks) for expectation in listed if _holds(expectation, blanks))
    )


def _contents(file: Traversable) -> dict[str, Any]:
    try:
        contents = json.loads(file.read_text(encoding="utf-8"), parse_constant=_no_json)
    except (OSError, ValueError) as error:
        raise InvalidSpec(f"{file} cannot be read ({type(error).__name__}: {error}); need {NEED} as JSON") from error
    if not isinstance(contents, dict) or not isinstance(contents.get("expectations"), list):
        raise InvalidSpec(f"{file}: got {_shown(contents)}; need {NEED}")
    must_be_known(f"{file}: keys of a suite", contents, SUITE_KEYS)
    return contents


def _no_json(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _header_of_definition(file: Traversable, contents: Mapping[str, Any], name: str, judges: str) -> tuple[str, str]:
    """Returns the name and judged data that a definition gives a suite. Raises `InvalidSpec` if the file disagrees."""
    stated = _ours(str(file), contents, ("judges",)).get("judges", judges)
    must_be_known(f"{file}: meta.windowlib.judges", [stated], [judges])
    return name, judges


def _header(file: Traversable, contents: Mapping[str, Any]) -> tuple[str, str]:
    name = file.name.removesuffix(".json")
    if contents.get("name") != name:
        raise InvalidSpec(
            f'{file}: its name is {_shown(contents.get("name"))}; need the name of its file, "name": "{name}"'
        )
    judges = _ours(str(file), contents, ("judges",)).get("judges")
    must_be_known(f"{file}: meta.windowlib.judges", [judges], JUDGES)
    return name, str(judges)


def _expectation(file: Traversable, number: int, config: Any) -> Expectation:
    place = f"{file}: expectation {number}"
    if not isinstance(config, dict) or not isinstance(config.get("kwargs"), dict) or "type" not in config:
        raise InvalidSpec(f'{place}: got {_shown(config)}; need {{"type": "expect_…", "kwargs": {{…}}}}')
    place = f"{place}, {config['type']}"
    must_be_known(f"{place}: keys of an expectation", config, KEYS)
    return _validated(Expectation(place, config, _ours(place, config, OUR_KEYS)))


def _validated(expectation: Expectation) -> Expectation:
    """Returns the expectation. Raises `InvalidSpec` if a value is invalid."""
    config, kwargs = expectation.config, expectation.config["kwargs"]
    must_be_known(f"{expectation.place}: severity", [config.get("severity", "critical")], SEVERITIES)
    for key in (key for key in ("severity", "description", "meta") if key in kwargs):
        raise InvalidSpec(f"{expectation.place}: {key} is inside kwargs; need it next to kwargs")
    for key, value, kind in (
        ("description", config.get("description") or "", str),
        ("meta.windowlib.figures", expectation.ours.get("figures", []), list),
    ):
        if not isinstance(value, kind):
            raise InvalidSpec(
                f"{expectation.place}: {key}: got {_shown(value)}; need {'a string' if kind is str else 'a list'}"
            )
    low, high = (_bound(expectation.place, side, kwargs.get(side)) for side in ("min_value", "max_value"))
    if low is not None and high is not None and low > high:
        raise InvalidSpec(f"{expectation.place}: got {_shown(low)} and {_shown(high)}; need min_value <= max_value")
    return expectation


def _bound(place: str, side: str, value: Any) -> float | None:
    """Bound if it is a number, otherwise None. Raises `InvalidSpec` for a boolean or a malformed `$PARAMETER`.

    Great Expectations checks bounds of other types.
    """
    if isinstance(value, bool) or (isinstance(value, dict) and not isinstance(value.get("$PARAMETER"), str)):
        need = 'a number, or {"$PARAMETER": "max_late_share"}'
        raise InvalidSpec(f"{place}: {side}: got {_shown(value)}; need {need}")
    return value if isinstance(value, int | float) else None


def _ours(place: str, config: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    """Contents of `meta.windowlib`. Raises `InvalidSpec` if it has other keys than `keys`."""
    meta = config.get("meta") or {}
    ours = meta.get("windowlib", {}) if isinstance(meta, dict) else meta
    if not isinstance(ours, dict):
        raise InvalidSpec(f'{place}: meta: got {_shown(meta)}; need "meta": {{"windowlib": {{…}}}}')
    must_be_known(f"{place}: keys of meta.windowlib", ours, keys)
    return ours


# -- filling in ---------------------------------------------------------------------------------------------------


def _holds(expectation: Expectation, blanks: SuitePlaceholders) -> bool:
    condition = expectation.ours.get("only_if")
    if condition is None:
        return True
    must_be_known(f"{expectation.place}: meta.windowlib.only_if", [condition], blanks.conditions)
    return blanks.conditions[condition]


def _filled(expectation: Expectation, blanks: SuitePlaceholders) -> Expectation:
    """Replaces the placeholders for columns, and for numbers in the description.

    Great Expectations replaces the placeholders in bounds.
    """
    kwargs, parameters = dict(expectation.config["kwargs"]), blanks.parameters
    for name, bound in kwargs.items():
        if isinstance(bound, dict) and "$PARAMETER" in bound:
            used = IN_BOUND.findall(str(bound["$PARAMETER"]))
            must_be_known(f"{expectation.place}: $PARAMETER", used, parameters)
            if unknown := [parameter for parameter in used if parameters[parameter] is None]:
                kwargs[name] = {"$PARAMETER": unknown[0]}  # a bound computed from an unknown number bounds nothing
    if isinstance(columns := kwargs.get("column_list"), list):
        placeholders = [name for name in columns if str(name).startswith("$")]
        must_be_known(f"{expectation.place}: column_list", placeholders, blanks.columns)
        kwargs["column_list"] = [column for name in columns for column in blanks.columns.get(name, (name,))]
    sentence = expectation.config.get("description") or ""
    must_be_known(f"{expectation.place}: numbers of the description", IN_SENTENCE.findall(sentence), parameters)
    sentence = IN_SENTENCE.sub(lambda name: _number(parameters[name[1]], name[1]), sentence)
    # An `id` would tie the expectation to a store.
    config = {name: value for name, value in expectation.config.items() if name != "id"}
    return replace(expectation, config={**config, "kwargs": kwargs, "description": sentence or None})


def _number(value: float | None, name: str) -> str:
    """Formats a parameter for a sentence.

    >>> _number(0.05, "max_late_share"), _number(60, "windows_fired_high"), _number(None, "max_late_share")
    ('5 %', '60', 'any number')
    """
    if value is not None and name.endswith(SHARE):
        return number_in_words(value, name)
    return "any number" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


# -- mistakes -----------------------------------------------------------------------------------------------------


def must_be_known(place: str, values: Iterable[Any], allowed: Collection[str]) -> None:
    """Raises `InvalidSpec` if a value is not allowed. The error has the allowed values and a suggestion.

    >>> must_be_known("late.json: keys of a suite", ["nam"], ("name", "notes"))
    Traceback (most recent call last):
        ...
    windowlib.model.errors.InvalidSpec: late.json: keys of a suite: got "nam"; need name or notes; did you mean name?
    """
    for value in values:
        if value not in list(allowed):
            near = get_close_matches(str(value), allowed, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            need = (
                f"one of the {len(allowed)} existing names" if near and len(allowed) > LISTED else " or ".join(allowed)
            )
            raise InvalidSpec(f"{place}: got {_shown(value)}; need {need}{hint}")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"
