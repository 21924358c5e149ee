"""Some pipelines, played briefly; `python -m tests.world.mixed_operations` plays many more, and longer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.planting import planted
from tests.world.mixed_operations.play import play
from tests.world.planted.faults import FAULTS

pytestmark = [pytest.mark.spark]
BRIEF = {7: 4, 9: 4}  # seeds, and how many operations
WRONG = {
    "session ends one millisecond late": (4, "verify ended with 5"),
    "window ends one millisecond early": (2, "verify ended with 5"),
    "events counted twice, sessions": (8, " is in "),
    "hot key dropped": (4, "in no place"),
}


@pytest.fixture
def engine(spark: Any, request: pytest.FixtureRequest) -> str:
    """The engine, with its session started."""
    return str(request.config.getoption("--engine"))


@pytest.mark.embedded
@pytest.mark.parametrize("seed", BRIEF)
def test_a_short_play_keeps_the_invariants(tmp_path: Path, seed: int, engine: str) -> None:
    play(tmp_path / "mixed", seed, BRIEF[seed], engine)


@pytest.mark.both
@pytest.mark.long("minutes; brief ones run in make test, and other suites play each operation by itself")
@pytest.mark.parametrize("seed", range(1, 7))
def test_a_long_play_keeps_the_invariants(tmp_path: Path, seed: int, engine: str) -> None:
    play(tmp_path / "mixed", seed, 20, engine)


@pytest.mark.embedded
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_figure_is_noticed(tmp_path: Path, name: str, engine: str) -> None:
    seed, words = WRONG[name]
    fault = next(one for one in FAULTS if one.name == name)
    with planted(fault), pytest.raises(AssertionError, match=words):
        play(tmp_path / "mixed", seed, 2, engine)
