"""What a figure depends on apart from the code: when and where it was measured, with which versions."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Collection
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from benchmarks.sides.flink import VERSION as FLINK

PACKAGES = {"windowlib": "windowlib", "Spark": "pyspark", "Delta": "delta-spark", "deltalake": "deltalake"}
OF_SIDES = {"duckdb": ("DuckDB", "duckdb"), "polars": ("Polars", "polars")}


def where(sides: Collection[str]) -> str:
    """One line: date, machine, versions of everything that was at work."""
    packages = {**PACKAGES, **dict(OF_SIDES[side] for side in sides if side in OF_SIDES)}
    memory = f"{psutil.virtual_memory().total / 2**30:.0f} GiB"
    versions = [f"Python {platform.python_version()}", *(f"{name} {installed(of)}" for name, of in packages.items())]
    if any(side.startswith("flink") for side in sides):
        versions.append(f"Flink {FLINK}")
    now = datetime.now(UTC)
    return f"{now:%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores ({processor()}), {memory}; {', '.join(versions)}"


def installed(package: str) -> str:
    """The version of a package; its absence in words."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def processor() -> str:
    """The processor's name, where Linux reports it."""
    cpuinfo = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else []
    return names[0] if names else platform.machine()
