"""Keep the audit log of calls and decisions: an append-only file whose records form a hash chain."""

from truename.audit.chain import GENESIS, AuditRecord
from truename.audit.head import Anchor, anchor_file
from truename.audit.log import AuditLog
from truename.audit.reading import (
    LogDefect,
    read_records,
    recent_records,
    records_since,
    verify_log,
    with_recorded_revision,
)
from truename.audit.recorder import AuditRecorder
from truename.audit.records import KINDS, CommandAudit, begin_fields, call_record, record_fields
from truename.audit.redaction import Redaction, redact_text

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
    "anchor_file",
    "begin_fields",
    "call_record",
    "read_records",
    "recent_records",
    "record_fields",
    "records_since",
    "redact_text",
    "verify_log",
    "with_recorded_revision",
]
