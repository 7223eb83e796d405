"""Clients that sign in here: which redirect URIs they may have, what is kept of them, and for how long."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import anyio
import pytest
from mcp.server.auth.provider import RegistrationError
from mcp.shared.auth import InvalidRedirectUriError, OAuthClientInformationFull
from pydantic import AnyUrl

from truename.auth.authorization_server import clients as module
from truename.auth.authorization_server.clients import (
    RegisteredClient,
    RegisteredClients,
    digest_of_client,
    printable_name,
    redirect_error,
)
from truename.auth.authorization_server.tokens import TokenIssuer
from truename.auth.network.addresses import NetworkZone
from truename.auth.network.fetch import FetchedDocument, FetchError
from truename.auth.oauth import is_document

pytestmark = pytest.mark.anyio

HERE = "https://tools.example"
ID = "https://client.example/id.json"
BACK = "https://client.example/back"
GOOD: dict[str, Any] = {"client_id": ID, "client_name": "A client", "redirect_uris": [BACK]}
NOT_HERE = "it is neither https, nor http on a loopback address"
NO_ADDRESS = "it is not a URL that a redirect can go to"


class Net:
    """The network: one document at every address, and a clock."""

    def __init__(self, document: object = GOOD, status: int = 200) -> None:
        self.body = json.dumps(document).encode()
        self.status = status
        self.now = 1_000.0
        self.is_dead = False
        self.slow = ""
        self.asked: list[tuple[str, NetworkZone | None]] = []

    async def __call__(self, url: str, *, named_by: NetworkZone | None = None, **_: Any) -> FetchedDocument:
        self.asked.append((url, named_by))
        if self.slow and self.slow in url:
            await anyio.sleep_forever()
        if self.is_dead:
            message = "nobody is there"
            raise FetchError(message)
        return FetchedDocument(self.status, self.body)

    async def network_zone(self, _: str) -> NetworkZone:
        return NetworkZone.PUBLIC

    def clients(self, *schemes: str, issuer: str = HERE) -> RegisteredClients:
        issued = TokenIssuer(b"k" * 32, HERE, lambda: self.now)
        scopes = ("read", "write")
        return RegisteredClients(issued, self, issuer=issuer, scopes=scopes, schemes=schemes, clock=lambda: self.now)


def asking(uris: list[str], **more: Any) -> OAuthClientInformationFull:
    """Return a registration as the SDK hands it on: it has an id already, which is not the one that counts."""
    return OAuthClientInformationFull.model_validate({"client_id": "made-up", "redirect_uris": uris, **more})


async def registered(clients: RegisteredClients, uris: list[str], **more: Any) -> RegisteredClient:
    asked = asking(uris, **more)
    with clients.registering(json.dumps({"redirect_uris": uris}).encode()):
        clients.register(asked)
    found = await clients.get(str(asked.client_id))
    assert found is not None
    assert (asked.client_name, asked.client_secret) == (found.client_name, None)
    return found


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        (BACK, None),
        ("https://client.example:8443/back?x=1", None),
        ("https://[2001:db8::1]/", None),
        ("http://127.0.0.1/back", None),
        ("http://127.0.0.1:1", None),
        ("http://[::1]:65535/back?x", None),
        ("http://localhost:3000?x", None),
        ("cursor://back", None),
        (BACK + "x" * (2_048 - len(BACK)), None),
        (BACK + "x" * (2_049 - len(BACK)), NO_ADDRESS),
        ("https://client.example/b\u00e4ck", NO_ADDRESS),
        ("https://client.example/\x7f", NO_ADDRESS),
        ("https://client.example/a b", NO_ADDRESS),
        ("https://client.example\\back", NO_ADDRESS),
        ("https://client.example/#x", NO_ADDRESS),
        ("https://client.example:x/", "it is not a URL"),
        ("https://client.example:65536/", "it is not a URL"),
        ("https://[::1/", "it is not a URL"),
        ("https://me@client.example/", "its host contains '@' or '*'"),
        ("http://127.0.0.1@evil.example/", "its host contains '@' or '*'"),
        ("https://*.example/", "its host contains '@' or '*'"),
        ("https:///back", NOT_HERE),
        ("https:back", NOT_HERE),
        ("http://client.example/", NOT_HERE),
        ("http://127.0.0.1.evil.example/", NOT_HERE),
        ("http://127.0.0.2/", NOT_HERE),
        ("http://0.0.0.0/", NOT_HERE),
        ("javascript:alert(1)", NOT_HERE),
        ("vscode://back", NOT_HERE),
        ("", NOT_HERE),
    ],
)
def test_an_answer_goes_to_https_to_this_machine_and_to_programs_that_are_allowed(
    uri: str, problem: str | None
) -> None:
    assert redirect_error(uri, ("cursor",)) == problem


@pytest.mark.parametrize(
    ("own", "wanted", "is_taken"),
    [
        (BACK, BACK, True),
        (BACK, BACK + "/", False),
        (BACK, BACK.replace("https", "HTTPS"), False),
        (BACK, BACK.replace(".example", ".example:443"), False),
        ("http://127.0.0.1/back", "http://127.0.0.1:7/back", True),
        ("http://127.0.0.1:7/back", "http://127.0.0.1:8/back", True),
        ("http://127.0.0.1:7/back", "http://127.0.0.1/back", True),
        ("http://[::1]:7/back?x=1", "http://[::1]:8/back?x=1", True),
        ("http://127.0.0.1/back", "http://localhost/back", False),
        ("http://127.0.0.1/back", "http://127.0.0.1/other", False),
        ("http://127.0.0.1/back?x=1", "http://127.0.0.1/back?x=2", False),
        ("http://127.0.0.1/back", "http://127.0.0.1.evil.example/back", False),
        ("http://127.0.0.1/back", "http://127.0.0.1:7@evil.example/back", False),
        (BACK, "http://127.0.0.1/back", False),
        ("http://127.0.0.1/back", BACK, False),
    ],
)
async def test_an_address_is_the_registered_text_but_for_a_port_of_this_machine(
    own: str, wanted: str, is_taken: bool
) -> None:
    clients = Net().clients()
    client = await registered(clients, ["https://other.example/x", own])

    assert client.takes(wanted) is is_taken
    assert await clients.takes(client.client_id, wanted) is is_taken
    if is_taken:
        assert client.validate_redirect_uri(AnyUrl(wanted)) == AnyUrl(wanted)


async def test_an_address_that_is_not_said_or_not_registered_is_refused() -> None:
    client = await registered(Net().clients(), [BACK])
    for wanted in (None, AnyUrl("https://client.example/other")):
        with pytest.raises(InvalidRedirectUriError) as caught:
            client.validate_redirect_uri(wanted)
        assert caught.value.message == "redirect_uri is not one that the client registered"


async def test_of_clients_that_are_not_known_nothing_is_said() -> None:
    clients = Net(status=404).clients()

    assert await clients.takes("nobody", BACK) is None
    assert await clients.takes(ID, BACK) is None
    assert await clients.takes(7, BACK) is None
    assert await clients.takes((await registered(clients, [BACK])).client_id, 7) is False


async def test_what_is_kept_of_a_client_is_its_id() -> None:
    clients = Net().clients()
    client = await registered(clients, [BACK], client_name="A\u202e client", client_uri="https://x.example")

    assert (client.client_name, client.redirect_uris) == ("A client", [AnyUrl(BACK)])
    assert (client.token_endpoint_auth_method, client.client_secret) == ("none", None)
    assert (await registered(clients, [BACK])).client_name is None
    # An id of another gateway, or of another issuer, is none here.
    assert await Net().clients(issuer="https://other.example").get(str(client.client_id)) is None
    assert await Net().clients().get(str(client.client_id)) == client


async def test_a_client_that_registers_is_public_and_told_what_it_gets() -> None:
    clients = Net().clients()
    asked = OAuthClientInformationFull.model_validate(
        {
            "client_id": "made-up",
            "redirect_uris": [BACK],
            "client_name": "  ",
            "token_endpoint_auth_method": "client_secret_post",
            "client_secret": "s3cret",
            "client_secret_expires_at": 7,
            "scope": "admin",
            "grant_types": ["password"],
            "response_types": ["token"],
            "software_id": "x",
            "software_version": "1",
            "contacts": ["me@x.example"],
            **dict.fromkeys(("client_uri", "logo_uri", "tos_uri", "policy_uri", "jwks_uri"), "https://x.example/"),
            "jwks": {"keys": []},
        }
    )
    clients.register(asked)

    said = asked.model_dump(mode="json", exclude_none=True, exclude={"client_id", "client_id_issued_at"})
    assert said == {
        "redirect_uris": [BACK],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "scope": "read write",
    }


@pytest.mark.parametrize(
    ("uris", "problem"),
    [
        ([], "send 1 to 10 redirect_uris"),
        ([f"{BACK}/{number}" for number in range(11)], "send 1 to 10 redirect_uris"),
        ([BACK + "x" * 1_000, BACK + "y" * 1_000], "send 1 to 10 redirect_uris"),
        ([BACK, "http://client.example/"], NOT_HERE),
        (["vscode://back"], NOT_HERE),
    ],
)
def test_addresses_that_an_answer_can_t_go_to_are_not_registered(uris: list[str], problem: str) -> None:
    asked = OAuthClientInformationFull.model_construct(redirect_uris=[AnyUrl(uri) for uri in uris])
    with pytest.raises(RegistrationError) as caught:
        Net().clients("cursor").register(asked)

    assert (caught.value.error, caught.value.error_description) == ("invalid_redirect_uri", problem)


async def test_ten_addresses_and_2048_characters_are_registered() -> None:
    clients = Net().clients()
    ten = [f"{BACK}/{number}" for number in range(10)]
    long = BACK + "x" * (2_048 - len(BACK))

    assert (await registered(clients, ten)).redirect_uris == [AnyUrl(uri) for uri in ten]
    assert (await registered(clients, [long])).takes(long)


def test_what_is_sent_and_what_is_read_have_to_be_the_same() -> None:
    clients = Net().clients()
    asked = asking([BACK])
    with (
        clients.registering(b'{"redirect_uris": ["https://client.example/other"]}'),
        pytest.raises(RegistrationError) as caught,
    ):
        clients.register(asked)

    assert (caught.value.error, caught.value.error_description) == (
        "invalid_redirect_uri",
        "redirect_uris are ambiguous for URL parsers",
    )


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"{}", b'{"redirect_uris": 7}', b"[" * 100_000])
async def test_a_body_that_says_no_addresses_leaves_those_that_were_read(body: bytes) -> None:
    clients = Net().clients()
    asked = asking([BACK])
    with clients.registering(body):
        clients.register(asked)

    assert await clients.takes(asked.client_id, BACK)


async def test_what_one_request_sent_is_nothing_of_the_next() -> None:
    clients = Net().clients()
    with clients.registering(b'{"redirect_uris": ["https://client.example/other"]}'):
        pass
    asked = asking([BACK])
    clients.register(asked)

    assert await clients.takes(asked.client_id, BACK)


async def test_a_spelling_that_was_answered_may_be_used_too() -> None:
    clients = Net().clients()
    client = await registered(clients, ["HTTPS://Client.example/x"])

    assert [client.takes(uri) for uri in ("HTTPS://Client.example/x", "https://client.example/x")] == [True, True]
    assert not client.takes("https://Client.example/x")


async def test_what_an_operator_took_out_holds_for_old_clients_too() -> None:
    before, now = Net().clients("cursor"), Net().clients()
    client = await registered(before, ["cursor://back"])

    assert await before.get(str(client.client_id)) == client
    assert await now.get(str(client.client_id)) is None


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (None, ["read", "write"]),
        ("", ["read", "write"]),
        ("write", ["write"]),
        ("write read admin", ["read", "write"]),
        ("write admin", ["write"]),
        ("write\tadmin", ["read", "write"]),
        ("admin", ["read", "write"]),
    ],
)
async def test_scopes_are_those_that_there_are(asked: str | None, given: list[str]) -> None:
    assert (await registered(Net().clients(), [BACK])).validate_scope(asked) == given


@pytest.mark.parametrize(
    ("name", "shown"),
    [(None, ""), ("", ""), (" A\tclient\n", "Aclient"), ("x" * 81, "x" * 80), ("x" * 79 + "  ", "x" * 79)],
)
def test_a_name_is_shown_as_far_as_it_can_be(name: str | None, shown: str) -> None:
    assert printable_name(name) == shown


def test_a_client_has_a_short_name() -> None:
    longest = ID + "x" * (256 - len(ID))

    assert [digest_of_client(id) for id in (ID, longest)] == [ID, longest]
    for id in (longest + "x", "signed.id", "https://client.example"):
        assert digest_of_client(id) == f"client-{hashlib.sha256(id.encode()).hexdigest()[:16]}"


@pytest.mark.parametrize(
    ("id", "is_one"),
    [
        ("https://client.example/a..b", True),
        (ID + "x" * (2_048 - len(ID)), True),
        (ID + "x" * (2_049 - len(ID)), False),
        ("https:///id.json", False),
        ("https://me@client.example/x", False),
        ("https://client.example", False),
        ("https://client.example/", False),
        ("https://client.example/./x", False),
        ("https://client.example/x/..", False),
        ("https://client.example/x#", False),
        ("https://client.example/\u00e4", False),
        ("https://[red]/x", False),
        ("HTTPS://client.example/x", False),
    ],
)
def test_which_ids_are_documents(id: str, is_one: bool) -> None:
    assert is_document(id) is is_one


async def test_a_document_is_asked_for_as_a_stranger_and_kept_for_five_minutes() -> None:
    net = Net()
    clients = net.clients()
    for seconds, number in ((0.0, 1), (299.9, 1), (300.0, 2), (301.0, 2)):
        net.now = 1_000.0 + seconds
        found = await clients.get(ID)
        assert found is not None
        assert (found.client_id, found.client_name, found.registered) == (ID, "A client", (BACK,))
        assert net.asked == [(ID, NetworkZone.PUBLIC)] * number


async def test_that_there_is_no_document_is_kept_for_half_a_minute() -> None:
    net = Net(status=404)
    clients = net.clients()
    for seconds, number in ((0.0, 1), (29.9, 1), (30.0, 2)):
        net.now = 1_000.0 + seconds
        assert await clients.get(ID) is None
        assert len(net.asked) == number


async def test_of_documents_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DOCUMENTS", 2)
    net = Net(status=404)
    clients = net.clients()
    for id, seconds in (("a", 0), ("b", 10), ("a", 30), ("c", 30), ("a", 31), ("b", 31)):
        net.now = 1_000.0 + seconds
        await clients.get(f"https://client.example/{id}")

    assert [url[-1] for url, _ in net.asked] == ["a", "b", "a", "c", "b"]


async def test_who_asks_for_one_document_at_once_asks_once() -> None:
    net = Net()
    clients = net.clients()
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(clients.get, ID)

    assert len(net.asked) <= 2
    assert await clients.get(ID) is not None


async def test_a_host_that_is_slow_keeps_only_those_waiting_whose_documents_are_there_and_not_known() -> None:
    known, other = "https://slow.example/known", "https://other.example/id.json"
    net = Net()
    net.body = json.dumps({**GOOD, "client_id": known}).encode()
    clients = net.clients()
    assert await clients.get(known) is not None
    net.slow = "slow.example"
    async with anyio.create_task_group() as tasks:
        for number in range(40):
            tasks.start_soon(clients.get, f"https://slow.example/{number}")
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(10):
            assert await clients.get(known) is not None
            net.body = json.dumps({**GOOD, "client_id": other}).encode()
            assert await clients.get(other) is not None
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("more", [{}, {"token_endpoint_auth_method": "none"}, {"token_endpoint_auth_method": None}])
async def test_a_public_client_s_document_is_taken(more: dict[str, Any]) -> None:
    assert await Net({**GOOD, **more}).clients().get(ID) is not None


@pytest.mark.parametrize("name", [None, 7, ["A"]])
async def test_a_client_need_not_say_its_name(name: object) -> None:
    found = await Net({**GOOD, "client_name": name}).clients().get(ID)

    assert found is not None
    assert found.client_name is None


@pytest.mark.parametrize(("size", "is_read"), [(65_536, True), (65_537, False)])
async def test_a_document_is_read_up_to_64_kilobytes(size: int, is_read: bool) -> None:
    net = Net()
    net.body = net.body.ljust(size)

    assert (await net.clients().get(ID) is not None) is is_read


async def test_a_document_that_can_t_be_had_is_none() -> None:
    net = Net()
    net.is_dead = True

    assert await net.clients().get(ID) is None
