"""Runs over Spark Connect: on the server of the cluster guide, without its token, and without a server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.clicks import CLICKS, clicks, tables
from tests.support.connect_server import TOKEN, ConnectServer, free_port, printed_unit
from tests.support.killed import FILES
from windowlib.cli.main import app
from windowlib.definition.toml.masters import TOKEN_VARIABLE

PROJECT = Path(__file__).parents[2]
SIGTERM_OF_JAVA = 143


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def python(*arguments: object, env: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, timeout=600, check=False)


def run_at(
    folder: Path, address: str, more: str = "", env: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """Runs `windowlib run` with one batch on the server at this address."""
    definition = clicks(folder, 1, CLICKS + f'[spark]\nmaster = "{address}"\n{more}')
    return python("-P", "-m", "windowlib", "run", definition.file, env=env)


# -- the server of the guide --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """Server of this module, which its tests may end."""
    server = ConnectServer(tmp_path_factory.mktemp("server"))
    server.start()
    yield server
    server.end()


@pytest.fixture(scope="module")
def expected(after_three: Path) -> dict[str, list[str]]:
    """Tables of the pipeline after a run in a session of this process."""
    return tables(clicks(after_three, 0))


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_over_spark_connect_gives_the_same_tables(
    server: ConnectServer, expected: dict[str, list[str]], tmp_path: Path
) -> None:
    server.start()
    ended = python("-m", "tests.support.connect_run", tmp_path, server.address, env=server.environment)
    assert ended.returncode == 0, ended.stderr
    done = [1, 2, 3]
    assert json.loads(ended.stdout) == {"batches": done, "batches_of_json": done, "java": []}
    assert ended.stderr == ""
    assert tables(clicks(tmp_path, FILES)) == expected
    assert tables(clicks(tmp_path / "text", 0), ["results"]) == {"results": expected["results"]}


@pytest.mark.spark
@pytest.mark.slow
def test_the_server_is_for_this_machine_and_keeps_its_token_secret(server: ConnectServer) -> None:
    import psutil

    process = psutil.Process(server.start())
    listening = {one.laddr.ip for one in process.net_connections("tcp") if one.status == psutil.CONN_LISTEN}
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}
    assert TOKEN not in " ".join(process.cmdline())
    assert TOKEN not in server.log.read_text()
    assert TOKEN_VARIABLE not in printed_unit()["Environment"]
    assert str(SIGTERM_OF_JAVA) in printed_unit()["SuccessExitStatus"]
    assert server.end() == SIGTERM_OF_JAVA


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long("the server starts again twice; runs that die on Sail are in make test")
@pytest.mark.parametrize(
    ("moment", "left"),
    [
        pytest.param("1:write:windows", [1, 2, 3], id="while it computes"),
        pytest.param("2:commit:results", [3], id="between batches"),
    ],
)
@pytest.mark.fault(
    "the Spark Connect server dies during a run", "the run ends with one sentence; the next run continues"
)
def test_a_server_that_dies_ends_the_run_with_one_sentence(
    server: ConnectServer, expected: dict[str, list[str]], tmp_path: Path, moment: str, left: list[int]
) -> None:
    started = "-m", "tests.support.connect_run", tmp_path, server.address
    ended = python(*started, moment, server.start(), env=server.environment)
    assert ended.returncode == 1
    assert f"EngineLost: the Spark engine ({server.address}) ended, dropped the session" in ended.stderr
    server.start()
    after = python(*started, env=server.environment)
    assert json.loads(after.stdout)["batches"] == left, after.stderr
    assert tables(clicks(tmp_path, FILES)) == expected


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.fault("a run lacks the token of the Spark Connect server", "the error names the variable")
def test_a_server_refuses_other_tokens(server: ConnectServer, tmp_path: Path) -> None:
    server.start()
    place, advice = server.address, f"set {TOKEN_VARIABLE} to the token that the server was started with\n"
    without = {name: value for name, value in server.environment.items() if name != TOKEN_VARIABLE}
    ended = run_at(tmp_path / "without", place, env=without)
    assert ended.stderr == f"error: {place} needs a token, and none was sent: {advice}"
    assert ended.returncode == 2
    ended = run_at(tmp_path / "wrong", place, env={**without, TOKEN_VARIABLE: "wrong"})
    assert ended.stderr == f"error: {place} refused the token in {TOKEN_VARIABLE}: {advice}"
    assert ended.returncode == 2


@pytest.mark.spark
@pytest.mark.slow
def test_with_a_token_only_localhost_is_reached_without_tls(server: ConnectServer, tmp_path: Path) -> None:
    server.start()
    ended = run_at(tmp_path, f"sc://127.0.0.1:{server.port}", env=server.environment)
    assert ended.returncode == 1
    assert f'With {TOKEN_VARIABLE} set, PySpark uses TLS for every host but "localhost"\n' in ended.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_a_setting_that_only_the_server_can_have_is_refused(server: ConnectServer, tmp_path: Path) -> None:
    server.start()
    memory = '[spark.conf]\n"spark.driver.memory" = "9g"\n'
    ended = run_at(tmp_path, server.address, memory, server.environment)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == (
        'error: spark.conf has "spark.driver.memory" = "9g", but a session on a server does not have this setting.'
        " Set it where the server is started"
    )


# -- no server ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.fault("nothing answers at the address of Spark Connect", "the error names the address")
def test_a_missing_spark_connect_server_is_named(tmp_path: Path) -> None:
    port = free_port()
    ended = run_at(tmp_path, f"sc://127.0.0.1:{port}")
    assert ended.returncode == 1
    assert f"error: no Spark Connect server answers at sc://127.0.0.1:{port} within" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.long("that nothing answers is said in make test")
def test_another_kind_of_server_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        closing = threading.Thread(target=_hang_up, args=(listening,), daemon=True)
        closing.start()
        began = time.monotonic()
        ended = run_at(tmp_path, f"sc://127.0.0.1:{port}")
    assert ended.returncode == 1
    assert f"error: sc://127.0.0.1:{port} answers, but not as a Spark Connect server" in ended.stderr
    assert time.monotonic() - began < 240  # the client left alone goes on for ten minutes


def _hang_up(listening: socket.socket) -> None:
    while True:
        try:
            listening.accept()[0].close()
        except OSError:
            return


def test_an_invalid_address_is_refused(tmp_path: Path) -> None:
    definition = clicks(tmp_path, 1, CLICKS + '[spark]\nmaster = "sc://spark.example:15002/warehouse"\n')
    ended = call("run", definition.file)
    assert ended.exit_code == 2
    assert (
        'error: spark.master = "sc://spark.example:15002/warehouse" is not an address: need "sc://host:port"'
        in ended.stderr
    )
