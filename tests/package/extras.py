"""Each extra in an environment of its own: what it is for starts there."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from tests.package.commands import expect, fail, say
from tests.package.environments import install, surroundings
from tests.package.serving import BEARER, SERVER, TOKEN, ask, call, serving
from tests.support.postgresql_server import PostgresqlServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# A keyring of one entry, for a machine that has none.
_RING: Final = f"""
from keyring.backend import KeyringBackend


class Ring(KeyringBackend):
    priority = 1

    def get_password(self, service, username):
        return "{TOKEN}" if (service, username) == ("truename", "gateway") else None

    def set_password(self, service, username, password):
        raise NotImplementedError
"""


def _configure(folder: Path, python: Path, token: str = TOKEN, more: str = "") -> Path:
    server = folder / "server.py"
    server.write_text(SERVER, "utf-8")
    config = folder / "truename.toml"
    entry = f'[mcpServers.shop]\ncommand = "{python}"\nargs = ["{server}"]\n'
    config.write_text(f'token = "{token}"\n{more}\n{entry}', "utf-8")
    return config


def _gateway(folder: Path, python: Path) -> None:
    config = _configure(folder, python)
    with serving(python.with_name("truename"), config, env=surroundings(folder)) as port:
        expect("42", call(port), "what a tool returns through the gateway")


def _console(folder: Path, python: Path) -> None:
    config = _configure(folder, python)
    with serving(python.with_name("truename"), config, "--console", env=surroundings(folder)) as port:
        for path, words in (("/console", "<html"), ("/console/static/htmx.min.js", "htmx")):
            status, _, text = ask(port, path)
            expect((200, True), (status, words in text), f"{path} of the console")


def _keyring(folder: Path, python: Path) -> None:
    (folder / "one_entry.py").write_text(_RING, "utf-8")
    env = surroundings(folder, PYTHON_KEYRING_BACKEND="one_entry.Ring", PYTHONPATH=str(folder))
    config = _configure(folder, python, token="${keyring:truename/gateway}")
    with serving(python.with_name("truename"), config, env=env) as port:
        expect("42", call(port), "what a tool returns to whoever has the token of the keyring")


def _postgres(folder: Path, python: Path) -> None:
    with ExitStack() as stack:
        server = PostgresqlServer(folder / "pg")
        server.create()
        stack.callback(server.remove)
        server.start()
        stack.callback(server.stop)
        config, options = _configure(folder, python), ("--state", server.url)
        with serving(python.with_name("truename"), config, *options, env=surroundings(folder)) as port:
            expect("42", call(port), "what a tool returns through a gateway whose state is in PostgreSQL")


def _telemetry(folder: Path, python: Path) -> None:
    config = _configure(folder, python, more="[telemetry]\nmetrics = true")
    with serving(python.with_name("truename"), config, env=surroundings(folder)) as port:
        expect("42", call(port), "what a tool returns through a gateway that counts")
        status, _, text = ask(port, "/metrics", **BEARER)
        expect((200, True), (status, "truename_calls_total{" in text), "/metrics")


def _search(folder: Path, python: Path) -> None:
    config = _configure(folder, python, more='search_ranking = "both"')
    with serving(python.with_name("truename"), config, env=surroundings(folder)) as port:
        expect("42", call(port), "what a tool returns through a gateway that searches by meaning")


# What is installed, and the feature that has to start there.
_EXTRAS: Final[dict[str, tuple[str, Callable[[Path, Path], None]]]] = {
    "gateway": ("gateway", _gateway),
    "console": ("console", _console),
    "keyring": ("gateway,keyring", _keyring),
    "postgres": ("gateway,postgres", _postgres),
    "search": ("search", _search),
    "telemetry": ("gateway,telemetry", _telemetry),
}


def check_extras(place: Path, wheel: Path, declared: set[str], python: str = sys.executable) -> None:
    """Install each extra of the wheel alone, and start what it is for."""
    if declared != {*_EXTRAS}:
        fail(f"extras that nothing tries, or that there are no more: {declared ^ {*_EXTRAS}}")
    for extra, (installed, use) in _EXTRAS.items():
        folder = place / extra
        here = install(folder / "env", f"truename[{installed}] @ {wheel.as_uri()}", python)
        use(folder, here)
        say(f"ok: {extra}")
