"""Decimal mark of each locale, comma or point, from Unicode's CLDR.

Thousands may be separated by the other mark, a blank or an apostrophe. The decimal mark makes a number unambiguous.
"""

from __future__ import annotations

_LANGUAGES = {
    ".": " en zh ja ko th he hi ms sw fil cy ga ",
    ",": " de fr es it pt nl pl cs sk da sv nb nn no fi is et lv lt ru uk be bg mk sr hr sl bs hu ro el tr id vi ca gl"
    " eu az ka kk sq ",
}
_COUNTRIES = {
    ".": " de-CH de-LI it-CH es-MX es-US es-GT es-HN es-NI es-PA es-PE es-PR es-SV es-DO es-BR es-BZ es-CU ",
    ",": " en-AT en-BE en-CZ en-DE en-DK en-ES en-FI en-FR en-HU en-ID en-IT en-NL en-NO en-PL en-PT en-RO en-SE en-SI"
    " en-SK ms-BN ms-ID sw-CD ",
}
_DISPUTED = ("en-ZA",)


def decimal_mark(locale: str | None) -> str | None:
    """Decimal mark of a locale; a point without a locale, None if the mark is not known.

    >>> decimal_mark("de-DE"), decimal_mark("de-CH"), decimal_mark(None), decimal_mark("ar-EG")
    (',', '.', '.', None)
    """
    if locale is None or locale in _DISPUTED:
        return None if locale else "."
    tables = ((_COUNTRIES, locale), (_LANGUAGES, locale.partition("-")[0]))
    return next((mark for marks, name in tables for mark, names in marks.items() if f" {name} " in names), None)
