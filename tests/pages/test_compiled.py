"""Templates are compiled once, and a damaged cache does no harm."""

from __future__ import annotations

from pathlib import Path

import jinja2
import pytest

from windowlib.pages.compiled import TemplateCache


def rendered(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """NumericOutput of a template, and the number of its compilations."""
    made = jinja2.Environment(
        loader=jinja2.DictLoader({"one": text}), bytecode_cache=TemplateCache(folder), autoescape=True
    )
    compiled: list[str] = []
    real = jinja2.Environment._generate
    monkeypatch.setattr(made, "_generate", lambda *given, **more: compiled.append("one") or real(made, *given, **more))
    return made.get_template("one").render(), len(compiled)


def test_a_template_is_compiled_once_and_again_when_its_text_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [rendered(text, tmp_path / "new", monkeypatch) for text in ("a{{ 1 }}", "a{{ 1 }}", "b{{ 2 }}", "b{{ 2 }}")]
    assert found == [("a1", 1), ("a1", 0), ("b2", 1), ("b2", 0)]


@pytest.mark.parametrize("cut", [0, 3, 11, 20, 30])
def test_a_damaged_cached_template_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    rendered("a{{ 1 }}", tmp_path, monkeypatch)
    [kept] = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:cut])
    assert rendered("a{{ 1 }}", tmp_path, monkeypatch) == ("a1", 1)


def test_an_unwritable_cache_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    assert rendered("a{{ 1 }}", tmp_path / "file" / "folder", monkeypatch) == ("a1", 1)
