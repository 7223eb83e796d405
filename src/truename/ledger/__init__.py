"""Which tool holds which name, for ever: `Ledger`, its events, where they are kept."""

from truename.ledger.events import Bind, Break, Claim, Event, LedgerSettings, Redirect, Retire
from truename.ledger.ledger import MAX_CLAIMS, Ledger, open_ledger
from truename.ledger.seen import SeenLedger
from truename.ledger.state import Standing
from truename.ledger.store import LedgerStore

__all__ = [
    "MAX_CLAIMS",
    "Bind",
    "Break",
    "Claim",
    "Event",
    "Ledger",
    "LedgerSettings",
    "LedgerStore",
    "Redirect",
    "Retire",
    "SeenLedger",
    "Standing",
    "open_ledger",
]
