"""What was measured, as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.turns import Measured

HEAD = "| batch | side | median s | min–max s | ratio | s per million events |"
BASE = "ours"


@dataclass(frozen=True, slots=True)
class Line:
    """The seconds of one side for batches of one label."""

    batch: str
    side: str
    median: float
    least: float
    most: float
    ratio: float | None
    per_million: float | None


def lines(measured: Measured) -> Iterator[Line]:
    """A line for each label and side; the ratio is to our own median, where we took part."""
    for label, sides in measured.seconds.items():
        base = statistics.median(sides[BASE]) if sides.get(BASE) else None
        events = measured.events[label]
        for side, times in sides.items():
            if times:
                median = statistics.median(times)
                yield Line(
                    batch=", ".join(name for name in (measured.case, label) if name) or f"{events:,} events",
                    side=side,
                    median=median,
                    least=min(times),
                    most=max(times),
                    ratio=median / base if base else None,
                    per_million=median / events * 1e6 if events else None,
                )


def table(of: Sequence[Measured]) -> str:
    """The Markdown table of a workload.

    >>> measured = Measured("sessions", "", (), {"": 500_000}, {"": {"ours": [1.0, 2.0, 2.0], "streaming": [5.0]}}, {})
    >>> print(table([measured]))
    | batch | side | median s | min–max s | ratio | s per million events |
    |---|---|---|---|---|---|
    | 500,000 events | ours | 2.00 | 1.00–2.00 | 1.0 | 4.00 |
    | 500,000 events | streaming | 5.00 | 5.00–5.00 | 2.5 | 10.00 |
    """
    rows = [HEAD, "|---|---|---|---|---|---|"]
    for measured in of:
        for line in lines(measured):
            numbers = [f"{line.median:.2f}", f"{line.least:.2f}–{line.most:.2f}"]
            numbers.append(
                "" if line.ratio is None else f"{line.ratio:.1f}" if line.ratio >= 1 else f"{line.ratio:.2f}"
            )
            numbers.append("" if line.per_million is None else f"{line.per_million:.2f}")
            rows.append(f"| {line.batch} | {line.side} | {' | '.join(numbers)} |")
    return "\n".join(rows)


def below(of: Sequence[Measured]) -> Iterator[str]:
    """What must be known next to the table, a sentence each."""
    for measured in of:
        case = f"{measured.case}: " if measured.case else ""
        first = ", ".join(f"{side} {seconds:.1f} s" for side, seconds in measured.first.items())
        yield f"{case}First file, not in the table: {first}."
        for agreement in measured.agreements:
            yield (
                f"{case}{agreement.side} publishes what {agreement.other} does: {agreement.rows:,} results of"
                f" {agreement.query}, 0 differences ({agreement.scope})."
            )
        for side, mebibytes in measured.memory_mib.items():
            yield f"{case}The largest Python worker of {side} took {mebibytes:,.0f} MiB."
        for side, why in measured.left_out.items():
            yield f"{case}Without {side}: {why}."
        for side, why in measured.failed.items():
            yield f"{case}**{side} failed**: {why}"
        for difference in measured.differences:
            yield f"{case}**{difference}**"


def report(measured: Sequence[Measured], where: str) -> str:
    """All workloads, in the order in which they were measured."""
    parts = [f"# Benchmark\n\n{where}."]
    for name in dict.fromkeys(one.workload for one in measured):
        of = [one for one in measured if one.workload == name]
        parts.append(
            f"## {name}\n\n![{name}]({name}.svg)\n\n{table(of)}\n\n" + "\n".join(f"* {line}" for line in below(of))
        )
    return "\n\n".join(parts) + "\n"
