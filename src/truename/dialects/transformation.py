"""Describe how a client transforms tool names, as data and as compiled functions."""

from __future__ import annotations

import hashlib
import keyword
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Step = tuple[Any, ...]

Steps = tuple[Step, ...]

Change = Callable[[str], str]

__all__ = ["ClientSpelling", "DigestSuffix", "NameTransformation", "compile_steps", "compile_transformation"]

_SNAKE = (
    (re.compile(r"([A-Z]+)([A-Z][a-z])"), r"\1_\2"),
    (re.compile(r"([a-z])([A-Z])"), r"\1_\2"),
    (re.compile(r"['\"]+"), ""),
    (re.compile(r"[^a-zA-Z0-9]+"), "_"),
)


def _snake(text: str) -> str:
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    for pattern, by in _SNAKE:
        text = pattern.sub(by, text)
    return text.lower().strip("_")


def _punycode(text: str) -> str:
    return text if text.isascii() else "xn--" + text.encode("punycode", "surrogatepass").decode("ascii")


def _lead(pattern: str, prefix: str) -> Change:
    starts = re.compile(pattern).match
    return lambda text: text if starts(text) else prefix + text


def _shorten(length: int, algorithm: str, digits: int, edges: str) -> Change:
    def change(text: str) -> str:
        if len(text) <= length:
            return text
        made = hashlib.new(algorithm, text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
        return f"{text[: length - digits - 1].rstrip(edges)}_{made.hexdigest()[:digits]}"

    return change


def _when(pattern: str, steps: Steps) -> Change:
    applies, change = re.compile(pattern).search, compile_steps(steps)
    return lambda text: change(text) if applies(text) else text


STEPS: Mapping[str, Callable[..., Change]] = {
    "cut": lambda length: lambda text: text[:length],
    "fallback": lambda word: lambda text: text or word,
    "keyword": lambda suffix: lambda text: text + suffix if keyword.iskeyword(text) else text,
    "lead": _lead,
    "lower": lambda: str.lower,
    "normal": lambda form: partial(unicodedata.normalize, form),
    "punycode": lambda: _punycode,
    "replace": lambda pattern, by: partial(re.compile(pattern).sub, by),
    "shorten": _shorten,
    "snake": lambda: _snake,
    "start": lambda prefix: lambda text: text if text.startswith(prefix) else prefix + text,
    "strip": lambda edges: lambda text: text.strip(edges),
    "when": _when,
}


def compile_steps(steps: Steps) -> Change:
    """Compile steps to one function that applies them in their order.

    >>> compile_steps((("replace", "[^a-z]", "_"), ("strip", "_")))("/a/b/")
    'a_b'
    >>> compile_steps((("snake",),))("getHTTPServer天")
    'get_http_server'
    """
    changes = [STEPS[name](*arguments) for name, *arguments in steps]

    def change(text: str) -> str:
        for one in changes:
            text = one(text)
        return text

    return change


# The cache size: a server's part is needed for each of its tools, a tool's part twice. The caches are small because
# hostile texts may be megabytes long.
_FEW = 4
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestSuffix:
    """The digest that a client appends to a name, and when: ``over`` (too long), ``lossy`` (changed), ``equal``.

    ``of`` is the template of the digested text, with ``{raw}`` (the parts joined, unchanged), ``{name}`` (after the
    changes), ``{server}`` and ``{tool}``. ``algorithm`` is one of hashlib's, or ``fnv1a-32`` over UTF-16 code units; a
    digest in a ``base`` other than 16 is padded with zeros to ``length``. ``keep`` is how many characters of the name
    stay before the ``mark`` and the digest; None: as many as fit. ``apart``: the server's part and the tool's are
    shortened before they are joined, so what joins them stays.
    """

    algorithm: str
    of: str
    length: int
    base: int = 16
    keep: int | None = None
    mark: str = "_"
    apart: bool = False
    strip: str = ""
    when: tuple[str, ...] = ("over",)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTransformation:
    """The rules by which one client transforms names. The defaults are those of a client that changes nothing.

    How a name is built and called:

    - ``join``: the template of the shown name; ``several``: the template if there are several servers (empty: ``join``)
    - ``part``: the source of the server's part, its ``key`` or its ``address``
    - ``server``, ``tool``, ``whole``: steps on the server's part, on the tool's part and on the joined name
    - ``measure``: the template of the text whose length is limited, if that is not the shown name
    - ``over``: how a name that is too long is shortened; ``digest``: the digest that is appended; ``room``: a fixed
      limit for the tool's name
    - ``once``: a tool's name that begins with the server's part gets no prefix; ``avoid``: steps that build a server's
      part that names must not begin with
    - ``ignores``: pattern of server keys that are never connected; ``ignored``: the scope that fails because of them
    - ``refuse``: patterns of a tool's part, each with the scope that fails (``drop``, ``tool``, ``server``,
      ``request``); ``illegal``: the scope that fails if a name breaks a known rule of the dialect
    - ``silent``: pattern of shown names that the client does not call
    - ``sends``: steps on a tool's own name in a call; the call runs the tool of this name on the same server

    Which tool wins:

    - ``equal``: if names became equal; ``duplicate``: if a server lists one name twice; ``across``: if names of
      different servers became equal (empty: as ``equal``; ``race``: the server that is ready first)
    - ``joined``: if names were equal once joined, before any other change; ``cut``: if names became equal only by
      shortening (both empty: as ``equal``)
    - ``keys``: the digest appended to the server's part if the keys of several servers became equal
    - ``alike``: steps after which the client takes different names for equal; ``twins``: the rule for these (``last``:
      a call of any of them runs the last one)
    - ``after``: steps on a name after all of the above; of names that become equal by them, the first in alphabetical
      order wins
    """

    join: str = "{tool}"
    several: str = ""
    part: str = "key"
    measure: str = ""
    server: Steps = ()
    tool: Steps = ()
    whole: Steps = ()
    once: bool = False
    avoid: tuple[Steps, ...] = ()
    ignores: str = ""
    ignored: str = ""
    refuse: tuple[tuple[str, str], ...] = ()
    illegal: str = ""
    over: str = "keep"
    digest: DigestSuffix | None = None
    room: int | None = None
    equal: str = "unknown"
    duplicate: str = "unknown"
    across: str = ""
    joined: str = ""
    cut: str = ""
    keys: DigestSuffix | None = None
    alike: Steps = ()
    twins: str = ""
    after: Steps = ()
    silent: str = ""
    sends: Steps = ()


class ClientSpelling(NamedTuple):
    """A joined name before it is shortened; ``size`` is the length of the measured text."""

    text: str
    size: int
    raw: str
    server: str
    tool: str
    listed: tuple[str, str]


class CompiledTransformation:
    """A :class:`NameTransformation` compiled to functions."""

    def __init__(self, rules: NameTransformation) -> None:
        self.rules = rules
        self.server = lru_cache(maxsize=_FEW)(compile_steps(rules.server))
        self.tool = lru_cache(maxsize=_FEW)(compile_steps(rules.tool))
        self.whole = compile_steps(rules.whole)
        self.alike = compile_steps(rules.alike)
        self.after = compile_steps(rules.after)
        self.sends = compile_steps(rules.sends)
        self._silent = re.compile(rules.silent) if rules.silent else None
        self.avoid = tuple(compile_steps(steps) for steps in rules.avoid)
        self._ignores = re.compile(rules.ignores).search if rules.ignores else None
        self._refuse = tuple((re.compile(pattern), scope) for pattern, scope in rules.refuse)

    def ignores(self, server: str) -> bool:
        """Return whether the client never connects a server with this key."""
        return bool(self._ignores and self._ignores(server))

    def calls(self, shown: str) -> bool:
        """Return whether the client calls a tool that is shown under this name."""
        return not (self._silent and self._silent.search(shown))

    def refuses(self, tool: str) -> str:
        """Return the scope that fails because of this tool's name; "" if none does."""
        part = self.tool(tool)
        return next((scope for pattern, scope in self._refuse if pattern.search(part)), "")

    def parts(self, servers: Iterable[str]) -> Mapping[str, str]:
        """Return the server parts with a digest, for servers whose keys became equal after the steps."""
        digest, by_part = self.rules.keys, dict[str, list[str]]()
        for server in dict.fromkeys(servers) if digest else ():
            by_part.setdefault(self.server(server), []).append(server)
        return {
            server: f"{part}_{_hex(digest, digest.of.format(server=server))}"
            for part, group in by_part.items()
            for server in group
            if digest and len(group) > 1
        }

    def spell(self, server: str, tool: str, own: str | None = None) -> ClientSpelling:
        """Join and change a name without shortening it; ``own`` is the server's part if already computed."""
        rules, part, own = self.rules, self.tool(tool), self.server(server) if own is None else own
        bare = rules.once and part.startswith(own)
        text = self.whole(part if bare else rules.join.format(server=own, tool=part))
        size = len(rules.measure.format(server=own, tool=part)) if rules.measure else len(text)
        raw = rules.join.format(server=server, tool=tool)
        return ClientSpelling(text, size, raw, own, part, (server, tool))

    def finish(self, spelling: ClientSpelling, limit: int | None) -> str | None:
        """Return the name that the client shows under this length limit; None if it omits the tool."""
        digest = self.rules.digest
        if digest and "lossy" in digest.when and spelling.text != spelling.raw:
            return self.digested(spelling, limit)
        if limit is None or spelling.size <= limit:
            return spelling.text
        return _OVER[self.rules.over](self, spelling, limit)

    def digested(self, spelling: ClientSpelling, limit: int | None, salt: int = 0) -> str:
        """Append the digest to a name; ``salt`` is the number of earlier attempts that were taken."""
        digest = self.rules.digest
        if digest is None:
            message = "this client adds no digest"
            raise ValueError(message)
        server, tool = spelling.listed
        source = digest.of.format(raw=spelling.raw, name=spelling.text, server=server, tool=tool)
        ending = digest.mark + _hex(digest, f"{source}\0{salt}" if salt else source)
        if digest.apart and limit is not None:
            # What joins the parts is counted as it is measured.
            room = limit - len(ending) - (spelling.size - len(spelling.server) - len(spelling.tool))
            own = spelling.server[: max(0, room)]
            return self.rules.join.format(server=own, tool=spelling.tool[: max(0, room - len(own))] + ending)
        keep = digest.keep
        if keep is None:
            spare = len(spelling.text) if limit is None else limit - (spelling.size - len(spelling.text))
            keep = max(0, spare - len(ending))
        return spelling.text[:keep].rstrip(digest.strip) + ending


def _fnv1a(source: str) -> int:
    value = 0x811C9DC5
    units = source.encode("utf-16-le", "surrogatepass")
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = ((value ^ (high << 8 | low)) * 0x01000193) & 0xFFFFFFFF
    return value


def _hex(digest: DigestSuffix, source: str) -> str:
    if digest.algorithm == "fnv1a-32":
        return _in_base(_fnv1a(source), digest.base).rjust(digest.length, "0")
    made = hashlib.new(digest.algorithm, source.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    return made.hexdigest()[: digest.length]


def _in_base(value: int, base: int) -> str:
    letters = ""
    while value:
        value, rest = divmod(value, base)
        letters = _DIGITS[rest] + letters
    return letters


def _middle(_engine: CompiledTransformation, spelling: ClientSpelling, limit: int) -> str:
    half = (limit - 3) // 2
    return f"{spelling.text[:half]}...{spelling.text[-half:]}"


def _shrink(_engine: CompiledTransformation, spelling: ClientSpelling, limit: int) -> str:
    room = limit - len(spelling.tool) - 1
    return f"{spelling.server[:room]}_{spelling.tool}" if room > 0 else spelling.tool


_OVER: Mapping[str, Callable[[CompiledTransformation, ClientSpelling, int], str | None]] = {
    "cut": lambda _, spelling, limit: spelling.text[: len(spelling.text) - (spelling.size - limit)],
    "drop": lambda _engine, _spelling, _limit: None,
    "hash": lambda engine, spelling, limit: engine.digested(spelling, limit),
    "keep": lambda _engine, spelling, _limit: spelling.text,
    "middle": _middle,
    "shrink": _shrink,
}


@lru_cache(maxsize=256)
def compile_transformation(rules: NameTransformation) -> CompiledTransformation:
    """Compile the rules of a transformation (cached).

    >>> raw = compile_transformation(NameTransformation(join="mcp_{server}_{tool}", over="middle"))
    >>> raw.finish(raw.spell("lab", "a" * 40 + "b" * 40), 63)
    'mcp_lab_aaaaaaaaaaaaaaaaaaaaaa...bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
    """
    return CompiledTransformation(rules)
