"""Define the Dialect: the names that one provider, client, framework or specification accepts, and its changes to them.

A name is legal if it reaches the model unchanged, apart from the prefix that the client itself adds, and if the
client's provider accepts it. All patterns match the full text, and none can backtrack without bound. A simulation
predicts how the client shows a whole list of tools.
"""

from __future__ import annotations

import re
import string
import sys
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, count, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from truename.dialects.transformation import NameTransformation, compile_transformation
from truename.errors import Reason, excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from truename.dialects.client_versions import ClientRun
    from truename.dialects.transformation import ClientSpelling

__all__ = [
    "DEFAULT_SERVER",
    "STYLES",
    "Dialect",
    "Simulation",
    "brackets",
    "breaks",
    "legal_pattern",
    "problems",
    "simulate_lists",
]

_MOST = 5  # reasons of one code: enough to see the pattern, too few to flood a log
_HEAD = 10_000  # how many characters are searched for one that cannot be printed
_STRICTEST = 64  # the shortest limit of any provider in the table
_PROBE = "qzxjvk"
_RUNS = {"snake": ("__+", "underscore"), "single-hyphens": ("--+", "hyphen")}
_RANGES = (("a-z", string.ascii_lowercase), ("A-Z", string.ascii_uppercase), ("0-9", string.digits))
DEFAULT_SERVER = "truename"
STYLES = ("prefixed", "on-conflict", "server-prefix", "canonical", "declared", "dotted-double")
_DOUBLE = frozenset({"server-prefix", "dotted-double"})
K = TypeVar("K", bound=Hashable)
_SCOPES = ("", "tool", "server", "request")  # each scope includes those before it
_ALL_SEEN = frozenset({"both-first", "both-last", "same"})


class NameContext(NamedTuple):
    """The precomputed rules for names of one server in one dialect.

    ``room`` is the greatest length of a name (None: no limit). ``plain`` is the length up to which a legal name is
    shown as ``prefix + name + suffix``; -1 if none is. ``avoid`` are prefixes that a name must not begin with, ``once``
    is the prefix that the client does not repeat, ``problem`` says why no name of this server is legal. ``accepts``
    tells whether a name is legal by all rules; `problems` says why one is not.
    """

    prefix: str
    suffix: str
    room: int | None
    plain: float
    legal: Callable[[str], object]
    avoid: tuple[str, ...]
    once: str
    problem: str
    accepts: Callable[[str], bool]


def brackets(chars: frozenset[str]) -> str:
    """Write a set of characters as a character class.

    >>> brackets(frozenset("-_.") | frozenset("abcdefghijklmnopqrstuvwxyz"))
    '[a-z_.-]'
    """
    ranges, others = _grouped(chars)
    return f"[{ranges}{''.join(sorted(others, key=lambda char: (char == '-', char != '_', char)))}]"


def _class(chars: frozenset[str]) -> str:
    ranges, others = _grouped(chars)
    return f"[{ranges}{''.join(map(re.escape, sorted(others)))}]"


def _grouped(chars: frozenset[str]) -> tuple[str, set[str]]:
    """Return the ranges that a set of characters contains wholly, and the characters outside them."""
    others, ranges = set(chars), ""
    for label, members in _RANGES:
        if others.issuperset(members):
            others.difference_update(members)
            ranges += label
    return ranges, others


def legal_pattern(dialect: Dialect) -> re.Pattern[str]:
    """Compile the pattern of the dialect's legal names, for a full match; it does not limit the length."""
    if dialect.chars is None or dialect.first is None or dialect.last is None:
        message = f"{dialect.name} accepts any printable text"
        raise ValueError(message)
    return _pattern(dialect.first, dialect.chars, dialect.last, dialect.words)


# Few rules differ: most clients have those of one provider.
@lru_cache(maxsize=512)
def _pattern(first: frozenset[str], chars: frozenset[str], last: frozenset[str], words: str) -> re.Pattern[str]:
    if words == "snake":
        word = _class(chars - {"_"})
        return re.compile(f"{_class(first)}{word}*(?:_{word}+)*")
    alone = "(?!.*--)" if words == "single-hyphens" else ""
    return re.compile(f"{alone}{_class(first)}(?:{_class(chars)}*{_class(last)})?")


def _room(dialect: Dialect, overhead: int) -> int | None:
    fixed = dialect.mangling.room
    if fixed is not None or dialect.max_length is None:
        return fixed
    if "max_length" in dialect.unknown:
        return max(0, min(dialect.max_length, _STRICTEST - overhead))
    return max(0, dialect.max_length - overhead)


def _problem(dialect: Dialect, server: str, *, changed: bool) -> str:
    engine = compile_transformation(dialect.mangling)
    if engine.ignores(server):
        return f"{dialect.title} never connects a server with the key {excerpt(server)}"
    if changed and dialect.mangling.digest and "lossy" in dialect.mangling.digest.when:
        return f"{dialect.title} adds a digest to every name of a server with the key {excerpt(server)}"
    return ""


@lru_cache(maxsize=4096)
def name_context(dialect: Dialect, server: str) -> NameContext:
    """Compute the rules for names of one server in this dialect (cached)."""
    engine, rules = compile_transformation(dialect.mangling), dialect.mangling
    probe = engine.spell(server, _PROBE)
    cut = probe.text.partition if rules.join.startswith("{tool}") else probe.text.rpartition
    prefix, found, suffix = cut(_PROBE)
    own = engine.server(server)
    problem = _problem(dialect, server, changed=probe.text != probe.raw)
    plain = float("inf") if found and not problem else -1.0
    if plain > 0 and rules.over == "shrink" and dialect.max_length is not None:
        plain = dialect.max_length - len(prefix)
    room = _room(dialect, probe.size - len(_PROBE))
    legal = str.isprintable if dialect.chars is None else legal_pattern(dialect).fullmatch
    avoid = tuple(change(server) + "_" for change in engine.avoid)
    longest, reserved = sys.maxsize if room is None else room, dialect.reserved

    def accepts(name: str) -> bool:
        return 0 < len(name) <= longest and bool(legal(name)) and name not in reserved and not name.startswith(avoid)

    return NameContext(
        prefix=prefix,
        suffix=suffix,
        room=room,
        plain=plain,
        legal=legal,
        avoid=avoid,
        once=own if rules.once else "",
        problem=problem,
        accepts=_accept_none if problem else accepts,
    )


def _accept_none(_: str) -> bool:
    return False


def breaks(dialect: Dialect, server: str, name: str) -> bool:
    """Return whether a name breaks a *known* rule of the dialect; rules that are only assumed are not checked."""
    context = name_context(dialect, server)
    if not name or name in dialect.reserved:
        return True
    if "chars" not in dialect.unknown and not context.legal(name):
        return True
    return "max_length" not in dialect.unknown and context.room is not None and len(name) > context.room


def problems(dialect: Dialect, server: str, name: str) -> tuple[Reason, ...]:
    """Return everything that is wrong with a name: at most five reasons of each code, in linear time."""
    context = name_context(dialect, server)
    found = chain(
        _about_characters(dialect, name) if dialect.chars is not None else _about_print(name),
        _about_ends(dialect, name),
        _about_shape(dialect, name),
        _about_the_rest(dialect, context, name, server),
    )
    return tuple(found) if name else (Reason("empty", "it is empty"), *_about_server(context))


def _assumed(dialect: Dialect, field: str) -> str:
    return f" (assumed; {dialect.title}'s rule is not known)" if field in dialect.unknown else ""


def _unprintable(char: str, at: int) -> Reason:
    return Reason("control", f"U+{ord(char):04X} at {at} cannot be printed")


def _about_print(name: str) -> Iterator[Reason]:
    if name.isprintable():
        return
    places = ((char, at) for at, char in enumerate(name[:_HEAD]) if not char.isprintable())
    found = [_unprintable(char, at) for char, at in islice(places, _MOST)]
    yield from found or [Reason("control", f"a character after {_HEAD:,} others cannot be printed")]


def _about_characters(dialect: Dialect, name: str) -> Iterator[Reason]:
    chars = dialect.chars or frozenset()
    allowed, assumed = brackets(chars), _assumed(dialect, "chars")
    outside = re.compile(f"[^{_class(chars)[1:]}")
    for match in islice(outside.finditer(name), _MOST):
        char, at = match[0], match.start()
        if char.isprintable():
            yield Reason("character", f"{char!r} at {at} is not in {allowed}{assumed}")
        else:
            yield _unprintable(char, at)


def _about_ends(dialect: Dialect, name: str) -> Iterator[Reason]:
    chars = dialect.chars
    if chars is None or dialect.first is None or dialect.last is None:
        return
    assumed = _assumed(dialect, "chars")
    if name[0] in chars and name[0] not in dialect.first:
        yield Reason("first", f"it begins with {name[0]!r}, not with {brackets(dialect.first)}{assumed}")
    if name[-1] in chars and name[-1] not in dialect.last:
        yield Reason("last", f"it ends with {name[-1]!r}, not with {brackets(dialect.last)}{assumed}")


def _about_shape(dialect: Dialect, name: str) -> Iterator[Reason]:
    if dialect.words in _RUNS:
        runs, mark = _RUNS[dialect.words]
        assumed = _assumed(dialect, "chars")
        for match in islice(re.finditer(runs, name), _MOST):
            yield Reason("shape", f"{match[0][:8]!r} at {match.start()} is more than one {mark}{assumed}")


def _about_the_rest(dialect: Dialect, context: NameContext, name: str, server: str) -> Iterator[Reason]:
    if context.room is not None and len(name) > context.room:
        assumed = _assumed(dialect, "max_length")
        where = (
            f" for the server key {excerpt(server)}"
            if "{server}" in dialect.mangling.join + dialect.mangling.measure
            else ""
        )
        yield Reason("length", f"it has {len(name):,} characters, {context.room} are allowed{where}{assumed}")
    if name in dialect.reserved:
        yield Reason("reserved", f"{excerpt(name)} is reserved by clients, providers or programming languages")
    if context.avoid and name.startswith(context.avoid):
        yield Reason("prefix", f"it begins with the server's own name {excerpt(server)}, which a client may remove")
    yield from _about_server(context)


def _about_server(context: NameContext) -> Iterator[Reason]:
    if context.problem:
        yield Reason("server", context.problem)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Dialect:
    """A row of the table of dialects; get one with ``truename.dialects.get("cursor")``.

    ``chars``, ``first``, ``last``: legal characters anywhere, at the start and at the end; None: any printable text.
    ``max_length``: the greatest length of a name as the model sees it (None: no limit known); ``room`` computes how
    much of it is left for the tool's own name. ``words``: ``snake`` if words are joined by single underscores,
    ``single-hyphens`` if the client collapses several hyphens, else ``keep``. ``max_tools``, ``case_sensitive``: None
    if unknown. ``unknown`` lists the fields whose values are unknown; they have the values of ``universal``.
    ``confidence``: ``run`` (the client was run) or ``read`` (its code, documentation or issues were read). ``lab``: the
    files in ``lab/results`` with the runs. ``client_info``, ``user_agents``: patterns that identify the client.

    ``runs``: the versions with which these rules were seen, oldest first, each with its day. ``release``: the client's
    version that was asked for, "" if none was; ``version`` and ``date`` are then those of the run that speaks for it,
    and ``confidence`` is ``read`` unless that version was run, or an older and a newer one that agree. ``client``: the
    name of the client's row; ``name`` differs from it only for rules that older versions had.
    """

    name: str
    kind: str
    title: str
    aliases: tuple[str, ...] = ()
    chars: frozenset[str] | None = None
    first: frozenset[str] | None = None
    last: frozenset[str] | None = None
    max_length: int | None = None
    reserved: frozenset[str] = frozenset()
    max_tools: int | None = None
    case_sensitive: bool | None = None
    words: str = "keep"
    unknown: tuple[str, ...] = ()
    client_info: tuple[str, ...] = ()
    user_agents: tuple[str, ...] = ()
    source: str = ""
    date: str = ""
    version: str = ""
    confidence: str = "read"
    lab: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    runs: tuple[ClientRun, ...] = ()
    release: str = ""
    mangling: NameTransformation = field(default_factory=NameTransformation)

    def __hash__(self) -> int:
        # Names are unique in the table; hashing all fields would cost more than the work it saves.
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Dialect({self.name!r})"

    @property
    def client(self) -> str:
        """The name of the client's row in the table, without a version."""
        return self.name.partition("@")[0]

    @property
    def unrun(self) -> str:
        """The sentence that the version which was asked for was not run, and what is used instead; "" if it was.

        >>> from truename.dialects import get
        >>> get("codex@99").unrun.startswith("Codex 99 was not run; the rules are those of ")
        True
        """
        if not self.release or self.confidence == "run":
            return ""
        if not self.runs:
            return f"{self.title} {self.release} was not run, nor was any other version; its rules were read."
        return f"{self.title} {self.release} was not run; the rules are those of {self.version}, run on {self.date}."

    @property
    def styles(self) -> tuple[str, ...]:
        """The preset styles whose names can be legal in this dialect, in the order of `STYLES`."""
        slashed = self.chars is None or self.chars.issuperset("@/.")
        doubled = self.chars is None or ("_" in self.chars and self.words != "snake")
        out = (() if slashed else ("canonical",)) + (() if doubled else tuple(_DOUBLE))
        return tuple(style for style in STYLES if style not in out)

    def room(self, server: str = DEFAULT_SERVER) -> int | None:
        """Return the greatest length of a name under this server key; None if no limit is known.

        >>> from truename.dialects import get
        >>> get("cursor").room("lab"), get("vscode").room("lab"), get("vscode").room("a_much_longer_key")
        (56, 46, 46)
        """
        return name_context(self, server).room

    def check(self, wire_name: str, server: str = DEFAULT_SERVER) -> tuple[Reason, ...]:
        """Return the reasons why a name is not legal; empty if it is.

        >>> from truename.dialects import get
        >>> get("anthropic").check("fs.list")
        (Reason(code='character', text="'.' at 2 is not in [a-zA-Z0-9_-]"),)
        >>> [reason.code for reason in get("openai").check("get_weather" + chr(10))]
        ['control']
        """
        return () if name_context(self, server).accepts(wire_name) else problems(self, server, wire_name)

    def shown(self, server: str, wire_name: str) -> str | None:
        """Return the name that the model sees for a tool of this server; None if the client omits the tool.

        >>> from truename.dialects import get
        >>> get("cline").shown("lab", "fs_list"), get("cline").shown("lab", "fs.list")
        ('lab__fs_list', 'lab__fs_list_110e0eb2')
        """
        text = self._transformed(server, wire_name)
        return text if text is None or not self.mangling.after else compile_transformation(self.mangling).after(text)

    def frame(self, server: str) -> tuple[str, str]:
        """Return what this client puts in front of, and behind, a name that it does not change otherwise."""
        context = name_context(self, server)
        return context.prefix, context.suffix

    def _transformed(self, server: str, wire_name: str) -> str | None:
        context = name_context(self, server)
        if (
            len(wire_name) <= context.plain
            and (context.room is None or len(wire_name) <= context.room)
            and wire_name
            and context.legal(wire_name)
            and wire_name not in self.reserved
            and not (context.once and wire_name.startswith(context.once))
        ):
            return context.prefix + wire_name + context.suffix
        return self._spelled(server, wire_name)

    def _spelled(self, server: str, wire_name: str) -> str | None:
        """Transform a name step by step, without the fast path for names that stay unchanged."""
        engine = compile_transformation(self.mangling)
        if engine.ignores(server) or engine.refuses(wire_name):
            return None
        return engine.finish(engine.spell(server, wire_name), self.known_length)

    @property
    def known_length(self) -> int | None:
        """``max_length`` if it is known for this dialect; None if it is assumed or there is no limit."""
        return None if "max_length" in self.unknown else self.max_length

    def simulate(self, server: str, wire_names: Iterable[str]) -> Simulation[str]:
        """Simulate how the client shows and calls one server's list of tools.

        >>> from truename.dialects import get
        >>> seen = get("gemini-cli").simulate("lab", ["a/b", "a_b"])
        >>> dict(seen.shown), seen.dropped, seen.winner("mcp_lab_a_b")
        ({'a_b': 'mcp_lab_a_b'}, ('a/b',), 'a_b')
        """
        return simulate_lists(self, [SimulatedTool(name, server, name) for name in wire_names])

    def simulate_all(self, servers: Iterable[tuple[str, Iterable[str]]]) -> Simulation[tuple[str, str]]:
        """Simulate how the client shows and calls the tools of several servers; the keys are (server, name).

        >>> from truename.dialects import get
        >>> seen = get("google-adk").simulate_all([("one", ["search"]), ("two", ["search"])])
        >>> dict(seen.reaches), seen.dropped
        ({'search': ('two', 'search')}, (('one', 'search'),))
        """
        entries = [SimulatedTool((key, name), key, name) for key, names in servers for name in names]
        return simulate_lists(self, entries)


@dataclass(frozen=True, slots=True)
class Simulation(Generic[K]):
    """The result of a simulation: the names that the model sees, and the tools that its calls run.

    Each listed name is in exactly one of three fields. ``shown`` maps it to the name that the model sees, and a call
    of that runs this tool. ``dropped``: omitted, lost in a merge, or shown under a name that runs another tool or none.
    ``refused``: makes the client or the provider fail. ``scope`` says how much fails: the ``tool``, the whole
    ``server`` or the ``request``; names that fail only because of others count as dropped.

    The other fields are by shown name. ``merged``: the listed names that became it, exact duplicates included.
    ``reaches``: the listed name that a call runs. ``seen``: the listed names whose descriptions the model sees with it,
    as far as that is certain; several if the client sends equal names.
    """

    shown: Mapping[K, str]
    dropped: tuple[K, ...]
    merged: Mapping[str, tuple[K, ...]]
    refused: tuple[K, ...]
    scope: str
    reaches: Mapping[str, K]
    seen: Mapping[str, tuple[K, ...]]

    def winner(self, shown_name: str) -> K | None:
        """Return the listed name that a call of ``shown_name`` runs; None if it runs none or that is uncertain."""
        return self.reaches.get(shown_name)


class SimulatedTool(NamedTuple, Generic[K]):
    """A listed tool: the key under which the simulation reports it, its server's key and its name."""

    key: K
    server: str
    name: str


class _SimulationState(Generic[K]):
    """The state of a running simulation; ``final`` holds the shown name of each entry by ``id(entry)``."""

    def __init__(self, dialect: Dialect, servers: Iterable[str]) -> None:
        self.dialect, self.engine, self.limit = dialect, compile_transformation(dialect.mangling), dialect.known_length
        self.parts = self.engine.parts(servers)
        self.taken: set[str] = set()
        self.final: dict[int, str] = {}
        self.reaches: dict[str, SimulatedTool[K]] = {}
        self.seen: dict[str, list[SimulatedTool[K]]] = {}
        self.refused: list[SimulatedTool[K]] = []
        self.scope = ""
        self.listed: Mapping[tuple[str, str], SimulatedTool[K]] = {}

    def spell(self, entry: SimulatedTool[K]) -> ClientSpelling:
        """Return the entry's name as the client joins it, before it is shortened."""
        return self.engine.spell(entry.server, entry.name, self.parts.get(entry.server))

    def text(self, entry: SimulatedTool[K]) -> str | None:
        """Return the name that the model sees, before clashes are resolved; None if the client leaves the tool out."""
        if self.engine.ignores(entry.server) or self.engine.refuses(entry.name):
            return None
        if entry.server in self.parts or self.dialect.mangling.after:
            return self.engine.finish(self.spell(entry), self.limit)
        return self.dialect.shown(entry.server, entry.name)

    def called(self, entry: SimulatedTool[K]) -> SimulatedTool[K] | None:
        """Return the tool that the server runs when the client calls this entry; None if it has none of that name."""
        return self.listed.get((entry.server, self.engine.sends(entry.name))) if self.listed else entry

    def assign(self, entry: SimulatedTool[K], text: str) -> None:
        self.taken.add(text)
        self.final[id(entry)] = text
        self.reaches[text] = entry
        self.seen[text] = [entry]

    def refuse(self, group: Iterable[SimulatedTool[K]], scope: str) -> None:
        self.refused.extend(group)
        self.scope = max(self.scope, scope, key=_SCOPES.index)

    def failed(self, entry: SimulatedTool[K]) -> bool:
        """Return whether the entry fails because of an entry that was refused."""
        if self.scope == "server":
            return entry.server in {one.server for one in self.refused}
        return self.scope == "request"


def simulate_lists(dialect: Dialect, entries: Sequence[SimulatedTool[K]]) -> Simulation[K]:
    """Simulate how the dialect's client or provider shows and calls these tools, listed in this order."""
    if dialect.mangling.several and len({entry.server for entry in entries}) > 1:
        dialect = replace(dialect, mangling=replace(dialect.mangling, join=dialect.mangling.several))
    rules = dialect.mangling
    state: _SimulationState[K] = _SimulationState(dialect, [entry.server for entry in entries])
    if rules.sends:
        state.listed = {(entry.server, entry.name): entry for entry in reversed(entries)}
    admitted = [entry for entry in entries if not _refused(dialect, entry, state)]
    distinct = _without_copies(rules.duplicate, admitted, state)
    if rules.joined:
        distinct = _one_of_each(rules.joined, distinct, lambda one: state.spell(one).raw)
    groups: dict[str, list[SimulatedTool[K]]] = {}
    for entry in distinct:
        text = None if state.failed(entry) else state.text(entry)
        if text is not None:
            groups.setdefault(text, []).append(entry)
    state.taken = set(groups)
    for text, group in groups.items():
        _resolve_group(_mode(dialect, group, state), text, group, state)
    if rules.twins:
        _resolve_twins(rules.twins, state)
    if rules.after:
        change, by_name = state.engine.after, sorted(state.reaches.values(), key=lambda one: (one.server, one.name))
        first = {change(state.final[id(entry)]): entry for entry in reversed(by_name)}
        state.reaches, state.seen = first, {text: [entry] for text, entry in first.items()}
        state.final = {key: change(text) for key, text in state.final.items()}
    return _result(entries, admitted, state)


def _resolve_twins(mode: str, state: _SimulationState[K]) -> None:
    alike: dict[str, list[str]] = {}
    for text in state.reaches:
        alike.setdefault(state.engine.alike(text), []).append(text)
    for texts in (texts for texts in alike.values() if len(texts) > 1):
        group = [state.reaches[text] for text in texts]
        if mode == "hash":
            _digest_later_twins(texts, state)
            continue
        if mode.startswith("refuse-"):
            state.refuse(group, mode.removeprefix("refuse-"))
        state.reaches.update(dict.fromkeys(texts, group[-1]))


def _digest_later_twins(texts: Sequence[str], state: _SimulationState[K]) -> None:
    for text in texts[1:]:
        entry = state.reaches.pop(text)
        del state.seen[text]
        tries = (state.engine.digested(state.spell(entry), state.limit, salt) for salt in count())
        state.assign(entry, _free(tries, state.taken))


def _refused(dialect: Dialect, entry: SimulatedTool[K], state: _SimulationState[K]) -> bool:
    scope = state.engine.refuses(entry.name)
    if dialect.mangling.ignored and state.engine.ignores(entry.server):
        scope = dialect.mangling.ignored
    if scope in ("", "drop") and dialect.mangling.illegal and breaks(dialect, entry.server, entry.name):
        scope = dialect.mangling.illegal
    if scope in ("", "drop"):
        return False
    state.refuse([entry], scope)
    return True


def _without_copies(mode: str, entries: list[SimulatedTool[K]], state: _SimulationState[K]) -> list[SimulatedTool[K]]:
    counts = Counter((entry.server, entry.name) for entry in entries)
    if mode in _RESPELL or len(counts) == len(entries):
        return entries
    if mode.startswith("refuse-"):
        state.refuse([one for one in entries if counts[one.server, one.name] > 1], mode.removeprefix("refuse-"))
        return [one for one in entries if counts[one.server, one.name] == 1]
    return _one_of_each(mode, entries, lambda one: (one.server, one.name))


def _one_of_each(
    mode: str, entries: list[SimulatedTool[K]], key: Callable[[SimulatedTool[K]], Hashable]
) -> list[SimulatedTool[K]]:
    order = entries[::-1] if mode.endswith("last") else entries
    kept = {id(one) for one in {key(one): one for one in reversed(order)}.values()}
    return [one for one in entries if id(one) in kept]


def _mode(dialect: Dialect, group: list[SimulatedTool[K]], state: _SimulationState[K]) -> str:
    rules = dialect.mangling
    if len({(entry.server, entry.name) for entry in group}) == 1:
        if len(group) > 1:
            return rules.duplicate
        return "same" if rules.equal == "same" else "first"
    if rules.cut and len({state.spell(entry).text for entry in group}) > 1:
        return rules.cut
    apart = len({entry.server for entry in group}) == len(group)
    return rules.across if apart and rules.across else rules.equal


def _resolve_group(mode: str, text: str, group: list[SimulatedTool[K]], state: _SimulationState[K]) -> None:
    if mode in _RESPELL:
        _RESPELL[mode](text, group, state)
        return
    state.final.update((id(entry), text) for entry in group)
    if mode.startswith("refuse-"):
        state.refuse(group, mode.removeprefix("refuse-"))
        return
    winner = _WINNER[mode](text, group)
    runs = state.called(winner) if winner is not None and state.engine.calls(text) else None
    if runs is not None:
        state.reaches[text] = runs
    state.seen[text] = group if mode in _ALL_SEEN else [one for one in (winner,) if one]


_WINNER: Mapping[str, Callable[[str, list[SimulatedTool[Any]]], SimulatedTool[Any] | None]] = {
    "both-first": lambda _, group: group[0],
    "both-last": lambda _, group: group[-1],
    "first": lambda _, group: group[0],
    "greatest": lambda _, group: max(group, key=lambda entry: (entry.server, entry.name)),
    "last": lambda _, group: group[-1],
    "race": lambda _text, _group: None,
    "same": lambda text, group: next((entry for entry in reversed(group) if entry.name == text), None),
    "unknown": lambda _text, _group: None,
}


def _free(spellings: Iterable[str], taken: set[str]) -> str:
    return next(text for text in spellings if text not in taken)


def _by_digest(_text: str, group: list[SimulatedTool[K]], state: _SimulationState[K]) -> None:
    for entry in sorted(group, key=lambda one: (one.server, one.name)):
        spelling = state.spell(entry)
        tries = (state.engine.digested(spelling, state.limit, salt) for salt in count())
        state.assign(entry, _free(tries, state.taken))


def _by_later_digests(text: str, group: list[SimulatedTool[K]], state: _SimulationState[K]) -> None:
    state.assign(group[0], text)
    _by_digest(text, group[1:], state)


def _by_number(text: str, group: list[SimulatedTool[K]], state: _SimulationState[K]) -> None:
    state.assign(group[0], text)
    for entry in group[1:]:
        spellings = (state.engine.whole(f"{text}_{number}") for number in count(2))
        state.assign(entry, _free(spellings, state.taken))


def _by_last_character(text: str, group: list[SimulatedTool[K]], state: _SimulationState[K]) -> None:
    state.assign(group[0], text)
    for entry in group[1:]:
        spellings = (text[: -len(str(number))] + str(number) for number in count(2))
        state.assign(entry, _free(spellings, state.taken))


def _by_prefix(text: str, group: list[SimulatedTool[K]], state: _SimulationState[K]) -> None:
    room = (state.limit or 0) - len(text)
    for entry in group:
        state.assign(entry, f"{entry.server[: room - 1]}_{text}" if room > 1 else text)


_RESPELL: Mapping[str, Callable[[str, list[SimulatedTool[Any]], _SimulationState[Any]], None]] = {
    "hash": _by_digest,
    "hash-later": _by_later_digests,
    "last-character": _by_last_character,
    "number": _by_number,
    "prefix": _by_prefix,
}


def _result(
    entries: Sequence[SimulatedTool[K]], admitted: list[SimulatedTool[K]], state: _SimulationState[K]
) -> Simulation[K]:
    alive = {text: one for text, one in state.reaches.items() if not state.failed(one)}
    reaches = {text: one.key for text, one in alive.items()}
    shown: dict[K, str] = {}
    for text, one in alive.items():
        if state.final.get(id(one)) == text:
            shown.setdefault(one.key, text)
    refused = dict.fromkeys(entry.key for entry in state.refused)
    return Simulation(
        shown=MappingProxyType({entry.key: shown[entry.key] for entry in entries if entry.key in shown}),
        dropped=tuple(dict.fromkeys(e.key for e in entries if e.key not in shown and e.key not in refused)),
        merged=MappingProxyType(_merged(admitted, state)),
        refused=tuple(refused),
        scope=state.scope,
        reaches=MappingProxyType(reaches),
        seen=MappingProxyType(_seen(state)),
    )


def _seen(state: _SimulationState[K]) -> dict[str, tuple[K, ...]]:
    alive = ((text, [one for one in group if not state.failed(one)]) for text, group in state.seen.items())
    return {text: tuple(dict.fromkeys(one.key for one in group)) for text, group in alive if group}


def _merged(admitted: list[SimulatedTool[K]], state: _SimulationState[K]) -> dict[str, tuple[K, ...]]:
    by_key = {entry.key: state.final[id(entry)] for entry in admitted if id(entry) in state.final}
    became: dict[str, list[K]] = {}
    for entry in admitted:
        text = state.final.get(id(entry), by_key.get(entry.key))
        if text is not None:
            became.setdefault(text, []).append(entry.key)
    return {text: tuple(keys) for text, keys in became.items() if len(keys) > 1}
