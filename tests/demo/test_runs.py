"""A pipeline of the demo, run in a process of its own."""

from pathlib import Path

import pytest

from windowlib.demo.runs import batches


def test_a_run_that_fails_ends_the_demo_with_its_message_and_exit_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sessions.toml"
    file.write_text('name = "sessions"\nwindows = 1\n')
    with pytest.raises(SystemExit) as ended:
        list(batches(file))
    assert ended.value.code == 2
    assert f"error: {file}: " in capfd.readouterr().err
