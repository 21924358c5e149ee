"""Expressions in Spark's SQL, read as Spark 4.2 reads them."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark


class SparkTexts(Spark):
    """sqlglot's Spark, where a quote that is written twice is a quote of the text: sqlglot takes it for two texts."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["'", '"', "\\"]  # noqa: RUF012  as sqlglot declares it


def parse_sql(sql: str, into: Any = None) -> exp.Expr:
    r"""An expression as a tree. Raises `sqlglot.errors.SqlglotError`, and what its parser makes of some broken texts.

    >>> parse_sql("'it''s'").sql(dialect="spark"), parse_sql("'it' 's'").sql(dialect="spark")
    ("'it\\'s'", "CONCAT('it', 's')")
    """
    tree: exp.Expr = sqlglot.parse_one(sql, dialect=SparkTexts, into=into)
    return tree
