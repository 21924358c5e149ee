"""The JVM of a run on this machine: started directly, so that it can start early and come up quickly.

Spark's own way, `bin/spark-submit`, starts a first JVM that only says how to start the second, and it cannot begin
before PySpark is imported. Here the command line is made in Python, the JVM starts while Python still imports what it
needs, and PySpark is given the port of its gateway. The JVM ends by itself when this process ends, however that
happens: its standard input is a pipe.

* *Class data sharing.* `windowlib setup --archive` leaves an archive of loaded and verified classes in the cache
  folder. Java itself compares it with the class path, and goes without where it does not fit.
* *The quick compiler.* `-XX:TieredStopAtLevel=1` leaves out the optimising compiler, which in a process of one small
  batch costs more than it saves. For a long run it is the other way round: the caller says which it is.

What each saves: `windowlib.engines`.

Where Spark is set up otherwise (`SETTLED_ELSEWHERE`), its own way is left alone. What this file relies on in PySpark
and Java is listed in `docs/contributing/private-apis.md`.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shlex
import shutil
import struct
import subprocess
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from windowlib.engines.cache import cache_folder
from windowlib.engines.jvm_output import ProcessStderr, listening
from windowlib.engines.setup_java import look_for_java
from windowlib.model.errors import WindowError

SETTLED_ELSEWHERE = (
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "HADOOP_CONF_DIR",
    "PYSPARK_SUBMIT_ARGS",
    "PYSPARK_GATEWAY_PORT",
    "SPARK_REMOTE",
)
MAIN = "org.apache.spark.deploy.SparkSubmit"
QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
QUIET_ARCHIVE = "-Xlog:cds*=off"  # about one that does not fit
OPTIONS = Path(__file__).with_name("java.options")


class NoJvm(WindowError):
    """The JVM of a run could not be started."""


class JvmEnded(NoJvm):
    """It was started, and ended before it was ready; `why` is what it has said."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Spark's JVM ended before it was ready: {why}")
        self.why = why


@cache
def spark_home() -> Path:
    """Where the installed PySpark has its JARs; raises `NoJvm` without one. Imports nothing of it."""
    spec = find_spec("pyspark")
    for folder in spec.submodule_search_locations or () if spec else ():
        if (Path(folder) / "jars").is_dir():
            return Path(folder)
    raise NoJvm("need PySpark with its JARs to start Spark on this machine, found none: pip install 'windowlib[spark]'")


def ours_to_start(master: str, settings: Mapping[str, str]) -> bool:
    """Whether a session with this master gets a JVM from here, and not in Spark's own way."""
    return (
        (master == "local" or master.startswith("local["))
        and not any(os.environ.get(name) for name in SETTLED_ELSEWHERE)
        and not (spark_home() / "conf").is_dir()
        and "spark.driver.extraLibraryPath" not in settings
        and os.name == "posix"
    )


def java() -> str:
    """The Java that Spark would take; raises `NoJvm` when there is none. `setup_java` judges its version."""
    found, looked = look_for_java()
    if found is None:
        raise NoJvm(f"need Java to start Spark on this machine, found {looked}; `windowlib setup` says what to install")
    return found


def command(settings: Mapping[str, str], arguments: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """The command line of a JVM that runs Spark with `settings`; `options` are more of Java's own.

    `arguments` are those of Spark's launcher: `pyspark-shell`, or `--class` and a main class.
    """
    own = [settings.get(f"spark.driver.{kind}JavaOptions", "") for kind in ("default", "extra")]
    shared = archive()
    return [
        java(),
        "-cp",
        os.pathsep.join(class_path_of(settings)),
        f"-Xmx{settings.get('spark.driver.memory', '1g')}",
        *(part for text in own for part in shlex.split(text)),
        f"@{OPTIONS}",
        QUIET_ARCHIVE,
        *([f"-XX:SharedArchiveFile={shared}"] if shared.exists() else []),
        *options,
        MAIN,
        *(part for pair in settings.items() for part in ("--conf", "=".join(pair))),
        *arguments,
    ]


def archive() -> Path:
    """The file of the class archive for this Java and this installation of PySpark, whether it is there or not."""
    whose = f"{Path(java()).resolve()}\n{spark_home()}"
    return cache_folder() / f"classes-{hashlib.sha256(whose.encode()).hexdigest()[:16]}.jsa"


def archive_fits(settings: Mapping[str, str]) -> bool:
    """Whether the archive is there, and Java would use it for a JVM with these settings."""
    options = ["-cp", os.pathsep.join(class_path_of(settings)), f"-XX:SharedArchiveFile={archive()}", "-Xshare:on"]
    if not archive().exists():
        return False
    return subprocess.run([java(), *options, "-version"], capture_output=True, check=False).returncode == 0


def added_environment() -> dict[str, str]:
    """What a JVM of ours needs in its environment. Without an address, Spark asks for that of the machine's name, which
    a container's, or a laptop's in another network, need not have."""
    address = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    return {"SPARK_HOME": str(spark_home()), "SPARK_CONNECT_MODE": "0", "SPARK_LOCAL_IP": address}


@dataclass(frozen=True, slots=True)
class Gateway:
    """A JVM that is starting, for PySpark to connect to."""

    process: subprocess.Popen[bytes]
    connection_file: Path  # where it writes its port and its secret
    words: ProcessStderr

    def variables(self, within_seconds: float = 120) -> dict[str, str]:
        """The variables by which PySpark finds it, once it is up; raises `NoJvm` when it ends or takes too long."""
        deadline = time.monotonic() + within_seconds
        try:
            while not self.connection_file.exists():
                if (code := self.process.poll()) is not None:
                    raise JvmEnded(self.words.reason() or f"its JVM ended with exit code {code} and said nothing")
                if time.monotonic() > deadline:
                    raise NoJvm(f"Spark's JVM was not ready within {within_seconds:.0f} s; is the machine overloaded?")
                time.sleep(0.01)
            written = self.connection_file.read_bytes()
        except BaseException:
            self.process.kill()  # it could not write there, and would wait for ever: Ctrl-C may come meanwhile
            raise
        finally:
            shutil.rmtree(self.connection_file.parent)
        self.words.pass_on()
        port, length = struct.unpack("!ii", written[:8])
        return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": written[8 : 8 + length].decode()}

    @property
    def starts(self) -> bool:
        """Whether no session has connected to it yet."""
        return self.connection_file.parent.exists()

    def end(self) -> None:
        """Ends it before a session has connected to it."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.connection_file.parent, ignore_errors=True)


def start(settings: Mapping[str, str], options: Sequence[str] = ()) -> Gateway:
    """Starts the JVM of a session with `settings` and returns at once."""
    connection_file = Path(tempfile.mkdtemp(prefix="windowlib-jvm-")) / "gateway"
    with listening() as words:
        process = subprocess.Popen(
            command(settings, ["pyspark-shell"], options),
            stdin=subprocess.PIPE,
            stderr=words.given,
            env={**os.environ, **added_environment(), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection_file)},
            process_group=0,  # Ctrl-C is for the run, which still needs its JVM to end in order
        )
    atexit.register(_let_go, process)
    return Gateway(process, connection_file, words)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """Lets the JVM end, without waiting for it: Python would warn of that."""
    assert process.stdin, "a pipe"
    process.stdin.close()
    warnings.filterwarnings("ignore", f"subprocess {process.pid} is still running", ResourceWarning)


def class_path_of(settings: Mapping[str, str]) -> list[str]:
    """The JARs of a JVM with these settings."""
    extra = settings.get("spark.driver.extraClassPath", "")
    return [*filter(None, extra.split(os.pathsep)), *_spark_jars()]


@cache
def _spark_jars() -> tuple[str, ...]:
    return tuple(sorted(str(jar) for jar in (spark_home() / "jars").glob("*.jar")))
