"""Rows of windows that a batch changed: their values before the batch, and sessions that grew.

Functions take and return Arrow tables. `identity` are the columns that tell results apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowlib.contract.change import ADDED, CHANGED, REMOVED
from windowlib.pages.counts.hour_counts import times_ms

START, END, CAUSE, FIRING = "window_start", "window_end", "cause", "firing"
EMPTY = pa.table({"side": pa.array([], pa.int64()), "batch_id": pa.array([], pa.int64())})


def newest_firings(added: pa.Table, changed: pa.Table, identity: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Rows that the batch left: of a result that fired several times in the batch, the last firing.

    Only batches with early firings fire a result several times.
    """
    last = changed.group_by([*identity]).aggregate([(FIRING, "max")]).rename_columns([*identity, FIRING])
    newest = changed.join(last, [*identity, FIRING], join_type="left semi")
    return added.join(last, [*identity], join_type="left anti"), newest


def values_before(published: pa.Table, changed: pa.Table, identity: Sequence[str]) -> pa.Table:
    """Rows of `published` with a result in `changed`, each with the cause of its change."""
    near = published.filter(pc.is_in(published[END], pc.unique(changed[END])))
    return near.join(changed.select([*identity, CAUSE]), [*identity], join_type="inner")


def extended(added: pa.Table, removed: pa.Table, keys: Sequence[str]) -> tuple[pa.Array, pa.Table, pa.Table]:
    """Finds sessions that grew: added windows that overlap removed windows of their key.

    Returns a mask of `added`, the removed windows in whose place they are, with the cause of the addition, and the
    other removed windows.

    >>> def sessions(*rows):
    ...     user, start, end, cause = zip(*rows)
    ...     times = [pa.array(ms, pa.timestamp("ms")) for ms in (start, end)]
    ...     return pa.table({"user": user, START: times[0], END: times[1], CAUSE: cause})
    >>> added = sessions(("u1", 0, 9, "merge"), ("u2", 0, 9, "firing"))
    >>> removed = sessions(("u1", 0, 4, "merge"), ("u1", 9, 12, "rerun"), ("u3", 0, 4, "rerun"))
    >>> grown, taken, gone = extended(added, removed, ["user"])
    >>> grown.to_pylist(), taken[CAUSE].to_pylist(), gone[CAUSE].to_pylist()
    ([True, False], ['merge'], ['rerun', 'rerun'])
    """
    near = pc.is_in(added[keys[0]], pc.unique(removed[keys[0]])) if keys else pa.array([True] * len(added))
    places = np.flatnonzero(near.to_numpy(zero_copy_only=False))
    by_key: dict[tuple[object, ...], list[tuple[int, int, int]]] = {}
    for place, (start_ms, end_ms, *key) in zip(places, _spans(added.take(pa.array(places)), keys), strict=True):
        by_key.setdefault(tuple(key), []).append((start_ms, end_ms, int(place)))
    grown, causes = np.zeros(len(added), bool), [None] * len(removed)
    named = added[CAUSE].to_pylist()
    for old, (start_ms, end_ms, *key) in enumerate(_spans(removed, keys)):
        for new_start_ms, new_end_ms, new in by_key.get(tuple(key), ()):
            if new_start_ms < end_ms and start_ms < new_end_ms:
                grown[new], causes[old] = True, named[new]
                break
    cause = pa.array(causes, pa.string())
    is_replaced = cause.is_valid()
    replaced = removed.set_column(removed.column_names.index(CAUSE), CAUSE, cause).filter(is_replaced)
    return pa.array(grown), replaced, removed.filter(pc.invert(is_replaced))


def _spans(rows: pa.Table, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    columns = [times_ms(rows[name]).tolist() for name in (START, END)]
    return [*zip(*columns, *(rows[name].to_pylist() for name in keys), strict=True)]


def by_kind(old: pa.Table, new: pa.Table, identity: Sequence[str]) -> dict[str, pa.Table]:
    """Results that two sets of rows do not share: added, changed and removed.

    A result has changed if another batch wrote it.
    """
    sides = [
        rows.append_column("side", pa.array([side] * len(rows), pa.int64())) for side, rows in enumerate((old, new))
    ]
    both = pa.concat_tables([rows.select([*identity, "side", "batch_id"]) for rows in sides if len(rows)] or [EMPTY])
    wanted = [(name, extreme) for name in ("side", "batch_id") for extreme in ("min", "max")]
    results = both.group_by([*identity]).aggregate(wanted)
    is_old, is_new = pc.equal(results["side_max"], 0), pc.equal(results["side_min"], 1)
    rewritten = pc.not_equal(results["batch_id_min"], results["batch_id_max"])
    changed = pc.and_(rewritten, pc.invert(pc.or_(is_old, is_new)))
    return {ADDED: results.filter(is_new), CHANGED: results.filter(changed), REMOVED: results.filter(is_old)}
