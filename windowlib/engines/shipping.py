"""Shipping of the package `windowlib` to the Python workers of a cluster, which need not have it installed.

Only plans that run the operator in Python (`windowlib.plans.general.plan`) have such workers. The workers also need
pyarrow and PySpark's requirements, which the cluster's own Python must have.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import windowlib

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ship(spark: SparkSession) -> None:
    """Ships the package `windowlib` to the workers of a session, once per session."""
    if spark.conf.get(_SHIPPED, None) is None:
        spark.addArtifacts(str(package()), pyfile=True)
        spark.conf.set(_SHIPPED, "true")


_SHIPPED = "spark.windowlib.shipped"


@cache
def package() -> Path:
    """Builds a zip file of `windowlib`, which exists as long as this process. Returns its path."""
    folder = Path(tempfile.mkdtemp(prefix="windowlib-package-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    root = Path(windowlib.__file__).parent
    with zipfile.ZipFile(folder / "windowlib.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*.py")):
            archive.write(file, file.relative_to(root.parent))
    return folder / "windowlib.zip"
