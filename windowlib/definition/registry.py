"""Registry of windows, triggers and evictors: their names, parameters and texts.

To add a trigger (an evictor likewise; `docs/contributing/add-a-window.md` is the recipe for windows):

1. Write its class in `windowlib.model.triggers`: a frozen `Trigger` dataclass whose docstring states when it fires, and
   what it does with late elements. Do not subclass a built-in trigger: delegate to one, because `windowlib.model.spec`
   asks for classes. Each firing of a new trigger is a row of its own in `results`.
2. Add its entry to ``TRIGGERS`` below: its name, its class, its firing as text, and each parameter with its bounds and
   allowed values. Names of parameters and defaults come from the class.
3. Export the class in ``windowlib/__init__.py``: its import, and its name in ``__all__``.
4. Add its row to ``TRIGGER_TABLES`` in `docs.gallery.entries`, at its place in ``TRIGGERS``. Run
   ``python -m docs.gallery`` and ``python -m docs.reference``.
5. Add it to ``tests/support/strategies.py``, so that laws draw it, and test its boundaries in
   ``tests/model/test_boundaries.py``. The lists in ``test_window_mistakes.py``, ``test_definition_windows.py``,
   ``test_registry.py`` and ``test_gallery.py`` name all triggers.
6. Run ``pytest --engine sail tests/definition tests/model tests/docs``, and add a line to the changelog.

Other code reads the registry: TOML and its mistakes (`windowlib.definition.toml.windows`), Python
(`windowlib.definition.define`), scenarios (`windowlib.replay.scenarios`), `windowlib explain-plan`, Airflow's pages,
and the gallery.
"""

from __future__ import annotations

from windowlib.definition.kinds import (
    ANOTHER,
    Parameter,
    column,
    custom,
    duration,
    flag,
    kind,
    kinds,
    number,
    offset,
    step_of,
    whole_number,
)
from windowlib.definition.toml.fields import Column, Positive
from windowlib.model.aggregates import Count
from windowlib.model.assigners import (
    Assigner,
    Cumulating,
    DynamicSession,
    Global,
    Session,
    Sliding,
    Staggered,
    Tumbling,
)
from windowlib.model.evictors import CountEvictor, DeltaEvictor, TimeEvictor
from windowlib.model.spec import WindowSpec, sliding_count, tumbling_count
from windowlib.model.timed_triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    ProcessingTimeoutTrigger,
)
from windowlib.model.triggers import (
    CountTrigger,
    DeltaTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
)
from windowlib.plans.kinds.aligned import Aligned
from windowlib.plans.kinds.count_windows import CountWindows
from windowlib.plans.kinds.counts import Counts
from windowlib.plans.kinds.sessions import Sessions

AN_EXAMPLE = '{type = "count", n = 3}'

_INTERVAL = duration("interval between firings")
_ANOTHER = Parameter(ANOTHER, f"a trigger, as in {AN_EXAMPLE}", lambda trigger: trigger.words)

# The texts continue "fires".
TRIGGERS = kinds(
    kind("event_time", EventTimeTrigger, "when the watermark passes its end"),
    kind("processing_time", ProcessingTimeTrigger, "when the plan time of a run passes its end", by_clock=True),
    kind("count", CountTrigger, "at every {n} events", n=whole_number(1, "number of elements between firings")),
    kind(
        "continuous_event_time",
        ContinuousEventTimeTrigger,
        "every {interval} of event time, and at its end",
        interval_ms=_INTERVAL,
    ),
    kind(
        "continuous_processing_time",
        ContinuousProcessingTimeTrigger,
        "every {interval} of processing time, and at its end",
        by_clock=True,
        interval_ms=_INTERVAL,
    ),
    kind(
        "delta",
        DeltaTrigger,
        "when {of} has {absolute} by more than {threshold} since it last fired",
        of=column("column whose change fires the window"),
        threshold=number("change that must be exceeded"),
        absolute=flag("a change in either direction counts", "risen", "moved"),
    ),
    kind("purging", PurgingTrigger, "{of}, and then forgets its contents", of=_ANOTHER),
    kind(
        "processing_timeout",
        ProcessingTimeoutTrigger,
        "{of}, or {timeout} after its {reset_on_element} event",
        by_clock=True,
        of=_ANOTHER,
        timeout_ms=duration("time until the window fires"),
        reset_on_element=flag("the timeout restarts at every element", "first", "newest"),
        clear_on_timeout=flag("a timeout clears the state of the trigger"),
    ),
    kind("never", NeverTrigger, "never"),
    kind("end_of_stream", EndOfStreamTrigger, "when the input is complete"),
    custom("when {class} says so", "python_class", "class", "parameters"),
)

_AFTER = flag("elements leave after the evaluation, not before it", "before", "after")

# The texts continue "of its events".
EVICTORS = kinds(
    kind(
        "count",
        CountEvictor,
        "the last {n} stay {after} each evaluation",
        n=whole_number(0, "number of elements that stay"),
        after=_AFTER,
    ),
    kind(
        "time",
        TimeEvictor,
        "those of the last {keep} stay {after} each evaluation",
        keep_ms=duration("greatest age of an element, counted from the newest"),
        after=_AFTER,
    ),
    kind(
        "delta",
        DeltaEvictor,
        "those stay {absolute} in {of} by less than {threshold} {after} each evaluation",
        of=column("column whose difference counts"),
        threshold=number("the difference at which an element leaves"),
        absolute=flag(
            "a difference in either direction counts", "that the last one exceeds", "that differ from the last one"
        ),
        after=_AFTER,
    ),
    custom("those stay that {class} keeps", "python_class", "class", "parameters"),
)


def _tumbling(size_ms: int, offset_ms: int = 0, stagger: bool = False) -> Assigner:
    plain = Tumbling(size_ms, offset_ms)
    return Staggered(plain) if stagger else plain


def _sliding(size_ms: int, slide_ms: int, offset_ms: int = 0, stagger: bool = False) -> Assigner:
    plain = Sliding(size_ms, slide_ms, offset_ms)
    return Staggered(plain) if stagger else plain


def _session(gap_ms: int | None = None, gap_column: str | None = None) -> Assigner:
    """Events of a key until ``gap`` passes without an event, or until the gap in its ``gap_column``."""
    return DynamicSession(gap_column or "") if gap_ms is None else Session(gap_ms)


def _tumbling_count(size: int) -> WindowSpec:
    """Every ``size`` events of a key, in order of arrival."""
    return tumbling_count(size, Count())


def _sliding_count(size: int, slide: int) -> WindowSpec:
    """The last ``size`` events of a key, in order of arrival, after every ``slide`` events."""
    return sliding_count(size, slide, Count())


_STAGGER = flag("each key's windows are shifted by a share of its own", yes=", shifted for each key")

# The texts describe the windows.
WINDOWS = kinds(
    kind(
        "tumbling",
        Tumbling,
        "tumbling, {size} long{stagger}",
        _tumbling,
        lambda window: Aligned(),
        size_ms=duration("the length of a window"),
        offset_ms=offset("size"),
        stagger=_STAGGER,
    ),
    kind(
        "sliding",
        Sliding,
        "sliding, {size} long, every {slide}{stagger}",
        _sliding,
        lambda window: Aligned(),
        size_ms=duration("the length of a window"),
        slide_ms=duration("time between starts of windows"),
        offset_ms=offset("slide"),
        stagger=_STAGGER,
    ),
    kind(
        "cumulating",
        Cumulating,
        "cumulating, up to {max_size} long, every {step}",
        plan=lambda window: Aligned(),
        max_size_ms=duration("the length after which windows start again"),
        step_ms=step_of("max_size", "time by which a window is longer than the one before"),
        offset_ms=offset("max_size"),
    ),
    kind(
        "session",
        Session,
        "sessions, ended by {gap}{gap_column}",
        _session,
        lambda window: Sessions(),
        gap_ms=duration("the silence that ends a session", "{} of silence", Positive | None),
        gap_column=column(
            "the column that holds each event's gap in ms, instead of gap",
            "a silence of `{}` milliseconds",
            Column | None,
        ),
    ),
    kind(
        "global",
        Global,
        "one window without end",
        end_of_stream=flag("without a trigger, fires when the input is complete"),
    ),
    kind(
        "tumbling_count",
        WindowSpec,
        "every {size} events",
        _tumbling_count,
        lambda window: Counts(CountWindows(*window.size_and_slide)),
        size=whole_number(1, "number of events in a window"),
    ),
    kind(
        "sliding_count",
        WindowSpec,
        "the last {size} events, at every {slide} of them",
        _sliding_count,
        lambda window: Counts(CountWindows(*window.size_and_slide)),
        size=whole_number(1, "number of events in a window"),
        slide=whole_number(1, "number of events between firings"),
    ),
    custom("windows of {assigner}", "assigner_class", "assigner", "assigner_parameters"),
)
