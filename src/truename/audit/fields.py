"""Name every field of the audit log's records with its meaning: the reference is generated from here."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CALL_FIELDS", "CHAIN_FIELDS", "EVENTS", "OTHER_FIELDS", "OUTCOMES"]

CHAIN_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "at": "The time of the record, in UTC.",
        "kind": "The kind of the record.",
        "number": "The number of the record in its chain, from 1.",
        "previous": "The hash of the record before.",
        "hash": "The hash of this record, over its canonical JSON (RFC 8785).",
    }
)
"""The fields that every record has."""

CALL_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "who": "The principal: who called.",
        "agent": "The agent that calls for the principal.",
        "client": "The client, as it names itself.",
        "oauth_client": "The OAuth client of the access token.",
        "session": "A digest of the session's id.",
        "view": "The view of the endpoint: client, profile, context, servers.",
        "name": "The name that the caller used: untrusted text.",
        "tool": "The tool's canonical id.",
        "server": "The id of the tool's server.",
        "upstream_name": "The tool's own name at its server.",
        "digest": "The digest of the tool's definition.",
        "call": "The id of the call, by the client.",
        "serial": "The number of the call in this run of the gateway.",
        "decision": "The decision of the policy: allow, deny or ask.",
        "rule": "The rule that decided.",
        "grant": "The approval by which the call was made: an `approval` record has the same.",
        "outcome": "How the call ended.",
        "code": "The code of the error.",
        "findings": "The rules that the answer breaks, where answers are screened.",
        "seconds": "The duration.",
        "trace": "The W3C `traceparent`.",
        "arguments_digest": "The digest of the arguments, where `audit.arguments` is `digest` or `redacted`.",
        "arguments": "The arguments without secrets, where `audit.arguments` is `redacted`.",
    }
)
"""The fields of a ``call`` record, and of the ``begin`` record of a call."""

OUTCOMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ok": "the tool answered",
        "tool_error": "the tool answered that it failed",
        "protocol_error": "the server refused the request",
        "refused": "the policy refused the call",
        "unknown": "no tool has this name",
        "failed": "the server could not be called, or its answer did not arrive",
        "cancelled": "the client cancelled the call, or the gateway ended",
        "input_required": "the tool asked for input",
    }
)
"""The values of ``outcome``."""

EVENTS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "approval": {
            "asked": "A call needs an approval.",
            "granted": "Somebody approved it.",
            "denied": "Somebody denied it.",
            "revoked": "Somebody revoked an approval.",
            "ended": "An approval ended with its session.",
            "expired": "Nobody decided in time.",
        },
        "definition": {
            "pinned": "A new tool's definition was recorded and is trusted.",
            "changed": "A changed definition is trusted in place of the one before.",
            "held": "A new tool's definition waits for a review.",
            "quarantined": "A changed definition waits for a review.",
            "blocked": "A rule rejects the definition.",
            "accepted": "The lock, or a person, accepted the definition.",
            "rejected": "A person rejected the definition.",
            "forgotten": "A person removed the recorded definition.",
        },
        "name": {
            "redirected": "The name leads to a successor.",
            "retired": "The name was withdrawn.",
            "broken": "The name was withdrawn for a new version of the protocol.",
            "rename_accepted": "Somebody said that a new tool of a server is one that left it: `old`.",
            "rename_rejected": "Somebody said that a new tool of a server is none of those that left.",
            "rename_undone": "Somebody took such a decision back.",
            "many": "More than 1,000 names changed at a time; `count` has their number.",
        },
        "access": {
            "turned_away": "A caller was refused.",
            "signed_in": "A person signed in.",
            "sign_in_refused": "A sign-in was refused.",
            "sign_in_ended": "A sign-in ended.",
            "token_made": "An access token was issued.",
            "revoked": "A token or a sign-in was revoked.",
            "deprovisioned": "Everything of a person was ended.",
            "readmitted": "A deprovisioned person may come in again.",
        },
        "credential": {
            "logged_in": "A person logged in at a server.",
            "logged_out": "A person logged out at a server.",
            "obtained": "A credential for a server was issued, also by token exchange.",
            "renewed": "A credential for a server was renewed.",
            "login_required": "A call needed a login that its principal does not have.",
            "not_obtained": "A credential for a server was refused.",
        },
        "configuration": {
            "taken": "A new configuration was applied.",
            "refused": "A new configuration was refused.",
        },
        "state": {
            "accepted": "An operator accepted the state after changes were lost.",
            "imported": "The state came from another place.",
            "rotated": "Secrets were encrypted with a new key.",
        },
    }
)
"""The values of ``what`` of each kind of record that has one."""

OTHER_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "what": "What happened: see the table of each kind.",
        "by": "Who decided.",
        "via": "How: `elicitation`, `multi_round`, `command`, `console` or `page`.",
        "why": "The reason of a refusal.",
        "times": "How often it happened since the last such record.",
        "request": "The approval key of the request.",
        "covers": "What the approval covers.",
        "until": "Until when it lasts; of `pruned` the time of the last removed record.",
        "successor": "The tool or name that follows.",
        "old": "The id of the tool before its server renamed it.",
        "scope": "The scope of names that only one view has.",
        "token": "The id of the access token.",
        "sign_in": "The id of the sign-in.",
        "groups": "The groups of a token.",
        "scopes": "The scopes of a token.",
        "count": "How many.",
        "of": "The kind of the decision that a `begin` record announces.",
        "changed": "The servers and settings that changed.",
        "files": "Name and SHA-256 of each file of the configuration.",
        "file": "The file with the error.",
        "key": "The key with the error.",
        "version": "The version of Truename.",
        "servers": "The servers of the configuration.",
        "pid": "The process.",
        "database": "The id of the state database.",
        "revision": "The number of its changes.",
        "from": "The place that the state came from.",
        "through": "The number of the last record that was removed.",
        "through_hash": "The hash of that record.",
        "chain": "The chain that was removed as a whole.",
        "of_chain": "The chain whose records were removed.",
        "lost": "The number of records that were lost.",
        "tokens": "How many access tokens of a person were revoked.",
        "sign_ins": "How many sign-ins of a person were ended.",
        "logins": "How many logins of a person at servers were removed.",
        "approvals": "How many approvals of a person were revoked.",
        "pending": "How many pending calls of a person were removed from the queue.",
    }
)
"""The fields of all other records."""
