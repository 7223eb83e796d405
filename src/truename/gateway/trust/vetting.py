"""Vetting: what servers offer goes by the pins before it becomes the catalogue, and what is kept back stays named.

A tool that waits for a review keeps its name (nobody else may have it), is not listed, and a call of it is refused.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from truename import dialects
from truename.cache import LRUCache
from truename.catalog import Catalog, unfolded
from truename.errors import ConfigError, NotAllowed, StoreError
from truename.gateway.trust.answers import AnswerScreening
from truename.gateway.upstream_errors import printable
from truename.naming.spellings import plain_spellings
from truename.policy.lineage import NO_LINEAGE
from truename.trust import Drift, OfferedTools, PinStore, Quarantine, admit
from truename.trust.peers import PeerIndex
from truename.trust.pins import BY_LOCK, ReviewedDefinitions
from truename.trust.quarantine import pin_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence

    from truename.catalog import Tool
    from truename.config.trust import Handling, Trust
    from truename.conventions import Finding
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.trust.server_renames import ServerRenames
    from truename.gateway.upstream.known import KnownServer
    from truename.identity import ToolId
    from truename.ledger import Ledger
    from truename.policy.lineage import Lineage
    from truename.trust.quarantine import Kind
    from truename.trust.screening import Names

    Findings = Mapping[ToolId, Sequence[Finding]]

__all__ = ["Vetting"]

# What was said of definitions is said again at the next list: by id and digest, for a while.
_REMEMBERED: Final = 50_000
_LOOK_EVERY: Final = 0.05
# What could not be stored is stored again after so many seconds, though nobody lists anything else.
_STORED_AGAIN: Final = 1.0
_FEW_OF: Final = 20
_WHAT: Final = {
    "new": "is new",
    "drifted": "changed",
    "rejected": "was rejected",
    "renamed": "may be a tool that is kept back, renamed,",
}
_DONE: Final = {"warn": "shown with a warning", "quarantine": "quarantined pending review", "block": "not shown"}
_REVIEW: Final = "Its definition is pending review: `truename pins diff {id}`, then `truename pins accept {id}`."
_UNKEYED: Final = "{} of the lock {} to no server and {} nothing: use `truename lock CONFIGURATION`"
# Of one server, each by itself: beyond that their number.
_MOST_TOLD: Final = 20
_LIST: Final = "`truename pins list` names them."
_UNREAD: Final = "Its pin cannot be read: `truename state check` says why."
_NO: Final = "Its definition was rejected: `truename pins diff {id}` shows it."

_RENAMED: Final = (
    "Its server may have renamed a tool that is kept back, and nobody has decided: `truename renames list`, then "
    "`truename renames accept {id}` or `truename renames reject {id}`."
)

_CALLED: Final = {"rejected": _NO, "unread": _UNREAD, "renamed": _RENAMED}
_SERVER: Final = "server:"


class Vetting:
    """Admits what servers offer, and says what is kept back and why."""

    def __init__(
        self,
        book: PinStore,
        trust: Trust,
        news: RateLimitedLog,
        ledger: Ledger,
        *,
        renames: ServerRenames | None = None,
        reviewed: ReviewedDefinitions | None = None,
    ) -> None:
        self._book = book
        self._trust = trust
        self._reviewed = ReviewedDefinitions(trust.lock) if reviewed is None else reviewed
        self._log = news
        self._ledger = ledger
        self._renames = renames
        self._said: LRUCache[tuple[ToolId, str], Sequence[Finding]] = LRUCache(_REMEMBERED)
        # Of each server's instructions the last that were not trusted.
        self._said_of: dict[str, tuple[str, Sequence[Finding]]] = {}
        self._digests: dict[int, tuple[Mapping[str, Any], str]] = {}
        self._last = Quarantine()
        # What could not be read of the pins, at the last list.
        self._unread: Mapping[str, StoreError] = {}
        # What was the pin while it was offered here: other gateways may pin what they are offered.
        self._ours: Mapping[str, str] = {}
        self._look_at = -math.inf
        self._store_at = math.inf
        # Not a method of this: what was made beside is let go of at once, and not when garbage is collected.
        self.names_of = partial(_names_of, ledger)
        self._peers = PeerIndex(self.names_of, ledger.holder)
        self.answers = AnswerScreening(trust)
        if self._reviewed.unkeyed:
            many = self._reviewed.unkeyed
            words = ("1 tool", "belongs", "pins") if many == 1 else (f"{many:,} tools", "belong", "pin")
            news.tell("unkeyed", _UNKEYED.format(*words))

    def with_settings(self, trust: Trust, renames: ServerRenames | None = None) -> Vetting:
        """Return the same by other settings, with the same book. Raises `ConfigError` for another lock."""
        reviewed = self._reviewed if trust.lock == self._trust.lock else None
        other = Vetting(self._book, trust, self._log, self._ledger, renames=renames or self._renames, reviewed=reviewed)
        other._said, other._said_of, other._digests = self._said, self._said_of, self._digests
        other._last, other._ours, other._look_at = self._last, self._ours, self._look_at
        other._store_at = self._store_at
        other._peers = self._peers
        other.answers.know(self._peers)
        return other

    def follow(self, other: Vetting) -> None:
        """Have what another one admitted, by the same settings."""
        self._digests, self._last, self._ours = other._digests, other._last, other._ours
        self._peers, self._store_at = other._peers, other._store_at
        self.answers.follow(other.answers)

    @property
    def hidden(self) -> Mapping[ToolId, Drift]:
        """What is kept back, and why."""
        return self._last.hidden

    def lineage(self, id: ToolId) -> Lineage:
        """Return what a tool was, or may have been, before its server renamed it."""
        return NO_LINEAGE if self._renames is None else self._renames.lineage(id)

    @property
    def book(self) -> PinStore:
        """What is pinned, and what was seen besides."""
        return self._book

    def findings(self, id: ToolId, digest: str) -> Sequence[Finding] | None:
        """Return what was found about a definition that was offered here; None if it was not looked at."""
        return self._said.get((id, digest))

    @property
    def instructions(self) -> Mapping[str, str]:
        """The instructions that may be shown, by server."""
        return self._last.instructions

    def refresh(self) -> bool:
        """Take in what somebody said of definitions, and tell whether there was anything, or is to be stored again.

        It is asked before each call: a look at the file costs as much as a tenth of one, so many calls share it.
        """
        if (now := time.monotonic()) < self._look_at:
            return False
        self._look_at = now + _LOOK_EVERY
        is_due = now > self._store_at
        if is_due:
            self._store_at = math.inf
        return is_due | self._has_news("pins", self._book.refresh) | self._has_news("lock", self._reviewed.refresh)

    def _has_news(self, subject: str, refresh: Callable[[], bool]) -> bool:
        try:
            return refresh()
        except (StoreError, ConfigError) as error:
            self._log.tell(subject, f"{error} Until then, only the definitions trusted so far are trusted.")
            return False

    def has_word(self) -> bool:
        """Tell, without waiting, whether somebody said something of definitions that was not taken in.

        Then `refresh` takes it in at once.
        """
        if not self._book.has_news():
            return False
        self._look_at = -math.inf
        return True

    def admitted(self, catalog: Catalog, servers: Mapping[str, KnownServer]) -> Catalog:
        """Return the catalogue with the definitions that may be shown; `hidden` says which tools may not at all.

        `instructions` are what may be shown then of what ``servers`` say of their use.
        """
        self._peers = self._peers.follow(catalog)
        tools = tuple(catalog.values())
        found = self._decided(tools, servers, catalog)
        self._digests = {id(tool.definition): (tool.definition, self.digest_of(tool)) for tool in tools}
        self._last, self._store_at = found, math.inf
        self._write(found, self._last)
        self._ours = self._ours_of(found, {})
        self._finish(found)
        return self._showing(catalog)

    def admitted_in_part(
        self, whole: Catalog, part: Catalog, before: Collection[Tool], servers: Mapping[str, KnownServer]
    ) -> Catalog:
        """Return a part of a catalogue likewise, where all else is offered as it was.

        ``part`` are the tools that ``servers`` offer now; ``before`` are those of them that are gone or were others.
        """
        changed = {tool.id for tool in before} | part.keys()
        self._peers = self._peers.follow(whole, changed)
        tools = tuple(part.values())
        found = self._decided(tools, servers, whole)
        digests = self._digests.copy()
        for tool in before:
            digests.pop(id(tool.current), None)
        self._digests = digests | {id(tool.definition): (tool.definition, self.digest_of(tool)) for tool in tools}
        self._last = self._last.with_part(found, changed, servers)
        self._write(found, self._last)
        others = dict(self._ours)
        for key in (*map(str, changed), *(f"{_SERVER}{key}" for key in servers)):
            others.pop(key, None)
        self._ours = self._ours_of(found, others)
        self._finish(found)
        return self._showing(part)

    def _decided(self, tools: Sequence[Tool], servers: Mapping[str, KnownServer], there: Catalog) -> Quarantine:
        # Of one that was never reached nothing is known; that another says nothing is remembered, too.
        said = {key: one.instructions for key, one in servers.items() if one.tools is not None}
        self._unread = unread = self._read_pins(tools, said)
        read = [tool for tool in tools if str(tool.id) not in unread] if unread else tools
        said = {key: text for key, text in said.items() if f"{_SERVER}{key}" not in unread}
        renamed = self._renamed(read)
        found = self._admitted(read, renamed, said, there)
        unsettled = frozenset(one.id for one in (*found.notes, *found.rejected) if one.id is not None)
        if unsettled and (more := self._renamed(read, unsettled)).keys() != renamed.keys():
            # They are, or may be, tools whose definitions are pending or rejected from now on.
            renamed, found = more, self._admitted(read, more, said, there)
        for tool in tools if unread else ():
            if str(tool.id) in unread:
                # Nobody knows whether it is what was trusted. All others are compared with pins of their own.
                server, name = tool.origin.server_id, tool.origin.name
                found.hidden[tool.id] = _unshown(tool.id, server, name, self.digest_of(tool), "unread")
        for tool in renamed.values():
            self._keep_renamed(found, tool)
        return found

    def _admitted(
        self, tools: Sequence[Tool], without: Container[ToolId], said: Mapping[str, str], there: Catalog
    ) -> Quarantine:
        read = [tool for tool in tools if tool.id not in without]
        return admit(
            OfferedTools(read, said, self.digest_of),
            self._book.pins(),
            self._book.seen(),
            self._trust,
            lambda _: self._screen(read, there),
            screen_text=self._screen_text,
            reviewed=self._reviewed.digests,
            ours=self._ours,
        )

    def _renamed(self, tools: Sequence[Tool], unsettled: frozenset[ToolId] = frozenset()) -> Mapping[ToolId, Tool]:
        """Return the tools that are, or may be, tools that are kept back, under another name; nobody trusted them."""
        renames = self._renames
        if renames is None:
            return {}
        pins, kept = self._book.pins(), renames.kept_back(tools, unsettled)
        held = (tool for tool in tools if tool.id in kept)
        return {tool.id: tool for tool in held if (pin := pins.get(str(tool.id))) is None or not pin.by}

    def _keep_renamed(self, found: Quarantine, tool: Tool) -> None:
        digest, origin = self.digest_of(tool), tool.origin
        drift = _unshown(tool.id, origin.server_id, origin.name, digest, "renamed")
        is_accepted = self._renames is not None and bool(self._renames.lineage(tool.id).same)
        if is_accepted:
            # It is the tool that is kept back: whoever trusts the definition says so of this one.
            drift = replace(drift, kind="new")
            found.notes.append(pin_of(tool, digest))
        found.hidden[tool.id] = drift
        found.drifts.append(drift)

    def _read_pins(self, tools: Sequence[Tool], servers: Iterable[str]) -> Mapping[str, StoreError]:
        """Read at once what is on record about tools and instructions, and return an error for each that is unreadable.

        What the book has of a tool under a plain id is on record about it, too (`PinRecord`).
        """
        keys = {str(tool.id): [str(one) for one in unfolded(tool.id, tool.origin)] for tool in tools}
        found = self._book.expect([*keys, *(f"{_SERVER}{key}" for key in servers), *chain.from_iterable(keys.values())])
        if not found:
            return found
        plain = {key: error for key, ones in keys.items() for one in ones if (error := found.get(one)) is not None}
        return {**found, **plain}

    def _finish(self, found: Quarantine) -> None:
        self.answers.know(self._peers)
        self._tell(found.drifts)
        self._last = self._last.decisions()

    def _showing(self, catalog: Catalog) -> Catalog:
        if not any(id in catalog for id in self._last.replaced):
            return catalog
        return Catalog((_shown(tool, self._last) for tool in catalog.values()), catalog.aliases, catalog.notices)

    def check(self, tool: ToolId) -> None:
        """Raise `NotAllowed` (``quarantined``) for a tool that is kept back."""
        if (drift := self.hidden.get(tool)) is not None:
            text = _CALLED.get(drift.kind, _REVIEW)
            raise NotAllowed(id=tool, rule="trust", decision=text.format(id=tool), code="quarantined")

    def keep_back(self, hidden: Mapping[ToolId, Drift], *, soon: bool) -> None:
        """Go on keeping back what was kept back before, as a list still has it; ``soon``: that is to be made anew."""
        self._last.hidden.update({id: drift for id, drift in hidden.items() if id not in self._last.hidden})
        if soon:
            self._store_at = time.monotonic() + _STORED_AGAIN

    def close(self) -> None:
        """Close the book."""
        self._book.close()

    def _write(self, found: Quarantine, shown: Quarantine) -> None:
        """Store what was decided; ``shown`` has it together with all that was decided before."""
        for key, error in self._unread.items():
            if error.code == "corrupt":
                self._log.tell(("pin", key), f"{error} What it is about is neither shown nor called.")
            else:
                self._log.tell("pins", f"{error} Definitions are not shown whose pins cannot be read.")
                self._store_at = time.monotonic() + _STORED_AGAIN
        try:
            for what, write in ((found.pins, self._book.trust), (found.notes, self._book.note)):
                if what:
                    write(what)
            if found.reviewed:
                self._book.trust(found.reviewed, by=BY_LOCK)
            if found.rejected:
                self._book.note(found.rejected, "rejected")
        except StoreError as error:
            self._log.tell("pins", f"{error} New definitions are not recorded.")
            self._store_at = time.monotonic() + _STORED_AGAIN
        if self._trust.is_strict:
            self._keep_back(found, shown)

    def _keep_back(self, found: Quarantine, shown: Quarantine) -> None:
        """Keep back what could not be pinned, also as another gateway pinned another: nobody would know it again."""
        known = self._book.pins()
        for pin in found.pins:
            if getattr(known.get(pin.key), "digest", None) == pin.digest:
                continue
            if pin.id is None:
                shown.instructions.pop(pin.server, None)
            else:
                shown.hidden[pin.id] = _unshown(pin.id, pin.server, pin.name, pin.digest, "new")

    def _ours_of(self, found: Quarantine, others: dict[str, str]) -> Mapping[str, str]:
        """Return what is shown as it is offered, and is the pin or was it in the meantime, together with others."""
        pins, ours = self._book.pins(), self._ours
        digests = {one.key: one.digest for one in found.passed}
        return others | {
            key: digest
            for key, digest in digests.items()
            if digest in {ours.get(key), getattr(pins.get(key), "digest", None)}
        }

    def digest_of(self, tool: Tool) -> str:
        """Return the digest of the current definition, which is computed once for as long as it is listed."""
        known = self._digests.get(id(tool.current))
        if known is None or known[0] is not tool.current:
            known = self._digests[id(tool.current)] = tool.current, tool.digest
        return known[1]

    def _screen_text(self, server: str, text: str) -> Sequence[Finding]:
        if not text:
            return ()
        from truename.trust.screening import screened_text  # noqa: PLC0415 - the rules cost 45 ms: only for a new text

        known = self._said_of.get(server)
        if known is None or known[0] != text:
            known = self._said_of[server] = text, screened_text(server, text)
        return known[1]

    def _unsaid(self, tools: Sequence[Tool]) -> list[Tool]:
        pins, said, reviewed = self._book.pins(), self._said, self._reviewed
        return [
            tool
            for tool in tools
            if (tool.id, digest := self.digest_of(tool)) not in said
            and getattr(pins.get(str(tool.id)), "digest", None) != digest
            and reviewed.digest_of(tool) != digest
        ]

    def _screen(self, tools: Sequence[Tool], there: Catalog) -> Findings:
        """Return what is found about tools that are not pinned as they are, from memory where it was found before."""
        if new := self._unsaid(tools):
            # What has something in common with few is found faster than all are looked through.
            if len(new) * _FEW_OF < len(there):
                peers, named = self._peers.peers(new)
                # The names of all others are not mentioned.
                self._say(new, peers, lambda tool: self.names_of(tool) if tool.id in named else ())
            else:
                self._say(new, there.values(), self.names_of)
        return {tool.id: self._said.get((tool.id, self.digest_of(tool))) or () for tool in tools}

    def _say(self, new: Sequence[Tool], others: Iterable[Tool], names: Names) -> None:
        from truename.trust.screening import screened  # noqa: PLC0415 - the rules cost 45 ms: only for new definitions

        pins = self._book.pins()
        trusted = [tool for tool in others if str(tool.id) in pins or self._reviewed.digest_of(tool) is not None]
        found = screened(new, trusted, names)
        for tool in new:
            self._said[tool.id, self.digest_of(tool)] = tuple(found.get(tool.id, ()))

    def _tell(self, drifts: Sequence[Drift]) -> None:
        alike: defaultdict[tuple[str, str, Handling], list[Drift]] = defaultdict(list)
        for drift in drifts:
            alike[drift.server, drift.kind, drift.handling].append(drift)
        for (server, kind, handling), several in alike.items():
            told = f"{_WHAT[kind]} and is {_DONE[handling]}"
            if len(several) > _MOST_TOLD:
                text = f"{len(several):,} definitions of server {printable(server, 100)}: each {told}. {_LIST}"
                self._log.tell(("drifts", server, kind, handling), text)
                continue
            for drift in several:
                why = f": {printable(drift.reason)}" if drift.reason else ""
                text = f"{printable(drift.key, 200)} {told}{why}"
                self._log.tell(("drift", drift.key), text, about=(drift.digest, drift.handling))


def _shown(tool: Tool, found: Quarantine) -> Tool:
    """Return a tool with the pinned definition where that is shown; what the server offers stays with it."""
    pinned = found.replaced.get(tool.id)
    return tool if pinned is None else replace(tool, definition=pinned, offered=tool.definition)


def _names_of(ledger: Ledger, tool: Tool) -> Iterator[str]:
    """Yield what clients call a tool: as it is or was shown to them, and as it would be in other styles."""
    yield from ledger.held_anywhere(tool.id, dialects.names(older=True))
    yield from plain_spellings(tool.id, tool.origin.server, tool.origin.name, None)


def _unshown(key: ToolId, server: str, name: str, digest: str, kind: Kind) -> Drift:
    return Drift(id=key, server=server, name=name, kind=kind, handling="quarantine", digest=digest)
