"""CSV and JSON files from practice: every row counts, or is quarantined as malformed."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.source.arriving import source_file
from tests.source.text_pipeline import pipeline
from tests.support.clicks import START_MS, clock
from windowlib.batches.planning import plan
from windowlib.decisions.set_aside import set_aside
from windowlib.definition.definition import Definition, InvalidDefinition
from windowlib.model.errors import WindowError
from windowlib.publication.readers import read_table
from windowlib.runs.advance import advance
from windowlib.source.text import decompression as packed
from windowlib.source.text import json_lines as lines
from windowlib.source.text import quotes
from windowlib.source.text import rows as text
from windowlib.storage.disk import Disk

HEADER = "user,at_ms,note,value\n"
AT = START_MS


def counted(definition: Definition, spark: SparkSession) -> tuple[list[tuple[object, ...]], list[str]]:
    """(user, n, total, note) of the results, and the reasons of the rows in quarantine."""
    advance(definition, lambda: spark, clock=clock, finish=True)
    rows = read_table(definition, "results").to_pylist()
    refused = read_table(definition, "quarantine").to_pylist()
    return sorted(tuple(r[c] for c in ("user", "n", "total", "note")) for r in rows), sorted(
        r["reason"] for r in refused
    )


AS_EXPORTED = pytest.mark.long("test_foreign_data reads such a spreadsheet's export in make test")
# dialect, content of each file, results, reasons of what is refused; those of one dialect have users of their own
CASES: dict[str, tuple[str, dict[str, bytes], list[tuple[object, ...]], list[str]]] = {
    "quotes, delimiters and line breaks in values": (
        "",
        {"1.csv": f'{HEADER}"q""u",{AT},"a, ""b""\nc",1\n"q""u",{AT},,2\nw\\,{AT},"x\\",3\n'.encode()},
        [('q"u', 2, 3, 'a, "b"\nc'), ("w\\", 1, 3, "x\\")],
        [],
    ),
    "a spreadsheet of another country": (
        'delimiter = ";", encoding = "ISO-8859-1", header = "names"',
        {
            "1.csv": f"value;extra;user;at_ms;note\r\n1;;Jörg;{AT};é\r\n".encode("latin-1"),
            "2.csv": f"note;USER;at_ms;value\r\nü;Jörg;{AT};2\r\n".encode("latin-1"),
        },
        [("Jörg", 2, 3, "ü")],
        [],
    ),
    "a mark at the beginning, and packed": (
        "",
        {"1.csv": f"\ufeff{HEADER}m,{AT},,1\r\n".encode(), "2.csv.gz": gzip.compress(f"{HEADER}m,{AT},,2\n".encode())},
        [("m", 2, 3, None)],
        [],
    ),
    "no header, other quotes and escapes": (
        'header = "none", quote = "\'", escape = \'\\\', delimiter = "\\t"',
        {"1.csv": f"'it\\'s'\t{AT}\t\t1\n'it\\'s'\t{AT}\t\t4\n".encode()},
        [("it's", 2, 5, None)],
        [],
    ),
    "bytes that are not text": (
        "",
        {"1.csv": f"{HEADER}".encode() + b"J\xf6rg,%d,,1\nok,%d,,2\nok,%d,\xff,3\n" % (AT, AT, AT)},
        [("ok", 1, 2, None)],
        ["malformed", "malformed"],
    ),
    "lines before the header": (
        'skip_lines = 2, delimiter = ";"',
        {
            "1.csv": f'\ufeffsep=;\r\nan "open quote\r\n{HEADER.strip()}\r\nk,{AT},"a\nb",1\r\n'.replace(
                ",", ";"
            ).encode(),
            "2.csv.gz": gzip.compress(f"sep=;\n\n{HEADER}k,{AT},,2\nk,x,,4\n".replace(",", ";").encode()),
        },
        [("k", 2, 3, "a\nb")],
        ["malformed"],
    ),
    "a line before the records, without a header": (
        'skip_lines = 1, header = "none", encoding = "ISO-8859-1"',
        {"1.csv": f"title\nJörg,{AT},é,1\nJörg,{AT},,2\n".encode("latin-1")},
        [("Jörg", 2, 3, "é")],
        [],
    ),
    "two kinds of line breaks": (
        "",
        {"1.csv": f"{HEADER}b,{AT},,1\nb,{AT},,2\r\nb,{AT},,4\n".encode()},
        [("b", 3, 7, None)],
        [],
    ),
    "lines of nothing but blanks that set values apart": (
        'delimiter = "\\t"',
        {"1.csv": f"{HEADER}u,{AT},,1\n,,,\n\n".replace(",", "\t").encode()},
        [("u", 1, 1, None)],
        ["null_timestamp"],
    ),
    "rows of another width": (
        "",
        {"1.csv": f"{HEADER}u,{AT},,1\nu,{AT}\nu,{AT},,1,1\n\nu,{AT},,one\n".encode()},
        [("u", 1, 1, None)],
        ["malformed", "malformed", "malformed"],
    ),
}


def marks(dialect: str) -> list[pytest.MarkDecorator]:
    return [AS_EXPORTED] if "ISO-8859-1" in dialect else []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
@pytest.mark.parametrize(
    "dialect", [pytest.param(of, marks=marks(of)) for of in dict.fromkeys(of for of, *_ in CASES.values())]
)
def test_csv(spark: SparkSession, tmp_path: Path, dialect: str) -> None:
    """All files of a dialect together, each in a folder named after its case."""
    cases = {case: parts for case, (of, *parts) in CASES.items() if of == dialect}
    files = {f"{case}/{name}": content for case, (of_case, *_) in cases.items() for name, content in of_case.items()}
    definition = pipeline(tmp_path, files, dialect)
    found, _ = counted(definition, spark)
    refused = {case: list[str]() for case in cases}
    for row in read_table(definition, "quarantine").to_pylist():
        refused[row["source_file"].partition("/")[0]].append(row["reason"])
    assert {case: sorted(reasons) for case, reasons in refused.items()} == {case: of[2] for case, of in cases.items()}
    assert found == sorted(result for _, results, _ in cases.values() for result in results)


HALVES = [r"ab\ud83d", r"\udc00ab", r"ab\ude00\ud83d", r"ab\\\ud83d"]  # no characters
CHARACTERS = {r"ab?": "ab?", r"ab\ud83d\ude00": "ab\U0001f600", r"ab\\ud83d": r"ab\ud83d", r"\u00e9": "é"}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
def test_json(spark: SparkSession, tmp_path: Path) -> None:
    """In lines, where half a character is not a question mark; and in records of several lines."""
    rows = [{"user": "é\n", "at_ms": AT, "note": 'a "b"', "value": 1}, {"user": "é\n", "at_ms": AT, "value": 2}]
    content = "\n".join(map(json.dumps, rows)).encode() + b'\n{"user": "J\xf6rg", "at_ms": %d, "value": 3}\n' % AT
    records = [f'{{"user": "{user}", "at_ms": {AT}, "value": 1}}\n' for user in (*HALVES, *CHARACTERS)]
    files = {"1.json": content, "2.json": "".join(records).encode()}
    files["3.json"] = f'{{"user": "ab?", "at_ms": {AT}, "value": 1}}'.encode()
    definition = pipeline(tmp_path / "1", files, kind="json")
    of_characters = [(user, 1 + (user == "ab?"), 1 + (user == "ab?"), None) for user in CHARACTERS.values()]
    results = sorted([*of_characters, ("é\n", 2, 3, 'a "b"')])
    assert counted(definition, spark) == (results, ["malformed"] * (1 + len(HALVES)))
    of_file = Counter(row["source_file"] for row in read_table(definition, "quarantine").to_pylist())
    assert of_file == {"1.json": 1, "2.json": len(HALVES)}
    whole = {"1.json": json.dumps(rows, indent=1).encode(), "2.json.gz": gzip.compress(json.dumps(rows[0]).encode())}
    results = [("é\n", 3, 4, 'a "b"')]
    assert counted(pipeline(tmp_path / "2", whole, "multi_line = true", "json"), spark) == (results, [])


SEVERAL = "{0}{0}", "{0} {0}", "{0},{0}", "[{0}]{0}", "{0}\t[{0}]", "{0} x"  # of one line


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
@pytest.mark.parametrize(
    "kind",
    [
        "decimal(20,18)",
        pytest.param(
            "tinyint", marks=pytest.mark.long("decimals next to such lines, and small numbers, are in make test")
        ),
    ],
)
def test_a_line_of_several_records_is_malformed(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    number = "0.123456789012345678" if kind != "tinyint" else "101"
    record = f'{{"user": 1.10, "at_ms": {AT}, "value": {number}, "parts": [{{"a": "}}{{"}}, {{}}, []]}}'
    halves = record.replace("1.10", r'"\ud83d"')
    one = "\n".join(
        [*(line.replace("{0}", record) for line in SEVERAL), "", record, halves, record + " ", f"[{record}]"]
    )
    files = {"1.json": one.encode(), "2.json.gz": gzip.compress(f"{record}\n{record}".encode())}
    definition = pipeline(tmp_path, files, kind="json")
    definition.source.columns["value"] = kind
    results, refused = counted(definition, spark)
    assert results == [("1.10", 5, 5 * (Decimal(number) if kind != "tinyint" else 101), None)]
    assert refused == ["malformed"] * (len(SEVERAL) + 1)
    assert {row["source_file"] for row in read_table(definition, "quarantine").to_pylist()} == {"1.json"}


WRITTEN_AGAIN = pytest.mark.long("another encoding, and records of several lines, are written again in make test too")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
@pytest.mark.parametrize(
    ("dialect", "encoding", "refused"),
    [
        pytest.param('encoding = "ISO-8859-1"', "latin-1", [], marks=WRITTEN_AGAIN),
        pytest.param('encoding = "US-ASCII"', "latin-1", ["malformed"] * 2, marks=WRITTEN_AGAIN),
        ('encoding = "UTF-16", multi_line = true', "utf-16", []),
        pytest.param("multi_line = true", "utf-8", [], marks=WRITTEN_AGAIN),
    ],
)
def test_numbers_are_exact_in_every_encoding(
    spark: SparkSession, tmp_path: Path, dialect: str, encoding: str, refused: list[str]
) -> None:
    number = "0.123456789012345678"
    records = [f'{{"user": "{user}", "at_ms": {AT}, "note": 1.10, "value": {number}}}' for user in ("é", "e")]
    content = (f"[{', '.join(records)}]" if "multi_line" in dialect else "\n".join(records)).encode(encoding)
    definition = pipeline(tmp_path, {"a b.json": content, "2#.json.gz": gzip.compress(content)}, dialect, "json")
    definition.source.columns["value"] = "decimal(20,18)"
    users = ["e"] if refused else ["e", "é"]
    assert counted(definition, spark) == ([(user, 2, 2 * Decimal(number), "1.10") for user in users], refused)
    files = {row["path"]: row["rows"] for row in read_table(definition, "source_files").to_pylist()}
    assert files == {"a b.json": 2, "2#.json.gz": 2}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
def test_a_number_outside_its_type_is_malformed(spark: SparkSession, tmp_path: Path) -> None:
    values = (-129, -128, 127, 128, 200, 255, 256)
    rows = {"1.json": "".join(f'{{"user": "u", "at_ms": {AT}, "value": {value}}}\n' for value in values).encode()}
    definition = pipeline(tmp_path, rows, kind="json")
    definition.source.columns["value"] = "tinyint"
    assert counted(definition, spark) == ([("u", 2, -1, None)], ["malformed"] * 5)


@pytest.mark.parametrize("after", ["{0}", "[{0}]", ",", "x"])
def test_a_file_of_several_values_is_refused_as_one_record(tmp_path: Path, after: str) -> None:
    record = f'{{"user": "}}\\"]",\n "at_ms": {AT}, "value": 1}}'
    good = pipeline(tmp_path / "1", {"1.json": f"[{record},\n{record}]\n\n".encode()}, "multi_line = true", "json")
    assert plan(good, clock)
    content = f"{record}\n{after.replace('{0}', record)}".encode()
    with pytest.raises(WindowError, match=r"1\.json has more than one JSON value"):
        plan(pipeline(tmp_path / "2", {"1.json": content}, "multi_line = true", "json"), clock)


@pytest.mark.parametrize("user", [*HALVES, *CHARACTERS])
def test_a_cut_character_in_a_file_of_one_record_is_refused(tmp_path: Path, user: str) -> None:
    record = f'[{{"user":\n"{user}", "at_ms": {AT}, "value": 1}}]'.encode()
    definition = pipeline(tmp_path, {"1.json": record}, "multi_line = true", "json")
    if user in CHARACTERS:
        assert plan(definition, clock)
        return
    with pytest.raises(WindowError, match=r"1\.json has half of a surrogate pair"):
        plan(definition, clock)


def test_a_cut_character_is_found_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "CHUNK_BYTES", 5)
    file = tmp_path / "1.json"
    for before in range(12):
        file.write_text("x" * before + r"\ud83d")
        assert lines.may_be_odd(Disk(tmp_path), source_file(tmp_path, "1.json"))
    file.write_text(r"xxx\u00d8\u0d83")
    assert not lines.may_be_odd(Disk(tmp_path), source_file(tmp_path, "1.json"))


@pytest.mark.parametrize(
    ("dialect", "file", "content", "says"),
    [
        ("", "1.csv", "at_ms,user,note,value\n", r'in that order, or source\.dialect\.header = "names"'),
        ('header = "names"', "1.csv", "user,at_ms,value\n", r"has no column 'note'"),
        ('header = "names"', "1.csv", "user,at_ms,note,value,a,A\n", "'A', 'a' differ only in case"),
        ('header = "names"', "1.csv", "user,at_ms,note,value,_windowlib_corrupt\n", "a prefix that windowlib reserves"),
        ("", "1.csv", "sep=;\nuser;at_ms\n", r"skip_lines = 1 and source\.dialect\.delimiter = \";\"$"),
        ('delimiter = ";"', "1.csv", "sep=;\nuser;at_ms\n", r"Skip that line: source\.dialect\.skip_lines = 1$"),
        ('header = "names"', "1.csv", "sep=,\nuser,at_ms\n", r"Skip that line: source\.dialect\.skip_lines = 1$"),
        ('header = "names"', "1.csv", "user,at_ms,notes,value\n", r"has no column 'note'.*; did you mean notes\?"),
        ("skip_lines = 2", "1.csv", "a\nb\n", r"has nothing after the 2 lines that source\.dialect\.skip_lines"),
        ("", "1.csv.zip", "", r"1\.csv\.zip has an unsupported compression: .* as \.gz or \.bz2"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, dialect: str, file: str, content: str, says: str) -> None:
    with pytest.raises(WindowError, match=says):
        plan(pipeline(tmp_path, {file: content.encode()}, dialect), clock)


NEVER, ASTRAY = (
    "the quoted value that begins in line {} is never closed",
    "the quote in line {} neither opens nor closes",
)
OPEN_QUOTES = {
    "in the last column": ("", f'{HEADER}u,{AT},"a",1\nu,{AT},,"2\nu,{AT},,3\n', NEVER.format(3)),
    "in the first column": ("", f'{HEADER}"u,{AT},,1\nu,{AT},,3\n', NEVER.format(2)),
    "an escaped one": ('escape = "\\\\"', f'{HEADER}u,{AT},"a\\"\n",1\n"u\\",{AT},,3\n', NEVER.format(4)),
    "others": ('quote = "\'"', f"{HEADER}u,{AT},,'1\n", NEVER.format(2)),
    "after lines that are skipped": ("skip_lines = 2", f'a\n"\n{HEADER}u,{AT},"a,1\n', NEVER.format(4)),
    "two": ("", f'{HEADER}u,{AT},"a,1\nu,{AT},,2\nu,{AT},"b,3\nu,{AT},,4\n', ASTRAY.format(4)),
    "before an escape": ('escape = "\\\\"', f'{HEADER}u,{AT},"a"\\,1\nu,{AT},,2\n', ASTRAY.format(2)),
}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
@pytest.mark.fault("a quote in a CSV file is never closed", "the run names file and line; nothing is committed")
def test_an_open_quote_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    dialect, content, says = OPEN_QUOTES["two"]
    definition = pipeline(tmp_path, {"1.csv": content.encode(), "2.csv": f'{HEADER}u,{AT},5",1\n'.encode()}, dialect)
    with pytest.raises(WindowError, match=rf"1\.csv: {says}"):
        counted(definition, spark)
    set_aside(definition, "1.csv", "ann", "asked for again", clock)
    assert counted(definition, spark) == ([("u", 1, 1, '5"')], [])


@pytest.mark.parametrize("case", OPEN_QUOTES)
def test_an_open_quote_is_found(tmp_path: Path, case: str) -> None:
    """The check of a file before an engine reads it finds the quote."""
    dialect, content, says = OPEN_QUOTES[case]
    definition = pipeline(tmp_path, {"1.csv": content.encode(), "2.csv": f'{HEADER}u,{AT},5",1\n'.encode()}, dialect)
    folder = definition.source.path
    with pytest.raises(WindowError, match=rf"1\.csv: {says}"):
        quotes.may_have_longer_records(definition.source, source_file(folder, "1.csv"))
    assert quotes.may_have_longer_records(definition.source, source_file(folder, "2.csv")) == (case != "others")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.classic
@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("content", [gzip.compress(HEADER.encode() * 9_999)[:-99], b"not packed"])
def test_a_cut_compressed_file_is_named(spark: SparkSession, tmp_path: Path, kind: str, content: bytes) -> None:
    definition = pipeline(tmp_path, {f"1.{kind}.gz": content}, kind=kind)
    file = source_file(tmp_path / "incoming", f"1.{kind}.gz")
    with pytest.raises(WindowError, match=rf"1\.{kind}\.gz cannot be decompressed"):
        text.read(spark, definition.source, [file], Disk(tmp_path / "staging"))


@pytest.mark.parametrize(
    ("kind", "dialect", "says"),
    [
        ("json", 'delimiter = ";"', r"source\.dialect\.delimiter: has a meaning only for csv"),
        ("csv", 'encoding = "UTF-16", multi_line = false', "UTF-16 can only be read with multi_line = true"),
        ("json", "skip_lines = 1", r"source\.dialect\.skip_lines: has a meaning only for csv"),
        ("csv", 'delimiter = ""', r"source\.dialect\.delimiter"),
        ("csv", 'encoding = "klingon"', r"source\.dialect\.encoding: given .*allowed"),
    ],
)
def test_a_senseless_dialect_is_refused(tmp_path: Path, kind: str, dialect: str, says: str) -> None:
    with pytest.raises(InvalidDefinition, match=says):
        pipeline(tmp_path, {}, dialect, kind)
