"""Trees that Sail gets instead of SQL: they mean what the texts mean to Spark, and a batch makes few requests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyspark.sql.connect.proto as proto
import pytest
from google.protobuf.message import Message
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.clicks import CLICKS, START_MS, arrive, clicks
from windowlib.engines import sail_requests
from windowlib.engines.sail import is_sail
from windowlib.engines.sail_requests import with_trees
from windowlib.engines.sail_sql import tree_of
from windowlib.runs.advance import advance

pytestmark = [pytest.mark.spark, pytest.mark.embedded]

ROW = """
SELECT 7 AS a, -2 AS b, cast(null AS int) AS no, 'xy' AS t, named_struct('f', 1, 'g h', 'in') AS s, 3 AS `odd ``name`,
    true AS yes
"""
MEANINGS: list[tuple[str, Any]] = [
    ("1 + 2 * 3", 7),
    ("(1 + 2) * 3", 9),
    ("10 - 4 - 3", 3),
    ("a div 2 * 2", 6),
    ("b % 2 + a", 7),
    ("-a + 1", -6),
    ("- - a", 7),
    ("a - -b", 5),
    ("a / 2", 3.5),
    ("0.5D + a", 7.5),
    ("typeof(1)", "int"),
    ("typeof(2147483648)", "bigint"),
    ("typeof(5L)", "bigint"),
    ("typeof(a * 3600000L)", "bigint"),
    ("typeof(cast(array() AS array<struct<f:bigint,g:decimal(10, 2)>>))", "array<struct<f:bigint,g:decimal(10,2)>>"),
    ("NOT yes AND no = 1", False),
    ("NOT (yes AND a = 1)", True),
    ("NOT a = 1", True),
    ("a = 1 OR yes AND b < 0", True),
    ("(a = 1 OR yes) AND b > 0", False),
    ("NOT a = 1 AND b = 1 OR yes", True),
    ("a <> 7 OR a != 7 OR a == 8 OR a < 7 OR a > 7", False),
    ("a <= 7 AND a >= 7", True),
    ("no <=> null", True),
    ("no = 1", None),
    ("no IS NULL AND a IS NOT NULL", True),
    ("no = 1 IS NULL", True),
    ("NOT no IS NULL", False),
    ("a IN (1, 7)", True),
    ("a NOT IN (1, 7) OR a in (2)", False),
    ("no IN (1)", None),
    ("a + 1 IN (8)", True),
    ("CASE WHEN a = 1 THEN 'one' WHEN yes THEN 'yes' ELSE 'no' END", "yes"),
    ("CASE a WHEN 1 THEN 'one' WHEN 7 THEN 'seven' END", "seven"),
    ("CASE b WHEN 1 THEN 'one' END", None),
    ("if(a > 1, t, null)", "xy"),
    ("s.f + a", 8),
    ("`s`.`g h`", "in"),
    ("`odd ``name` + 1", 4),
    ("coalesce(no, a)", 7),
    ("cast('12' AS bigint) + 1", 13),
    ("try_cast('1x' AS int)", None),
    ("cast(cast(1 AS decimal(10, 2)) AS string)", "1.00"),
    ("floor((a - 1) / 4)", 1),
    ("size(array(a, b, no))", 3),
    ("named_struct('f', a, 'g', array('p', 'q')).g", ["p", "q"]),
    ("nullif(a, 7)", None),
    ("true AND not false", True),
    ("CASE WHEN isnan(double('NaN')) THEN 'nan' END", "nan"),
    ("'it\\'s'", "it's"),
    ("'it''s'", "it's"),
    ("''", ""),
    ("1.50", "1.50"),
    (" OR ".join(f"a = {number}" for number in range(100)), True),
    ("a BETWEEN 1 AND 7", True),
    ("t LIKE 'x%'", True),
    ("t || 'z' -- a comment", "xyz"),
    ("transform(array(1, 2), x -> x + 1)", [2, 3]),
    ("date '2026-03-02' < date'2026-03-03'", True),
    ("a /* what * is */ + 1", 8),
]


UNKNOWN = 10  # of these stay the texts that they are


@pytest.mark.both
def test_a_tree_means_what_the_text_means(spark: SparkSession) -> None:
    row = spark.sql(ROW)
    found = row.select(*(F.expr(sql).alias(f"of_{number}") for number, (sql, _) in enumerate(MEANINGS))).first()
    assert found
    plain = [str(value) if sql == "1.50" else value for value, (sql, _) in zip(found, MEANINGS, strict=True)]
    assert {sql: value for value, (sql, _) in zip(plain, MEANINGS, strict=True)} == dict(MEANINGS)
    assert sum(tree_of(sql) is None for sql, _ in MEANINGS) == UNKNOWN


@pytest.mark.parametrize("sql", ["a +", "case end", "f(", "cast(a", "a b", "f(x) over (", "'a", "", "* *", "in", "not"])
def test_unknown_sql_stays_a_text(sql: str) -> None:
    assert tree_of(sql) is None


SLIDING = CLICKS.replace('type = "session"\ngap = "10m"', 'type = "sliding"\nsize = "1h"\nslide = "20m"')
CLEAN = CLICKS.replace('event_id = "id"\n', "")


@pytest.mark.parametrize(
    ("text", "analyses"),
    [
        pytest.param(CLEAN, 9, id="clean", marks=pytest.mark.long("with ids, in make test, more is asked for")),
        pytest.param(CLICKS, 11, id="ids"),
        pytest.param(SLIDING, 9, id="sliding", marks=pytest.mark.long("sessions, in make test, ask for no fewer")),
    ],
)
def test_a_batch_on_sail_asks_for_few_schemas_and_leaves_no_text_to_parse(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, text: str, analyses: int
) -> None:
    if not is_sail(spark):
        pytest.skip("counts what Sail is asked")
    definition = clicks(tmp_path, 0, text)
    sent: list[Message] = []
    monkeypatch.setattr(sail_requests, "with_trees", lambda request: sent.append(with_trees(request)) or request)
    for number in (1, 2):
        sent.clear()
        arrive(tmp_path, number, [{"id": f"{number}", "user": "ann", "at_ms": START_MS + number * 600_000, "value": 1}])
        assert len(advance(definition, lambda: spark)) == 1
    kinds = Counter(type(request).__name__ for request in sent)
    assert kinds["AnalyzePlanRequest"] == analyses, kinds
    assert kinds["ExecutePlanRequest"] >= 1
    assert [request for request in sent if "expression_string" in str(request)] == []
    analysed = [request for request in sent if isinstance(request, proto.AnalyzePlanRequest)]
    assert [request for request in analysed if "data_source" in str(request)] == []  # whose schema is a text
