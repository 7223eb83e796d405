"""A pytest plugin: each gateway that a test serves over HTTP is three replicas behind HAProxy, on one PostgreSQL.

``pytest -p tests.support.replicated tests/gateway`` (`make replicas-suite`). State in memory becomes a scope of the
session's PostgreSQL server; a file that a test names stays one, which the replicas share. Each request of a client goes
to the next replica. What a test does to its gateway as an operator (`reload`, `drain`, `break_off`) is done to all
three; its events are those of the first. Programs behind `Lab.serving` are `single`: the replicas share one.

Gateways over TLS, on a socket of the test's own, with a ledger of the test's own, or that a test makes replicas itself
(`Lab.replica`) stay alone. `EXCUSED` names the tests that are about one process.
"""

from __future__ import annotations

import re
import socket
import subprocess
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, WeakSet

import anyio
import psycopg
import pytest

import truename.gateway
from tests.support.state_places import new_url, shared_server
from truename.config import Config, ServerConfig, Settings
from truename.gateway import Gateway, ProgramSharing
from truename.gateway.http import app
from truename.storage import StateLocation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from truename.gateway.reloading import Reloaded

EXCUSED: Final[Mapping[str, tuple[str, ...]]] = {}
"""The tests that cannot be of replicas, by the reason: the file without its beginning ``test_``, and the test."""

_CONFIGURATION: Final = Path(__file__).parents[2] / "examples" / "replicas" / "haproxy.cfg"
_PATIENCE: Final = 10.0
_KEYWORDS: Final = WeakKeyDictionary[Gateway, dict[str, Any]]()
_TWINS: Final = WeakKeyDictionary[Gateway, list[Gateway]]()
_SHARING: Final = WeakSet[Gateway]()
_ONE: Final = ContextVar("one", default=False)
_INIT: Final = Gateway.__init__
_RELOAD: Final = Gateway.reload
_DRAIN: Final = Gateway.drain
_BREAK_OFF: Final = Gateway.break_off
_UNFINISHED: Final = Gateway.unfinished
_SETTLE: Final = Gateway.settle
_LISTENING: Final = app.listening
_FILES: Final = tempfile.TemporaryDirectory(prefix="truename-replicated-")
_NUMBERS: Final = iter(range(1_000_000))
# The scopes of the test that runs. An audit log belongs to one state: whoever writes it on has that.
_scopes: Final = dict[str | None, list[str]]()


def _shared(config: Config, ledger: object = None) -> Config:
    """Return a configuration whose state outlives a gateway, where it is in memory."""
    if not config.state_location().is_memory or ledger is not None:
        return config
    urls = _scopes.setdefault(config.settings.audit.path, [])
    if config.settings.audit.path is None or not urls:
        urls.append(new_url())
    return replace(config, settings=replace(config.settings, state=urls[-1]))


def _init(self: Gateway, config: Config, **keywords: Any) -> None:
    config = _shared(config, keywords.get("ledger"))
    _INIT(self, config, **keywords)
    _KEYWORDS[self] = keywords


async def _reload(self: Gateway, config: Config) -> Reloaded:
    if self._ledger is None and config.state_location().is_memory:
        config = replace(config, settings=replace(config.settings, state=self.config.settings.state))
    changed = await _RELOAD(self, config)
    for twin in _TWINS.get(self, ()):
        await _RELOAD(twin, config)
    return changed


async def _drain(self: Gateway, timeout: float | None = None) -> bool:
    outcomes: list[bool] = []

    async def drain(gateway: Gateway) -> None:
        _ONE.set(True)
        outcomes.append(await _DRAIN(gateway, timeout))

    async with anyio.create_task_group() as tasks:
        for gateway in (self, *_TWINS.get(self, ())):
            tasks.start_soon(drain, gateway)
    return all(outcomes)


async def _break_off(self: Gateway) -> None:
    async with anyio.create_task_group() as tasks:
        for gateway in (self, *_TWINS.get(self, ())):
            tasks.start_soon(_BREAK_OFF, gateway)


async def _settle(self: Gateway) -> None:
    for gateway in (self, *_TWINS.get(self, ())):
        await _SETTLE(gateway)


def _unfinished(self: Gateway) -> int:
    own: int = _UNFINISHED.fget(self)  # type: ignore[attr-defined]  # a property
    return own if _ONE.get() else own + sum(map(_unfinished, _TWINS.get(self, ())))


@asynccontextmanager
async def _listening(
    gateway: Gateway, host: str = "127.0.0.1", port: int = 0, *, bound: socket.socket | None = None, **more: Any
) -> AsyncIterator[str]:
    keywords, settings = _KEYWORDS[gateway], gateway.config.settings
    is_alone = bound is not None or host != "127.0.0.1" or keywords.get("ledger") is not None
    is_alone |= settings.tls_certificate is not None or ("sharing" in keywords and gateway not in _SHARING)
    if is_alone or (port and await _accepts(f"{host}:{port}")):
        async with _LISTENING(gateway, host, port, bound=bound, **more) as address:
            yield address
        return
    keywords = {key: value for key, value in keywords.items() if key != "on_event"}
    gateways = [gateway]
    async with AsyncExitStack() as stack:
        addresses = [await stack.enter_async_context(_LISTENING(gateway, **more))]
        for _ in range(2):
            if "sharing" in keywords:
                keywords["sharing"] = ProgramSharing()
            twin = await stack.enter_async_context(Gateway(gateway.config, **keywords))
            gateways.append(twin)
            addresses.append(await stack.enter_async_context(_LISTENING(twin, **more)))
        for twin in gateways[1:]:
            await twin.joined()
        _TWINS[gateway] = gateways[1:]
        stack.callback(_TWINS.pop, gateway)
        yield await stack.enter_async_context(_balanced([urlsplit(address).netloc for address in addresses], port))


@asynccontextmanager
async def _balanced(replicas: list[str], port: int) -> AsyncIterator[str]:
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(("127.0.0.1", port))
        address = f"127.0.0.1:{found.getsockname()[1]}"
    # A test may have a gateway that is not ready.
    text = re.sub(r"default-server check .*", "default-server init-addr libc", _CONFIGURATION.read_text("utf-8"))
    for number, replica in enumerate(replicas, 1):
        text = text.replace(f'"${{REPLICA_{number}}}"', replica)
    path = Path(_FILES.name) / f"{next(_NUMBERS)}.cfg"
    path.write_text(text.replace('"${BALANCER}"', address), encoding="utf-8")
    program = await anyio.open_process(["haproxy", "-db", "-f", str(path)], stdout=subprocess.DEVNULL)
    try:
        with anyio.fail_after(_PATIENCE):
            while not await _accepts(address):
                await anyio.sleep(0.01)
        yield f"http://{address}"
    finally:
        program.kill()
        with anyio.CancelScope(shield=True):
            await program.aclose()


async def _accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        async with await anyio.connect_tcp(host, int(port)):
            return True
    except OSError:
        return False


@asynccontextmanager
async def _serving(self: Any, *servers: ServerConfig, **settings: Any) -> AsyncIterator[str]:
    """Serve replicas that share the programs which all clients share (`Lab.serving`)."""
    is_program = [server.url is None and server.isolation == "shared" for server in servers]
    if self.tls or not any(is_program):
        async with self.gateway(*servers, **settings) as gateway, _listening(gateway) as address:
            yield address
        return
    servers = tuple(
        replace(server, instances="single") if is_one else server
        for server, is_one in zip(servers, is_program, strict=True)
    )
    config = Config(servers=servers, settings=Settings(**{"startup_timeout": 20.0, **self.tls, **settings}))
    gateway = Gateway(config, on_event=self.observe, sharing=ProgramSharing(), is_early=True)
    _SHARING.add(gateway)
    async with gateway, _listening(gateway) as address:
        await gateway.joined()
        await gateway.settle()
        yield address


def _placed(self: Any, _: Path) -> None:
    """Have an operator look at a database of the server (`Office`)."""
    _scopes.setdefault(None, []).append(new_url())
    self.place = StateLocation.of(_scopes[None][-1])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is excused. Raises `pytest.UsageError` for an excuse of a test that does not exist."""
    from tests.gateway.conftest import Lab  # noqa: PLC0415 - pytest imports it first
    from tests.gateway.office import Office  # noqa: PLC0415 - as above

    Lab.serving = _serving  # type: ignore[method-assign]
    Office.__init__ = _placed  # type: ignore[method-assign]
    found = {_name(item): item.nodeid for item in items}
    files = {name.partition("::")[0] for name in found}
    excused = {test: reason for reason, tests in EXCUSED.items() for test in tests}
    unknown = [test for test in excused if test.partition("::")[0] in files and test not in found]
    if unknown and not any("::" in argument for argument in items[0].config.args):
        message = f"EXCUSED names tests that there are not: {', '.join(unknown)}"
        raise pytest.UsageError(message)
    for item in items:
        for test in (_name(item), item.nodeid.rpartition("/test_")[2].replace(".py::test_", "::", 1)):
            if test in excused:
                item.add_marker(pytest.mark.skip(reason=excused[test]))


def _name(item: pytest.Item) -> str:
    return item.nodeid.rpartition("/test_")[2].replace(".py::test_", "::", 1).partition("[")[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Remove the scopes of the test: tens of thousands of tables make a server slow."""
    try:
        return (yield)
    finally:
        urls = [url for scopes in _scopes.values() for url in scopes]
        _scopes.clear()
        if urls:
            with psycopg.connect(shared_server().url, autocommit=True) as data:
                for url in urls:
                    data.execute(f"DROP SCHEMA IF EXISTS truename_{StateLocation.of(url).scope} CASCADE".encode())


Gateway.__init__ = _init  # type: ignore[method-assign]
Gateway.reload = _reload  # type: ignore[method-assign]
Gateway.drain = _drain  # type: ignore[method-assign]
Gateway.break_off = _break_off  # type: ignore[method-assign]
Gateway.settle = _settle  # type: ignore[method-assign]
Gateway.unfinished = property(_unfinished)  # type: ignore[assignment,method-assign]
app.listening = _listening
truename.gateway.listening = _listening
