"""Modules of the core that once lay in `windowlib` itself: authors' code and stored objects still name them so."""

from __future__ import annotations

import base64
import pickle
import subprocess
import sys
from importlib import import_module

import pytest

from windowlib import OperatorState, Session, Sum, Watermark, WindowSpec, run

NAMED = {
    "aggregates": "Aggregate",
    "assigners": "Assigner",
    "elements": "Element",
    "errors": "InvalidSpec",
    "evictors": "CountEvictor",
    "functions": "ProcessFunction",
    "lateness": "cleanup_time_ms",
    "merging": "MergingWindowSet",
    "operator": "run",
    "spec": "WindowSpec",
    "state": "OperatorState",
    "timed_triggers": "ProcessingTimeoutTrigger",
    "triggers": "CountTrigger",
    "watermark": "MIN_WATERMARK",
    "windows": "TimeWindow",
}
AUTHORS_CODE = """
import windowlib.triggers
from windowlib.assigners import Tumbling
from windowlib.triggers import CountTrigger, Trigger, TriggerResult

assert windowlib.triggers.CountTrigger is CountTrigger
assert CountTrigger.__module__ == "windowlib.model.triggers"
print(Tumbling(size_ms=5).assign(7), TriggerResult.FIRE)
"""
# (spec, state), pickled with the core in `windowlib`: sessions of 30 ms, and ann's from 10 to 65 with a sum of 7.
PICKLED = (
    "gASVFgIAAAAAAACMDndpbmRvd2xpYi5zcGVjlIwKV2luZG93U3BlY5STlCmBlF2UKIwTd2luZG93bGliLmFzc2lnbmVyc5SMB1Nlc3Npb26Uk5Qp"
    "gZRdlEseYWKMFHdpbmRvd2xpYi5hZ2dyZWdhdGVzlIwDU3VtlJOUKYGUXZSMBXByaWNllGFiTk5LPE6MBWV2ZW50lGVijA93aW5kb3dsaWIuc3Rh"
    "dGWUjA1PcGVyYXRvclN0YXRllJOUKYGUTn2UKIwEa2V5c5R9lIwDYW5ulGgRjAhLZXlTdGF0ZZSTlCmBlE59lCiMB3dpbmRvd3OUjBF3aW5kb3ds"
    "aWIubWVyZ2luZ5SMEE1lcmdpbmdXaW5kb3dTZXSUk5QpgZROfZSMDXN0YXRlX3dpbmRvd3OUfZSMEXdpbmRvd2xpYi53aW5kb3dzlIwKVGltZVdp"
    "bmRvd5STlEsKS0GGlIGUaCdLCksohpSBlHNzhpRijAhjb250ZW50c5R9lGgrSwdzjA50cmlnZ2VyX3N0YXRlc5R9lGgpfZRzjA13aW5kb3dfc3Rh"
    "dGVzlH2UjAlrZXlfc3RhdGWUfZSMDGV2ZW50X3RpbWVyc5SPlChLQGgphpRLfGgphpSQjBFwcm9jZXNzaW5nX3RpbWVyc5SPlHWGlGJzjAx3YXRl"
    "cm1hcmtfbXOUSw+MEnByb2Nlc3NpbmdfdGltZV9tc5RLAHWGlGKGlC4="
)


@pytest.mark.parametrize(("module", "name"), NAMED.items())
def test_a_module_under_its_old_name_is_the_one_of_the_model(module: str, name: str) -> None:
    old, new = import_module(f"windowlib.{module}"), import_module(f"windowlib.model.{module}")
    assert old is new
    assert hasattr(old, name)


def test_an_authors_code_imports_them_first() -> None:
    """In a process that has imported nothing else of ours."""
    done = subprocess.run([sys.executable, "-P", "-c", AUTHORS_CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[TimeWindow(start_ms=5, end_ms=10)] TriggerResult.FIRE"


def test_objects_pickled_before_go_on() -> None:
    spec, state = pickle.loads(base64.b64decode(PICKLED))
    assert spec == WindowSpec(Session(gap_ms=30), Sum(of="price"), allowed_lateness_ms=60)
    assert isinstance(state, OperatorState)
    [firing] = run(spec, state, [Watermark(79)])
    assert (firing.key, firing.window.start_ms, firing.window.end_ms, firing.result) == ("ann", 10, 65, 7)
