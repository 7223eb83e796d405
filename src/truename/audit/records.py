"""Build the records of the audit log: of calls, and of actions of people, commands and the gateway."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.audit.chains import command_chain
from truename.audit.stored_heads import HeadStore
from truename.errors import StoreError
from truename.policy.arguments import json_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from truename.audit.chains import ChainPlace
    from truename.audit.head import LogHead
    from truename.audit.redaction import Redaction
    from truename.catalog import Origin
    from truename.config.audit import Audit
    from truename.identity import ToolId
    from truename.policy.call import CallEvent
    from truename.storage import StateLocation

__all__ = ["KINDS", "CommandAudit", "begin_fields", "call_record", "record_fields"]

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "segment": "a segment of the log begins",
        "start": "a gateway started",
        "stop": "a gateway stopped",
        "state": "the revision of the state database, or its acceptance after changes were lost",
        "begin": "a call is about to be sent, or a decision about to be made",
        "call": "a call ended",
        "gap": "records were lost before this one",
        "pruned": "old records were removed",
        "configuration": "a new configuration was applied, or refused",
        "definition": "a definition was trusted, quarantined, accepted, rejected or forgotten",
        "name": "a name was redirected, retired or dropped, or a rename by a server was decided on",
        "approval": "an approval of a call was requested, decided, revoked, or expired",
        "access": "somebody was authenticated or refused, or a token was issued or revoked",
        "credential": "a login at a server, a logout, or a credential for a server that was issued, renewed or refused",
    }
)
"""The kinds of records, each with its meaning."""

_LONGEST: Final = 2_000
_ALIKE: Final = 4_096


def record_fields(**fields: object) -> dict[str, object]:
    """Return the fields of a record, without None and "" values, as bounded text, number or boolean.

    >>> record_fields(who="ann", rule="", seconds=0.25, is_first=False)
    {'who': 'ann', 'seconds': 0.25, 'is_first': False}
    """
    return {
        # Nearly all are short texts.
        name: value if type(value) is str and len(value) <= _LONGEST and value.isascii() else _bounded(value)
        for name, value in fields.items()
        if value is not None and value != ""
    }


def _bounded(value: object) -> object:
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


def call_record(event: CallEvent, redaction: Redaction) -> dict[str, object]:
    """Build the record of a call: principal, tool id, decision and its rule, duration, outcome.

    ``name`` is the name that the caller used, and untrusted text; ``tool`` is the identity.
    """
    principal = event.principal.key, event.principal.client
    decision = event.decision, event.rule, event.grant
    said = event.agent, event.client, event.session, event.view, event.digest
    body = _alike(principal, said, event.id, event.origin, decision) | record_fields(
        name=event.wire_name,
        call=event.call_id,
        serial=event.serial or None,
        outcome=event.outcome,
        code=event.code,
        findings=", ".join(event.findings),
        seconds=round(event.seconds, 6),
        trace=event.trace,
        arguments_digest=_digest(event) if redaction.arguments != "none" else "",
    )
    kept = redaction.of(event.arguments)
    return body if kept is None else {**body, "arguments": kept}


@lru_cache(maxsize=_ALIKE)
def _alike(
    principal: tuple[str, str],
    said: tuple[str, str, str, str, str],
    id: ToolId | None,
    origin: Origin | None,
    decision: tuple[str, str, str],
) -> dict[str, object]:
    """Return the fields that are the same in many calls."""
    who, oauth_client = principal
    agent, client, session, view, digest = said
    outcome, rule, grant = decision
    return record_fields(
        who=who,
        agent=agent,
        client=client,
        oauth_client=oauth_client,
        session=session,
        view=view,
        tool=id and str(id),
        server=origin and origin.server_id,
        upstream_name=origin and origin.name,
        digest=digest,
        decision=outcome,
        rule=rule,
        grant=grant,
    )


_UNDONE: Final = "Nothing was done, because audit.required is set and the record cannot be written."
_DONE: Final = "It was done, but the audit log has no record of it."
_BEGUN: Final = "It was done, but the audit log has only the record of its begin."


def begin_fields(kind: str, decisions: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return the fields of the ``begin`` record of decisions that are about to be made.

    >>> tools = ("fs@1/read@1", "fs@1/rm@1")
    >>> begin_fields("definition", [{"what": "accepted", "tool": tool} for tool in tools])
    {'what': 'accepted', 'tool': 'fs@1/read@1', 'of': 'definition', 'count': 2}
    """
    first = dict(decisions[0]) if decisions else {}
    return record_fields(**first, of=kind, count=len(decisions) if len(decisions) > 1 else None)


class CommandAudit:
    """The audit of a command: writes its decisions to the configured audit log, if there is one.

    As for calls: with ``required``, a ``begin`` record is on the disk before the command acts, and without that record
    it does not act. Otherwise the command acts, and ``warn`` receives a message if its record cannot be written.
    """

    def __init__(self, settings: Audit, location: StateLocation, warn: Callable[[str], None]) -> None:
        self._settings = settings
        self._location = location
        self._warn = warn

    @contextmanager
    def deciding(self, kind: str, decisions: Sequence[dict[str, object]]) -> Iterator[None]:
        """Record the decisions of the block, one record each; the block may add fields to them.

        Raises `StoreError` before the block if a record is required and cannot be written. If the block raises, its
        decisions were not made, and only the ``begin`` record remains.
        """
        is_required = self._settings.required
        try:
            if is_required and decisions:
                self._append(kind, [("begin", begin_fields(kind, decisions))])
        except StoreError as error:
            raise replace(error, remedy=f"{error.remedy} {_UNDONE}") from error
        yield
        try:
            if decisions:
                self._append(kind, [(kind, record_fields(**one)) for one in decisions])
        except StoreError as error:
            self._warn(f"{error} {_BEGUN if is_required else _DONE}")

    def _append(self, about: str, records: Sequence[tuple[str, Mapping[str, object]]]) -> None:
        settings = self._settings
        if settings.path is None:
            return
        log, place = command_chain(settings, self._location)
        with log:
            log.append(records)
            head = log.head
        # A command that copies the state must leave the copy as it is, and one that accepts it cannot use it before.
        if about != "state":
            self._store(head, place)

    def _store(self, head: LogHead, place: ChainPlace) -> None:
        """Store the end of the chain; the records count without it too."""
        key = None if self._settings.key is None else self._settings.key.encode()
        try:
            store = HeadStore.writable(self._location, key)
            if store is not None:
                with closing(store):
                    store.add(head, place)
        except StoreError as error:
            self._warn(f"{error} The record is written; its place in the state database is not.")
