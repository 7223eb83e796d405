"""Its tools change when it is told: grow(name), shrink(name)."""

from typing import Any

from tests.gateway.servers.fake import Fake, changed, tool


def grow(params: dict[str, Any], request_id: Any) -> dict[str, Any]:
    server.tools.append(tool(params["arguments"]["name"]))
    changed()
    return server.echo(params)


def shrink(params: dict[str, Any], request_id: Any) -> dict[str, Any]:
    server.tools[:] = [entry for entry in server.tools if entry["name"] != params["arguments"]["name"]]
    changed()
    return server.echo(params)


server = Fake("changing", [tool("grow"), tool("shrink")])
server.calls |= {"grow": grow, "shrink": shrink}
server.run()
