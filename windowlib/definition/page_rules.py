"""Rules of `[pages]` that concern other keys."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from windowlib.definition.mistakes import Mistake, in_toml, nearest

NEARLY_THE_SAME = 0.8  # ratio of difflib: one letter in five differs


def hidden_columns(
    hide: Sequence[str], columns: Collection[str], rename: dict[str, str], *, whole: bool
) -> Iterator[Mistake]:
    """Checks that hidden columns exist, because the values of a misspelled column would be shown.

    Unless the schema is `whole`, the source may have further columns, which no page shows. Then only a name that is
    similar to a known column is a mistake.
    """
    folded = {name.casefold() for name in columns}
    renamed = {name.casefold(): name_here for name, name_here in rename.items()}
    for name in hide:
        if name.casefold() in folded:
            continue
        if name_here := renamed.get(name.casefold()):
            yield Mistake("pages.hide", f"column {in_toml(name)} is called {in_toml(name_here)} here, by source.rename")
        elif whole or nearest(name, columns, cutoff=NEARLY_THE_SAME):
            yield Mistake("pages.hide", f"there is no column {in_toml(name)}{nearest(name, columns)}")


def headline_outputs(headline: Sequence[str], outputs: Collection[str]) -> Iterator[Mistake]:
    """Checks that outputs of the headline exist."""
    for name in headline:
        if name not in outputs:
            yield Mistake("pages.headline", f"there is no output {in_toml(name)}{nearest(name, outputs)}")
