"""Tables that stay open show what everybody commits, each thread at its own pace."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import Schema

from jobs import delta, opened

SCHEMA = Schema.from_arrow(pa.schema([("number", pa.int64())]))


def test_commits_of_others_are_seen(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    assert delta.version(folder) is None
    delta.create(folder, SCHEMA)
    assert delta.version(folder) == 0
    thread = threading.Thread(target=delta.append_rows, args=(folder, 0, [{"number": 1}]))
    thread.start()
    thread.join()
    assert delta.version(folder) == 1
    assert [file.rows for file in delta.files(folder, 1)] == [1]
    assert delta.files(folder, 0) == []


def test_whoever_prepared_on_an_older_version_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    delta.create(folder, SCHEMA)
    delta.append_rows(folder, 0, [{"number": 1}])
    with pytest.raises(delta.Conflict):
        delta.append_rows(folder, 0, [{"number": 2}])
    assert delta.version(folder) == 1


def test_a_table_made_anew_is_another_table(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    delta.create(folder, SCHEMA)
    delta.append_rows(folder, 0, [{"number": 1}])
    assert delta.version(folder) == 1
    shutil.rmtree(folder)
    assert delta.version(folder) is None
    delta.create(folder, SCHEMA)
    assert delta.version(folder) == 0


def test_a_log_whose_beginning_was_cleaned_up_is_still_read(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    delta.create(folder, SCHEMA)
    delta.append_rows(folder, 0, [{"number": 1}])
    table = opened.newest(folder)
    assert table is not None
    table.create_checkpoint()
    (folder / "_delta_log" / "00000000000000000000.json").unlink()
    assert delta.version(folder) == 1
    assert [file.rows for file in delta.files(folder, 1)] == [1]
