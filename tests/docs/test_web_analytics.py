"""The definition of the guide to web analytics, over logs as servers write them, against plain Python."""

from __future__ import annotations

import gzip
import json
import os
import re
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.access_log import LINE, TIME, made_up_log
from tests.support.doc_pages import DOCS, Page
from windowlib.definition.definition import Definition, load_definition
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance

FILES = 2


def visits_of(requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The visits that the guide's definition must find in requests, in their order of arrival."""
    of_client = defaultdict(list)
    for request in sorted(requests, key=lambda request: request["at"]):
        visits = of_client[request["client"]]
        if not visits or (request["at"] - visits[-1][-1]["at"]).total_seconds() > 1800:
            visits.append([])
        visits[-1].append(request)
    return [_visit(visit) for visits in of_client.values() for visit in visits]


def _visit(visit: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    sizes = sorted(request["bytes"] for request in visit if request["bytes"] is not None)
    in_twentieths = statistics.quantiles(sizes, n=20, method="inclusive") if len(sizes) > 1 else sizes * 19
    heaviest = max(
        (request for request in reversed(visit) if request["bytes"] is not None),
        key=lambda request: request["bytes"],
        default=None,
    )
    return {
        "client": visit[0]["client"],
        "window_start": visit[0]["at"],
        "requests": len(visit),
        "pages": len({request["page"] for request in visit if request["status"] < 400}),
        "entry_page": visit[0]["page"],
        "exit_page": visit[-1]["page"],
        "bytes_median": pytest.approx(statistics.median(sizes)) if sizes else None,
        "bytes_p95": pytest.approx(in_twentieths[-1]) if sizes else None,
        "heaviest_page": heaviest["page"] if heaviest else None,
        "error_rate": round(sum(request["status"] >= 400 for request in visit) / len(visit), 4),
    }


def requests_of(lines: Sequence[str]) -> list[dict[str, Any]]:
    """The requests of log lines in the combined format, in the order in which they arrive from one file."""
    found = []
    for line in lines:
        parts = LINE.match(line)
        assert parts, line
        request = re.sub(r"\\(.)", r"\1", parts["request"])
        size = None if parts["size"] == "-" else int(parts["size"])
        found.append(
            {
                "client": parts["client"],
                "at": datetime.strptime(parts["time"], TIME),
                "request": request,
                "page": request.split(" ")[1],
                "status": int(parts["status"]),
                "bytes": size,
            }
        )
    return sorted(found, key=lambda one: (one["at"], json.dumps([one["request"], one["status"], str(one["bytes"])])))


def defined(folder: Path) -> Definition:
    """The guide's definition, over files of logs that come one at a time."""
    code = {block.about: block.text for block in Page(DOCS / "guides" / "web-analytics.md").blocks if block.about}
    (folder / "logs").mkdir()
    text = code["visits.toml"].replace("[source.schema]", "max_files_per_run = 1\n[source.schema]")
    (folder / "visits.toml").write_text(text)
    return load_definition(folder / "visits.toml")


def test_the_guide_s_definition_can_be_loaded(tmp_path: Path) -> None:
    columns = {column.name for column in defined(tmp_path).aggregates.columns}
    [visit] = visits_of(requests_of(made_up_log(600, seed=3)[:1]))
    assert columns == visit.keys() - {"client", "window_start"}


@pytest.mark.spark
@pytest.mark.classic
@pytest.mark.long(
    "in make test test_foreign_data reads sessions of text and a dialect, and tests/plans tries such aggregates"
)
def test_the_guide_s_definition_finds_the_visits_of_a_log(spark: SparkSession, tmp_path: Path) -> None:
    definition, lines = defined(tmp_path), made_up_log(600, seed=3)
    requests = list[dict[str, Any]]()
    for number in range(FILES):
        path = tmp_path / "logs" / f"{number}.log.gz"
        part = lines[len(lines) * number // FILES : len(lines) * (number + 1) // FILES]
        path.write_bytes(gzip.compress("".join(f"{line}\n" for line in part).encode()))
        os.utime(path, ns=(number + 1, number + 1))
        requests += requests_of(part)
    advance(definition, lambda: spark, finish=True)
    expected = {(visit["client"], visit["window_start"]): visit for visit in visits_of(requests)}
    found = {(row["client"], row["window_start"]): row for row in read_table(definition, "results").to_pylist()}
    assert found.keys() == expected.keys()
    assert len(found) > 100
    assert {key: {name: row[name] for name in expected[key]} for key, row in found.items()} == expected
