"""The gateways that are run: where each is installed, and how it is started in front of the replayed servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.gateways.environments import PythonEnvironment

__all__ = ["GATEWAYS", "RunningGateway", "StartedGateway"]

_PROGRAMS: Final = Path(__file__).with_name("programs")


@dataclass(frozen=True, kw_only=True)
class StartedGateway:
    """How a gateway is started and reached: its command, environment, MCP address, and the headers of clients."""

    command: tuple[str, ...]
    url: str
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunningGateway:
    """A gateway of a round trip.

    ``start`` gets the folder of its environment, the file that `truename export` has written, and a port.
    """

    name: str
    to: str
    environment: PythonEnvironment | None
    start: Callable[[Path, Path, int], StartedGateway]
    at_a_time: int = 4


def _fastmcp(folder: Path, exported: Path, port: int) -> StartedGateway:
    command = (str(folder / "bin" / "python"), str(_PROGRAMS / "fastmcp_proxy.py"), str(exported), str(port))
    return StartedGateway(command=command, url=f"http://127.0.0.1:{port}/mcp")


def _fastmcp_run(folder: Path, exported: Path, port: int) -> StartedGateway:
    words = ("run", str(exported), "--transport", "http", "--port", str(port), "--no-banner")
    return StartedGateway(command=(str(folder / "bin" / "fastmcp"), *words), url=f"http://127.0.0.1:{port}/mcp")


_FASTMCP: Final = PythonEnvironment(("fastmcp==4.2.3",))
GATEWAYS: Final[dict[str, RunningGateway]] = {
    one.name: one
    for one in (
        RunningGateway(name="fastmcp", to="fastmcp", environment=_FASTMCP, start=_fastmcp),
        RunningGateway(name="fastmcp-run", to="fastmcp", environment=_FASTMCP, start=_fastmcp_run),
    )
}
