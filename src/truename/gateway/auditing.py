"""Record in the audit log what a gateway calls, decides and changes; refuse what cannot be recorded if required."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from truename.audit import (
    AuditRecorder,
    HeadKeeper,
    Redaction,
    begin_fields,
    call_record,
    open_chain,
    record_fields,
)
from truename.config.files import digest_of
from truename.errors import NotAllowed, StoreError, TruenameError
from truename.storage import Database, Schema, open_database
from truename.trust.approval_queue import about_definition
from truename.trust.pins import BY_LOCK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from truename.auth.inbound.authentication import AccessEvent
    from truename.config import Config
    from truename.config.audit import Audit
    from truename.gateway.call_records import CallRecord
    from truename.gateway.registry import Registry
    from truename.gateway.trust.requests import Requests
    from truename.gateway.upstream.showing import ShownEvent
    from truename.ledger import Ledger, Standing
    from truename.policy.call import CallEvent
    from truename.storage import StateLocation
    from truename.trust import PinStore
    from truename.trust.pins import PinnedTool, SeenDefinition

    Withdrawn = Mapping[str, Standing]

__all__ = ["Auditing", "auditing"]

log: Final = logging.getLogger("truename.audit")

# Records of one kind at one look: beyond this only their number.
_MOST: Final = 1_000
# Whoever else reviewed a definition did it by a command.
_BY_ITSELF: Final = frozenset({"", BY_LOCK})
_NO_TABLES: Final = Schema("revision", ())
# Heads of the log and leases of quotas are no news: a record of a head would be followed by another head.
_CHANGES: Final = "SELECT coalesce(sum(revision), 0) FROM part WHERE name NOT IN ('audit', 'quota')"
_UNWRITTEN: Final = "the audit log cannot be written now, and calls that cannot be recorded are refused"


class Auditing:
    """Writes down what a gateway does. Without a recorder it writes nothing, and refuses what it is required to write.

    ``required`` and what is kept of arguments may change while it runs.
    """

    def __init__(
        self,
        settings: Audit,
        recorder: AuditRecorder | None = None,
        book: PinStore | None = None,
        heads: HeadKeeper | None = None,
    ) -> None:
        self._recorder = recorder
        self._heads = heads
        self._definitions = None if book is None or recorder is None else Definitions(book)
        self._withdrawals: Withdrawals | None = None
        self._requests: Requests | None = None
        self._is_asked_for = settings.path is not None
        self._state: Database | None = None
        self._noted: int | None = None
        self._take(settings)

    def _take(self, settings: Audit) -> None:
        self._required = settings.required
        self._redaction = Redaction(settings.arguments, settings.hide)

    def follow(self, config: Config, changed: object) -> None:
        """Go by another configuration from now on, and write down what changed, and which text it has."""
        self._take(config.settings.audit)
        if self._recorder is not None:
            self.note("configuration", what="taken", changed=changed, files=digest_of(config))

    @contextmanager
    def noting_refusal(self) -> Iterator[None]:
        """Write down what this block raises, in which another configuration is taken."""
        try:
            yield
        except Exception as error:
            self.refused(error)
            raise

    def join(self, registry: Registry) -> None:
        """Be told of calls and of people's decisions on them, and asked before a call is sent."""
        if self._recorder is not None or self._required:
            registry.call_records.listen(self.called, arguments=True)
            registry.call_records.guard(self.before)
            self._withdrawals = Withdrawals(registry.ledger)
            self._requests = registry.approving.requests
            self._requests.audit = self

    @property
    def recorder(self) -> AuditRecorder | None:
        """The recorder; None if nothing is recorded."""
        return self._recorder

    @property
    def heads_behind(self) -> float | None:
        """For how many seconds the head in the state database is not that of the chain; None if none is stored."""
        return None if self._heads is None else self._heads.behind

    @property
    def is_well(self) -> bool | None:
        """Whether records reach the disk; None if no audit log is set."""
        if self._recorder is None:
            return False if self._is_asked_for else None
        return self._recorder.is_well

    def called(self, event: CallEvent) -> None:
        """Record a call that is over."""
        if self._recorder is not None:
            self._recorder.write("call", call_record(event, self._redaction))

    async def before(self, account: CallRecord) -> None:
        """Record on the disk that a call is about to be sent, if the audit log is required.

        Raises `NotAllowed` (``unrecorded``) if the record cannot be written.
        """
        if not self._required:
            return
        try:
            await self._begun(account.event("begun"))
        except StoreError as error:
            # Clients do not see errors of the disk.
            log.debug("a call is refused", exc_info=error)
            assert account.tool is not None  # noqa: S101 - it was found before this is asked
            raise NotAllowed(id=account.tool.id, rule="audit", decision=_UNWRITTEN, code="unrecorded") from None

    async def _begun(self, event: CallEvent) -> None:
        await asyncio.wrap_future(self.require().written("begin", call_record(event, self._redaction)))

    def require(self) -> AuditRecorder:
        """Return the recorder. Raises `StoreError` if it cannot write now."""
        if self._recorder is None:
            raise StoreError(file="", key="", problem="no audit log is set", remedy="Set audit.path.", code="unusable")
        self._recorder.require()
        return self._recorder

    def note(self, kind: str, **fields: object) -> None:
        """Record an event other than a call."""
        if self._recorder is not None:
            self._recorder.write(kind, record_fields(**fields))

    @asynccontextmanager
    async def deciding(self, kind: str, about: dict[str, Any]) -> AsyncIterator[None]:
        """Record the decision of the block; ``about`` may be added to until it ends.

        Raises `StoreError` before the block if the audit log is required and the first record cannot be written.
        """
        if self._required:
            await asyncio.wrap_future(self.require().written("begin", begin_fields(kind, [about])))
        yield
        self.note(kind, **about)

    def refused(self, error: BaseException) -> None:
        """Record that a configuration was refused, and the place of the error; never the value."""
        self.note("configuration", what="refused", **_fault(error))

    def entered(self, event: AccessEvent) -> None:
        """Record a sign-in, a login or a refused caller."""
        self.note(
            "credential" if event.server else "access",
            what=event.what,
            who=event.principal,
            oauth_client=event.client,
            server=event.server,
            via="page" if event.server else None,
            why=event.why,
            times=event.times,
        )

    def watch_state(self, location: StateLocation) -> None:
        """Record the revision of the state database from now on, whenever it changed at a look."""
        if self._recorder is not None and not location.is_memory:
            self._state = open_database(location, _NO_TABLES, readonly=True)
            self._note_state()

    def _note_state(self) -> None:
        if self._state is None:
            return
        try:
            ((changes,),) = self._state.rows(_CHANGES)
            if changes == self._noted:
                return
            now = self._state.revision()
        except StoreError as error:
            log.warning("%s", error)
            return
        self._noted = changes
        self.note("state", database=now.database, revision=now.number)

    def end(self) -> None:
        """Record the last revision of the state, and that the gateway stopped."""
        self._note_state()
        if self._state is not None:
            self._state.close()
        self.note("stop")

    def look(self) -> None:
        """Record what became of definitions, names and requests for approval since the last look."""
        for kind, source in (("definition", self._definitions), ("name", self._withdrawals)):
            for fields in () if source is None or self._recorder is None else source.news():
                self.note(kind, **fields)
        self._note_state()
        if self._requests is not None:
            self._requests.look()

    def started(self, config: Config, version: str) -> None:
        """Record that the gateway runs, and with which configuration."""
        if self._recorder is not None:
            servers = ", ".join(server.key for server in config.enabled)
            self.note("start", pid=os.getpid(), version=version, servers=servers, files=digest_of(config))

    def shown(self, event: ShownEvent) -> None:
        """Record the result of requesting a credential for a server."""
        self.note(
            "credential",
            what=event.what,
            server=event.server,
            who=event.principal,
            why=event.why,
            times=event.times if event.times > 1 else None,
        )


def _fault(error: BaseException) -> Mapping[str, Any]:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    code = error.code if isinstance(error, TruenameError) else type(error).__name__
    return {"code": code, "file": getattr(error, "file", None), "key": getattr(error, "key", None)}


@asynccontextmanager
async def auditing(settings: Audit, location: StateLocation, book: PinStore) -> AsyncIterator[Auditing]:
    """Keep the audit log of the settings, if there is one, while the block lasts; store its head in the state.

    If it cannot be opened, log that and run without it; raise `StoreError` if it is required.
    """
    recorder, heads = await anyio.to_thread.run_sync(_opened, settings, location)
    kept = Auditing(settings, recorder, book, heads)
    try:
        yield kept
    finally:
        if recorder is not None:
            kept.end()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_close, recorder, heads)


def _close(recorder: AuditRecorder, heads: HeadKeeper | None) -> None:
    recorder.close()
    if heads is not None:
        heads.close(has_ended=recorder.has_ended)


def _opened(settings: Audit, location: StateLocation) -> tuple[AuditRecorder | None, HeadKeeper | None]:
    if settings.path is None:
        return None, None
    try:
        audit_log, place = open_chain(settings, location)
    except StoreError as error:
        return _unopened(settings, error)
    recorder = AuditRecorder(audit_log, most_waiting=settings.max_waiting)
    if location.is_memory:
        return recorder, None
    key = None if settings.key is None else settings.key.encode()
    heads = HeadKeeper(location, key, place, lambda: audit_log.head, lambda: recorder.dropped)
    try:
        heads.begin(audit_log.require_record)
    except StoreError as error:
        recorder.close()
        return _unopened(settings, error)
    return recorder, heads


def _unopened(settings: Audit, error: StoreError) -> tuple[None, None]:
    if settings.required:
        raise error
    log.warning("%s Nothing is recorded.", error)
    return None, None


class Definitions:
    """Tells what became of definitions of tools that the gateway has. What was there at the first look is no news."""

    def __init__(self, book: PinStore) -> None:
        self._book = book
        book.take_changes()

    def news(self) -> Iterator[dict[str, Any]]:
        """Yield what was decided since the last look, by no person, as fields of a record."""
        changes = self._book.take_changes()
        pinned = [(before.pin, now.pin) for before, now in changes if now.pin is not None and before.pin != now.pin]
        yield from _definition_records(
            [(_became(pin, is_other=before is not None), pin) for before, pin in pinned if pin.by in _BY_ITSELF]
        )
        seen = [
            (_became(one, is_other=now.pin is not None), one)
            for before, now in changes
            for digest, one in now.seen.items()
            if _word(before.seen.get(digest)) != one.word and one.by in _BY_ITSELF
        ]
        yield from _definition_records(seen)


def _word(seen: SeenDefinition | None) -> str:
    return "" if seen is None else seen.word


def _became(one: PinnedTool, *, is_other: bool) -> str:
    """Return what became of a definition; ``is_other`` says whether another one of its tool is, or was, trusted."""
    match getattr(one, "word", ""):
        case "waiting":
            return "quarantined" if is_other else "held"
        case "rejected":
            return "blocked"
        case _:
            return "accepted" if one.by else "changed" if is_other else "pinned"


def _definition_records(found: Sequence[tuple[str, PinnedTool]]) -> Iterator[dict[str, Any]]:
    if len(found) > _MOST:
        for (what, server), count in Counter((what, one.server) for what, one in found).items():
            yield {"what": what, "server": server, "count": count}
        return
    for what, one in found:
        yield {"what": what, **about_definition(one), "by": one.by}


class Withdrawals:
    """Compares what is withdrawn in a ledger with what was at the last look. What was at the first is no news."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._counts: dict[str, int] = {}
        self._known: dict[str, Withdrawn] = {}
        for _ in self.news():
            pass

    def news(self) -> Iterator[dict[str, Any]]:
        """Yield each name that was redirected, retired or broken since the last look, as fields of a record."""
        for scope in self._ledger.scopes:
            space = self._ledger.scoped(scope)
            if self._counts.get(scope, 0) == space.withdrawals:
                continue
            before, now = self._known.get(scope, {}), dict(space.withdrawn)
            self._counts[scope], self._known[scope] = space.withdrawals, now
            changed = {name: one for name, one in now.items() if before.get(name) != one}
            if len(changed) > _MOST:
                yield {"what": "many", "scope": scope, "count": len(changed)}
                continue
            for name, one in changed.items():
                yield _name_record(name, one, scope)


def _name_record(name: str, standing: Standing, scope: str) -> dict[str, Any]:
    tool = standing.id and str(standing.id)
    return {
        "what": standing.status,
        "name": name,
        "tool": tool,
        "successor": None if standing.successor == tool else standing.successor,
        "until": standing.until,
        "scope": scope,
    }
