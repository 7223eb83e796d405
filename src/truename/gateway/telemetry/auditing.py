"""The journal of a gateway that runs: what is called, decided and changed is written down there, or not done."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from truename.audit import AuditLog, AuditRecorder, Redaction, account_of, anchor_file, intent, said
from truename.config.files import digest_of
from truename.errors import NotAllowed, StoreError, TruenameError
from truename.gateway.telemetry.definitions import Definitions
from truename.gateway.telemetry.withdrawals import Withdrawals

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from truename.auth.inbound.authentication import AccessEvent
    from truename.config import Config
    from truename.config.audit import Audit
    from truename.gateway.hub import Hub
    from truename.gateway.telemetry.account import RunningCall
    from truename.gateway.trust.requests import Requests
    from truename.gateway.upstream.showing import ShownEvent
    from truename.policy.call import CallEvent
    from truename.trust import PinStore

__all__ = ["Auditing", "auditing"]

log: Final = logging.getLogger("truename.audit")

_UNWRITTEN: Final = "the audit log can't be written now, and calls that can't be recorded are refused"


class Auditing:
    """Writes down what a gateway does. Without a recorder it writes nothing, and refuses what it is required to write.

    ``required`` and what is kept of arguments may change while it runs.
    """

    def __init__(self, settings: Audit, recorder: AuditRecorder | None = None, book: PinStore | None = None) -> None:
        self._recorder = recorder
        self._definitions = None if book is None else Definitions(book)
        self._withdrawals: Withdrawals | None = None
        self._requests: Requests | None = None
        self._is_asked_for = settings.path is not None
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

    def join(self, hub: Hub) -> None:
        """Be told of calls and of people's decisions on them, and asked before a call is sent."""
        if self._recorder is not None or self._required:
            hub.accounts.listen(self.called)
            hub.accounts.guard(self.before)
            self._withdrawals = Withdrawals(hub.ledger)
            self._requests = hub.approving.requests
            self._requests.audit = self

    @property
    def recorder(self) -> AuditRecorder | None:
        """What writes, if anything does."""
        return self._recorder

    @property
    def is_well(self) -> bool | None:
        """Whether what is recorded gets written; None where no journal is asked for."""
        if self._recorder is None:
            return False if self._is_asked_for else None
        return self._recorder.is_well

    def called(self, event: CallEvent) -> None:
        """Write down a call that is over."""
        if self._recorder is not None:
            self._recorder.write("call", account_of(event, self._redaction))

    async def before(self, account: RunningCall) -> None:
        """Write down, to the disk, that a call is about to be sent, where it has to be.

        Raises `NotAllowed` (``unrecorded``) if that can't be.
        """
        if not self._required:
            return
        try:
            await self._begun(account.event("begun"))
        except StoreError as error:
            # What is wrong with the disk is no matter of the client's.
            log.debug("a call is refused", exc_info=error)
            assert account.tool is not None  # noqa: S101 - it was found before this is asked
            raise NotAllowed(id=account.tool.id, rule="audit", decision=_UNWRITTEN, code="unrecorded") from None

    async def _begun(self, event: CallEvent) -> None:
        await asyncio.wrap_future(self.require().written("begin", account_of(event, self._redaction)))

    def require(self) -> AuditRecorder:
        """Return what writes. Raises `StoreError` if what is recorded now would not be written."""
        if self._recorder is None:
            raise StoreError(file="", key="", problem="no audit log is set", remedy="Set audit.path.", code="unusable")
        self._recorder.require()
        return self._recorder

    def note(self, kind: str, **fields: object) -> None:
        """Write down something else than a call."""
        if self._recorder is not None:
            self._recorder.write(kind, said(**fields))

    @asynccontextmanager
    async def deciding(self, kind: str, about: dict[str, Any]) -> AsyncIterator[None]:
        """Write down what the block decides; ``about`` may be added to until it ends.

        Raises `StoreError` before the block where it has to be on the disk first that this is begun, and can't be.
        """
        if self._required:
            await asyncio.wrap_future(self.require().written("begin", intent(kind, [about])))
        yield
        self.note(kind, **about)

    def refused(self, error: BaseException) -> None:
        """Write down that another configuration was refused, and where it is wrong; not what stands there."""
        self.note("configuration", what="refused", **_fault(error))

    def entered(self, event: AccessEvent) -> None:
        """Write down what happened at the door."""
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

    def look(self) -> None:
        """Write down what became of definitions, names and requests for decisions since the last look."""
        for kind, source in (("definition", self._definitions), ("name", self._withdrawals)):
            for fields in () if source is None or self._recorder is None else source.news():
                self.note(kind, **fields)
        if self._requests is not None:
            self._requests.look()

    def started(self, config: Config, version: str) -> None:
        """Write down that the gateway runs, and by which configuration."""
        if self._recorder is not None:
            servers = ", ".join(server.key for server in config.enabled)
            self.note("start", pid=os.getpid(), version=version, servers=servers, files=digest_of(config))

    def shown(self, event: ShownEvent) -> None:
        """Write down what came of asking for a credential for a server."""
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
async def auditing(settings: Audit, book: PinStore) -> AsyncIterator[Auditing]:
    """Keep the journal of the settings, if there is one, while the block lasts.

    Where it can't be kept, that is told, and the gateway runs without; raises `StoreError` if it is required, and where
    another gateway has this journal.
    """
    recorder = await anyio.to_thread.run_sync(_opened, settings)
    kept = Auditing(settings, recorder, book)
    try:
        yield kept
    finally:
        if recorder is not None:
            kept.note("stop")
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(recorder.close)


def _opened(settings: Audit) -> AuditRecorder | None:
    if settings.path is None:
        return None
    key = None if settings.key is None else settings.key.encode()
    try:
        anchor = anchor_file(settings.directory)
        journal = AuditLog(settings.directory, key, max_bytes=settings.max_segment, anchor=anchor)
    except StoreError as error:
        # A second gateway would look like one that writes.
        if settings.required or error.code == "busy":
            raise
        log.warning("%s Nothing is recorded.", error)
        return None
    return AuditRecorder(journal, most_waiting=settings.max_waiting)
