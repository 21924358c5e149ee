"""Documentation of a DAG in Airflow: Markdown text, made from the definition of a pipeline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from windowlib.definition.commands import to_paste
from windowlib.definition.definition import Definition
from windowlib.definition.toml.durations import format_duration
from windowlib.definition.toml.windows import AnyWindow, windows_in_words

_PAGE = """\
### {title}
{description}
| | |
|---|---|{owner}
| windows | {windows}, of {key} |
| allowed lateness | {lateness} |
| watermark | the newest event time less {out_of_orderness}; {idle} |
| computes | {aggregates} |
| reads | `{source}` ({format}, event time in `{timestamp}`) |
| tables | `{root}` |
| definition | `{file}` |

* **plan** fixes the input: everything that has arrived, whatever the date of the run. If nothing is new, the other
  tasks are skipped.
* **advance** computes the batch in its own process, and publishes it only if its checks pass.
* **report** updates the page of the pipeline, after a failure too; *Page* among its details opens it.

#### Look at it
* `{status}`
* `{read}`

#### Run it again
Clear a finished run, trigger one by hand, or backfill: each only looks for input that no run has read yet. Published
results stay as they are; with nothing new, advance is skipped. If a run fails half-way, the next run finishes its batch
with the same input. Two runs at once do not disturb each other: one of them is skipped. To recompute a past range,
trigger the DAG `rerun_windows`.

#### If it is red
*Refused by its checks*: **decide** waits in *Required Actions*. Look at the report, give a reason, and press *approve*
(**publish** publishes the batch in this run), *abandon* or *leave waiting*. Until then no later run starts. A run that
starts after *leave waiting* is not red: **plan** says that the batch waits, and **decide** asks again.

*An error that a retry cannot fix*: the end of the log names it. After other errors it tries again, {retries} times.
"""


_TOGETHER = """\
### {names}

These pipelines run together: `together` runs them with one command, so that pipelines over one source read it once.

* **advance_...** is green if `together` has run the pipeline to its end. Otherwise it runs the pipeline alone, so that
  an error of one pipeline does not stop the others.
* **decide_...** waits in *Required Actions* if the checks refused a batch: give a reason and press *approve*
  (**publish_...** publishes it), *abandon* or *leave waiting*.
* **report_...** updates the page of the pipeline, after a failure too; *Page* opens it.

Clear `together` and the tasks after it, trigger a run by hand, or backfill: each only looks for new input. To
recompute a past range, trigger the DAG `rerun_windows`.
"""


_RERUN = """\
### Recompute the windows of a past range

Use it after an upstream fix, after late files, or after a mistake. Every window that meets the range is computed from
the current source. Sessions that reach across its ends are computed whole. Late events count. All other rows stay.

* **check** refuses a range without a time zone, and a range that ends before it starts, lies in the future, or is too
  long. A range needs a *From*, a *To*, or the choice *All history*. An empty end is taken from the results; the text to
  review says so.
* **preview** says what would change, and changes nothing. If the form names a preview, the task uses it. *Preview*
  among its details opens the page.
* **review** waits for a person. A dry run ends here (skipped), and so does a rerun that would change nothing. After a
  rejection, with a reason, the task fails and nothing is changed.
* **apply** does exactly what the preview showed, as one batch. If the rows to change have changed since, it does
  nothing, and fails with the difference. It waits for a scheduled run in progress; scheduled runs skip meanwhile.
* **report** updates the page of the pipeline.

Pipelines: {names}. Pipelines whose results depend on the order of events cannot be rerun in part and are not listed.
"""


def rerun_page(names: Sequence[str]) -> str:
    """Documentation of the DAG for reruns."""
    return _RERUN.format(names=", ".join(f"`{name}`" for name in names))


def together_page(definitions: Sequence[Definition]) -> str:
    """Documentation of the DAG of pipelines that run together."""
    pages = (page(definition).split("* **plan**")[0] for definition in definitions)
    looks = "\n".join(f"* `{to_paste('status', definition.file)}`" for definition in definitions)
    names = ", ".join(definition.name for definition in definitions)
    return "\n".join([_TOGETHER.format(names=names), *pages, f"#### Look at it\n{looks}\n"])


def page(definition: Definition) -> str:
    """Documentation of the DAG of a pipeline."""
    source, window, watermark = definition.source, definition.window, definition.watermark
    return _PAGE.format(
        title=_title(definition.name, definition.file),
        description=f"\n{_plain(definition.description)}\n" if definition.description else "",
        owner=f"\n| owner | {_plain(definition.owner)} |" if definition.owner else "",
        windows=_windows(window),
        key=" and ".join(f"each `{column}`" for column in source.key) or "all events together",
        lateness=_lateness(window),
        out_of_orderness=format_duration(watermark.out_of_orderness_ms),
        idle=_idle(watermark.idle_timeout_ms),
        aggregates=_computes(definition),
        source=source.path,
        format=source.format,
        timestamp=source.timestamp,
        root=definition.store,
        file=definition.file,
        status=to_paste("status", definition.file),
        read=to_paste("read", definition.file, "results"),
        retries=definition.airflow.retries,
    )


def broken_page(message: str) -> str:
    """Documentation of the DAG of a definition that cannot be used: its mistakes."""
    mistakes = "\n".join(f"* {line}" for line in message.splitlines())
    return f"### This definition cannot be used\nCorrect it, and the pipeline comes back by itself.\n\n{mistakes}\n"


def _title(name: str, file: Path) -> str:
    first = file.read_text(encoding="utf-8").lstrip().splitlines()[0]
    return first.lstrip("# ") if first.startswith("#") else f"The pipeline {name}"


def _windows(window: AnyWindow) -> str:
    phrases = [windows_in_words(window)]
    if window.own_trigger:
        phrases.append(f"fired {window.own_trigger.words}")
    if window.own_evictor:
        phrases.append(f"of whose events {window.own_evictor.words}")
    return ", ".join(phrases)


def _computes(definition: Definition) -> str:
    if definition.window.function:
        return f"{', '.join(f'`{name}`' for name in definition.window.output)} by `{definition.window.function}`"
    return ", ".join(f"`{name}` = `{_cell(sql)}`" for name, sql in definition.expressions.items())


def _lateness(window: AnyWindow) -> str:
    if window.time == "processing" or not window.ends:
        return "does not apply: no event is late for these windows"
    if not window.allowed_lateness_ms:
        return "none: an event whose window has ended goes to `late_events`"
    allowed = format_duration(window.allowed_lateness_ms)
    return f"{allowed}: until then a late event updates its window's result, after that it goes to `late_events`"


def _idle(idle_timeout_ms: int | None) -> str:
    if idle_timeout_ms is None:
        return "it stays where it is while nothing arrives"
    return f"after {format_duration(idle_timeout_ms)} without new events it follows the clock"


def _plain(text: str) -> str:
    """Text of the author in one line, with all markup escaped."""
    return re.sub(r"([\\`*_{}\[\]<>()#|!~])", r"\\\1", " ".join(text.split()))


def _cell(sql: str) -> str:
    return sql.replace("|", "\\|")
