"""What may happen, and what is wrong: calls, decisions, approvals, rules and their findings."""

from truename.policy.approvals import Approvals, subject_of
from truename.policy.authored import metadata_of
from truename.policy.book import Book, CallRecord, PlainBook, Where
from truename.policy.call import Call, Caller, bound_call, call_of
from truename.policy.call_rules import CallRule
from truename.policy.classification import Classification, classify
from truename.policy.context import CallOrigin, Context
from truename.policy.convention import Convention, Suppression
from truename.policy.conventions import plain_convention, read_convention
from truename.policy.decision import Decision, Outcome
from truename.policy.declaration import Declaration
from truename.policy.declare import catalog_of, declared, implementations, tool
from truename.policy.exposure import Exposure
from truename.policy.faults import CallRepeated, InvalidCall, StoreError
from truename.policy.finding import Finding, Location, Rule, Severity
from truename.policy.grants import Grant, Scope, Subject, Verdict
from truename.policy.linting import Linted, Suppressed, lint
from truename.policy.metadata import Metadata
from truename.policy.overrides import read_metadata
from truename.policy.parity import parity, table_parity
from truename.policy.policy import Check, Policy
from truename.policy.presentation import Presentation
from truename.policy.reading import plain_policy, read_policy, read_rules
from truename.policy.store import FileStore, MemoryStore, Store
from truename.policy.terms import HINTS

__all__ = [
    "HINTS",
    "Approvals",
    "Book",
    "Call",
    "CallOrigin",
    "CallRecord",
    "CallRepeated",
    "CallRule",
    "Caller",
    "Check",
    "Classification",
    "Context",
    "Convention",
    "Decision",
    "Declaration",
    "Exposure",
    "FileStore",
    "Finding",
    "Grant",
    "InvalidCall",
    "Linted",
    "Location",
    "MemoryStore",
    "Metadata",
    "Outcome",
    "PlainBook",
    "Policy",
    "Presentation",
    "Rule",
    "Scope",
    "Severity",
    "Store",
    "StoreError",
    "Subject",
    "Suppressed",
    "Suppression",
    "Verdict",
    "Where",
    "bound_call",
    "call_of",
    "catalog_of",
    "classify",
    "declared",
    "implementations",
    "lint",
    "metadata_of",
    "parity",
    "plain_convention",
    "plain_policy",
    "read_convention",
    "read_metadata",
    "read_policy",
    "read_rules",
    "subject_of",
    "table_parity",
    "tool",
]
