"""What was promised: `Ledger`, its events, the journal file."""

from truename.ledger.events import Bind, Break, Claim, Event, LedgerSettings, Redirect, Retire
from truename.ledger.ledger import MAX_CLAIMS, Ledger
from truename.ledger.seen import SeenLedger
from truename.ledger.state import Standing, State
from truename.ledger.store import Store

__all__ = [
    "MAX_CLAIMS",
    "Bind",
    "Break",
    "Claim",
    "Event",
    "Ledger",
    "LedgerSettings",
    "Redirect",
    "Retire",
    "SeenLedger",
    "Standing",
    "State",
    "Store",
]
