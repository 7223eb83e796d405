"""Decide which of the offered tools are shown: known definitions are, changed and new ones wait for a review."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from truename.catalog import unfolded
from truename.config.trust import strictest
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
Kind = Literal["new", "drifted", "rejected", "unread", "renamed"]
Screen = Callable[[Sequence["Tool"]], Mapping["ToolId", Sequence["Finding"]]]
"""Returns the findings about texts and names of newly seen tools, compared with all present ones."""

ScreenText = Callable[[str, str], Sequence["Finding"]]
"""Returns the findings about a server's instructions."""


_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


def _nothing() -> Mapping[Any, Any]:
    return _NOTHING


@dataclass(frozen=True, kw_only=True)
class Drift:
    """An observation about one tool (if ``id`` is None: about a server's instructions), and how it is handled.

    ``kind`` is ``new``, ``drifted``, ``rejected`` (somebody rejected exactly this definition), ``unread`` (the pin is
    damaged, or cannot be read) or ``renamed`` (it may be a tool that is kept back, under another name). ``details`` are
    the differences from the pinned definition, ``findings`` those of rules about the present one.
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
        """The key of the pin."""
        return f"server:{self.server}" if self.id is None else str(self.id)

    @property
    def reason(self) -> str:
        """The reason in a few words: the first differences or findings."""
        causes = [str(detail) for detail in self.details[:3]] or [finding.fact for finding in self.findings[:3]]
        return "; ".join(causes) or ("" if self.kind != "drifted" else _OTHER_WORDS if self.id is None else _UNKNOWN)


@dataclass(frozen=True)
class OfferedTools:
    """The present offer of servers: tools, and instructions by server. ``digest`` returns the digest of a tool."""

    tools: Sequence[Tool]
    instructions: Mapping[str, str] = field(default_factory=_nothing)
    digest: Callable[[Tool], str] = attrgetter("digest")


@dataclass
class Quarantine:
    """The decisions about the definitions that servers offer.

    ``hidden`` tools are neither shown nor called, for the given reason; ``replaced`` tools are shown with the pinned
    definition, ``passed`` ones as offered. ``instructions`` are those that may be shown. ``pins``, ``reviewed``
    (trusted by the lock), ``notes`` (pending) and ``rejected`` are to be stored, ``drifts`` to be reported.
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

    def with_part(self, part: Quarantine, ids: Container[ToolId], servers: Container[str]) -> Quarantine:
        """Return what is shown and hidden if a part is decided anew: these tools, and these servers' instructions.

        What is to be stored and reported, and what passed, is that of the part.
        """
        return Quarantine(
            hidden={id: drift for id, drift in self.hidden.items() if id not in ids} | part.hidden,
            replaced={id: one for id, one in self.replaced.items() if id not in ids} | part.replaced,
            instructions={key: text for key, text in self.instructions.items() if key not in servers}
            | part.instructions,
            passed=part.passed,
            pins=part.pins,
            reviewed=part.reviewed,
            notes=part.notes,
            rejected=part.rejected,
            drifts=part.drifts,
        )

    def decisions(self) -> Quarantine:
        """Return what is shown and hidden alone, once all else is stored and reported."""
        return Quarantine(hidden=self.hidden, replaced=self.replaced, instructions=self.instructions)


class _OfferedDefinition(NamedTuple):
    """An offered definition, ``now``, with the stored pin (``kept``), the pin to compare with, and the former decision.

    ``is_reviewed``: the lock has exactly this definition. ``is_ours``: it was the pin while this gateway was offered
    exactly it. ``findings`` are those of rules. ``is_first``: nothing is pinned or reviewed yet.
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
        """Whether there is nothing to decide: the definition is trusted already, and nobody rejected it.

        A definition that is pending or that only a setting blocked is settled when the lock has it.
        """
        if self.before is not None and (not self.is_reviewed or (self.before.word == "rejected" and self.before.by)):
            return False
        if self.pin is None:
            return False
        # Another gateway's server may be of another version. Its pin is nobody's word on what is offered here.
        return self.pin.digest == self.now.digest or (self.is_ours and not self.pin.by)

    @property
    def is_kept(self) -> bool:
        """Whether there is nothing to write: the store has this pin, or had it, and no decision is pending.

        Writing it again would start an endless exchange with another gateway that pins another definition.
        """
        if self.before is not None or self.kept is None:
            return False
        return self.is_ours or (self.kept.digest, self.kept.key) == (self.now.digest, self.now.key)

    @property
    def details(self) -> tuple[ChangeDetail, ...]:
        """The differences from the pinned definition; empty if its content is unknown."""
        if self.pin is None or not isinstance(self.pin.content, Mapping) or not isinstance(self.now.content, Mapping):
            return ()
        from truename.migration.definitions import compare_definitions  # noqa: PLC0415 - 30 ms, only for definitions that changed

        return compare_definitions(self.pin.content, self.now.content)

    @property
    def is_new(self) -> bool:
        """Whether nothing was pinned under this key. The first instructions of a server that had none are new too."""
        return self.pin is None or (self.pin.content == "" and not self.pin.by)

    def handling(self, trust: Trust) -> Handling | None:
        """Return how the definition is handled; None if it is trusted without a message."""
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
        """Return the observation to report."""
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
    """Decide about all definitions that servers offer.

    ``screen`` is called once, with all definitions that are neither pinned nor rejected, ``screen_text`` with each
    server's instructions that are neither. A pinned definition that has not changed is served, whatever a rule would
    find today. ``reviewed`` are the digests of a lock by server's key and tool's name: they count as pins where nobody
    decided. ``ours`` are the digests, by key, that were pinned while this gateway was offered them, and that it is
    still offered: they stay trusted even if another gateway, which is offered another definition, has pinned that.
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
    is_first = bool(open_cases) and not pins and not reviewed
    for case in open_cases:
        now = case.now
        findings = screen_text(now.server, now.content) if now.id is None else said.get(now.id, ())
        _settle(found, case._replace(findings=tuple(findings), is_first=is_first), trust.of(case.now.server))
    return found


def _case(now: PinnedTool, record: PinRecord, plain: Sequence[Unfolded], ours: Mapping[str, str]) -> _OfferedDefinition:
    """Return an offered definition with its pin; ``plain`` are the ids that its tool would have without a digest."""
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
    """Return whether the pinned definition is still served: the settings say so, and no change breaks its callers."""
    return (
        handling == "quarantine"
        and trust.quarantine == "pinned"
        and not any(detail.breaking for detail in case.details)
    )


def pin_of(tool: Tool, digest: str) -> PinnedTool:
    """Return the pin of a tool, without a time."""
    origin, content = tool.origin, tool.definition
    return PinnedTool(id=tool.id, server=origin.server_id, name=origin.name, digest=digest, content=content, at="")


def instructions_pin(server: str, text: str) -> PinnedTool:
    """Return the pin of a server's instructions, without a time."""
    return PinnedTool(id=None, server=server, name="instructions", digest=digest_of(text), content=text, at="")
