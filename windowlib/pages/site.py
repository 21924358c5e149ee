"""Pages as files that open without a server and a network."""

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
from windowlib.ledger.ledger import Ledger
from windowlib.model.errors import InvalidSpec
from windowlib.pages import metrics
from windowlib.pages.overview import Overview, in_order, unreadable
from windowlib.pages.pipeline import pipeline
from windowlib.pages.pipeline_state import ObservedPipeline, observe_pipeline
from windowlib.pages.render import PageLinks, home_page, pipeline_page, problem_page
from windowlib.quality import stores
from windowlib.storage.store import Store

FOLDER = "pages"
PAGE = "index.html"
WITHIN = PageLinks(pipeline=lambda name: PAGE, home=f"../{PAGE}")  # links of a pipeline's page below the home page


def report(definition: Definition, now_ms: int, ledger: Ledger | None = None) -> str:
    """Writes the page of a pipeline into `pages`, and its metrics next to the tables. Returns the page's address.

    For `ledger`, see `observe_pipeline`.
    """
    place, observed = PageLinks(pipeline=lambda name: PAGE, home=None), observe_pipeline(definition, now_ms, ledger)
    _store(observed)
    metrics.write(_samples(observed), definition.store)
    return _put(definition.store, f"{FOLDER}/{PAGE}", pipeline_page(pipeline(observed, keep=True), place))


@dataclass(frozen=True, slots=True)
class SiteBuild:
    """Addresses of pages to open, and the errors of pipelines that could not be read."""

    pages: list[str] = field(default_factory=list)
    errors: list[tuple[Definition, Exception]] = field(default_factory=list)


def reports(definitions: Sequence[Definition], now_ms: int, say: Callable[[str], None]) -> SiteBuild:
    """Writes the page of each pipeline, like `report`. `say` gets a progress line per pipeline."""
    built = SiteBuild()
    for definition in definitions:
        say(f"building the page of {definition.name}")
        try:
            built.pages.append(report(definition, now_ms))
        except Exception as error:  # any error: the other pipelines must continue
            built.errors.append((definition, error))
    return built


def site(
    definitions: Sequence[Definition], store: Store, now_ms: int, mistakes: Mapping[Path, str] = MappingProxyType({})
) -> SiteBuild:
    """Writes a home page, a page of each pipeline, and their metrics into a storage. Returns the home page.

    `mistakes` has the reasons why definitions cannot be used, by file. Such pipelines, and pipelines that cannot be
    read, get a row and a page with the reason. Raises `InvalidSpec` if two pipelines have the same name.
    """
    names = [definition.name for definition in definitions]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidSpec(f"two definitions have the name {twice}, but each page needs its own name; leave one out")
    samples, rows, built = list[metrics.Sample](), list[Overview](), SiteBuild()
    broken = [unreadable(name, why) for name, why in zip(_names(mistakes, names), mistakes.values(), strict=True)]
    folders = _folders([*names, *(row.name for row in broken)])
    for definition in definitions:
        try:
            observed = observe_pipeline(definition, now_ms)
            with suppress(OSError):  # a read-only warehouse is shown in another folder
                _store(observed)
            page, page_samples = pipeline(observed, keep=True), _samples(observed)
        except Exception as error:  # any error: the other pipelines must continue
            built.errors.append((definition, error))
            broken.append(unreadable(definition.name, str(error) or type(error).__name__))
        else:
            samples += page_samples
            rows.append(page.overview)
            _put(store, f"{folders[definition.name]}/{PAGE}", pipeline_page(page, WITHIN))
    for row in broken:
        _put(store, f"{folders[row.name]}/{PAGE}", problem_page(row, now_ms, WITHIN))
    metrics.write(samples, store)
    place = PageLinks(pipeline=lambda name: f"{quote(folders[name])}/{PAGE}", home=None)
    built.pages.append(_put(store, PAGE, home_page(in_order([*rows, *broken]), now_ms, place)))
    return built


def _names(files: Iterable[Path], reserved: Iterable[str]) -> list[str]:
    """Shortest unused name for each file.

    >>> _names([Path("a/x.toml"), Path("b/x.toml"), Path("c/x.toml")], [])
    ['x', 'x.toml', 'c/x.toml']
    """
    names, used = list[str](), {*reserved}
    for file in files:
        names.append(next((name for name in (file.stem, file.name) if name not in used), str(file)))
        used.add(names[-1])
    return names


def _folders(names: Iterable[str]) -> dict[str, str]:
    """A folder for each name, valid in every file system and browser.

    >>> _folders(["clicks", "a#b", "a?b", "index.html", "."])
    {'clicks': 'clicks', 'a#b': 'a-b', 'a?b': 'a-b-2', 'index.html': 'index.html-2', '.': '-'}
    """
    folders, used = dict[str, str](), {PAGE, metrics.FILE}
    for name in names:
        plain = re.sub(r"^\.|[^\w.-]", "-", name)
        numbered = (f"{plain}-{number}" for number in count(2))
        folders[name] = next(folder for folder in chain([plain], numbered) if folder not in used)
        used.add(folders[name])
    return folders


def _samples(observed: ObservedPipeline) -> list[metrics.Sample]:
    return metrics.samples_of(observed.definition, observed.now_ms, observed.tables, observed.ledger, observed.tail)


def _store(observed: ObservedPipeline) -> None:
    """Updates the Great Expectations stores with the outcomes of a pipeline."""
    if observed.checked:
        stores.store(observed.definition.store, observed.checked)


def _put(store: Store, path: str, page: str) -> str:
    """Writes a page. Returns its address."""
    store.put(path, page.encode())
    return f"{store}/{path}"
