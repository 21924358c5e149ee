"""`definition.md`: every key of a definition, from the fields of the models that read it."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo

from docs.reference.markdown import sentence, table
from windowlib.contract.result_tables import RESULT_CHANGES
from windowlib.contract.state_tables import PARTIAL_NAMES
from windowlib.definition.toml import windows
from windowlib.definition.toml.durations import ALLOWED, format_duration
from windowlib.definition.toml.fields import Section
from windowlib.definition.toml.file import DefinitionFile
from windowlib.definition.toml.sections import KindSection
from windowlib.plans.aggregates.functions import ALIASES, CALLABLE, WRITTEN_OUT
from windowlib.plans.names import BESIDE_RESULTS

HEAD = Path(__file__).with_name("definition-head.txt").read_text(encoding="utf-8")
VALUE = re.compile(r'(\[\w[\w.]*\]|\w+ = "[^"]+"|\["[^]]*\]|"[^"]+"(?: = "[^"]+")?|\{+.+?\}+)')
WINDOWS, TRIGGERS, EVICTORS = windows.AnyWindow, windows.AnyTrigger, windows.AnyEvictor


def page() -> str:
    parts = [_head(), "## The file itself\n", _table(DefinitionFile)]
    for name, section in sections(DefinitionFile):
        parts.append(f"\n## `[{name}]`\n\n{_about(section)}\n\n{_table(section)}")
    parts.append(f"\n## `[window]`\n\n{_shared()}")
    parts += [_of_kind(kind) for kind in models(WINDOWS)]
    for name, union in (("trigger", TRIGGERS), ("evictor", EVICTORS)):
        parts.append(f"\n## `[window.{name}]`\n\n`type` says which.")
        parts += [_of_kind(kind) for kind in models(union)]
    parts.append(_functions())
    return "\n".join(parts) + "\n"


def _head() -> str:
    """The head of the page, with the reserved names that the contract gives."""
    reserved = {"{results}": RESULT_CHANGES.names, "{beside results}": [*PARTIAL_NAMES, *BESIDE_RESULTS]}
    head = HEAD
    for place, names in reserved.items():
        head = head.replace(place, ", ".join(f"`{name}`" for name in names))
    return head


FUNCTIONS_HEAD = """
## Functions of aggregates

Each function may have `filter (where …)`. An expression may compute with them in SQL:
`"round(sum(value) / count(*), 2)"`. Functions behave as in Spark with ANSI mode on: an overflow is an error, never a
wrong number. They ignore nulls unless the table says otherwise. [What is proved](proved.md) lists types and engines.

Without values other than null:

* counts give 0, and `histogram` gives a 0 for each part;
* `collect_list` and `collect_set` give `[]`, and `hll_sketch_agg` gives an empty sketch;
* all others give null.
"""


def _functions() -> str:
    """Every aggregate function, with its other names."""

    def named(name: str) -> str:
        others = [alias for alias, of in ALIASES.items() if of == name and alias != "count_if"]
        call = f"{name}({', '.join('xy'[: CALLABLE[name].arguments])})"
        return ", ".join(f"`{one}`" for one in (call, *others))

    rows = [(named(name), function.says) for name, function in CALLABLE.items()]
    rows += [(f"`{name}(x, y)`", says) for name, says in WRITTEN_OUT.items()]
    rows.insert(1, ("`count_if(x)`", "how often a condition is true: `count(*) filter (where x)`"))
    return f"{FUNCTIONS_HEAD}\n{table(('function', 'what it gives'), rows)}"


def models(annotation: Any) -> Iterator[type[Section]]:
    """The models of a union, in its order."""
    if inspect.isclass(annotation) and issubclass(annotation, Section):
        yield annotation
    for part in get_args(annotation):
        yield from models(part)


def sections(model: type[Section]) -> Iterator[tuple[str, type[Section]]]:
    """The tables of the file that are always of one shape; `[window]` is a choice of several."""
    for name, field in model.model_fields.items():
        found = list(models(field.annotation))
        if len(found) == 1:
            yield key_of(name, field), found[0]
            yield from ((f"{key_of(name, field)}.{inner}", model) for inner, model in sections(found[0]))


def key_of(name: str, field: FieldInfo) -> str:
    return field.alias or name.removesuffix("_ms")


def keys(model: type[Section]) -> Iterator[tuple[str, str, str]]:
    """Key, default and meaning of each field that is not a table of its own shape, `type` aside."""
    nested = {name for name, _ in sections(model)}
    for name, field in model.model_fields.items():
        if name != "type" and key_of(name, field) not in nested and name != "window":
            yield key_of(name, field), default(name, field), meaning(field)


def default(name: str, field: FieldInfo) -> str:
    """The default as TOML, in code; "required", or "none" where nothing stands for it."""
    value = field.default
    if field.is_required():
        return "*required*"
    if name.endswith("_ms") and value is not None:
        return f'`"{format_duration(value) if value else "0s"}"`'
    return "none" if value in (None, {}, ()) else f"`{json.dumps(value, default=str)}`"


def meaning(field: FieldInfo) -> str:
    """The description of a key, values in it as code."""
    text = (field.description or "").removesuffix(f", {ALLOWED}")
    return VALUE.sub(r"`\1`", text)


def _table(model: type[Section], but: frozenset[str] = frozenset()) -> str:
    rows = [(f"`{key}`", default, text) for key, default, text in keys(model) if key not in but]
    return table(("key", "default", "meaning"), rows) if rows else ""


def _about(model: type[Section]) -> str:
    text = inspect.getdoc(model) or ""
    return sentence(text.partition(": ")[2] or text)


def _shared() -> str:
    """The keys that several kinds of window have."""
    return (
        "`type` says which kind of window. Every kind may have code of its own for its results:\n\n"
        f"{_table(windows.WithFunction)}\n\nAll but count windows also take:\n\n"
        f"{_table(windows.Window, _keys(windows.WithFunction))}"
    )


def _of_kind(model: type[KindSection]) -> str:
    shown = _table(model, _keys(model.__base__))
    form = model.tag.removeprefix(model.kind.name).replace("time_zone", "`time_zone`")
    return f'\n### `type = "{model.kind.name}"`{form}\n\n{model.kind.meaning}\n' + (f"\n{shown}" if shown else "")


def _keys(model: type[Section]) -> frozenset[str]:
    return frozenset(key for key, _, _ in keys(model))
