"""The order in which the files of tests are handed to several workers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Files whose tests take longest, the longest first: started last, one of them would run while the other cores wait.
LONGEST = (
    "schedules/test_schedules.py", "random_pipelines/test_random_pipelines.py", "growth/test_growth.py",
    "docs/test_pages.py", "airflow/test_airflow_run.py",
    "engines/test_warm.py", "plans/test_conformance.py", "engines/test_two_engines.py", "packaging/test_installed.py",
    "runs/test_together.py", "golden/test_golden.py", "runs/test_power_loss.py", "batches/test_added.py",
    "mutants/test_mutations.py", "model/test_conformance.py", "plans/test_tasks.py", "engines/test_matrix.py",
    "runs/test_full_disk.py", "soak/test_soak.py", "plans/test_general_plan.py", "docs/test_web_analytics.py",
)  # fmt: skip


def longest_first(items: list[pytest.Item]) -> None:
    """The files of `LONGEST`, then those with many tests; the tests of a file as they were."""
    place = {HERE / file: number for number, file in enumerate(LONGEST)}
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (place.get(item.path, len(place)), -tests[item.path], item.path))
