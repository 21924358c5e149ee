"""Form of the DAG `rerun_windows`: checks of its values, and the pipeline, range and preview that it names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windowlib.airflow.sentences import FinalFailure
from windowlib.definition.reasons import wrong_with

if TYPE_CHECKING:
    from windowlib.definition.definition import Definition
    from windowlib.ledger.rerun_request import Rerun

OF_AIRFLOW = {"openlineage"}  # fields that Airflow's TriggerDagRunOperator adds


def refuse_unknown(names: Collection[str], fields: Collection[str]) -> None:
    """Raises `RerunRefused` if a run was triggered with a name that no field has.

    Airflow would ignore the value of such a name.

    >>> refuse_unknown({"from": "2026-03-03T00:00Z", "openlineage": {}}, ["from", "to"])
    """
    from windowlib.ledger.rerun_request import RerunRefused

    if unknown := sorted(set(names) - set(fields) - OF_AIRFLOW):
        raise RerunRefused(
            f"not a field of this form: {', '.join(map(repr, unknown))}; allowed: {', '.join(sorted(fields))}. Nothing"
            " was changed; trigger again with the right names"
        )


def file_of(pipelines: Mapping[str, str], name: str) -> str:
    """File of the definition of a pipeline. Raises `FinalFailure` for a pipeline that the form does not offer."""
    if name not in pipelines:
        raise FinalFailure(f"no pipeline {name!r} can be rerun; allowed: {', '.join(sorted(pipelines))}")
    return str(Path(pipelines[name]))


def requested_rerun(definition: Definition, params: Mapping[str, Any], who: str) -> tuple[Rerun, Sequence[str]]:
    """Requested rerun, and a sentence for each empty end of its range. Raises `RerunRefused`."""
    from windowlib.batches.planning import ledger_of
    from windowlib.ledger.rerun_request import Rerun, RerunRefused
    from windowlib.publication.data_range import asked_range, data_range
    from windowlib.reruns.previews import load

    if wrong := wrong_with(params["reason"]):
        raise RerunRefused(f"the reason: {wrong}")
    if preview_id := preview_named(params):
        kept = load(definition.store, preview_id).rerun
        _refuse_other(params, preview_id, kept, definition.time_zone)
        return kept, ()
    bounds = [str(params[name] or "").strip() for name in ("from", "to")]
    if any(bounds) is bool(params["all_history"]):
        raise RerunRefused(_no_range(bounds))
    ledger = ledger_of(definition)
    data = None if all(bounds) else data_range(ledger.tables, ledger.state().commit)
    wanted = asked_range(bounds[0], bounds[1], data, ledger.clock(), definition.furthest_ahead_ms, definition.time_zone)
    return Rerun(wanted.range.from_ms, wanted.range.to_ms, params["reason"], who), wanted.proposed


def _no_range(bounds: Sequence[str]) -> str:
    """Sentence about a form with both all history and a range, or with neither."""
    if any(bounds):
        return "all_history is on, and from or to is given: leave both empty, or switch all_history off"
    return (
        "from and to are empty: give a range, or switch on All history (all_history) to recompute all results. Nothing"
        " was changed"
    )


def _refuse_other(params: Mapping[str, Any], preview_id: str, kept: Rerun, time_zone: str | None) -> None:
    """Raises `RerunRefused` if the form differs from the preview that it names. A preview is applied unchanged."""
    from windowlib.definition.instants import instant
    from windowlib.ledger.rerun_request import RerunRefused, time_ms

    if params["all_history"]:
        raise RerunRefused(f"all_history is on, and preview {preview_id} has its own range: switch all_history off")
    own = {"from": instant(kept.from_ms), "to": instant(kept.to_ms), "reason": repr(kept.reason)}
    for name, preview_value in own.items():
        text = str(params[name] or "").strip()
        value = repr(text) if name == "reason" or not text else instant(time_ms(name, text, time_zone))
        if text and value != preview_value:
            raise RerunRefused(
                f"{name} is {text!r}, but preview {preview_id} was made with {preview_value} and is applied unchanged."
                f" Leave {name} empty, or leave the preview out to make a new preview"
            )


def preview_named(params: Mapping[str, Any]) -> str:
    """Id of the preview that the form names, or an empty string."""
    return (params.get("preview") or "").strip()
