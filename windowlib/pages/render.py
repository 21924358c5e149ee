"""Facts as HTML. Every value is escaped, and styles are in the page. Nothing is loaded.

Scripts search and sort the table of the home page, and show the values of plots below the pointer. Without scripts,
the pages show the whole table, and browsers show the values as tooltips.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import jinja2

from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.instants import instant, iso_instant
from windowlib.definition.plurals import counted
from windowlib.definition.toml.durations import UNITS, format_duration
from windowlib.inspection.late.events import how_late
from windowlib.pages.balance import REFUSED
from windowlib.pages.compiled import TemplateCache
from windowlib.pages.history import anchor_of
from windowlib.pages.overview import Overview
from windowlib.pages.pipeline import Pipeline
from windowlib.pages.plots.by_batch import check_plot, plot
from windowlib.pages.plots.by_hour import days, gaps, top_of
from windowlib.pages.plots.headline import HOURS, headline_by_day, headline_by_hour
from windowlib.pages.plots.sparkline import sparkline
from windowlib.pages.served.forms import RerunForm, SetAsideForm
from windowlib.pages.served.search import ExplainSearch, SearchResult
from windowlib.pages.trends import Measure
from windowlib.pages.words import (
    age,
    ago,
    amount,
    cause_words,
    check_strip,
    check_words,
    day_words,
    difference,
    final_words,
    hour_words,
    is_numeric,
    measure,
    minute,
    moment,
    percent,
    range_words,
    signed,
    strip_words,
    trend_words,
    typed_time,
)
from windowlib.quality.number_words import number_in_words

CODE = re.compile("(`[^`]+`)")
DECISIONS, DAYS_OF_DECISIONS = 20, 14  # on the home page
SCRIPTS = ("home.js", "plots.js")
TEMPLATES = Path(__file__).with_name("templates")
SECTIONS = (
    ("days", "Days"),
    ("changes", "Changes"),
    ("trends", "Trends"),
    ("checks", "Checks"),
    ("quarantine", "Refused"),
    ("late", "Late"),
    ("decided", "Decisions"),
    ("results", "Results"),
    ("internals", "Internals"),
)

CHANGES: Mapping[str, Callable[..., str]] = {  # filters of values that changed
    "cause_words": cause_words,
    "percent": percent,
    "signed": signed,
    "count_or_none": lambda value: f"{value:,}" if value else "",
}
TIMES: Mapping[str, Callable[..., str]] = {  # filters of times
    "age": age,
    "ago": ago,
    "at": instant,
    "day": day_words,
    "hour": hour_words,
    "minute": minute,
    "moment": moment,
    "range": range_words,
    "typed": typed_time,
}


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Links from a page to other pages, relative to where the page is shown. A link is None if its target does not
    exist.

    * `airflow` links to Airflow's own pages, `dags` to the folder of its DAG pages, `dag` to the page of the pipeline's
      DAG.
    * `question` links to the open question about the waiting batch, `set_aside` and `rerun` to forms, and `explain` to
      the page of a result.
    * `since` is the moment or batch that a reader typed, with which results are compared.
    * `is_static` is True for files, which do not refresh and contain their Content-Security-Policy.
    """

    pipeline: Callable[[str], str]
    home: str | None
    results: str | None = None
    airflow: str | None = None
    dag: str | None = None
    dags: str | None = None
    question: str | None = None
    set_aside: str | None = None
    rerun: str | None = None
    explain: str | None = None
    since: str = ""
    is_static: bool = True


def home_page(
    rows: Sequence[Overview], as_of_ms: int, place: PageLinks, next_runs: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Home page with a row for each pipeline. `next_runs` has the time of the next run by name, if it is known."""
    words = [row.shown_state for row in rows]
    decisions = ((row.name, decision) for row in rows for decision in row.decided)
    recent = (pair for pair in decisions if pair[1].at_ms > as_of_ms - DAYS_OF_DECISIONS * UNITS["d"])
    return _page(
        "home.html.jinja",
        as_of_ms,
        place,
        rows=rows,
        states={word: words.count(word) for word in dict.fromkeys(words)},
        link=place.pipeline,
        airflow=place.airflow,
        next_runs=next_runs,
        decisions=sorted(recent, key=lambda pair: -pair[1].at_ms)[:DECISIONS],
        days_of_decisions=DAYS_OF_DECISIONS,
        script=_markup("home.js"),
    )


def problem_page(row: Overview, as_of_ms: int, place: PageLinks) -> str:
    """Page of a pipeline that cannot be read or scheduled, with the reason."""
    return _page("problem.html.jinja", as_of_ms, place, row=row, home=place.home)


def pipeline_page(facts: Pipeline, place: PageLinks, problem: str | None = None) -> str:
    """Page of one pipeline. `problem` is a problem with `place.since`."""
    plots = [(trend, plot(trend, facts.as_of_ms)) for trend in facts.trends]
    engine_plots = [(trend, shape) for trend, shape in plots if trend.is_of_engine]
    sections = [("decision", "Decide"), *SECTIONS] if facts.waiting else SECTIONS
    step_ms = facts.gap_step_ms
    by_events = bool(facts.hours) and facts.hours[0].events is not None
    legend = [("", "events in results"), ("flight", "in flight")] if by_events else [("", "results")]
    legend += [("late", "late, in no window"), *([] if step_ms is None else [("gap", "gap")])]
    return _page(
        "pipeline.html.jinja",
        facts.as_of_ms,
        place,
        page=facts,
        home=place.home,
        links=place,
        sections=sections,
        problem=problem,
        run_command=to_paste("run", facts.definition.file),
        changes_command=to_paste("changes", facts.definition.file, "--since", "TIME_OR_BATCH"),
        file_command=to_paste("set-aside", facts.definition.file, "FILE", *WHY),
        shown_change=facts.changes[0].title if place.since and not problem else "a day ago",
        plots=[pair for pair in plots if pair not in engine_plots],
        engine_plots=engine_plots,
        by_day=[*headline_by_day(facts.days, facts.as_of_ms)],
        hours_drawn=HOURS,
        by_hour=[*headline_by_hour(facts.days, facts.as_of_ms)],
        days=days(facts.hours),
        legend=legend,
        top_hour=top_of(facts.hours),
        script=_markup("plots.js"),
        gaps=None if step_ms is None else gaps(facts.hours, step_ms),
        refused_words=REFUSED,
    )


def results_page(name: str, search: SearchResult, as_of_ms: int, place: PageLinks) -> str:
    """Page that searches results by key and time."""
    return _page(
        "results.html.jinja", as_of_ms, place, name=name, home=place.home, search=search, explain=place.explain
    )


def explain_page(name: str, search: ExplainSearch, as_of_ms: int, place: PageLinks) -> str:
    """Page with the events, versions and causes of a result."""
    return _page(
        "explain.html.jinja", as_of_ms, place, name=name, home=place.home, results=place.results, search=search
    )


def set_aside_page(name: str, form: SetAsideForm, as_of_ms: int, place: PageLinks) -> str:
    """Page with the form that sets a file aside or takes it back, and the files set aside now."""
    return _page("set_aside.html.jinja", as_of_ms, place, name=name, home=place.home, form=form)


def rerun_page(name: str, form: RerunForm, as_of_ms: int, place: PageLinks) -> str:
    """Page with the form that starts a rerun."""
    return _page("rerun.html.jinja", as_of_ms, place, name=name, home=place.home, dags=place.dags, form=form)


def policy() -> str:
    """Content-Security-Policy of every page: only our styles and scripts; forms lead back to the same site."""
    style, *scripts = (
        f"'sha256-{base64.b64encode(hashlib.sha256(_text(name).encode()).digest()).decode()}'"
        for name in ("page.css", *SCRIPTS)
    )
    return (
        f"default-src 'none'; style-src {style}; script-src {' '.join(scripts)}; img-src data:;"
        " form-action 'self'; base-uri 'none'"
    )


def _page(template: str, as_of_ms: int, place: PageLinks, **values: Any) -> str:
    return (
        _environment()
        .get_template(template)
        .render(
            css=_markup("page.css"),
            policy=policy() if place.is_static else None,
            is_static=place.is_static,
            as_of_ms=as_of_ms,
            **values,
        )
    )


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        bytecode_cache=TemplateCache(),
    )
    environment.filters |= {
        **CHANGES,
        **TIMES,
        "amount": amount,
        "difference": difference,
        "final_words": final_words,
        "iso": iso_instant,
        "sparkline": sparkline,
        "count": lambda value: "–" if value is None else f"{value:,}",
        "counted": counted,
        "share": lambda value: "–" if value is None else measure(value, Measure.SHARE),
        "duration": format_duration,
        "how_late": how_late,
        "measure": lambda value, kind: measure(value, Measure(kind)),
        "strip_words": strip_words,
        "trend_words": trend_words,
        "check_strip": check_strip,
        "check_plot": check_plot,
        "check_words": check_words,
        "number": number_in_words,
        "is_numeric": is_numeric,
        "anchor": anchor_of,
        "in_path": partial(quote, safe=""),
        "with_code": with_code,
    }
    return environment


@lru_cache(maxsize=3)
def _text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def with_code(text: str) -> Any:
    """Text with its parts between backticks as code, so that commands can be selected. Escapes the text.

    >>> str(with_code("do `a < b`, then `c`; a `d"))
    'do <code>a &lt; b</code>, then <code>c</code>; a `d'
    """
    from markupsafe import Markup, escape

    return Markup("").join(
        Markup("<code>{}</code>").format(part[1:-1]) if CODE.fullmatch(part) else escape(part)
        for part in CODE.split(text)
    )


def _markup(name: str) -> Any:
    """Our style sheet or a script as safe markup: it contains no user data."""
    from markupsafe import Markup

    return Markup(_text(name))
