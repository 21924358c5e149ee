"""Random case: one or two definitions over one source, and the events of each batch."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from tests.support.clicks import MINUTE_MS, START_MS
from tests.world.random_pipelines.truth import AGGREGATES, Correction, Place, Row, Rules, Windows

HOUR_MS = 60 * MINUTE_MS
LATENESSES = (0, 0, 10, 45, 200)  # in minutes
DEFINITION = """
name = "{name}"
[source]
format = "parquet"
path = "incoming"
key = ["user"]
timestamp = "at_ms"
timestamp_unit = "ms"
min_file_age = "0s"
{event_id}
[watermark]
out_of_orderness = "{delay}m"
max_future_skew = "{skew}m"
{idle}
[window]
{window}
[storage]
state_partition = "{state_partition}"
[aggregates]
{aggregates}
"""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A definition: its text and its rules."""

    name: str
    text: str
    rules: Rules
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Happens:
    """A run at a time of its own: files that have come since the last, then perhaps a rerun; which engine does it."""

    files: tuple[tuple[Row, ...], ...]
    now_ms: int
    engine: str
    finish: bool = False
    rerun: Correction | None = None
    lateness_min: int | None = None  # what every definition allows from this run on; None: as before
    added: tuple[str, ...] = ()  # the columns that every definition gets before this run
    renamed: tuple[str, ...] = ()  # files that were read and lie in a folder of their own from this run on


@dataclass(frozen=True, slots=True)
class Case:
    """All of it."""

    seed: int
    definitions: tuple[Drawn, ...]
    runs: tuple[Happens, ...]


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a case."""

    batches: tuple[int, ...]  # one of them
    rows: int  # of a file, at most
    rerun: float  # after a batch, how likely
    group: float  # two definitions, how likely
    finish: float = 0.5  # the end of the input, a batch of its own, how likely


FULL, SHORT = Size((4,), 60, 0.4, 0.25), Size((2, 2, 3), 25, 0.4, 0.15)
BRIEF = Size((1, 2), 25, 0.3, 0.1, 0.25)  # a second each: a hundred in `make test`


def case(seed: int, size: Size = FULL) -> Case:
    """The case of a seed and a size, always the same."""
    chance = random.Random(f"case {seed}")
    delay, with_ids, skew = chance.choice((0, 5, 20)), chance.random() < 0.6, chance.choice((30, 300))
    idle = chance.choice((None, None, 40))
    names = ("one", "two") if chance.random() < size.group else ("one",)
    definitions = tuple(definition(chance, name, delay, with_ids, skew, idle) for name in names)
    runs = tuple(_runs(chance, size, [one.rules.windows for one in definitions]))
    repeated = _with_ids_repeated(random.Random(f"repeated {seed}"), Case(seed, definitions, runs))
    renamed = _with_files_renamed(random.Random(f"renamed {seed}"), repeated)
    return _with_columns_added(random.Random(f"added {seed}"), renamed)


def _with_ids_repeated(chance: random.Random, drawn: Case) -> Case:
    """The same case, in a third of the cases with repeated ids: a quarter of them repeat earlier rows of any file."""
    if chance.random() < 0.67:
        return drawn
    before, ids = list[str](), dict[Place, tuple[str | None, str | None]]()
    for row in (row for run in drawn.runs for file in run.files for row in file if row.id is not None):
        ids[row.place] = row.id, chance.choice(before) if before and chance.random() < 0.25 else row.id
        before.append(str(ids[row.place][1]))

    def repeated(rows: tuple[Row, ...]) -> tuple[Row, ...]:
        known = [(row, *ids.get(row.place, (None, None))) for row in rows]
        return tuple(row._replace(id=new) if row.id == old else row for row, old, new in known)

    runs = [replace(run, files=tuple(map(repeated, run.files))) for run in drawn.runs]
    reruns = [run.rerun and replace(run.rerun, repaired=repeated(run.rerun.repaired)) for run in runs]
    return replace(drawn, runs=tuple(replace(run, rerun=one) for run, one in zip(runs, reruns, strict=True)))


def _with_files_renamed(chance: random.Random, drawn: Case) -> Case:
    """The same case, in half of the cases with some files renamed before one of the runs."""
    if chance.random() < 0.5 or len(drawn.runs) == 1:
        return drawn
    number = chance.randrange(1, len(drawn.runs))
    before, later = drawn.runs[:number], [run.rerun for run in drawn.runs[number:] if run.rerun]
    read = {rows[0].place[0] for run in before for rows in run.files} - {run.rerun.lost for run in before if run.rerun}
    touched = {one.lost for one in later} | {row.place[0] for one in later for row in one.repaired}
    renamed = tuple(name for name in sorted(read - touched) if chance.random() < 0.7)
    runs = tuple(replace(run, renamed=renamed if run is drawn.runs[number] else ()) for run in drawn.runs)
    return replace(drawn, runs=runs)


def _with_columns_added(chance: random.Random, drawn: Case) -> Case:
    """The same case, in half of the cases with fewer columns at first; the others are added before some runs."""
    if chance.random() < 0.5 or len(drawn.runs) == 1:
        return drawn
    names = chance.sample([*AGGREGATES], len(AGGREGATES))
    first = chance.randrange(1, len(names))
    lines = "\n".join(f'{name} = "{AGGREGATES[name]}"' for name in names[:first])
    definitions = tuple(
        replace(one, text=f"{one.text.partition('[aggregates]')[0]}[aggregates]\n{lines}\n", columns=(*names[:first],))
        for one in drawn.definitions
    )
    when = {name: chance.randrange(1, len(drawn.runs)) for name in names[first:]}
    runs = tuple(
        replace(run, added=tuple(name for name in when if when[name] == number))
        for number, run in enumerate(drawn.runs)
    )
    return replace(drawn, definitions=definitions, runs=runs)


def definition(chance: random.Random, name: str, delay: int, with_ids: bool, skew: int, idle: int | None) -> Drawn:
    lateness = chance.choice(LATENESSES)
    match chance.choice(("session", "session", "gaps", "tumbling", "sliding", "holes", "counts")):
        case "session":
            gap = chance.choice((3, 8, 20))
            windows, text = Windows(gap_ms=gap * MINUTE_MS), f'type = "session"\ngap = "{gap}m"'
        case "gaps":
            windows, text = Windows(), 'type = "session"\ngap_column = "gap_ms"'
        case "tumbling":
            size, offset = chance.choice(((10, 0), (30, 7), (60, 0)))
            windows = Windows(None, size * MINUTE_MS, size * MINUTE_MS, offset * MINUTE_MS)
            text = f'type = "tumbling"\nsize = "{size}m"\noffset = "{offset}m"'
        case "counts":
            size, slide = chance.choice(((3, 3), (4, 2), (5, 3), (2, 5)))
            windows, text = Windows(counts=(size, slide)), f'type = "sliding_count"\nsize = {size}\nslide = {slide}'
        case kind:
            size, slide = chance.choice(((60, 15), (50, 20), (12, 12)) if kind == "sliding" else ((10, 25), (20, 30)))
            windows = Windows(None, size * MINUTE_MS, slide * MINUTE_MS)
            text = f'type = "sliding"\nsize = "{size}m"\nslide = "{slide}m"'
    rules = Rules(
        windows,
        delay * MINUTE_MS,
        lateness * MINUTE_MS,
        skew * MINUTE_MS,
        with_ids,
        None if idle is None else idle * MINUTE_MS,
    )
    definition = DEFINITION.format(
        name=name,
        event_id='event_id = "id"' if with_ids else "",
        delay=delay,
        skew=skew,
        idle="" if idle is None else f'idle_timeout = "{idle}m"',
        window=text if windows.counts else f'{text}\nallowed_lateness = "{lateness}m"',
        state_partition=chance.choice(("10m", "1h", "1d")),
        aggregates="\n".join(f'{name} = "{sql}"' for name, sql in AGGREGATES.items()),
    )
    return Drawn(name, definition, rules, tuple(AGGREGATES))


def _runs(chance: random.Random, size: Size, windows: list[Windows]) -> list[Happens]:
    runs, known, batches = list[Happens](), list[str](), chance.choice(size.batches)
    stretch_min = chance.choice((60, 150))
    lying: dict[int, tuple[Row, ...]] = {}  # the files, by number, as they are now
    number, gap = 0, False
    for batch in range(1, batches + 1):
        from_ms = START_MS + batch * stretch_min * MINUTE_MS
        files = []
        for _ in range(chance.choice((0, 1, 1, 1, 2)) if batch > 1 else 1):
            number += 1
            lying[number] = tuple(rows_of_file(chance, number, from_ms, stretch_min, known, size.rows))
            files.append(lying[number])
        finish = batch == batches and chance.random() < size.finish
        now_ms = from_ms + stretch_min * MINUTE_MS + chance.choice((0, 7, 90)) * MINUTE_MS
        rerun = None
        if batch > 1 and chance.random() < size.rerun:
            start_ms = START_MS + chance.randrange((batch + 1) * stretch_min) * MINUTE_MS
            end_ms, late_only = start_ms + chance.randrange(1, 200) * MINUTE_MS, chance.random() < 0.4 and not gap
            key = chance.choice((None, "u0")) if late_only else None
            rerun = Correction(start_ms, end_ms, late_only, key, gap=gap)
            if not late_only and chance.random() < 0.5 and not any(one.counts for one in windows):
                rerun = _of_a_file(
                    chance, lying, rerun, moves=all(one.slide_ms <= (one.size_ms or 0) for one in windows)
                )
                gap = rerun.gap
        lateness = chance.choice(LATENESSES) if batch > 1 and chance.random() < 0.4 else None
        runs.append(Happens(tuple(files), now_ms, chance.choice(("sail", "spark")), finish, rerun, lateness))
    return runs


def _of_a_file(
    chance: random.Random, lying: dict[int, tuple[Row, ...]], asked: Correction, *, moves: bool
) -> Correction:
    """Rerun of all times of a rewritten or lost file, and of the requested range. Files with times far ahead are left
    out, because a rerun refuses them.
    """
    fit = [number for number, rows in lying.items() if not any(row.ahead for row in rows)]
    if not fit:
        return asked
    number = chance.choice(fit)
    old = lying[number]
    lost = chance.random() < 0.3
    new = () if lost else tuple(_repaired(chance, row, moves=moves) for row in old)
    times = [row.at_ms for row in (*old, *new) if row.at_ms is not None]
    from_ms, to_ms = min([asked.from_ms, *times]), max([asked.to_ms, *(at_ms + 1 for at_ms in times)])
    lying[number] = new
    if lost:
        del lying[number]
    return replace(
        asked, from_ms=from_ms, to_ms=to_ms, repaired=new, lost=old[0].place[0] if lost else None, gap=asked.gap or lost
    )


def _repaired(chance: random.Random, row: Row, *, moves: bool) -> Row:
    odd = chance.random()
    if odd < 0.3:
        return row._replace(value=chance.choice((None, chance.randrange(1000))))
    if odd < 0.4 and moves and row.at_ms is not None:
        return row._replace(at_ms=row.at_ms + chance.randrange(-30, 30) * MINUTE_MS)
    if odd > 0.9 and row.id is not None:
        return row._replace(id=chance.choice((None, f"{row.id} again")))
    return row


def rows_of_file(
    chance: random.Random, number: int, from_ms: int, stretch_min: int, known: list[str], most: int
) -> list[Row]:
    """The rows of a file, most in so many minutes; ids of `known` may come again, new ones are added."""
    rows = []
    users = chance.choice((1, 3, 7))
    for row in range(chance.randint(1, most)):
        back = chance.choices((0, chance.randrange(90), chance.randrange(500)), (85, 9, 6))[0]
        at_ms = from_ms + (chance.randrange(stretch_min) - back) * MINUTE_MS + chance.choice((0, 0, 1, -1))
        odd = chance.random()
        if odd < 0.01:
            at_ms += chance.choice((2, 9)) * HOUR_MS
        identity = f"{number}-{row}" if odd > 0.04 or not known else chance.choice(known)
        known.append(identity)
        rows.append(
            Row(
                (f"{number:03}.parquet", row),
                (number, row),
                None if odd > 0.98 else identity,
                None if 0.05 < odd < 0.06 else f"u{chance.randrange(users)}",
                None if 0.06 < odd < 0.07 else at_ms,
                None if 0.07 < odd < 0.12 else chance.randrange(1000),
                chance.choice((None, 0)) if 0.12 < odd < 0.13 else chance.choice((2, 5, 9)) * MINUTE_MS,
                odd < 0.01,
            )
        )
    return rows
