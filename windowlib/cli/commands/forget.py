"""Command `windowlib forget`, which erases a key from everything that a pipeline holds and will read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windowlib.cli.display import console
from windowlib.cli.exits import load_pipeline
from windowlib.cli.options import (
    Decide,
    Json,
    OptionalReason,
    Pipeline,
    ShowOnly,
    Wait,
    Who,
    check_can_ask,
    duration_ms,
    key_option,
)
from windowlib.cli.outcomes import aligned, print_report, show_note
from windowlib.cli.progress import progress
from windowlib.definition.instants import instant
from windowlib.definition.plurals import counted
from windowlib.model.errors import InvalidSpec

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition
    from windowlib.erasure.certificates import Certificate
    from windowlib.erasure.forget import ErasureForecast, ForgetRequest
    from windowlib.ledger.erasures import Erasure

SHOWN = 10  # files of the source
Erased = Annotated[
    list[str] | None,
    key_option("Key to erase. With several key columns, repeat it for each, in order. Without it: list past erasures."),
]
AtOnce = Annotated[
    bool,
    typer.Option(
        "--now", help="Also give up all older cuts at once; consumers of result_changes get no rows about the key."
    ),
]


def forget(
    pipeline: Pipeline,
    who: Who,
    key: Erased = None,
    reason: OptionalReason = "",
    now: AtOnce = False,
    dry_run: ShowOnly = False,
    yes: Decide = False,
    wait: Wait = "10m",
    as_json: Json = False,
) -> None:
    """Erase a key from all tables, from the files beside them, and from everything that later batches read.

    Events of the key up to now no longer count; later events do. Consumers of result_changes get its results as
    removed. Old files contain the key until windowlib maintain deletes them, as retention.cuts sets; --now deletes them
    at once. The source is not changed: the command lists the source files that still contain the key.

    [dim]windowlib forget clicks.toml --key u42 --dry-run[/dim]
    [dim]windowlib forget clicks.toml --key u42 --reason "request 1021"[/dim]
    """
    from windowlib.erasure.certificates import certificates
    from windowlib.erasure.forget import ForgetRequest

    definition, wait_ms = load_pipeline(pipeline), duration_ms("--wait", wait)
    if key is None:
        if now or dry_run or yes or reason:
            raise InvalidSpec(
                "--key is missing, and --now, --dry-run, --yes and --reason need it. Without these options, forget"
                " lists past erasures"
            )
        print_report(certificates(definition), _list_text, as_json)
        return
    if not (dry_run or reason):
        raise InvalidSpec('--reason "…" is missing, such as the number of a request; --dry-run needs none')
    check_can_ask(dry_run, yes)
    request = ForgetRequest(key, who, reason, now, note=show_note)
    if not yes:
        _forecast(definition, request, dry_run, as_json)
    if not dry_run:
        _forget(definition, request, yes, wait_ms, as_json)


def _forecast(definition: Definition, request: ForgetRequest, dry_run: bool, as_json: bool) -> None:
    from windowlib.erasure.forget import forecast
    from windowlib.runs.start import with_spark

    with progress(console(quiet=as_json)) as show:
        result = with_spark(
            definition, "the forecast", lambda spark: forecast(definition, lambda: spark, request), show
        )
    print_report(replace(result, dry_run=dry_run), _forecast_text, as_json)


def _forget(definition: Definition, request: ForgetRequest, yes: bool, wait_ms: int, as_json: bool) -> None:
    from windowlib.erasure.forget import forget
    from windowlib.runs.deadline import bounded
    from windowlib.runs.start import waiting, with_spark_for_long

    if not yes:
        typer.confirm("Erase it? This cannot be undone.", abort=True)
    with progress(console(quiet=as_json)) as show:

        def erase(spark: Any) -> Certificate:
            def erase_once() -> Certificate:
                with bounded(definition.batch_timeout_ms, "forget", spark):
                    return forget(definition, lambda: spark, request)

            return waiting(erase_once, wait_ms, show)

        certificate = with_spark_for_long(definition, erase, show)
    print_report(
        certificate, lambda certificate: _certificate_text(certificate, str(definition.retention.cuts)), as_json
    )


def _list_text(erasures: Sequence[Certificate]) -> str:
    return "\n".join(map(_line, erasures)) or "no key was erased"


def _line(certificate: Certificate) -> str:
    erasure = certificate.erasure
    rows = counted(sum(erasure.removed.values()), "row")
    by = f"batch {erasure.batch_id}" if erasure.batch_id else "no batch"
    about = f"{erasure.at:%Y-%m-%d %H:%M} UTC  {erasure.who}: {erasure.reason}"
    return f"{about}  {rows}, {by}; {_state(certificate)}"


def _forecast_text(forecast: ErasureForecast) -> str:
    return "\n".join([*_holdings(forecast, forecast.cuts_lost), "nothing was changed"])


def _certificate_text(certificate: Certificate, retention: str) -> str:
    """Lines about a finished erasure; `retention` is the setting that keeps old files."""
    return "\n".join([*_holdings(certificate.erasure, certificate.cuts_lost), _done(certificate, retention)])


def _holdings(erased: Erasure | ErasureForecast, cuts_lost: Sequence[int]) -> list[str]:
    lines = [*_removed(erased.removed), *_source(erased.source, erased.not_looked_at)]
    return [*lines, *([_lost(cuts_lost)] if cuts_lost else [])]


def _removed(removed: Mapping[str, int]) -> list[str]:
    rows = ((name, f"{count:,}") for name, count in removed.items())
    return aligned([("table", "rows"), *rows]) if removed else ["no table holds it"]


def _source(files: Mapping[str, int], not_looked_at: Sequence[str]) -> list[str]:
    events = counted(sum(files.values()), "row")
    lines = ["the source holds nothing of it"]
    if files:
        lines = [f"the source holds {events} of it in {counted(len(files), 'file')}, which no batch reads again:"]
        lines += [f"  {path}: {rows:,}" for path, rows in sorted(files.items())[:SHOWN]]
        lines += [f"  and {len(files) - SHOWN:,} more files"] if len(files) > SHOWN else []
    return [*lines, *(f"not looked at: {sentence}" for sentence in not_looked_at)]


def _lost(cuts: Sequence[int]) -> str:
    return (
        f"the tables can no longer be read, or rolled back to, as these batches left them: {', '.join(map(str, cuts))}"
    )


def _done(certificate: Certificate, retention: str) -> str:
    erasure = certificate.erasure
    until = f"events of this key up to {instant(erasure.up_to_ms)} are not read again"
    outcome = f"batch {erasure.batch_id} has removed it" if erasure.removed else "no table held it"
    return f"{outcome}; {until}. {_state(certificate)[0].upper()}{_state(certificate)[1:]}" + (
        "" if certificate.old_files_gone else f" (retention.cuts = {retention!r})"
    )


def _state(certificate: Certificate) -> str:
    if not certificate.is_published:
        return "not finished: run the command again"
    if certificate.old_files_gone:
        return "no older file is left"
    return "older files may hold it until windowlib maintain has deleted them"
