"""Any column name works in every role, or is refused with advice. Every file has a column of each name.

Every file here has a column of each of the names, so a name is not only tried in its role: it is also there when the
others are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.clicks import MINUTE_MS, START_MS, arrive, clock
from tests.support.strategies import ALL
from windowlib.definition.definition import Definition, InvalidDefinition, load_definition
from windowlib.definition.rules import RESERVED_KEYS, RESERVED_OUTPUTS
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.source.listing import SourceError
from windowlib.storage.disk import Disk

OURS = [
    *("reason", "arrival", "timestamp_ms", "raw", "file", "bucket", "elements", "window_start_ms", "window_end_ms"),
    *("window_start", "window_end", "batch_id", "timing", "part", "before", "state", "event_time", "event_id", "key"),
    *("results", "touched"),
    *("source_file", "source_row", "readmitted_by", "end_partition", "last_event_ms", "p0_sum", "value", "path"),
    *("_corrupt", "_source_file", "_source_row", "_metadata", "_bucket", "_island", "_repeated", "_first", "_number"),
    *(
        "_timestamp_ms",
        "_arrival",
        "_argument_0",
        "_argument_1",
        "_r_value",
        "_kind",
        "_file",
        "_path",
        "_batch",
        "_key0",
        "_chosen",
    ),
]
STRANGE = [
    *("a.b", "a b", "a`b", 'a"b', "it's", "é 🙂", "select", "{0}", "a;b", "a=b", "a%b", "a/b", "a,b", "(a)", "1", "#"),
]
NAMES = [*OURS, *STRANGE]
ROLES = {"time": "reason", "key": "a`b", "trigger": "_argument_0"}  # in make test, a name in each
SEEN = """
import json

class Seen:
    def process(self, contents, context):
        yield {"seen": json.dumps([value for value in contents])}

    def clear(self, context):
        pass
"""
OTHERS = {name: 1_000 + number for number, name in enumerate(NAMES)}
SCHEMA = pa.schema([("k", pa.string()), ("t", pa.int64()), *((name, pa.int64()) for name in NAMES)])
HEAD = """
name = "named"
watermark = {{ out_of_orderness = "0s" }}
window = {window}
[source]
format = "parquet"
path = "incoming"
max_files_per_run = 1
timestamp_unit = "ms"
{source}
[aggregates]
{aggregates}
"""


def toml(value: Any) -> str:
    """A text, list or table as it stands in TOML, which has JSON's texts."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{toml(name)} = {toml(of)}' for name, of in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def pipeline(
    folder: Path, window: Mapping[str, Any], source: Mapping[str, Any], aggregates: Mapping[str, str]
) -> Definition:
    (folder / "incoming").mkdir(parents=True, exist_ok=True)
    file = folder / "named.toml"
    parts = ["\n".join(f"{toml(name)} = {toml(value)}" for name, value in of.items()) for of in (source, aggregates)]
    file.write_text(HEAD.format(window=toml(window), source=parts[0], aggregates=parts[1]), encoding="utf-8")
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / "named")})


def run(definition: Definition, spark: SparkSession, *files: Sequence[Mapping[str, Any]]) -> None:
    for number, rows in enumerate(files, 1):
        arrive(definition.file.parent, number, [{**OTHERS, **row} for row in rows], SCHEMA)
    advance(definition, lambda: spark, clock=clock, finish=True)


def results(definition: Definition, *columns: str) -> list[tuple[Any, ...]]:
    rows = read_table(definition, "results").to_pylist()
    return sorted(tuple(row[column] for column in columns) for row in rows)


def time_and_id_and_values(spark: SparkSession, folder: Path, name: str) -> None:
    """One column as event time, event id, input of aggregates and of a filter; late, refused, twice, once."""
    column = quoted(name)
    definition = pipeline(
        folder,
        {"type": "session", "gap": "10m"},
        {"key": ["k"], "timestamp": name, "event_id": name},
        {
            "total": f"sum({column})",
            "earliest": f"first({column})",
            "some": f"count(*) filter (where {column} > {START_MS})",
        },
    )

    def event(key: str | None, minute: int) -> dict[str, Any]:
        return {"k": key, "t": -1, name: START_MS + minute * MINUTE_MS}

    first = [event("a", 0), event("a", 1), event("a", 0), event(None, 2), event("b", 30)]
    run(definition, spark, first, [event("a", 3), event("b", 31), event("b", 30)])
    at = {minute: START_MS + minute * MINUTE_MS for minute in (0, 1, 2, 3, 30, 31)}
    assert results(definition, "k", "total", "earliest", "some") == [
        ("a", at[0] + at[1], at[0], 1),
        ("b", at[30] + at[31], at[30], 2),
    ]
    [late] = read_table(definition, "late_events").to_pylist()
    assert (late["k"], late["event_id"], json.loads(late["raw"])) == (
        "a",
        str(at[3]),
        {**OTHERS, "k": "a", "t": -1, name: at[3]},
    )
    refused = read_table(definition, "quarantine").to_pylist()
    assert sorted((row["reason"], json.loads(row["raw"])[name]) for row in refused) == [
        ("duplicate", at[0]),
        ("duplicate", at[30]),
        ("null_key", at[2]),
    ]


def key_and_gap(spark: SparkSession, folder: Path, key: str, gap: str) -> None:
    """One column as key, by another name where it cannot be published under its own; another as the gap."""
    is_taken = key in RESERVED_KEYS or key.startswith("_") or key in STRANGE or key == "p0_sum"
    shown = "renamed" if is_taken else key
    definition = pipeline(
        folder,
        {"type": "session", "gap_column": gap},
        {"key": [shown], "timestamp": "t", **({"rename": {key: shown}} if is_taken else {})},
        {"gaps": f"sum({quoted(gap)})"},
    )

    def event(of: int, minute: int, gap_min: int) -> dict[str, Any]:
        return {"k": None, "t": START_MS + minute * MINUTE_MS, key: of, gap: gap_min * MINUTE_MS}

    run(definition, spark, [event(7, 0, 5), event(7, 4, 9), event(8, 1, 1), event(7, 20, 0)], [event(8, 9, 3)])
    assert [(r[0], r[1], r[2].minute) for r in results(definition, shown, "gaps", "window_end")] == [
        (7, 14 * MINUTE_MS, 13),
        (8, 1 * MINUTE_MS, 2),
        (8, 3 * MINUTE_MS, 12),
    ]
    [refused] = read_table(definition, "quarantine").to_pylist()
    assert (refused["reason"], json.loads(refused["raw"])[shown]) == ("bad_gap", 7)


def compared_by_trigger_and_evictor(spark: SparkSession, folder: Path, name: str, summed: str) -> None:
    """One column for trigger and evictor, and another that the operator sums."""
    window = {
        "type": "global",
        "trigger": {"type": "delta", "of": name, "threshold": 3},
        "evictor": {"type": "delta", "of": name, "threshold": 15},
    }
    aggregates = {"total": f"sum({quoted(summed)})", "n": f"count({quoted(summed)})"}
    definition = pipeline(folder, window, {"key": ["k"], "timestamp": "t"}, aggregates)

    def event(value: int, more: int) -> dict[str, Any]:
        return {"k": "a", "t": START_MS + value, name: value, summed: more}

    run(definition, spark, [event(0, 1), event(1, 20), event(5, 300)], [event(6, 4_000), event(20, 50_000)])
    assert results(definition, "n", "total") == [(2, 54_000), (3, 321)]  # what is 15 or more below 20 has left


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_a_column_name_in_trigger_and_evictor(spark: SparkSession, tmp_path: Path) -> None:
    compared_by_trigger_and_evictor(spark, tmp_path, ROLES["trigger"], "_argument_1")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_every_column_name_in_user_code(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SEEN)
    window = {
        "type": "tumbling_count",
        "size": 2,
        "function": "own:Seen",
        "reads": NAMES,
        "output": {"seen": "string"},
    }
    definition = pipeline(tmp_path, window, {"key": ["k"], "timestamp": "t"}, {})
    run(definition, spark, [{"k": "a", "t": START_MS}], [{"k": "a", "t": START_MS, NAMES[0]: 7}])
    [(seen,)] = results(definition, "seen")
    values = [{name: one[name] for name in NAMES} for one in json.loads(seen)]
    assert values == [OTHERS, {**OTHERS, NAMES[0]: 7}]
    assert all(name.startswith("_windowlib_") for one in json.loads(seen) for name in {*one} - {*NAMES})


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_a_name_as_time_event_id_and_in_aggregates(spark: SparkSession, tmp_path: Path) -> None:
    time_and_id_and_values(spark, tmp_path, ROLES["time"])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("in make test Spark has such names in these roles, and keys are renamed")
def test_a_name_as_key_and_one_as_gap(spark: SparkSession, tmp_path: Path) -> None:
    key_and_gap(spark, tmp_path, ROLES["key"], NAMES[NAMES.index(ROLES["key"]) - 1])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.long("a name in each role, and every name at once, run in `make test`")
@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_name_in_each_role(spark: SparkSession, tmp_path: Path, name: str) -> None:
    time_and_id_and_values(spark, tmp_path / "1", name)
    key_and_gap(spark, tmp_path / "2", name, NAMES[NAMES.index(name) - 1])
    compared_by_trigger_and_evictor(spark, tmp_path / "3", name, NAMES[NAMES.index(name) - 1])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
def test_names_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    if ALL:  # in make test Sail has such names; `_metadata` is Spark's own
        time_and_id_and_values(spark, tmp_path / "1", "timestamp_ms")
    key_and_gap(spark, tmp_path / "2", "_metadata", "reason")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.embedded
def test_every_name_in_one_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    """Every name is summed, filtered by and, if possible, an output; with count windows in `make test-all`."""
    refused = {*RESERVED_OUTPUTS, "p0_sum"}
    outputs = {name: name for name in NAMES if name.isidentifier() and name not in refused}
    whole, some = dict[str, tuple[str, int]](), dict[str, tuple[str, int]]()  # output → its SQL, and what it comes to
    for number, name in enumerate(NAMES):
        column, output = quoted(name), outputs.get(name, f"o{number}")
        whole[output] = f"sum({column})", 2 * OTHERS[name] + 1
        some[f"f{number}" if ALL else output] = f"sum({column}) filter (where {column} <> 1)", 2 * OTHERS[name]
    tumbling, counts = {"type": "tumbling", "size": "10m"}, {"type": "tumbling_count", "size": 3}
    for window, chosen in ((tumbling, whole | some), (counts, whole | some)) if ALL else ((tumbling, some),):
        sql = {output: one for output, (one, _) in chosen.items()}
        definition = pipeline(tmp_path / str(window["type"]), window, {"key": ["k"], "timestamp": "t"}, sql)
        run(definition, spark, [{"k": "a", "t": START_MS}, {"k": "a", "t": START_MS, **dict.fromkeys(NAMES, 1)}],
            [{"k": "a", "t": START_MS}])  # fmt: skip
        [row] = read_table(definition, "results").to_pylist()
        assert {output: row[output] for output in chosen} == {output: total for output, (_, total) in chosen.items()}


@pytest.mark.parametrize("name", sorted(RESERVED_KEYS | {"p0_sum", "_x", "a b", "a.b", "a`b"}))
def test_an_unpublishable_key_names_the_setting_that_renames_it(tmp_path: Path, name: str) -> None:
    window = {"type": "tumbling", "size": "10m"}
    with pytest.raises(InvalidDefinition, match=r"source\.key.*source\.rename"):
        pipeline(tmp_path, window, {"key": [name], "timestamp": "t"}, {"n": "count(*)"})
    renamed = pipeline(tmp_path, window, {"key": ["x"], "timestamp": "t", "rename": {name: "x"}}, {"n": "count(*)"})
    assert renamed.source.in_files("x") == name


@pytest.mark.parametrize("name", sorted(RESERVED_OUTPUTS | {"p0_sum"}))
def test_an_output_named_like_a_published_column_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidDefinition, match=rf"aggregates\.{name}: .*choose another name"):
        pipeline(tmp_path, {"type": "tumbling", "size": "10m"}, {"key": ["k"], "timestamp": "t"}, {name: "count(*)"})


@pytest.mark.parametrize(
    ("columns", "says"),
    [(["K"], "'K', 'k' differ only in case"), (["_windowlib_reason"], "'_windowlib_reason' begins")],
)
def test_columns_that_cannot_be_distinguished_are_refused_by_name(
    tmp_path: Path, columns: list[str], says: str
) -> None:
    from windowlib.batches.planning import plan

    definition = pipeline(
        tmp_path, {"type": "tumbling", "size": "10m"}, {"key": ["k"], "timestamp": "t"}, {"n": "count(*)"}
    )
    schema = pa.schema([("k", pa.string()), ("t", pa.int64()), *((name, pa.int64()) for name in columns)])
    arrive(tmp_path, 1, [], schema)
    with pytest.raises(SourceError, match=says):
        plan(definition, clock)


def test_a_rename_to_an_existing_column_is_refused(tmp_path: Path) -> None:
    from windowlib.batches.planning import plan

    source = {"key": ["channel"], "timestamp": "t", "rename": {"account": "channel"}}
    says = 'source.rename maps "account" to "channel", but a column "channel" already exists'
    window = {"type": "tumbling", "size": "10m"}
    definition = pipeline(tmp_path, window, source, {"n": "count(*)"})
    names = [("account", pa.string()), ("channel", pa.string()), ("t", pa.int64())]
    arrive(tmp_path, 1, [], pa.schema(names))
    with pytest.raises(SourceError, match=says):
        plan(definition, clock)
    swapped = {**source, "rename": {"account": "channel", "channel": "account"}}
    assert plan(pipeline(tmp_path, window, swapped, {"n": "count(*)"}), clock)
