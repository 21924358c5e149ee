"""Every scenario, by every engine; and scenarios that are wrong on purpose, which must fail."""

from pathlib import Path

import pytest

from tests.support.reference_engines import OperatorEngine, SetEngine
from tests.support.scenario_files import check, load

HERE = Path(__file__).parents[1] / "scenarios"
RIGHT = sorted(HERE.glob("*.toml"))


@pytest.mark.parametrize("engine", [OperatorEngine, SetEngine])
@pytest.mark.parametrize("file", RIGHT, ids=lambda file: file.stem)
def test_a_scenario_comes_to_what_it_says(file: Path, engine: type[OperatorEngine]) -> None:
    scenario = load(file)
    check(scenario, engine(scenario.spec))


@pytest.mark.parametrize("name", ["a_firing_that_does_not_happen", "a_window_left_unsaid"])
def test_a_wrong_scenario_fails(name: str) -> None:
    scenario = load(HERE / "wrong" / f"{name}.toml")
    with pytest.raises(AssertionError, match="at watermark"):
        check(scenario, SetEngine(scenario.spec))


def test_a_misspelt_key_is_an_error() -> None:
    with pytest.raises(ValueError, match="in_flght"):
        load(HERE / "wrong" / "a_misspelt_key.toml")


def test_there_are_scenarios() -> None:
    assert len(RIGHT) >= 5
    assert len(list((HERE / "wrong").glob("*.toml"))) == 3
