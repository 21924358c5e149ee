"""Changes of a live pipeline: every key is in one row of the table, and the guide has the table."""

from __future__ import annotations

import json
from pathlib import Path

from docs.reference.changes import CHANGES, How, markdown
from tests.support.clicks import CLICKS
from windowlib.definition.definition import load_definition
from windowlib.definition.terms import terms_of
from windowlib.definition.toml.file import DefinitionFile

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "change.md"
OTHERS = "aggregates (others in a column's place, or their arguments; removed columns)"
ALSO = {"engine.version", "windowlib", "suites", "own code", "source.path"}  # not a key each, or refused by its place


def keys(how: How) -> set[str]:
    return {key for one in CHANGES if one.how is how for key in one.keys}


def test_no_key_is_in_two_rows() -> None:
    named = [key for one in CHANGES for key in one.keys]
    assert sorted(named) == sorted({*named})


def test_fingerprint_keys_are_migrated_and_terms_apply_at_once(tmp_path: Path) -> None:
    file = tmp_path / "clicks.toml"
    file.write_text(CLICKS + '[storage]\nstate_partition = "2h"\n[source.rename]\nuser = "who"\n')
    definition = load_definition(file)
    places = {"window": "window.* (the others)", "aggregates": OTHERS}
    places["state_partition_ms"] = "storage.state_partition"
    assert {places.get(key, f"source.{key}") for key in definition.semantics()} == keys(How.MIGRATE)
    at_once = keys(How.AT_ONCE)
    for term in json.loads(terms_of(definition)).keys() - ALSO:
        assert term in at_once or f"{term.partition('.')[0]}.*" in at_once, term


def test_every_section_and_key_of_a_definition_is_in_a_row() -> None:
    named = {key for one in CHANGES for key in one.keys}
    sections = {key.partition(".")[0] for key in named} | {"aggregates"}
    for name, field in DefinitionFile.model_fields.items():
        assert (field.alias or name).removesuffix("_ms") in sections, name


def test_the_guide_has_the_table() -> None:
    assert markdown() in GUIDE.read_text(encoding="utf-8")
