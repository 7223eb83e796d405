"""What may happen, and what is wrong: calls, decisions, approvals, rules and their findings."""

from truename.policy.approvals import Approvals, subject_of
from truename.policy.book import Book, CallRecord, PlainBook, Where
from truename.policy.call import Call, Caller, bound_call, call_of
from truename.policy.call_rules import CallRule
from truename.policy.decision import Decision, Outcome
from truename.policy.faults import CallRepeated, InvalidCall, StoreError
from truename.policy.finding import Finding, Location, Rule, Severity
from truename.policy.grants import Grant, Scope, Subject, Verdict
from truename.policy.parity import parity, table_parity
from truename.policy.policy import Check, Policy
from truename.policy.reading import plain_policy, read_policy, read_rules
from truename.policy.store import FileStore, MemoryStore, Store
from truename.policy.terms import HINTS

__all__ = [
    "HINTS",
    "Approvals",
    "Book",
    "Call",
    "CallRecord",
    "CallRepeated",
    "CallRule",
    "Caller",
    "Check",
    "Decision",
    "FileStore",
    "Finding",
    "Grant",
    "InvalidCall",
    "Location",
    "MemoryStore",
    "Outcome",
    "PlainBook",
    "Policy",
    "Rule",
    "Scope",
    "Severity",
    "Store",
    "StoreError",
    "Subject",
    "Verdict",
    "Where",
    "bound_call",
    "call_of",
    "parity",
    "plain_policy",
    "read_policy",
    "read_rules",
    "subject_of",
    "table_parity",
]
