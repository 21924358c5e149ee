"""A page of each kind, from the sample pipelines: pages as files, and those that a server shows inside Airflow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.support.disks import folder_of
from tests.support.page_samples import AS_OF_MS, NAMES, NOW_MS, TROUBLE, WAITING, WELL, definition
from windowlib.delta.tables import Tables
from windowlib.inspection.status import SetAsideFile
from windowlib.pages.pipeline import pipeline
from windowlib.pages.pipeline_state import observe_pipeline
from windowlib.pages.render import (
    PageLinks,
    explain_page,
    pipeline_page,
    rerun_page,
    results_page,
    set_aside_page,
)
from windowlib.pages.rows import ResultFilter, TextRows, results
from windowlib.pages.served.explained import ExplainedResult, explained_result
from windowlib.pages.served.forms import RerunForm, SetAsideForm
from windowlib.pages.served.search import ExplainSearch, SearchResult
from windowlib.pages.site import site
from windowlib.reruns.page import PAGE, page_inside
from windowlib.reruns.previews import FOLDER
from windowlib.storage.disk import Disk

HOME = "."
LONG_REASON = "the file was cut off while it was uploaded, and the sender has sent it again under another name since"
INSIDE = PageLinks(
    lambda name: f"../{name}/",
    "../orders/",
    results="../results/",
    airflow="../",
    dag="../../dags/windows",
    dags="../../dags",
    question="../../dags/windows/question",
    set_aside="../set-aside/",
    rerun="../rerun/",
    explain="../explain/",
    is_static=False,
)


def page_kinds(samples: Path, place: Path) -> None:
    """Writes `place/KIND/index.html` for each kind of page."""
    broken = {Path("broken.toml"): "`gap` is missing"}
    site([definition(samples, name) for name in NAMES], Disk(place), AS_OF_MS, broken)
    served = dict([*_searches(samples), *_forms(), *_previews(samples)])
    decision = observe_pipeline(definition(samples, WAITING), AS_OF_MS)
    served["decision"] = pipeline_page(pipeline(decision), INSIDE)
    for kind, page in served.items():
        (place / kind).mkdir()
        (place / kind / "index.html").write_text(page, encoding="utf-8")


def _searches(samples: Path) -> Iterator[tuple[str, str]]:
    """Results by key and time, and an explained result."""
    shown = definition(samples, TROUBLE)
    tables = Tables(shown.store)
    found = results(shown, tables, {"results": tables["results"].version() or 0}, ResultFilter())
    key = {"user": "u1"}
    for kind, search in (
        ("results", SearchResult(key, "", "", found)),
        ("results-none", SearchResult(key, "2020-01-01", "2020-01-02", TextRows((), ()))),
        ("results-refused", SearchResult(key, "yesterday", "", TextRows((), ()), "from: 'yesterday' is not a time")),
    ):
        yield kind, results_page(TROUBLE, search, AS_OF_MS, INSIDE)
    explained = [(query, explained_result(shown, query)) for query in found.queries]
    query, fullest = max(explained, key=lambda pair: _size(pair[1]))
    for kind, searched in (
        ("explain", ExplainSearch({"user": query["key.user"]}, query["at"], fullest)),
        ("explain-refused", ExplainSearch(key, "yesterday", None, "at: 'yesterday' is not a time")),
    ):
        yield kind, explain_page(TROUBLE, searched, AS_OF_MS, INSIDE)


def _size(explained: ExplainedResult) -> tuple[int, int]:
    """Versions and events of a result."""
    [window, *_] = explained.windows
    return len(window.versions.cells), window.event_count


def _forms() -> Iterator[tuple[str, str]]:
    """Forms of actions, filled and refused."""
    day = {"from": "2026-03-05 00:00 Europe/Berlin", "to": "2026-03-06 00:00 Europe/Berlin", "reason": LONG_REASON}
    yield "rerun", rerun_page(WELL, RerunForm(day, "Europe/Berlin"), AS_OF_MS, INSIDE)
    refused = RerunForm({**day, "from": "yesterday"}, None, "from: 'yesterday' is not a time")
    yield "rerun-refused", rerun_page(WELL, refused, AS_OF_MS, INSIDE)
    aside = [SetAsideFile(f"2026/03/05/{hour:02}.parquet", NOW_MS, "ann", LONG_REASON) for hour in range(3)]
    form = SetAsideForm({"file": "no.parquet"}, False, ["1.parquet", "2.parquet"], aside)
    yield "set-aside", set_aside_page(WELL, form, AS_OF_MS, INSIDE)
    problem = "no.parquet: no such file in the source folder"
    yield "set-aside-refused", set_aside_page(WELL, replace(form, problem=problem), AS_OF_MS, INSIDE)
    back = SetAsideForm({"file": aside[0].path, "back": "1"}, True, [], aside)
    yield "take-back", set_aside_page(WELL, back, AS_OF_MS, INSIDE)


def _previews(samples: Path) -> Iterator[tuple[str, str]]:
    """The preview of a rerun, as a file, and inside Airflow with an open review."""
    [stored] = (folder_of(definition(samples, TROUBLE)) / FOLDER).glob(f"*/{PAGE}")
    page = stored.read_text(encoding="utf-8")
    yield "preview", page
    yield "preview-review", page_inside(page, TROUBLE, "../../dags/rerun_windows/review")
