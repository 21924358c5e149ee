"""What an operator decided about a pipeline's tables, as the ledger keeps it in the batch that does it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from windowlib.definition.instants import instant
from windowlib.model.errors import StateMismatch

Kind = Literal["adopt", "rollback", "advance_watermark", "maintain", "migrate", "migrate_undo", "forget"]
KINDS = get_args(Kind)
NEWER = "A newer version has written it: use that one"


@dataclass(frozen=True, slots=True)
class Decision:
    """`adopt`: changes that another program made to the tables are kept. `rollback`: the tables are again as batch
    `to_batch_id` left them. `maintain`: the same rows lie in fewer files. `advance_watermark`: nothing at or below
    `to_ms` is expected any more; of these the only one that computes. `migrate`: the tables are those that the
    migration `migration` has built under another definition, in as many batches as it has `cuts`; `changed` says in
    words what differs. `migrate_undo`: they are again those of batch `to_batch_id`, before it. `forget`: the same rows
    without those of the key with the `digest` (`windowlib.plans.erased`).
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
        """Whether the tables are of another definition from it on."""
        return self.kind in ("migrate", "migrate_undo")

    @property
    def title(self) -> str:
        """What is done, in words.

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
        """For the ledger."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Decision:
        """What `to_json` wrote. Raises `StateMismatch` where a newer version did."""
        values = json.loads(text)
        if unknown := sorted(values.keys() - {one.name for one in fields(cls)}):
            raise StateMismatch(f"a decision in the ledger says {', '.join(unknown)}, which is not known here. {NEWER}")
        if values["kind"] not in KINDS:
            raise StateMismatch(
                f"a decision in the ledger is of a kind that is not known here: {values['kind']}. {NEWER}"
            )
        return cls(**{**values, "cuts": tuple(values["cuts"])})


def decision_of(row: Mapping[str, Any]) -> Decision | None:
    return Decision.from_json(row["decision"]) if row["decision"] else None
