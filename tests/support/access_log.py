"""Access logs in the combined format, as web servers write them: parsed, cut into arrival files, or made up.

83.149.9.216 - - [17/May/2015:10:05:03 +0000] "GET /path HTTP/1.1" 200 203023 "referrer" "agent"
"""

import json
import random
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

LINE = re.compile(
    r"(?P<client>\S+) \S+ \S+ \[(?P<time>[^]]+)\] "
    r'"(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\d{3}) (?P<size>\d+|-)(?: .*)?'
)
TIME = "%d/%b/%Y:%H:%M:%S %z"


class Request(NamedTuple):
    number: int
    client: str
    timestamp_ms: int
    status: int
    size: int | None


def parse(lines: Iterable[str]) -> Iterator[Request]:
    """The requests in the order of the file; raises ValueError at a line of another format."""
    for number, line in enumerate(lines):
        found = LINE.fullmatch(line.rstrip("\n"))
        if not found:
            raise ValueError(f"line {number + 1} is not in the combined log format: {line!r}")
        timestamp_ms = int(datetime.strptime(found["time"], TIME).timestamp()) * 1000
        size = None if found["size"] == "-" else int(found["size"])
        yield Request(number, found["client"], timestamp_ms, int(found["status"]), size)


def cut(requests: list[Request], files: int) -> list[list[Request]]:
    """Pieces of nearly equal length, in the order of the log."""
    bounds = [len(requests) * n // files for n in range(files + 1)]
    return [requests[start:end] for start, end in pairwise(bounds)]


def write_json(pieces: list[list[Request]], folder: Path) -> None:
    """One file of JSON lines for each piece, named in their order: id, client, at, status, size."""
    folder.mkdir()
    for number, piece in enumerate(pieces):
        rows = ({**request._asdict(), "id": f"r{request.number}"} for request in piece)
        (folder / f"{number:02}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def made_up_log(lines: int, seed: int) -> list[str]:
    """Some days of visits of some clients, shuffled a little; now and then a line comes hours late."""
    rng = random.Random(seed)
    start = datetime(2015, 5, 17, 10, 5, tzinfo=UTC)
    requests: list[tuple[datetime, datetime, str]] = []
    while len(requests) < lines:
        client = f"198.51.100.{rng.randrange(40)}" if rng.random() < 0.9 else f"2001:db8::{rng.randrange(9)}"
        at = start + timedelta(seconds=rng.randrange(3 * 86_400))
        for _ in range(rng.randrange(1, 9)):
            at += timedelta(seconds=rng.choice((0, 1, 20, 300, 1799, 1800, 1801)))
            late = timedelta(hours=rng.randrange(2, 30)) if rng.random() < 0.04 else timedelta(0)
            requests.append((at + late + timedelta(seconds=rng.randrange(0, 60)), at, client))
    return [_line(rng, at, client) for _, at, client in sorted(requests)[:lines]]


def _line(rng: random.Random, at: datetime, client: str) -> str:
    status, size = rng.choices(((200, rng.randrange(90_000)), (404, 291), (304, "-"), (301, 319)), (90, 4, 5, 1))[0]
    path = rng.choice(("/", "/articles/dynamic-dns/", "/images/web/2009/banner.png", '/search?q=\\"x\\"'))
    return f'{client} - - [{at.strftime(TIME)}] "GET {path} HTTP/1.1" {status} {size} "-" "Mozilla/5.0 (X11; Linux)"'
