"""Match globs against tool ids: ``*`` matches any text, ``?`` one character, any other character itself."""

from __future__ import annotations

import re
from collections import defaultdict
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from truename.errors import InvalidToolId
from truename.identity import (
    MAX_ID_LENGTH,
    ToolId,
    component,
    dotted_component,
    is_candidate_key,
    lower_ascii,
    names_without_digest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.catalog.tool import Origin

__all__ = [
    "ById",
    "Globs",
    "Unfolded",
    "fits",
    "fits_all",
    "fits_id",
    "glob_error",
    "is_wild",
    "may_meet",
    "unfolded",
    "unmatched_globs",
    "unversioned",
]

_MOST: Final = 65_536


class Unfolded(NamedTuple):
    """The id that a tool would have without folding or digests; its parts need not be names of the grammar."""

    integration: str
    integration_version: int
    tool: str
    version: int
    suite: str | None = None

    def __str__(self) -> str:
        return f"{self.integration}@{self.integration_version}/{self.tool}@{self.version}"

    @property
    def id(self) -> ToolId | None:
        """The same id as a `ToolId`; None if a part is not a name of the grammar."""
        try:
            return ToolId.parse(str(self))
        except InvalidToolId:
            return None


@lru_cache(maxsize=_MOST)
def unfolded(id: ToolId, origin: Origin) -> tuple[Unfolded, ...]:
    """Return the ids that a tool would have without digests and folding, except its own; most tools have none.

    Access rules that name such an id must apply to the tool too. An id that was not derived from the tool's origin
    (declared by the operator, for example) has no such forms.

    >>> from truename import Catalog
    >>> catalog = Catalog.from_mcp({"alpha": ["Danger", "danger", "drop table"]})
    >>> for tool in catalog.values():
    ...     print(tool.id.short, [str(one) for one in unfolded(tool.id, tool.origin)])
    alpha/danger-8412c070 ['alpha@1/danger@1']
    alpha/danger []
    alpha/drop-table-a94e7494 ['alpha@1/drop table@1', 'alpha@1/drop-table@1']
    """
    own = f"{id.suite}.{id.tool}" if id.suite else id.tool
    integrations, tools = {id.integration, *_integrations(id, origin)}, {own, *_tools(id, origin.name)}
    found = {Unfolded(left, id.integration_version, right, id.version) for left in integrations for right in tools}
    return tuple(sorted(found - {Unfolded(id.integration, id.integration_version, own, id.version)}, key=str))


def _integrations(id: ToolId, origin: Origin) -> set[str]:
    if not is_candidate_key(id.integration, component(origin.server_id).name, origin.server_id):
        return set()
    # The second server with one label is meant by the label too.
    return {name for key in (origin.server_id, origin.server) for name in names_without_digest(key)}


def _tools(id: ToolId, name: str) -> set[str]:
    part = dotted_component(name)
    if id.suite != part.suite or not is_candidate_key(id.tool, part.name, name):
        return set()
    return set(names_without_digest(name)) if part.lossy else {f"{part.suite}.{part.name}" if part.suite else part.name}


Entry = TypeVar("Entry")

_NAME: Final = r"[a-z0-9_.*?-]+"
_VERSION: Final = r"(?:@(?:[1-9][0-9]{0,17}|\*))?"
_WILD: Final = re.compile(r"[*?]")
_STARS: Final = re.compile(r"\*{2,}")
_LEGAL: Final = re.compile(rf"\*|{_NAME}{_VERSION}/{_NAME}{_VERSION}")


def glob_error(glob: str) -> str:
    """Return the error of a glob on ids, "" if it is valid; a glob that cannot match any id is an error.

    >>> glob_error("github/*"), glob_error("delete_*")
    ('', "it has no '/' between integration and tool")
    """
    if len(glob) > MAX_ID_LENGTH:
        return f"it is longer than {MAX_ID_LENGTH} characters"
    if _LEGAL.fullmatch(lower_ascii(glob)):
        return ""
    return "it cannot match any tool id" if "/" in glob else "it has no '/' between integration and tool"


def fits_id(glob: str, id: ToolId | Unfolded) -> bool:
    """Return whether a glob matches an id.

    >>> from truename import ToolId
    >>> fits_id("GitHub/push", ToolId.parse("github@2/push@3")), fits_id("github/push@1", ToolId.parse("github/push@3"))
    (True, False)
    """
    left, slash, right = lower_ascii(glob).partition("/")
    if not slash:
        return left == "*"
    tool = f"{id.suite}.{id.tool}" if id.suite else id.tool
    return _fits_part(left, id.integration, id.integration_version) and _fits_part(right, tool, id.version)


def is_wild(glob: str) -> bool:
    """Return whether a glob has wildcards."""
    return _WILD.search(glob) is not None


def may_meet(one: str, other: str) -> bool:
    """Return whether an id exists that both globs match.

    >>> may_meet("github/*", "*/search"), may_meet("github/get_*", "git*/list_*"), may_meet("git@2/*", "git/push@1")
    (True, False, True)
    """
    return all(map(_meet, _parts(one), _parts(other)))


def unmatched_globs(globs: Iterable[str], ids: Iterable[ToolId | Unfolded]) -> tuple[str, ...]:
    """Return the globs that name an unknown tool by its id, or an unknown integration.

    A glob with wildcards for tools or integrations may be meant for future tools and is not reported.

    >>> from truename import ToolId
    >>> unmatched_globs(["git/psuh", "gti/*", "git/delete_*", "*/drop*", "git/push@1"], [ToolId.parse("git/push")])
    ('git/psuh', 'gti/*')
    """
    known: defaultdict[tuple[str, ...], list[ToolId | Unfolded]] = defaultdict(list)
    for id in ids:
        known[unversioned(str(id))].append(id)
    # An unfolded id contains the tool's own name, which may contain slashes.
    integrations = {parts[0] for parts in known}

    def matches(glob: str) -> bool:
        integration, *tool = unversioned(glob)
        if not tool or is_wild(integration):
            return True
        if is_wild(tool[0]):
            return integration in integrations
        return any(fits_id(glob, id) for id in known.get((integration, *tool), ()))

    return tuple(glob for glob in globs if not matches(glob))


def fits_all(glob: str) -> bool:
    """Return whether a glob matches every id.

    >>> fits_all("*"), fits_all("*@*/*"), fits_all("*/*_*")
    (True, True, False)
    """
    return not glob.strip("*?@/")


def fits(glob: str, text: str) -> bool:
    """Return whether a glob matches a text; case counts.

    >>> fits("docs*", "docs (old)"), fits("docs", "Docs")
    (True, False)
    """
    return _compiled(glob).fullmatch(text) is not None


class Globs:
    """An index of globs on texts: only globs whose literal prefix the text begins with are tried."""

    def __init__(self, globs: Iterable[str]) -> None:
        self._plain: set[str] = set()
        self._by_front: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for number, glob in enumerate(globs):
            front = _WILD.split(glob, 1)[0]
            if front == glob:
                self._plain.add(glob)
            else:
                self._by_front[front].append((number, glob))
        self._sizes = frozenset(map(len, self._by_front))

    def first(self, text: str) -> str:
        """Return the glob that matches a text, "" if none: the text itself if it is a glob, else the first pattern.

        >>> Globs(["ios_*", "*", "tap"]).first("ios_scroll"), Globs(["ios_*", "*", "tap"]).first("tap")
        ('ios_*', 'tap')
        """
        if text in self._plain:
            return text
        if not self._sizes:
            return ""
        near = (entry for size in self._sizes for entry in self._by_front.get(text[:size], ()))
        return next((glob for _, glob in sorted(near) if fits(glob, text)), "")


class ById(Generic[Entry]):
    """A table by ids and globs on ids, indexed: an entry with a plain id is found without trying all of them."""

    def __init__(self, table: Mapping[str, Entry]) -> None:
        self._exact: defaultdict[tuple[str, ...], list[tuple[str, Entry]]] = defaultdict(list)
        self._wild: list[tuple[str, Entry]] = []
        for glob, entry in table.items():
            (self._wild if is_wild(glob) else self._exact[unversioned(glob)]).append((glob, entry))

    def __bool__(self) -> bool:
        return bool(self._exact or self._wild)

    def about(self, id: ToolId | Unfolded) -> tuple[list[tuple[str, Entry]], list[tuple[str, Entry]]]:
        """Return the entries that name an id, and those whose glob matches it, each with its key, in table order."""
        exact = self._exact.get(unversioned(str(id)), ())
        named, globbed = ([one for one in some if fits_id(one[0], id)] for some in (exact, self._wild))
        return named, globbed


def unversioned(id: str) -> tuple[str, ...]:
    """Return the parts of an id, or of a glob, without versions: the integration and the tool."""
    return tuple(part.partition("@")[0] for part in lower_ascii(id).split("/"))


def _parts(glob: str) -> tuple[str, ...]:
    """Split a glob on ids into the globs on integration, its version, tool and its version."""
    left, slash, right = lower_ascii(glob).partition("/")
    halves = (half.partition("@") for half in (left, right if slash else "*"))
    return tuple(part for name, at, version in halves for part in (name, version if at else "*"))


def _meet(one: str, other: str) -> bool:
    """Return whether some text matches both globs.

    Runs the first glob over the second as an automaton: each bit of ``reached`` is a position in the second glob.
    """
    one, other = (_STARS.sub("*", glob) for glob in (one, other))
    places: defaultdict[str, int] = defaultdict(int)
    for at, char in enumerate(other):
        places[char] |= 1 << at
    stars, end = places["*"], 1 << len(other)
    reached = 1 | (stars & 1) << 1
    for char in one:
        if char == "*":
            # The star matches whatever the second glob continues with.
            reached = (end << 1) - (reached & -reached)
            continue
        taken = ~stars if char == "?" else places[char] | places["?"]
        reached = (reached & taken & (end - 1)) << 1 | (reached & stars)
        reached |= (reached & stars) << 1
    return bool(reached & end)


def _fits_part(glob: str, name: str, version: int) -> bool:
    return fits(glob, f"{name}@{version}" if "@" in glob else name)


@lru_cache(maxsize=4_096)
def _compiled(glob: str) -> re.Pattern[str]:
    # The patterns of `translate` never backtrack over a star, so a hostile name cannot make matching slow. "[" is
    # escaped, because it has no special meaning in these globs.
    return re.compile(translate(glob.replace("[", "[[]")))
