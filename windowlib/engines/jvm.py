"""JVM of a run on this machine, started directly so that it starts early and is ready quickly.

Spark's own `bin/spark-submit` starts a first JVM only to build the command line of a second JVM. It also cannot begin
before PySpark is imported. In this module Python builds the command line, and the JVM starts while Python still imports
modules. PySpark gets the port of the JVM's gateway. The JVM's standard input is a pipe, so the JVM ends whenever this
process ends.

* *Class data sharing.* `windowlib setup --archive` puts an archive of loaded and verified classes into the cache
  folder. Java compares the archive with the class path, and ignores an archive that does not fit.
* *Quick compiler.* `-XX:TieredStopAtLevel=1` turns off the optimising compiler. In a process of one small batch, that
  compiler costs more than it saves. In a long run it saves more than it costs, so the caller decides.

`windowlib.engines` lists the savings.

If an environment variable in `SETTLED_ELSEWHERE` configures Spark, Spark's own launcher starts the JVM.

`docs/contributing/private-apis.md` lists the private parts of PySpark and Java that this file needs.
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
from windowlib.engines.jvm_output import ProcessStderr, captured_stderr
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
QUIET_ARCHIVE = "-Xlog:cds*=off"  # no message about an archive that does not fit
OPTIONS = Path(__file__).with_name("java.options")


class NoJvm(WindowError):
    """The JVM of a run could not be started."""


class JvmEnded(NoJvm):
    """The JVM ended before it was ready; `why` is the JVM's own message."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Spark's JVM ended before it was ready: {why}")
        self.why = why


@cache
def spark_home() -> Path:
    """Folder of the installed PySpark, found without importing PySpark. Raises `NoJvm` without PySpark's JARs."""
    spec = find_spec("pyspark")
    for folder in spec.submodule_search_locations or () if spec else ():
        if (Path(folder) / "jars").is_dir():
            return Path(folder)
    raise NoJvm("found no PySpark with its JARs, and Spark cannot start without them: pip install 'windowlib[spark]'")


def can_start_directly(master: str, settings: Mapping[str, str]) -> bool:
    """Tests if this module, instead of Spark's launcher, can start the JVM of a session with this master."""
    return (
        (master == "local" or master.startswith("local["))
        and not any(os.environ.get(name) for name in SETTLED_ELSEWHERE)
        and not (spark_home() / "conf").is_dir()
        and "spark.driver.extraLibraryPath" not in settings
        and os.name == "posix"
    )


def java() -> str:
    """Path of the Java that Spark would use; its version is not checked. Raises `NoJvm` if there is no Java."""
    path, missing = look_for_java()
    if path is None:
        raise NoJvm(
            f"found {missing}, and Spark needs Java to start on this machine; `windowlib setup` says what to install"
        )
    return path


def command(settings: Mapping[str, str], arguments: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """Command line of a JVM that runs Spark with `settings` and with the Java `options`.

    `arguments` are the arguments of Spark's launcher: `pyspark-shell`, or `--class` and a main class.
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
    """Path of the class archive for this Java and this PySpark; the file need not exist."""
    installation = f"{Path(java()).resolve()}\n{spark_home()}"
    return cache_folder() / f"classes-{hashlib.sha256(installation.encode()).hexdigest()[:16]}.jsa"


def archive_fits(settings: Mapping[str, str]) -> bool:
    """Tests if the archive exists and Java would use it for a JVM with these settings."""
    options = ["-cp", os.pathsep.join(class_path_of(settings)), f"-XX:SharedArchiveFile={archive()}", "-Xshare:on"]
    if not archive().exists():
        return False
    return subprocess.run([java(), *options, "-version"], capture_output=True, check=False).returncode == 0


def added_environment() -> dict[str, str]:
    """Environment variables to add for a JVM that this module starts.

    Without `SPARK_LOCAL_IP`, Spark resolves the machine's name, which fails in some containers and networks.
    """
    address = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    return {"SPARK_HOME": str(spark_home()), "SPARK_CONNECT_MODE": "0", "SPARK_LOCAL_IP": address}


@dataclass(frozen=True, slots=True)
class Gateway:
    """JVM that is starting, and to which PySpark connects."""

    process: subprocess.Popen[bytes]
    connection_file: Path  # the JVM writes its port and secret into this file
    stderr: ProcessStderr

    def variables(self, within_seconds: float = 120) -> dict[str, str]:
        """Waits for the JVM. Returns the variables by which PySpark finds it. Raises `NoJvm` if the JVM fails."""
        deadline = time.monotonic() + within_seconds
        try:
            while not self.connection_file.exists():
                if (code := self.process.poll()) is not None:
                    raise JvmEnded(self.stderr.reason() or f"its JVM ended with exit code {code} and said nothing")
                if time.monotonic() > deadline:
                    raise NoJvm(f"Spark's JVM was not ready within {within_seconds:.0f} s; is the machine overloaded?")
                time.sleep(0.01)
            written = self.connection_file.read_bytes()
        except BaseException:
            self.process.kill()  # on Ctrl-C too: without the connection file the JVM would wait for ever
            raise
        finally:
            shutil.rmtree(self.connection_file.parent)
        self.stderr.pass_on()
        port, length = struct.unpack("!ii", written[:8])
        return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": written[8 : 8 + length].decode()}

    @property
    def is_unused(self) -> bool:
        """Tests if no session has connected to the JVM yet."""
        return self.connection_file.parent.exists()

    def end(self) -> None:
        """Ends a JVM to which no session has connected."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.connection_file.parent, ignore_errors=True)


def start(settings: Mapping[str, str], options: Sequence[str] = ()) -> Gateway:
    """Starts the JVM of a session with `settings` and returns at once."""
    connection_file = Path(tempfile.mkdtemp(prefix="windowlib-jvm-")) / "gateway"
    with captured_stderr() as stderr:
        process = subprocess.Popen(
            command(settings, ["pyspark-shell"], options),
            stdin=subprocess.PIPE,
            stderr=stderr.write_end,
            env={**os.environ, **added_environment(), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection_file)},
            process_group=0,  # Ctrl-C must not reach the JVM, which the run needs to end cleanly
        )
    atexit.register(_release, process)
    return Gateway(process, connection_file, stderr)


def _release(process: subprocess.Popen[bytes]) -> None:
    """Closes the JVM's standard input, which ends the JVM, and silences Python's warning that the JVM still runs."""
    assert process.stdin, "a pipe"
    process.stdin.close()
    warnings.filterwarnings("ignore", f"subprocess {process.pid} is still running", ResourceWarning)


def class_path_of(settings: Mapping[str, str]) -> list[str]:
    """Class path of a JVM with these settings: additional entries, then Spark's JARs."""
    extra = settings.get("spark.driver.extraClassPath", "")
    return [*filter(None, extra.split(os.pathsep)), *_spark_jars()]


@cache
def _spark_jars() -> tuple[str, ...]:
    return tuple(sorted(str(jar) for jar in (spark_home() / "jars").glob("*.jar")))
