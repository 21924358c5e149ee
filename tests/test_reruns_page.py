"""docs/reruns.md does what it says: its files are written and its commands run, in its own order."""

from __future__ import annotations

import contextlib
import re

import pytest

from tests.test_readme import PROJECT, Command, Ended, commands, ended, run, without_seconds

PAGE = (PROJECT / "docs" / "reruns.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PREVIEW_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")  # it differs each time


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> list[Ended]:
    """How each command of the page ended."""
    request.getfixturevalue("spark")
    outcomes: list[Ended] = []
    newest = ""
    with contextlib.chdir(tmp_path_factory.mktemp("page")), pytest.MonkeyPatch.context() as patch:
        patch.delenv("WINDOWLIB_WAREHOUSE", raising=False)
        for language, text in BLOCKS:
            if language == "bash":
                outcomes.append(ended(Command(text, []), ["bash", "-ec", text]))
                continue
            for command in commands(text):
                outcomes.append(run(Command(PREVIEW_ID.sub(newest, command.text), command.shown)))
                newest = next(iter(PREVIEW_ID.findall(outcomes[-1].output)), newest)
    return outcomes


@pytest.mark.spark
@pytest.mark.slow
def test_every_command_ends_as_printed(played: list[Ended]) -> None:
    for one in played:
        assert one.exit_code == 0, f"{one.command.text}\n{one.output}"
        lines = iter([normal(line) for line in one.output.splitlines()])
        for line in one.command.shown:
            assert normal(line) in lines, f"{one.command.text} does not print: {line}\n{one.output}"


@pytest.mark.spark
@pytest.mark.slow
def test_the_late_event_says_who_readmitted_it(played: list[Ended]) -> None:
    assert '"readmitted_by": 5' in played[-1].output


def test_every_block_is_looked_at() -> None:
    assert {language for language, _ in BLOCKS} == {"bash", "console"}
    assert PAGE.count("\n```") == 2 * len(BLOCKS)


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", PAGE):
        assert (PROJECT / "docs" / link.partition("#")[0]).exists()


def normal(line: str) -> str:
    return PREVIEW_ID.sub("ID", without_seconds(line))
