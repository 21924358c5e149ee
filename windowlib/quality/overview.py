"""The overview: one self-contained HTML page with the trends of the newest batches and the outcome of their checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2

from windowlib.model.watermark import MAX_WATERMARK, MIN_WATERMARK
from windowlib.quality.figures import Figures, windows_fired
from windowlib.quality.validations import Validated

TEMPLATE = Path(__file__).with_name("overview.html.jinja")
CHART_WIDTH, CHART_HEIGHT = 440, 90


@dataclass(frozen=True, slots=True)
class Bar:
    """One batch in a chart: its place in pixels, what to say about it, and the worst its checks found."""

    x: float
    width: float
    height: float
    title: str
    severity: str


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure over the batches, oldest on the left; `highest` labels the top."""

    title: str
    highest: str
    bars: Sequence[Bar]


def overview_page(name: str, batches: Sequence[Validated], pages: Mapping[tuple[int, str], str], index: str) -> str:
    """The page for a pipeline's batches (newest first); `pages` are links by batch and suite, `index` is one to all."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"count": _count, "time": _time, "figure": lambda value: f"{value:.4g}"}
    ordinary = [batch for batch in batches if not batch.is_rerun]
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        name=name,
        batches=batches,
        pages=pages,
        index=index,
        charts=[chart(title, value, text, ordinary) for title, value, text in TRENDS],
        worst=worst,
        width=CHART_WIDTH,
        height=CHART_HEIGHT,
    )


def chart(
    title: str,
    value: Callable[[Figures], float | None],
    text: Callable[[float], str],
    batches: Sequence[Validated],
) -> Chart:
    """A bar per batch (given newest first) where `value` gives a number; `text` writes a number."""
    oldest_first = list(reversed(batches))
    values = [value(batch.figures) for batch in oldest_first]
    highest = max((v for v in values if v is not None), default=0)
    step = CHART_WIDTH / max(len(values), 12)
    bars = [
        Bar(
            x=i * step,
            width=step * 0.8,
            height=CHART_HEIGHT * max(v, 0) / highest if highest > 0 else 0,
            title=f"batch {batch.batch_id}: {text(v)}",
            severity=worst(one for suite in batch.suites for one in suite["results"]),
        )
        for i, (batch, v) in enumerate(zip(oldest_first, values, strict=True))
        if v is not None
    ]
    return Chart(title, text(highest), bars)


def _late_share(figures: Figures) -> float | None:
    late, admitted = figures["rows_late"], figures["rows_admitted"]
    return late / admitted if admitted and late is not None else None


def _lag_ms(figures: Figures) -> float | None:
    """How far the watermark was behind the plan time; None before the first event and after the last."""
    plan_time, watermark = figures["plan_time_ms"], figures["watermark_out_ms"]
    if plan_time is None or watermark is None or watermark in (MIN_WATERMARK, MAX_WATERMARK):
        return None
    return plan_time - watermark


def worst(outcomes: Iterable[Mapping[str, Any]]) -> str:
    """`critical` or `warning`, the worse of what failed, or `met`."""
    failed = {outcome["expectation_config"]["severity"] for outcome in outcomes if not outcome["success"]}
    return "critical" if "critical" in failed else "warning" if failed else "met"


def _count(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{value:.2%}"


def _hours(milliseconds: float) -> str:
    """
    >>> _hours(5_400_000), _hours(108_000), _hours(200 * 86_400_000)
    ('1.5 h', '0.03 h', '200 d')
    """
    hours = milliseconds / 3_600_000
    return f"{hours / 24:,.0f} d" if hours >= 72 else f"{hours:.2g} h"


def _time(milliseconds: int | None) -> str:
    """
    >>> _time(0), _time(None), _time(-(2**63))
    ('1970-01-01 00:00:00', '–', '–')
    """
    if milliseconds is None or abs(milliseconds) >= 2**47:  # before the first event, or beyond the calendar
        return "–"
    return f"{datetime.fromtimestamp(milliseconds / 1000, tz=UTC):%Y-%m-%d %H:%M:%S}"


TRENDS = (
    ("Rows read", lambda figures: figures["rows_read"], _count),
    ("Windows fired", windows_fired, _count),
    ("Share of late events", _late_share, _percent),
    ("Watermark behind plan time", _lag_ms, _hours),
)
