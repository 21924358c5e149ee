"""Place of an error in the user's code: file and line, in words.

The place is the last frame of the traceback outside `windowlib.plans` and all libraries; or else the last frame outside
`windowlib.plans`.
"""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

_OURS = str(Path(__file__).parents[2])
_LIBRARIES = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def in_words(error: BaseException) -> str:
    """Type and message of an error, with file and line of the user's code if the traceback has them.

    >>> in_words(ValueError("no limit"))
    'ValueError: no limit'
    """
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):  # raised in a generator
        return f"StopIteration: next() found no value{_place(error.__cause__)}"
    text = _text(error)
    description = type(error).__name__ + (f": {text}" if text else "")
    return description if isinstance(error, SyntaxError) else description + _place(error)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its text cannot be shown)"


def _place(error: BaseException) -> str:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((f"{_OURS}/", "<frozen "))
    ]
    places = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)] or frames
    return f" ({places[-1].filename}, line {places[-1].lineno})" if places else ""
