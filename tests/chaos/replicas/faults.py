"""`python -m tests.chaos.replicas.faults --fault NAME WORDS...`: `truename WORDS...` with a fault put in on purpose.

The checker has to find each. The faults are here and nowhere in the product.
"""

from __future__ import annotations

import itertools
import random
import secrets
import sys
import time
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from truename.audit import AuditRecorder
from truename.cli import main
from truename.gateway.http.session_owners import SessionOwners
from truename.gateway.http.sessions import Sessions
from truename.gateway.upstream.server_connection import ServerConnection
from truename.ledger import sql as ledger_sql
from truename.ledger.sql import SqlLedger
from truename.policy import SqlApprovalStore
from truename.storage import postgresql
from truename.storage.postgresql import PostgresqlDatabase, PostgresqlTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from truename.gateway.replicas.liveness import Replica
    from truename.ledger.events import Event
    from truename.policy.store import ApprovalRecords

__all__ = ["BROKEN", "FAULTS"]

_EVERY: Final = 20
_OFTEN: Final = 5
_WINDOW: Final = (0.0, 0.5)


def unlocked() -> None:
    """Claim names without a lock, by what was read some time before."""
    begin, commit = postgresql._BEGIN, postgresql._COMMIT
    postgresql._BEGIN = begin.replace("FOR UPDATE OF part", "")  # type: ignore[misc]
    # What else would stop two writers: the number of the change, and the key of its token.
    commit = commit.replace("SET revision = {revision}", "SET revision = revision + 1")
    postgresql._COMMIT = commit.replace("'{token}')", "'{token}') ON CONFLICT DO NOTHING")  # type: ignore[misc]
    write = ledger_sql._write
    # And the key of the row that another writer stored.
    ledger_sql._ADD.update(ledger_sql._WRITE)

    def append(self: SqlLedger, events: Sequence[Event], expected_revision: int) -> bool:
        data, state = self._writable(), self.snapshot()
        with data.change() as connection:
            time.sleep(random.uniform(*_WINDOW))
            for event in events:
                state.apply(event)
            ((revision,),) = connection.execute("SELECT number FROM ledger_revision").fetchall()
            write(connection, events, state, revision + 1, secrets.randbelow(2**40))
        self._state = None
        return True

    SqlLedger.append = append  # type: ignore[method-assign]


def stale() -> None:
    """Never read what other processes wrote, and take one's own word for theirs."""

    def has_news(self: PostgresqlDatabase) -> bool:
        is_first, self._revision = self._revision < 0, 0
        return is_first

    PostgresqlDatabase.has_news = has_news  # type: ignore[method-assign]
    PostgresqlDatabase.is_behind = PostgresqlDatabase.is_busy  # type: ignore[method-assign]


def lost_commit() -> None:
    """Roll back one change in five, and acknowledge it."""
    commit, numbers = PostgresqlDatabase._commit, itertools.count(1)

    def losing(self: PostgresqlDatabase, data: PostgresqlTransaction) -> None:
        if next(numbers) % _OFTEN:
            commit(self, data)
        else:
            data.roll_back()

    PostgresqlDatabase._commit = losing  # type: ignore[method-assign]


def repeated() -> None:
    """Send one call in twenty a second time."""
    sent, numbers = ServerConnection.request, itertools.count(1)

    async def request(self: ServerConnection, method: str, params: Any, **more: Any) -> dict[str, Any]:
        if method == "tools/call" and next(numbers) % _EVERY == 0:
            await sent(self, method, params, **more)
        return await sent(self, method, params, **more)

    ServerConnection.request = request  # type: ignore[method-assign]


def unrecorded() -> None:
    """Drop one record in twenty that a call waits for, and acknowledge it."""
    written, numbers = AuditRecorder.written, itertools.count(1)

    def dropping(self: AuditRecorder, kind: str, body: Any) -> Future[None]:
        if next(numbers) % _EVERY:
            return written(self, kind, body)
        dropped: Future[None] = Future()
        dropped.set_result(None)
        return dropped

    AuditRecorder.written = dropping  # type: ignore[method-assign]


def reused() -> None:
    """Take an approval of one call for every such call."""

    def forgotten(record: object) -> None:
        del record

    @contextmanager
    def changing(self: SqlApprovalStore) -> Iterator[ApprovalRecords]:
        with changed(self) as records:
            records.put = forgotten  # type: ignore[method-assign]
            yield records

    changed = SqlApprovalStore.change
    SqlApprovalStore.change = changing  # type: ignore[method-assign]


def woken() -> None:
    """Go on with sessions that another replica may have taken over meanwhile."""

    def is_current(self: SessionOwners, own: Replica) -> bool:
        del self, own
        return True

    async def check(self: SessionOwners, own: Replica) -> bool:
        return self.is_current(own)

    def discard_lost(self: Sessions) -> None:
        del self

    SessionOwners.is_current = is_current  # type: ignore[method-assign]
    SessionOwners.check = check  # type: ignore[method-assign]
    Sessions.discard_lost = discard_lost  # type: ignore[method-assign]


FAULTS: Final[dict[str, Callable[[], None]]] = {
    one.__name__: one for one in (unlocked, stale, lost_commit, repeated, unrecorded, reused, woken)
}
# The promises that each breaks: any other finding does not count.
BROKEN: Final[dict[str, frozenset[str]]] = {
    "unlocked": frozenset({"no name means two tools", "no two replicas disagree", "no claim is lost"}),
    "stale": frozenset({"no name means two tools", "no two replicas disagree"}),
    "lost_commit": frozenset({"no claim is lost", "no approval is lost", "no pin is lost"}),
    "repeated": frozenset({"no call is made twice"}),
    "unrecorded": frozenset({"no audit record is lost"}),
    "reused": frozenset({"no call is made twice"}),
    "woken": frozenset({"a session has one owner"}),
}


if __name__ == "__main__":
    FAULTS[sys.argv[2]]()
    sys.exit(main(sys.argv[3:]))
