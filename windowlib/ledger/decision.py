"""Decision of an operator about a pipeline's tables. The ledger stores the decision with the batch that applies it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from windowlib.definition.instants import instant
from windowlib.model.errors import StateMismatch

Kind = Literal["adopt", "rollback", "advance_watermark", "maintain", "migrate", "migrate_undo", "forget"]
KINDS = get_args(Kind)
NEWER = "A newer version of windowlib wrote it: use that version"


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of one of these kinds:

    - `adopt`: keeps the changes that another program made to the tables.
    - `rollback`: returns the tables to the state after batch `to_batch_id`.
    - `maintain`: rewrites the same rows into fewer files.
    - `advance_watermark`: declares that no event at or below `to_ms` is expected any more. Only this kind
      computes windows.
    - `migrate`: switches to the tables that migration `migration` built under another definition, with one batch for
      each of its `cuts`. `changed` describes the difference in words.
    - `migrate_undo`: returns to the tables of batch `to_batch_id`, before the migration.
    - `forget`: removes the rows of the key with the `digest` (`windowlib.plans.erased`).
    """

    kind: Kind
    who: str
    reason: str
    to_batch_id: int | None = None
    to_ms: int | None = None
    migration: str | None = None
    changed: str | None = None
    cuts: tuple[Mapping[str, Any], ...] = ()
    digest: str | None = None

    @property
    def switches(self) -> bool:
        """Tests if the decision switches the tables to another definition."""
        return self.kind in ("migrate", "migrate_undo")

    @property
    def title(self) -> str:
        """The decision in words.

        >>> Decision("rollback", "ann", "a wrong file", to_batch_id=3).title
        'roll back to batch 3'
        """
        if self.kind == "adopt":
            return "adopt what another program changed"
        if self.kind == "maintain":
            return "put small files together"
        if self.kind == "forget":
            return "erase a key"
        if self.kind == "migrate":
            return f"migrate to another definition: {self.changed}"
        if self.kind == "migrate_undo":
            return f"undo a migration: back to the definition and the tables of batch {self.to_batch_id}"
        if self.to_ms is not None:
            return f"advance the watermark to {instant(self.to_ms)}"
        return f"roll back to batch {self.to_batch_id}"

    def to_json(self) -> str:
        """Returns the JSON that the ledger stores."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Decision:
        """Reads the JSON of `to_json`. Raises `StateMismatch` if a newer version wrote it."""
        values = json.loads(text)
        if unknown := sorted(values.keys() - {field.name for field in fields(cls)}):
            raise StateMismatch(f"a decision in the ledger has the unknown fields {', '.join(unknown)}. {NEWER}")
        if values["kind"] not in KINDS:
            raise StateMismatch(f"a decision in the ledger has the unknown kind {values['kind']}. {NEWER}")
        return cls(**{**values, "cuts": tuple(values["cuts"])})


def decision_of(row: Mapping[str, Any]) -> Decision | None:
    return Decision.from_json(row["decision"]) if row["decision"] else None
