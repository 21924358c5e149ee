"""The JVM of a run on this machine: started directly, so that it can start early and come up quickly.

Spark's own way, `bin/spark-submit`, asks a first JVM how to start the second, and passes no class archive on. Here the
command line is made in Python, the JVM starts while Python still imports what it needs, and PySpark is given the port
of its gateway. The JVM ends by itself when this process ends, however that happens: its standard input is a pipe.

* *Class data sharing.* `make setup` puts an archive of loaded and verified classes beside the JARs
  (`jobs.setup_cds`). Its name has the fingerprint of Java and of the class path, so it is used where it fits.
* *The quick compiler.* `-XX:TieredStopAtLevel=1` leaves out the optimising compiler, which in a process of one small
  batch costs more than it ever gives back. For a long run it is the other way round: the caller says which it is.

Where somebody has set Spark up otherwise (`SETTLED_ELSEWHERE`), Spark's own way is left alone.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shlex
import shutil
import signal
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

from jobs.setup_java import look_for_java
from windowlib.errors import WindowError

JARS = Path(__file__).resolve().parent.parent / ".jars"
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
QUIET_ARCHIVE = "-Xlog:cds*=off"  # one that does not fit is not worth a word
# What Spark opens for itself; of its modules all but jdk.incubator.vector, which has each JVM print a warning.
OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
MODULES = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)


class NoJvm(WindowError):
    """The JVM of a run could not be started."""


@cache
def spark_home() -> Path:
    """Where the installed PySpark has its JARs; raises `NoJvm` without one. Imports nothing of it."""
    spec = find_spec("pyspark")
    for folder in spec.submodule_search_locations or () if spec else ():
        if (Path(folder) / "jars").is_dir():
            return Path(folder)
    raise NoJvm("need PySpark with its JARs to start Spark on this machine, found none: run `make setup`")


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
    """The Java that Spark would take; raises `NoJvm` when there is none. Its version is `jobs.setup_java`'s matter."""
    found, looked = look_for_java()
    if found is None:
        raise NoJvm(f"need Java to start Spark on this machine, found {looked}; `make setup` says what to install")
    return found


def command(settings: Mapping[str, str], arguments: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """The command line of a JVM that runs Spark with `settings`; `options` are more of Java's own.

    `arguments` are those of Spark's launcher: `pyspark-shell`, or `--class` and a main class.
    """
    own = [settings.get(f"spark.driver.{kind}JavaOptions", "") for kind in ("default", "extra")]
    class_path = class_path_of(settings)
    shared = archive(class_path)
    return [
        java(),
        "-cp",
        os.pathsep.join(class_path),
        f"-Xmx{settings.get('spark.driver.memory', '1g')}",
        *(part for text in own for part in shlex.split(text)),
        *MODULES,
        QUIET_ARCHIVE,
        *([f"-XX:SharedArchiveFile={shared}"] if shared.exists() else []),
        *options,
        MAIN,
        *(part for pair in settings.items() for part in ("--conf", "=".join(pair))),
        *arguments,
    ]


def archive(class_path: Sequence[str]) -> Path:
    """The file of the class archive for this Java and class path, whether it is there or not."""
    home = Path(java()).resolve().parent.parent
    parts = [*map(Path, class_path), home / "release", home / "lib" / "modules"]
    told = "\n".join(map(_identity, parts))
    return JARS / f"classes-{hashlib.sha256(told.encode()).hexdigest()[:16]}.jsa"


def added_environment() -> dict[str, str]:
    """What a JVM of ours needs in its environment."""
    return {"SPARK_HOME": str(spark_home()), "SPARK_CONNECT_MODE": "0"}


@dataclass(frozen=True, slots=True)
class Gateway:
    """A JVM that is starting, for PySpark to connect to."""

    process: subprocess.Popen[bytes]
    told_in: Path  # the file in which it tells its port and its secret

    def variables(self, within_seconds: float = 120) -> dict[str, str]:
        """The variables by which PySpark finds it, once it is up; raises `NoJvm` when it ends or takes too long."""
        deadline = time.monotonic() + within_seconds
        try:
            while not self.told_in.exists():
                if (code := self.process.poll()) is not None:
                    raise NoJvm(f"Spark's JVM ended with exit code {code} before it was ready; it said why on stderr")
                if time.monotonic() > deadline:
                    self.process.kill()
                    raise NoJvm(f"Spark's JVM was not ready within {within_seconds:.0f} s; is the machine overloaded?")
                time.sleep(0.01)
            told = self.told_in.read_bytes()
        finally:
            shutil.rmtree(self.told_in.parent)
        port, length = struct.unpack("!ii", told[:8])
        return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": told[8 : 8 + length].decode()}

    @property
    def starts(self) -> bool:
        """Whether nobody has been told yet where it is."""
        return self.told_in.parent.exists()

    def end(self) -> None:
        """Ends it, in order if somebody has used it, and waits until it has ended."""
        assert self.process.stdin, "a pipe"
        self.process.stdin.close()
        if self.starts:
            self.process.kill()
            shutil.rmtree(self.told_in.parent)
        self.process.wait()


def start(settings: Mapping[str, str], options: Sequence[str] = ()) -> Gateway:
    """Starts the JVM of a session with `settings` and returns at once."""
    told_in = Path(tempfile.mkdtemp(prefix="windowlib-jvm-")) / "gateway"
    process = subprocess.Popen(
        command(settings, ["pyspark-shell"], options),
        stdin=subprocess.PIPE,
        env={**os.environ, **added_environment(), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told_in)},
        preexec_fn=_not_for_ctrl_c,
    )
    atexit.register(_let_go, process)
    return Gateway(process, told_in)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """Lets the JVM end, without waiting for it: Python would warn of that."""
    assert process.stdin, "a pipe"
    process.stdin.close()
    warnings.filterwarnings("ignore", f"subprocess {process.pid} is still running", ResourceWarning)


def _not_for_ctrl_c() -> None:
    """Ctrl-C is for the run, which still needs its JVM to end in order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def class_path_of(settings: Mapping[str, str]) -> list[str]:
    """The JARs of a JVM with these settings."""
    extra = settings.get("spark.driver.extraClassPath", "")
    return [*filter(None, extra.split(os.pathsep)), *_spark_jars()]


@cache
def _spark_jars() -> tuple[str, ...]:
    return tuple(sorted(str(jar) for jar in (spark_home() / "jars").glob("*.jar")))


def _identity(part: Path) -> str:
    try:
        stat = part.stat()
    except FileNotFoundError:
        return f"{part} missing"
    return f"{part} {stat.st_size} {int(stat.st_mtime)}"
