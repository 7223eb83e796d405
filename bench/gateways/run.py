"""One run: rounds of all set-ups, in each of them the gateways in turns, every figure written down as it is found."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.gateways.cases import Setup, Workload, needs
from bench.gateways.load import Order
from bench.gateways.peers import OURS
from bench.gateways.peers.base import Address, Peer, Place
from bench.gateways.probe import NotReady, Probe
from bench.gateways.processes import Process, free_port
from bench.gateways.servers import server_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bench.gateways.certificate import Certificate

__all__ = ["Block", "Run", "blocks"]

_ROOT: Final = Path(__file__).resolve().parents[2]
_SERVERS: Final = str(Path(__file__).with_name("servers.py"))
_SETTLE_SECONDS: Final = 0.3
_LOAD_ENDED: Final = '{"error": "the load ended"}'


@dataclass(frozen=True)
class Block:
    """What is measured between a start of one gateway and its end."""

    setup: Setup
    workloads: Sequence[Workload]
    peer: Peer
    round: int

    @property
    def is_tls(self) -> bool:
        """Whether the load speaks TLS."""
        return self.setup.tls_to_clients if self.peer.launch else self.setup.tls_to_servers

    def labels(self) -> dict[str, Any]:
        return {"gateway": self.peer.name, "setup": self.setup.name, "round": self.round}


def blocks(suite: Mapping[Setup, Sequence[Workload]], peers: Iterable[Peer], rounds: int) -> list[Block]:
    """Return what is measured in order: the gateways of a set-up one after the other, all of it in every round."""
    chosen = list(peers)
    return [
        Block(setup, workloads, peer, number)
        for number in range(rounds)
        for setup, workloads in suite.items()
        for peer in chosen
    ]


@dataclass(frozen=True)
class _Standing:
    """The servers, and the gateway in front of them; asked directly, they are both."""

    servers: Process
    servers_port: int
    gateway: Process
    port: int
    path: str
    headers: Mapping[str, str]


@dataclass
class Run:
    """What is measured with, and where it is written."""

    folder: Path
    certificate: Certificate
    # Where each gateway is installed; a text says why it is not.
    installed: Mapping[str, Path | str]
    seconds: float
    spans_port: int
    record: Callable[[dict[str, Any]], None]
    progress: Callable[[str], None]
    failures: list[str] = field(default_factory=list)
    _starts: int = 0

    def measure(self, block: Block) -> None:
        """Measure one gateway in one set-up, from its start to its end."""
        asked = []
        for workload in block.workloads:
            place = self.installed[block.peer.name]
            lacking = place if isinstance(place, str) else block.peer.reason_against(needs(block.setup, workload))
            if lacking:
                self._absent(block, workload, lacking)
            else:
                asked.append(workload)
        if not asked:
            return
        self._starts += 1
        # Two folders deep: LiteLLM imports from the second folder above the one in which it runs.
        folder = self.folder / "starts" / f"{self._starts}-{block.setup.name}-{block.peer.name}"
        folder.mkdir(parents=True)
        with ExitStack() as stack:
            about = f"round {block.round + 1}, {block.setup.name}, {block.peer.title}"
            try:
                self.progress(f"{about}: start")
                standing = self._start(stack, folder, block)
                for workload in asked:
                    self.progress(f"{about}: {workload}")
                    self._load(standing, block, workload)
                if block.peer.launch is not None:
                    resident = standing.gateway.usage().resident_bytes
                    self.record({"kind": "loaded", **block.labels(), "resident_bytes": resident})
            except NotReady as error:
                for workload in asked:
                    self._absent(block, workload, f"it did not start: {error}")
                self._fail(block, f"it did not start: {error}")

    def _start(self, stack: ExitStack, folder: Path, block: Block) -> _Standing:
        """Start servers and gateway, and wait for all tools. Raises `NotReady`."""
        setup, peer, port, servers_port = block.setup, block.peer, free_port(), free_port()
        tls = (str(self.certificate.certificate), str(self.certificate.key)) if setup.tls_to_servers else ()
        # Where the gateway starts its servers itself, this process answers only with lists of the same bytes.
        command = (sys.executable, "-I", _SERVERS, "http", str(servers_port), str(setup.servers), str(setup.tools_each))
        env = _environment({})
        servers = stack.enter_context(Process((*command, *tls), env=env, log=folder / "servers.log"))
        if peer.launch is None:
            standing = _Standing(servers, servers_port, servers, servers_port, f"/{server_key(0)}/mcp", {})
            self._wait(standing, block)
            return standing
        installed = self.installed[peer.name]
        assert isinstance(installed, Path)
        addresses = _addresses(setup, servers_port)
        place = Place(setup, addresses, port, folder, installed, self.certificate, self.spans_port)
        launch = peer.launch(place)
        began = time.monotonic()
        env = _environment(launch.env)
        gateway = stack.enter_context(Process(launch.command, env=env, log=folder / "gateway.log"))
        try:
            path = launch.path if launch.register is None else launch.register()
        except OSError as error:
            raise NotReady(f"its servers are not registered: {error}") from None
        standing = _Standing(servers, servers_port, gateway, port, path, launch.headers)
        first, ready = self._wait(standing, block)
        time.sleep(_SETTLE_SECONDS)
        usage = gateway.usage()
        found = {
            "first_answer_s": round(first - began, 3),
            "ready_s": round(ready - began, 3),
            "start_cpu_s": round(usage.seconds, 3),
            "resident_bytes": usage.resident_bytes,
        }
        self.record({"kind": "start", **block.labels(), **found})
        return standing

    def _wait(self, standing: _Standing, block: Block) -> tuple[float, float]:
        """Return when the first answer came, and when all tools were shown. Raises `NotReady`."""
        base = f"{'https' if block.is_tls else 'http'}://localhost:{standing.port}"
        trusted = str(self.certificate.certificate)
        probe = Probe(base, standing.path, standing.headers, trusted, standing.gateway)
        probe.first_answer()
        first = time.monotonic()
        probe.all_tools(block.peer.shows(block.setup))
        return first, time.monotonic()

    def _load(self, standing: _Standing, block: Block, workload: Workload) -> None:
        order = Order(
            kind=workload.kind,
            port=standing.port,
            path=standing.path,
            headers=dict(standing.headers),
            version=workload.version,
            connections=workload.connections,
            size=workload.size,
            tools=block.peer.shows(block.setup),
            seconds=self.seconds,
            trusted=str(self.certificate.certificate) if block.is_tls else "",
            direct_port=standing.servers_port,
            direct_trusted=str(self.certificate.certificate) if block.setup.tls_to_servers else "",
        )
        answer, spent, behind = self._ordered(order, standing)
        if "error" in answer:
            self._absent(block, workload, answer["error"])
            self._fail(block, f"{workload}: {answer['error']}")
            return
        done = max(1, answer["right"])
        figures = {
            "cpu_us": round(1e6 * spent / done, 2),
            "servers_cpu_us": round(1e6 * behind / done, 2),
            "load_cpu_us": round(1e6 * answer["load_seconds"] / done, 2),
            "calls_per_second": round(answer["right"] / answer["seconds"], 1),
        }
        self.record({"kind": "measured", **block.labels(), "workload": asdict(workload), **answer, **figures})
        if answer["wrong"] or answer["failed"]:
            counted = f"{answer['wrong']} wrong, {answer['failed']} failed"
            self._fail(block, f"{workload}: {counted}; the first: {answer['first_failure']}")

    def _ordered(self, order: Order, standing: _Standing) -> tuple[dict[str, Any], float, float]:
        """Return the load's tally, and the processor seconds of the gateway and of the servers meanwhile."""
        command = (sys.executable, "-m", "bench.gateways.load")
        paths = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH", ""))))
        env = {**os.environ, "PYTHONPATH": paths}
        with Process(command, env=env, log=self.folder / "load.log", has_pipes=True) as load:
            written, read = load.pipes
            written.write(json.dumps(asdict(order)) + "\n")
            written.flush()
            if (line := read.readline()) != "ready\n":
                return json.loads(line or _LOAD_ENDED), 0.0, 0.0
            before, behind_before = standing.gateway.usage(), standing.servers.usage()
            written.write("go\n")
            written.flush()
            answer = json.loads(read.readline() or _LOAD_ENDED)
            after, behind_after = standing.gateway.usage(), standing.servers.usage()
        behind = behind_after.servers_seconds - behind_before.servers_seconds
        if standing.gateway is standing.servers:
            return answer, behind, behind
        # What is asked over stdio runs below the gateway.
        behind += after.servers_seconds - before.servers_seconds
        return answer, after.seconds - before.seconds, behind

    def _absent(self, block: Block, workload: Workload, reason: str) -> None:
        self.record({"kind": "absent", **block.labels(), "workload": asdict(workload), "reason": reason})

    def _fail(self, block: Block, text: str) -> None:
        text = f"{block.peer.title}, {block.setup.name}: {text}"
        self.progress(text)
        if block.peer.name in OURS:
            self.failures.append(text)


def _addresses(setup: Setup, port: int) -> tuple[Address, ...]:
    keys = map(server_key, range(setup.servers))
    if setup.transport == "http":
        scheme = "https" if setup.tls_to_servers else "http"
        return tuple(Address(key, f"{scheme}://localhost:{port}/{key}/mcp") for key in keys)
    command = (sys.executable, "-I", _SERVERS, "stdio")
    return tuple(Address(key, command=(*command, key, str(setup.tools_each))) for key in keys)


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return what programs of other environments are started with: nothing of the project's own."""
    own = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {key: value for key, value in os.environ.items() if key not in own} | dict(more)
