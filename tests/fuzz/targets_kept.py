"""Files of state: whatever was done to one, it is refused and left as it is, or what it holds is what was written."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.judging import must
from tests.fuzz.mutation import mutated, mutated_bytes, text
from truename import Catalog, ToolId
from truename.auth.authorization_server.sessions import SignInSession, SignInSessions
from truename.auth.inbound.static_tokens import StaticToken, StaticTokenStore, digest_of
from truename.auth.vault import Vault
from truename.errors import StoreError, TruenameError
from truename.gateway.http.session_ids import handshake_of
from truename.gateway.http.session_record import SessionRecord
from truename.migration.lock import Lock
from truename.policy import SqlApprovalStore
from truename.policy.approval_validity import Grant, Subject
from truename.policy.store import CallKey, StoredCall
from truename.trust.approval_queue import ApprovalQueue, PendingCall
from truename.trust.pins import PinnedTool, PinStore
from truename.trust.pins import digest_of as digest_of_definition

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

__all__ = ["TARGETS"]

_KEY: Final = b"k" * 32
_NOW: Final = 1_800_000_000.0
_SUBJECT: Final = Subject(ToolId.parse("git@1/push@1"), digest="d", shape="s", server="git", name="push", endpoint="e")
_CALL: Final = StoredCall(where=CallKey("ann", "s", "c"), id=ToolId.parse("git@1/push@1"), arguments="a")


def _tokens(path: Path) -> None:
    with StaticTokenStore(path, {}) as store:
        for name, id in (("ann", "0" * 16), ("bob", "1" * 16)):
            store.add(StaticToken(id=id, name=name, digest=digest_of(id), made=1.0))


def _read_tokens(path: Path) -> Any:
    # A file of no bytes is a database that was never made; the file of its revision tells it from an emptied one.
    is_new = path.stat().st_size == 0
    with StaticTokenStore(path, {}) as store:
        must(store.exists or is_new, "a damaged token table asks for tokens")
        return store.now()


def _vault(path: Path) -> None:
    with Vault(path, [_KEY]) as vault:
        vault.put("idp", "ann", b"secret of ann")
        vault.put("idp", "bob", b"secret of bob")


def _read_vault(path: Path) -> Any:
    with Vault(path, [_KEY]) as vault:
        found = {who: vault.get("idp", who) for who in ("ann", "bob")}
        for who, secret in found.items():
            must(secret in (None, f"secret of {who}".encode()), "a secret is whole, and whose it was")
        return vault.entries()


def _pins(path: Path) -> None:
    with PinStore(path, now=lambda: "2026-01-01") as book:
        book.trust([_pinned("git@1/push@1"), _pinned("git@1/pull@1")])
        book.note([_pinned("git@1/push@1", "other")])


def _pinned(id: str, said: str = "x") -> PinnedTool:
    content = {"name": "push", "description": said}
    digest = digest_of_definition(content)
    return PinnedTool(id=ToolId.parse(id), server="git", name="push", digest=digest, content=content, at="2026-01-01")


def _read_pins(path: Path) -> Any:
    with PinStore(path) as book:
        for pin in (*book.pins().values(), *book.seen().values()):
            whole = pin.content is None or digest_of_definition(pin.content) == pin.digest
            must(whole, "a definition is the one of its digest")
        return book.pins()


def _pending(path: Path) -> None:
    wanted = PendingCall(principal="ann", fingerprint="f", subject=_SUBJECT, arguments_digest="a", arguments="{}")
    with ApprovalQueue(path, now=lambda: _NOW) as book:
        book.ask(wanted, most=5, lasts=1e9)


def _read_pending(path: Path) -> Any:
    with ApprovalQueue(path, now=lambda: _NOW) as book:
        return book.all()


def _sessions(path: Path) -> None:
    sessions = SignInSessions(path, lambda: _NOW)
    for id in ("a", "b"):
        sessions.begin(SignInSession(id=id, name="ann", issuer="idp", client="c", made=1, until=int(_NOW) + 9))
    sessions._file.close()


def _read_sessions(path: Path) -> Any:
    sessions = SignInSessions(path, lambda: _NOW)
    try:
        return [found for id in ("a", "b") if (found := sessions.get(id)) is not None]
    finally:
        sessions._file.close()


def _approvals(path: Path) -> None:
    with closing(SqlApprovalStore(path)) as store, store.change() as book:
        book.put(_CALL)
        book.keep(Grant(key="k", approved=True, scope="always", subject=_SUBJECT, principal="ann", agent=""))


def _read_approvals(path: Path) -> Any:
    with closing(SqlApprovalStore(path)) as store:
        book = store.read()
        found = book.call(_CALL.where)
        must(found is None or found.where == _CALL.where, "a call is the one that was asked for")
        # Changed text can make it another principal's grant, but not none.
        return book.grants()


def _lock(path: Path) -> None:
    tools = [{"name": "push", "inputSchema": {"type": "object", "properties": {"a": {}}}}, {"name": "天気"}]
    path.write_text(Lock.of(Catalog.from_mcp({"git": tools}), ["a.py"], "0.2").text())


def _read_lock(path: Path) -> Any:
    lock = Lock.parse(path.read_bytes().decode("utf-8", "replace"))
    must(Lock.parse(lock.text()) == lock, "a lock is written as it is read")
    return lock.tools


_PLACE: Final = "ann at /mcp"
_CLIENT: Final = {"name": "ann", "version": "1"}
_SAID: Final = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": _CLIENT}
_HELLO: Final = handshake_of({"method": "initialize", "params": _SAID})
_BEGUN: Final = {"kept": "", "ended": ""}


def _handshake_sessions(path: Path) -> None:
    record = SessionRecord(path, 60.0, clock=lambda: _NOW)
    for name in _BEGUN:
        _BEGUN[name] = record.issue(_PLACE, _HELLO)
        record.use(_BEGUN[name])
    asyncio.run(record.write())
    asyncio.run(record.end(_PLACE, _BEGUN["ended"]))
    record.close()


def _read_handshake_sessions(path: Path) -> Any:
    record = SessionRecord(path, 60.0, clock=lambda: _NOW)
    try:
        for name, id in _BEGUN.items():
            opened = record.issued(_PLACE, id)
            must(opened is None or opened.handshake == _HELLO, "an id says what was agreed on, or nothing")
            with suppress(StoreError):
                asyncio.run(record.good(_PLACE, id))
            asyncio.run(record.end(_PLACE, id))
            must(asyncio.run(record.good(_PLACE, id)) is None, f"a session that was ended is over ({name})")
    finally:
        record.close()
    return [True]


@dataclass(frozen=True)
class _File:
    """One kind of file: how it is written, and read; what is read is empty only if nothing was written."""

    write: Callable[[Path], None]
    read: Callable[[Path], Any]


_FILES: Final = {
    "tokens": _File(_tokens, _read_tokens),
    "vault": _File(_vault, _read_vault),
    "pins": _File(_pins, _read_pins),
    "pending": _File(_pending, _read_pending),
    "sessions": _File(_sessions, _read_sessions),
    "handshake_sessions": _File(_handshake_sessions, _read_handshake_sessions),
    "approvals": _File(_approvals, _read_approvals),
    "lock": _File(_lock, _read_lock),
}


@cache
def _written(kind: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, kind)
        _FILES[kind].write(path)
        return path.read_bytes()


def _target(kind: str) -> Callable[[Random], None]:
    def target(chance: Random) -> None:
        raw = mutated_bytes(chance, _written(kind))
        if chance.random() < 0.3:
            raw = mutated(chance, raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogatepass")
        if chance.random() < 0.1:
            # A value of the file is another one.
            raw = raw.replace(b"ann", text(chance)[:200].encode("utf-8", "surrogatepass"))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, kind)
            path.write_bytes(raw)
            path.chmod(0o600)
            try:
                found = _FILES[kind].read(path)
            except TruenameError:
                must(path.read_bytes() == raw, "a file that is refused stays as it was")
                raise
            # A file of no bytes is what a process leaves that was killed as it made it: nothing was in it.
            must(bool(found) or raw == b"" or _is_empty(kind, raw), "what was kept is not gone without a word")

    target.__name__ = f"files_of_{kind}"
    return target


def _is_empty(kind: str, raw: bytes) -> bool:
    """Tell whether a file says by itself that it holds nothing."""
    return kind in {"tokens", "approvals", "lock"} and not {b"ann", b"push"} & {
        word for word in (b"ann", b"push") if word in raw
    }


TARGETS: Final = tuple(_target(kind) for kind in _FILES)
