"""Patterns of `matches` mean the same on Spark (Java), Sail (Rust), and Arrow (RE2), which counts for both."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.support.strategies import examples
from windowlib.definition.toml.patterns import portable
from windowlib.plans.functions import F

LETTERS = "abAZ09 é\n\r\x85\u2028😀_-.]^&~$"
PLAIN = st.sampled_from([*"abAZ09 é😀_-&~#", r"\.", r"\$", r"\]", r"\^", r"\-", r"\\", "."])
MEMBER = st.sampled_from([*"abAZ09 é😀_.$", "a-z", "0-9", "A-é", r"\]", r"\^", r"\-", r"\&", r"\~", r"\\"])
CLASS = st.builds(
    lambda no, members: f"[{no}{''.join(members)}]", st.sampled_from(["", "^"]), st.lists(MEMBER, min_size=1)
)
REPEATED = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,}", "{0,3}"])
ATOM = st.builds(str.__add__, PLAIN | CLASS, REPEATED)


def grouped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    branches = st.lists(st.lists(inner, min_size=1, max_size=3).map("".join), min_size=1, max_size=3).map("|".join)
    return st.builds(lambda text, times: f"({text}){times}", branches, st.sampled_from(["", "*", "+", "?"]))


def is_allowed(pattern: str) -> bool:
    try:
        return bool(portable(pattern))
    except ValueError:
        return False


PATTERNS = st.lists(st.recursive(ATOM, grouped, max_leaves=6), min_size=1, max_size=3).map("".join).filter(is_allowed)
TEXTS = st.text(LETTERS, max_size=6)


@pytest.mark.spark
@pytest.mark.both
@examples(8, 100)
@given(patterns=st.lists(PATTERNS, min_size=20, max_size=20), texts=st.lists(TEXTS, min_size=25, max_size=25))
def test_engines_agree_about_each_text(spark: SparkSession, patterns: list[str], texts: list[str]) -> None:
    columns = [F.col("text").rlike(portable(pattern)).alias(f"p{i}") for i, pattern in enumerate(patterns)]
    rows = spark.createDataFrame([(text,) for text in texts], "text string").select(*columns).collect()
    for number, pattern in enumerate(patterns):
        by_arrow = pc.match_substring_regex(pa.array(texts), portable(pattern)).to_pylist()
        assert [row[number] for row in rows] == by_arrow, (pattern, texts)


@pytest.mark.parametrize(
    "pattern",
    ["", "a||b", "(", ")", "[", "a**", "a*?", "a++", "^a", "a$", r"\d", r"\bx", "(?i)a", "(?:a)", "(a)\\1", "[[a]]",
     "[a&&b]", "[b-a]", "[]a]", "a{,2}", "a{3,2}", "a{100}", "(a{9}){9}", "{2}", "a\n", "\\", "[a", "x" * 201],
)  # fmt: skip
def test_other_patterns_are_refused_with_what_is_allowed(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"must be a pattern of characters, \., classes such as .* the whole value"):
        portable(pattern)
