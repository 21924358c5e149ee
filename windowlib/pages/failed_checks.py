"""Failed checks of the newest batches: the check, its first failed batch, and its last observation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from windowlib.batches.result_columns.null_columns import gone_null
from windowlib.contract.change import REMOVED
from windowlib.definition.definition import Definition
from windowlib.definition.instants import instant
from windowlib.delta.data_files import DataFile
from windowlib.delta.tables import Tables
from windowlib.ledger.rows import Commit
from windowlib.plans.admission import REASONS
from windowlib.quality.check import column_of, failed_in_words, without_examples
from windowlib.quality.figures import Figures
from windowlib.quality.validations import Validated

SHOWN = 3  # checks
FAILED = "Failed, "  # begins a sentence
GONE_NULL, UNUSABLE = "results_gone_null", "unusable_share"


def failed_check_sentences(
    definition: Definition,
    tables: Tables,
    commit: Commit | None,
    checked: Sequence[Validated],
    recent: int,
    times: Mapping[int, int],
) -> Iterator[str]:
    """Yields a sentence for each check that failed in the `recent` newest batches, newest failure first.
    Of a batch, critical checks come first.

    `checked` are all batches with a stored outcome, newest first. `times` are commit times in ms, by batch.
    """
    failed = [failed_in_words(batch.suites, batch.figures) for batch in checked]
    critical_first = (
        sorted(outcomes, key=lambda name: outcomes[name].severity != "critical") for outcomes in failed[:recent]
    )
    names = dict.fromkeys(name for outcomes in critical_first for name in outcomes)
    for name in [*names][:SHOWN]:
        newest = next(number for number, outcomes in enumerate(failed) if name in outcomes)
        first = newest
        while first + 1 < len(failed) and name in failed[first + 1]:
            first += 1
        since, result = checked[first].batch_id, failed[newest][name]
        when = f" ({instant(times[since] // 1000 * 1000)})" if since in times else ""
        last = checked[newest].batch_id
        span = f"since batch {since}{when}" if newest == 0 else f"in batch {since}{when}"
        until = f" up to batch {last}" if newest and last != since else ""
        which, figure = "", column_of(result.expectation)
        if figure == GONE_NULL and commit:
            which = f" ({', '.join(_null_now(definition.outputs, definition.added, tables, commit, since))})"
        elif figure == UNUSABLE:
            which = f" ({', '.join(_refused(checked[newest].figures))})"
        observed = without_examples(result.observed).partition(" (")[0]
        yield f"{FAILED}observed {observed}{which}: {result.sentence.rstrip('.')}, {span}{until}"
    if (more := len(names) - SHOWN) > 0:
        yield f"{more} more {'check' if more == 1 else 'checks'} failed"


def _refused(figures: Figures) -> Iterator[str]:
    """Reasons of refused rows in a batch, with numbers of rows."""
    for reason in REASONS:
        if count := figures.get(f"quarantined_{reason}"):
            yield f"{reason} {count:,}"


def _null_now(outputs: Sequence[str], added: Sequence[str], tables: Tables, commit: Commit, since: int) -> list[str]:
    """Names of the aggregates that became null in batch `since`."""
    files = tables["result_changes"].files(commit.versions.get("result_changes"))
    changes = [file for file in files if file.partition["change"] != REMOVED and file.low["batch_id"] >= since]

    def before() -> list[DataFile]:
        results = tables["results"].files(commit.versions.get("results"))
        return [file for file in results if file.high["batch_id"] < since]

    return gone_null(outputs, changes, before, added)
