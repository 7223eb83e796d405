"""Build the records of the audit log: of calls, and of what people, commands and the gateway do."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.audit.head import anchor_file
from truename.audit.log import AuditLog
from truename.errors import StoreError
from truename.policy.arguments import json_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from truename.audit.redaction import Redaction
    from truename.config.audit import Audit
    from truename.policy.call import CallEvent

__all__ = ["KINDS", "CommandAudit", "account_of", "intent", "said"]

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
    """Build the record of a call: principal, tool id, decision and its rule, duration, outcome.

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


_UNDONE: Final = "Nothing was done: what can't be written down (audit.required) is not done."
_DONE: Final = "It was done all the same; the journal does not have it."
_BEGUN: Final = "It was done; the journal has only that it was begun."


def intent(kind: str, decisions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields of the ``begin`` record of what is about to be decided.

    >>> intent("definition", [{"what": "accepted", "tool": "fs@1/read@1"}, {"what": "accepted", "tool": "fs@1/rm@1"}])
    {'what': 'accepted', 'tool': 'fs@1/read@1', 'of': 'definition', 'count': 2}
    """
    first = dict(decisions[0]) if decisions else {}
    return said(**first, of=kind, count=len(decisions) if len(decisions) > 1 else None)


class CommandAudit:
    """Writes down what a command decides, in the journal of the settings, if there is one.

    As with calls: with ``required`` what can't be written down is not done, and a ``begin`` record is on the disk
    before it is; without, it is done, and ``warn`` is told that the journal does not have it.
    """

    def __init__(self, settings: Audit, warn: Callable[[str], None]) -> None:
        self._settings = settings
        self._warn = warn

    @contextmanager
    def deciding(self, kind: str, decisions: Sequence[dict[str, Any]]) -> Iterator[None]:
        """Write down what the block does, one record each; their fields may be added to until it ends.

        Raises `StoreError` before the block where that is required and not possible. What the block raises was not
        done, and has no record but that it was begun.
        """
        is_required = self._settings.required
        try:
            if is_required and decisions:
                self._append([("begin", intent(kind, decisions))])
        except StoreError as error:
            raise replace(error, remedy=f"{error.remedy} {_UNDONE}") from error
        yield
        try:
            if decisions:
                self._append([(kind, said(**one)) for one in decisions])
        except StoreError as error:
            self._warn(f"{error} {_BEGUN if is_required else _DONE}")

    def _append(self, records: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        settings = self._settings
        if settings.path is None:
            return
        key = None if settings.key is None else settings.key.encode()
        anchor = anchor_file(settings.directory)
        with AuditLog.beside(settings.directory, key, max_bytes=settings.max_segment, anchor=anchor) as journal:
            journal.append(records)
