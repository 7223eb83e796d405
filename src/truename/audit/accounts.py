"""What a record says: of a call, and of the other things that people and the gateway do."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.policy.arguments import json_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.audit.redaction import Redaction
    from truename.policy.call import CallEvent

__all__ = ["KINDS", "account_of", "said"]

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "segment": "a file of the journal was begun",
        "start": "a gateway started",
        "stop": "a gateway ended",
        "begin": "a call is about to be sent, or something about to be decided",
        "call": "a call is over",
        "gap": "records were lost before this one",
        "configuration": "another configuration was taken, or refused",
        "definition": "a definition was trusted, held back, accepted, rejected or forgotten",
        "name": "a name was redirected, retired or broken off",
        "approval": "a decision on a call was asked for, made, taken back, or not made in time",
        "access": "somebody was let in or turned away, or a token was made or revoked",
        "credential": "somebody logged in at a server or out, or a credential for one was had, renewed or refused",
    }
)
"""The kinds of records, and what each is of."""

_LONGEST: Final = 2_000


def said(**fields: object) -> dict[str, Any]:
    """Return a record's fields: those that say something, as bounded text, number or truth.

    >>> said(who="ann", rule="", seconds=0.25, is_first=False)
    {'who': 'ann', 'seconds': 0.25, 'is_first': False}
    """
    return {
        # Nearly all are short texts.
        name: value if type(value) is str and len(value) <= _LONGEST and value.isascii() else _bounded(value)
        for name, value in fields.items()
        if value is not None and value != ""
    }


def _bounded(value: object) -> Any:
    if isinstance(value, (bool, int, float)):
        return value
    return str(value)[:_LONGEST].encode("utf-8", "backslashreplace").decode()


def _digest(event: CallEvent) -> str:
    if event.arguments_digest or event.arguments is None:
        return event.arguments_digest
    try:
        return json_digest(event.arguments)
    except (ValueError, TypeError, RecursionError):
        return ""


def account_of(event: CallEvent, redaction: Redaction) -> dict[str, Any]:
    """Return the record of a call: who, which tool by identity, the decision and by what, how long, what became of it.

    The name that was used stands beside the identity, and is the caller's text.
    """
    origin = event.origin
    body = said(
        who=event.principal.key,
        agent=event.agent,
        client=event.client,
        oauth_client=event.principal.client,
        session=event.session,
        view=event.view,
        tool=event.id and str(event.id),
        server=origin and origin.server_id,
        upstream_name=origin and origin.name,
        digest=event.digest,
        name=event.wire_name,
        call=event.call_id,
        serial=event.serial or None,
        decision=event.decision,
        rule=event.rule,
        grant=event.grant,
        outcome=event.outcome,
        code=event.code,
        findings=", ".join(event.findings),
        seconds=round(event.seconds, 6),
        trace=event.trace,
        arguments_digest=_digest(event) if redaction.arguments != "none" else "",
    )
    kept = redaction.of(event.arguments)
    return body if kept is None else {**body, "arguments": kept}
