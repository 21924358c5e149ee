"""Errors for a definition's `spark.master` or `spark.conf` that Spark refuses when a session starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from windowlib.engines.connect import Unreachable
from windowlib.engines.jvm import JvmEnded
from windowlib.engines.jvm_output import gist
from windowlib.model.errors import InvalidSpec, WindowError


@contextmanager
def refusals_named(file: Path, master: str, conf: Mapping[str, str]) -> Iterator[None]:
    """Turns the block's error about a refused `spark.master` or `spark.conf` into an error that names the definition.

    Raises `InvalidSpec` if Spark refuses a setting, `Unreachable` if the cluster refuses the session.
    """
    try:
        yield
    except JvmEnded as error:
        raise InvalidSpec(_sentence(file, master, conf, error.why)) from error
    except WindowError:
        raise
    except Exception as error:
        why = gist(str(error)) if type(error).__module__.startswith(("pyspark.", "py4j.")) else None
        if why is None or (master.startswith("local") and not _blamed(conf, str(error))):
            raise
        kind = InvalidSpec if _blamed(conf, str(error)) else Unreachable
        raise kind(_sentence(file, master, conf, why)) from error


def _sentence(file: Path, master: str, conf: Mapping[str, str], reason: str) -> str:
    if key := _blamed(conf, reason):
        return f'{file}: spark.conf has "{key}" = "{conf[key]}", with which Spark does not start: {reason}'
    return f'{file}: Spark does not start with spark.master = "{master}": {reason}'


def _blamed(conf: Mapping[str, str], reason: str) -> str | None:
    """Key of the setting that an error of Spark or Java names, else of a setting whose value the error repeats.

    >>> _blamed({"spark.a": "true", "spark.driver.memory": "many"}, "Invalid maximum heap size: -Xmxmany")
    'spark.driver.memory'
    """
    named = (key for key in conf if key in reason)
    repeated = (key for key, value in conf.items() if value not in ("", "true", "false") and value in reason)
    return next(named, None) or next(repeated, None)
