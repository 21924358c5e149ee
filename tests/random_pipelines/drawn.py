"""What a seed decides: one or two definitions over one source, and what happens to them batch after batch."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.clicks import MINUTE_MS, START_MS
from tests.random_pipelines.truth import AGGREGATES, Row, Rules, Windows

HOUR_MS = 60 * MINUTE_MS
BATCHES = 4
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
allowed_lateness = "{lateness}m"
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


@dataclass(frozen=True, slots=True)
class Happens:
    """A run at a time of its own: files that have come since the last, then perhaps a rerun; which engine does it."""

    files: tuple[tuple[Row, ...], ...]
    now_ms: int
    engine: str
    finish: bool = False
    rerun: tuple[int, int, bool] | None = None  # from, to, of late events only
    lateness_min: int | None = None  # what every definition allows from this run on; None: as before


@dataclass(frozen=True, slots=True)
class Case:
    """All of it."""

    seed: int
    definitions: tuple[Drawn, ...]
    runs: tuple[Happens, ...]


def case(seed: int) -> Case:
    """The case of a seed, always the same."""
    chance = random.Random(f"case {seed}")
    delay, with_ids, skew = chance.choice((0, 5, 20)), chance.random() < 0.6, chance.choice((30, 300))
    idle = chance.choice((None, None, 40))
    names = ("one", "two") if chance.random() < 0.25 else ("one",)
    definitions = tuple(_definition(chance, name, delay, with_ids, skew, idle) for name in names)
    return Case(seed, definitions, tuple(_runs(chance)))


def _definition(chance: random.Random, name: str, delay: int, with_ids: bool, skew: int, idle: int | None) -> Drawn:
    lateness = chance.choice(LATENESSES)
    match chance.choice(("session", "session", "gaps", "tumbling", "sliding", "holes")):
        case "session":
            gap = chance.choice((3, 8, 20))
            windows, text = Windows(gap_ms=gap * MINUTE_MS), f'type = "session"\ngap = "{gap}m"'
        case "gaps":
            windows, text = Windows(), 'type = "session"\ngap_column = "gap_ms"'
        case "tumbling":
            size, offset = chance.choice(((10, 0), (30, 7), (60, 0)))
            windows = Windows(None, size * MINUTE_MS, size * MINUTE_MS, offset * MINUTE_MS)
            text = f'type = "tumbling"\nsize = "{size}m"\noffset = "{offset}m"'
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
        window=text,
        lateness=lateness,
        state_partition=chance.choice(("10m", "1h", "1d")),
        aggregates="\n".join(f'{name} = "{sql}"' for name, sql in AGGREGATES.items()),
    )
    return Drawn(name, definition, rules)


def _runs(chance: random.Random) -> list[Happens]:
    runs, number, known = [], 0, list[str]()
    stretch_min = chance.choice((60, 150))
    for batch in range(1, BATCHES + 1):
        from_ms = START_MS + batch * stretch_min * MINUTE_MS
        files = []
        for _ in range(chance.choice((0, 1, 1, 1, 2)) if batch > 1 else 1):
            number += 1
            files.append(tuple(_file(chance, number, from_ms, stretch_min, known)))
        finish = batch == BATCHES and chance.random() < 0.5
        now_ms = from_ms + stretch_min * MINUTE_MS + chance.choice((0, 7, 90)) * MINUTE_MS
        rerun = None
        if batch > 1 and chance.random() < 0.4:
            start_ms = START_MS + chance.randrange((batch + 1) * stretch_min) * MINUTE_MS
            rerun = start_ms, start_ms + chance.randrange(1, 200) * MINUTE_MS, chance.random() < 0.4
        lateness = chance.choice(LATENESSES) if batch > 1 and chance.random() < 0.4 else None
        runs.append(Happens(tuple(files), now_ms, chance.choice(("sail", "spark")), finish, rerun, lateness))
    return runs


def _file(chance: random.Random, number: int, from_ms: int, stretch_min: int, known: list[str]) -> list[Row]:
    rows = []
    users = chance.choice((1, 3, 7))
    for row in range(chance.randint(1, 60)):
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
            )
        )
    return rows
