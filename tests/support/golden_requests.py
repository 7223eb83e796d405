"""The requests of the golden run: drawn from a seed, from names that gateways list, and from what real clients sent.

`steps` gives the same requests for the same seed and `Survey`, whatever the gateway answers: what depends on an answer
(the id of a session, the state of a question) stands as a word with a dollar, which the runner replaces.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from tests.support.golden_servers import STATELESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from random import Random

__all__ = ["FORMS", "GATEWAYS", "PATHS", "TOKENS", "Step", "Survey", "steps"]

_PREFIX: Final = "io.modelcontextprotocol/"
_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_JSON: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
TOKENS: Final = {who: f"tn1_{number:016x}_{who * 14}_" for number, who in enumerate(("ann", "bob", "eve"), 1)}
# How many of the requests each gateway gets: one with rules for everything, one without any, and one over a pipe.
GATEWAYS: Final = {"guarded": 5_500, "plain": 3_500, "piped": 1_200}
_CLIENTS: Final = ("claude-code", "cursor", "gemini-cli", "codex-cli", "opencode", "openai", "librechat")
_SHARED: Final = (
    *("/mcp", "/mcp", "/mcp", "/mcp", *(f"/mcp/for/{client}" for client in _CLIENTS)),
    *("/mcp/only/alpha", "/mcp/only/beta", "/mcp/only/gamma", "/mcp/only/delta", "/mcp/search"),
    *("/mcp/servers/alpha,beta", "/mcp/servers/gamma,delta", "/mcp/for/cursor/search", "/mcp/only/awkward"),
)
_GUARDED: Final = (
    *("/mcp/in/iphone", "/mcp/in/nightly", "/mcp/for/claude-code/in/iphone/only/gamma"),
    *(
        "/mcp/profile/support",
        "/mcp/profile/reading",
        "/mcp/for/cursor/profile/guest",
        "/mcp/only/drift",
        "/mcp/only/sf",
    ),
)
PATHS: Final = {"guarded": (*_SHARED, *_GUARDED), "plain": (*_SHARED, "/mcp/only/faulty"), "piped": ("",)}
_WRONG_PATHS: Final = (
    *("/", "/mcp/", "/mcp/for/nobody", "/mcp/only/none", "/mcp/in/nowhere", "/mcp/profile/none", "/mcp/x", "/other"),
    *("/healthz", "/readyz", "/metrics", "/mcp/only/alpha/only/beta", "/.well-known/oauth-protected-resource/mcp"),
    *(
        "/MCP",
        "/mcp/for/cursor%2Fonly",
        "/mcp//only/alpha",
        "/mcp?x=1",
        "/mcp/servers/alpha,none",
        "/mcp/search/only/alpha",
    ),
    *(
        "/mcp/for/",
        "/mcp/only/../only/alpha",
        "/mcp/for/CURSOR",
        "/mcp/servers/",
        "/favicon.ico",
        "/login",
        "/mcp/for/cursor/only/beta",
    ),
)
_IDS: Final = (
    "7.5",
    "null",
    "true",
    "[1]",
    "{}",
    '""',
    '"1"',
    "1180591620717411303424",
    "-1",
    "0",
    "1e3",
    '"\\ud83d"',
    '"é"',
)
_ARGUMENTS: Final = (
    *("{}", '{"text":"x"}', '{"text":"x","n":1}', '{"text":"x","region":"eu"}', '{"text":1.0}'),
    *('{"text":1.50,"b":1E5,"c":-0}', '{"a":{"x":1.0,"y":2}}', '{"text":"\\ud83d\\ude80"}', '{"text":"zwölf 🚀"}'),
    *(
        '{"n":12345678901234567890123456789}',
        '{"n":1e-400}',
        '{"n":0.1e1}',
        '{"":""}',
        '{"text":null}',
        '{"text":"\\u0000"}',
    ),
    *('{"z":1,"a":2,"m":[3,{"y":1,"b":2}]}', '{ "text" : "x" ,\n "n" : [ 1 ,\r\n 2 ] }', '{"text":"a\\/b"}'),
    *('{"text":"line\\nbreak\\u2028"}', '{"password":"hunter2","text":"y"}', '{"text":"Bearer abc.def.ghi"}'),
    *('{"patient_name":"Ann","api_key":"sk-1234567890abcdef"}', '{"deep":' + "[" * 60 + "]" * 60 + "}"),
    *(
        '{"text":"' + "x" * 3000 + '"}',
        '{"__proto__":{"x":1},"constructor":2}',
        '{"region":"größe"}',
        '{"region":" x "}',
    ),
    *('{"a":1,"b":[1.0,2,3.10]}', '{"name":"search","arguments":{}}', '{"region":5,"text":"x"}', '{"region":null}'),
)
# Refused by one version or the other, or by all.
_ODD_ARGUMENTS: Final = (
    *(
        '{"text":"a","text":"b"}',
        '{"a":{"x":1,"x":2}}',
        '{"text":"\\ud83d"}',
        '{"n":1e999}',
        '{"n":-1e999}',
        '{"n":NaN}',
    ),
    *("[]", "null", "5", '"x"', "true", '[{"text":"x"}]', '{"n":' + "9" * 4400 + "}", '{"text":"x",}', "{'text':'x'}"),
    *(
        '{"deep":' + "[" * 120 + "]" * 120 + "}",
        '{"text":01}',
        '{"text":"x"',
        '{"text":"a\tb"}',
        '{"n":Infinity}',
        '{"\\u0061":1,"a":2}',
    ),
)
_ODD_BODIES: Final = (
    *(
        "",
        "{",
        "[]",
        "[{}]",
        "5",
        '"x"',
        "null",
        '{"jsonrpc":"1.0","id":$id,"method":"ping"}',
        '{"id":$id,"method":"ping"}',
    ),
    *('{"jsonrpc":"2.0","id":$id}', '{"jsonrpc":"2.0","id":$id,"method":5}', '{"jsonrpc":"2.0","id":$id,"method":""}'),
    *(
        '{"jsonrpc":"2.0","id":$id,"method":"ping","params":[]}',
        '{"jsonrpc":"2.0","id":$id,"method":"ping","params":null}',
    ),
    *('{"jsonrpc":"2.0","id":$id,"method":"ping","x":1}', '{"jsonrpc":"2.0","id":$id,"result":{}}'),
    *('{"jsonrpc":"2.0","id":$id,"error":{"code":1,"message":"x"}}', '{"jsonrpc":"2.0","id":$id,"error":{}}'),
    *('{"jsonrpc":"2.0","id":$id,"method":"ping"} x', '{"jsonrpc":"2.0","id":$id,"method":"ping","id":2}', "[" * 5_000),
    *(
        '{"jsonrpc":"2.0","id":$id,"method":"tools/call","params":{"name":"\\ud83d"}}',
        '{"jsonrpc":"2.0","method":"ping"}',
    ),
    *('{"jsonrpc":"2.0","method":"notifications/nope"}', '{"jsonrpc":"2.0","method":"notifications/initialized"}'),
    *('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}', "\ufeff{}", "\x00", "{}{}"),
    *('{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}', "{'a':1}"),
    *(
        '[{"jsonrpc":"2.0","id":$id,"method":"ping"},{"jsonrpc":"2.0","id":"b","method":"ping"}]',
        '{"jsonrpc":2.0,"id":$id,"method":"ping"}',
    ),
    *(
        '{"jsonrpc":"2.0","id":$id,"method":"tools/call","method":"ping","params":{"name":"echo"}}',
        '{"JSONRPC":"2.0","id":$id,"method":"ping"}',
    ),
    *(
        '{"jsonrpc":"2.0","id":$id,"method":"ping","result":{}}',
        '{"jsonrpc":"2.0","id":$id,"method":"ping","error":{"code":1,"message":"x"}}',
    ),
    *(
        '{"jsonrpc":"2.0","id":$id,"method":"tools/call","params":{"name":"alpha_echo","name":"alpha_search"}}',
        ' {"jsonrpc":"2.0","id":$id,"method":"ping"}\n',
    ),
    *(
        '{"jsonrpc":"2.0","id":$id,"method":"tools/call","params":{"name":"alpha_echo","arguments":{},"arguments":{"text":"b"}}}',
    ),
    *(
        '{"jsonrpc":"2.0","id":$id,"method":"tools/call","params":{"name":"alpha_echo","vendor":1.0,"_meta":{"a":1,"a":2}}}',
    ),
)
_ODD_HEADERS: Final[tuple[Mapping[str, str | None], ...]] = (
    *(
        {"accept": "application/json"},
        {"accept": None},
        {"accept": "*/*"},
        {"accept": "text/*, application/*"},
        {"accept": "text/html"},
    ),
    *({"content-type": "text/plain"}, {"content-type": None}, {"content-type": "application/json; charset=utf-8"}),
    *(
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/jsonx"},
        {"content-type": "APPLICATION/JSON"},
        {"accept": "application/json;q=0"},
    ),
    *({"mcp-session-id": "nope"}, {"mcp-session-id": None}, {"mcp-session-id": ""}, {"mcp-protocol-version": None}),
    *({"mcp-protocol-version": "2025-06-18"}, {"mcp-protocol-version": "nope"}, {"mcp-protocol-version": STATELESS}),
    *(
        {"mcp-method": "ping"},
        {"mcp-method": None},
        {"mcp-method": "Tools/Call"},
        {"mcp-name": "other"},
        {"mcp-name": None},
    ),
    *(
        {"mcp-name": "=?base64?!!?="},
        {"mcp-name": ""},
        {"mcp-param-region": "eu"},
        {"mcp-param-region": "=?base64?ZXU=?="},
    ),
    *(
        {"x-truename-context": "iphone"},
        {"x-truename-context": "platform=ios, app=payments"},
        {"x-truename-context": "nope"},
    ),
    *(
        {"x-truename-context": "platform=android"},
        {"x-truename-context": "origin=replay"},
        {"x-truename-dialect": "cursor"},
    ),
    *(
        {"x-truename-dialect": "nobody"},
        {"x-truename-dialect": "claude-code"},
        {"x-openai-mode": "chat"},
        {"last-event-id": "x"},
    ),
    *(
        {"authorization": None},
        {"authorization": "Bearer nope"},
        {"authorization": "Basic YTpi"},
        {"authorization": "Bearer"},
    ),
    *(
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:1"},
        {"host": "evil.example"},
        {"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"},
    ),
    *(
        {"accept-encoding": "gzip"},
        {"content-encoding": "gzip"},
        {"x-forwarded-for": "1.2.3.4"},
        {"mcp-session-id": "$other"},
        {"x-truename-context": "iphone \t"},
        {"mcp-protocol-version": "2025-06-18 "},
        {"mcp-name": "alpha_echo "},
    ),
)
_TYPOS: Final = (
    str.upper,
    str.title,
    lambda name: name.replace("_", "-"),
    lambda name: name.replace("_", "__"),
    lambda name: name.replace("_", "."),
    lambda name: name.replace("_", " "),
    lambda name: name[:-1],
    lambda name: name + "s",
    lambda name: name[1:] + name[:1],
    lambda name: f" {name} ",
    lambda name: quote(name, safe=""),
    lambda name: quote(quote(name, safe=""), safe=""),
    lambda name: name + "_2",
    lambda name: name + "\n",
    lambda name: name[:20],
    lambda name: name.replace("e", "\u0435"),
    lambda name: name.replace("/", "~"),
    lambda name: name.split("/")[-1],
)
_SHAPES: Final = (
    *(
        "{server}@1/{tool}@1",
        "{server}/{tool}",
        "{server}@1/{tool}@2",
        "{server}@v1/{tool}@latest",
        "{server}@2/{tool}@1",
    ),
    *(
        "{server}:{tool}",
        "{server}_{tool}",
        "{server}__{tool}",
        "{server}.{tool}",
        "{tool}",
        "mcp__tn__{server}_{tool}",
    ),
    *(
        "mcp__{server}__{tool}",
        "mcp_{server}_{tool}",
        "tn_{server}_{tool}",
        "tn-{server}_{tool}",
        "mcp__tn.{server}_{tool}",
    ),
    *(
        "mcp--tn--{server}@1/{tool}@1",
        "{server}_{tool}_mcp_tn",
        "{tool}_mcp_{server}",
        "tn:{server}_{tool}",
        "functions.{server}_{tool}",
    ),
)
_TOOLS: Final = {
    "alpha": (
        "echo",
        "search",
        "get_data",
        "create_lead",
        "delete_lead",
        "send_mail",
        "fail",
        "boom",
        "refuse",
        "progress",
        "log",
        "odd",
        "attack",
        "internal",
        "report",
        "old_report",
        "ask",
    ),
    "beta": (
        "search",
        "get_data",
        "files.read",
        "files.write",
        "Danger",
        "danger",
        "located",
        "odd",
        "fail",
        "boom",
        "progress",
        "ask",
        "createLead",
    ),
    "gamma": ("echo", "search", "press_back", "read-file", "read_file", "odd", "fail", "boom", "progress", "log"),
    "delta": ("echo", "get_data", "list.items", "odd", "fail", "boom", "progress"),
    "drift": ("steady", "changed", "grown"),
    "sf": ("create_lead", "get_leads"),
    "salesforce": ("create_lead", "get_leads"),
    "none": ("echo",),
}
_MOVED: Final = (
    "alpha_former",
    "alpha_retired",
    "alpha.broken",
    "alpha_broken",
    "old_search",
    "alpha_old_report",
    "Alpha-Former",
    "alpha/renamed",
)
_OWN: Final = (
    "search_tools",
    "describe_tools",
    "call_tool",
    "tn_search_tools",
    "gateway_search_tools",
    "nope",
    "x" * 300,
    "",
)
_URIS: Final = (
    *(f"test://{key}/one" for key in ("alpha", "beta", "gamma", "delta", "nobody")),
    *(
        "test://shared/one",
        "truename://beta/test://shared/one",
        "truename://gamma/test://shared/one",
        "test://alpha/5/x",
    ),
    *(
        "test://alpha/none",
        "test://beta/none",
        "x:y",
        "",
        "not a uri",
        "truename://none/test://x",
        "test://gamma/" + "x" * 300,
    ),
)
_PROMPTS: Final = (
    "alpha_greet",
    "greet",
    "beta_greet",
    "alpha_only",
    "gamma_a_b_c",
    "a.b c",
    "nope",
    "mcp__tn__alpha_greet",
    "beta@1/greet@1",
)
FORMS: Final = {
    "accept": {"action": "accept", "content": {"name": "ada", "decision": "allow once"}},
    "decline": {"action": "decline"},
    "cancel": {"action": "cancel"},
}


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
            return str(self.pick(_MOVED))
        if kind < 0.78:
            return str(self.pick(_OWN))
        server = self.pick(tuple(_TOOLS))
        name = str(self.pick(_SHAPES)).format(server=server, tool=self.pick(_TOOLS[server]))
        if kind > 0.90:
            return str(self.pick(_TYPOS)(name if self.chance(0.3) else self.pick(listed)))
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
        return str(self.pick(_ODD_ARGUMENTS if self.chance(0.18) else _ARGUMENTS))

    def meta(self, *, is_stateless: bool) -> dict[str, Any]:
        meta: dict[str, Any] = {}
        if is_stateless:
            able = self.pick(({}, {"elicitation": {"form": {}}}, {"elicitation": {}}, {"sampling": {}, "roots": {}}))
            meta = {f"{_PREFIX}protocolVersion": STATELESS, f"{_PREFIX}clientCapabilities": able}
            if self.chance(0.8):
                meta[f"{_PREFIX}clientInfo"] = self.pick(
                    self.survey.handshakes or ({"client_info": {"name": "x", "version": "1"}},)
                )["client_info"]
            if self.chance(0.1):
                meta[f"{_PREFIX}logLevel"] = self.pick(("debug", "error", "loud", 5))
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
                "name": self.pick(_PROMPTS),
                "arguments": self.pick(({}, {"who": "x"}, {"who": 1}, None)),
            },
            "resources/read": lambda: {"uri": self.pick(_URIS)},
            "resources/subscribe": lambda: {"uri": self.pick(_URIS)},
            "resources/unsubscribe": lambda: {"uri": self.pick(_URIS)},
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
                {"type": "ref/prompt", "name": self.pick(_PROMPTS)},
                {"type": "ref/resource", "uri": "test://alpha/{id}/x"},
                {"type": "x"},
                5,
            )
        )
        return {"ref": ref, "argument": self.pick(({"name": "who", "value": "a"}, {"name": "id", "value": ""}, {}))}

    def _handshake(self) -> dict[str, Any]:
        info = self.pick(self.survey.handshakes or ({"client_info": {"name": "x", "version": "1"}},))
        version = self.pick((*_VERSIONS, "1999-01-01", STATELESS, info.get("protocol", "2025-06-18"), 5))
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
        kept = tuple((name, value) for name, value in {**_JSON, **(headers or {})}.items() if value is not None)
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
        session = _Session(f"$s{self.opened}", who, path, self.pick(_VERSIONS), form)
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
        name = (params or {}).get(_NAMED.get(method, ""))
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
            body = self.message("ping" if self.chance(0.5) else "tools/list", {}, id=self.pick(_IDS))
        else:
            body = str(self.pick(_ODD_BODIES)).replace("$id", str(self.number)).encode()
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
        path = self.pick(_WRONG_PATHS)
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
            return self.request(self.pick(_METHODS))
        if kind < 0.86:
            return self.odd_body()
        if kind < 0.94:
            return self.request(
                self.pick(("tools/call", "ping", "tools/list", "resources/read")), odd=self.pick(_ODD_HEADERS)
            )
        if kind < 0.97:
            return self.odd_path()
        return self.cancelled() if kind < 0.975 else self.odd_verb()


_METHODS: Final = (
    *(
        "ping",
        "prompts/list",
        "prompts/get",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    ),
    *(
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "logging/setLevel",
        "completion/complete",
        "initialize",
    ),
    *(
        "server/discover",
        "subscriptions/listen",
        "tasks/list",
        "tasks/get",
        "tasks/result",
        "tasks/cancel",
        "vendor/echo",
        "nope",
    ),
    *(
        "Tools/Call",
        "tools/call ",
        "roots/list",
        "sampling/createMessage",
        "elicitation/create",
        "notifications/initialized",
    ),
)


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
            body = str(drawing.pick(_ODD_BODIES)).replace("$id", str(drawing.number)).replace("\n", " ").encode()
            yield drawing.step("line: odd body", body)
        elif kind < 0.16:
            yield drawing.step("line: odd id", drawing.message("ping", {}, id=drawing.pick(_IDS)))
        else:
            method = "tools/call" if kind < 0.85 else drawing.pick(("tools/list", *_METHODS))
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
