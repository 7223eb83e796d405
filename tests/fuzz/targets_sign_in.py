"""Sign-in and logins: what strangers ask of the pages, what providers answer, and what comes back to a login.

Nobody is sent to where no client registered, no page fails, and a login takes the answer that it waits for or none.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from base64 import urlsafe_b64encode
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.fuzz.judging import Broken, must
from tests.fuzz.mutation import changed, mutated, mutated_bytes, text
from tests.fuzz.targets_tokens import Net, done
from truename.auth.authentication_setup import http_authentication
from truename.auth.network.fetch import FetchError
from truename.auth.outbound.authorization import log_in
from truename.auth.outbound.discovery import LoginRegistrations
from truename.auth.vault import Vault
from truename.config import Access, Config, Settings, SignIn
from truename.config.credentials import Login

if TYPE_CHECKING:
    from random import Random

__all__ = ["TARGETS"]

_HERE: Final = "https://tools.example"
_IDP: Final = "https://idp.example"
_BACK: Final = "https://app.example/back"
_VERIFIER: Final = "v" * 43
_CHALLENGE: Final = urlsafe_b64encode(hashlib.sha256(_VERIFIER.encode()).digest()).decode().rstrip("=")
_SIGN_IN: Final = SignIn(
    client_id="gate",
    client_secret="its-secret",
    allow=("*",),
    authorization_url=f"{_IDP}/authorize",
    token_url=f"{_IDP}/token",
    userinfo_url=f"{_IDP}/me",
    scopes=("use",),
)
_CONFIG: Final = Config(settings=Settings(access=Access(sign_in=_SIGN_IN, public_url=_HERE)))
_FORM: Final = "application/x-www-form-urlencoded"
_MAY_BE: Final = frozenset({200, 201, 302, 303, 400, 401, 403, 404, 405, 413, 414, 415, 503})


@dataclass
class _Visitor:
    """A client and a browser in one, which does one of the steps otherwise than it is meant."""

    app: Any
    chance: Random
    wrong: int
    cookie: str = ""
    steps: int = 0
    answer: dict[str, Any] = field(default_factory=dict)

    async def go(self, method: str, path: str, said: dict[str, Any], kind: str = _FORM) -> dict[str, Any]:
        """Ask for a page, honestly or not, and keep what came back: status, location, text."""
        self.steps += 1
        chance, is_wrong = self.chance, self.steps == self.wrong
        given: Any = changed(chance, said) if is_wrong and chance.random() < 0.7 else said
        plain = given if isinstance(given, dict) else {"x": given}
        pairs = [(name, one if isinstance(one, str) else json.dumps(one)) for name, one in plain.items()]
        form = urlencode([(_whole(name), _whole(one)) for name, one in pairs])
        if is_wrong and chance.random() < 0.3:
            form = mutated(chance, form)
        body = json.dumps(given).encode() if kind != _FORM else form.encode("utf-8", "surrogatepass")
        if is_wrong and chance.random() < 0.2:
            body, kind = (
                mutated_bytes(chance, body),
                chance.choice((kind, "multipart/form-data; boundary=x", text(chance))),
            )
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "scheme": "https",
            "http_version": "1.1",
            "server": ("tools.example", 443),
            "client": ("127.0.0.1", 1),
            "root_path": "",
            # A web server takes printable ASCII there, and nothing else.
            "query_string": _target(form) if method == "GET" else b"",
            "headers": [
                (b"host", b"tools.example"),
                (b"content-type", kind.encode("utf-8", "surrogatepass")),
                (b"cookie", self._cookie(is_wrong).encode("utf-8", "surrogatepass")),
            ],
        }
        self.answer = await self._asked(scope, body if method == "POST" else b"")
        return self.answer

    def _cookie(self, is_wrong: bool) -> str:
        return mutated(self.chance, self.cookie) if is_wrong and self.chance.random() < 0.2 else self.cookie

    async def _asked(self, scope: dict[str, Any], body: bytes) -> dict[str, Any]:
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in sent[0]["headers"]}
        self.cookie = headers.get("set-cookie", self.cookie).partition(";")[0]
        shown = b"".join(one.get("body", b"") for one in sent[1:]).decode("utf-8", "replace")
        found = {"status": sent[0]["status"], "location": headers.get("location", ""), "text": shown}
        _judge(found, headers)
        return found

    async def all(self) -> None:
        """Register, ask to sign in, agree, come back, and get tokens; break off where nothing leads on."""
        registered = await self.go("POST", "/register", {"redirect_uris": [_BACK], "client_name": "<b>a</b>"}, "json")
        if registered["status"] != 201:
            return
        client = json.loads(registered["text"])["client_id"]
        asked = {"client_id": client, "redirect_uri": _BACK, "response_type": "code", "state": "s", "scope": "use"}
        proof = {"code_challenge": _CHALLENGE, "code_challenge_method": "S256", "resource": f"{_HERE}/mcp"}
        await self.go("GET", "/authorize", {**asked, **proof})
        token = _query(self.answer).get("request", "")
        page = await self.go("GET", "/sign-in/consent", {"request": token})
        csrf = page["text"].partition('name="csrf" value="')[2].partition('"')[0]
        await self.go("POST", "/sign-in/consent", {"request": token, "csrf": csrf, "answer": "allow"})
        state = _query(self.answer).get("state", "")
        await self.go("GET", "/sign-in/callback", {"state": state, "code": "c"})
        code = _query(self.answer).get("code", "")
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": _BACK, "client_id": client}
        given = await self.go("POST", "/token", {**form, "code_verifier": _VERIFIER, "resource": f"{_HERE}/mcp"})
        if given["status"] == 200:
            refresh = json.loads(given["text"])["refresh_token"]
            more = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": client}
            await self.go("POST", "/token", more)
            await self.go("POST", "/revoke", {"token": refresh, "client_id": client})


def _target(form: str) -> bytes:
    return "".join(letter for letter in form if "!" <= letter <= "~").encode()


def _whole(text_: str) -> str:
    return text_.encode("utf-8", "replace").decode()


def _query(answer: dict[str, Any]) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(answer["location"]).query).items()}


def _judge(found: dict[str, Any], headers: dict[str, str]) -> None:
    must(found["status"] in _MAY_BE, f"the status {found['status']} is one of those that there are")
    if there := found["location"]:
        must(there.startswith((_BACK, f"{_HERE}/", f"{_IDP}/authorize?")), "nobody is sent anywhere else")
        must(there.isascii() and there.isprintable(), "an address is one")
    if headers.get("content-type", "").startswith("text/html"):
        must("<b>a" not in found["text"] and "<script" not in found["text"], "what a stranger says is no markup")
    must("its-secret" not in found["text"], "the secret is nobody's business")


def sign_ins(chance: Random) -> None:
    tokens: Any = {"access_token": "a", "token_type": "Bearer", "refresh_token": "r", "expires_in": 60}
    person: Any = {"sub": "ann", "email": "ann@example.com", "email_verified": True, "groups": ["eng"]}
    if chance.random() < 0.4:
        tokens, person = changed(chance, tokens), changed(chance, person)
    net = Net({f"{_IDP}/token": json.dumps(tokens).encode(), f"{_IDP}/me": json.dumps(person).encode()})
    done(_visited(net, chance))


async def _visited(net: Net, chance: Random) -> None:
    async with AsyncExitStack() as stack:
        front = await stack.enter_async_context(http_authentication(_CONFIG, _HERE, fetch=net))
        await _Visitor(front.pages, chance, chance.randrange(9)).all()


_METADATA: Final = {
    "issuer": _IDP,
    "authorization_endpoint": f"{_IDP}/authorize",
    "token_endpoint": f"{_IDP}/token",
    "code_challenge_methods_supported": ["S256"],
    "registration_endpoint": f"{_IDP}/register",
}
_REGISTERED: Final = {"client_id": "given", "token_endpoint_auth_method": "none"}
_GRANT: Final = {"access_token": "the-token", "token_type": "Bearer", "expires_in": 60}


def login_callbacks(chance: Random) -> None:
    metadata = changed(chance, _METADATA) if chance.random() < 0.2 else _METADATA
    grant = changed(chance, _GRANT) if chance.random() < 0.2 else _GRANT
    pages = {
        f"{_IDP}/.well-known/oauth-authorization-server": json.dumps(metadata).encode(),
        f"{_IDP}/token": json.dumps(grant).encode(),
        f"{_IDP}/register": json.dumps(changed(chance, _REGISTERED) if chance.random() < 0.2 else _REGISTERED).encode(),
    }
    try:
        found = done(_logged_in(Net(pages), chance))
    except FetchError as fault:
        must(len(str(fault)) < 1_000, "a fault is short")
        return
    must(found.tokens.token.isascii() and found.tokens.token.isprintable(), "a token fits a header")


async def _logged_in(net: Net, chance: Random) -> Any:
    shown: asyncio.Queue[str] = asyncio.Queue()
    # Half of the time nothing is set up by hand, and the gateway registers itself.
    client = chance.choice(({"client_id": "cli"}, {}))
    kept = LoginRegistrations(
        Login(issuer=_IDP, scopes=("use",), **client), "https://far.example/mcp", Vault(None, [bytes(32)])
    )
    visitor = asyncio.ensure_future(_came_back(shown, chance))
    try:
        return await log_in(kept, net, shown.put_nowait, seconds=1.0)
    finally:
        visitor.cancel()
        (came,) = await asyncio.gather(visitor, return_exceptions=True)
        # Who authorizations may find that nobody listens any more.
        if isinstance(came, Broken):
            raise came


async def _came_back(shown: asyncio.Queue[str], chance: Random) -> None:
    asked = {name: values[0] for name, values in parse_qs(urlsplit(await shown.get()).query).items()}
    there = urlsplit(asked.get("redirect_uri", ""))
    for is_honest in (False, True):
        state = asked.get("state", "")
        said = {"code": "the-code", "state": state} if is_honest else {"code": "no-code", "state": state[::-1]}
        raw = f"GET {there.path}?{urlencode(said)} HTTP/1.1\r\nhost: {there.netloc}\r\n\r\n".encode()
        if not is_honest:
            raw = mutated_bytes(chance, raw) + b"\r\n\r\n"
        reader, writer = await asyncio.open_connection(there.hostname, there.port)
        writer.write(raw)
        answer = await reader.read(200)
        writer.close()
        must(is_honest or not answer.startswith(b"HTTP/1.1 200"), "an answer without the state is none")


TARGETS: Final = (sign_ins, login_callbacks)
