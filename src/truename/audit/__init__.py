"""Keep the audit log of calls and decisions: an append-only file whose records form a hash chain."""

from truename.audit.chain import GENESIS, AuditRecord
from truename.audit.chains import ChainPlace, chains_of, open_chain
from truename.audit.head import Anchor, anchor_file
from truename.audit.log import AuditLog
from truename.audit.pruning import OldRecords, find_old, prune, remove_leftovers
from truename.audit.reading import (
    FollowedLog,
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
from truename.audit.stored_heads import HEADS_SCHEMA, HeadKeeper, HeadStore, StoredHead
from truename.audit.verification import ChainReport, LogReport, in_order_of_time, verify_chains

__all__ = [
    "GENESIS",
    "HEADS_SCHEMA",
    "KINDS",
    "Anchor",
    "AuditLog",
    "AuditRecord",
    "AuditRecorder",
    "ChainPlace",
    "ChainReport",
    "CommandAudit",
    "FollowedLog",
    "HeadKeeper",
    "HeadStore",
    "LogDefect",
    "LogReport",
    "OldRecords",
    "Redaction",
    "StoredHead",
    "anchor_file",
    "begin_fields",
    "call_record",
    "chains_of",
    "find_old",
    "in_order_of_time",
    "open_chain",
    "prune",
    "read_records",
    "recent_records",
    "record_fields",
    "records_since",
    "redact_text",
    "remove_leftovers",
    "verify_chains",
    "verify_log",
    "with_recorded_revision",
]
