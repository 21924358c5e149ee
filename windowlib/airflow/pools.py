"""Airflow's pools, which limit the number of concurrent tasks of a kind.

A run that hangs holds one slot until `batch_timeout` ends it, so each kind of engine has a pool with several slots.
Tasks that compute nothing (plan, report) have their own pool: they wait neither for runs nor for maintenance. A report,
which ends a run, has priority over a plan, which begins one (`FIRST`). A task whose pool does not exist waits without a
message, so create all pools before the DAGs. `python -P -m windowlib.airflow.pools` prints them for
`airflow pools import`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from windowlib.definition.toml.masters import EnginePlace


@dataclass(frozen=True, slots=True)
class Pool:
    """Pool of Airflow. The numbers of slots fit a machine with two cores."""

    name: str
    slots: int
    holds: str


LIGHT = Pool("windowlib", 4, "windowlib: tasks that compute nothing")
SPARK = Pool("windowlib_spark", 2, "windowlib: runs that start a Spark of their own")
SAIL = Pool("windowlib_sail", 2, "windowlib: runs on Sail, in one process")
REMOTE = Pool("windowlib_remote", 4, "windowlib: runs on a Spark Connect server or a cluster")
RERUNS = Pool("windowlib_reruns", 2, "windowlib: previews and reruns")
MAINTENANCE = Pool("windowlib_maintenance", 2, "windowlib: maintenance of tables")
POOLS = (LIGHT, SPARK, SAIL, REMOTE, RERUNS, MAINTENANCE)

BY_WEIGHT = {"weight_rule": "absolute"}  # by default Airflow adds the weights of all later tasks
FIRST = {"priority_weight": 10, **BY_WEIGHT}


def pool_of(place: EnginePlace) -> Pool:
    """Pool for the runs of a pipeline."""
    match place:
        case EnginePlace.PROCESS:
            return SAIL
        case EnginePlace.LOCAL | EnginePlace.LOCAL_CLUSTER:
            return SPARK
    return REMOTE


def as_json() -> dict[str, dict[str, object]]:
    """All pools as `airflow pools import` reads them."""
    return {pool.name: {"slots": pool.slots, "description": pool.holds, "include_deferred": False} for pool in POOLS}


if __name__ == "__main__":
    print(json.dumps(as_json(), indent=2))
