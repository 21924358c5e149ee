"""An operator sets a source file aside, so that runs go on without it, and takes it back once it can be read."""

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
from windowlib.source.listing import arrivals, cursor_of, found_files
from windowlib.source.read_before import known_files


def set_aside(definition: Definition, file: str, who: str, reason: str, clock: Clock = wall_clock_ms) -> str:
    """Leaves a file out of every plan from now on; a planned batch is planned again without it. Gives its path.

    `file` is a path relative to the source folder, or one that leads there. Raises `SourceError` where there is no such
    file or it has been read already, `Rejected` where a prepared batch holds its rows, `Superseded` where a run is at
    work, `NothingToDecide` where it is set aside already.
    """
    path, ledger = path_in(definition, file), ledger_of(definition, clock)
    with held(ledger) as pipeline:
        if path in files_set_aside(definition.root):
            raise NothingToDecide(f"{path} is set aside already")
        known = known_files(ledger.tables, pipeline.state.pinned("source_files"))
        _check_not_read(definition.file, pipeline.state, path, known)
        decide(definition.root, SetAsideDecision(path, utc(clock()), who, reason))
    return path


def take_back(definition: Definition, file: str, who: str, reason: str, clock: Clock = wall_clock_ms) -> str:
    """Lets the next run read a file that was set aside. Gives its path; raises `NothingToDecide` where it was not."""
    aside = files_set_aside(definition.root)
    path = file if file in aside else path_in(definition, file)
    if path not in aside:
        raise NothingToDecide(f"{path} is not set aside; set aside are: {', '.join(sorted(aside)) or 'none'}")
    decide(definition.root, SetAsideDecision(path, utc(clock()), who, reason, back=True))
    return path


def path_in(definition: Definition, file: str) -> str:
    """A file's path relative to the source folder, of a link its own. Raises `SourceError` where there is none, and
    no Delta log that names it."""
    folder = definition.source.path
    for path in (folder / file, Path(file).absolute()):
        own = path.parent.resolve() / path.name  # a run knows a link by its name, wherever it leads
        if path.is_file() and own.is_relative_to(folder.resolve()):
            return str(own.relative_to(folder.resolve()))
    if file in _lost(definition):
        return file
    raise SourceError(f"{file}: no such file in the source folder {folder}; give its path relative to that folder")


def _lost(definition: Definition) -> tuple[str, ...]:
    """The files of a Delta table that were deleted before they were read, of which an operator must decide."""
    ledger = ledger_of(definition)
    commit = ledger.state().commit
    if (cursor := cursor_of(definition.source, commit)) is None:
        return ()
    found = arrivals(definition.source, ledger.tables, commit, found_files(definition.source, cursor))
    return (*(found.removal.lost if found.removal else ()), *(file.path for file in found.files))


def _check_not_read(file: Path, state: LedgerState, path: str, known: Mapping[str, FileState]) -> None:
    if path in known:
        raise SourceError(
            f"{path} has been read already, and its rows are in the tables. Remove or repair it, then rerun its time"
            f" range: {to_paste('rerun', file, '--from', OPEN, '--to', OPEN)}"
        )
    if state.plan and state.prepared and any(one.path == path for one in state.plan.files):
        raise Rejected(
            f"batch {state.plan.batch_id} has read {path} and is prepared: {way_on(file, state)};"
            f" to leave the file out, first drop the batch: {to_paste('abandon', file, *WHY)}"
        )
