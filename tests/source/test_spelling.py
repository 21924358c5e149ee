"""Values in text are exact or malformed: none becomes another number or day."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.source.arriving import source_file
from tests.source.text_pipeline import pipeline
from windowlib.definition.definition import InvalidDefinition, load_definition
from windowlib.definition.toml.locales import decimal_mark
from windowlib.plans import names
from windowlib.plans.functions import F, quoted
from windowlib.source.text import rows as text
from windowlib.storage.disk import Disk

MALFORMED = "malformed"
AT = datetime(2026, 3, 2, 10, 15, tzinfo=UTC)

# type, what is written, what it is: a value, None, or malformed
PLAIN: list[tuple[str, str, Any]] = [
    ("decimal(12,2)", "12,50", MALFORMED),
    ("decimal(12,2)", "1,250.00", MALFORMED),  # without a locale the marks are not known
    ("decimal(12,2)", "-12.5", Decimal("-12.50")),
    ("decimal(12,2)", " 12.500 ", Decimal("12.50")),
    ("decimal(10,2)", "0.005", MALFORMED),
    ("decimal(10,2)", "1e-3", MALFORMED),
    ("decimal(10,2)", "1.5e1", Decimal("15.00")),
    ("decimal(4,2)", "100", MALFORMED),
    ("decimal(4,2)", "", None),
    ("double", "1.5e3", 1500.0),
    ("double", "1,5", MALFORMED),
    ("double", "1.5f", MALFORMED),
    ("double", "0x1p3", MALFORMED),
    ("double", "1e400", MALFORMED),
    ("double", "-Inf", float("-inf")),
    ("float", "1e39", MALFORMED),
    ("float", ".5", 0.5),
    ("timestamp", "10:15:00", MALFORMED),
    ("timestamp", "T10:15:00", MALFORMED),
    ("timestamp", "2026", MALFORMED),
    ("timestamp", "2026-03", MALFORMED),
    ("timestamp", "2026-03-02", AT.replace(hour=0, minute=0)),
    ("timestamp", "2026-03-02T10:15:00Z", AT),
    ("timestamp", "2026-03-02 11:15:00.000+01:00", AT),
    ("timestamp", "2026-03-02T10:15Z", AT),
    ("timestamp", "2026-03-02T11:15+01:00", AT),
    ("timestamp", " 2026-03-02 11:15 Europe/Berlin ", AT),
    ("timestamp", "2026-03-02T10Z", MALFORMED),
    ("timestamp", "2026-03-02T10:15:00.1234567", MALFORMED),
    ("timestamp", "2026-02-30 10:15:00", MALFORMED),
    ("timestamp_ntz", "2026-03-02 10:15", AT.replace(tzinfo=None)),
    ("timestamp_ntz", "2026-03-02 10:15Z", MALFORMED),
    ("date", "2026-03-02", date(2026, 3, 2)),
    ("date", "2026-03-02T10:15:00", MALFORMED),
    ("date", "2026", MALFORMED),
]
GERMAN: list[tuple[str, str, Any]] = [
    ("double", "1.234", 1234.0),
    ("double", "1.234,5", 1234.5),
    ("double", "1.23", MALFORMED),
    ("double", "1,234.5", MALFORMED),
    ("decimal(12,2)", "-1.234.567,50", Decimal("-1234567.50")),
    ("decimal(12,2)", "1234567,5", Decimal("1234567.50")),
    ("decimal(12,2)", "1 234 567,50", Decimal("1234567.50")),
    ("decimal(12,2)", "1.234 567,50", MALFORMED),
    ("decimal(12,2)", "0,005", MALFORMED),
]
AMERICAN: list[tuple[str, str, Any]] = [
    ("decimal(12,2)", "1,250.00", Decimal("1250.00")),
    ("decimal(12,2)", "12,50", MALFORMED),
    ("double", "1,234", 1234.0),
]
BERLIN: list[tuple[str, str, Any]] = [
    ("timestamp", "2026-03-02 11:15", AT),
    ("timestamp", "2026-03-02T10:15:00Z", AT),
    ("timestamp", "2026-03-02T10:15Z", AT),
    ("timestamp", "11:15", MALFORMED),
]
PATTERN: list[tuple[str, str, Any]] = [
    ("timestamp", "02/Mar/2026:10:15:00", AT),
    ("timestamp", "2026-03-02 10:15:00", MALFORMED),
    ("timestamp_ntz", "02/Mar/2026:10:15:00", AT.replace(tzinfo=None)),
]
TABLES: dict[str, tuple[str, list[tuple[str, str, Any]]]] = {
    "without a word": ("", PLAIN),
    "as Germans write, by a clock in Berlin": (', locale = "de-DE", time_zone = "Europe/Berlin"', GERMAN + BERLIN),
    "as Americans write, by a pattern": (
        ', locale = "en-US", timestamp_format = "dd/MMM/yyyy:HH:mm:ss"',
        AMERICAN + PATTERN,
    ),
}


def values(spark: SparkSession, folder: Path, kinds: list[str], row: bytes, dialect: str, kind: str) -> list[Any]:
    """The values of each column, or `malformed`, by files that hold one of them each."""
    said = {f"c{n}": of for n, of in enumerate(kinds)}
    definition = pipeline(folder, {f"1.{kind}": row}, dialect, kind)
    source = definition.source.model_copy(update={"columns": said})
    read = text.read(spark, source, [source_file(folder / "incoming", f"1.{kind}")], Disk(folder / "staging"))
    found = read.select(*(F.col(quoted(name)).alias(name) for name in said), names.CORRUPT).toArrow().to_pylist()
    return [
        MALFORMED if one[names.CORRUPT] is not None else next((v for v in [one[name]] if v is not None), None)
        for name, one in zip(said, found, strict=True)
    ]


PATTERNS_ARE = pytest.mark.long("German numbers, and in test_foreign_data times by a pattern, are in make test")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
@pytest.mark.parametrize(
    "table",
    [pytest.param(table, marks=PATTERNS_ARE if "timestamp_format" in TABLES[table][0] else ()) for table in TABLES],
)
def test_values_of_csv(spark: SparkSession, tmp_path: Path, table: str) -> None:
    dialect, cases = TABLES[table]
    written = "".join(
        ";".join(v if n == m else "" for m in range(len(cases))) + "\n" for n, (_, v, _) in enumerate(cases)
    )
    form = f'delimiter = ";", header = "none"{dialect}'
    found = values(spark, tmp_path, [kind for kind, _, _ in cases], written.encode(), form, "csv")
    assert dict(zip(cases, found, strict=True)) == {case: case[2] for case in cases}


# type, what is written in JSON, what it is
IN_JSON: list[tuple[str, str, Any]] = [
    ("decimal(10,2)", "0.005", MALFORMED),
    ("decimal(10,2)", "12.50", Decimal("12.50")),
    ("decimal(10,2)", '"12,50"', MALFORMED),
    ("decimal(20,0)", "1e+16", Decimal(10**16)),
    ("double", "1e400", MALFORMED),
    ("double", "true", MALFORMED),
    ("double", '""', MALFORMED),
    ("double", "0.1", 0.1),
    ("timestamp", '"10:15:00"', MALFORMED),
    ("timestamp", "1772446500", MALFORMED),  # of which unit?
    ("timestamp", '"2026-03-02T10:15:00Z"', AT),
    ("struct<price: decimal(10,2), at: timestamp>", '{"price": 0.005}', MALFORMED),
    ("struct<price: decimal(10,2)>", '{"price": 1.5}', {"price": Decimal("1.50")}),
    ("array<struct<at: timestamp>>", '[{"at": "2026-03-02T10:15:00Z"}, null]', [{"at": AT}, None]),
    ("array<struct<at: timestamp>>", '[{"at": "10:15"}]', MALFORMED),
    ("array<double>", "[0.5, null]", [0.5, None]),
    ("map<string, decimal(4,1)>", '{"a": 1.5}', [("a", Decimal("1.5"))]),
    ("map<string, decimal(4,1)>", '{"a": 1.55}', MALFORMED),
]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
def test_values_of_json(spark: SparkSession, tmp_path: Path) -> None:
    written = "".join(f'{{"c{n}": {value}}}\n' for n, (_, value, _) in enumerate(IN_JSON))
    found = values(spark, tmp_path, [kind for kind, _, _ in IN_JSON], written.encode(), "", "json")
    assert {case[:2]: value for case, value in zip(IN_JSON, found, strict=True)} == {c[:2]: c[2] for c in IN_JSON}


@pytest.mark.parametrize(
    ("locale", "mark"),
    [
        (None, "."),
        ("en-US", "."),
        ("de-DE", ","),
        ("de-CH", "."),
        ("es-MX", "."),
        ("es-ES", ","),
        ("fr", ","),
        ("ar-EG", None),
    ],
)
def test_the_decimal_separator(locale: str | None, mark: str | None) -> None:
    assert decimal_mark(locale) == mark


@pytest.mark.parametrize(
    ("kind", "locale", "says"),
    [
        ("csv", "ar-EG", r'source\.dialect\.locale: how numbers are written in "ar-EG" is not known'),
        ("json", "de-DE", r"source\.dialect\.locale: numbers of JSON are written with a point"),
    ],
)
def test_a_locale_whose_numbers_are_not_known_is_refused(tmp_path: Path, kind: str, locale: str, says: str) -> None:
    assert pipeline(tmp_path / "1", {}, f'locale = "{locale}"', kind)  # its numbers are whole
    file = tmp_path / "1" / "texts.toml"
    file.write_text(file.read_text().replace('value = "int"', 'value = "double"'))
    with pytest.raises(InvalidDefinition, match=says):
        load_definition(file)
