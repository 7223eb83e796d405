"""The audit journal: what was called and decided, by whom; append-only, each record chained to the one before."""

from truename.audit.accounts import KINDS, account_of, said
from truename.audit.anchor import Anchor, anchor_file
from truename.audit.chain import GENESIS, Record
from truename.audit.journal import Journal
from truename.audit.reading import Broken, recent, records_in, since, verified
from truename.audit.recorder import Recorder
from truename.audit.redaction import Redaction
from truename.audit.secrets import masked
from truename.audit.witness import Witness, intent

__all__ = [
    "GENESIS",
    "KINDS",
    "Anchor",
    "Broken",
    "Journal",
    "Record",
    "Recorder",
    "Redaction",
    "Witness",
    "account_of",
    "anchor_file",
    "intent",
    "masked",
    "recent",
    "records_in",
    "said",
    "since",
    "verified",
]
