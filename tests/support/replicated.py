"""A pytest plugin: each gateway that a test serves over HTTP is three replicas behind HAProxy.

``pytest -p tests.support.replicated tests/gateway``. State in memory becomes a file, which the replicas share; each
request of a client goes to the next of them. Gateways that are served over TLS, on a socket of the test's own, or with
a ledger of the test's own stay alone. What a test reads in its gateway's own objects is true of one of three.
"""

from __future__ import annotations

import re
import socket
import subprocess
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import anyio

import truename.gateway
from truename.gateway import Gateway
from truename.gateway.http import app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from truename.config import Config

_CONFIGURATION: Final = Path(__file__).parents[2] / "examples" / "replicas" / "haproxy.cfg"
_KEYWORDS: Final = WeakKeyDictionary[Gateway, dict[str, Any]]()
_INIT: Final = Gateway.__init__
_LISTENING: Final = app.listening
_STATE: Final = tempfile.TemporaryDirectory(prefix="truename-replicated-")
_NUMBERS: Final = iter(range(1_000_000))


def _init(self: Gateway, config: Config, **keywords: Any) -> None:
    if config.state_location().is_memory and keywords.get("ledger") is None:
        path = Path(_STATE.name) / f"{next(_NUMBERS)}.db"
        config = replace(config, settings=replace(config.settings, state=str(path)))
    _INIT(self, config, **keywords)
    _KEYWORDS[self] = keywords


@asynccontextmanager
async def _listening(
    gateway: Gateway, host: str = "127.0.0.1", port: int = 0, *, bound: socket.socket | None = None, **more: Any
) -> AsyncIterator[str]:
    keywords = _KEYWORDS[gateway]
    is_alone = bound is not None or port or host != "127.0.0.1" or keywords.get("ledger") is not None
    if is_alone or gateway.config.settings.tls_certificate is not None:
        async with _LISTENING(gateway, host, port, bound=bound, **more) as address:
            yield address
        return
    async with AsyncExitStack() as stack:
        gateways = [gateway]
        for _ in range(2):
            twin = Gateway(gateway.config, **keywords)
            gateways.append(await stack.enter_async_context(twin))
        addresses = [await stack.enter_async_context(_LISTENING(one, **more)) for one in gateways]
        yield await stack.enter_async_context(_balanced([urlsplit(address).netloc for address in addresses]))


@asynccontextmanager
async def _balanced(replicas: list[str]) -> AsyncIterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{found.getsockname()[1]}"
    # A test may have a gateway that is not ready.
    text = re.sub(r"default-server check .*", "default-server init-addr libc", _CONFIGURATION.read_text("utf-8"))
    for number, replica in enumerate(replicas, 1):
        text = text.replace(f'"${{REPLICA_{number}}}"', replica)
    path = Path(_STATE.name) / f"{next(_NUMBERS)}.cfg"
    path.write_text(text.replace('"${BALANCER}"', address), encoding="utf-8")
    program = await anyio.open_process(["haproxy", "-db", "-f", str(path)], stdout=subprocess.DEVNULL)
    try:
        with anyio.fail_after(10):
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


Gateway.__init__ = _init  # type: ignore[method-assign]
app.listening = _listening
truename.gateway.listening = _listening
