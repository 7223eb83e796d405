"""The scenarios: which servers with which names stand before the client, and what the model then does."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, get_args

from lab.awkward import CONSTRUCTS, awkward_names, many_names
from lab.drawing import drawn
from lab.model import Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.model import Offered
    from lab.model.script import Planner

__all__ = [
    "DRAWN",
    "MODES",
    "PINNED",
    "SCENARIOS",
    "UNLISTED",
    "Mode",
    "Scenario",
    "Server",
    "parts",
    "planner",
    "scenario",
]

Mode = Literal["bare", "through", "only"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
_COMMON: Final = ("get_weather", "search", "list_items")
_RENAMED: Final = "get_weather"
# Of the 200 tools, the one that is listed and the one that is looked for.
PINNED: Final = "tool_001"
UNLISTED: Final = "tool_150"


@dataclass(frozen=True)
class Server:
    """One awkward server: its key in the client's configuration, and its tools."""

    key: str
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One situation.

    In mode ``bare`` the client has the servers themselves, ``through`` Truename's ``/mcp`` instead, ``only`` an
    entry for each, as `truename connect` writes it.
    ``search``: Truename's ``tool_search``; off, since names are what is looked at, but where the search itself is.
    ``batch``: how many calls the model makes in one turn, where the client takes several. ``modern``: the servers
    speak 2026-07-28.
    """

    name: str
    title: str
    servers: tuple[Server, ...]
    plan: Literal["sweep", "probes", "rename", "searched"] = "sweep"
    batch: int = 1
    modern: bool = False
    modes: tuple[Mode, ...] = MODES
    search: Literal["off", "auto"] = "off"


def _one(*names: str) -> tuple[Server, ...]:
    return (Server("lab", names),)


def _clashing(count: int) -> tuple[Server, ...]:
    return tuple(Server(f"server{number}", (*_COMMON, f"own_{number}")) for number in range(1, count + 1))


_KEYS: Final = (
    Server("My Server.io/x", ("get_weather", "a.b")),
    Server("with__dbl", ("get_weather",)),
    Server("UPPER-case", ("get_weather",)),
    Server("天気", ("get_weather",)),
    Server("a-very-long-server-name-of-exactly-46-characters", ("get_weather", "another_tool_of_thirty_chars_xx")),
    Server("claude.ai Foo  Bar", ("get_weather",)),
    Server("io.github.acme/tools", ("get_weather",)),
    Server("npm:@acme@2", ("get_weather",)),
)
_JOINS: Final = (
    Server("a", ("b__c", "b_c", "same")),
    Server("a__b", ("c", "same")),
    Server("a_b", ("c", "same")),
    Server("A", ("same",)),
)

SCENARIOS: Final = (
    Scenario(name="awkward", title="one server with every awkward name", servers=_one(*awkward_names())),
    Scenario(name="many", title="one server with 200 tools", servers=_one(*many_names(200)), batch=10),
    Scenario(
        name="searched",
        title="200 tools, of which Truename lists one and finds the others",
        servers=_one(*many_names(200)),
        plan="searched",
        modes=("through",),
        search="auto",
    ),
    Scenario(
        name="duplicates",
        title="one name twice in one list",
        servers=_one("get_weather", "same_name", "same_name", "other"),
    ),
    Scenario(name="keys", title="servers with awkward keys", servers=_KEYS),
    Scenario(name="joins", title="keys and names that join to one text", servers=_JOINS),
    Scenario(name="clashes-2", title="two servers with the same names", servers=_clashing(2)),
    Scenario(name="clashes-6", title="six servers with the same names", servers=_clashing(6)),
    Scenario(
        name="probes",
        title="names that the model gets wrong, and errors of the server",
        servers=_one("get_weather", "a/b", "err_jsonrpc", "err_iserror"),
        plan="probes",
        modes=("bare", "through"),
    ),
    Scenario(
        name="rename",
        title="a tool is renamed in mid-session",
        servers=_one(_RENAMED, "rename_now", "other"),
        plan="rename",
        modes=("bare", "through"),
    ),
    Scenario(
        name="modern",
        title="a server that speaks 2026-07-28 only",
        servers=_one("get_weather", "天気取得", "has space"),
        modern=True,
        modes=("bare",),
    ),
)
# Not one of those that every run has: each seed is another.
DRAWN: Final = "drawn"


def scenario(name: str) -> Scenario:
    """Return a scenario. Raises `LookupError`.

    ``awkward/dot`` is the awkward server with one construct's names, ``drawn/7`` the catalogues of seed 7, and
    ``drawn/7/2`` the second of them alone, under a harmless key.
    """
    whole, _, part = name.partition("/")
    if whole == DRAWN and part:
        return _drawn(name, *map(int, part.split("/")))
    found = next((one for one in SCENARIOS if one.name == whole), None)
    if found is None:
        raise LookupError(f"There is no scenario {name!r}. There are {', '.join(one.name for one in SCENARIOS)}.")
    if not part:
        return found
    names = next(construct.names for construct in CONSTRUCTS if construct.name == part)
    # A server alone with a name that the client refuses would look like a server that is not there.
    return replace(found, name=name, servers=_one(*dict.fromkeys(("plain_companion", *names))))


def _drawn(name: str, seed: int, alone: int | None = None) -> Scenario:
    servers = tuple(Server(key, names) for key, names in drawn(seed))
    if alone is not None:
        servers = _one(*servers[alone - 1].names)
    title = f"real catalogues, drawn with seed {seed}"
    return Scenario(name=name, title=title, servers=servers, modes=("bare", "through"))


def parts(name: str) -> tuple[str, ...]:
    """Return the scenarios that tell which name it is that takes all others along, if there are such."""
    if name == "awkward":
        return tuple(f"{name}/{construct.name}" for construct in CONSTRUCTS)
    if name.startswith(f"{DRAWN}/"):
        return tuple(f"{name}/{number}" for number in range(1, len(scenario(name).servers) + 1))
    return ()


def planner(scenario: Scenario, start: int = 0) -> Planner:
    """Return what the model does with the tools of a scenario; ``start`` leaves out the first probes."""
    if scenario.plan == "probes":
        return partial(_probes, start=start)
    return {"rename": _rename, "searched": _searched}.get(scenario.plan, _sweep)


def _sweep(offered: Sequence[Offered]) -> list[Step]:
    return [_call(tool) for tool in sorted(offered, key=lambda tool: tool.mark or 0)]


def _call(tool: Offered, probe: str | None = None) -> Step:
    return Step(name=tool.name, namespace=tool.namespace, mark=tool.mark, probe=probe)


def _rename(offered: Sequence[Offered]) -> list[Step]:
    steps = _sweep(offered)
    again = [replace(steps[0], probe="after-rename")] * 2 if steps and steps[0].mark == 1 else []
    return [*steps, *again]


def _searched(offered: Sequence[Offered]) -> list[Step]:
    """Call the tool that is listed, then those of Truename that lead to one that is not, then that one itself."""
    listed = next((tool for tool in offered if tool.mark == 1), None)
    if listed is None:
        return []

    def named(name: str, probe: str, /, **arguments: object) -> Step:
        shown = listed.name.replace(PINNED, name)
        return Step(name=shown, namespace=listed.namespace, probe=probe, arguments=arguments)

    return [
        _call(listed),
        named("search_tools", "search_tools", query=UNLISTED.replace("_", " ")),
        named("describe_tools", "describe_tools", names=[UNLISTED]),
        named("call_tool", "call_tool", name=UNLISTED, arguments={"q": "kNUMBER"}),
        named(UNLISTED, "its own name"),
    ]


def _probes(offered: Sequence[Offered], start: int) -> list[Step]:
    marked = {tool.mark: tool for tool in offered}
    # The tool with mark 1 is get_weather, 3 and 4 are those that fail.
    if 1 not in marked:
        return []
    tool = marked[1]
    errors = [
        _call(marked[mark], probe)
        for mark, probe in ((3, "error of JSON-RPC"), (4, "result with isError"))
        if mark in marked
    ]
    wrong = [
        Step(name=name, namespace=space, probe=probe)
        for probe, name, space in _wrong_names(tool.name, tool.namespace)
        if (name, space) != (tool.name, tool.namespace)
    ]
    return [*wrong, *errors][start:]


def _wrong_names(name: str, space: str | None) -> list[tuple[str, str, str | None]]:
    return [
        ("bare name", _RENAMED, None),
        ("other case", name.replace(_RENAMED, "Get_Weather"), space),
        ("dash for underscore", name.replace(_RENAMED, "get-weather"), space),
        ("functions. in front", f"functions.{name}", space),
        ("upstream's own name", "a/b", space),
        ("another server's prefix", "mcp__other__get_weather", None),
        ("namespace and name joined", f"{space or ''}__{name}".lstrip("_"), None),
        ("no such tool", "no_such_tool_xyz", space),
    ]


def spelled(found: Scenario) -> str:
    """Return a scenario's servers as JSON, to be read by people.

    >>> spelled(scenario("duplicates"))
    '{"lab": ["get_weather", "same_name", "same_name", "other"]}'
    """
    return json.dumps({server.key: server.names for server in found.servers}, ensure_ascii=False)
