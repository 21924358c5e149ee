"""Every side by its name."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.query import Query
from benchmarks.sides import flink, ours, recompute, streaming
from benchmarks.sides.side import Side, Task, Work, everything_is_there

OURS = "ours"


def _ours(
    name: str,
    says: str,
    work: Callable[[Task], Work],
    *,
    need: Callable[[], None] = everything_is_there,
) -> Side:
    return Side(name, says, work, ours.published, need=need)


def _floor_refuses(query: Query) -> str | None:
    return "a trigger or function of its own has no floor" if query.more else None


def _streaming(name: str, says: str, work: Callable[[Task], Work], *, new_process: bool = False) -> Side:
    return Side(
        name,
        says,
        work,
        streaming.published,
        new_process=new_process,
        refuses=streaming.refuses,
        final_only=True,
    )


def _flink(name: str, says: str, work: Callable[[Task], Work]) -> Side:
    return Side(
        name,
        says,
        work,
        flink.published,
        refuses=flink.refuses,
        need=flink.need,
        deliver=flink.deliver,
    )


SIDES = {
    side.name: side
    for side in (
        _ours(OURS, "one run for each file, in a started Spark session", ours.on_spark),
        _ours(
            "ours-cold", "`windowlib run` for each file, from the start of its process to its end", ours.new_process()
        ),
        _ours("ours-sail", "one run for each file, in a started session on Sail", ours.on_sail, need=ours.need_sail),
        _ours(
            "ours-sail-cold",
            "`windowlib run --engine sail` for each file",
            ours.new_process("--engine", "sail"),
            need=ours.need_sail,
        ),
        _streaming("streaming", "one availableNow run for each file, RocksDB", streaming.rocksdb_per_batch),
        _streaming("streaming-hdfs", "the same, state store backed by files", streaming.hdfs_per_batch),
        _streaming("streaming-long", "one query that is never stopped, RocksDB", streaming.rocksdb_one_query),
        _streaming("streaming-long-hdfs", "the same, state store backed by files", streaming.hdfs_one_query),
        _streaming(
            "streaming-cold",
            "a process with one availableNow run for each file",
            streaming.rocksdb_per_batch,
            new_process=True,
        ),
        Side(
            "floor",
            "each file read and aggregated by Spark, nothing kept: what our runs cannot do without",
            ours.floor,
            None,
            refuses=_floor_refuses,
        ),
        Side(
            "duckdb",
            "all files so far recomputed by DuckDB",
            recompute.duckdb,
            recompute.published,
            refuses=recompute.refuses,
            need=recompute.need_duckdb,
        ),
        Side(
            "polars",
            "all files so far recomputed by Polars",
            recompute.polars,
            recompute.published,
            refuses=recompute.refuses,
            need=recompute.need_polars,
        ),
        _flink("flink", "one Flink job, state on the heap, no checkpoints", flink.heap),
        _flink("flink-rocksdb", "the same, state in RocksDB", flink.rocksdb),
    )
}
