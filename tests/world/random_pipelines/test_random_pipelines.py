"""Random pipelines next to plain Python; `python -m tests.world.random_pipelines` plays many more, both engines in
turns.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.strategies import ALL
from tests.world.random_pipelines.drawn import BRIEF, case
from tests.world.random_pipelines.play import differences
from tests.world.random_pipelines.truth import Correction, Row, Rules, Truth, Windows

SEEDS = range(1, 101)
SOME = SEEDS if ALL else [*SEEDS[::9], 34, 40, 85]  # some of which have reruns, late events and another lateness


def on(spark: Any) -> Any:
    return lambda engine, asked: asked.done(lambda: spark)


@pytest.mark.spark
@pytest.mark.embedded
@pytest.mark.parametrize("seed", SOME)
def test_a_short_pipeline_equals_the_rules(spark: Any, tmp_path: Path, seed: int) -> None:
    assert differences(case(seed, BRIEF), tmp_path / "pipeline", on(spark)) == []


@pytest.mark.spark
@pytest.mark.both
@pytest.mark.long("longer ones, of more rows: the brief ones run in make test")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_long_pipeline_equals_the_rules(spark: Any, tmp_path: Path, seed: int) -> None:
    assert differences(case(seed), tmp_path / "pipeline", on(spark)) == []


@pytest.mark.spark
@pytest.mark.embedded
def test_a_wrong_number_is_noticed(spark: Any, tmp_path: Path) -> None:
    """Rules that are off by a millisecond are not those of the pipeline."""
    drawn = case(1)
    rules = replace(drawn.definitions[0].rules, delay_ms=drawn.definitions[0].rules.delay_ms + 1)
    off = replace(drawn, definitions=(replace(drawn.definitions[0], rules=rules), *drawn.definitions[1:]))
    assert any("watermarks: " in text for text in differences(off, tmp_path / "pipeline", on(spark)))


def test_the_rules_by_hand() -> None:
    """Sessions of 10 ms: two that a late event joins, and one that comes too late for that."""
    minute = Rules(Windows(gap_ms=10), delay_ms=0, lateness_ms=50, skew_ms=1000, with_ids=False)
    truth = Truth(minute)
    truth.read([row(1, at) for at in (0, 12, 40)], now_ms=100)
    assert truth.results.keys() == {("u", 0, 10), ("u", 12, 22)}
    truth.read([row(2, 8)], now_ms=100)
    assert truth.results.keys() == {("u", 0, 22)}
    assert truth.results["u", 0, 22].values[:2] == (3, 3)
    assert sorted(change[1:4] for change in truth.feed[-3:]) == [
        ("added", "merge", ("u", 0, 22)),
        ("removed", "merge", ("u", 0, 10)),
        ("removed", "merge", ("u", 12, 22)),
    ]
    truth.read([row(3, 90)], now_ms=100)
    truth.read([row(4, 1)], now_ms=100)
    assert truth.late == {("4", 1): None}
    truth.rerun(Correction(0, 1))
    assert truth.results["u", 0, 22].values[:2] == (4, 4)
    assert truth.late == {("4", 1): 5}


def row(number: int, at_ms: int) -> Row:
    return Row((str(number), at_ms), (number, at_ms), None, "u", at_ms, 1, None)
