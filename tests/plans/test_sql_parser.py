"""Rewritten expressions mean the same to Spark as the original ones."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windowlib.plans.sql.parser import parse_sql

# fmt: off
EXPRESSIONS = [
    "'it''s'",
    '"it""s"',
    "'it'' ''s' 'x'",
    "'\\d'",
    "'\\\\d'",
    "'\\%a'",
    "'a\\_b'",
    "'\\n'",
    "'\\t'",
    "'\\0'",
    "'\\u0041'",
    "'\\101'",
    "'\\''",
    '\'\\"\'',
    '"it\'s"',
    '"a\\"b"',
    "'\\\\\\\\'",
    "'\\b'",
    "'\\Z'",
    "'\\r'",
    "'\\\\n'",
    "'é🙂'",
    "r'\\d'",
    "R'a\\'",
    "'a' 'b'",
    "'tab\there'",
    "'x\\\\'",
    "x'4142'",
    '1e3',
    '1.5',
    '1.50BD',
    '2S',
    '3Y',
    '- 5 % 3',
    '7 div 2',
    '5 / 2',
    '!true',
    '1 == 1',
    '3 & 1',
    '3 | 4',
    '3 ^ 1',
    '~1',
    "'a' || 'b'",
    '1 <=> null',
    'not 1 = 2 and false',
    '2147483648',
    '-2147483648',
    '-9223372036854775808',
    '0.1 + 0.2',
    '1.0',
    'interval 1 day',
    "date '2020-01-01'",
    "timestamp '2020-01-01 00:00:00'",
    'true and null',
    'if(null, 1, 2)',
    "case 1 when 1 then 'a' end",
    'cast(1.5 as int)',
    "'10' + 1",
    "concat('a', null)",
    "substring('abc', 0, 2)",
    '1 between 0 and 2',
    "'a' in ('a', null)",
    'array(1,2)[0]',
    "map('a',1)['a']",
    "named_struct('a',1).a",
    "left('abc',2)",
    'log(2, 8)',
    'log(8)',
    'round(2.5)',
    'bround(2.5)',
    'mod(-5,3)',
    'pmod(-5,3)',
    'nvl(null,1)',
    'ifnull(null,1)',
    "length('a ')",
    "trim(' a ')",
    "lower('A')",
    "split('a.b','\\\\.')",
    "date_trunc('hour', timestamp '2020-01-01 10:20:00')",
    "unix_millis(timestamp '2020-01-01 00:00:00Z')",
    "hash('a')",
    "xxhash64('a')",
    'greatest(1,null)',
    'element_at(array(1,2),1)',
    "position('b','abc')",
    "locate('b','abc')",
    "instr('abc','b')",
    "date_add(date '2020-01-01', 1)",
    "datediff(date '2020-01-03', date '2020-01-01')",
    'from_unixtime(0)',
    "to_date('2020-01-01')",
    "'a' rlike '\\\\w'",
    "'a_b' like 'a\\\\_b'",
    "rtrim('a ')",
    "lpad('a',3,'x')",
    'sign(-2)',
    'power(2,3)',
    'ceil(1.2)',
    'floor(-1.2)',
    '1 / 0.5',
    '5 % 0.3',
    'abs(-1)',
    'exp(0)',
    'floor(log10(1000D))',
    'log2(8D)',
    "to_char(1.5, '9.99')",
    "to_char(timestamp '2020-01-01 00:00:00', 'yyyy-MM')",
    "date_format(timestamp '2020-01-01 00:00:00', \"'FY'yyyy\")",
    "try_to_date('2026', 'yyyy-MM-dd')",
    "to_date('2020-01-02', 'yyyy-MM-dd')",
    "date_trunc(lower('HOUR'), timestamp '2020-01-01 10:20:00')",
    "trunc(date '2020-05-05', lower('MONTH'))",
    "get_json_object('{\"a\": 1}', 'a')",
    "get_json_object('{\"a\": 1}', '$.a')",
    '~mod(7, 4)',
    '10 * mod(7, 4)',
    "rlike('a', 'a') = true",
    "not rlike('a', 'b')",
]
# fmt: on


@pytest.mark.spark
@pytest.mark.classic
def test_spark_gives_rewritten_expressions_the_original_meaning(spark: SparkSession) -> None:
    written = [parse_sql(sql).sql(dialect="spark") for sql in EXPRESSIONS]

    def values(of: list[str]) -> list[tuple[str, str]]:
        columns = [column for sql in of for column in (F.expr(sql), F.typeof(F.expr(sql)))]
        row = spark.range(1).select(*(column.alias(str(n)) for n, column in enumerate(columns))).first()
        assert row
        return list(zip(map(str, row[::2]), row[1::2], strict=True))

    expected = dict(zip(EXPRESSIONS, values(EXPRESSIONS), strict=True))
    assert dict(zip(EXPRESSIONS, values(written), strict=True)) == expected
