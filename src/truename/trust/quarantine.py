"""Decide which of the offered tools are shown: known definitions are, changed and new ones wait for a review."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from truename.catalog import unfolded
from truename.config.trust import strictest
from truename.migration.definitions import compare_definitions
from truename.trust.pins import NOTHING_REVIEWED, PinnedTool, PinRecord, digest_of, pin_before

if TYPE_CHECKING:
    from truename.catalog import Tool, Unfolded
    from truename.config.trust import Handling, Trust
    from truename.conventions import Finding
    from truename.identity import ToolId
    from truename.migration.schema_changes import ChangeDetail
    from truename.trust.pins import Digests, SeenDefinition

__all__ = ["Drift", "OfferedTools", "Quarantine", "Screen", "admit", "instructions_pin", "pin_of"]

_IMITATIONS: Final = frozenset({"shadowed_tool", "near_name", "confusable_name"})
_UNKNOWN: Final = "only the digest of the trusted definition is known"
_OTHER_WORDS: Final = "the text has changed"
Kind = Literal["new", "drifted", "rejected"]
Screen = Callable[[Sequence["Tool"]], Mapping["ToolId", Sequence["Finding"]]]
"""Returns the findings about texts and names of newly seen tools, compared with all present ones."""

ScreenText = Callable[[str, str], Sequence["Finding"]]
"""Returns the findings about a server's instructions."""


_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


def _nothing() -> Mapping[Any, Any]:
    return _NOTHING


@dataclass(frozen=True, kw_only=True)
class Drift:
    """What was noticed of one tool (or of a server's instructions, where ``id`` is None), and what is done about it.

    ``kind`` is ``new``, ``drifted`` or ``rejected`` (somebody said no to just this definition). ``details`` are the
    differences from the pinned definition, ``findings`` what rules say of the present one.
    """

    id: ToolId | None
    server: str
    name: str
    kind: Kind
    handling: Handling
    digest: str
    details: tuple[ChangeDetail, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def key(self) -> str:
        """Under what it is in the book of pins."""
        return f"server:{self.server}" if self.id is None else str(self.id)

    @property
    def reason(self) -> str:
        """Why, in a few words."""
        causes = [str(detail) for detail in self.details[:3]] or [finding.fact for finding in self.findings[:3]]
        return "; ".join(causes) or ("" if self.kind != "drifted" else _OTHER_WORDS if self.id is None else _UNKNOWN)


@dataclass(frozen=True)
class OfferedTools:
    """What servers offer now: tools, and instructions by server. ``digest`` gives the digest of a tool."""

    tools: Sequence[Tool]
    instructions: Mapping[str, str] = field(default_factory=_nothing)
    digest: Callable[[Tool], str] = attrgetter("digest")


@dataclass
class Quarantine:
    """What comes of an offer.

    ``hidden`` are not shown and not called, each with why; ``replaced`` are shown with the definition that is pinned,
    ``passed`` as they are offered. ``instructions`` are those that may be shown. ``pins``, ``reviewed`` (trusted by the
    lock), ``notes`` and ``rejected`` are to be written into the book, ``drifts`` to be told.
    """

    hidden: dict[ToolId, Drift] = field(default_factory=dict)
    replaced: dict[ToolId, Mapping[str, Any]] = field(default_factory=dict)
    instructions: dict[str, str] = field(default_factory=dict)
    passed: list[PinnedTool] = field(default_factory=list)
    pins: list[PinnedTool] = field(default_factory=list)
    reviewed: list[PinnedTool] = field(default_factory=list)
    notes: list[PinnedTool] = field(default_factory=list)
    rejected: list[PinnedTool] = field(default_factory=list)
    drifts: list[Drift] = field(default_factory=list)


class _OfferedDefinition(NamedTuple):
    """Something that is offered: as it is, what is in the book, what it is held against, what was said of it before.

    ``is_reviewed``: the lock has just this definition. ``is_ours``: it was the pin once while this gateway was offered
    just that. ``findings`` are what rules say.
    """

    now: PinnedTool
    kept: PinnedTool | None
    pin: PinnedTool | None
    before: SeenDefinition | None
    is_reviewed: bool = False
    is_ours: bool = False
    findings: tuple[Finding, ...] = ()
    is_first: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to decide: it is what was trusted, and nobody said no to it.

        What was blocked without anybody's word waits for no more than the lock's.
        """
        if self.before is not None and (not self.is_reviewed or (self.before.word == "rejected" and self.before.by)):
            return False
        if self.pin is None:
            return False
        # Another gateway's server may be of another version. Its pin is nobody's word on what is offered here.
        return self.pin.digest == self.now.digest or (self.is_ours and not self.pin.by)

    @property
    def is_kept(self) -> bool:
        """Whether there is nothing to write: the book has it, or had it, and nothing waits for a word.

        Who wrote it again, where another gateway has pinned another, would make that one do the same, without end.
        """
        if self.before is not None or self.kept is None:
            return False
        return self.is_ours or (self.kept.digest, self.kept.key) == (self.now.digest, self.now.key)

    @property
    def details(self) -> tuple[ChangeDetail, ...]:
        """What differs from the pinned definition, where that is known."""
        if self.pin is None or not isinstance(self.pin.content, Mapping) or not isinstance(self.now.content, Mapping):
            return ()
        return compare_definitions(self.pin.content, self.now.content)

    @property
    def is_new(self) -> bool:
        """Whether there was nothing of its kind: also the first instructions of a server that had none."""
        return self.pin is None or (self.pin.content == "" and not self.pin.by)

    def handling(self, trust: Trust) -> Handling | None:
        """Return what is done about it; None: it is trusted without a word."""
        if self.before is None and self.pin is None and self.now.content == "":
            # That a server has no instructions is nothing to look at.
            return None
        if self.before is not None and self.before.word == "rejected":
            return "block"
        # Who comes together with all others imitates nobody who was there.
        mild = _IMITATIONS if self.is_first else frozenset[str]()
        names = [finding.rule.name for finding in self.findings]
        said = ["warn" if name in mild else trust.rules.get(name, "warn") for name in names]
        if self.pin is not None:
            said.append(trust.drift)
        # What waits for a word goes on waiting, whatever the settings have become: nobody has looked at it.
        if self.before is not None or (self.is_new and trust.first == "review"):
            said.append("quarantine")
        return strictest(said)

    def told(self, handling: Handling) -> Drift:
        """Return what was noticed."""
        is_rejected = self.before is not None and self.before.word == "rejected"
        return Drift(
            id=self.now.id,
            server=self.now.server,
            name=self.now.name,
            kind="rejected" if is_rejected else "new" if self.pin is None else "drifted",
            handling=handling,
            digest=self.now.digest,
            details=self.details,
            findings=self.findings,
        )


def admit(
    offer: OfferedTools,
    pins: Mapping[str, PinnedTool],
    seen: Mapping[tuple[str, str], SeenDefinition],
    trust: Trust,
    screen: Screen = lambda _: {},
    *,
    screen_text: ScreenText = lambda *_: (),
    reviewed: Digests = NOTHING_REVIEWED,
    ours: Mapping[str, str] = _NOTHING,
) -> Quarantine:
    """Decide about all that is offered.

    ``screen`` is asked once, about all definitions that are neither pinned nor rejected, ``screen_text`` about each
    server's instructions that are not. What is pinned and has not
    changed is served, whatever a rule would say of it today: it was trusted, and its name goes on. ``reviewed`` are
    the digests of a lock by server's key and name: pins of what nobody else has said a word about. ``ours`` are the
    digests, by key, of what was the pin while this gateway was offered it, and is offered since: it goes on, though
    another gateway that is offered something else has pinned that meanwhile.
    """
    found = Quarantine()
    tools = {tool.id: tool for tool in offer.tools}
    offered = [pin_of(tool, offer.digest(tool)) for tool in offer.tools]
    offered += (instructions_pin(server, text) for server, text in offer.instructions.items())
    record = PinRecord(pins, seen, reviewed)
    plain = {id: unfolded(id, tool.origin) for id, tool in tools.items()}
    cases = [_case(now, record, () if now.id is None else plain[now.id], ours) for now in offered]
    open_cases = [case for case in cases if not case.is_settled]
    said = screen([tools[case.now.id] for case in open_cases if case.now.id is not None])
    for case in cases:
        if case.is_settled:
            _pass(found, case.now)
            if not case.is_kept:
                (found.reviewed if case.is_reviewed or case.kept is None else found.pins).append(case.now)
    for case in open_cases:
        now = case.now
        findings = screen_text(now.server, now.content) if now.id is None else said.get(now.id, ())
        is_first = not pins and not reviewed
        _settle(found, case._replace(findings=tuple(findings), is_first=is_first), trust.of(case.now.server))
    return found


def _case(now: PinnedTool, record: PinRecord, plain: Sequence[Unfolded], ours: Mapping[str, str]) -> _OfferedDefinition:
    """Return what is decided about; ``plain`` are the ids that the tool would have had without a digest."""
    is_reviewed = now.id is not None and record.reviewed.get((now.server, now.name)) == now.digest
    kept = record.pin(now, plain)
    pin = now if is_reviewed else pin_before(now, kept, record.reviewed)
    return _OfferedDefinition(
        now, kept, pin, record.said_before(now, plain), is_reviewed, ours.get(now.key) == now.digest
    )


def _pass(found: Quarantine, now: PinnedTool) -> None:
    found.passed.append(now)
    if now.id is None:
        found.instructions[now.server] = now.content


def _settle(found: Quarantine, case: _OfferedDefinition, trust: Trust) -> None:
    handling = case.handling(trust)
    if handling is not None:
        found.drifts.append(drift := case.told(handling))
    if handling in {None, "warn"}:
        if not case.is_kept:
            found.pins.append(case.now)
        _pass(found, case.now)
        return
    if case.before is None:
        (found.rejected if handling == "block" else found.notes).append(case.now)
    pinned = case.pin.content if case.pin is not None and _is_served(case, handling, trust) else None
    if case.now.id is None:
        if pinned is not None:
            found.instructions[case.now.server] = pinned
    elif pinned is not None:
        found.replaced[case.now.id] = pinned
    else:
        found.hidden[case.now.id] = drift


def _is_served(case: _OfferedDefinition, handling: Handling | None, trust: Trust) -> bool:
    """Tell whether the pinned definition goes on being served: a call by it is still right, and no promise broke."""
    return (
        handling == "quarantine"
        and trust.quarantine == "pinned"
        and not any(detail.breaking for detail in case.details)
    )


def pin_of(tool: Tool, digest: str) -> PinnedTool:
    """Return a tool as it is pinned."""
    origin, content = tool.origin, tool.definition
    return PinnedTool(id=tool.id, server=origin.server_id, name=origin.name, digest=digest, content=content, at="")


def instructions_pin(server: str, text: str) -> PinnedTool:
    """Return a server's instructions as they are pinned."""
    return PinnedTool(id=None, server=server, name="instructions", digest=digest_of(text), content=text, at="")
