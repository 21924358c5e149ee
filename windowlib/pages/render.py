"""Facts as HTML. Every value is escaped, styles are in the page, nothing is loaded, and no script runs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import jinja2

from windowlib.definition.instants import instant
from windowlib.definition.plurals import counted
from windowlib.definition.toml.durations import LONGEST_MS, UNITS, format_duration
from windowlib.inspection.late.events import how_late
from windowlib.model.rerun import TimeRange
from windowlib.pages.balance import REFUSED
from windowlib.pages.compiled import TemplateCache
from windowlib.pages.history import CheckHistory, anchor_of
from windowlib.pages.overview import CheckMark, Overview
from windowlib.pages.pipeline import Pipeline
from windowlib.pages.plots import check_plot, days, gaps, highest_hour, plot
from windowlib.pages.rows import TextRows
from windowlib.pages.trends import Measure, Trend
from windowlib.quality.check import number_in_words

TEMPLATES = Path(__file__).with_name("templates")
SECTIONS = (
    ("changes", "Since yesterday"),
    ("hours", "By event hour"),
    ("trends", "Trends"),
    ("checks", "Checks"),
    ("runs", "Runs"),
    ("quarantine", "Quarantine"),
    ("late", "Late events"),
    ("flight", "In flight"),
    ("results", "Results"),
    ("decided", "Decisions"),
)
CHECKS_MARKED = 20


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Links from a page to other pages, relative to where the page is shown. A link is None if its target does not
    exist.

    `airflow` links to Airflow's own pages, `dags` to the folder of its DAG pages, `dag` to the page of the pipeline's
    DAG. `is_static` is True if the pages are files. Such pages do not refresh, and they contain their
    Content-Security-Policy.
    """

    pipeline: Callable[[str], str]
    home: str | None
    results: str | None = None
    airflow: str | None = None
    dag: str | None = None
    dags: str | None = None
    is_static: bool = True


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Search input as typed, and the rows that match, or a `problem` with the input.

    `key` holds a string for each column that can be searched.
    """

    key: Mapping[str, str]
    since: str
    until: str
    rows: TextRows
    problem: str | None = None


def home_page(
    rows: Sequence[Overview], as_of_ms: int, place: PageLinks, next_runs: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Home page with a row for each pipeline. `next_runs` has the time of the next run by name, if it is known."""
    return _page(
        "home.html.jinja", as_of_ms, place, rows=rows, link=place.pipeline, airflow=place.airflow, next_runs=next_runs
    )


def pipeline_page(facts: Pipeline, place: PageLinks) -> str:
    """Page of one pipeline."""
    plots = [(trend, plot(trend, lambda value, trend=trend: measure(value, trend.measure))) for trend in facts.trends]  # type: ignore[misc]
    sections = [("decision", "Decide"), *SECTIONS] if facts.waiting else SECTIONS
    step_ms = facts.gap_step_ms
    by_events = bool(facts.hours) and facts.hours[0].events is not None
    legend = [("events", "events in results"), ("flight", "in flight")] if by_events else [("results", "results")]
    return _page(
        "pipeline.html.jinja",
        facts.as_of_ms,
        place,
        page=facts,
        home=place.home,
        dag=place.dag,
        dags=place.dags,
        sections=sections,
        results_link=place.results,
        plots=plots,
        days=days(facts.hours),
        legend=[*legend, ("late", "late, in no window"), *([] if step_ms is None else [("gap", "gap")])],
        highest_hour=highest_hour(facts.hours),
        gaps=None if step_ms is None else gaps(facts.hours, step_ms),
        refused_words=REFUSED,
    )


def results_page(name: str, search: SearchResult, as_of_ms: int, place: PageLinks) -> str:
    """Page that searches results by key and time."""
    return _page("results.html.jinja", as_of_ms, place, name=name, home=place.home, search=search)


def policy() -> str:
    """Content-Security-Policy of every page: only our styles; forms lead back to the same site."""
    digest = base64.b64encode(hashlib.sha256(_css().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'self'; base-uri 'none'"


def _page(template: str, as_of_ms: int, place: PageLinks, **values: Any) -> str:
    return (
        _environment()
        .get_template(template)
        .render(
            css=_styles(),
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
        "at": instant,
        "minute": minute,
        "range": range_words,
        "ago": ago,
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
        "anchor": anchor_of,
        "in_path": partial(quote, safe=""),
    }
    return environment


@lru_cache(maxsize=1)
def _css() -> str:
    return (TEMPLATES / "page.css").read_text(encoding="utf-8")


def _styles() -> Any:
    """Style sheet as safe markup: it is our own and contains no user data."""
    from markupsafe import Markup

    return Markup(_css())


# -- words ------------------------------------------------------------------------------------------------------------


def rough(duration_ms: float) -> str:
    """A duration in its two largest units.

    >>> rough(90_061_000), rough(2_699_000), rough(1_234), rough(59_999), rough(0), rough(2**62)
    ('1d 1h', '44m 59s', '1.2 s', '59 s', '0 s', 'without end')
    """
    whole_ms = int(duration_ms)
    if whole_ms > LONGEST_MS:
        return "without end"
    if whole_ms < UNITS["m"]:
        seconds = whole_ms / 1000
        return f"{seconds:.1f} s" if 0 < seconds < 10 else f"{int(seconds)} s"
    largest = next(name for name in "dhm" if whole_ms >= UNITS[name])
    second_ms = UNITS[{"d": "h", "h": "m", "m": "s"}[largest]]
    return format_duration(whole_ms // second_ms * second_ms)


def ago(time_ms: int | None, now_ms: int) -> str:
    """Time since an event, in words.

    >>> ago(0, 7_200_000), ago(5_000, 5_001), ago(None, 0), ago(60_000, 0)
    ('2h ago', 'just now', 'never', 'in 1m')
    """
    if time_ms is None:
        return "never"
    passed_ms = now_ms - time_ms
    if abs(passed_ms) < UNITS["s"]:
        return "just now"
    return f"{rough(passed_ms)} ago" if passed_ms > 0 else f"in {rough(-passed_ms)}"


def minute(time_ms: int | None) -> str:
    """A time to the minute.

    >>> minute(61_000), minute(None), minute(2**63 - 1)
    ('1970-01-01 00:01 UTC', 'none yet', 'the end of time')
    """
    shown = instant(time_ms)
    return f"{shown[: len('1970-01-01 00:00')]} UTC" if shown.endswith(" UTC") else shown


def range_words(span: TimeRange) -> str:
    """A range to the minute.

    >>> range_words(TimeRange(0, 7_260_000))
    '1970-01-01 00:00 to 1970-01-01 02:01 UTC'
    """
    return f"{minute(span.from_ms).removesuffix(' UTC')} to {minute(span.to_ms)}"


def measure(value: float, kind: Measure) -> str:
    """A value with its unit.

    >>> measure(0.0123, Measure.SHARE), measure(1234.0, Measure.COUNT), measure(90_000, Measure.DURATION)
    ('1.2 %', '1,234', '1m 30s')
    >>> measure(1234.5, Measure.RATE), measure(0.00001, Measure.SHARE), measure(7.5, Measure.COUNT)
    ('1,234 a second', '< 0.1 %', '7.5')
    """
    match kind:
        case Measure.SHARE:
            return "< 0.1 %" if 0 < value < 0.0005 else f"{value:.1%}".replace("%", " %")
        case Measure.DURATION:
            return rough(value)
        case Measure.RATE:
            return f"{value:,.0f} a second"
    return f"{value:,.0f}" if value >= 100 or float(value).is_integer() else f"{value:.2g}"


def strip_words(marks: Sequence[CheckMark]) -> str:
    """Text alternative of a strip of checks, for screen readers.

    >>> strip_words([CheckMark(1, "met", 0), CheckMark(2, "warning", 2)])
    'checks of 2 batches: 1 met, 1 with warnings, 0 refused; the newest with warnings'
    """
    words = {"met": "met", "warning": "with warnings", "critical": "refused"}
    counts = {worst: sum(check_mark.worst == worst for check_mark in marks) for worst in words}
    parts = ", ".join(f"{count} {words[worst]}" for worst, count in counts.items())
    return f"checks of {counted(len(marks), 'batch')}: {parts}; the newest {words[marks[-1].worst]}"


def trend_words(trend: Trend) -> str:
    """Text alternative of a trend, for screen readers."""
    highest = max(trend.points, key=lambda point: point.value)
    band = f", usual {' to '.join(measure(bound, trend.measure) for bound in trend.usual)}" if trend.usual else ""
    return (
        f"{trend.title} over {len(trend.points)} batches: newest {measure(trend.newest.value, trend.measure)}{band},"
        f" highest {measure(highest.value, trend.measure)} (batch {highest.batch_id})"
    )


def check_words(history: CheckHistory) -> str:
    """Text alternative of a check's values, for screen readers."""
    newest, failed = history.newest, len(history.failures)
    return (
        f"{history.sentence} Over {counted(len(history.outcomes), 'batch')}: {failed} failed; the newest observed"
        f" {newest.observed}, expected {newest.expected}"
    )


def check_strip(history: CheckHistory) -> list[CheckMark]:
    """Marks for the newest outcomes of one check."""
    return [
        CheckMark.of(outcome.batch_id, [] if outcome.result.success else [outcome.result.severity])
        for outcome in history.outcomes[-CHECKS_MARKED:]
    ]
