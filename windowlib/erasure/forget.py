"""`windowlib forget`: a key erased from all that a pipeline holds, and from all that it will read.

    claim -> look -> the row of `erasures` -> what lies next to the tables -> one batch, prepared and rolled forward

From the row on no batch reads the key's events again: a run, rerun or migration after a kill does not bring back what
is half gone. Killed before the batch is prepared, the command is to be given again; later the next run finishes it.
Old files hold the key until `windowlib maintain` has deleted what only cuts before the batch needed.
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
from windowlib.delta import disk
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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GetSpark = Callable[[], "SparkSession"]
BY_A_WRONG_CLOCK = "Nothing was erased: it would be of events up to that time, whenever they come"


class ForgetRefused(WindowError):
    """The key cannot be erased, or not yet. Nothing was changed."""


class NothingToForget(WindowError, LookupError):
    """Neither the tables nor the source hold the key."""


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """Which key is to be erased, given as texts, who asks for it and why, by which clock.

    With `now` old cuts are given up at once, and followers of `result_changes` get no rows about it.
    """

    key: Sequence[str]
    who: str = ""
    reason: str = ""
    now: bool = False
    clock: Clock = wall_clock_ms
    note: Note = silent


@dataclass(frozen=True, slots=True)
class ErasureForecast:
    """What an erasure would remove: rows by table, files next to them; what the source holds; cuts that would go.

    `dry_run`: nothing else was asked for.
    """

    removed: Mapping[str, int]
    source: Mapping[str, int]
    not_looked_at: Sequence[str]
    cuts_lost: Sequence[int]
    dry_run: bool = True


# -- what there is ----------------------------------------------------------------------------------------------------


def forecast(definition: Definition, spark: GetSpark, asked: ForgetRequest) -> ErasureForecast:
    """What `forget` would do. Changes nothing. Raises as it does."""
    ledger = ledger_of(definition, asked.clock)
    state = ledger.state()
    key = _key(definition, ledger, state, asked)
    assert state.commit is not None, "`_key` raises where no batch is committed"
    here = PipelineSnapshot(ledger.tables, state.commit.versions)
    looked = _look(_Place(definition, here, state.commit), key, spark, asked, None)
    return ErasureForecast(
        looked.removed, looked.kept.rows, looked.kept.not_looked_at, _cuts(ledger) if asked.now else ()
    )


def _key(definition: Definition, ledger: Ledger, state: LedgerState, asked: ForgetRequest) -> Key:
    """The key that is asked for. Raises where it cannot be erased now, or by this clock."""
    if not definition.source.key:
        raise ForgetRefused(f"{definition.name} has no key column: all its events are in the same windows")
    check_key(definition.source.key, asked.key)
    check_fingerprint(definition, state.commit)
    there = cut(definition)  # raises where nothing was run yet
    check_place(definition.source, definition.root, state.commit)
    if (schema := there.keyed_schema()) is None:
        raise NothingToForget(f"no window of {definition.name} was made yet, so no table holds a key")
    key = key_of(definition.source.key, asked.key, schema)
    if odd := [f"{name} is {kind}" for name, kind in _kinds(key) if not is_hashable(kind)]:
        raise ForgetRefused(f"a key of this type cannot be erased: {odd[0]}, whose values have no one exact text")
    if Mention.of(key).is_in(asked.reason):
        raise ForgetRefused("the reason names the key, and is kept: say the number of a request instead")
    _check_rests(definition.file, ledger, state)
    check_clock(definition.file, asked.clock(), state, refused=BY_A_WRONG_CLOCK)
    return key


def _kinds(key: Key) -> Iterator[tuple[str, str]]:
    return ((name, kind_of(kind)) for name, kind in zip(key.columns, key.types, strict=True))


def _check_rests(file: Path, ledger: Ledger, state: LedgerState) -> None:
    """Raises `ForgetRefused` where a batch waits, or a migration can be undone: both hold the key."""
    if done := migration.switched(ledger):
        raise ForgetRefused(
            f"the migration of batch {done[0]} can still be undone, and its old tables hold the key: first"
            f" `{to_paste('migrate', file, '--finish')}`, which keeps it, or"
            f" `{to_paste('migrate', file, '--undo', *WHY)}`"
        )
    if state.plan and (state.prepared is None or state.is_refused):
        raise ForgetRefused(
            f"batch {state.plan.batch_id} is not finished, and may hold the key: {way_on(file, state)}; then forget"
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a key is looked for: a pipeline's tables as they stand `here`, and its source as `commit` left it."""

    definition: Definition
    here: PipelineSnapshot
    commit: Commit


@dataclass(frozen=True, slots=True)
class _Looked:
    """What there is of a key: in tables as they stand `here`, next to them (`others`), in the source (`kept`)."""

    here: PipelineSnapshot
    target: Target
    found: Mapping[str, TableErasure]
    others: Mapping[str, int]
    kept: SourceHoldings

    @property
    def removed(self) -> dict[str, int]:
        """Rows by table, and files."""
        return {**{name: one.count for name, one in self.found.items()}, **self.others}


def _look(place: _Place, key: Key, spark: GetSpark, asked: ForgetRequest, attempt: str | None) -> _Looked:
    """Looks; with an `attempt` the files without the key are written. Raises `NothingToForget`."""
    here, tables = place.here, place.here.tables
    secret = erasures.secret_of(erasures.erasures(tables.root))
    target = Target(key, secret, max(asked.clock(), _newest_ms(here)))
    kept = source_holdings(place.definition, tables, place.commit, target, spark())
    others = outside.find(tables, key, remove=False)
    found = of_tables.find(here, ErasureQuery(key, kept.ids, asked.now), attempt)
    of_key = others.keys() - {PREVIEWS.name} or outside.is_in_previews(tables.root, key)  # all of them are deleted
    if not (found or of_key or kept.rows or _is_begun(place.definition, target)):
        raise NothingToForget(
            f"neither the tables nor the source hold the key {key}: nothing was changed. Keys are compared exactly,"
            " letter by letter"
        )
    return _Looked(here, target, found, others, kept)


def _is_begun(definition: Definition, target: Target) -> bool:
    """Whether an erasure of the key was killed, maybe when nothing but its batch was left to do."""
    return any(one.erasure.digest == target.digest and not one.is_published for one in certificates(definition))


def _cuts(ledger: Ledger) -> list[int]:
    """The batches whose cuts are kept."""
    return [one.batch_id for one in commits_of(ledger.tables, maintained.kept_from(ledger.root))]


# -- what is done -----------------------------------------------------------------------------------------------------


def forget(definition: Definition, spark: GetSpark, asked: ForgetRequest) -> Certificate:
    """Erases a key. Gives the certificate.

    Raises `ForgetRefused`, `NothingToForget`, `CannotLook` for a key of another type, `HashesDiffer`, `Superseded`
    while a run is in progress, `ForeignChange`, `LostRows`: nothing was changed then.
    """
    ledger = ledger_of(definition, asked.clock)
    _key(definition, ledger, ledger.state(), asked)
    with disk.refusals_named(ledger.root), losses_named(ledger.tables):
        with held(ledger, asked.note, Settlement.PUBLISH) as pipeline:
            key = _key(definition, ledger, pipeline.state, asked)
            made = _forgotten(definition, pipeline, key, spark, asked)
        lost = _cuts(ledger)[:-1] if asked.now else []
        if asked.now:
            maintain(definition, asked.who, asked.clock, only_newest=True)
    [certificate] = certified(ledger.tables, [made])
    return replace(certificate, cuts_lost=lost)


def _forgotten(
    definition: Definition, pipeline: HeldPipeline, key: Key, spark: GetSpark, asked: ForgetRequest
) -> Erasure:
    ledger, batch_id = pipeline.ledger, pipeline.state.last_batch_id + 1
    attempt = pipeline.attempt(batch_id)
    here, removals = newest_snapshot(pipeline), list[DataFile]()
    looked = _look(_Place(definition, here, pipeline.commit), key, spark, asked, attempt)

    def discard() -> None:
        written = {**looked.found, RESULT_CHANGES.name: _with(looked.found.get(RESULT_CHANGES.name), removals)}
        of_tables.discard(here, written)

    with discarded_unless_fixed(pipeline, batch_id, discard):
        if not asked.now:
            removals += of_tables.removals(here, looked.found, batch_id, attempt)
        pipeline.check()
        made = _erasure(looked, batch_id, asked)
        erasures.keep(ledger.root, made)
        for begun in migration.migrations(ledger.root):
            migration.forget(ledger.root, begun)  # what it has built holds the key; it starts from scratch
        outside.find(ledger.tables, key, remove=True)
        # Where no table holds the key, the batch changes none, and says that older cuts may have it.
        decision = Decision("forget", asked.who, asked.reason, digest=made.digest)
        publish_decision(pipeline, _batch(looked, pipeline.commit, removals, decision))
    return made


def _erasure(looked: _Looked, batch_id: int, asked: ForgetRequest) -> Erasure:
    return Erasure(
        at=utc(asked.clock()),
        who=asked.who,
        reason=asked.reason,
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


def _with(found: TableErasure | None, removals: Sequence[DataFile]) -> TableErasure:
    return TableErasure(add=[*(found.add if found else ()), *removals])


def _newest_ms(here: PipelineSnapshot) -> int:
    """The time of the newest event that was ever admitted, at least."""
    times = [
        int(file.high["max_timestamp_ms"]) for file in here.files(SOURCE_FILES.name) if "max_timestamp_ms" in file.high
    ]
    return max(times, default=0)


def _batch(looked: _Looked, commit: Commit, removals: Sequence[DataFile], decision: Decision) -> DecisionBatch:
    here, found = looked.here, looked.found
    changes = tuple(
        of_tables.change(here, name, found.get(name), [*removals] if name == RESULT_CHANGES.name else [])
        for name in COMMIT_ORDER
    )
    left = {
        figure: sum(file.rows for file in here.files(name)) - (found[name].count if name in found else 0)
        for name, figure in COUNTED.items()
    }
    target = replace(commit, definition=marker.without(commit.definition))
    return DecisionBatch(decision, target, changes, left, written=True)
