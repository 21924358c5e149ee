"""Meaning of windows, in pure Python and the standard library.

The reference operator in `operator.py` is the specification that all plans follow.

Parts of a specification:

    spec.py             specification of windows, validated as a whole
    windows.py          half-open windows of event time
    assigners.py        assigners: from an element to its windows
    calendar.py         calendars of a time zone: days, months, hours
    geometry.py         what other code may ask about the windows of an assigner
    triggers.py         triggers: the times at which a window fires and is purged
    timed_triggers.py   triggers by interval or timeout
    evictors.py         evictors: elements hidden from an evaluation
    aggregates.py       aggregates: folds of values that can be merged
    functions.py        process functions of the user

Operator:

    operator.py         the reference window operator
    keyed.py            the operator for one key in one run
    merging.py          merging window set of a key, with its state windows
    contents.py         contents of a state window
    state.py            state of a key and of the operator, also as rows
    elements.py         inputs and outputs of the operator
    counting.py         faster equivalent for count triggers over aggregates
    batch.py            batch rule for specifications that ignore element order

Time:

    times.py            times of other units in milliseconds
    time_zones/         time zones, and edges of local time
    watermark.py        rule of the watermark and of idle sources
    lateness.py         formulas of lateness and cleanup
    slices.py           aligned slices of windows
    rerun.py            windows and events that a rerun of a time range needs

Errors:

    errors.py           tree of all errors
"""
