"""Keep the audit journal of calls and decisions: append-only, each record chained to the one before."""

from truename.audit.chain import GENESIS, AuditRecord
from truename.audit.head import Anchor, anchor_file
from truename.audit.log import AuditLog
from truename.audit.reading import LogDefect, recent, records_in, since, verified
from truename.audit.recorder import AuditRecorder
from truename.audit.records import KINDS, CommandAudit, account_of, intent, said
from truename.audit.redaction import Redaction, masked

__all__ = [
    "GENESIS",
    "KINDS",
    "Anchor",
    "AuditLog",
    "AuditRecord",
    "AuditRecorder",
    "CommandAudit",
    "LogDefect",
    "Redaction",
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
