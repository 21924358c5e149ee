"""The report: pages for the newest batches, made from kept outcomes alone, whose links all lead somewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from tests.check_samples import FIGURES, definition
from windowlib.model.watermark import MAX_WATERMARK
from windowlib.quality import report
from windowlib.quality.check import check
from windowlib.quality.overview import TRENDS, chart, overview_page
from windowlib.quality.validations import Validated, kept


class Page(HTMLParser):
    """What a test wants to know of a page: its words, its links, and the charts' bars by class."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.words: list[str] = []
        self.bars: list[str | None] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag == "a" and known.get("href"):
            self.links.append(str(known["href"]))
        if tag == "rect":
            self.bars.append(known.get("class"))

    def handle_data(self, data: str) -> None:
        self.words.append(data.strip())

    @property
    def text(self) -> str:
        return " ".join(word for word in self.words if word)


def local(links: list[str]) -> list[str]:
    return [unquote(urlparse(link).path) for link in links if not urlparse(link).scheme and urlparse(link).path]


@pytest.fixture
def clicks(tmp_path: Path):
    return definition(tmp_path)


def test_every_batch_has_a_page_per_suite(clicks):
    check(clicks, {**FIGURES, "batch_id": 6})
    check(clicks, {**FIGURES, "batch_id": 7, "windows_touching": 2, "rows_late": 9, "events_in_state_after": 871})
    index = report.report(clicks)

    assert index == clicks.root / "data_docs" / "index.html"
    overview = Page(index)
    pages = [link for link in local(overview.links) if link.startswith("validations/")]
    assert len(pages) == 2 * 3
    assert "Windows in flight of a key never touch." in overview.text
    assert sorted(set(overview.bars)) == ["critical", "met"]
    assert "://" not in index.read_text(encoding="utf-8")  # nothing is loaded from elsewhere

    state = Page(index.parent / next(page for page in pages if "state/batch-000007" in page))
    assert "✗" in (index.parent / pages[0]).read_text(encoding="utf-8")  # the icon that needs no internet
    assert "Windows in flight of a key never touch. 2" in state.text
    assert "The watermark never falls. 0" in state.text


def test_all_links_lead_somewhere(clicks):
    check(clicks, FIGURES)
    site = report.report(clicks).parent
    for file in site.rglob("*.html"):
        for link in local(Page(file).links):
            assert (file.parent / link).exists(), f"{file} links to {link}"


def test_a_report_replaces_the_earlier_one(clicks, monkeypatch):
    monkeypatch.setattr(report, "DOCUMENTED_BATCHES", 1)
    check(clicks, FIGURES)
    first = report.report(clicks)
    check(clicks, {**FIGURES, "batch_id": 8})
    assert report.report(clicks) == first
    assert [file.parts[-3] for file in first.parent.rglob("batch.html") if "state" in file.parts] == ["batch-000008"]
    overview = Page(first)
    assert len([link for link in local(overview.links) if link.startswith("validations/")]) == 3
    assert overview.text.count("✓") == 2 * 3  # the older batch is listed, without links
    assert sorted(path.name for path in clicks.root.iterdir()) == ["checks", "data_docs"]


def test_without_a_checked_batch_it_says_what_to_do(clicks):
    with pytest.raises(report.NothingChecked, match=r"run `windowlib run .*clicks\.toml`"):
        report.report(clicks)


def test_what_a_definition_says_is_text_not_markup(clicks):
    suites = [{"suite_name": "<b>", "success": True, "results": []}]
    page = overview_page("<script>", [Validated(1, FIGURES, suites)], {}, "data_docs.html")
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "&lt;b&gt;" in page


def test_what_failed_is_shown_with_what_was_observed(clicks):
    check(clicks, {**FIGURES, "rows_read": FIGURES["rows_read"] + 1})
    page = overview_page("clicks", kept(clicks.root), {}, "data_docs.html")
    assert "Every row read was either admitted or quarantined. Observed 1.</li>" in page


def test_charts_show_batches_from_old_to_new():
    batches = [Validated(n, {**FIGURES, "rows_read": rows}, []) for n, rows in ((3, 50), (2, None), (1, 100))]
    rows_read = chart("Rows read", lambda figures: figures["rows_read"], str, batches)
    assert [(bar.title, bar.height) for bar in rows_read.bars] == [("batch 1: 100", 90), ("batch 3: 50", 45)]
    assert rows_read.highest == "100"


def test_a_batch_that_read_nothing_can_be_shown(clicks):
    nothing = dict.fromkeys(FIGURES, 0) | {
        "batch_id": 1,
        "watermark_in_ms": None,
        "watermark_candidate_ms": None,
        "watermark_out_ms": -(2**63),
    }
    check(clicks, nothing)
    assert "1970-01-01" in Page(report.report(clicks)).text
    (batch,) = kept(clicks.root)
    assert batch.failed == []
    assert [value(nothing) for _, value, _ in TRENDS] == [0, 0, None, None]
    finished = TRENDS[3][1]({**FIGURES, "watermark_out_ms": MAX_WATERMARK})
    assert finished is None
