"""Resources behind the gateway: a URI leads to one server, or is refused; nothing is guessed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.client.subscriptions import ResourcesListChanged
from mcp.shared.exceptions import MCPError

from tests.gateway.conftest import PATIENCE
from tests.gateway.shelf import Shelf
from truename import Catalog, Ledger
from truename.config import ServerConfig, Settings
from truename.errors import LedgerError
from truename.gateway import listening
from truename.gateway.protocol.templates import Template
from truename.gateway.rate_limited_log import RateLimitedLog
from truename.gateway.upstream.known import KnownServer
from truename.gateway.upstream.lists import Lists
from truename.gateway.views.naming import Namer
from truename.gateway.views.others import Others
from truename.gateway.views.resources import ResourcePlace, Resources, behind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio

BIG = tuple(f"test://{number}/{'x' * 2_000}" for number in range(900))


async def _uris(client: Any) -> list[str]:
    return [str(resource.uri) for resource in (await client.list_resources()).resources]


async def _text(client: Any, uri: str) -> tuple[str, str]:
    (content,) = (await client.read_resource(uri)).contents
    return str(content.uri), content.text


async def test_a_uri_that_two_servers_have_is_shown_twice_and_each_leads_home(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    a, b = Shelf("a", uris=("test://x", "test://a")), Shelf("b", uris=("test://x", "test://b"))
    async with (
        upstreams.serve(a.server) as first,
        upstreams.serve(b.server) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
        connect(address + "/mcp/only/b", era) as only,
    ):
        assert await _uris(client) == ["test://x", "test://a", "truename://b/test://x", "test://b"]
        assert await _text(client, "test://x") == ("test://x", "a")
        assert await _text(client, "truename://b/test://x") == ("truename://b/test://x", "b")
        # Whoever has it, a URI behind a server's key leads there.
        assert (await _text(client, "truename://a/test://x"))[1] == "a"
        assert await _uris(only) == ["test://x", "test://b"]
        assert await _text(only, "test://x") == ("test://x", "b")


async def test_a_uri_is_routed_by_template_where_exactly_one_fits(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    a = Shelf("a", templates=("docs://{name}", "both://{name}"))
    b = Shelf("b", templates=("notes://{name}/text", "both://{name}"))
    async with (
        upstreams.serve(a.server) as first,
        upstreams.serve(b.server) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        listed = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in listed] == [
            "docs://{name}",
            "both://{name}",
            "notes://{name}/text",
            "truename://b/both://{name}",
        ]
        assert await _text(client, "docs://1") == ("docs://1", "a")
        assert await _text(client, "notes://1/text") == ("notes://1/text", "b")
        assert await _text(client, "truename://b/both://1") == ("truename://b/both://1", "b")
        with pytest.raises(MCPError) as several:
            await client.read_resource("both://1")
        with pytest.raises(MCPError) as nobodys:
            await client.read_resource("other://1")
        with pytest.raises(MCPError) as unknown:
            await client.read_resource("docs://missing")
    assert "Read one of these exactly: truename://a/both://1, truename://b/both://1" in several.value.message
    assert "No server lists the resource 'other://1'" in nobodys.value.message
    assert nobodys.value.error.data == {"uri": "other://1"}
    assert nobodys.value.code == (-32002 if era == "legacy" else -32602)
    # A server's own refusal comes as it is.
    assert (unknown.value.message, unknown.value.error.data) == ("Resource not found", {"uri": "docs://missing"})
    assert "resources/read" in a.asked


async def test_the_only_server_with_resources_judges_what_it_does_not_list(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    shelf = Shelf("a", uris=("test://a",))
    async with (
        upstreams.serve(shelf.server) as url,
        lab.serving(lab.at("a", url), lab.normal("w", "get")) as address,
        connect(address + "/mcp", era) as client,
    ):
        assert await _text(client, "test://unlisted") == ("test://unlisted", "a")


async def test_many_resources_come_in_pages(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    shelf, found, cursor = Shelf("a", uris=BIG), list[str](), None
    async with (
        upstreams.serve(shelf.server) as url,
        lab.serving(lab.at("a", url)) as address,
        connect(address + "/mcp", era) as client,
    ):
        pages = 0
        while True:
            page = await client.list_resources(cursor=cursor)
            found, cursor, pages = [*found, *(str(one.uri) for one in page.resources)], page.next_cursor, pages + 1
            if cursor is None:
                break
        with pytest.raises(MCPError, match="List again without one"):
            await client.list_resources(cursor="page-99")
    assert tuple(found) == BIG
    assert pages > 1


async def test_a_subscription_is_told_that_resources_changed(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    shelf = Shelf("a", uris=("test://a",))
    async with (
        upstreams.serve(shelf.server) as url,
        lab.serving(lab.at("a", url)) as address,
        connect(address + "/mcp", "2026-07-28") as client,
        client.listen(resources_list_changed=True) as events,
    ):
        shelf.uris.append("test://b")
        await shelf.change()
        with anyio.fail_after(PATIENCE):
            assert await anext(aiter(events)) == ResourcesListChanged()
        assert await _uris(client) == ["test://a", "test://b"]


def _lists(*uris: str) -> Lists:
    return Lists(resources=tuple({"uri": uri, "name": uri} for uri in uris))


def test_a_uri_stays_with_the_server_that_had_it_first() -> None:
    before = Resources({"a": _lists(), "b": _lists("x://1")})
    after = Resources({"a": _lists("x://1"), "b": _lists("x://1")}, before)
    assert [one.uri for one in after.view(None).resources] == ["truename://a/x://1", "x://1"]
    gone = Resources({"a": _lists("x://1"), "b": _lists()}, after)
    # What it lists no more is still its own.
    assert gone.view(None).places("x://1") == (ResourcePlace("b", "x://1"),)
    assert gone.view(None).places("truename://a/x://1") == (ResourcePlace("a", "x://1"),)


def test_a_uri_stays_with_the_server_that_had_it_before_a_restart_whoever_is_there_now() -> None:
    owned = {"x://1": "b", "x://2": "gone"}
    alone = Resources({"a": _lists("x://1", "x://2"), "b": _lists()}, None, owned).view(None)
    assert [one.uri for one in alone.resources] == ["truename://a/x://1", "truename://a/x://2"]
    assert alone.places("x://1") == (ResourcePlace("b", "x://1"),)
    # Of a server that was taken out nobody inherits.
    assert alone.places("x://2") == ()
    assert alone.places("truename://a/x://2") == (ResourcePlace("a", "x://2"),)
    only = Resources({"a": _lists("x://2"), "b": _lists()}, None, owned).view("a")
    assert only.places("x://2") == (ResourcePlace("a", "x://2"),)


def test_what_is_shared_is_remembered_first_and_what_names_its_server_not_at_all() -> None:
    found = Resources({"a": _lists("x://1", "x://2", "truename://q/x"), "b": _lists("x://2", "x://3")})
    assert found.shown_plain() == [("x://2", "a"), ("x://1", "a"), ("x://3", "b")]


async def test_after_a_restart_a_uri_leads_where_it_led(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    path = lab.folder / "names.journal"
    first, second = Shelf("a", uris=("test://x",)), Shelf("b", uris=("test://x",))
    async with upstreams.serve(first.server) as one, upstreams.serve(second.server) as two:
        a, b = lab.at("a", one), lab.at("b", two)
        async with lab.gateway(a, b, ledger=Ledger.open(path)) as gateway:
            listed = [shown.uri for shown in gateway.registry.resources.view(None).resources]
            assert listed == ["test://x", "truename://b/test://x"]
        for servers in ((b, a), (b,)):
            async with (
                lab.gateway(*servers, ledger=Ledger.open(path)) as gateway,
                listening(gateway) as address,
                connect(address + "/mcp", "2026-07-28") as client,
            ):
                assert "truename://b/test://x" in await _uris(client)
                if a in servers:
                    assert await _text(client, "test://x") == ("test://x", "a")
                else:
                    with pytest.raises(MCPError, match="No server lists the resource"):
                        await client.read_resource("test://x")


async def test_owners_that_can_not_be_kept_cost_nothing_else(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, upstreams: Upstreams
) -> None:
    def full(self: Ledger, uris: Any) -> None:
        raise LedgerError(code="unusable", path=lab.folder, reason="No space left on device")

    monkeypatch.setattr(Ledger, "own", full)
    async with (
        upstreams.serve(Shelf("a", uris=("test://x",)).server) as url,
        lab.gateway(lab.at("a", url)) as gateway,
    ):
        assert [shown.uri for shown in gateway.registry.resources.view(None).resources] == ["test://x"]
    assert "the servers of resources cannot be recorded" in caplog.text


def test_what_a_server_lists_no_more_is_not_read_from_one_whose_template_it_fits() -> None:
    greedy = Lists(templates=({"uriTemplate": "bank://{+any}", "name": "any"},))
    before = Resources({"a": _lists("bank://account/1"), "greedy": greedy})
    after = Resources({"a": _lists(), "greedy": greedy}, before).view(None)
    assert after.places("bank://account/1") == (ResourcePlace("a", "bank://account/1"),)


@pytest.mark.parametrize("template", ["{+any}", "{scheme}://{+rest}", "/{x}"])
def test_a_template_of_any_scheme_routes_nothing(template: str) -> None:
    found = Resources({"greedy": Lists(templates=({"uriTemplate": template, "name": "any"},)), "a": Lists()}).view(None)
    assert found.places("bank://account/1?token=s") == ()
    assert found.places("truename://greedy/bank://1") == (ResourcePlace("greedy", "bank://1"),)


def test_a_uri_that_is_too_long_fits_no_template() -> None:
    found = Resources({"a": Lists(templates=({"uriTemplate": "a://{x}", "name": "any"},))}).view(None)
    assert found.places("a://" + "x" * 8_000) != ()
    assert found.places("a://" + "x" * 9_000) == ()


async def test_what_may_be_of_a_server_that_is_down_is_read_from_no_other(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    shelf = Shelf("b", uris=("test://b",))
    async with (
        upstreams.serve(shelf.server) as url,
        lab.serving(lab.at("a", "http://127.0.0.1:9/mcp"), lab.at("b", url)) as address,
        connect(address + "/mcp", era) as client,
    ):
        for uri in ("vault://of-a/secret", "truename://gone/x"):
            with pytest.raises(MCPError, match="No server lists the resource"):
                await client.read_resource(uri)


def test_a_server_cannot_take_the_place_behind_another_ones_key() -> None:
    found = Resources({"a": _lists("truename://b/x://1"), "b": _lists("x://1")}).view(None)
    assert found.places("truename://b/x://1") == (ResourcePlace("b", "x://1"),)
    assert [one.uri for one in found.resources] == ["truename://a/truename://b/x://1", "x://1"]


@given(st.text(min_size=1), st.text())
def test_a_uri_behind_a_key_leads_to_that_server_with_that_uri(server: str, uri: str) -> None:
    found = Resources({server: _lists()}).view(None)
    assert found.places(behind(server, uri)) == (ResourcePlace(server, uri),)


@given(st.lists(st.tuples(st.text(st.characters(exclude_characters="{}")), st.text())), st.text())
def test_a_template_fits_whatever_is_made_of_it(parts: list[tuple[str, str]], end: str) -> None:
    literal_end = end.replace("{", "").replace("}", "")
    template = "".join(f"{literal}{{v}}" for literal, _ in parts) + literal_end
    assert Template(template).fits("".join(literal + value for literal, value in parts) + literal_end)


@pytest.mark.parametrize(
    ("template", "uri"),
    [("a://{x}/b", "a://1"), ("a://{x}/b", "b://1/b"), ("a://", "a://1"), ("ab{x}ba", "aba"), ("a{x}b{y}c{z}d", "abd")],
)
def test_a_template_does_not_fit_what_lacks_its_literals(template: str, uri: str) -> None:
    assert not Template(template).fits(uri)


def test_two_gateways_on_one_ledger_agree_whose_a_uri_is(tmp_path: Path) -> None:
    rounds, together = 150, Barrier(2)

    def gateway(listing: str, other: str) -> list[str]:
        with closing(Ledger.open(tmp_path / "state.db")) as ledger:
            log = RateLimitedLog()
            namer, leads = Namer(ledger, Settings(), log), list[str]()
            for number in range(rounds):
                uri, servers = f"x://{number}", sorted((listing, other))
                others = Others(servers, ledger, log, Catalog(()))
                known = {key: KnownServer(ServerConfig(key=key), (), _lists()) for key in servers}
                known[listing] = known[listing]._replace(lists=_lists(uri))
                together.wait(PATIENCE)
                others.take(known, namer)
                ((server, _),) = others.resources.view(None).places(uri)
                leads.append(server)
            return leads

    with ThreadPoolExecutor(2) as threads:
        one, two = threads.submit(gateway, "a", "b"), threads.submit(gateway, "b", "a")
        assert one.result() == two.result()
