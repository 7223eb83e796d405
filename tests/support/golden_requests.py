"""The requests of the golden run: drawn from a seed, from names that gateways list, and from what real clients sent.

`steps` gives the same requests for the same seed and `Survey`, whatever the gateway answers: what depends on an answer
(the id of a session, the state of a question) stands as a word with a dollar, which the runner replaces.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.golden_request_tables import (
    ARGUMENTS,
    FORMS,
    IDS,
    JSON,
    METHODS,
    MOVED,
    NAMED,
    ODD_ARGUMENTS,
    ODD_BODIES,
    ODD_HEADERS,
    OWN,
    PATHS,
    PREFIX,
    PROMPTS,
    SHAPES,
    TOKENS,
    TOOLS,
    TYPOS,
    URIS,
    VERSIONS,
    WRONG_PATHS,
)
from tests.support.golden_servers import STATELESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from random import Random

__all__ = ["Step", "Survey", "steps"]


@dataclass(frozen=True)
class Survey:
    """What requests are made of beside the seed: names that gateways list, and what real clients were seen to send."""

    listed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sent: tuple[str, ...] = ()
    handshakes: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Step:
    """One request. ``opens`` names the session that its answer begins; ``form`` is how questions are answered."""

    number: int
    about: str
    body: bytes
    verb: str = "POST"
    path: str = "/mcp"
    headers: tuple[tuple[str, str], ...] = ()
    opens: str | None = None
    form: str | None = None
    is_stream: bool = False
    is_cancelled: bool = False


@dataclass
class _Session:
    name: str
    who: str | None
    path: str
    version: str
    form: str | None
    is_over: bool = False


@dataclass
class _Drawing:
    gateway: str
    random: Random
    survey: Survey
    number: int = 0
    sessions: list[_Session] = field(default_factory=list)
    over: list[_Session] = field(default_factory=list)
    opened: int = 0

    def pick(self, choices: Any) -> Any:
        return choices[self.random.randrange(len(choices))]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # --- what a request is made of -----------------------------------------------------------------------------------

    def name(self, path: str) -> str:
        kind = self.random.random()
        listed = self.survey.listed.get(path) or self.survey.listed.get("/mcp") or ("echo",)
        if kind < 0.62:
            return str(self.pick(listed))
        if kind < 0.68:
            return str(self.pick(self.survey.listed[self.pick(tuple(self.survey.listed))] or ("echo",)))
        if kind < 0.73 and self.survey.sent:
            return str(self.pick(self.survey.sent))
        if kind < 0.75:
            return str(self.pick(MOVED))
        if kind < 0.78:
            return str(self.pick(OWN))
        server = self.pick(tuple(TOOLS))
        name = str(self.pick(SHAPES)).format(server=server, tool=self.pick(TOOLS[server]))
        if kind > 0.90:
            return str(self.pick(TYPOS)(name if self.chance(0.3) else self.pick(listed)))
        return name

    def arguments(self, name: str, path: str) -> str | None:
        if name.endswith("search_tools") and self.chance(0.8):
            return json.dumps(
                {
                    "query": self.pick(("search data", "lead", "zzz", "", "files read")),
                    "limit": self.pick((1, 3, 10, 0, "x")),
                }
            )
        if name.endswith("describe_tools") and self.chance(0.8):
            return json.dumps({"names": [self.name(path) for _ in range(self.pick((0, 1, 2)))]})
        if name.endswith("call_tool") and self.chance(0.9):
            inner = self.arguments("", path) or "{}"
            return f'{{"name":{json.dumps(self.name(path))},"arguments":{inner}}}'
        if self.chance(0.06):
            return None
        if self.chance(0.35):
            return json.dumps({"text": f"t{self.random.randrange(9)}"})
        return str(self.pick(ODD_ARGUMENTS if self.chance(0.18) else ARGUMENTS))

    def meta(self, *, is_stateless: bool) -> dict[str, Any]:
        meta: dict[str, Any] = {}
        if is_stateless:
            able = self.pick(({}, {"elicitation": {"form": {}}}, {"elicitation": {}}, {"sampling": {}, "roots": {}}))
            meta = {f"{PREFIX}protocolVersion": STATELESS, f"{PREFIX}clientCapabilities": able}
            if self.chance(0.8):
                meta[f"{PREFIX}clientInfo"] = self.pick(
                    self.survey.handshakes or ({"client_info": {"name": "x", "version": "1"}},)
                )["client_info"]
            if self.chance(0.1):
                meta[f"{PREFIX}logLevel"] = self.pick(("debug", "error", "loud", 5))
        if self.chance(0.15):
            meta["progressToken"] = self.pick((f"p{self.number}", self.number, True, 1.5, None, [1]))
        if self.chance(0.05):
            meta |= self.pick(
                (
                    {"m/x": {"y": [None]}},
                    {"claudecode/toolUseId": "t"},
                    {"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"},
                )
            )
        if self.chance(0.04):
            meta |= self.pick(
                (
                    {"dev.truename/protocol": "0.2"},
                    {"dev.truename/protocol": 5},
                    {"dev.truename/approval": "$approval"},
                    {"dev.truename/x": 1},
                )
            )
        if is_stateless and self.chance(0.04):
            meta.pop(self.pick(tuple(meta)))
        return meta

    def params(self, method: str) -> dict[str, Any] | None:
        known: dict[str, Any] = {
            "prompts/get": lambda: {
                "name": self.pick(PROMPTS),
                "arguments": self.pick(({}, {"who": "x"}, {"who": 1}, None)),
            },
            "resources/read": lambda: {"uri": self.pick(URIS)},
            "resources/subscribe": lambda: {"uri": self.pick(URIS)},
            "resources/unsubscribe": lambda: {"uri": self.pick(URIS)},
            "logging/setLevel": lambda: {"level": self.pick(("info", "error", "loud", 5))},
            "completion/complete": self._completion,
            "subscriptions/listen": lambda: {
                "notifications": self.pick(
                    ({"toolsListChanged": True}, {}, {"resourceSubscriptions": ["test://alpha/one"]}, 5)
                )
            },
            "tasks/get": lambda: {"taskId": "x"},
            "tasks/result": lambda: {"taskId": "x"},
            "tasks/cancel": lambda: {"taskId": "x"},
            "initialize": self._handshake,
        }
        found: dict[str, Any] | None
        if self.chance(0.08):
            found = self.pick((None, {}, {"cursor": "x"}, {"cursor": 5}, {"_meta": 5}, {"name": 5}, {"uri": 5}))
        else:
            found = known[method]() if method in known else self.pick((None, {}, {}))
        return found

    def _completion(self) -> dict[str, Any]:
        ref = self.pick(
            (
                {"type": "ref/prompt", "name": self.pick(PROMPTS)},
                {"type": "ref/resource", "uri": "test://alpha/{id}/x"},
                {"type": "x"},
                5,
            )
        )
        return {"ref": ref, "argument": self.pick(({"name": "who", "value": "a"}, {"name": "id", "value": ""}, {}))}

    def _handshake(self) -> dict[str, Any]:
        info = self.pick(self.survey.handshakes or ({"client_info": {"name": "x", "version": "1"}},))
        version = self.pick((*VERSIONS, "1999-01-01", STATELESS, info.get("protocol", "2025-06-18"), 5))
        return {
            "protocolVersion": version,
            "capabilities": info.get("capabilities", {}),
            "clientInfo": info["client_info"],
        }

    def message(
        self, method: str, params: dict[str, Any] | None, arguments: str | None = None, id: str | None = None
    ) -> bytes:
        members = [] if params is None else [f"{json.dumps(key)}:{json.dumps(one)}" for key, one in params.items()]
        members += [] if arguments is None else [f'"arguments":{arguments}']
        self.random.shuffle(members)
        said = "" if params is None else f',"params":{{{",".join(members)}}}'
        number = str(self.number) if id is None else id
        return f'{{"jsonrpc":"2.0","id":{number},"method":{json.dumps(method)}{said}}}'.encode()

    # --- whole requests -------------------------------------------------------------------------------------------

    def step(self, about: str, body: bytes, headers: dict[str, str | None] | None = None, **more: Any) -> Step:
        kept = tuple((name, value) for name, value in {**JSON, **(headers or {})}.items() if value is not None)
        made = Step(self.number, about, body, headers=kept, **more)
        self.number += 1
        return made

    def token(self, who: str | None) -> dict[str, str | None]:
        return {"authorization": f"Bearer {TOKENS[who]}"} if who else {}

    def caller(self, path: str) -> str | None:
        """Return who asks at a path: mostly somebody for whom there is something."""
        if self.gateway != "guarded":
            return None
        likely = {"/mcp/profile/reading": "bob", "/mcp/for/cursor/profile/guest": "eve"}.get(path, "ann")
        return likely if self.chance(0.6) else str(self.pick(("ann", "bob", "bob", "eve")))

    def opening(self) -> Iterator[Step]:
        path = self.pick(PATHS[self.gateway])
        who = self.caller(path)
        self.opened += 1
        form = self.pick((None, "accept", "decline", "cancel"))
        session = _Session(f"$s{self.opened}", who, path, self.pick(VERSIONS), form)
        able = {"elicitation": self.pick(({}, {"form": {}}))} if session.form else {}
        info = self.pick(self.survey.handshakes or ({"client_info": {"name": "x", "version": "1"}},))
        params = {"protocolVersion": session.version, "capabilities": able, "clientInfo": info["client_info"]}
        headers = self.token(who)
        yield self.step("open", self.message("initialize", params), headers, path=session.path, opens=session.name)
        told = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
        headers |= {"mcp-session-id": session.name, "mcp-protocol-version": session.version}
        yield self.step("initialized", told, headers, path=session.path)
        self.sessions.append(session)

    def place(self, *, is_stateless: bool) -> tuple[str, dict[str, str | None], str | None]:
        """Return a path, the headers of who asks, and how they answer questions."""
        if is_stateless:
            path = self.pick(PATHS[self.gateway])
            who = None if self.chance(0.02) else self.caller(path)
            return path, {**self.token(who), "mcp-protocol-version": STATELESS}, None
        session = self.pick(self.sessions) if self.chance(0.98) or not self.over else self.pick(self.over)
        headers = {**self.token(session.who), "mcp-session-id": session.name}
        if session.version > "2025-03-26":
            headers["mcp-protocol-version"] = session.version
        path = session.path
        if self.chance(0.02):
            path = self.pick(PATHS[self.gateway])
        if self.chance(0.01) and session.who:
            headers |= self.token(self.pick(tuple(TOKENS)))
        return path, headers, session.form

    def routing(self, method: str, params: dict[str, Any] | None, arguments: str | None) -> dict[str, str | None]:
        headers: dict[str, str | None] = {"mcp-method": method}
        name = (params or {}).get(NAMED.get(method, ""))
        if isinstance(name, str):
            is_plain = name.isascii() and name.isprintable() and name == name.strip()
            headers["mcp-name"] = (
                name if is_plain else f"=?base64?{b64encode(name.encode('utf-8', 'replace')).decode()}?="
            )
        if arguments and '"region":"eu"' in arguments and self.chance(0.8):
            headers["mcp-param-region"] = "eu"
        return headers

    def request(self, method: str, *, odd: Mapping[str, str | None] | None = None) -> Step:
        is_stateless = self.chance(0.45)
        path, headers, form = self.place(is_stateless=is_stateless)
        arguments: str | None = None
        if method == "tools/call":
            name: Any = self.name(path)
            arguments = self.arguments(name, path)
            called = {"name": self.pick((5, None, ["x"], {})) if self.chance(0.01) else name}
            if is_stateless and name.endswith("ask") and self.chance(0.6):
                called["requestState"] = self.pick(("$state", "forged", 5))
                called["inputResponses"] = {"q": self.pick(tuple(FORMS.values()))}
            params: dict[str, Any] | None = called
        else:
            params = self.params(method)
        if (meta := self.meta(is_stateless=is_stateless)) and not (params is None and not is_stateless):
            params = {**(params or {}), **({} if "_meta" in (params or {}) else {"_meta": meta})}
        if is_stateless:
            headers |= self.routing(method, params, arguments)
        headers |= odd or {}
        id = None if self.chance(0.9) else f'"r{self.number}"'
        is_stream = method == "subscriptions/listen"
        about = f"{'stateless' if is_stateless else 'session'} {method}"
        body = self.message(method, params, arguments, id)
        return self.step(about, body, headers, path=path, form=form, is_stream=is_stream)

    def odd_body(self) -> Step:
        is_stateless = self.chance(0.4)
        path, headers, _ = self.place(is_stateless=is_stateless)
        if is_stateless:
            headers["mcp-method"] = self.pick(("ping", "tools/call"))
        if self.chance(0.35):
            body = self.message("ping" if self.chance(0.5) else "tools/list", {}, id=self.pick(IDS))
        else:
            body = str(self.pick(ODD_BODIES)).replace("$id", str(self.number)).encode()
        if self.chance(0.03):
            body = self.pick(
                (
                    b"\xff\xfe",
                    b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
                    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\xc3"}}',
                )
            )
        return self.step(f"{'stateless' if is_stateless else 'session'} odd body", body, headers, path=path)

    def odd_path(self) -> Step:
        who = self.pick(("ann", "bob", None)) if self.gateway == "guarded" else None
        verb = self.pick(("POST", "GET", "HEAD", "PUT", "OPTIONS", "DELETE"))
        path = self.pick(WRONG_PATHS)
        body = self.message("tools/list", {}) if verb == "POST" else b""
        return self.step(f"{verb} {path}", body, self.token(who), path=path, verb=verb)

    def odd_verb(self) -> Step:
        verb = self.pick(("GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH"))
        if self.chance(0.3):
            who = "ann" if self.gateway == "guarded" and self.chance(0.9) else None
            version = self.pick(({}, {"mcp-protocol-version": STATELESS}))
            return self.step(
                f"{verb} without a session", b"", {**self.token(who), **version}, verb=verb, is_stream=verb == "GET"
            )
        index = self.random.randrange(len(self.sessions))
        session = self.sessions[index]
        headers = {**self.token(session.who), "mcp-session-id": session.name}
        if verb == "GET":
            headers |= self.pick(
                (
                    {"accept": "application/json"},
                    {"last-event-id": "x"},
                    {"last-event-id": "9-9"},
                    {"accept": "text/html"},
                )
            )
        if verb == "DELETE" and len(self.sessions) > 4:
            self.over.append(self.sessions.pop(index))
        return self.step(f"{verb} of a session", b"", headers, verb=verb, path=session.path, is_stream=verb == "GET")

    def cancelled(self) -> Step:
        session = next(
            (one for one in reversed(self.sessions) if one.path == "/mcp" and one.who in {None, "ann"}), None
        )
        if session is None:
            return self.request("ping")
        headers = {**self.token(session.who), "mcp-session-id": session.name, "mcp-protocol-version": session.version}
        body = self.message("tools/call", {"name": "alpha_hold"}, "{}")
        return self.step("session cancel", body, headers, is_cancelled=True)

    def drawn(self) -> Step:
        kind = self.random.random()
        if kind < 0.62:
            return self.request("tools/call")
        if kind < 0.67:
            return self.request("tools/list")
        if kind < 0.79:
            return self.request(self.pick(METHODS))
        if kind < 0.86:
            return self.odd_body()
        if kind < 0.94:
            return self.request(
                self.pick(("tools/call", "ping", "tools/list", "resources/read")), odd=self.pick(ODD_HEADERS)
            )
        if kind < 0.97:
            return self.odd_path()
        return self.cancelled() if kind < 0.975 else self.odd_verb()


def _lines(drawing: _Drawing) -> Iterator[Step]:
    """Draw requests for a pipe: one client, first in one era and then in the other."""
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "x", "version": "1"},
    }
    yield drawing.step("open", drawing.message("initialize", params), form="accept")
    yield drawing.step("initialized", b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    while True:
        kind = drawing.random.random()
        if kind < 0.12:
            body = str(drawing.pick(ODD_BODIES)).replace("$id", str(drawing.number)).replace("\n", " ").encode()
            yield drawing.step("line: odd body", body)
        elif kind < 0.16:
            yield drawing.step("line: odd id", drawing.message("ping", {}, id=drawing.pick(IDS)))
        else:
            method = "tools/call" if kind < 0.85 else drawing.pick(("tools/list", *METHODS))
            arguments = None
            if method == "tools/call":
                name = drawing.name("/mcp")
                params, arguments = {"name": name}, drawing.arguments(name, "/mcp")
            else:
                params = drawing.params(method) or {}
            if meta := drawing.meta(is_stateless=drawing.chance(0.1)):
                params.setdefault("_meta", meta)
            body = drawing.message(method, params, arguments).replace(b"\r", b" ").replace(b"\n", b" ")
            yield drawing.step(f"line: {method}", body, form=drawing.pick(("accept", "decline", "cancel")))


def steps(gateway: str, random: Random, survey: Survey) -> Iterator[Step]:
    """Draw requests for one of the gateways, without end."""
    drawing = _Drawing(gateway, random, survey)
    if gateway == "piped":
        yield from _lines(drawing)
    while True:
        for _ in range(8):
            yield from drawing.opening()
        for _ in range(280):
            yield drawing.drawn()
        for _ in range(len(drawing.sessions) - 4):
            drawing.over.append(drawing.sessions.pop(0))
