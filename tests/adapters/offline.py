"""Two real MCP servers with awkward names and a scripted model, all on loopback, for the adapters of frameworks."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.awkward import Answers, WebServer
from lab.model import ModelServer, Script, Step
from lab.model.approaches import approach
from truename import dialects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lab.model import Offered

LONG = "shared_prefix_of_a_very_long_name_" * 3
CLASHING = ("search", "fs.list", "has space", "天気取得", f"{LONG}one", f"{LONG}two")
NAMES: Mapping[str, tuple[str, ...]] = {"docs": (*CLASHING, "a/b", "a_b"), "crm": (*CLASHING, "getUserByID")}
# Bases of the marks in the descriptions, by which a test tells which tool the model was shown.
BASES = {"docs": 0, "crm": 100, "evil": 200}
EVERY = {(key, name) for key, names in NAMES.items() for name in names}
PROVIDERS = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")


@dataclass(frozen=True)
class Upstreams:
    """Running servers by key."""

    servers: Mapping[str, WebServer]

    @property
    def urls(self) -> dict[str, str]:
        return {key: server.url for key, server in self.servers.items()}

    @property
    def ran(self) -> list[tuple[str, str]]:
        """The calls that reached a server, by its key and its own name of the tool."""
        return [
            (key, received.message["params"]["name"])
            for key, server in self.servers.items()
            for received in server.answers.received
            if received.message.get("method") == "tools/call"
        ]


@contextmanager
def upstreams(*, modern: bool = False, **names: Sequence[str]) -> Iterator[Upstreams]:
    """Run a server for each key; both of `NAMES` if none is given. ``modern`` ones speak the stateless era too."""
    with ExitStack() as stack:
        yield Upstreams(
            {
                key: stack.enter_context(
                    WebServer(Answers(tuple(given), base=BASES[key], modern=modern, pause=lambda _: None))
                )
                for key, given in (names or NAMES).items()
            }
        )


def tool_of(tool: Offered) -> tuple[str, str]:
    """Return the server and the name of the tool that is offered, by the mark in its description."""
    assert tool.mark is not None
    key = max((key for key in BASES if BASES[key] < tool.mark), key=BASES.__getitem__)
    return key, NAMES.get(key, ("search",))[tool.mark - BASES[key] - 1]


@contextmanager
def model(planner: Callable[[Sequence[Offered]], Sequence[Step]], batch: int = 1) -> Iterator[ModelServer]:
    """Run a model that does what the planner says of the tools that it is offered."""
    with ModelServer(Script(approach("direct"), planner, batch)) as server:
        yield server


def call_every(offered: Sequence[Offered]) -> list[Step]:
    return [Step(name=tool.name, mark=tool.mark) for tool in offered]


def call_one(key: str, name: str, times: int = 1, **arguments: Any) -> Callable[[Sequence[Offered]], list[Step]]:
    """Call one tool, chosen by what it is, several times if wanted."""

    def plan(offered: Sequence[Offered]) -> list[Step]:
        (tool,) = [tool for tool in offered if tool_of(tool) == (key, name)]
        return [Step(name=tool.name, mark=tool.mark, arguments=arguments) for _ in range(times)]

    return plan


def call_named(name: str) -> Callable[[Sequence[Offered]], list[Step]]:
    return lambda _: [Step(name=name)]


def shown(server: ModelServer) -> dict[str, tuple[str, str]]:
    """Return the names that the model was shown in its first request, with their tools."""
    return {tool.name: tool_of(tool) for tool in server.requests[0].turn.tools}


def results(server: ModelServer) -> tuple[str, ...]:
    """Return what the model read of its calls."""
    return server.requests[-1].turn.results


def illegal(names: Sequence[str], *providers: str) -> list[str]:
    """Return the names that a provider would refuse (OpenAI, unless others are named)."""
    return [name for name in names if any(dialects.get(one).check(name) for one in providers or ("openai",))]
