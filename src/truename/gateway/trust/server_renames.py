"""Servers that rename: what left their lists and what came, what was probably renamed, and what follows from that.

Before a new tool gets its identity it is on record that it came while others were away; so whatever dies in between,
it is known later. What was denied to a tool that left is denied to each tool that may be it, until somebody decides.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import defaultdict
from contextlib import suppress
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.catalog import Catalog, Origin, Tool
from truename.errors import LedgerError, StoreError
from truename.gateway.upstream_errors import printable
from truename.policy.call import claims_of
from truename.policy.former_ids import former_ids_anywhere
from truename.policy.lineage import NO_LINEAGE, Lineage
from truename.trust.rename_decisions import complete_decisions, listed_until

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
    from datetime import date

    from truename.config import Settings
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.known import KnownServer
    from truename.identity import ToolId
    from truename.ledger import Ledger
    from truename.migration.lock import Pin
    from truename.policy import Exposure
    from truename.trust import PinnedTool, PinStore
    from truename.trust.rename_matching import RenameMatch
    from truename.trust.renames import ArrivedTool, DepartedTool, RenameStore

__all__ = ["ServerRenames"]

_LOOK_EVERY: Final = 0.05
# New tools of so many different lists are told apart; beyond that a tool may be any that ever left its server.
_MOST_LISTS: Final = 100
# So many tools that left one server last are compared with its new ones by similarity; equal definitions are found
# among all.
_MOST_COMPARED: Final = 2_000
_NOBODY: Final[frozenset[ToolId]] = frozenset()
_NO_ALIASES: Final[Mapping[str, str]] = MappingProxyType({})
# Of one server, each by itself: beyond that their number.
_MOST_TOLD: Final = 20
_LIST: Final = "`truename renames list` shows them."


class _KnownLineages:
    """Caches the lineages that were found of one state of the record, and what several of them share."""

    def __init__(self, of: Mapping[ToolId, ArrivedTool], formerly: Callable[[ToolId], tuple[ToolId, ...]]) -> None:
        self.of = of
        # By redirects of operators.
        self.formerly = formerly
        self.by_id: dict[ToolId, Lineage] = {}
        self.shared: dict[tuple[tuple[ToolId, ...], frozenset[ToolId], frozenset[ToolId]], Lineage] = {}
        self.by_place: dict[tuple[str, int], frozenset[ToolId]] = {}
        self.departed: dict[str, Mapping[ToolId, DepartedTool]] = {}


class ServerRenames:
    """What the servers of a gateway renamed, or may have. May be used from several threads.

    ``definitions`` has what is trusted of tools that are not there any more.
    """

    def __init__(  # noqa: PLR0917 - all that a gateway has of these
        self,
        book: RenameStore,
        settings: Settings,
        news: RateLimitedLog,
        ledger: Ledger,
        definitions: PinStore,
        today: Callable[[], date],
    ) -> None:
        self.book = book
        self._settings = settings
        self._log = news
        self._ledger = ledger
        self._definitions = definitions
        self._today = today
        # What was listed when it was noted last, by server: another gateway may be offered something else.
        self._noted: dict[str, frozenset[ToolId]] = {}
        self._look_at = -math.inf
        self._known = _KnownLineages({}, former_ids_anywhere(ledger))
        self._former: dict[ToolId, _FormerTool] = {}

    def with_settings(self, settings: Settings) -> ServerRenames:
        """Return the same by other settings, with the same record."""
        other = ServerRenames(self.book, settings, self._log, self._ledger, self._definitions, self._today)
        other._noted, other._look_at = self._noted, self._look_at
        return other

    def refresh(self) -> bool:
        """Take in what somebody decided, and tell whether there was anything. Asked before each call."""
        if (now := time.monotonic()) < self._look_at:
            return False
        self._look_at = now + _LOOK_EVERY
        try:
            return self.book.refresh()
        except StoreError as error:
            self._log.tell("renames", f"{error} Until then, no decision about a rename counts that was made since.")
            return False

    def has_word(self) -> bool:
        """Tell, without waiting, whether somebody decided something that was not taken in; then `refresh` does."""
        if not self.book.has_news():
            return False
        self._look_at = -math.inf
        return True

    def note(self, servers: Mapping[str, KnownServer], found: Catalog, digest: Callable[[Tool], str]) -> None:
        """Record what left the lists of servers and what is new in them, before any of it has an identity.

        Raises `LedgerError` if it cannot be recorded: then the lists stay as they are.
        """
        if self._ledger.readonly:
            return
        try:
            self.book.expect(servers)
            for key, server in servers.items():
                if server.tools is None:
                    continue
                tools = {tool.id: tool for tool in found.of_server(key)}
                if self._noted.get(key) != tools.keys():
                    self._note(key, tools, digest)
        except StoreError as error:
            code = error.code if error.code in {"busy", "unusable", "corrupt", "newer"} else "unusable"
            raise LedgerError(code=code, path=error.file, reason=error.problem, remedy=error.remedy) from error

    def _note(self, key: str, tools: Mapping[ToolId, Tool], digest: Callable[[Tool], str]) -> None:
        bound = {id: name for (_, name), id in self._ledger.bindings_of([key]).items()}
        # The gateway's own record may have tools that have another id now, by an operator's decision.
        names = {tool.origin.name for tool in tools.values()}
        bound = {id: name for id, name in bound.items() if id in tools or name not in names}
        self.book.refresh()
        self.book.note(
            key,
            bound=bound,
            present={id: tool.origin.name for id, tool in tools.items()},
            digest=lambda id: digest(tools[id]),
            was=self._noted.get(key),
        )
        self._noted[key] = frozenset(tools)

    def noted(self, found: Catalog) -> Catalog:
        """Return what servers offer without new tools that are not noted: those get no identity, and come again."""
        unnoted = {
            id
            for id, tool in found.items()
            if id not in self._noted.get(tool.origin.server, ()) and self._ledger.origin_of(id) is None
        }
        kept = (tool for id, tool in found.items() if id not in unnoted)
        return Catalog(kept, found.aliases, found.notices) if unnoted else found

    def propose(self, servers: Collection[str], offers: Catalog, digest: Callable[[Tool], str]) -> None:
        """Propose what the new tools of servers were, accept what a setting accepts, and complete decisions.

        Raises `LedgerError`.
        """
        try:
            for key in servers:
                self._propose(key, {tool.id: tool for tool in offers.of_server(key)}, digest)
            self._accept_certain()
            self._follow_operator()
        except StoreError as error:
            self._log.tell("renames", f"{error} Renames are not proposed.")
        try:
            complete_decisions(self.book, self._ledger)
        except StoreError as error:
            self._log.tell("renames", f"{error} Until then, no decision about a rename is completed.")

    def _propose(self, key: str, tools: Mapping[ToolId, Tool], digest: Callable[[Tool], str]) -> None:
        departed = [one for one in self.book.departed.get(key, ()) if not one.ended]
        come = self._open_of(tools)
        changed = self._changed(tools, digest)
        if not come and not changed:
            return
        from truename.migration.lock import pins_of  # noqa: PLC0415 - the package costs 40 ms, and lists rarely change
        from truename.trust.rename_matching import propose_renames  # noqa: PLC0415 - likewise

        before = {id: _pin(tool) for id, tool in changed.items()}
        gone = {one.id: one for one in departed if one.id not in tools}
        self._read_definitions(gone)
        before |= {id: self._of_former(id, one).pin for id, one in gone.items()}
        by_name = {pin.name: pin for pin in pins_of([_pin(tool) for tool in tools.values()])}
        now = {id: by_name[tool.origin.name] for id, tool in tools.items()}
        # A tool that stays as it was has its definition on both sides.
        arrived = set(come)
        before |= {id: now[id] for id in tools if id not in before and id not in arrived}
        before = self._without_renamed(before, gone)
        self._take_over(key, before, now, tools, digest)
        come = self._open_of(tools)
        absences: defaultdict[ToolId, list[DepartedTool]] = defaultdict(list)
        for each in self.book.departed.get(key, ()):
            absences[each.id].append(each)
        arrivals = self.book.arrived
        found = [
            one
            for one in propose_renames(before, now, gone, come, similar_to=_latest(gone.values()))
            if any(arrivals[one.new].may_be(each) for each in absences[one.old])
        ]
        digests = {id: digest(tool) for id, tool in tools.items()}
        self.book.propose(come, found, lambda id: digests.get(id) or before[id].digest)
        self._tell(key, found)

    def _without_renamed(self, before: Mapping[ToolId, Pin], gone: Collection[ToolId]) -> dict[ToolId, Pin]:
        """Return definitions without those of tools that left and are on record as another one with an equal one.

        That is one tool under two ids: its definition is no less distinctive.
        """
        withdrawn = self._ledger.scoped("").withdrawn
        became = {one.old: one.id for one in self.book.accepted if one.old in gone}
        for id in gone:
            standing = withdrawn.get(str(id))
            target = standing.id if standing is not None and standing.status == "redirected" else None
            if target is not None:
                became.setdefault(id, target)
        return {
            id: pin
            for id, pin in before.items()
            if (new := became.get(id, id)) == id or new not in before or before[new].shape != pin.shape
        }

    def _tell(self, key: str, found: Collection[RenameMatch]) -> None:
        if len(found) > _MOST_TOLD:
            text = f"server {printable(key, 100)} renamed {len(found):,} tools, certainly or probably. {_LIST}"
            self._log.tell(("renamed", key), text, about=len(found))
            return
        for one in found:
            sure = "certainly" if one.is_certain else "probably"
            text = f"{printable(str(one.old), 200)} was {sure} renamed to {printable(str(one.new), 200)} by its server"
            self._log.tell(("renamed", str(one.old)), f"{text}. {_LIST}", about=(one.new, one.score))

    def _open_of(self, ids: Iterable[ToolId]) -> list[ToolId]:
        return [id for id in ids if (new := self.book.arrived.get(id)) is not None and new.is_open]

    def _changed(self, tools: Mapping[ToolId, Tool], digest: Callable[[Tool], str]) -> dict[ToolId, Tool]:
        """Return the tools whose definition is not the trusted one, each with the trusted one."""
        try:
            self._definitions.expect([str(id) for id in tools])
        except StoreError:
            return {}
        found: dict[ToolId, Tool] = {}
        for id, tool in tools.items():
            try:
                pin = self._definitions.pins().get(str(id))
            except StoreError:
                continue
            if pin is not None and pin.digest != digest(tool) and isinstance(pin.content, dict):
                found[id] = Tool(id, tool.origin, pin.content)
        return found

    def _take_over(
        self,
        key: str,
        before: Mapping[ToolId, Pin],
        now: Mapping[ToolId, Pin],
        tools: Mapping[ToolId, Tool],
        digest: Callable[[Tool], str],
    ) -> None:
        """Record tools that were there and have another one's distinctive definition now."""
        from truename.migration.matching import ToolSides, proven_matches  # noqa: PLC0415 - as above

        was = {("", pin.name): id for id, pin in before.items()}
        is_now = {("", pin.name): id for id, pin in now.items()}
        sides = ToolSides(
            {name: before[id] for name, id in was.items()}, {name: now[id] for name, id in is_now.items()}
        )
        pairs = []
        for old, new in proven_matches(sides).items():
            one, other = was[old], is_now[new]
            said = digest(tools[other])
            if one != other and other in before and not self._is_known_as(one, other, said):
                pairs.append((one, other, before[one].name, (now[other].name, said)))
        if pairs:
            self.book.take_over(key, pairs)

    def _is_known_as(self, old: ToolId, new: ToolId, digest: str) -> bool:
        """Return whether a tool is denied what another one is, or somebody decided on it with this definition."""
        arrived = self.book.arrived.get(new)
        if arrived is None:
            return False
        is_decided = arrived.word in {"rejected", "renamed"} or bool(arrived.by)
        return (is_decided and arrived.digest == digest) or old in self.lineage(new).perhaps

    def _accept_certain(self) -> None:
        trust = self._settings.trust
        certain = [one for one in self.book.proposals if one.is_certain and trust.of(one.server).auto_accept]
        if certain:
            self.book.accept_proposals(certain, until=listed_until(self._today(), trust.renamed_for))

    def _follow_operator(self) -> None:
        """Take a redirect that an operator entered for a decision on the tool to which it leads.

        One that is left of a decision that somebody takes back is none.
        """
        withdrawn = self._ledger.scoped("").withdrawn
        pending = {one.id: one for one in self.book.arrived.values() if one.is_open and not one.is_reopening}
        for name, standing in list(withdrawn.items()) if pending else ():
            target = standing.id if standing.status == "redirected" else None
            one = None if target is None else pending.get(target)
            if one is not None and any(str(old.id) == name for old in self.book.suspects(one)):
                self.book.reject(one.id, by="", word="renamed")

    def proposed(self, old: object) -> ArrivedTool | None:
        """Return the new tool that an absent one probably became, None if none is proposed."""
        return next((one for one in self.book.proposals if one.old == old), None) if old is not None else None

    def kept_back(self, tools: Iterable[Tool], unsettled: frozenset[ToolId] = frozenset()) -> frozenset[ToolId]:
        """Return those of these tools that are, or may be, one whose definition was rejected or is pending.

        So are definitions of ``unsettled``, which are not on record yet.
        """
        found: dict[frozenset[ToolId], bool] = {frozenset(): False}
        kept = set()
        for tool in tools:
            perhaps = self.lineage(tool.id).perhaps
            if perhaps not in found:
                # The new tools of one list share the set.
                found[perhaps] = not perhaps.isdisjoint(unsettled) or self._has_kept_back(perhaps)
            if found[perhaps]:
                kept.add(tool.id)
        return frozenset(kept)

    def _has_kept_back(self, ids: frozenset[ToolId]) -> bool:
        unread = self._definitions.expect(map(str, ids))
        return any(str(id) in unread or self._definitions.about(str(id)).seen for id in ids)

    def lineage(self, id: ToolId) -> Lineage:
        """Return what a tool was, or may have been, before its server renamed it."""
        arrived, formerly = self.book.arrived, former_ids_anywhere(self._ledger)
        if id not in arrived and not any(one in arrived for one in formerly(id)):
            return NO_LINEAGE
        known = self._known
        if known.of is not arrived or known.formerly is not formerly:
            # The record is replaced as a whole when it changes.
            known = self._known = _KnownLineages(arrived, formerly)
        if (found := known.by_id.get(id)) is None:
            new = arrived.get(id)
            same = () if new is None else self._same(new)
            perhaps = self._perhaps(new, same, known) if new is not None else _NOBODY
            separate = self._separate(id, same, formerly)
            # The new tools of one list share the set, and what is made of it.
            if (found := known.shared.get((same, perhaps, separate))) is None:
                judged_as = self._judged_as(perhaps, same, known, new.server) if new is not None and perhaps else ()
                redirected = {one: before for one in perhaps if (before := formerly(one))}
                found = known.shared[same, perhaps, separate] = Lineage(
                    same=same, perhaps=perhaps, judged_as=judged_as, redirected=redirected, separate=separate
                )
            known.by_id[id] = found
        return found

    def _separate(
        self, id: ToolId, same: tuple[ToolId, ...], formerly: Callable[[ToolId], tuple[ToolId, ...]]
    ) -> frozenset[ToolId]:
        """Return the former ids of a tool of which a rename by its server parts it: their approvals do not follow."""
        arrived = self.book.arrived
        before = {*same, *(old for one in formerly(id) if one in arrived for old in self._same(arrived[one]))}
        return frozenset(before.union(*map(formerly, before))) - {id}

    def _same(self, new: ArrivedTool) -> tuple[ToolId, ...]:
        found: list[ToolId] = []
        one: ArrivedTool | None = new
        while one is not None and one.word == "accepted" and one.old is not None and one.old not in (new.id, *found):
            found.append(one.old)
            one = self.book.arrived.get(one.old)
        return tuple(found)

    def _perhaps(self, new: ArrivedTool, same: tuple[ToolId, ...], known: _KnownLineages) -> frozenset[ToolId]:
        """Return all tools that a new one is or perhaps is, also by way of others that came and left."""
        place = new.server, new.number
        found = known.by_place.get(place) if new.is_open else None
        if found is None:
            found = self._reached(new, same)
            if new.is_open:
                known.by_place[place] = found
        return found - {new.id} if new.id in found else found

    def _reached(self, new: ArrivedTool, same: tuple[ToolId, ...]) -> frozenset[ToolId]:
        found = {*same}
        looked: set[tuple[int, bool]] = set()
        waiting = [new, *(self.book.arrived[id] for id in same if id in self.book.arrived)]
        while waiting:
            one = waiting.pop()
            found |= {*self._same(one)}
            suspects = set() if (one.number, one.is_open) in looked else {each.id for each in self.book.suspects(one)}
            if not suspects:
                continue
            looked.add((one.number, one.is_open))
            if len(looked) > _MOST_LISTS:
                found |= {each.id for each in self.book.departed.get(new.server, ())}
                break
            waiting += [self.book.arrived[id] for id in suspects - found if id in self.book.arrived]
            found |= suspects
        return frozenset(found)

    def _judged_as(
        self, ids: Iterable[ToolId], same: tuple[ToolId, ...], known: _KnownLineages, server: str
    ) -> tuple[Tool, ...]:
        """Return one tool of each kind that rules, profiles and exposure tell apart."""
        if (departed := known.departed.get(server)) is None:
            departed = known.departed[server] = {one.id: one for one in self.book.departed.get(server, ())}
        kinds: dict[Hashable, Tool] = {}
        self._read_definitions(ids)
        for id in sorted(ids):
            former = self._of_former(id, departed.get(id))
            kinds.setdefault((id in same, former.kind), former.tool)
        return tuple(kinds.values())

    def _kind_of(self, tool: Tool, before: tuple[ToolId, ...]) -> Hashable:
        """Return what is equal for tools that rules, profiles and exposure do not tell apart."""
        policy, said = self._settings.policy, self._exposure.metadata_of(tool, before)
        about: list[Hashable] = [self._exposure.availability(tool, before)]
        about += [name for name, profile in self._settings.profiles.items() if profile.shows(tool, said, before)]
        if policy is not None:
            claims = claims_of(tool)
            about += [
                number
                for number, rule in enumerate(policy.rules)
                if any(rule.concerns(tool.id, tool.origin, one, before) for one in claims)
            ]
            if policy.checks:
                about.append(tool.id)
        return tuple(about)

    @cached_property
    def _exposure(self) -> Exposure:
        given = None if self._settings.policy is None else self._settings.policy.exposure
        return given or self._settings.exposure

    def _read_definitions(self, ids: Iterable[ToolId]) -> None:
        """Read at once what is trusted of these tools; what cannot be read counts as unknown."""
        with suppress(StoreError):
            self._definitions.expect(map(str, ids))

    def _of_former(self, id: ToolId, departed: DepartedTool | None) -> _FormerTool:
        """Return a tool that left, by its last trusted definition; made once, as there may be thousands."""
        try:
            pin = self._definitions.pins().get(str(id))
        except StoreError:
            pin = None
        known, before = self._former.get(id), former_ids_anywhere(self._ledger)(id)
        if known is None or known.trusted is not pin or known.before != before:
            known = self._former[id] = _FormerTool(self._former_tool(id, departed, pin), pin, before, self._kind_of)
        return known

    def _former_tool(self, id: ToolId, departed: DepartedTool | None, pin: PinnedTool | None) -> Tool:
        if departed is None:
            server, name = self._ledger.origin_of(id) or ("", id.tool)
        else:
            server, name = departed.server, departed.name
        content = pin.content if pin is not None and isinstance(pin.content, dict) else {"name": name}
        tool = Tool(id, Origin(server, name, server), content)
        words = self._settings.tools.about(id)
        return Tool(id, tool.origin, content, words) if words else tool


def _latest(gone: Collection[DepartedTool]) -> frozenset[ToolId]:
    """Return the tools that left last: they are compared with new ones in full."""
    found = heapq.nlargest(_MOST_COMPARED, gone, key=lambda one: (one.began, one.id))
    return frozenset(one.id for one in found)


class _FormerTool:
    """A tool that left, as rules see it, the pin that its definition is from, and the ids redirected to it."""

    def __init__(
        self,
        tool: Tool,
        trusted: PinnedTool | None,
        before: tuple[ToolId, ...],
        kind_of: Callable[[Tool, tuple[ToolId, ...]], Hashable],
    ) -> None:
        self.tool = tool
        self.trusted = trusted
        self.before = before
        self._kind_of = kind_of

    @cached_property
    def kind(self) -> Hashable:
        """What is equal for tools that rules, profiles and exposure do not tell apart."""
        return self._kind_of(self.tool, self.before)

    @cached_property
    def pin(self) -> Pin:
        """The tool as the matching sees it."""
        return _pin(self.tool)


def _pin(tool: Tool) -> Pin:
    from truename.migration.lock import Pin, pins_of  # noqa: PLC0415 - the package costs 40 ms, and lists rarely change

    (found,) = pins_of(Catalog((tool,), _NO_ALIASES))
    # A list is one server's: its key plays no part.
    return Pin(found.name, "", found.definition, found.parameters, limits=found.limits)
