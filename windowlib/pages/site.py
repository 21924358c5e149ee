"""The pages as files, which open without a server and without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from windowlib.definition.definition import Definition
from windowlib.model.errors import InvalidSpec
from windowlib.pages import metrics
from windowlib.pages.looked import Looked, looked
from windowlib.pages.overview import Overview, in_order
from windowlib.pages.pipeline import Pipeline, pipeline
from windowlib.pages.render import Place, home_page, pipeline_page
from windowlib.quality.stores import store
from windowlib.tables import disk

FOLDER = "pages"
PAGE = "index.html"


def report(definition: Definition, now_ms: int) -> Path:
    """Writes the page of a pipeline into `<root>/pages`, and its metrics next to the tables; gives the page's path."""
    place, found = Place(pipeline=lambda name: PAGE, home=None), looked(definition, now_ms)
    metrics.write(_samples(found), definition.root)
    return disk.put(definition.root / FOLDER / PAGE, pipeline_page(_pipeline(found), place))


def site(definitions: Sequence[Definition], folder: Path, now_ms: int) -> Path:
    """Writes a home page, a page of each pipeline, and their metrics into a folder; gives the home page's path.

    Raises `InvalidSpec` where two have one name.
    """
    names = [one.name for one in definitions]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidSpec(f"two of the definitions have the name {twice}, and pages are named like it; leave one out")
    samples, rows = list[metrics.Sample](), list[Overview]()
    for one in definitions:
        found = looked(one, now_ms)
        shown = _pipeline(found)
        samples += _samples(found)
        rows.append(shown.overview)
        disk.put(folder / one.name / PAGE, pipeline_page(shown, Place(lambda name: PAGE, home=f"../{PAGE}")))
    metrics.write(samples, folder)
    place = Place(pipeline=lambda name: f"{name}/{PAGE}", home=None)
    return disk.put(folder / PAGE, home_page(in_order(rows), now_ms, place))


def _samples(found: Looked) -> list[metrics.Sample]:
    return metrics.samples_of(found.definition, found.now_ms, found.tables, found.ledger, found.tail)


def _pipeline(found: Looked) -> Pipeline:
    """What the page of a pipeline shows; Great Expectations' stores of its outcomes are brought up to date."""
    if found.checked:
        store(found.definition.root, found.checked)
    return pipeline(found, keep=True)
