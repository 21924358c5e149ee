"""What an operator decided about a pipeline's tables, as the ledger keeps it in the batch that does it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

from windowlib.definition.instants import instant


@dataclass(frozen=True, slots=True)
class Decision:
    """`adopt`: changes that another program made to the tables are kept. `rollback`: the tables are again as batch
    `to_batch_id` left them. `maintain`: the same rows lie in fewer files. `advance_watermark`: nothing at or below
    `to_ms` is expected any more; of these the only one that computes.
    """

    kind: Literal["adopt", "rollback", "advance_watermark", "maintain"]
    who: str
    reason: str
    to_batch_id: int | None = None
    to_ms: int | None = None

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
        if self.to_ms is not None:
            return f"advance the watermark to {instant(self.to_ms)}"
        return f"roll back to batch {self.to_batch_id}"

    def undoes(self, batch_id: int) -> bool:
        """Whether an earlier batch is undone by it."""
        return self.to_batch_id is not None and batch_id > self.to_batch_id

    def to_json(self) -> str:
        """For the ledger."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Decision:
        """What `to_json` wrote."""
        return cls(**json.loads(text))
