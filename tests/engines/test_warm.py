"""The warm engine: one for all runs, found, replaced and restarted; what runs on it equals what runs without it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.clicks import CLICKS, clicks, tables
from tests.killed import FILES
from tests.quick import QUICK
from tests.strategies import ALL
from windowlib.airflow.processes import ProcessGroup
from windowlib.cli.main import app
from windowlib.engines.warm import engine, state
from windowlib.engines.warm.state import EngineState, Process
from windowlib.quality import judge

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of an engine of this module's own, which does not outlive it."""
    place = tmp_path_factory.mktemp("engine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(state.FOLDER_VARIABLE, str(place))
        yield place
        engine.stop()


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited for nothing"
        time.sleep(0.1)


def server_of(found: EngineState) -> Process:
    assert found.server
    return found.server


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def python(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False)


# -- its life -----------------------------------------------------------------------------------------------------


@pytest.mark.long("an engine more; thin clients of one are in make test")
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.fault("two runs start the warm engine at once", "there is one engine")
def test_two_starts_at_once_give_one_engine(place: Path) -> None:
    found: list[EngineState] = []
    threads = [
        threading.Thread(target=lambda: found.append(engine.start({}, companions=[judge.command_for_engine()])))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({server_of(one).pid for one in found}) == 1
    assert found[0].ready
    # It is not a child of ours, and gets no signal sent to our process group.
    assert os.getsid(server_of(found[0]).pid) != os.getsid(0)
    status = json.loads(call("engine", "status", "--json").output)
    assert (status["running"], status["pid"], status["clients"], status["fits"]) == (
        True,
        server_of(found[0]).pid,
        0,
        True,
    )
    assert f"on port {found[0].port}: 0 clients connected" in call("engine", "status").output
    assert found[0].token not in call("engine", "status", "--json").output
    wait_for(judge.socket_in(place).exists)
    assert (place / "engine.json").stat().st_mode & 0o077 == 0


@pytest.mark.long("two engines more; thin clients of one are in make test")
@pytest.mark.spark
@pytest.mark.slow
def test_other_settings_replace_it_and_stop_ends_it(place: Path) -> None:
    before = engine.start({})
    now = engine.start({"spark.sql.shuffle.partitions": "3"})
    assert now.port != before.port
    wait_for(lambda: server_of(before).found() is None and before.keeper.found() is None)
    assert engine.ensure() == now  # a run keeps the settings that the engine was started with
    os.kill(server_of(now).pid, signal.SIGKILL)
    wait_for(lambda: now.keeper.found() is None)
    assert json.loads(call("engine", "status", "--json").output) == {"running": False}
    replaced = engine.ensure([judge.command_for_engine()])
    assert (replaced.conf, replaced.port != now.port) == ({"spark.sql.shuffle.partitions": "3"}, True)
    judges = [child for child in replaced.keeper.found().children() if child.pid != server_of(replaced).pid]
    assert call("engine", "stop").output == "the engine has ended\n"
    assert server_of(replaced).found() is None
    assert [child.is_running() for child in judges] == [False]
    assert call("engine", "stop").output == "no engine is running\n"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long("an engine more; replacing and stopping one are in make test")
@pytest.mark.fault("the keeper of the warm engine is killed", "its server ends")
def test_a_keeper_that_was_killed_leaves_no_server_behind(place: Path) -> None:
    before = engine.start({})
    os.kill(before.keeper.pid, signal.SIGKILL)
    wait_for(lambda: before.keeper.found() is None)
    now = engine.start({})
    assert server_of(before).found() is None
    assert server_of(now).found() is not None


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long("nothing covers it in make test: it waits for time to pass, and starts two engines")
def test_it_ends_itself_when_unused(place: Path) -> None:
    engine.stop()
    found = engine.start({}, idle_seconds=2)
    with socket.create_connection(("127.0.0.1", found.port)):  # a client, for all that the keeper knows
        time.sleep(4)
        assert server_of(found).found() is not None
    wait_for(lambda: server_of(found).found() is None, 30)
    engine.start({})  # a run keeps what the engine was started with: no other test must get two seconds


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long("an engine more; what Java refuses is tried without one in make test")
def test_settings_that_java_refuses_are_not_remembered(place: Path) -> None:
    engine.stop()
    before = state.read(place)
    ended = call("engine", "start", "--conf", "spark.driver.memory=much")
    assert ended.exit_code == 1
    assert "error: the warm engine was not ready within 120 s, or ended: Invalid maximum heap size" in ended.output
    assert str(place / "engine.log") in ended.output
    assert state.read(place) == before
    assert engine.ensure().conf == (before.conf if before else {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--conf", "memory=4g"), 'error: --conf "memory=4g" is not a Spark setting: need "spark.name=value"'),
        (("--idle", "soon"), 'error: --idle "soon" is not a duration: need one such as "1h 30m", or "never"'),
        (("--idle", "0s"), 'error: --idle "0s" must be greater than 0: need one such as "1h 30m", or "never"'),
    ],
)
def test_mistakes_of_the_command_line(arguments: tuple[str, ...], message: str) -> None:
    ended = call("engine", "start", *arguments)
    assert (ended.exit_code, ended.output.strip()) == (2, message)


def test_the_folder_is_the_user_s_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    monkeypatch.setenv(state.FOLDER_VARIABLE, str(tmp_path / "open"))
    assert state.folder().stat().st_mode & 0o777 == 0o700
    assert state.read(state.folder()) is None
    (tmp_path / "open" / "engine.json").write_text('{"of": "another version"}')
    assert state.read(state.folder()) is None


# -- runs on it ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def expected(after_three: Path) -> dict[str, list[str]]:
    """The tables of the pipeline after a run in a session of this process."""
    return tables(clicks(after_three, 0))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "moments",
    [
        pytest.param((), id="undisturbed"),
        pytest.param(
            ("1:write:windows",),
            id="killed while it computes",
            marks=pytest.mark.long("two engines; an undisturbed one, and runs that die on Sail, are in make test"),
        ),
        pytest.param(
            ("2:commit:results",),
            id="killed between batches",
            marks=pytest.mark.long("two engines; an undisturbed one, and runs that die on Sail, are in make test"),
        ),
    ],
)
def test_a_thin_client_gives_the_same_tables(
    place: Path, expected: dict[str, list[str]], tmp_path: Path, moments: tuple[str, ...]
) -> None:
    """On an engine that it starts itself; in `make test` on one that was started to compile little."""
    if not ALL:
        engine.start(QUICK)
    ended = python("-m", "tests.warm_run", tmp_path, *moments)
    assert ended.returncode == 0, ended.stderr
    done = [1, 2, 3]
    assert json.loads(ended.stdout) == {"batches": done, "batches_of_json": [] if moments else done, "java": []}
    assert ended.stderr == ""
    assert tables(clicks(tmp_path, FILES)) == expected
    if not moments:
        assert tables(clicks(tmp_path / "text", 0), ["results"]) == {"results": expected["results"]}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long("two engines die; an undisturbed one is in make test")
@pytest.mark.fault("the warm engine dies again and again", "the run ends with one sentence")
def test_an_engine_that_keeps_dying_ends_the_run_with_one_sentence(
    place: Path, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    ended = python("-m", "tests.warm_run", tmp_path, "1:write:windows", "1:write:windows")
    assert ended.returncode == 1
    assert "EngineLost: the Spark engine (warm) ended, dropped the session" in ended.stderr
    after = python("-m", "tests.warm_run", tmp_path)
    assert json.loads(after.stdout)["batches"] == [1, 2, 3], after.stderr
    assert tables(clicks(tmp_path, FILES)) == expected


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long("an engine more; make test kills a task without one, and only here does one outlive it")
def test_a_task_that_is_killed_leaves_the_engine_it_started(place: Path, tmp_path: Path) -> None:
    engine.stop()
    with ProcessGroup([sys.executable, "-m", "tests.warm_run", str(tmp_path)], {"PYTHONPATH": str(PROJECT)}):
        wait_for(lambda: (found := state.read(place)) is not None and found.ready and found.alive, 240)
    found = state.read(place)
    assert found
    assert found.alive
    assert engine.ensure() == found


@pytest.mark.spark
@pytest.mark.slow
def test_a_setting_that_belongs_to_the_engine(place: Path, tmp_path: Path) -> None:
    conf = '[spark]\nmaster = "warm"\n[spark.conf]\n"spark.driver.memory" = "9g"\n'
    definition = clicks(tmp_path, 1, CLICKS + conf)
    ended = python("-P", "-m", "windowlib", "run", definition.file)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == (
        'error: spark.conf has "spark.driver.memory" = "9g", which is not a setting of a Spark session on a server:'
        ' give it to the engine: windowlib engine start --conf "name=value"'
    )


# -- other servers ------------------------------------------------------------------------------------------------


def run_at(folder: Path, address: str) -> tuple[subprocess.CompletedProcess[str], float]:
    definition = clicks(folder, 1, CLICKS + f'[spark]\nmaster = "{address}"\n')
    began = time.monotonic()
    return python("-P", "-m", "windowlib", "run", definition.file), time.monotonic() - began


@pytest.mark.slow
@pytest.mark.fault("nothing answers at the address of Spark Connect", "an error that names the address")
def test_nothing_answers(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nothing listens
        port = taken.getsockname()[1]
        ended, _ = run_at(tmp_path, f"sc://127.0.0.1:{port}")
    assert ended.returncode == 1
    assert f"error: no Spark Connect server answers at sc://127.0.0.1:{port} within" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.long("that nothing answers is said in make test")
def test_something_else_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        closing = threading.Thread(target=_hang_up, args=(listening,), daemon=True)
        closing.start()
        ended, seconds = run_at(tmp_path, f"sc://127.0.0.1:{port}")
    assert ended.returncode == 1
    assert f"error: sc://127.0.0.1:{port} answers, but not as a Spark Connect server" in ended.stderr
    assert seconds < 240  # the client left alone goes on for ten minutes


def _hang_up(listening: socket.socket) -> None:
    while True:
        try:
            listening.accept()[0].close()
        except OSError:
            return


def test_no_address(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1, CLICKS + '[spark]\nmaster = "sc://spark.example:15002/warehouse"\n')
    ended = call("run", definition.file)
    assert ended.exit_code == 2
    assert (
        'error: spark.master = "sc://spark.example:15002/warehouse" is not an address: need "sc://host:port"'
        in ended.stderr
    )
