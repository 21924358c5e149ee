"""`python -m docs.gallery` writes the page and its pictures."""

from __future__ import annotations

from pathlib import Path

from docs.gallery.entries import PLATES
from docs.gallery.page import page
from docs.gallery.picture import picture

DOCS = Path(__file__).parent.parent


def files() -> dict[Path, str]:
    """Every file of the gallery and what stands in it."""
    pictures = {DOCS / "windows" / f"{plate.name}.svg": picture(plate) for plate in PLATES}
    return {DOCS / "windows.md": page(), **pictures}


def main() -> None:
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
