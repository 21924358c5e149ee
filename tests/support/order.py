"""The order in which the files of tests are handed to several workers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
# Files whose tests take longest, the longest first: started last, one of them would run while the other cores wait.
LONGEST = (
    "docs/test_pages.py", "airflow/test_airflow_run.py", "source/test_text.py",
    "storage/test_faults.py", "runs/test_object_stores.py",
    "world/random_pipelines/test_random_pipelines.py", "world/schedules/test_schedules.py",
    "publication/test_readers.py", "batches/test_added.py", "reruns/test_rerun_cases.py",
    "world/stopped/test_stopped.py", "pages/test_pages.py",
    "world/growth/test_growth.py", "engines/test_matrix.py", "runs/test_together.py", "reruns/test_read_otherwise.py",
    "batches/test_general_pipeline.py", "decisions/test_operations.py", "inspection/test_explain_window.py",
    "engines/test_connect.py", "engines/test_two_engines.py", "packaging/test_installed.py",
)  # fmt: skip


def longest_first(items: list[pytest.Item]) -> None:
    """The files of `LONGEST`, then those with many tests; the tests of a file as they were."""
    place = {HERE / file: number for number, file in enumerate(LONGEST)}
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (place.get(item.path, len(place)), -tests[item.path], item.path))
