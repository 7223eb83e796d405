"""The Dialect: what one provider, client, framework or specification accepts and does with names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from truename.dialects import simulation
from truename.dialects.legality import problems, seat
from truename.dialects.transformation import NameTransformation, machine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.dialects.legality import Reason
    from truename.dialects.simulation import Simulation

__all__ = ["DEFAULT_SERVER", "STYLES", "Dialect"]

DEFAULT_SERVER = "truename"
STYLES = ("prefixed", "on-conflict", "server-prefix", "canonical", "declared", "dotted-double")
_DOUBLE = frozenset({"server-prefix", "dotted-double"})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Dialect:
    """One row of the table, as a value; get one with ``truename.dialects.get("cursor")``.

    ``chars``, ``first``, ``last``: legal characters, anywhere, in front and at the end; None is any printable text.
    ``max_length``: characters of what is shown to the model (None: no limit is known to exist); ``room`` says how
    many of them a name may use. ``words``: ``snake`` if words are joined by single
    underscores, ``single-hyphens`` if the client makes several hyphens one, else ``keep``.
    ``max_tools``, ``case_sensitive``: None if nothing is known. ``unknown`` names the fields whose values are not
    known and therefore those of ``universal``. ``confidence``: ``run`` (the client was run) or ``read`` (its code,
    documents or issues); ``lab``: the files of ``lab/results`` that hold the runs. ``client_info``, ``user_agents``:
    patterns by which it is recognised.
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
    mangling: NameTransformation = field(default_factory=NameTransformation)

    def __hash__(self) -> int:
        # Names are unique in the table; hashing all fields would cost more than the work it saves.
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Dialect({self.name!r})"

    @property
    def styles(self) -> tuple[str, ...]:
        """Return the preset styles whose names can be legal here, in the house's order."""
        slashed = self.chars is None or self.chars.issuperset("@/.")
        doubled = self.chars is None or ("_" in self.chars and self.words != "snake")
        out = (() if slashed else ("canonical",)) + (() if doubled else tuple(_DOUBLE))
        return tuple(style for style in STYLES if style not in out)

    def room(self, server: str = DEFAULT_SERVER) -> int | None:
        """Return how many characters a name may have under this server key; None if no limit is known to exist.

        >>> from truename.dialects import get
        >>> get("cursor").room("lab"), get("vscode").room("lab"), get("vscode").room("a_much_longer_key")
        (56, 46, 46)
        """
        return seat(self, server).room

    def check(self, wire_name: str, server: str = DEFAULT_SERVER) -> tuple[Reason, ...]:
        """Return all that is wrong with a name, nothing if it is legal.

        >>> from truename.dialects import get
        >>> get("anthropic").check("fs.list")
        (Reason(code='character', text="'.' at 2 is not in [a-zA-Z0-9_-]"),)
        >>> [reason.code for reason in get("openai").check("get_weather" + chr(10))]
        ['control']
        """
        here = seat(self, server)
        if (
            (here.room is None or len(wire_name) <= here.room)
            and wire_name
            and here.legal(wire_name)
            and wire_name not in self.reserved
            and not (here.avoid and wire_name.startswith(here.avoid))
            and not here.problem
        ):
            return ()
        return problems(self, server, wire_name)

    def shown(self, server: str, wire_name: str) -> str | None:
        """Return what the model sees of a name listed by this server, None if the client leaves it out.

        >>> from truename.dialects import get
        >>> get("cline").shown("lab", "fs_list"), get("cline").shown("lab", "fs.list")
        ('lab__fs_list', 'lab__fs_list_110e0eb2')
        """
        text = self._settled(server, wire_name)
        return text if text is None or not self.mangling.after else machine(self.mangling).after(text)

    def _settled(self, server: str, wire_name: str) -> str | None:
        here = seat(self, server)
        if (
            len(wire_name) <= here.plain
            and (here.room is None or len(wire_name) <= here.room)
            and wire_name
            and here.legal(wire_name)
            and wire_name not in self.reserved
            and not (here.once and wire_name.startswith(here.once))
        ):
            return here.prefix + wire_name + here.suffix
        return self._spelled(server, wire_name)

    def _spelled(self, server: str, wire_name: str) -> str | None:
        engine = machine(self.mangling)
        if engine.ignores(server) or engine.refuses(wire_name):
            return None
        return engine.finish(engine.spell(server, wire_name), self.known_length)

    @property
    def known_length(self) -> int | None:
        """Return ``max_length`` if it is this dialect's own, None if it is assumed or there is none."""
        return None if "max_length" in self.unknown else self.max_length

    def simulate(self, server: str, wire_names: Iterable[str]) -> Simulation[str]:
        """Return what would become of one server's list of names.

        >>> from truename.dialects import get
        >>> seen = get("gemini-cli").simulate("lab", ["a/b", "a_b"])
        >>> dict(seen.shown), seen.dropped, seen.winner("mcp_lab_a_b")
        ({'a_b': 'mcp_lab_a_b'}, ('a/b',), 'a_b')
        """
        return simulation.run(self, [simulation.SimulatedTool(name, server, name) for name in wire_names])

    def simulate_all(self, servers: Iterable[tuple[str, Iterable[str]]]) -> Simulation[tuple[str, str]]:
        """Return what would become of the lists of several servers; the keys are (server, name).

        >>> from truename.dialects import get
        >>> seen = get("google-adk").simulate_all([("one", ["search"]), ("two", ["search"])])
        >>> dict(seen.reaches), seen.dropped
        ({'search': ('two', 'search')}, (('one', 'search'),))
        """
        entries = [simulation.SimulatedTool((key, name), key, name) for key, names in servers for name in names]
        return simulation.run(self, entries)
