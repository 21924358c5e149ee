"""Spark as tests start it: without Java's optimising compiler, which costs them a quarter of their processor time."""

from __future__ import annotations

from windowlib.engines.jvm import QUICK_COMPILER
from windowlib.engines.spark import DEFAULTS

_OPTIONS = "spark.driver.extraJavaOptions"
QUICK = {_OPTIONS: f"{DEFAULTS[_OPTIONS]} {QUICK_COMPILER}"}
