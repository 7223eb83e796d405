"""Queue calls that need approval, in a file that gateways and the command line share."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from truename.errors import InvalidToolId
from truename.identity import ToolId
from truename.policy import Grant
from truename.policy.approval_validity import Subject
from truename.storage import Schema, StateLocation, Transaction, import_tables, insert, open_database, select

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Self

    from truename.policy import Approvals
    from truename.policy.approval_validity import Scope
    from truename.trust.pins import PinnedTool

__all__ = [
    "SCHEMA",
    "ApprovalQueue",
    "PendingCall",
    "about_definition",
    "about_grant",
    "about_request",
    "decided",
    "stamp",
]

_COLUMNS: Final = (
    *("key", "principal", "agent", "session", "fingerprint", "tool", "digest", "shape", "server", "name", "endpoint"),
    *("arguments_digest", "arguments", "wire_name", "client", "rule", "reason", "at", "until"),
)
_TEXTS: Final = _COLUMNS[:-2]
_TABLE: Final = f"""
CREATE TABLE pending_call (
    {", ".join(f"{name} TEXT NOT NULL" for name in _TEXTS)}, at REAL NOT NULL, until REAL NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (key), UNIQUE (principal, agent, fingerprint)
)
"""
SCHEMA: Final = Schema("pending_call", ((_TABLE,),))
_import_former: Final = partial(import_tables, names={"pending_call": ("pending_call", "pending")})
_BY_CALL: Final = select("pending_call", _COLUMNS, where=("principal", "agent", "fingerprint"))
_BY_KEY: Final = select("pending_call", _COLUMNS, then="WHERE key = ? AND until > ?")
_ALL: Final = select("pending_call", _COLUMNS, then="WHERE until > ? ORDER BY at, number")
_INSERT: Final = insert("pending_call", (*_COLUMNS, "number"))
_NEXT_NUMBER: Final = "SELECT coalesce(max(number), 0) + 1 FROM pending_call"
# Of all principals together; and of one, those that were decided and are not over.
MAX_PENDING_CALLS: Final = 10_000
MAX_DECIDED_CALLS: Final = 200
_TRIMMED: Final = """
DELETE FROM pending_call WHERE principal = ? AND arguments = '' AND key NOT IN
    (SELECT key FROM pending_call WHERE principal = ? AND arguments = '' ORDER BY number DESC LIMIT ?)
"""


@dataclass(frozen=True, kw_only=True)
class PendingCall:
    """A call pending approval: the caller, the tool, and the text that the person who decides is shown.

    ``fingerprint`` is that of the call (`Call.fingerprint`), ``arguments`` the text that shows them, "" after the
    decision. ``session`` is "" if the client has none. Times are seconds since 1970.
    """

    key: str = ""
    principal: str
    agent: str = ""
    session: str = ""
    fingerprint: str
    subject: Subject
    arguments_digest: str
    arguments: str = ""
    wire_name: str = ""
    client: str = ""
    rule: str = ""
    reason: str = ""
    at: float = 0.0
    until: float = 0.0

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that a decision may have, narrowest first."""
        return ("call", "arguments", *(("session",) if self.session else ()), "always")

    @property
    def is_open(self) -> bool:
        """Whether nobody decided on the call yet."""
        return self.arguments != ""


def stamp(seconds: float) -> str:
    """Return a time in the format of decisions: ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


class ApprovalQueue:
    """The calls pending approval, in a database that processes share; without a file (None), in memory.

    All methods raise `StoreError`: ``corrupt``, ``newer``, ``busy``, ``unusable``, and where said ``full``. May be
    used from several threads.
    """

    def __init__(
        self, where: StateLocation | Path | str | None = None, *, now: Callable[[], float] = time.time
    ) -> None:
        self._file = open_database(where, SCHEMA, import_former=_import_former)
        self._now = now
        if self._file.rows("SELECT 1 FROM pending_call WHERE until <= ? LIMIT 1", now()):
            with self._file.change() as data:
                _sweep(data, now())

    def ask(self, wanted: PendingCall, *, most: int, lasts: float) -> PendingCall:
        """Store a request for ``lasts`` seconds and return it, or the pending one for the same call.

        Raises `StoreError` (``full``) if ``most`` requests of this principal are pending, or too many in total.
        """
        now = self._now()
        with self._file.change() as data:
            _sweep(data, now)
            whose = (wanted.principal, wanted.agent, wanted.fingerprint)
            known = data.execute(_BY_CALL, whose).fetchone()
            if known is not None:
                found = replace(self._read(known), session=wanted.session)
                # Whoever decides for a session decides for the one that calls now.
                data.execute("UPDATE pending_call SET session = ? WHERE key = ?", (found.session, found.key))
                return found
            # Who answers their own questions must not take the room of all.
            data.execute(_TRIMMED, (wanted.principal, wanted.principal, MAX_DECIDED_CALLS))
            (own,) = data.execute(
                "SELECT count(*) FROM pending_call WHERE principal = ? AND arguments != ''", whose[:1]
            ).fetchone()
            (all_,) = data.execute("SELECT count(*) FROM pending_call").fetchone()
            if own >= most or all_ >= MAX_PENDING_CALLS:
                many = f"{own:,} calls of this caller" if own >= most else f"{all_:,} calls"
                self._file.refuse(f"{many} wait already", "full", "Decide on them.")
            kept = replace(wanted, key=secrets.token_hex(8), at=now, until=now + lasts)
            ((number,),) = data.execute(_NEXT_NUMBER).fetchall()
            data.execute(_INSERT, (*_row(kept), number))
        return kept

    def find(self, key: str) -> PendingCall | None:
        """Return the request with this key; None if it is over."""
        found = self._file.rows(_BY_KEY, key, self._now())
        return self._read(found[0]) if found else None

    def all(self) -> Sequence[PendingCall]:
        """Return all requests, decided or not, the oldest first."""
        found = self._file.rows(_ALL, self._now())
        return [self._read(row) for row in found]

    def count(self) -> int:
        """Return the number of requests on which nobody decided yet."""
        ((found,),) = self._file.rows(
            "SELECT count(*) FROM pending_call WHERE arguments != '' AND until > ?", self._now()
        )
        return int(found)

    def settle(self, key: str, until: float) -> None:
        """Record a decision on a single call, and delete the arguments that were stored to be shown."""
        with self._file.change() as data:
            data.execute("UPDATE pending_call SET arguments = '', until = ? WHERE key = ?", (until, key))
        self._file.empty_log()

    def drop(self, key: str) -> None:
        """Delete a request; the next such call makes a new one."""
        with self._file.change() as data:
            data.execute("DELETE FROM pending_call WHERE key = ?", (key,))
        self._file.empty_log()

    def has_news(self) -> bool:
        """Return whether another process changed something since the previous call of this method."""
        return self._file.has_news()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, row: Sequence[Any]) -> PendingCall:
        values = dict(zip(_COLUMNS, row, strict=True))
        if not all(isinstance(values[name], str) for name in _TEXTS):
            self._file.refuse("an entry is none")
        try:
            id = ToolId.parse(values.pop("tool"))
        except InvalidToolId:
            self._file.refuse(f"the entry {values['key']!r} is none")
        about = {name: values.pop(name) for name in ("digest", "shape", "server", "name", "endpoint")}
        return PendingCall(subject=Subject(id, **about), **values)


def _sweep(data: Transaction, now: float) -> None:
    """Delete the requests that are over, so that their arguments do not stay in the file."""
    data.execute("DELETE FROM pending_call WHERE until <= ?", (now,))


def _row(one: PendingCall) -> list[object]:
    about = one.subject._asdict()
    values = {**vars(one), **about, "tool": str(about["id"])}
    return [values[name] for name in _COLUMNS]


def decided(
    one: PendingCall,
    scope: Scope,
    approvals: Approvals,
    book: ApprovalQueue,
    *,
    approved: bool,
    by: str = "",
    message: str = "",
    lasts: float,
    grant_lasts: float | None = None,
    most: int | None = None,
) -> Grant:
    """Decide on a request: store the decision and close the request. No other function decides, whoever was asked.

    ``lasts`` is how many seconds a decision on a single call counts, ``grant_lasts`` any approval (None: for ever),
    ``most`` how many decisions are kept that ``by`` made for this principal (None: any number).
    Raises what `Approvals.keep` raises, and `StoreError`.
    """
    now = time.time()
    spans = [span for span in (grant_lasts, lasts if scope == "call" else None) if span is not None]
    # In whole seconds, as the grant's own end is written.
    ends = int(now + min(spans)) if spans else None
    grant = approvals.keep(
        Grant(
            key=secrets.token_hex(8),
            approved=approved,
            scope=scope,
            principal=one.principal,
            agent=one.agent,
            subject=one.subject,
            # A call that is made again may come in another session: its key tells it.
            session=one.session if scope == "session" else "",
            call_id=one.key,
            arguments=one.arguments_digest,
            message=message,
            by=by,
            at=stamp(now),
            wire_name=one.wire_name,
            until=stamp(ends) if ends is not None and (approved or scope == "call") else "",
        ),
        most=most,
    )
    if ends is not None and scope == "call":
        # Both end together: the next such call is asked about again.
        book.settle(one.key, ends)
    else:
        book.drop(one.key)
    return grant


def about_tool(subject: Subject) -> dict[str, object]:
    """Return the fields of the audit record about the tool of a decision, as it was then."""
    return {
        "tool": str(subject.id),
        "server": subject.server,
        "upstream_name": subject.name,
        "digest": subject.digest,
    }


def about_request(one: PendingCall) -> dict[str, object]:
    """Return the fields of the audit record about a call pending approval."""
    return {
        "who": one.principal,
        "agent": one.agent,
        "client": one.client,
        "request": one.key,
        "name": one.wire_name,
        "rule": one.rule,
        "arguments_digest": one.arguments_digest,
        **about_tool(one.subject),
    }


def about_grant(one: Grant) -> dict[str, object]:
    """Return the fields of the audit record about a decision, with the time until which it counts."""
    return {
        "who": one.principal,
        "agent": one.agent,
        "request": one.call_id,
        "grant": one.key,
        "covers": one.scope,
        "until": one.until,
        **about_tool(one.subject),
    }


def about_definition(one: PinnedTool) -> dict[str, object]:
    """Return the fields of the audit record about a tool's definition, or about a server's instructions."""
    tool = None if one.id is None else str(one.id)
    return {"tool": tool, "server": one.server, "upstream_name": one.name, "digest": one.digest}
