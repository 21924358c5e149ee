"""`windowlib forget`: erases a key from all that a pipeline holds, and from all that it will read.

    claim -> search -> row in `erasures` -> files next to the tables -> one batch, prepared and rolled forward

Once the row exists, no batch reads the key's events again, so nothing erased comes back after a kill. If the command is
killed before its batch is prepared, run it again. If it is killed later, the next run publishes the batch. Old files
contain the key until `windowlib maintain` deletes the files of older cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from windowlib.batches.may_run import check_fingerprint, way_on
from windowlib.batches.plan_time import check_clock
from windowlib.batches.planning import ledger_of
from windowlib.contract.record_tables import PREVIEWS
from windowlib.contract.result_tables import RESULT_CHANGES
from windowlib.contract.tables import COMMIT_ORDER, SOURCE_FILES
from windowlib.decisions.decision_batch import DecisionBatch, discarded_unless_fixed, publish_decision
from windowlib.definition.commands import WHY, to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import utc
from windowlib.delta.data_files import DataFile
from windowlib.erasure import records as outside
from windowlib.erasure import tables as of_tables
from windowlib.erasure.certificates import Certificate, certificates, certified
from windowlib.erasure.source import SourceHoldings, Target, source_holdings
from windowlib.erasure.tables import ErasureQuery, TableErasure
from windowlib.erasure.texts import Mention
from windowlib.inspection.lineage.cuts import cut
from windowlib.ledger import erasures, migration
from windowlib.ledger import maintenances as maintained
from windowlib.ledger.decision import Decision
from windowlib.ledger.erasures import Erasure
from windowlib.ledger.history import commits_of
from windowlib.ledger.ledger import Clock, Ledger, wall_clock_ms
from windowlib.ledger.rows import Commit, LedgerState
from windowlib.maintenance.maintain import maintain
from windowlib.migrations.batch import newest_snapshot
from windowlib.migrations.files import PipelineSnapshot
from windowlib.model.errors import WindowError
from windowlib.plans.erased import is_hashable
from windowlib.publication.damage import losses_named
from windowlib.publication.key import Key, check_key, key_of
from windowlib.publication.start_versions import COUNTED
from windowlib.runs.operation import HeldPipeline, Note, Settlement, held, silent
from windowlib.source import marker
from windowlib.source.columns.column_types import kind_of
from windowlib.source.location import check_place
from windowlib.storage import refusals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GetSpark = Callable[[], "SparkSession"]
BY_A_WRONG_CLOCK = "Nothing was erased: the erasure would also cover all future events up to that time"


class ForgetRefused(WindowError):
    """The key cannot be erased, or not yet. Nothing was changed."""


class NothingToForget(WindowError, LookupError):
    """Neither the tables nor the source hold the key."""


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """Request to erase a key: its values as strings, the requester, the reason and the clock.

    With `now`, deletes the older cuts at once, and writes no removal rows for consumers of `result_changes`.
    """

    key: Sequence[str]
    who: str = ""
    reason: str = ""
    now: bool = False
    clock: Clock = wall_clock_ms
    note: Note = silent


@dataclass(frozen=True, slots=True)
class ErasureForecast:
    """Effect that an erasure would have.

    `removed` counts rows by table, and files. `source` counts the key's rows by source file. `cuts_lost` lists the
    batches whose cuts would be deleted. `dry_run` is True if only the forecast was requested.
    """

    removed: Mapping[str, int]
    source: Mapping[str, int]
    not_looked_at: Sequence[str]
    cuts_lost: Sequence[int]
    dry_run: bool = True


# -- search ------------------------------------------------------------------------------------------------------------


def forecast(definition: Definition, spark: GetSpark, request: ForgetRequest) -> ErasureForecast:
    """Effect that `forget` would have. Changes nothing. Raises as `forget` does."""
    ledger = ledger_of(definition, request.clock)
    state = ledger.state()
    key = _key(definition, ledger, state, request)
    assert state.commit is not None, "`_key` raises where no batch is committed"
    here = PipelineSnapshot(ledger.tables, state.commit.versions)
    looked = _look(_Place(definition, here, state.commit), key, spark, request, None)
    return ErasureForecast(
        looked.removed, looked.kept.rows, looked.kept.not_looked_at, _cuts(ledger) if request.now else ()
    )


def _key(definition: Definition, ledger: Ledger, state: LedgerState, request: ForgetRequest) -> Key:
    """The requested key. Raises if the key cannot be erased now, or if the clock is wrong."""
    if not definition.source.key:
        raise ForgetRefused(f"{definition.name} has no key column: all its events share the same windows")
    check_key(definition.source.key, request.key)
    check_fingerprint(definition, state.commit)
    tables = cut(definition)  # raises if no batch is committed
    check_place(definition.source, definition.store, state.commit)
    if (schema := tables.keyed_schema()) is None:
        raise NothingToForget(f"{definition.name} has no window yet, so no table holds a key")
    key = key_of(definition.source.key, request.key, schema)
    if odd := [f"{name} is {kind}" for name, kind in _kinds(key) if not is_hashable(kind)]:
        raise ForgetRefused(f"keys of this type cannot be erased: {odd[0]}, without a unique string form")
    if Mention.of(key).is_in(request.reason):
        raise ForgetRefused("the reason contains the key, and reasons are stored: give the number of a request")
    _check_rests(definition.file, ledger, state)
    check_clock(definition.file, request.clock(), state, refused=BY_A_WRONG_CLOCK)
    return key


def _kinds(key: Key) -> Iterator[tuple[str, str]]:
    return ((name, kind_of(kind)) for name, kind in zip(key.columns, key.types, strict=True))


def _check_rests(file: Path, ledger: Ledger, state: LedgerState) -> None:
    """Raises `ForgetRefused` if a batch is unfinished or a migration can be undone: both may hold the key."""
    if done := migration.switched(ledger):
        raise ForgetRefused(
            f"the migration of batch {done[0]} can still be undone, and its old tables hold the key. First confirm the"
            f" migration with `{to_paste('migrate', file, '--finish')}`, or undo the migration with"
            f" `{to_paste('migrate', file, '--undo', *WHY)}`"
        )
    if state.plan and (state.prepared is None or state.is_refused):
        raise ForgetRefused(
            f"batch {state.plan.batch_id} is not finished, and may hold the key: {way_on(file, state)}."
            " Then run forget again"
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """Places to search: the pipeline's tables in the snapshot `here`, and its source as of `commit`."""

    definition: Definition
    here: PipelineSnapshot
    commit: Commit


@dataclass(frozen=True, slots=True)
class _Looked:
    """Occurrences of a key: in published tables (`erased`), in other records (`others`), in the source (`kept`)."""

    here: PipelineSnapshot
    target: Target
    erased: Mapping[str, TableErasure]
    others: Mapping[str, int]
    kept: SourceHoldings

    @property
    def removed(self) -> dict[str, int]:
        """Number of removed rows by table, and of removed files."""
        return {**{name: erasure.count for name, erasure in self.erased.items()}, **self.others}


def _look(place: _Place, key: Key, spark: GetSpark, request: ForgetRequest, attempt: str | None) -> _Looked:
    """Searches for the key. With an `attempt`, writes the new files without the key. Raises `NothingToForget`."""
    here, tables = place.here, place.here.tables
    secret = erasures.secret_of(erasures.erasures(tables.store))
    target = Target(key, secret, max(request.clock(), _newest_ms(here)))
    kept = source_holdings(place.definition, tables, place.commit, target, spark())
    others = outside.find(tables, key, remove=False)
    erased = of_tables.find(here, ErasureQuery(key, kept.ids, request.now), attempt)
    of_key = others.keys() - {PREVIEWS.name} or outside.is_in_previews(tables.store, key)  # `others` has all dry runs
    if not (erased or of_key or kept.rows or _is_begun(place.definition, target)):
        raise NothingToForget(
            f"neither the tables nor the source hold the key {key}, so nothing was changed. Keys are compared exactly,"
            " letter by letter"
        )
    return _Looked(here, target, erased, others, kept)


def _is_begun(definition: Definition, target: Target) -> bool:
    """Tests if an earlier erasure of the key was killed before its batch was published."""
    return any(
        certificate.erasure.digest == target.digest and not certificate.is_published
        for certificate in certificates(definition)
    )


def _cuts(ledger: Ledger) -> list[int]:
    """Ids of the batches with a kept cut."""
    return [commit.batch_id for commit in commits_of(ledger.tables, maintained.kept_from(ledger.store))]


# -- erasure -----------------------------------------------------------------------------------------------------------


def forget(definition: Definition, spark: GetSpark, request: ForgetRequest) -> Certificate:
    """Erases a key and returns the certificate.

    Raises, before any change, `ForgetRefused`, `NothingToForget`, `CannotLook` for a key of another type,
    `HashesDiffer`, `Superseded` while a run is in progress, `ForeignChange` and `LostRows`.
    """
    ledger = ledger_of(definition, request.clock)
    _key(definition, ledger, ledger.state(), request)
    with refusals.refusals_named(ledger.store), losses_named(ledger.tables):
        with held(ledger, request.note, Settlement.PUBLISH) as pipeline:
            key = _key(definition, ledger, pipeline.state, request)
            erasure = _forgotten(definition, pipeline, key, spark, request)
        lost = _cuts(ledger)[:-1] if request.now else []
        if request.now:
            maintain(definition, request.who, request.clock, only_newest=True)
    [certificate] = certified(ledger.tables, [erasure])
    return replace(certificate, cuts_lost=lost)


def _forgotten(
    definition: Definition, pipeline: HeldPipeline, key: Key, spark: GetSpark, request: ForgetRequest
) -> Erasure:
    ledger, batch_id = pipeline.ledger, pipeline.state.last_batch_id + 1
    attempt = pipeline.attempt(batch_id)
    here, removals = newest_snapshot(pipeline), list[DataFile]()
    looked = _look(_Place(definition, here, pipeline.commit), key, spark, request, attempt)

    def discard() -> None:
        written = {**looked.erased, RESULT_CHANGES.name: _with(looked.erased.get(RESULT_CHANGES.name), removals)}
        of_tables.discard(here, written)

    with discarded_unless_fixed(pipeline, batch_id, discard):
        if not request.now:
            removals += of_tables.removals(here, looked.erased, batch_id, attempt)
        pipeline.check()
        erasure = _erasure(looked, batch_id, request)
        erasures.keep(ledger.store, erasure)
        for begun in migration.migrations(ledger.store):
            migration.forget(ledger.store, begun)  # its new tables hold the key, so they are built again
        outside.find(ledger.tables, key, remove=True)
        # If no table holds the key, the batch changes no table. It still marks that older cuts may hold the key.
        decision = Decision("forget", request.who, request.reason, digest=erasure.digest)
        publish_decision(pipeline, _batch(looked, pipeline.commit, removals, decision))
    return erasure


def _erasure(looked: _Looked, batch_id: int, request: ForgetRequest) -> Erasure:
    return Erasure(
        at=utc(request.clock()),
        who=request.who,
        reason=request.reason,
        columns=[*looked.target.key.columns],
        secret=looked.target.secret,
        digest=looked.target.digest,
        up_to_ms=looked.target.up_to_ms,
        later_ms=sorted(looked.kept.later_ms),
        batch_id=batch_id,
        removed=looked.removed,
        source=looked.kept.rows,
        not_looked_at=[*looked.kept.not_looked_at],
    )


def _with(erasure: TableErasure | None, removals: Sequence[DataFile]) -> TableErasure:
    return TableErasure(add=[*(erasure.add if erasure else ()), *removals])


def _newest_ms(here: PipelineSnapshot) -> int:
    """Greatest admitted event time in the statistics of `source_files`, or 0 without statistics."""
    times = [
        int(file.high["max_timestamp_ms"]) for file in here.files(SOURCE_FILES.name) if "max_timestamp_ms" in file.high
    ]
    return max(times, default=0)


def _batch(looked: _Looked, commit: Commit, removals: Sequence[DataFile], decision: Decision) -> DecisionBatch:
    here, erased = looked.here, looked.erased
    changes = tuple(
        of_tables.change(here, name, erased.get(name), [*removals] if name == RESULT_CHANGES.name else [])
        for name in COMMIT_ORDER
    )
    left = {
        figure: sum(file.rows for file in here.files(name)) - (erased[name].count if name in erased else 0)
        for name, figure in COUNTED.items()
    }
    target = replace(commit, definition=marker.without(commit.definition))
    return DecisionBatch(decision, target, changes, left, written=True)
