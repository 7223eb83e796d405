"""What the protocol does not know passes where there is one server to judge it; what no server has is not announced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.shelf import Shelf

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio


async def test_an_unknown_method_passes_to_the_only_server(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams
) -> None:
    a, b = Shelf("a", prompts=("p",)), Shelf("b", prompts=("p",))
    async with (
        upstreams.serve(a.server) as first,
        upstreams.serve(b.server) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as several,
        lab.serving(lab.at("a", first)) as one,
        raw(several) as http,
        raw(one) as alone,
    ):
        said = await alone.result("test/vendor", {"x": {"y": [None]}})
        assert (said["from"], said["asked"], said["resultType"]) == ("a", {"x": {"y": [None]}}, "complete")
        said = await http.result("test/vendor", {"x": 1}, path="/mcp/only/b")
        assert said["from"] == "b"
        refused = await http.post("test/vendor", {"x": 1})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, -32601)
        unknown = await alone.post("test/unheard-of", {})
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, -32601)
        known = await alone.post("resources/subscribe", {"uri": "test://x"})
        assert (known.status_code, known.json()["error"]["code"]) == (404, -32601)


async def test_only_what_a_server_has_is_announced(
    lab: Lab, connect: Callable[..., Any], raw: Callable[[str], Any], upstreams: Upstreams
) -> None:
    prompts, resources = Shelf("p", prompts=("p",)), Shelf("r", uris=("test://r",))
    async with (
        upstreams.serve(prompts.server) as first,
        upstreams.serve(resources.server) as second,
        lab.serving(lab.normal("w", "get")) as tools,
        lab.serving(lab.at("p", first)) as some,
        lab.serving(lab.at("p", first), lab.at("r", second)) as all_of_them,
    ):
        for address, path, expected in (
            (tools, "/mcp", {"tools"}),
            (some, "/mcp", {"tools", "prompts"}),
            (all_of_them, "/mcp", {"tools", "prompts", "resources"}),
            (all_of_them, "/mcp/only/r", {"tools", "resources"}),
        ):
            async with connect(address + path, "legacy") as client, raw(address) as http:
                found = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
                assert found.keys() == expected
                assert all(one["listChanged"] for one in found.values())
                assert (await http.result("server/discover", {}, path=path))["capabilities"].keys() == expected
