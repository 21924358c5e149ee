"""Spark settings of tests: compiling costs a test of a few rows more than it saves.

Java's optimising compiler costs tests a quarter of their processor time. Spark's own, which makes a Java class of each
stage, costs another fifth; `make test-all` has it, as runs have, and so has every process that tests start as users do.
"""

from __future__ import annotations

from tests.support.strategies import ALL
from windowlib.engines.jvm import QUICK_COMPILER
from windowlib.engines.spark import DEFAULTS

_OPTIONS = "spark.driver.extraJavaOptions"
_INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false"}
QUICK = {
    _OPTIONS: f"{DEFAULTS[_OPTIONS]} {QUICK_COMPILER}",
    **({} if ALL else _INTERPRETED),
}
