"""What clients do with all of the protocol, and what they are told: without what an era or the gateway stamps on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.gateway.speakers import Wrong

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from tests.gateway.speakers import Speaker

_STAMP = "io.modelcontextprotocol/"
_TRUENAME = ("openai_name", "canonical_name")
# What only results of the stateless era have.
_OF_AN_ERA = ("resultType", "ttlMs", "cacheScope")


class Server(NamedTuple):
    """A server as a client finds it: ``prefix`` stands before its names."""

    label: str
    version: str
    prefix: str = ""

    def uri(self, name: str) -> str:
        return f"test://{self.label}/{name}"


def plain(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without what an era or the gateway stamps on it."""
    body = {key: value for key, value in result.items() if key not in _OF_AN_ERA}
    meta = {key: value for key, value in (body.pop("_meta", None) or {}).items() if not _is_stamp(key)}
    return {**body, "_meta": meta} if meta else body


def _is_stamp(key: str) -> bool:
    return key.startswith((_STAMP, "truename.dev/", "dev.truename/")) or "truename" in key


def _entry(entry: dict[str, Any], server: Server) -> dict[str, Any]:
    kept = {key: value for key, value in plain(entry).items() if key not in _TRUENAME}
    return {**kept, "name": kept["name"].removeprefix(server.prefix)} if "name" in kept else kept


def _listed(method: str, field: str) -> Any:
    async def list_all(client: Speaker, server: Server) -> Any:
        found, cursor = list[Any](), dict[str, Any]()
        while True:
            page = await client.ask(method, **cursor)
            found += page[field]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        own = [entry for entry in found if _belongs(entry, server)]
        return [_entry(entry, server) for entry in own]

    return list_all


def _belongs(entry: dict[str, Any], server: Server) -> bool:
    where = entry.get("uri") or entry.get("uriTemplate")
    return str(where).startswith(server.uri("")) if where else str(entry["name"]).startswith(server.prefix)


async def outcome(asking: Awaitable[dict[str, Any]]) -> Any:
    try:
        return plain(await asking)
    except Wrong as wrong:
        return {"error": wrong.error}


def _calls(tool: str, arguments: Any = None, **more: Any) -> Any:
    async def call(client: Speaker, server: Server) -> Any:
        given = {} if arguments is None else {"arguments": arguments}
        told = await outcome(client.ask("tools/call", name=server.prefix + tool, **given, **more))
        inner = told.get("structuredContent") or {}
        if "name" in inner:
            inner["name"] = inner["name"].removeprefix(server.prefix)
        return told

    return call


async def _unknown_tool(client: Speaker, server: Server) -> Any:
    """The gateway answers in words that a model reads; either way it is an error and no server is asked."""
    told = await outcome(client.ask("tools/call", name=server.prefix + "no_such_tool_at_all"))
    return "error" in told or told["isError"]


def _got(name: str, **arguments: str) -> Any:
    async def get(client: Speaker, server: Server) -> Any:
        return await outcome(client.ask("prompts/get", name=server.prefix + name, arguments=arguments))

    return get


def _read(name: str) -> Any:
    async def read(client: Speaker, server: Server) -> Any:
        told = await outcome(client.ask("resources/read", uri=server.uri(name)))
        # The code is the era's.
        return told if "error" not in told else told["error"]["data"]

    return read


async def _skills(client: Speaker, server: Server) -> list[tuple[str, dict[str, Any]]]:
    """Return a server's skills, each with the address that it is shown under, and their own in them."""
    found, cursor = list[dict[str, Any]](), dict[str, Any]()
    while True:
        page = await client.ask("skills/list", **cursor)
        found += page["skills"]
        if "nextCursor" not in page:
            return [(one["uri"], _own_skill(one, server)) for one in found if server.uri("") in one["uri"]]
        cursor = {"cursor": page["nextCursor"]}


def _own_skill(entry: dict[str, Any], server: Server) -> dict[str, Any]:
    def own(uri: str) -> str:
        return uri[uri.index(server.uri("")) :]

    files = [{**file, "uri": own(file["uri"])} for file in entry["resources"]]
    return {**entry, "uri": own(entry["uri"]), "resources": files}


async def _skills_listed(client: Speaker, server: Server) -> Any:
    return [entry for _, entry in await _skills(client, server)]


async def _skill_got(client: Speaker, server: Server) -> Any:
    uri, listed = (await _skills(client, server))[1]
    told = await client.ask("skills/get", uri=uri)
    text = (await client.ask("resources/read", uri=uri))["contents"][0]["text"]
    missing = await outcome(client.ask("skills/get", uri="none:x"))
    return _own_skill(told["skill"], server) == listed, text, missing["error"]["code"]


def _completed(kind: str) -> Any:
    async def complete(client: Speaker, server: Server) -> Any:
        about = {"name": f"{server.prefix}one"} if kind == "ref/prompt" else {"uri": server.uri("{id}/x")}
        argument = {"name": "a", "value": "b"}
        return await outcome(client.ask("completion/complete", ref={"type": kind, **about}, argument=argument))

    return complete


def _asks(tool: str) -> Any:
    async def ask(client: Speaker, server: Server) -> Any:
        client.asked.clear()
        told = await outcome(client.ask("tools/call", name=server.prefix + tool))
        return {"asked": client.asked[:], **told}

    return ask


async def _progress(client: Speaker, server: Server) -> Any:
    client.heard.clear()
    for token in ("mine", 7):
        await client.ask("tools/call", name=f"{server.prefix}progress", _meta={"progressToken": token})
    return client.told("notifications/progress")


async def _logged(client: Speaker, server: Server) -> Any:
    client.heard.clear()
    if not client.modern:
        await client.ask("logging/setLevel", level="debug")
    wanted = {f"{_STAMP}logLevel": "debug"} if client.modern else {}
    await client.ask("tools/call", name=f"{server.prefix}log", arguments={"text": "t"}, _meta=wanted)
    return client.told("notifications/message")


async def _cancelled(client: Speaker, server: Server) -> Any:
    """One of two calls is cancelled: that one alone is given up."""
    client.heard.clear()
    numbers = []
    for text in ("first", "second"):
        call = {"name": f"{server.prefix}hold", "arguments": {"text": text}, "_meta": {"progressToken": text}}
        numbers.append(await client.begin("tools/call", call))
    await client.until(lambda: len(client.told("notifications/progress")) == len(numbers))
    await client.cancel(numbers[0])
    done = (await client.ask("tools/call", name=f"{server.prefix}gave_up"))["structuredContent"]["given up"]
    await client.cancel(numbers[1])
    return done[-1:]


async def _watched(client: Speaker, server: Server) -> Any:
    client.heard.clear()
    uri, other = server.uri("one"), server.uri("two")
    number = 0
    if client.modern:
        wanted = {"resourceSubscriptions": [uri]}
        number = await client.begin("subscriptions/listen", {"notifications": wanted})
        await client.hears("notifications/subscriptions/acknowledged")
    else:
        await client.ask("resources/subscribe", uri=uri)
    await client.ask("tools/call", name=f"{server.prefix}touch")
    told = await client.hears("notifications/resources/updated")
    if client.modern:
        await client.cancel(number)
    else:
        await client.ask("resources/unsubscribe", uri=uri)
    return {"uri": told["uri"], "is another": told["uri"] == other}


async def _pinged(client: Speaker, _: Server) -> Any:
    return {} if client.modern else await client.ask("ping")


ODD: Mapping[str, Any] = {"vendor": {"z": [None, 1e300]}, "_meta": {"vendor/x": {"y": None}, "traceparent": "00-1"}}
# What is done, and the first version that has it: an older client cannot be asked, an older server does not ask.
PRIMITIVES: Mapping[str, tuple[Any, str]] = {
    "ping": (_pinged, ""),
    "tools/list, in pages": (_listed("tools/list", "tools"), ""),
    "tools/call with what nobody knows": (_calls("echo", {"text": "x", "n": [1, None]}, **ODD), ""),
    "tools/call without arguments": (_calls("echo"), ""),
    "a result that is odd": (_calls("odd"), ""),
    "a result that is an error": (_calls("fails"), ""),
    "an error of the protocol": (_calls("refuses"), ""),
    "tools/call of none": (_unknown_tool, ""),
    "progress": (_progress, ""),
    "log messages": (_logged, ""),
    "cancellation": (_cancelled, ""),
    "prompts/list, in pages": (_listed("prompts/list", "prompts"), ""),
    "prompts/get": (_got("two", a="1", b="2"), ""),
    "resources/list, in pages": (_listed("resources/list", "resources"), ""),
    "resources/templates/list": (_listed("resources/templates/list", "resourceTemplates"), ""),
    "resources/read": (_read("one"), ""),
    "resources/read of a template": (_read("7/x"), ""),
    "resources/read of none": (_read("none"), ""),
    "skills/list, in pages": (_skills_listed, ""),
    "skills/get": (_skill_got, ""),
    "subscriptions to resources": (_watched, ""),
    "completion of a prompt": (_completed("ref/prompt"), ""),
    "completion of a template": (_completed("ref/resource"), ""),
    "sampling": (_asks("sample"), ""),
    "roots": (_asks("roots"), ""),
    "elicitation by a form": (_asks("form"), "2025-06-18"),
    "elicitation by a URL": (_asks("url"), "2025-11-25"),
}
