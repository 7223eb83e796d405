"""A served gateway with its console, and browsers of people with each role."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.gateway.conftest import Lab, Raw
from truename.auth.inbound.static_tokens import StaticTokenStore, create_token
from truename.config.console import ConsoleAccess
from truename.console import console_routes
from truename.gateway import Gateway, listening
from truename.policy import read_policy
from truename.policy.principal_selector import PrincipalSelector

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

ACCESS = ConsoleAccess(
    viewer=PrincipalSelector(groups=("viewers",)),
    approver=PrincipalSelector(groups=("approvers",)),
    operator=PrincipalSelector(principals=("op",)),
)
PEOPLE = {"val": ("viewers",), "app": ("approvers",), "op": (), "nobody": ()}
ROLE_OF = {"val": "viewer", "app": "approver", "op": "operator", "nobody": None}
_CSRF = re.compile(r'name="csrf" value="([0-9a-f]{64})"')


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Browser:
    """A browser of one person: it keeps cookies, and says which page a form is from."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = httpx2.AsyncClient(base_url=address, follow_redirects=True, timeout=20.0)

    async def __aenter__(self) -> Browser:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        return await self._client.get(path, headers=headers)

    async def post(self, path: str, origin: str | None = None, **fields: str) -> httpx2.Response:
        headers = {"origin": origin or self.address}
        return await self._client.post(path, data=fields, headers=headers)

    async def csrf(self, path: str = "/console/servers") -> str:
        """Return the token of this session's forms."""
        found = _CSRF.search((await self.get(path)).text)
        return "" if found is None else found[1]

    @property
    def cookies(self) -> dict[str, str]:
        return dict(self._client.cookies)

    def forget(self, cookies: dict[str, str]) -> None:
        """Have these cookies and no others."""
        self._client.cookies.clear()
        for name, value in cookies.items():
            self._client.cookies.set(name, value, domain=str(self._client.base_url.host))


@dataclass(frozen=True)
class World:
    """A console that is served, and how people get in."""

    gateway: Gateway
    address: str
    tokens: dict[str, str]

    @asynccontextmanager
    async def browser(self, who: str = "") -> AsyncIterator[Browser]:
        """Give a browser; of somebody who has logged in, if anybody is named."""
        async with Browser(self.address) as browser:
            if who:
                answer = await browser.post("/console/login", token=self.tokens[who])
                assert answer.status_code in {200, 403}, answer.text
            yield browser


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@asynccontextmanager
async def serving(
    lab: Lab, *servers: Any, with_tokens: bool = True, replica_of: World | None = None, **settings: Any
) -> AsyncIterator[World]:
    """Serve a gateway whose state is in the lab's folder, with its console; one more on that state if there is one."""
    state = lab.folder / "state.db"
    tokens: dict[str, str] = {} if replica_of is None else replica_of.tokens
    if with_tokens and replica_of is None:
        with StaticTokenStore(state, {}) as store:
            for name, groups in PEOPLE.items():
                text, token = create_token(name, groups=groups, scopes=(), expires=None)
                store.add(token)
                tokens[name] = text
    more = {"console": ACCESS, "policy": read_policy({"default": "ask"}), "state": str(state), **settings}
    async with (
        lab.gateway(*(servers or (lab.normal("fs", "write", "read"),)), **more) as gateway,
        listening(gateway, more=partial(console_routes, gateway)) as address,
    ):
        yield World(gateway, address, tokens)


async def called(world: World, name: str, who: str = "val", **arguments: Any) -> str:
    """Call a tool as somebody, and return the text of the result."""
    async with httpx2.AsyncClient(timeout=20.0) as http:
        token = {"authorization": f"Bearer {world.tokens[who]}"} if world.tokens else {}
        params = {"name": name, "arguments": arguments}
        answer = (await Raw(http, world.address).post("tools/call", params, headers=token)).json()
        return json.dumps(answer)


_SESSION = re.compile(r"(__Host-)?truename-console-[\w-]{8}")


def sessions_in(cookies: Iterable[str]) -> list[str]:
    """Return the names of cookies that are sessions of a console."""
    return [name for name in cookies if _SESSION.fullmatch(name)]


_FORM = re.compile(r'<form method="post" action="([^"]+)"(.*?)</form>', re.DOTALL)
_FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


def forms(page: str) -> list[dict[str, str]]:
    """Return the forms of a page that decide something, each as its path and its hidden fields."""
    found = [(action, dict(_FIELD.findall(rest))) for action, rest in _FORM.findall(page)]
    return [{"path": action, **fields} for action, fields in found if not action.endswith("/logout")]
