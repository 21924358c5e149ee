"""The pages as files, which open without a server and without a network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from windowlib.definition.definition import Definition
from windowlib.delta import disk
from windowlib.ledger.ledger import Ledger
from windowlib.model.errors import InvalidSpec
from windowlib.pages import metrics
from windowlib.pages.overview import Overview, in_order, unreadable
from windowlib.pages.pipeline import pipeline
from windowlib.pages.pipeline_state import ObservedPipeline, looked
from windowlib.pages.render import PageLinks, home_page, pipeline_page
from windowlib.quality.stores import store

FOLDER = "pages"
PAGE = "index.html"
WITHIN = PageLinks(pipeline=lambda name: PAGE, home=f"../{PAGE}")  # the page of a pipeline, below the home page


def report(definition: Definition, now_ms: int, ledger: Ledger | None = None) -> Path:
    """Writes the page of a pipeline into `<root>/pages`, and its metrics next to the tables; gives the page's path.

    `ledger` is that of a run that has just ended: its tables are open.
    """
    place, found = PageLinks(pipeline=lambda name: PAGE, home=None), looked(definition, now_ms, ledger)
    _store(found)
    metrics.write(_samples(found), definition.root)
    return disk.put(definition.root / FOLDER / PAGE, pipeline_page(pipeline(found, keep=True), place))


@dataclass(frozen=True, slots=True)
class SiteBuild:
    """The pages to open, and what was wrong with the pipelines that could not be looked at."""

    pages: list[Path] = field(default_factory=list)
    errors: list[tuple[Definition, Exception]] = field(default_factory=list)


def reports(definitions: Sequence[Definition], now_ms: int, say: Callable[[str], None]) -> SiteBuild:
    """As `report`, of each pipeline; `say` is called with what is being done."""
    built = SiteBuild()
    for one in definitions:
        say(f"building the page of {one.name}")
        try:
            built.pages.append(report(one, now_ms))
        except Exception as error:  # anything at all: the other pipelines must go on
            built.errors.append((one, error))
    return built


def site(
    definitions: Sequence[Definition], folder: Path, now_ms: int, mistakes: Mapping[Path, str] = MappingProxyType({})
) -> SiteBuild:
    """Writes a home page, a page of each pipeline, and their metrics into a folder; gives the home page.

    A pipeline that cannot be looked at, or whose definition cannot be used (`mistakes`: by its file, why), has a row
    and a page that say so. Raises `InvalidSpec` where two have one name.
    """
    names = [one.name for one in definitions]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidSpec(f"two of the definitions have the name {twice}, and pages are named like it; leave one out")
    samples, rows, built = list[metrics.Sample](), list[Overview](), SiteBuild()
    broken = [unreadable(name, why) for name, why in zip(_names(mistakes, names), mistakes.values(), strict=True)]
    folders = _folders([*names, *(one.name for one in broken)])
    for one in definitions:
        try:
            found = looked(one, now_ms)
            with suppress(OSError):  # a warehouse that takes no file is shown elsewhere
                _store(found)
            shown, of_one = pipeline(found, keep=True), _samples(found)
        except Exception as error:  # anything at all: the other pipelines must go on
            built.errors.append((one, error))
            broken.append(unreadable(one.name, str(error) or type(error).__name__))
        else:
            samples += of_one
            rows.append(shown.overview)
            disk.put(folder / folders[one.name] / PAGE, pipeline_page(shown, WITHIN))
    for row in broken:
        disk.put(folder / folders[row.name] / PAGE, home_page([row], now_ms, WITHIN))
    metrics.write(samples, folder)
    place = PageLinks(pipeline=lambda name: f"{quote(folders[name])}/{PAGE}", home=None)
    built.pages.append(disk.put(folder / PAGE, home_page(in_order([*rows, *broken]), now_ms, place)))
    return built


def _names(files: Iterable[Path], taken: Iterable[str]) -> list[str]:
    """What files are called: as short as no other is called.

    >>> _names([Path("a/x.toml"), Path("b/x.toml"), Path("c/x.toml")], [])
    ['x', 'x.toml', 'c/x.toml']
    """
    found, known = list[str](), {*taken}
    for file in files:
        found.append(next((name for name in (file.stem, file.name) if name not in known), str(file)))
        known.add(found[-1])
    return found


def _folders(names: Iterable[str]) -> dict[str, str]:
    """A folder for each name, which any file system and browser takes.

    >>> _folders(["clicks", "a#b", "a?b", "index.html", "."])
    {'clicks': 'clicks', 'a#b': 'a-b', 'a?b': 'a-b-2', 'index.html': 'index.html-2', '.': '-'}
    """
    found, taken = dict[str, str](), {PAGE, metrics.FILE}
    for name in names:
        plain = re.sub(r"^\.|[^\w.-]", "-", name)
        numbered = (f"{plain}-{number}" for number in count(2))
        found[name] = next(one for one in chain([plain], numbered) if one not in taken)
        taken.add(found[name])
    return found


def _samples(found: ObservedPipeline) -> list[metrics.Sample]:
    return metrics.samples_of(found.definition, found.now_ms, found.tables, found.ledger, found.tail)


def _store(found: ObservedPipeline) -> None:
    """Brings Great Expectations' stores of a pipeline's outcomes up to date."""
    if found.checked:
        store(found.definition.root, found.checked)
