"""Pages inside Airflow: rendered on request, and cached while nothing has changed.

A cached page is valid while the version of the ledger and the run in progress stay the same, but at most for
`FRESH_MS`. After that the waiting files of the source, and ages, may have changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import quote

from windowlib.airflow.pipelines import BrokenPipelines, dag_id
from windowlib.batches.planning import ledger_of
from windowlib.definition.commands import naming
from windowlib.definition.definition import Definition
from windowlib.definition.formulas import continues, of_tables
from windowlib.definition.toml.source import Source
from windowlib.delta.tables import Tables
from windowlib.inspection.lineage.cuts import EVER, asked_range
from windowlib.ledger import last_error
from windowlib.ledger.set_aside_files import files_set_aside
from windowlib.model.errors import WindowError
from windowlib.pages.changes.since_moment import moment_of
from windowlib.pages.overview import Overview, overviews, unreadable
from windowlib.pages.pipeline import Pipeline, pipeline
from windowlib.pages.pipeline_state import observe_pipeline
from windowlib.pages.render import (
    PageLinks,
    explain_page,
    home_page,
    pipeline_page,
    problem_page,
    rerun_page,
    results_page,
    set_aside_page,
)
from windowlib.pages.rows import KEY, ResultFilter, TextRows, results
from windowlib.pages.served.explained import explained_result
from windowlib.pages.served.forms import RerunForm, set_aside_form
from windowlib.pages.served.search import ExplainSearch, SearchResult

FRESH_MS = 30_000
DAGS = "../../dags"  # from the page of a pipeline
HOME = PageLinks(pipeline=lambda name: f"{name}/", home=None, airflow="../", is_static=False)
INSIDE = PageLinks(
    pipeline=lambda name: f"../{name}/", home="./", results="results", dags=DAGS, explain="explain", is_static=False
)  # links of pages below the page of a pipeline
PIPELINE = replace(INSIDE, home="../")

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class Allowed:
    """Actions on a pipeline that a user may do: answer its open `question`, decide about files, start reruns."""

    question: str | None = None
    decides: bool = False
    reruns: bool = False


NOTHING_ALLOWED = Allowed()


@dataclass(slots=True)
class Cache(Generic[Kept]):
    """Cache of the newest content of each pipeline."""

    make: Callable[[Definition, int], Kept]
    _kept: dict[Path, tuple[tuple[object, ...], int, Kept]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, definition: Definition, now_ms: int) -> Kept:
        """Returns the current content of a pipeline, made again if anything visible may have changed."""
        fingerprint = _fingerprint(definition, now_ms)
        with self._lock:
            cached = self._kept.get(definition.file)
        if cached and cached[0] == fingerprint and 0 <= now_ms - cached[1] < FRESH_MS:
            return cached[2]
        content = self.make(definition, now_ms)
        with self._lock:
            self._kept[definition.file] = fingerprint, now_ms, content
        return content


def _fingerprint(definition: Definition, now_ms: int) -> tuple[object, ...]:
    """State that the page of a pipeline depends on: ledger, run in progress, files set aside, error, definition."""
    ledger = ledger_of(definition, lambda: now_ms)
    state = ledger.state()
    claim = state.claim
    at_work = ledger.holder(claim) if claim and not claim.released else None
    error = last_error.last(definition.store)
    written_ns = definition.file.stat().st_mtime_ns
    aside = tuple(sorted(files_set_aside(definition.store)))
    return state.version, at_work is not None, aside, error, written_ns, definition.store.url


def _row(definition: Definition, now_ms: int) -> Overview:
    [row] = overviews([definition], now_ms)
    return row


def _facts(definition: Definition, now_ms: int) -> Pipeline:
    return pipeline(observe_pipeline(definition, now_ms))


def links_of(definition: Definition, allowed: Allowed) -> PageLinks:
    """Links of a pipeline's page for a user. Links to actions that the user may not do, or that cannot be, are None."""
    return replace(
        PIPELINE,
        dag=f"{DAGS}/{quote(dag_id(definition), safe='')}",
        question=allowed.question,
        set_aside="set-aside" if allowed.decides else None,
        rerun="rerun" if allowed.reruns and definition.never_rerun is None else None,
    )


_ROWS, _PAGES = Cache(_row), Cache(_facts)


def home(
    definitions: Sequence[Definition], broken: Sequence[BrokenPipelines], now_ms: int, next_runs: Mapping[str, str]
) -> str:
    """Home page of some pipelines. `next_runs` has the next run of each pipeline, by name."""
    rows = [unreadable(group.name, group.message) for group in broken]
    for definition in definitions:
        try:
            rows.append(_ROWS.get(definition, now_ms))
        except (WindowError, OSError):
            rows.append(_row(definition, now_ms))
    return home_page(sorted(rows, key=lambda row: row.order), now_ms, HOME, next_runs)


def page(definition: Definition, now_ms: int, since: str = "", allowed: Allowed = NOTHING_ALLOWED) -> str:
    """Page of a pipeline for a user. If its tables cannot be read, a page with the reason.

    With `since`, a time or a batch, the page shows how results have changed since then.
    """
    links = replace(links_of(definition, allowed), since=since)
    try:
        if since:
            return _compared(definition, now_ms, links)
        return pipeline_page(_PAGES.get(definition, now_ms), links)
    except (WindowError, OSError):
        return problem_page(_row(definition, now_ms), now_ms, links)


def _compared(definition: Definition, now_ms: int, links: PageLinks) -> str:
    observed, moment, problem = observe_pipeline(definition, now_ms), None, None
    try:
        moment = moment_of(observed.tail, links.since)
    except WindowError as error:
        problem = str(error)
    return pipeline_page(pipeline(observed, since=moment), links, problem)


def page_of_broken(broken: BrokenPipelines, now_ms: int) -> str:
    """Page of a pipeline that cannot be scheduled."""
    return problem_page(unreadable(broken.name, broken.message), now_ms, PIPELINE)


def file_form_page(definition: Definition, fields: Mapping[str, str], now_ms: int, problem: str | None = None) -> str:
    """Page with the form that sets a file aside. `problem` is the reason why the filled form was refused."""
    return set_aside_page(definition.name, set_aside_form(definition, fields, problem), now_ms, INSIDE)


def rerun_form_page(definition: Definition, fields: Mapping[str, str], now_ms: int, problem: str | None = None) -> str:
    """Page with the form that starts a rerun. `problem` is the reason why the filled form was refused."""
    return rerun_page(definition.name, RerunForm(fields, definition.time_zone, problem), now_ms, INSIDE)


def search_page(definition: Definition, fields: Mapping[str, str], now_ms: int) -> str:
    """Page of results by key and time. `fields` has the values of its form."""
    since, until = fields.get("from", "").strip(), fields.get("to", "").strip()
    shown, rows, problem = definition, TextRows((), ()), None
    try:
        if commit := ledger_of(definition).state().commit:
            shown = of_tables(definition, commit.stored)
        span, key = asked_range(since or None, until or None), _key(shown.source, shown.hidden, fields)
        wanted = ResultFilter(None if span == EVER else span, {name: text for name, text in key.items() if text})
        rows = results(shown, Tables(definition.store), commit.versions if commit else {}, wanted)
        if commit and not continues(definition, commit.stored, commit.fingerprint):
            rows = replace(rows, commands=(), queries=())  # a command under the changed definition would be refused
    except WindowError as error:
        problem = str(error)
    return results_page(
        definition.name,
        SearchResult(_key(shown.source, shown.hidden, fields), since, until, rows, problem),
        now_ms,
        INSIDE,
    )


def explained_page(definition: Definition, fields: Mapping[str, str], now_ms: int) -> str:
    """Page that explains a result. `fields` has the key and a time in the window."""
    key, at = _key(definition.source, definition.hidden, fields), fields.get("at", "").strip()
    result, problem = None, None
    try:
        result = explained_result(definition, fields) if at else None
    except WindowError as error:
        problem = naming(str(error), definition.file)
    return explain_page(definition.name, ExplainSearch(key, at, result, problem), now_ms, INSIDE)


def _key(source: Source, hidden: frozenset[str], fields: Mapping[str, str]) -> dict[str, str]:
    """Value in the form for each key column that is not hidden."""
    columns = (name for name in source.key if name not in hidden)
    return {name: fields.get(f"{KEY}{name}", "") for name in columns}
