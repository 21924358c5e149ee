"""The definition of the guide to web analytics, over made-up logs in several files, against plain Python."""

from __future__ import annotations

import os
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.access_log import made_up_log
from tests.docs.pages import DOCS, Page
from windowlib.definition.definition import load_definition
from windowlib.engines.sail import is_sail
from windowlib.runs.advance import advance
from windowlib.tables.read import read_table

FILES = 3


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


@pytest.mark.spark
@pytest.mark.embedded
def test_the_guide_s_definition_finds_the_visits_of_a_log(spark: SparkSession, tmp_path: Path) -> None:
    code = {block.about: block.text for block in Page(DOCS / "guides" / "web-analytics.md").blocks if block.about}
    script: dict[str, Any] = {"__name__": "log_to_parquet"}
    exec(compile(code["log_to_parquet.py"], "log_to_parquet.py", "exec"), script)
    requests = list(script["requests"](made_up_log(600, seed=3)))
    (tmp_path / "incoming").mkdir()
    (tmp_path / "visits.toml").write_text(
        code["visits.toml"].replace("[watermark]", "max_files_per_run = 1\n[watermark]")
    )
    definition = load_definition(tmp_path / "visits.toml")
    definition = definition.model_copy(update={"engine": "sail" if is_sail(spark) else "spark"})
    for number in range(FILES):
        path = tmp_path / "incoming" / f"{number}.parquet"
        part = requests[len(requests) * number // FILES : len(requests) * (number + 1) // FILES]
        pq.write_table(pa.Table.from_pylist(part, script["SCHEMA"]), path)
        os.utime(path, ns=(number + 1, number + 1))
    advance(definition, lambda: spark)
    advance(definition, lambda: spark, finish=True)
    expected = {(visit["client"], visit["window_start"]): visit for visit in visits_of(requests)}
    found = {(row["client"], row["window_start"]): row for row in read_table(definition, "results").to_pylist()}
    assert found.keys() == expected.keys()
    assert len(found) > 100
    assert {key: {name: row[name] for name in expected[key]} for key, row in found.items()} == expected
