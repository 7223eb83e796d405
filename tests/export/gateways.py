"""The gateways that are run: where each is installed, and how it is started in front of the replayed servers."""

from __future__ import annotations

import json
import re
import secrets
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.gateways.cases import Setup
from bench.gateways.certificate import Certificate
from bench.gateways.environments import PythonEnvironment
from bench.gateways.peers import contextforge
from bench.gateways.peers.base import Address, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["GATEWAYS", "RunningGateway", "StartedGateway", "TripPlace"]

_PROGRAMS: Final = Path(__file__).with_name("programs")
_START_SECONDS: Final = 120.0


@dataclass(frozen=True, kw_only=True)
class TripPlace:
    """What a gateway is started with: its environment, a folder, the servers' URLs, a port, an exported file.

    ``keys`` are the names that the export proposes for servers.
    """

    installed: Path
    folder: Path
    servers: Mapping[str, str]
    port: int
    exported: Path
    keys: Mapping[str, str] = field(default_factory=dict)

    def python(self, program: str, *words: str) -> tuple[str, ...]:
        """Return the command of a program in the gateway's environment."""
        return (str(self.installed / "bin" / "python"), str(_PROGRAMS / program), *words, str(self.port))


@dataclass(frozen=True, kw_only=True)
class StartedGateway:
    """How a gateway is started and reached: command, environment, MCP address, token, and what registers servers."""

    command: tuple[str, ...]
    url: str
    env: Mapping[str, str] = field(default_factory=dict)
    token: str = ""
    register: Callable[[], object] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers of clients."""
        return {"authorization": f"Bearer {self.token}"} if self.token else {}


@dataclass(frozen=True, kw_only=True)
class RunningGateway:
    """A gateway of a round trip; ``has_api``: names are set through its API after its start.

    Without an ``environment`` it runs in this one.
    """

    name: str
    to: str
    environment: PythonEnvironment | None
    start: Callable[[TripPlace], StartedGateway]
    at_a_time: int = 4
    has_api: bool = False


def _fastmcp(place: TripPlace) -> StartedGateway:
    command = place.python("fastmcp_proxy.py", str(place.exported))
    return StartedGateway(command=command, url=f"http://127.0.0.1:{place.port}/mcp")


def _fastmcp_run(place: TripPlace) -> StartedGateway:
    words = ("run", str(place.exported), "--transport", "http", "--port", str(place.port), "--no-banner")
    program = str(place.installed / "bin" / "fastmcp")
    return StartedGateway(command=(program, *words), url=f"http://127.0.0.1:{place.port}/mcp")


def _fastmcp_transform(place: TripPlace) -> StartedGateway:
    words = (str(place.folder / "mcp.json"), str(place.folder / "lists.json"), str(place.port))
    command = (sys.executable, str(_PROGRAMS / "fastmcp_transform.py"), *words)
    return StartedGateway(command=command, url=f"http://127.0.0.1:{place.port}/mcp")


def _litellm(place: TripPlace) -> StartedGateway:
    key, base = f"sk-{secrets.token_hex(16)}", f"http://127.0.0.1:{place.port}"
    config = place.folder / "litellm.yaml"
    # JSON is YAML.
    config.write_text(json.dumps({"model_list": [], "general_settings": {"master_key": key}}), "utf-8")

    def register() -> None:
        for name, url in place.servers.items():
            # It accepts no hyphen in a name.
            body = {"server_name": re.sub(r"\W", "_", name), "url": url, "transport": "http", "allow_all_keys": True}
            _post(f"{base}/v1/mcp/server", body, key)

    return StartedGateway(
        command=place.python("litellm_proxy.py", str(config)),
        url=f"{base}/mcp/",
        env={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "LITELLM_MASTER_KEY": key},
        token=key,
        register=register,
    )


def _post(url: str, body: Mapping[str, Any], token: str) -> None:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    until = time.monotonic() + _START_SECONDS
    while True:
        try:
            request = urllib.request.Request(url, json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                answer.read()
        except ConnectionError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        except urllib.error.URLError as error:
            if isinstance(error, urllib.error.HTTPError) or time.monotonic() > until:
                raise
            time.sleep(0.2)
        else:
            return


def _contextforge(place: TripPlace) -> StartedGateway:
    (peer,) = contextforge.PEERS
    assert peer.launch is not None
    launch = peer.launch(
        Place(
            setup=Setup("export"),
            servers=tuple(Address(place.keys.get(key, key), url) for key, url in place.servers.items()),
            port=place.port,
            folder=place.folder,
            installed=place.installed,
            certificate=Certificate(place.folder, place.folder),
            spans_port=0,
        )
    )
    return StartedGateway(
        command=launch.command,
        url=f"http://127.0.0.1:{place.port}/mcp/",
        env=launch.env,
        token=launch.headers["authorization"].removeprefix("Bearer "),
        register=launch.register,
    )


@dataclass(frozen=True)
class _AboveDependencies(PythonEnvironment):
    """A version whose own dependencies cannot all be installed: those of an earlier version, then the package alone."""

    def create(self, folder: Path) -> list[list[str]]:
        alone, *earlier = self.packages
        made = PythonEnvironment(tuple(earlier)).create(folder)
        return [*made, [*made[-1][: -len(earlier)], "--no-deps", alone]]


_FASTMCP: Final = PythonEnvironment(("fastmcp==4.2.3",))
# Its extra wants a package of database migrations that has not been published; without a database nothing uses it.
# It imports its database client before it reads what a user may see, and lists no tool if that fails.
_LITELLM: Final = _AboveDependencies(("litellm==1.109.1", "litellm[proxy]==1.108.7", "prisma==0.15.0"))
GATEWAYS: Final[dict[str, RunningGateway]] = {
    one.name: one
    for one in (
        RunningGateway(name="fastmcp", to="fastmcp", environment=_FASTMCP, start=_fastmcp),
        RunningGateway(name="fastmcp-run", to="fastmcp", environment=_FASTMCP, start=_fastmcp_run),
        # A transform gives whole names, as an export to LiteLLM does.
        RunningGateway(name="fastmcp-transform", to="litellm", environment=None, start=_fastmcp_transform),
        RunningGateway(name="litellm", to="litellm", environment=_LITELLM, start=_litellm, has_api=True),
        RunningGateway(
            name="contextforge",
            to="contextforge",
            environment=PythonEnvironment(("mcp-contextforge-gateway==1.0.7.post20260921",)),
            start=_contextforge,
            has_api=True,
        ),
    )
}
