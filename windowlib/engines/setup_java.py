"""Search for a Java that Spark can use; also a command, `python -P -m windowlib.engines.setup_java`.

This module needs only the standard library. Like Spark, it uses `$JAVA_HOME/bin/java` or, without JAVA_HOME, the `java`
on PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

from windowlib.model.errors import WindowError

OLDEST = 17
ADVICE = (
    f"install a JDK {OLDEST} or newer (Debian, Ubuntu: apt install openjdk-{OLDEST}-jre-headless), or set JAVA_HOME"
)


class UnusableJava(WindowError):
    """Java is missing, or too old for Spark."""


def look_for_java() -> tuple[str | None, str]:
    """Returns the path of the Java that Spark would use, or None, and a description of what is missing."""
    home = os.environ.get("JAVA_HOME")
    missing = f"no bin/java in JAVA_HOME ({home})" if home else "no java on PATH"
    return shutil.which(os.path.join(home, "bin", "java") if home else "java"), missing


def find_java() -> str:
    """Path of the Java that Spark will use. Raises `UnusableJava` if there is no Java, or if it is too old."""
    java, missing = look_for_java()
    if java is None:
        raise UnusableJava(f"found {missing}; need Java {OLDEST} or newer: {ADVICE}")
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = java_version(printed.stderr) if printed.returncode == 0 else None
    if version is None:
        raise UnusableJava(f"{java} does not print its version; need Java {OLDEST} or newer: {ADVICE}")
    if version < OLDEST:
        raise UnusableJava(f"{java} is Java {version}; need Java {OLDEST} or newer: {ADVICE}")
    return java


def java_version(printed: str) -> int | None:
    """Parses Java's major version from the output of `java -version`. Java 8 calls itself 1.8.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('java version "1.8.0_402"')
    (17, 8)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', printed)
    return int(match[1]) if match else None


if __name__ == "__main__":
    try:
        find_java()
    except UnusableJava as error:
        sys.exit(f"{error}")
