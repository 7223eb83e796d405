"""Decide who may see and call a tool: rules, decisions, approvals, exposure, profiles."""

from truename.policy.approvals import Approvals, subject_of
from truename.policy.call import Call, Caller, CallOrigin, Context, bound_call, call_of
from truename.policy.exposure import Exposure, read_metadata
from truename.policy.grants import Book, CallRecord, Grant, PlainBook, Scope, Subject, Verdict, Where
from truename.policy.policy import Check, Policy, parity, plain_policy, read_policy, read_rules, table_parity
from truename.policy.presentation import Presentation
from truename.policy.rules import HINTS, CallRule, Decision, Outcome
from truename.policy.sql import SqlApprovalStore
from truename.policy.store import ApprovalStore, MemoryStore

__all__ = [
    "HINTS",
    "ApprovalStore",
    "Approvals",
    "Book",
    "Call",
    "CallOrigin",
    "CallRecord",
    "CallRule",
    "Caller",
    "Check",
    "Context",
    "Decision",
    "Exposure",
    "Grant",
    "MemoryStore",
    "Outcome",
    "PlainBook",
    "Policy",
    "Presentation",
    "Scope",
    "SqlApprovalStore",
    "Subject",
    "Verdict",
    "Where",
    "bound_call",
    "call_of",
    "parity",
    "plain_policy",
    "read_metadata",
    "read_policy",
    "read_rules",
    "subject_of",
    "table_parity",
]
