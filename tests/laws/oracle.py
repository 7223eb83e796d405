"""What a text may run, computed a second time from the rules alone: the oracle shares no code with what it judges.

It knows the tools that are here (id, server's label, own name, both verbatim), every name that was ever shown, and what
an operator retired or redirected. For each text it answers with a `Verdict`: the tools that may run, and whether an
error is an answer too. Where the rules fix the answer there is one tool and no error, or no tool at all; where they
leave a choice (how a name is shortened, say) the verdict is wider, but never holds a tool that the rules exclude.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from anyascii import anyascii

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["CLIENT_FORMS", "Oracle", "ToolRecord", "Verdict", "narrow"]

# How clients show a name of a gateway that they know as "truename"; measured on real clients.
CLIENT_FORMS: Final = (
    "mcp__truename__{}",
    "mcp_truename_{}",
    "mcp_truename__{}",
    "mcp--truename--{}",
    "mcp__truename.{}",
    "truename_{}",
    "truename__{}",
    "truename-{}",
    "{}_mcp_truename",
)
_FORMS: Final = tuple(tuple(form.split("{}")) for form in CLIENT_FORMS)
_ALIASES: Final = {"salesforce": "sf", "quickbooks": "qb", "data-grout": "dg"}
_SEPARATORS: Final = re.compile(r"[-_:. ]+")
_PART: Final = r"[a-z0-9_-]+"
_CANONICAL: Final = re.compile(
    rf"(?P<i>{_PART})(?:@(?P<iv>[1-9][0-9]{{0,17}}))?/(?P<t>{_PART}(?:\.{_PART})*)(?:@(?P<tv>[1-9][0-9]{{0,17}}))?"
)
_LOOSE: Final = re.compile(
    rf"(?P<i>{_PART})(?:@(?P<iv>v?[1-9][0-9]{{0,17}}|latest))?"
    rf"/(?P<t>{_PART}(?:\.{_PART})*)(?:@(?P<tv>v?[1-9][0-9]{{0,17}}|latest))?"
)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CAPITALS: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SIMPLE: Final = re.compile(r"[a-z]{1,12}")
_DIGEST: Final = re.compile(r"-[0-9a-f]{8}")
_LEGAL: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_SHORT: Final = 30
_NO_PART: Final = frozenset({"mcp", "server", "truename"})


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """One tool: its id as text, its server's label and its own name, both verbatim."""

    id: str
    label: str
    name: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What may follow from a text: one of the tools, or an error if ``may_fail``; ``code`` is then the error's."""

    rule: str
    allowed: frozenset[str] = frozenset()
    may_fail: bool = True
    code: str = ""
    reason: str = ""
    # In step 6: all tools that may have a spelling with this fold.
    near: frozenset[str] = frozenset()

    @property
    def kind(self) -> str:
        """Name the kind of verdict, for counting."""
        if self.allowed:
            return "one of some tools, or an error" if self.may_fail else "exactly this tool"
        return f"error: {self.reason or self.code}" if self.code else "an error"

    def objection(self, ran: str | None, code: str = "", reason: str = "") -> str:
        """Return how an answer breaks the rule, or an empty text."""
        if ran is not None:
            allowed = " or ".join(sorted(self.allowed)) or "no tool"
            return "" if ran in self.allowed else f"it runs {ran}; {allowed} may run ({self.rule})"
        if not self.may_fail:
            return f"it fails ({code} {reason}); {' or '.join(sorted(self.allowed))} has to run ({self.rule})"
        if self.code and code and (code != self.code or (self.reason and reason and reason != self.reason)):
            return f"it fails with {code} {reason}, not with {self.code} {self.reason} ({self.rule})"
        return ""


def _must(rule: str, id: str, *, may_fail: bool = False) -> Verdict:
    return Verdict(rule, frozenset({id}), may_fail=may_fail)


def _stop(rule: str, code: str = "", reason: str = "") -> Verdict:
    return Verdict(rule, code=code, reason=reason)


@lru_cache(100_000)
def narrow(text: str) -> str:
    """Return the text without case, with the separators of the rule as one."""
    return _SEPARATORS.sub("_", text.casefold())


@lru_cache(100_000)
def _kept(text: str) -> str:
    return _SEPARATORS.sub("", text.casefold())


@lru_cache(100_000)
def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", anyascii(text).lower())


@lru_cache(10_000)
def _family(id: str) -> tuple[str, str]:
    found = _CANONICAL.fullmatch(id)
    assert found is not None, id
    return found["i"], found["t"]


@lru_cache(10_000)
def _versions(id: str) -> tuple[int, int]:
    found = _CANONICAL.fullmatch(id)
    assert found is not None, id
    return int(found["iv"]), int(found["tv"])


def _is_reference(found: re.Match[str] | None) -> bool:
    return found is not None and all(re.search("[a-z0-9]", part) for part in (found["i"], *found["t"].split(".")))


@lru_cache(100_000)
def _read(text: str) -> str | None:
    """Return the id that a text is as it stands, versions left out being 1."""
    found = _CANONICAL.fullmatch(text)
    if found is None or not _is_reference(found):
        return None
    return f"{found['i']}@{found['iv'] or 1}/{found['t']}@{found['tv'] or 1}"


def _recorded_as(text: str) -> str | None:
    """Return the id that a ledger records for a text that is an id in any spelling, such as with ``v1``."""
    found = _LOOSE.fullmatch(text.translate(_CAPITALS))
    if found is None or "latest" in (found["iv"], found["tv"]):
        return None
    iv, tv = ((found[part] or "1").removeprefix("v") for part in ("iv", "tv"))
    return _read(f"{found['i']}@{iv}/{found['t']}@{tv}")


class _Patterns(NamedTuple):
    loose: re.Pattern[str]
    exact: re.Pattern[str]
    head: re.Pattern[str]
    tail: re.Pattern[str]


@lru_cache(10_000)
def _patterns(tool: ToolRecord) -> _Patterns:
    """Return patterns of all that any style could make of a tool, separators left out: in any case, and exactly.

    ``head`` and ``tail`` are the parts of ``exact`` before and behind a colon. Words of the server's label in any
    number, the tool's own name (in its own script, or transliterated), a number or a digest, and what a client adds;
    exactly: each as it is written, or in lower case.
    """
    family = _family(tool.id)
    leads = {"mcp", "truename", "server", "functions", "default_api", "tool", _ALIASES.get(tool.label.lower(), "")}
    for label in (tool.label, anyascii(tool.label), family[0]):
        leads |= {label, *_WORDS.findall(label), *re.split(r"[\W_]+", label), _alphanumeric(label)}
        leads.add(re.sub("[/~%@]", "", label))
    bases = set()
    for whole in (tool.name, anyascii(tool.name), family[1], _DIGEST.sub("", family[1])):
        *suite, last = whole.split(".")
        bases |= {one for text in (whole, last) for one in (text, _alphanumeric(text))}
        leads |= {word for part in suite for word in (part, *_WORDS.findall(part))}
    wild = "|(?:tool)?[0-9a-f]*" if not _plain(tool.name) else ""
    more = r"(?:[0-9]{1,3}|[0-9a-f]{4,64})?(?:mcp|truename|[0-9]{1,3})*"
    leads_exact, bases_exact = _either(leads, fold=False), f"(?:{_either(bases, fold=False)}{wild}){more}"
    return _Patterns(
        loose=re.compile(f"(?:{_either(leads, fold=True)})*(?:{_either(bases, fold=True)}{wild}){more}"),
        exact=re.compile(f"(?:{leads_exact})*{bases_exact}"),
        head=re.compile(f"(?:{leads_exact})+"),
        tail=re.compile(bases_exact),
    )


def _alphanumeric(text: str) -> str:
    return re.sub("[^A-Za-z0-9]", "", text)


def _either(texts: set[str], *, fold: bool) -> str:
    plain = {_SEPARATORS.sub("", text) for text in texts}
    forms = {text.casefold() for text in plain} | {text.translate(_CAPITALS) for text in plain}
    return "|".join(sorted(map(_escaped, (forms if fold else forms | plain) - {""}), key=len, reverse=True))


def _escaped(text: str) -> str:
    # What no name may have is left out of it, or stands for something that is.
    return "".join(re.escape(sign) + ("?" if sign in "/~%@" else "") for sign in text)


def _may_be(tool: ToolRecord, text: str) -> bool:
    """Return whether some spelling of the tool may have the fold of the text."""
    return _patterns(tool).loose.fullmatch(_kept(text)) is not None


def _may_be_exactly(tool: ToolRecord, text: str) -> bool:
    """Return whether some style may spell the tool exactly so: cases and separators are its own, or a style's."""
    own = f"{tool.label}{tool.name}{tool.id}"
    for head, tail in (("", ""), *_FORMS):
        if text.startswith(head) and text.endswith(tail):
            inner = text[len(head) : len(text) - len(tail)]
            foreign = {sign for sign in "- .:" if sign in inner and sign not in own}
            patterns = _patterns(tool)
            if not foreign and patterns.exact.fullmatch(_SEPARATORS.sub("", inner)):
                return True
            if foreign == {":"} and inner.count(":") == 1:
                # A style puts a colon behind the server's part, and nowhere else.
                lead, base = (_SEPARATORS.sub("", part) for part in inner.split(":"))
                if patterns.head.fullmatch(lead) and patterns.tail.fullmatch(base):
                    return True
    return False


class _ByClients(NamedTuple):
    """The tools of which a text is what a client shows of an own name, of a name that is or was shown, of others."""

    own: set[str]
    shown: set[str]
    others: set[str]

    @property
    def is_open(self) -> bool:
        return bool(self.others)


@dataclass(slots=True)
class Oracle:
    """The rules, and what they are applied to. ``remembers``: whether there is a ledger."""

    remembers: bool
    known: dict[str, ToolRecord] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    table: dict[str, str] = field(default_factory=dict)
    # Each name that was ever shown, with the tools that it was shown for, the last one last.
    shown: dict[str, list[str]] = field(default_factory=dict)
    # The version of each tool of several that was shown first, under a name without a number.
    first: dict[tuple[str, str], str] = field(default_factory=dict)
    retired: set[str] = field(default_factory=set)
    moved: dict[str, str] = field(default_factory=dict)
    moved_ids: dict[str, str] = field(default_factory=dict)
    # Names and ids of tools that are hidden from who asks.
    barred: frozenset[str] = frozenset()
    barred_ids: frozenset[str] = frozenset()
    hidden_ids: frozenset[str] = frozenset()
    hidden: dict[str, ToolRecord] = field(default_factory=dict)
    # Hidden tools that are here, though an operator redirected them to tools that are not hidden.
    led_on: frozenset[str] = frozenset()

    def projected(self, tools: Iterable[ToolRecord], names: Mapping[str, str], *, canonical: bool = False) -> list[str]:
        """Take a table in as it is shown; return what it breaks."""
        tools = list(tools)
        if not self.remembers:
            self.known.clear()
            self.shown.clear()
            self.first.clear()
        self.known |= {tool.id: tool for tool in tools}
        self.present = {tool.id for tool in tools}
        broken = [] if set(names) == self.present else ["the table has not one name for each tool"]
        self.table = {name: id for id, name in names.items()}
        if len(self.table) < len(names):
            broken.append("two tools have one name in the table")
        if not canonical:
            for id in sorted(self.present, key=_versions):
                self.first.setdefault(_family(id), id)
        for name, id in self.table.items():
            broken += self._shown(name, id)
        return broken

    def usurped(self, style: str) -> list[str]:
        """Return the names in a first table that a look-alike has, though they are another tool's as it is written."""
        found = []
        for name, id in self.table.items():
            tool = self.known[id]
            lower = tool.label.translate(_CAPITALS)
            if len(name) > _SHORT or name in {tool.name, f"{lower}_{tool.name}", f"{_ALIASES.get(lower)}_{tool.name}"}:
                continue
            for other in self.known.values():
                plain = other.name if style == "on-conflict" else f"{other.label}_{other.name}"
                is_stutter = style == "prefixed" and other.name.startswith(other.label)
                if plain == name and _family(other.id) != _family(id) and _LEGAL.fullmatch(name) and not is_stutter:
                    found.append(
                        f"{name!r} is shown for {id} ({tool.name!r}); {other.id} is called so as it is written"
                    )
        return found

    def _shown(self, name: str, id: str) -> list[str]:
        if name in self.retired:
            return [f"{name!r} was retired and is shown for {id}"]
        if name in self.moved:
            heirs = {self.moved[name], self._end(self.moved[name])}
            return [] if id in heirs else [f"{name!r} was redirected to {self.moved[name]} and is shown for {id}"]
        owners = self.shown.setdefault(name, [])
        # A redirect of another spelling is one of this name, too.
        led = {one for old, new in self.moved.items() if _plain(old) == _plain(name) for one in (new, self._end(new))}
        if owners and id not in {*owners, *led, self._end(owners[-1])}:
            return [f"{name!r} was shown for {owners[-1]} and is now shown for {id}"]
        if not owners or owners[-1] != id:
            owners.append(id)
        return []

    def retire(self, name: str) -> None:
        """Take in that an operator retired a name."""
        self.retired.add(name)

    def redirect(self, old: str, new: str) -> None:
        """Take in that an operator redirected a name, or an id, to the tool with this id."""
        source = _recorded_as(old)
        if source is None:
            # The last word counts, for a name in all its spellings.
            self.retired -= {name for name in self.retired if _plain(name) == _plain(old)}
            self.moved[old] = new
            return
        # The last word counts: if the new tool led back to where this one begins, it is now the end.
        chain = new
        while chain in self.moved_ids and chain != source:
            chain = self.moved_ids[chain]
        if chain == source:
            self.moved_ids.pop(new, None)
        self.moved_ids.pop(source, None)
        if source != new:
            self.moved_ids[source] = new

    def heir_of(self, id: str | None) -> str | None:
        """Return the tool to which a tool was redirected in the end, or the tool itself."""
        return None if id is None else self._end(id)

    def _end(self, id: str) -> str:
        seen: set[str] = set()
        while id in self.moved_ids and id not in seen:
            seen.add(id)
            id = self.moved_ids[id]
        return id

    # The seven steps.

    def verdict(self, text: str, hidden: frozenset[str] = frozenset()) -> Verdict:
        """Return what may follow from a text, for somebody from whom these tools are hidden.

        Names that a hidden tool has, or had last, and ids never fall to another. All else is as if it were not there.
        """
        seen = self._without(hidden) if hidden else self
        return seen._touched(text, seen._steps(text))

    def _without(self, hidden: frozenset[str]) -> Oracle:
        """Return the rules for somebody from whom these tools are hidden; what was redirected leads on."""
        away = frozenset(id for id in hidden if self._end(id) in hidden)
        names = {name: ids[-1] for name, ids in self.shown.items()} | self.table | self.moved
        # Of several spellings of a name the operator redirected or retired any may have been the last.
        moved_on = {_plain(name) for name, id in self.moved.items() if self._end(id) not in hidden}
        retired = {_plain(name) for name in self.retired}
        moved_on |= {_plain(name) for name in self.moved if _plain(name) in retired}
        # A tool that is here and visible keeps its names, even if an operator redirected it to a hidden one.
        led_away = {id for id in names.values() if self._end(id) in hidden} - (self.present - hidden)
        barred = (
            name
            for name, id in names.items()
            # Whoever may see a tool is told that its name was retired.
            if id in led_away and _plain(name) not in moved_on and not (name in self.retired and id not in hidden)
        )
        return replace(
            self,
            known={id: tool for id, tool in self.known.items() if id not in hidden},
            present=self.present - hidden,
            table={name: id for name, id in self.table.items() if id not in hidden},
            shown={name: ids for name, ids in self.shown.items() if ids[-1] not in away},
            first={family: id for family, id in self.first.items() if id in away or id not in hidden},
            barred=frozenset(barred),
            barred_ids=away,
            hidden_ids=hidden,
            hidden={id: tool for id, tool in self.known.items() if id in away},
            led_on=frozenset(self.present & hidden - away),
        )

    def _steps(self, text: str) -> Verdict:
        found = self._exact(text)
        if found is not None:
            return found
        plain = _decoded(text)
        if plain is None or plain.count("/") > 1:
            # Whether a verbatim text that cannot be decoded is still compared by its fold, the rules leave open.
            inside = None if plain is None else self._exact(plain)
            allowed = self._folded(text, text).allowed | (inside.allowed if inside is not None else frozenset())
            return Verdict("step 5: a bad escape, what is encoded twice, or two slashes", allowed)
        if plain != text and (found := self._exact(plain)) is not None:
            return found
        return self._folded(text, plain)

    def _touched(self, text: str, found: Verdict) -> Verdict:
        """Widen a verdict on another spelling, or a client's form, of a name that was withdrawn."""
        withdrawn = self.retired | self.moved.keys()
        if not withdrawn or text in self.table or text in withdrawn:
            return found
        keys = {_plain(text), _plain(_decoded(text) or "")}
        near = {name for name in withdrawn if not keys.isdisjoint(_forms_of(name))}
        if not near:
            return found
        heirs = {self._end(self.moved[name]) for name in near if name in self.moved} & self.present
        is_exact = text not in self.shown and bool(self._own(text))
        allowed = found.allowed if is_exact else found.allowed | heirs
        return Verdict(f"{found.rule}; another spelling of it was withdrawn", allowed)

    def _exact(self, text: str) -> Verdict | None:
        """Steps 1 to 4."""
        if text in self.barred or _read(text) in self.barred_ids:
            return _stop("steps 1 to 3: it is the name or the id of a hidden tool", "unknown_tool")
        if text in self.table:
            id = self.table[text]
            if id in self.moved_ids:
                return self._at("step 1: it is in the table", id)
            return _must("step 1: it is in the table", id)
        return self._remembered(text) or self._canonical(text) or self._spelled(text)

    def _remembered(self, text: str) -> Verdict | None:
        same = {name for name in self.retired | self.moved.keys() if _plain(name) == _plain(text)}
        if text in same and len(same) > 1:
            heirs = {self._end(self.moved[name]) for name in same if name in self.moved}
            return Verdict("step 2: it was withdrawn in several spellings", frozenset(heirs & self.present))
        if text in self.retired:
            return _stop("step 2: it was retired", "retired_name")
        if text in self.moved:
            return self._at("step 2: it was redirected", self.moved[text])
        if text in self.shown:
            return self._at("step 2: it was shown for this tool", self.shown[text][-1])
        return None

    def _canonical(self, text: str) -> Verdict | None:
        id = _read(text)
        if id is None:
            return None
        if id in self.known or id in self.moved_ids:
            return self._at("step 3: it is this tool's id", id)
        # A hidden tool counts: its versions are the same for everybody.
        if "@" in text and any(_family(id) == _family(one) for one in (*self.known, *self.hidden_ids)):
            return _stop("step 3: it is a version of a tool that its server does not give", "unknown_tool", "unknown")
        return None

    def _at(self, rule: str, id: str) -> Verdict:
        end = self._end(id)
        if id != end and id in self.present:
            return Verdict(f"{rule}, which was redirected and is here", frozenset({id, end} & self.present))
        if end in self.present:
            return _must(rule, end, may_fail=id in self.led_on)
        return _stop(f"{rule}, which is absent", *(("unknown_tool", "absent") if end == id else ()))

    def _own(self, text: str) -> set[str]:
        return {
            tool.id
            for tool in self.known.values()
            if text.endswith(tool.name) and text in {tool.name, f"{tool.label}:{tool.name}"}
            if text not in self._led_by(tool.id)
        }

    def _is_hidden(self, text: str) -> bool:
        """Return whether a text names a version, and is in any form the id of a hidden tool."""
        if "@" not in text or not self.barred_ids:
            return False
        return replace(self, known=self.hidden, moved_ids={})._referred(text)[1]

    def _led_by(self, id: str) -> frozenset[str]:
        """Return the spellings without a number that surely the first version of a tool has, if that is hidden."""
        first = self.hidden.get(self._first(id))
        if first is None or self.moved or self.moved_ids or self._is_retired(self._family_of(id)):
            return frozenset()
        return frozenset({first.name, f"{first.label}:{first.name}"})

    def _first(self, id: str) -> str:
        """Return the version that has the spellings without a number: where ids are names each, but for a hidden one.

        If no name was shown of which one could be the first, it is the lowest.
        """
        lowest = min(self._family_of(id), key=_versions)
        return self.first.get(_family(id), lowest if lowest in self.barred_ids else id)

    def _family_of(self, id: str) -> list[str]:
        return [one for one in {*self.known, *self.hidden_ids} if _family(one) == _family(id)]

    def _spelled(self, text: str) -> Verdict | None:
        """Step 4."""
        own = self._own(text)
        by_clients = self._shown_by_clients(text)
        if by_clients.is_open:
            runs = own | by_clients.own | by_clients.shown | by_clients.others
            return Verdict("step 4: a client's form of an id, or of a name that was withdrawn", self._ends(runs))
        encoded = _decoded(text)
        if own and encoded is not None and self._referred(encoded)[1]:
            # Whether a server's own name that is another tool's id in other form is called so, the rules leave open.
            runs = own | ({str(_read(encoded))} if encoded != text else set())
            return Verdict("step 4: its own name, which is another tool's id in other form", self._ends(runs))
        shown = by_clients.shown
        if own and encoded is not None and self._is_hidden(encoded):
            return Verdict("step 4: its own name, which is a hidden tool's id in other form", self._ends(shown))
        if len(shown) == 1:
            # What clients showed is a name that was shown: it may come before other spellings, not after.
            (id,) = shown
            rule = "step 4: as a client shows a name of the table, or a former one"
            if id not in self.present or id in self.moved_ids:
                return Verdict(rule, self._ends({id}))
            sure = id in self.table.values() and not (own | by_clients.own) - shown and not self._others(text, id)
            return _must(rule, id, may_fail=not sure)
        found = own | by_clients.own | shown
        if found:
            verdict = self._settled("step 4: its own name, alone or behind its server's label", text, found)
            # A client's form of a name with a slash is not one that a client could show.
            return verdict if own or "/" not in text else replace(verdict, may_fail=True)
        return self._natural(text)

    def _shown_by_clients(self, text: str) -> _ByClients:
        found = _ByClients(set(), set(), set())
        for head, tail in _FORMS:
            if not (text.startswith(head) and text.endswith(tail) and len(text) > len(head) + len(tail)):
                continue
            inner = text[len(head) : len(text) - len(tail)]
            id = _read(inner)
            if inner in self.barred or id in self.barred_ids:
                found.others.add("")
            elif id in self.known or id in self.moved_ids:
                found.others.update({str(id)})
                found.own.update(self._own(inner))
            elif inner not in self.table and (withdrawn := self._withdrawn_like(inner)):
                found.others.update(self.moved.get(name, "") for name in withdrawn)
                if inner in self.shown and inner not in withdrawn:
                    # Another spelling was withdrawn, and this one was shown: the rules leave open which of them counts.
                    found.shown.add(self.shown[inner][-1])
            elif inner in self.table or inner in self.shown:
                found.shown.add(self.table.get(inner) or self.shown[inner][-1])
            else:
                own, encoded = self._own(inner), _decoded(inner)
                if own and encoded is not None and self._is_hidden(encoded):
                    found.others.add("")
                    continue
                if own and encoded is not None and self._referred(encoded)[1]:
                    # As without what clients add: another tool's id in other form may be one of both.
                    found.others.add(str(_read(encoded)))
                found.own.update(own)
        return found

    def _withdrawn_like(self, name: str) -> set[str]:
        """Return the spellings under which a name that was shown, or this one, was withdrawn."""
        withdrawn = self.retired | self.moved.keys()
        if name not in self.shown and name not in withdrawn:
            return set()
        return {other for other in withdrawn if _plain(other) == _plain(name)}

    def _settled(self, rule: str, text: str, found: set[str]) -> Verdict:
        ends: set[str] = set()
        is_soft = False
        for id in found:
            family = self._family_of(id)
            if len(family) > 1 and (self.moved or self._is_in_part(family) or self._is_retired(family)):
                is_soft = True
                ends |= self._ends(set(family))
            elif len(family) > 1 and not found & {self.first.get(_family(id), min(family, key=_versions))}:
                is_soft = True
                ends.add(id)
            elif len(family) > 1:
                is_soft = True
                first = self.first.get(_family(id), min(family, key=_versions))
                ends |= {self._end(first)} | ({first} & self.present)
            elif id in self.moved_ids:
                is_soft = True
                ends |= {self._end(id)} | ({id} & self.present)
            else:
                ends.add(id)
        if len(ends) > 1 and any(map(self._may_leave, found)):
            return Verdict(f"{rule}, or a hidden version of one has it", frozenset(ends & self.present))
        if len(ends) > 1:
            families = {_family(id) for id in found}
            if any(_family(id) in families for id in self.moved_ids) or len({_family(id) for id in ends}) == 1:
                return Verdict(f"{rule}; an operator redirected names of it", frozenset(ends & self.present))
            code = "ambiguous_name" if not is_soft and ends <= self.present else ""
            return _stop(f"{rule}: {' and '.join(sorted(ends))} have it", code)
        end = next(iter(ends), "")
        if end not in self.present:
            return _stop(f"{rule}: {end} has it, which is absent")
        return _must(rule, end, may_fail=is_soft or bool(self._others(text, end)))

    def _is_in_part(self, family: list[str]) -> bool:
        return not self.hidden_ids.isdisjoint(family)

    def _may_leave(self, id: str) -> bool:
        """Return whether a hidden version may have the spellings without a number, so that this one has none."""
        family = self._family_of(id)
        is_open = bool(self.moved) or self._is_retired(family) or self.first.get(_family(id)) not in self.known
        return is_open and self._is_in_part(family)

    def _is_retired(self, family: list[str]) -> bool:
        """Return whether a name of one of these versions was retired: then another may have the next ones."""
        return any(not set(family).isdisjoint(self.shown.get(name, ())) for name in self.retired)

    def _natural(self, text: str) -> Verdict | None:
        """Return the one tool with a plain spelling of the default styles, where nothing else comes near it."""
        found = [
            tool
            for tool in self.known.values()
            if tool.name in text and text in _natural_spellings(tool) and not self._others(text, tool.id)
        ]
        if len(found) != 1 or len(self._family_of(found[0].id)) > 1:
            return None
        return self._settled("step 4: the name that another style gives it", text, {found[0].id})

    def _others(self, text: str, id: str) -> set[str]:
        """Return the other tools, present or not, that some style may spell exactly so."""
        family = _family(id)
        return {
            other
            for other, tool in self.known.items()
            if other != id and _family(other) != family and _may_be_exactly(tool, text)
        }

    def _folded(self, text: str, plain: str) -> Verdict:
        """Step 6: for an encoded text, the text and what it is decoded to may both be compared."""
        forms = dict.fromkeys((text, plain))
        folds = [self._fold_of(form) for form in forms]
        referred, is_known = self._referred(plain)
        exactly = {id for form in forms for id, tool in self.known.items() if _may_be_exactly(tool, form)}
        # What folds like a hidden tool does not run a further version of it; for another tool, it is not there.
        led = {_family(id) for sure, _ in folds for id in sure & self.barred_ids}
        further = {
            id
            for id, tool in self.known.items()
            if _family(id) in led and {tool.name, f"{tool.label}:{tool.name}"} <= self._led_by(id)
        }
        folds = [(sure - self.barred_ids - further, maybe - further) for sure, maybe in folds]
        exactly -= further
        near = {id for sure, maybe in folds for id in (sure or maybe)} | exactly
        left = self._left_to_hidden(forms)
        if left and not referred and any(not self._led_by(id).isdisjoint(forms) for id in left):
            return _stop("step 6: a hidden version has it exactly", "unknown_tool")
        if referred:
            is_one = len(forms) == len(referred) == 1 and near <= referred and not self.moved_ids
            return Verdict("step 6: an id in other case", frozenset(referred), may_fail=not is_one)
        if is_known and not near:
            return _stop("step 6: an id in other case, which is absent")
        shared = [sure for sure, _ in folds if len({self._end(id) for id in sure}) > 1]
        if len(shared) == len(folds) and not exactly:
            rule = f"step 6: {' and '.join(sorted(shared[0]))} have a spelling with this fold"
            return replace(_stop(rule), near=self._ends(near))
        runs = self._ends(near)
        if not runs:
            return _stop("step 6: no tool that is here has a spelling with this fold")
        ((sure, maybe), *more) = folds
        if not more and len(runs) == len(sure) == 1 and maybe <= sure and "/" not in plain:
            # A hidden version that leads on may be the first one, and then no other has this spelling.
            led_on = self.hidden_ids - self.barred_ids
            may_fail = bool(left) or any(not led_on.isdisjoint(self._family_of(id)) for id in sure)
            return Verdict("step 6: one tool has a spelling with this fold", runs, may_fail=may_fail)
        others = self._ends({id for found in folds for ids in found for id in ids})
        return Verdict("step 6: at most these have a spelling with this fold", runs, near=others)

    def _left_to_hidden(self, forms: Iterable[str]) -> set[str]:
        """Return the tools with these own names, alone or behind a label, that a hidden version may have instead."""
        return {
            id
            for id, tool in self.known.items()
            if not {tool.name, f"{tool.label}:{tool.name}"}.isdisjoint(forms) and self._may_leave(id)
        }

    def _ends(self, ids: set[str]) -> frozenset[str]:
        return frozenset({end for id in ids for end in (id, self._end(id))} & self.present)

    def _fold_of(self, text: str) -> tuple[set[str], set[str]]:
        """Return the tools with a spelling of this fold, and those of which some style could make one."""
        # Of several versions, one has the spellings without a number.
        own = {(self._first(id), form) for id, tool in self.known.items() for form in _own_folds(tool)}
        loose = {id for id, _ in own if self._is_retired([one for one in self.known if _family(one) == _family(id)])}
        names = {name: ids[-1] for name, ids in self.shown.items()} | self.table
        whole, *inner = _inner_folds(narrow(text))
        sure = {id for id, form in own if form == whole and id not in loose}
        sure |= {id for name, id in names.items() if narrow(name) == whole and _read(name) is None}
        # Whether a client's form is known in other case or with other signs, the rules leave open.
        maybe = {id for id, tool in self.known.items() if _may_be(tool, text)}
        maybe |= {id for id, form in own if form in inner or id in loose}
        maybe |= {id for name, id in names.items() if narrow(name) in (whole, *inner)}
        return sure, maybe

    def _referred(self, text: str) -> tuple[set[str], bool]:
        """Return the tools that a reference in other case, with ``v1`` or ``latest``, may mean; and if one is known."""
        found = _LOOSE.fullmatch(text.translate(_CAPITALS))
        if found is None or not _is_reference(found):
            return set(), False
        wanted = [(found[part] or "1").removeprefix("v") for part in ("iv", "tv")]
        candidates = [id for id in (*self.known, *self.moved_ids) if _family(id) == (found["i"], found["t"])]
        fits = {
            id
            for id in candidates
            if all(asked in {"latest", str(has)} for asked, has in zip(wanted, _versions(id), strict=True))
        }
        runs = fits & self.present
        if "latest" in wanted and runs:
            runs = {max(runs, key=_versions)}
        return (runs | {self._end(id) for id in fits}) & self.present, bool(fits)


def _inner_folds(fold: str) -> list[str]:
    """Return the fold of a text, and of what is left of it without what clients add."""
    found = [fold]
    for head, tail in ((narrow(head), narrow(tail)) for head, tail in _FORMS):
        if fold.startswith(head) and fold.endswith(tail) and len(fold) > len(head) + len(tail):
            found.append(fold[len(head) : len(fold) - len(tail)])
    return found


def _own_folds(tool: ToolRecord) -> tuple[str, str]:
    return narrow(tool.name), narrow(f"{tool.label}:{tool.name}")


@lru_cache(10_000)
def _forms_of(name: str) -> frozenset[str]:
    return frozenset({_plain(name), *(_plain(form.format(name)) for form in CLIENT_FORMS)})


@lru_cache(10_000)
def _natural_spellings(tool: ToolRecord) -> frozenset[str]:
    """Return the names in the default styles of a tool that is called as plainly as can be."""
    if not (_SIMPLE.fullmatch(tool.label) and _SIMPLE.fullmatch(tool.name)):
        return frozenset()
    if {tool.label, tool.name} & _NO_PART or tool.label in _ALIASES or tool.name.startswith(tool.label):
        return frozenset()
    if tool.id != f"{tool.label}@1/{tool.name}@1":
        return frozenset()
    return frozenset({f"{tool.label}_{tool.name}", f"mcp_{tool.label}__{tool.name}"})


def _decoded(text: str) -> str | None:
    """Return the text decoded once, None if that is refused."""
    plain = text
    if "%" in text:
        if _BAD_ESCAPE.search(text):
            return None
        try:
            plain = unquote_to_bytes(text).decode("utf-8")
        except UnicodeError:
            return None
        if "%" in plain:
            return None
    if not plain.isprintable():
        return None
    return plain.replace("~", "/")
