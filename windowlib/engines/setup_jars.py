"""Download of the locked JARs with Spark's own Ivy, and a check of each JAR by its sha256.

With `spark.jars.packages`, Spark itself would resolve JARs at every start, and wait for a repository that may not
answer. Ivy uses the public Maven repository, or the repositories of an Ivy settings file (a mirror). All JARs are
checked before the first is moved to the folder.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from xml.sax.saxutils import quoteattr

from windowlib.engines.jars import Jar, MissingJars, check, present
from windowlib.engines.setup_java import find_java


def fetch(folder: Path, jars: Sequence[Jar], ivy_settings: Path | None = None) -> bool:
    """Fetches the JARs into the folder. Returns true if a JAR was missing. If all JARs exist, only checks them.

    Raises `UnusableJava`. Raises `MissingJars` if a JAR cannot be fetched, or if its content differs from the lock.
    """
    if present(folder, jars):
        check(folder, jars)
        return False
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetched-", dir=folder) as work:  # on the folder's file system
        fetched = Path(work) / "jars"
        _run_ivy(Path(work), fetched, jars, ivy_settings)
        check(fetched, jars)
        for jar in jars:
            (fetched / jar.file).replace(folder / jar.file)
    return True


def _run_ivy(work: Path, fetched: Path, jars: Sequence[Jar], settings: Path | None) -> None:
    module = work / "ivy.xml"
    module.write_text(_ivy_module(jars), encoding="utf-8")
    command = [find_java(), f"-Divy.default.ivy.user.dir={work / 'ivy'}", "-jar", str(_ivy()), "-warn"]
    command += ["-settings", str(settings)] if settings else []
    command += ["-ivy", str(module), "-confs", "default", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{fetched}/[artifact]-[revision].[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MissingJars(
            "could not fetch the JARs: need a connection to a Maven repository once; check the network (a proxy:"
            " JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=…; a mirror: --ivy-settings) and try again.\n"
            f"Ivy said: {_last_lines(done.stdout + done.stderr)}"
        )


def _ivy_module(jars: Sequence[Jar]) -> str:
    """Ivy module file that requires these JARs, without their dependencies."""
    wanted = "\n".join(
        f"<dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.name)} rev={quoteattr(jar.version)}"
        ' conf="default->master" transitive="false"/>'
        for jar in jars
    )
    return f"""<ivy-module version="2.0">
<info organisation="windowlib" module="jars"/>
<configurations><conf name="default"/></configurations>
<dependencies>
{wanted}
</dependencies>
</ivy-module>"""


def _ivy() -> Path:
    """Path of Ivy's JAR, which PySpark includes. Raises `MissingJars` without PySpark's JARs."""
    try:
        bundled = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
        return next(bundled.glob("ivy-*.jar"))
    except (PackageNotFoundError, StopIteration) as error:
        raise MissingJars("found no PySpark with its JARs: pip install 'windowlib[spark]'") from error


def _last_lines(text: str, count: int = 8) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip(" .\t:")]
    return "\n  ".join(lines[-count:])
