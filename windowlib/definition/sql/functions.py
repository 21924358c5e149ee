"""SQL functions that an expression of ``[aggregates]`` may call: deterministic, and without side effects.

A retry must give the same results, so a function may not use the clock, random numbers, the session or anything else
outside the row. Functions that are not listed are refused, also new functions of an engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

import sqlglot
from sqlglot.tokenizer_core import Token, TokenType

from windowlib.plans.aggregates.functions import NAMES


def listed(names: str) -> frozenset[str]:
    """Splits a string into names at its blanks."""
    return frozenset(names.split())


SCALAR = listed(
    """
    coalesce if ifnull nanvl nullif nullifzero nvl nvl2 zeroifnull equal_null isnan isnotnull isnull abs acos acosh
    asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc degrees e exp expm1 factorial floor
    greatest hex hypot least ln log log10 log1p log2 mod negative pi pmod positive pow power radians rint round sec
    shiftleft shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh try_add try_divide try_mod try_multiply
    try_subtract unhex width_bucket bit_count bit_get getbit ascii base64 bit_length btrim char char_length
    character_length chr concat concat_ws contains decode elt encode endswith find_in_set format_number format_string
    initcap instr is_valid_utf8 lcase left len length levenshtein locate lower lpad ltrim make_valid_utf8 mask
    octet_length overlay position printf regexp regexp_count regexp_extract regexp_extract_all regexp_instr
    regexp_like regexp_replace regexp_substr repeat replace reverse right rlike rpad rtrim sentences soundex space
    split split_part startswith substr substring substring_index to_binary to_char to_number to_varchar translate trim
    try_to_binary try_to_number ucase unbase64 upper add_months convert_timezone date_add date_diff date_format
    date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek
    dayofyear extract from_unixtime from_utc_timestamp hour last_day make_date make_dt_interval make_interval
    make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval minute month monthname months_between
    next_day quarter second timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff to_date
    to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc try_make_timestamp
    try_to_date try_to_timestamp unix_date unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear year
    crc32 hash md5 sha sha1 sha2 xxhash64 cast try_cast bigint binary boolean date decimal double float int smallint
    string timestamp tinyint aggregate array array_append array_compact array_contains array_distinct array_except
    array_insert array_intersect array_join array_max array_min array_position array_prepend array_remove array_repeat
    array_size array_sort array_union arrays_overlap arrays_zip cardinality element_at exists filter flatten forall
    get map_filter map_zip_with named_struct reduce sequence size slice sort_array struct transform transform_keys
    transform_values try_element_at zip_with map map_concat map_contains_key map_entries map_from_arrays
    map_from_entries map_keys map_values str_to_map from_json get_json_object json_array_length json_object_keys
    to_json parse_url try_parse_url url_decode url_encode try_url_decode typeof hll_sketch_estimate hll_union
    """
)
ANOTHER_EACH_TIME = listed(
    """
    rand randn random randstr uniform uuid shuffle now curdate current_date current_time current_timestamp
    localtimestamp current_timezone monotonically_increasing_id spark_partition_id input_file_name
    input_file_block_start input_file_block_length current_user session_user user current_catalog current_database
    current_schema version
    """
)
INSTEAD = {
    **dict.fromkeys(("mean", "try_avg"), "did you mean avg?"),
    "first_value": "did you mean first?",
    "last_value": "did you mean last?",
    "countif": "did you mean count_if?",
    "logical_and": "did you mean bool_and?",
    **dict.fromkeys(("any", "logical_or"), "did you mean bool_or?"),
    "approx_distinct": "did you mean approx_count_distinct?",
    **dict.fromkeys(("quantile", "percentile_cont"), "did you mean percentile?"),
    **dict.fromkeys(
        ("approx_percentile", "percentile_approx", "approx_quantile"),
        "percentile(x, 0.95) is exact, of as many values as a window may keep; sketches are not: they differ by retry",
    ),
    **dict.fromkeys(
        ("listagg", "string_agg", "group_concat"), "write array_join(collect_list(…), ',')"
    ),
    "histogram_numeric": "histogram(x, array(0, 10, 100)) counts between bounds",
    **dict.fromkeys(("approx_top_k", "topk", "top_k"), "mode(x) is exact; sketches are not: they differ by retry"),
    "variance_pop": "did you mean var_pop?",
    **dict.fromkeys(("arg_max", "argmax"), "did you mean max_by?"),
    **dict.fromkeys(("arg_min", "argmin"), "did you mean min_by?"),
    **dict.fromkeys(
        ("percentile_disc", "skewness", "kurtosis", "grouping"),
        "write it in Python: window.function",
    ),
}  # fmt: skip
# Words, other than functions, that an expression may contain if all its column names are in quotes.
_WORDS = listed(
    """
    and or not in is null true false case when then else end between like ilike rlike regexp as filter where distinct
    interval div escape from asc desc nulls first last any some all nan ignore respect string boolean tinyint byte
    smallint short int integer bigint long float real double decimal dec numeric date timestamp timestamp_ntz
    timestamp_ltz binary void array map struct char varchar year years quarter month months week weeks day days hour
    hours minute minutes second seconds millisecond milliseconds microsecond microseconds doy dow dayofweek dayofyear
    yearofweek to both leading trailing placing for
    """
)
_KNOWN = SCALAR | {*NAMES}


def refuse_unknown(sql: str) -> None:
    """Raises ValueError for the first function that an expression may not call; `sql` is the author's text."""
    for name, before in _calls(sql):
        if before == ".":
            raise ValueError(f"calls {name}() of a schema; only Spark's own functions can be called")
        aggregates = name == "any" and before not in ("like", "ilike")
        if name not in _KNOWN and (name not in _WORDS or aggregates):
            raise ValueError(f"uses {unknown(name)}")
    if re.search(r"\bunix_timestamp\s*\(\s*\)", sql, re.IGNORECASE):
        raise ValueError("uses unix_timestamp() without an argument; it gives another value at each retry")


def refuse_words(quoted_sql: str) -> None:
    """Raises ValueError for the first word that is not allowed, such as current_user. Columns must be in quotes."""
    refuse_unknown(quoted_sql)
    for token, after in _pairs(quoted_sql):
        word = token.text.casefold()
        is_word = word[:1].isalpha() or word[:1] == "_"
        if not is_word or token.token_type in (TokenType.IDENTIFIER, TokenType.STRING) or word in _WORDS:
            continue
        if after is None or after.token_type is not TokenType.L_PAREN:
            is_call = word in ANOTHER_EACH_TIME
            raise ValueError(f"uses {unknown(word)}" if is_call else f"uses the unknown word {word}")


def unknown(name: str) -> str:
    """Message about a function that may not be called, with a replacement if there is one.

    >>> unknown("argmax").partition("; ")[2]
    'did you mean max_by?'
    >>> unknown("rond")
    'the unsupported function rond(); did you mean round?'
    """
    if name in ANOTHER_EACH_TIME:
        return f"{name}(), but its value differs at each retry"
    near = next(iter(get_close_matches(name, NAMES, n=1, cutoff=0.75)), None)
    if name in INSTEAD or near:
        instead = INSTEAD.get(name) or f"did you mean {near}?"
        return f"the unknown function {name}() (known: {', '.join(NAMES)}); {instead}"
    near = next(iter(get_close_matches(name, sorted(SCALAR), n=1, cutoff=0.75)), None)
    return f"the unsupported function {name}(){f'; did you mean {near}?' if near else ''}"


def _calls(sql: str) -> Iterator[tuple[str, str]]:
    """Yields the name of each called function, with the token before the name."""
    before = ""
    for token, after in _pairs(sql):
        named = token.token_type is TokenType.IDENTIFIER or token.text[:1].isalpha() or token.text[:1] == "_"
        if named and token.token_type is not TokenType.STRING and after and after.token_type is TokenType.L_PAREN:
            yield token.text.casefold(), before
        before = token.text.casefold()


def _pairs(sql: str) -> Iterator[tuple[Token, Token | None]]:
    tokens = sqlglot.tokenize(sql, read="spark")
    return zip(tokens, [*tokens[1:], None], strict=True)
