"""Queue calls that need approval, in a database that gateways and the command line share.

The arguments of a call are encrypted with the vault's key, and bound to the call: those of another do not open for it.
Whoever may write the database can decide by that alone, so this guards what can be read, and not who may write.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from truename.errors import ConfigError, InvalidToolId, StoreError
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
    from truename.storage.sealing import Keyring
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
SCHEMA: Final = Schema(
    "pending_call",
    # `sealed` has the name of a key, a colon and the encrypted arguments in base64.
    ((_TABLE,), ("ALTER TABLE pending_call ADD COLUMN sealed TEXT NOT NULL DEFAULT ''",)),
)
# What an earlier version, which goes on with the upgraded table, shows in place of encrypted arguments.
_ENCRYPTED: Final = "The arguments are encrypted: show them with a newer Truename."
_UNREADABLE: Final = "The arguments cannot be shown: they are encrypted with a key that is not here."
_import_former: Final = partial(import_tables, names={"pending_call": ("pending_call", "pending")})
_READ: Final = (*_COLUMNS, "sealed")
_BY_CALL: Final = select("pending_call", _READ, where=("principal", "agent", "fingerprint"))
_BY_KEY: Final = select("pending_call", _READ, then="WHERE key = ? AND until > ?")
_ALL: Final = select("pending_call", _READ, then="WHERE until > ? ORDER BY at, number")
# Rows that an earlier version wrote.
_PLAIN: Final = select("pending_call", _READ, then="WHERE sealed = '' AND arguments != ''")
_SEALED: Final = select("pending_call", _READ, then="WHERE sealed != '' AND sealed NOT LIKE ?")
_INSERT: Final = insert("pending_call", (*_COLUMNS, "sealed", "number"))
_SEAL: Final = "UPDATE pending_call SET arguments = ?, sealed = ? WHERE key = ?"
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
    decision. ``session`` is "" if the client has none. Times are seconds since 1970. ``is_new`` tells whoever asked
    that nobody had asked about this call before, at any gateway.
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
    is_new: bool = field(default=False, compare=False)

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

    All methods raise `StoreError`: ``corrupt`` (also for arguments that were changed or moved to another call),
    ``newer``, ``busy``, ``unusable`` (also without a key), and where said ``full``. May be used from several threads.
    """

    def __init__(
        self, where: StateLocation | Path | str | None = None, *, now: Callable[[], float] = time.time
    ) -> None:
        self._file = open_database(where, SCHEMA, import_former=_import_former)
        self._now = now
        self._keys: Keyring | None = None
        if self._file.rows("SELECT 1 FROM pending_call WHERE until <= ? LIMIT 1", now()):
            with self._file.change() as data:
                _sweep(data, now())

    def encrypt_plain(self) -> int:
        """Encrypt the arguments that an earlier version kept as they are, and return their number.

        A gateway does it, which has the key of the others; a command may be run where there is another one.
        """
        if self._file.location.is_memory or self._file.readonly_because or not self._file.rows(_PLAIN):
            return 0
        return self._encrypt(_PLAIN)

    def _encrypt(self, query: str, *values: object) -> int:
        """Encrypt the arguments of the rows that a query finds with the first key; return their number."""
        with self._file.change() as data:
            rows = [self._read(row) for row in data.execute(query, values).fetchall()]
            data.executemany(_SEAL, [(*self._stored(one), one.key) for one in rows])
        if rows:
            self._file.empty_log()
        return len(rows)

    def rotate(self, *, forget_lost: bool = False) -> int:
        """Encrypt all arguments that have an older key with the first one, and return their number.

        With ``forget_lost`` the calls are dropped whose arguments have a key that is not given.
        """
        query = f"{self._ring.first}:%"
        for row in self._file.rows(_SEALED, query):
            if row[-1].partition(":")[0] not in self._ring:
                if forget_lost:
                    self.drop(row[0])
                    continue
                self._file.refuse("a pending call is encrypted with an unknown key", "corrupt", "Add the older key.")
        return self._encrypt(_SEALED, query)

    def count_sealed(self) -> int:
        """Return the number of calls whose arguments are encrypted, with whichever key."""
        return int(self._file.rows("SELECT count(*) FROM pending_call WHERE sealed != ''")[0][0])

    @property
    def _ring(self) -> Keyring:
        if self._keys is None:
            try:
                from truename.storage.sealing import Keyring  # noqa: PLC0415 - cryptography takes 30 ms to load

                self._keys = Keyring(self._file.location.vault_keys())
            except ImportError as error:
                problem = f"the arguments are encrypted, which needs a package that is not installed ({error.name})"
                self._file.refuse(problem, "unusable", "Install truename[gateway].")
            except ConfigError as error:
                raise StoreError(
                    file=error.file, key=error.key, problem=error.problem, remedy=error.remedy, code="unusable"
                ) from error
        return self._keys

    def _stored(self, one: PendingCall) -> tuple[str, str]:
        """Return the text for the column of arguments, and the encrypted arguments."""
        if not one.is_open or self._file.location.is_memory:
            return one.arguments, ""
        name, sealed = self._ring.seal(one.arguments.encode("utf-8", "surrogatepass"), _bound(one))
        return _ENCRYPTED, f"{name}:{base64.b64encode(sealed).decode()}"

    def _opened(self, one: PendingCall, stored: str) -> PendingCall:
        if not stored:
            return one
        name, _, text = stored.partition(":")
        if name not in self._ring:
            return replace(one, arguments=_UNREADABLE)
        try:
            plain = self._ring.open(name, base64.b64decode(text, validate=True), _bound(one))
        except ValueError:
            plain = None
        if plain is None:
            self._file.refuse(f"the arguments of {one.key!r} were changed, or are those of another call")
        return replace(one, arguments=plain.decode("utf-8", "surrogatepass"))

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
                if found.arguments == _UNREADABLE:
                    found = replace(found, arguments=wanted.arguments)
                    data.execute(_SEAL, (*self._stored(found), found.key))
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
            shown, sealed = self._stored(kept)
            data.execute(_INSERT, (*_row(replace(kept, arguments=shown)), sealed, number))
        return replace(kept, is_new=True)

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
            data.execute("UPDATE pending_call SET arguments = '', sealed = '', until = ? WHERE key = ?", (until, key))
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
        values = dict(zip(_READ, row, strict=True))
        if not all(isinstance(values[name], str) for name in (*_TEXTS, "sealed")):
            self._file.refuse("an entry is none")
        sealed = values.pop("sealed")
        try:
            id = ToolId.parse(values.pop("tool"))
        except InvalidToolId:
            self._file.refuse(f"the entry {values['key']!r} is none")
        about = {name: values.pop(name) for name in ("digest", "shape", "server", "name", "endpoint")}
        one = PendingCall(subject=Subject(id, **about), **values)
        # An earlier version empties the other column alone when somebody decides.
        return self._opened(one, sealed) if one.is_open else one


def _sweep(data: Transaction, now: float) -> None:
    """Delete the requests that are over, so that their arguments do not stay in the file."""
    data.execute("DELETE FROM pending_call WHERE until <= ?", (now,))


def _bound(one: PendingCall) -> bytes:
    said = [one.key, one.principal, one.agent, one.fingerprint, str(one.subject.id)]
    return json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass")


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
    key: str = "",
) -> Grant:
    """Decide on a request: store the decision and close the request. No other function decides, whoever was asked.

    ``lasts`` is how many seconds a decision on a single call counts, ``grant_lasts`` any approval (None: for ever),
    ``most`` how many decisions are kept that ``by`` made for this principal (None: any number). With the ``key`` of the
    new decision, an earlier one on this call counts: it is returned, and nothing is stored.
    Raises what `Approvals.keep` raises, and `StoreError`.
    """
    now = time.time()
    spans = [span for span in (grant_lasts, lasts if scope == "call" else None) if span is not None]
    # In whole seconds, as the grant's own end is written.
    ends = int(now + min(spans)) if spans else None
    grant = approvals.keep(
        Grant(
            key=key or secrets.token_hex(8),
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
        only_first=bool(key),
    )
    if grant.scope == "call":
        # Both end together: the next such call is asked about again.
        book.settle(one.key, datetime.fromisoformat(grant.until).timestamp())
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
