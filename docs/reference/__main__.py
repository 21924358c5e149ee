"""`python -m docs.reference` writes the pages of the reference next to this file, and the recipe for contributors."""

from __future__ import annotations

from pathlib import Path

from docs.reference import commands, exit_codes, faults, figures, keys, names, on_disk, proved, recipe, storages, tables

HERE = Path(__file__).parent
PAGES = {
    "definition": keys.page,
    "tables": tables.page,
    "json": on_disk.page,
    "commands": commands.page,
    "exit-codes": exit_codes.page,
    "figures": figures.page,
    "python": names.page,
    "proved": proved.page,
    "../how-it-works/faults": faults.page,
    "../how-it-works/storages": storages.page,
    "../contributing/add-a-trigger": recipe.page,
}


def files() -> dict[Path, str]:
    """Every page of the reference and its text."""
    return {(HERE / f"{name}.md").resolve(): page() for name, page in PAGES.items()}


def main() -> None:
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
