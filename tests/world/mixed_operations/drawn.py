"""Random definition, as a text that its author edits, and random rows of files.

The values of rows are all different, and `which` of a result lists those in it: so each row can be found.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from tests.support.clicks import START_MS
from tests.world.random_pipelines import drawn
from tests.world.random_pipelines.truth import Row, Rules, Windows
from windowlib.definition.instants import iso_instant

DAY_MS = 24 * 60 * 60_000
FILE_MIN, MOST_ROWS = 20, 12  # the time between two files, and the rows of one
COLUMNS = {"events": "count(*)", "which": "collect_list(value)"}
ADDED = {"most": "max(value)", "mean": "avg(value)", "last": "last(value)", "share": "sum(value) / count(*)"}
FUNCTION = '''
class Own:
    """The values of a window, and how often the key has been evaluated."""

    def process(self, values, context):
        context.key_state["calls"] = context.key_state.get("calls", 0) + 1
        yield {"events": len(values), "which": [one["value"] for one in values], "calls": context.key_state["calls"]}

    def clear(self, context):
        context.key_state["cleared"] = context.key_state.get("cleared", 0) + 1
'''
OPERATOR = {  # windows that the operator itself computes, in order of arrival
    "count trigger": 'type = "session"\ngap = "8m"\ntrigger = {type = "count", n = 3}',
    "purging": 'type = "tumbling"\nsize = "1h"\ntrigger = {type = "purging", of = {type = "count", n = 2}}',
    "continuous": 'type = "sliding"\nsize = "1h"\nslide = "30m"\n'
    'trigger = {type = "continuous_event_time", interval = "10m"}',
    "delta": 'type = "tumbling"\nsize = "1h"\ntrigger = {type = "delta", of = "value", threshold = 5}',
    "evictor": 'type = "session"\ngap = "8m"\nevictor = {type = "count", n = 3}',
    "function": 'type = "session"\ngap = "8m"\nfunction = "own:Own"\nreads = ["value"]',
    "global": 'type = "global"\ntrigger = {type = "count", n = 4}',
    "staggered": 'type = "tumbling"\nsize = "30m"\nstagger = true',
    "processing time": 'type = "tumbling"\nsize = "1h"\ntime = "processing"',
}
OUTPUT = '[window.output]\nevents = "bigint"\nwhich = "array<bigint>"\ncalls = "bigint"\n'
CHANGES = (  # of a migration: what stands in the definition, and what may stand there
    (r'\bgap = "\d+m"', 'gap = "{}m"', (3, 8, 20)),
    (r'\bsize = "\d+[mh]"', 'size = "{}m"', (10, 30, 60)),
    (r"\bslide = \d+", "slide = {}", (2, 3)),
    (r"\bn = \d+", "n = {}", (2, 3, 4)),
    (r'\bstate_partition = "\d+[mhd]"', 'state_partition = "{}m"', (10, 60, 1440)),
)


@dataclass(slots=True)
class Drawn:
    """A pipeline's definition: its kind of windows, its text, and the rules of `tests.world.random_pipelines.truth`."""

    kind: str
    text: str
    rules: Rules | None  # None: windows that the operator computes

    @property
    def each_firing(self) -> bool:
        """Tests if each firing is a result of its own, instead of one per window."""
        return self.kind == "counts" or "trigger = " in self.text

    @property
    def in_time(self) -> bool:
        """Tests if a range of time can be rerun."""
        return self.rules is not None and self.kind != "counts"


def pipeline(seed: int, engine: str, name: str) -> Drawn:
    """A pipeline of a seed: three in five as random pipelines have them, the others of the kinds that these lack."""
    chance = random.Random(f"{name} {seed}")
    base = drawn.definition(chance, name, chance.choice((0, 5, 20)), chance.random() < 0.6, 300, None)
    kind, text, rules = _kind(base.rules.windows), base.text, base.rules
    if chance.random() < 0.4:
        kind, rules = chance.choice([*OPERATOR]), None
        window = OPERATOR[kind]
        lateness = (
            ""
            if "global" in window or "processing" in window
            else f'\nallowed_lateness = "{chance.choice((0, 10, 200))}m"'
        )
        text = re.sub(r"\[window\]\n.*?\[storage\]", f"[window]\n{window}{lateness}\n[storage]", text, flags=re.DOTALL)
    if random.Random(f"idle {name} {seed}").random() < 0.2:  # by a clock that is months ahead of all events
        text = text.replace("[window]\n", 'idle_timeout = "100ms"\n[window]\n')
    lines = "".join(f'{column} = "{sql}"\n' for column, sql in COLUMNS.items())
    shown = OUTPUT if kind == "function" else f"[aggregates]\n{lines}"
    files, cuts = chance.choice((0, 0, 1, 2) if rules else (1, 1, 0)), chance.choice(("30d", "3 batches"))
    text = text.replace('path = "incoming"', f'path = "incoming"\nmax_files_per_run = {files}').partition("[aggr")[0]
    head = f'engine = "{engine}"\nwarehouse = "warehouse"\n'
    return Drawn(kind, f'{head}{text}[retention]\ncuts = "{cuts}"\n[checks]\n{shown}', rules)


def _kind(windows: Windows) -> str:
    if windows.counts:
        return "counts"
    if windows.size_ms is None:
        return "session" if windows.gap_ms else "gaps"
    if windows.slide_ms > windows.size_ms:
        return "holes"
    return "tumbling" if windows.slide_ms == windows.size_ms else "sliding"


def migrated(chance: random.Random, text: str) -> str | None:
    """The definition with one change that needs a migration; None if there is none."""
    possible = [
        re.sub(pattern, form.format(value), text, count=1) for pattern, form, values in CHANGES for value in values
    ]
    others = [one for one in possible if one != text]
    return chance.choice(others) if others else None


def rows_of(chance: random.Random, number: int, known: dict[str, Row], values: int) -> tuple[Row, ...]:
    """Rows of a file, with values from `values` on; a row with an earlier id is the same event again."""
    from_ms, ids = START_MS + number * FILE_MIN * 60_000, list(known)
    rows = []
    drawn_rows = drawn.rows_of_file(chance, number, from_ms, FILE_MIN, ids, MOST_ROWS)
    for value, row in enumerate(drawn_rows, values):
        if row.id in known:
            first = known[row.id]
            row = row._replace(user=first.user, at_ms=first.at_ms, gap_ms=first.gap_ms)
        elif row.id is not None:
            known[row.id] = row
        rows.append(row._replace(value=value))
    return tuple(rows)


def rewritten(chance: random.Random, rows: tuple[Row, ...], values: int) -> tuple[Row, ...]:
    """The rows of a file as upstream repairs it: other values, from `values` on, other times, some gone, some new.

    A row of which another may be the same event keeps its time, or gets another id.
    """
    repaired = list[Row]()
    for value, row in enumerate(rows, values):
        odd = chance.random()
        if odd < 0.3:
            row = row._replace(value=value)
        elif odd < 0.5 and row.at_ms is not None:
            identity = row.id and f"{row.id} of {value}"
            row = row._replace(at_ms=row.at_ms + chance.randrange(-90, 90) * 60_000, id=identity)
        elif odd < 0.6:
            continue
        repaired.append(row)
    if chance.random() < 0.3 or not repaired:
        repaired.append(rows[0]._replace(id=rows[0].id and f"{rows[0].id} more", value=values + len(rows)))
    name, number = rows[0].place[0], rows[0].order[0]
    return tuple(row._replace(place=(name, n), order=(number, n)) for n, row in enumerate(repaired))


def all_time() -> tuple[str, ...]:
    """Range of all events."""
    return "--from", iso_instant(START_MS - 5 * DAY_MS), "--to", iso_instant(START_MS + 30 * DAY_MS)
