"""Decide who may see and call a tool: rules, decisions, approvals, exposure, profiles."""

from truename.policy.approval_validity import Grant, Scope, Subject, Verdict
from truename.policy.approvals import Approvals, subject_of
from truename.policy.call import Call, Caller, CallOrigin, Context, bound_call, call_of
from truename.policy.exposure import Exposure, read_metadata
from truename.policy.policy import Check, Policy, parity, plain_policy, read_policy, read_rules, table_parity
from truename.policy.presentation import Presentation
from truename.policy.rules import HINTS, CallRule, Decision, Outcome
from truename.policy.sql import SqlApprovalStore
from truename.policy.store import ApprovalRecords, ApprovalStore, CallKey, MemoryRecords, MemoryStore, StoredCall

__all__ = [
    "HINTS",
    "ApprovalRecords",
    "ApprovalStore",
    "Approvals",
    "Call",
    "CallKey",
    "CallOrigin",
    "CallRule",
    "Caller",
    "Check",
    "Context",
    "Decision",
    "Exposure",
    "Grant",
    "MemoryRecords",
    "MemoryStore",
    "Outcome",
    "Policy",
    "Presentation",
    "Scope",
    "SqlApprovalStore",
    "StoredCall",
    "Subject",
    "Verdict",
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
