"""Where a server says that one logs in (RFC 9728): what counts of it, and what is only said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.auth.network.addresses import NetworkZone
from truename.auth.network.fetch import FetchedDocument, FetchError, Within
from truename.auth.outbound.discovery import covers, discover, parse_challenges

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.anyio

FAR = "https://far.example/mcp"
WELL_KNOWN = "https://far.example/.well-known/oauth-protected-resource"
ELSEWHERE = "https://docs.example/meta"
GOOD: dict[str, Any] = {"resource": FAR, "authorization_servers": ["https://idp.example"]}


class Net:
    """Servers by address: documents, and one challenge; it notes what is fetched and how near it may be."""

    def __init__(self, documents: Mapping[str, Any], *challenges: str) -> None:
        self.documents = documents
        self.challenges = challenges
        self.fetched: list[tuple[str, NetworkZone]] = []
        self.near = NetworkZone.PUBLIC

    async def __call__(
        self,
        url: str,
        *,
        named_by: NetworkZone = NetworkZone.LOOPBACK,
        form: Mapping[str, str] | None = None,
        document: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> FetchedDocument:
        assert form is None
        self.fetched.append((url, named_by))
        if document is not None:
            assert (headers or {})["accept"] == "application/json, text/event-stream"
            return FetchedDocument(401, b"", self.challenges)
        said = self.documents.get(url)
        return FetchedDocument(404, b"") if said is None else FetchedDocument(200, json.dumps(said).encode())

    async def network_zone(self, _: str) -> NetworkZone:
        return self.near


@pytest.mark.parametrize(
    ("challenge", "place"),
    [
        (f'Bearer resource_metadata="{ELSEWHERE}"', ELSEWHERE),
        (f'Basic realm="x", Bearer error="invalid_token" , Resource_Metadata = {ELSEWHERE}', ELSEWHERE),
        ("Bearer", f"{WELL_KNOWN}/mcp"),
        ("Bearer", WELL_KNOWN),
        ('Bearer error_description="resource_metadata=https://evil.example"', f"{WELL_KNOWN}/mcp"),
    ],
)
async def test_it_is_found_where_the_server_says_else_at_its_well_known_places(challenge: str, place: str) -> None:
    found = await discover(FAR, Net({place: GOOD}, challenge))
    assert found.issuers == ("https://idp.example",)
    assert found.resource == FAR


@pytest.mark.parametrize(
    "said",
    [
        {**GOOD, "resource": "https://other.example/mcp"},
        {**GOOD, "resource": "http://far.example/mcp"},
        {**GOOD, "resource": "https://far.example:444/mcp"},
        {**GOOD, "resource": "https://far.example/mc"},
        {**GOOD, "resource": "https://far.example/mcp/more"},
        {**GOOD, "resource": "https://far.example/\nmcp"},
        {**GOOD, "resource": None},
        {**GOOD, "authorization_servers": []},
        {**GOOD, "authorization_servers": "https://idp.example"},
        {**GOOD, "authorization_servers": ["https://[idp", "https://idp]", "https://", "https://idp:99999"]},
        {**GOOD, "authorization_servers": ["http://idp.example", "https://idp.example?x", "https://me@idp.example", 7]},
        {**GOOD, "authorization_servers": ["https://idp.example/\nlogged in: ann"]},
        ["no object"],
    ],
)
async def test_what_is_another_servers_or_names_nobody_is_not_used(said: Any) -> None:
    with pytest.raises(FetchError):
        await discover(FAR, Net({f"{WELL_KNOWN}/mcp": said}))


@pytest.mark.parametrize("place", ["http://docs.example/meta", "file:///etc/passwd", "https://é.example", "x" * 3_000])
async def test_metadata_is_not_fetched_from_where_nobody_vouches_for_it(place: str) -> None:
    net = Net({place: GOOD, WELL_KNOWN: GOOD}, f'Bearer resource_metadata="{place}"')
    with pytest.raises(FetchError, match="names no authorization server"):
        await discover(FAR, net)
    assert [url for url, _ in net.fetched] == [FAR]


async def test_a_server_leads_nowhere_nearer_than_it_ever_was() -> None:
    net = Net({f"{WELL_KNOWN}/mcp": GOOD})
    within = Within(net, FAR)
    await discover(FAR, within)
    # Its name in DNS means this machine now.
    net.near = NetworkZone.LOOPBACK
    await discover(FAR, within)
    assert {near for _, near in net.fetched} == {NetworkZone.PUBLIC}
    assert await within.network_zone("https://idp.example") is NetworkZone.PUBLIC


async def test_scopes_are_those_of_the_challenge_else_those_that_there_are_and_only_real_ones() -> None:
    said = {**GOOD, "scopes_supported": ["read", "a b", 7, 'q"', "x" * 300, "write"]}
    assert (await discover(FAR, Net({WELL_KNOWN: said}))).scopes == ("read", "write")
    assert (await discover(FAR, Net({WELL_KNOWN: said}, 'Bearer scope="one two"'))).scopes == ("one", "two")


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.sampled_from([FAR, "https://idp.example", "http://a.b"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(
    said=st.dictionaries(st.sampled_from(["resource", "authorization_servers", "scopes_supported"]), JSON),
    challenge=st.text() | st.builds('Bearer scope="{}"'.format, st.text()),
)
def test_whatever_a_server_says_only_what_can_be_used_is_found(said: dict[str, Any], challenge: str) -> None:
    try:
        found = anyio.run(discover, FAR, Net({WELL_KNOWN: {**GOOD, **said}}, challenge))
    except FetchError:
        return
    assert covers(found.resource, FAR)
    assert 0 < len(found.issuers) <= 10
    assert all(one.startswith("https://") and one.isprintable() for one in found.issuers)
    assert all(one.isprintable() and " " not in one and '"' not in one for one in found.scopes)


def test_quoted_texts_of_challenges_are_read_as_they_were_meant() -> None:
    assert parse_challenges([r'Bearer a="x \"y\", b=2", B=3, a=4']) == {"a": 'x "y", b=2', "b": "3"}


def test_a_whole_host_covers_its_paths_and_no_sibling() -> None:
    assert covers("https://far.example:443/", FAR)
    assert covers(FAR + "/", FAR)
    assert not covers("https://far.example?tenant=a", FAR)
    assert not covers("https://[far", FAR)
