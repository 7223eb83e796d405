"""What the requests of the golden run are made of: names, paths, arguments, bodies and headers, right and odd ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from tests.support.golden_servers import STATELESS

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "io.modelcontextprotocol/"
VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
JSON: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
TOKENS: Final = {who: f"tn1_{number:016x}_{who * 14}_" for number, who in enumerate(("ann", "bob", "eve"), 1)}
# How many of the requests each gateway gets: one with rules for everything, one without any, and one over a pipe.
GATEWAYS: Final = {"guarded": 5_500, "plain": 3_500, "piped": 1_200}
CLIENTS: Final = ("claude-code", "cursor", "gemini-cli", "codex-cli", "opencode", "openai", "librechat")
SHARED: Final = (
    *("/mcp", "/mcp", "/mcp", "/mcp", *(f"/mcp/for/{client}" for client in CLIENTS)),
    *("/mcp/only/alpha", "/mcp/only/beta", "/mcp/only/gamma", "/mcp/only/delta", "/mcp/search"),
    *("/mcp/servers/alpha,beta", "/mcp/servers/gamma,delta", "/mcp/for/cursor/search", "/mcp/only/awkward"),
)
GUARDED: Final = (
    *("/mcp/in/iphone", "/mcp/in/nightly", "/mcp/for/claude-code/in/iphone/only/gamma"),
    *(
        "/mcp/profile/support",
        "/mcp/profile/reading",
        "/mcp/for/cursor/profile/guest",
        "/mcp/only/drift",
        "/mcp/only/sf",
    ),
)
PATHS: Final = {"guarded": (*SHARED, *GUARDED), "plain": (*SHARED, "/mcp/only/faulty"), "piped": ("",)}
WRONG_PATHS: Final = (
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
IDS: Final = (
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
ARGUMENTS: Final = (
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
ODD_ARGUMENTS: Final = (
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
ODD_BODIES: Final = (
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
ODD_HEADERS: Final[tuple[Mapping[str, str | None], ...]] = (
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
TYPOS: Final = (
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
SHAPES: Final = (
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
TOOLS: Final = {
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
MOVED: Final = (
    "alpha_former",
    "alpha_retired",
    "alpha.broken",
    "alpha_broken",
    "old_search",
    "alpha_old_report",
    "Alpha-Former",
    "alpha/renamed",
)
OWN: Final = (
    "search_tools",
    "describe_tools",
    "call_tool",
    "tn_search_tools",
    "gateway_search_tools",
    "nope",
    "x" * 300,
    "",
)
URIS: Final = (
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
PROMPTS: Final = (
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
METHODS: Final = (
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
