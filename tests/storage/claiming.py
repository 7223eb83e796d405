"""`python -m tests.storage.claiming PLACE SERVER`: claim names, and write each that was kept, until killed."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from truename import Catalog, project
from truename.errors import LedgerError
from truename.ledger import open_ledger
from truename.storage import StateLocation

if TYPE_CHECKING:
    from truename import Ledger


def main() -> None:
    """Claim `lead_N` for N from 0 on; every server wants the same names."""
    place, server, number = StateLocation.of(sys.argv[1]), sys.argv[2], 0
    ledger: Ledger | None = None
    while True:
        try:
            ledger = ledger or open_ledger(place)
            catalog = Catalog.from_mcp({server: [f"lead_{number}"]}, bound=ledger.bindings())
            for id, name in project(catalog, "openai", style="on-conflict", ledger=ledger).items():
                sys.stdout.write(f"{id} {name}\n")
                sys.stdout.flush()
            number += 1
        except LedgerError as error:
            if error.code not in {"busy", "unusable"}:
                raise
            time.sleep(0.02)


if __name__ == "__main__":
    main()
