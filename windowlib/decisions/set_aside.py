"""Operation `set-aside`: runs continue without a source file, until an operator takes the file back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from windowlib.batches.may_run import way_on
from windowlib.batches.planning import ledger_of
from windowlib.definition.commands import OPEN, WHY, to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.instants import utc
from windowlib.ledger.ledger import Clock, NothingToDecide, Rejected, wall_clock_ms
from windowlib.ledger.rows import LedgerState
from windowlib.ledger.set_aside_files import SetAsideDecision, decide, files_set_aside
from windowlib.runs.operation import held
from windowlib.source.contents import FileState
from windowlib.source.listed import SourceError
from windowlib.source.listing import arrivals, cursor_of
from windowlib.source.read_before import known_files
from windowlib.storage.address import is_remote, path_below


def set_aside(definition: Definition, file: str, who: str, reason: str, clock: Clock = wall_clock_ms) -> str:
    """Leaves a file out of every plan from now on, and returns its path. The next run replaces a plan that lists it.

    file: path relative to the source folder, or a path into that folder

    Raises `SourceError` if the file does not exist or has been read, `Rejected` if a prepared batch holds its rows,
    `Superseded` while a run is in progress, and `NothingToDecide` if the file is set aside already.
    """
    path, ledger = path_in(definition, file), ledger_of(definition, clock)
    with held(ledger) as pipeline:
        if path in files_set_aside(definition.store):
            raise NothingToDecide(f"{path} is already set aside")
        files_read = known_files(ledger.tables, pipeline.state.pinned("source_files"))
        _check_not_read(definition.file, pipeline.state, path, files_read)
        decide(definition.store, SetAsideDecision(path, utc(clock()), who, reason))
    return path


def take_back(definition: Definition, file: str, who: str, reason: str, clock: Clock = wall_clock_ms) -> str:
    """Lets the next run read a file that was set aside, and returns its path.

    Raises `NothingToDecide` if the file is not set aside.
    """
    aside = files_set_aside(definition.store)
    path = file if file in aside else path_in(definition, file)
    if path not in aside:
        raise NothingToDecide(f"{path} is not set aside; files set aside: {', '.join(sorted(aside)) or 'none'}")
    decide(definition.store, SetAsideDecision(path, utc(clock()), who, reason, back=True))
    return path


def path_in(definition: Definition, file: str) -> str:
    """Path of a file relative to the source folder; a symbolic link keeps its own path.

    Raises `SourceError` if the file does not exist and no Delta log names it.
    """
    source = definition.source.store
    addresses = (file,) if is_remote(file) else (f"{source.url}/{file}", str(Path(file).absolute()))
    for address in addresses:
        above, _, name = address.rpartition("/")
        folder = path_below(above, source)  # a run lists a symbolic link by its own name
        path = f"{folder}/{name}" if folder else name
        if folder is not None and source.sizes([path]) != [None]:
            return path
    if file in _lost(definition):
        return file
    raise SourceError(f"{file}: no such file in the source folder {source}; give its path relative to that folder")


def _lost(definition: Definition) -> tuple[str, ...]:
    """Files of a Delta source that no batch has read, including files that were deleted before they were read."""
    ledger = ledger_of(definition)
    commit = ledger.state().commit
    if (cursor := cursor_of(definition.source, commit)) is None:
        return ()
    _, arrived = arrivals(definition.source, ledger.tables, commit, cursor)
    return (*(arrived.removal.lost if arrived.removal else ()), *(file.path for file in arrived.files))


def _check_not_read(file: Path, state: LedgerState, path: str, files_read: Mapping[str, FileState]) -> None:
    if path in files_read:
        raise SourceError(
            f"{path} was already read, and its rows are in the tables. Remove or repair it, then rerun its time"
            f" range: `{to_paste('rerun', file, '--from', OPEN, '--to', OPEN)}`"
        )
    if state.plan and state.prepared and any(planned.path == path for planned in state.plan.files):
        raise Rejected(
            f"batch {state.plan.batch_id} has read {path} and is prepared: {way_on(file, state)}."
            f" To leave the file out, first drop the batch: `{to_paste('abandon', file, *WHY)}`"
        )
