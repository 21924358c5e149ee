"""The measurement of a case: files one by one, and for each file the sides one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.agreement import Agreement, Disagreement, agree
from benchmarks.memory import largest_worker
from benchmarks.query import definition
from benchmarks.sides.registry import SIDES
from benchmarks.sides.side import FINISH, STEP, Piece, Side, Task
from benchmarks.worker import SideFailed, Start, worker
from benchmarks.workload import Arrival, Case, Workload

if TYPE_CHECKING:
    from windowlib.runs.run import Say


@dataclass(frozen=True, slots=True)
class Measured:
    """A case's seconds by label of its batches and by side, the first (cold) batch of each side, and who agreed.

    A side that failed has no seconds; `failed` says where and why. `differences` says whose results differ.
    """

    workload: str
    case: str
    queries: tuple[str, ...]
    events: dict[str, int]
    seconds: dict[str, dict[str, list[float]]]
    first: dict[str, float]
    agreements: list[Agreement] = field(default_factory=list)
    memory_mib: dict[str, float] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)


def measure(
    workload: Workload, case: Case, names: Sequence[str], folder: Path, say: Say, start: Start = worker
) -> Measured:
    """Every side over the same batches, in turns; the others go on without a side that fails."""
    left_out = {name: why for name in names if (why := refusal(workload, case, SIDES[name]))}
    sides = [SIDES[name] for name in names if name not in left_out]
    labels = {arrival.label: arrival.events for arrival in case.arrivals if arrival.timed}
    seconds: dict[str, dict[str, list[float]]] = {label: {side.name: [] for side in sides} for label in labels}
    queries = tuple(query.name for query in case.queries)
    found = Measured(workload.name, case.name, queries, labels, seconds, {}, left_out=left_out)
    turns = _Turns(case, sides, {side.name: _task(folder, side, case) for side in sides}, found, say)
    with ExitStack() as stack:
        # A process and a session each: what one side leaves behind (memory, threads, compiled code) is not the other's.
        for side in [*turns.sides]:
            with turns.going_on(side, "before the first file"):
                turns.calls[side.name] = stack.enter_context(start(side.name, turns.tasks[side.name], side.new_process))
        for number, arrival in enumerate(case.arrivals):
            file, place = _arrive(folder, number, arrival), _place(workload, case, number, arrival)
            for side in [*turns.sides] if number % 2 else [*reversed(turns.sides)]:
                turns.take(side, arrival, file, place)
        for side in [*turns.sides] if case.finish else []:
            with turns.going_on(side, "after the last file"):
                turns.calls[side.name](FINISH)
    try:
        found.agreements.extend(agree(case, {side: turns.tasks[side.name] for side in turns.sides}, folder))
    except Disagreement as difference:
        say(str(difference))
        found.differences.append(str(difference))
    return found


@dataclass(frozen=True, slots=True)
class _Turns:
    """The sides at work on a case: those that have not failed, how each is called, and what was `found` so far."""

    case: Case
    sides: list[Side]
    tasks: dict[str, Task]
    found: Measured
    say: Say
    calls: dict[str, Callable[[Piece], float]] = field(default_factory=dict)

    @contextmanager
    def going_on(self, side: Side, place: str) -> Iterator[None]:
        """The others go on without a side that fails in the block, and it has no figures."""
        try:
            yield
        except SideFailed as error:
            self.say(f"{place}: {error}")
            self.found.failed[side.name] = f"{error.why} ({place})"
            self.sides.remove(side)
            for times in self.found.seconds.values():
                times.pop(side.name)
            for figures in (self.found.first, self.found.memory_mib):
                figures.pop(side.name, None)

    def take(self, side: Side, arrival: Arrival, file: Path | None, place: str) -> None:
        """One batch of one side, timed."""
        found = self.found
        if file:
            side.deliver(file, self.tasks[side.name])
        with self.going_on(side, place):
            with largest_worker() if self.case.memory else nullcontext([0]) as most:
                taken = self.calls[side.name](STEP)
            if self.case.memory:
                found.memory_mib[side.name] = max(most[0] / 2**20, found.memory_mib.get(side.name, 0))
            found.first.setdefault(side.name, taken)
            if arrival.timed:
                found.seconds[arrival.label][side.name].append(taken)
            self.say(f"{place}: {side.name} {taken:.2f} s")


def refusal(workload: Workload, case: Case, side: Side) -> str | None:
    """Why a side cannot do a case."""
    reasons = [workload.without.get(side.name), *(side.refuses(query) for query in case.queries)]
    return next((why for why in reasons if why), None)


def _task(folder: Path, side: Side, case: Case) -> Task:
    task = Task(folder / side.name, case.queries)
    task.incoming.mkdir(parents=True)
    for query in case.queries:
        (task.folder / f"{query.name}.toml").write_text(definition(query))
    return task


def _arrive(folder: Path, number: int, arrival: Arrival) -> Path | None:
    if not arrival.events:
        return None
    files = folder / "files"
    files.mkdir(exist_ok=True)
    file = files / f"{number:04}.parquet"
    arrival.source.write(file, number, arrival.events, arrival.start_ms, arrival.span_ms)
    return file


def _place(workload: Workload, case: Case, number: int, arrival: Arrival) -> str:
    names = " ".join(name for name in (workload.name, case.name) if name)
    label = f" ({arrival.label})" if arrival.label else ""
    untimed = "" if arrival.timed else ", not timed"
    return f"{names}, file {number + 1} of {len(case.arrivals)}{label}{untimed}"
