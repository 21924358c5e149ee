"""JARs, resolved once into `.jars`: `python -m jobs.setup_jars`.

Delta's, for Spark's own reading and maintenance of Delta tables; and a local file system for Hadoop that sets
permissions by itself, where Hadoop's starts a `chmod` process for every file and folder that Spark writes. Spark would
resolve JARs at every start (`spark.jars.packages`) and wait for a repository that may not answer; here its bundled Ivy
does so once, with a cache of its own inside the project, and leaves the JARs that Spark does not bring itself.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Sequence
from importlib.metadata import distribution, version
from pathlib import Path

from jobs.setup_java import find_java
from jobs.spark import JARS
from windowlib.errors import WindowError


class MissingJars(WindowError):
    """The JARs could not be resolved."""


def delta_module() -> tuple[str, str, str]:
    """Organisation, name and revision of Delta for Spark, as the installed Python packages say."""
    spark = ".".join(version("pyspark").split(".")[:2])
    return "io.delta", f"delta-spark_{spark}_2.13", version("delta-spark")


LOCAL_FILES = ("com.globalmentor", "hadoop-bare-naked-local-fs", "0.1.0")


def resolve(folder: Path = JARS) -> list[Path]:
    """The JARs in `folder`, fetched when one we name is not there yet. Raises `MissingJars`, `UnusableJava`."""
    named = [folder / f"{name}-{revision}.jar" for _, name, revision in (delta_module(), LOCAL_FILES)]
    if not all(jar.exists() for jar in named):
        bundled = {artifact(jar.name) for jar in _bundled().glob("*.jar")}
        # The local file system needs Hadoop, which Spark brings.
        fetch(folder, [(delta_module(), ()), (LOCAL_FILES, ("-notransitive",))], without=bundled)
    return sorted(folder.glob("*.jar"))


def artifact(jar: str) -> str:
    """A JAR's name without its version.

    >>> artifact("delta-spark_4.2_2.13-4.4.0.jar"), artifact("zstd-jni-1.5.7-3.jar")
    ('delta-spark_4.2_2.13', 'zstd-jni')
    """
    return re.sub(r"-\d[\w.-]*\.jar$", "", jar)


Module = tuple[str, str, str]


def fetch(
    folder: Path, modules: Sequence[tuple[Module, Sequence[str]]], *, without: Collection[str] = frozenset()
) -> None:
    """Modules (with options of Ivy's) and all they need into `folder`, all at once; but for the artifacts `without`."""
    work = folder.with_name(folder.name + ".part")
    for old in (folder, work):
        shutil.rmtree(old, ignore_errors=True)
    ivy = next(_bundled().glob("ivy-*.jar"))
    for module, options in modules:
        _run_ivy(ivy, work, module, *options)
    _keep_new(work / "new", (work / "all").glob("*.jar"), without)
    (work / "new").rename(folder)
    shutil.rmtree(work)


def _bundled() -> Path:
    """The folder of the JARs that Spark brings."""
    return Path(str(distribution("pyspark").locate_file("pyspark/jars")))


def _run_ivy(ivy: Path, work: Path, module: Module, *options: str) -> None:
    command = [find_java(), f"-Divy.default.ivy.user.dir={work / 'ivy'}", "-jar", str(ivy), "-warn"]
    command += ["-dependency", *module, *options, "-confs", "default", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{work}/all/[artifact]-[revision](-[classifier]).[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MissingJars(
            f"could not fetch {':'.join(module)}: need a connection to a Maven repository once; "
            f"check the network (proxy: JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=…) and try again.\n"
            f"Ivy said: {_last_lines(done.stdout + done.stderr)}"
        )


def _keep_new(folder: Path, jars: Iterable[Path], bundled: Collection[str]) -> None:
    folder.mkdir()
    for jar in jars:
        if artifact(jar.name) not in bundled:
            jar.rename(folder / jar.name)


def _last_lines(text: str, count: int = 8) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip(" .\t:")]
    return "\n  ".join(lines[-count:])


if __name__ == "__main__":
    try:
        print(f"{len(resolve())} JARs in {JARS}")
    except WindowError as error:
        sys.exit(str(error))
