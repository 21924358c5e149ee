"""Refusal of strings in an expression that mean the time of the run, which differs at a retry.

Spark reads ``'now'``, ``'today'``, ``'tomorrow'`` and ``'yesterday'`` as times wherever it converts a constant string
to a time: in a cast, in a comparison with a time, next to a time in ``coalesce``. Case, blanks and a zone make no
difference. A string with only a time of day, such as ``'10:30'``, gets the day of the run. String functions can build
such strings, so strings that an expression builds from constants are refused too.
"""

from __future__ import annotations

import re

from sqlglot import exp

from windowlib.definition.sql.functions import listed

_OF_THE_RUN = re.compile(
    r"(now|today|tomorrow|yesterday)(?![a-z])\s*[\w+:/-]*"  # with an optional zone
    r"|T?\d{1,2}:\d{1,2}(:.*)?|T\d{1,2}",  # a time of day
    re.IGNORECASE,
)
_COMPARED = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between)
_MATCHED = (exp.Like, exp.ILike, exp.RegexpLike)
# Functions that return a string, which they may build from constants.
_TEXTS = listed(
    """
    concat concat_ws lower lcase upper ucase initcap trim btrim ltrim rtrim lpad rpad left right substr substring
    substring_index replace reverse repeat translate overlay regexp_replace regexp_extract regexp_substr split_part
    char chr decode elt format_string printf mask soundex to_char to_varchar unbase64 unhex url_decode url_encode
    try_url_decode from_unixtime date_format make_valid_utf8 hex base64 array_join
    """
)
_ABOUT_TEXTS = listed(
    """
    contains startswith endswith instr locate position length char_length find_in_set levenshtein split regexp_count
    regexp_instr regexp_like regexp_extract_all rlike
    """
)


def refuse_times_of_the_run(tree: exp.Expr) -> None:
    """Raises ValueError for the first string that is or may become a time of the run.

    >>> from windowlib.plans.aggregates.calls import parsed
    >>> refuse_times_of_the_run(parsed("count(*) filter (where lower(page) = 'now' or page like 'today')"))
    >>> refuse_times_of_the_run(parsed("count(*) filter (where at > ' Now')"))
    Traceback (most recent call last):
    ...
    ValueError: has the string ' Now', but as a time it means the time of the run, so it differs at each retry; \
to compare a string with it, use a string function, as in lower(column) = 'now'
    """
    for node in tree.walk():
        if isinstance(node, exp.Literal) and node.is_string:
            if _is_of_the_run(node.name) and not _stays_text(node):
                why = "but as a time it means the time of the run, so it differs at each retry"
                instead = "to compare a string with it, use a string function, as in lower(column) = 'now'"
                raise ValueError(f"has the string {node.name!r}, {why}; {instead}")
        elif _called(node) in _TEXTS and not node.find(exp.Column, exp.AggFunc, exp.Identifier):
            raise ValueError(
                f"builds a string from constants: {node.sql(dialect='spark')}; write it as a single literal"
            )


def _is_of_the_run(text: str) -> bool:
    """Tests if Spark reads a string as a time of the run.

    >>> [_is_of_the_run(text) for text in ("TODAY", " now UTC ", "now+01:00", "10:30", "T7")]
    [True, True, True, True, True]
    >>> [_is_of_the_run(text) for text in ("epoch", "nowhere", "now or never", "2026-03-02 10:30")]
    [False, False, False, False]
    """
    return bool(_OF_THE_RUN.fullmatch(text.strip()))


def _stays_text(literal: exp.Expr) -> bool:
    """Tests if a literal stays a string, because its expression does not convert it to a time."""
    around = literal.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    if isinstance(around, _COMPARED):
        return any(_called(operand) in _TEXTS for operand in around.iter_expressions())
    return isinstance(around, _MATCHED) or _called(around) in _TEXTS | _ABOUT_TEXTS


def _called(node: exp.Expr | None) -> str:
    """Spark's name of the function that a node calls; empty if the node is no call."""
    if isinstance(node, exp.DPipe):
        return "concat"
    return node.sql(dialect="spark").partition("(")[0].casefold() if isinstance(node, exp.Func) else ""
