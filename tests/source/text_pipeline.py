"""A pipeline over files of CSV or JSON that a test gives as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from windowlib.definition.definition import Definition, load_definition
from windowlib.storage.disk import Disk

DEFINITION = """
name = "texts"
watermark = {{ out_of_orderness = "0s" }}
window = {{ type = "tumbling", size = "1h" }}
aggregates = {{ n = "count(*)", total = "sum(value)", note = "max(note)" }}
[source]
format = "{format}"
path = "incoming"
key = ["user"]
timestamp = "at_ms"
timestamp_unit = "ms"
schema = {{ user = "string", at_ms = "bigint", note = "string", value = "int" }}
{dialect}
"""


def pipeline(folder: Path, files: Mapping[str, bytes], dialect: str = "", kind: str = "csv") -> Definition:
    (folder / "incoming").mkdir(parents=True)
    for name, content in files.items():
        (folder / "incoming" / name).parent.mkdir(exist_ok=True)
        (folder / "incoming" / name).write_bytes(content)
    file = folder / "texts.toml"
    file.write_text(DEFINITION.format(format=kind, dialect=f"dialect = {{ {dialect} }}" if dialect else ""))
    return load_definition(file).model_copy(update={"store": Disk(folder / "warehouse" / "texts")})
